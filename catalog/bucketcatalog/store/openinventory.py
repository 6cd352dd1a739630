"""Opens the inventory of a bucket, and with it the client that it needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bucketcatalog.errors import UnsupportedStore
from bucketcatalog.store.inventories import Inventory
from bucketcatalog.store.s3.options import PROTOCOLS


def open_inventory(url: str, storage_options: Mapping[str, Any] | None = None) -> Inventory:
    """The inventory of ``s3://BUCKET/PATH``; asks nothing yet. ``InvalidOption`` for what is no such url or option."""
    # Imported here: boto3 takes a third of a second, and is not installed with the package itself.
    try:
        from bucketcatalog.store.s3.inventory import S3Inventory
    except ImportError as error:
        raise UnsupportedStore(
            f"{url} needs a package that is not installed: {error.name}.", next_step="pip install 'bucketcatalog[s3]'"
        ) from error
    return S3Inventory(url, storage_options)


def is_inventory_url(url: str) -> bool:
    """Whether ``open_inventory`` takes the url."""
    return "://" in url and url.partition("://")[0] in PROTOCOLS
