"""Opens the inventory of a bucket, and with it the client that it needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .extras import extra
from .inventory import Inventory
from .s3.options import PROTOCOLS


def open_inventory(url: str, storage_options: Mapping[str, Any] | None = None) -> Inventory:
    """The inventory of ``s3://BUCKET/PATH``; asks nothing yet. ``InvalidOption`` for what is no such url or option."""
    with extra("s3", url):
        from .s3.inventory import S3Inventory
    return S3Inventory(url, storage_options)


def is_inventory_url(url: str) -> bool:
    """Whether ``open_inventory`` takes the url."""
    return "://" in url and url.partition("://")[0] in PROTOCOLS
