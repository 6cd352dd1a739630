"""Finds the store that a path or url names. Opening creates nothing and, as far as the store lets it, asks nothing.

Opens the inventory of a bucket, and with it the client that it needs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InvalidOption
from .base import Store
from .local import LocalStore
from .memory import MemoryStore
from .remote import ATOMIC_PUTS, FsspecStore
from .remote_failures import extra
from .s3.options import PROTOCOLS as S3_PROTOCOLS

if TYPE_CHECKING:
    from .inventory import Inventory

WRITABLE = ATOMIC_PUTS | {"file", *S3_PROTOCOLS}
"""The protocols over which a catalog can be written."""
_FILE_URL = re.compile(r"file:(?://(?:localhost)?)?(?=/)")
_MEMORY = "memory://"
_URL = re.compile(rf"[A-Za-z][A-Za-z0-9+.\-]*:(?:/|:)|(?:{'|'.join(sorted(WRITABLE))}):", re.IGNORECASE)


def store_at(place: str | os.PathLike[str] | Store, storage_options: Mapping[str, Any] | None = None) -> Store:
    """The store that is given, or the one that a path or url names; ``InvalidOption`` for what is neither."""
    if not isinstance(place, (str, os.PathLike)) and hasattr(place, "list_prefixes"):
        return place
    if isinstance(place, (str, os.PathLike)) and isinstance(text := os.fspath(place), str) and "\0" not in text:
        return open_store(place, storage_options)
    raise InvalidOption(
        f"{place!r} names no catalog.", next_step="Give a path or a URL as text without NULs, a pathlib.Path, or a Store."
    )


def open_store(url: str | os.PathLike[str], storage_options: Mapping[str, Any] | None = None) -> Store:
    """The store that ``url`` names: a path, ``file:///path``, ``s3://bucket/path``, ``memory://name``, or any url that fsspec knows.

    A ``~`` at the beginning of a path is the user's home. Raises ``InvalidOption`` for what is no url or options that the store does
    not take, ``UnsupportedStore`` for an unknown protocol or a package that is missing.
    """
    if isinstance(url, os.PathLike):
        return _local(os.fspath(url), storage_options)
    if not url:
        raise InvalidOption("An empty string names no store.", next_step="Give a path or a url.")
    if _FILE_URL.match(url):
        return _local(_FILE_URL.sub("", url, count=1), storage_options)
    if url.startswith(_MEMORY):
        _takes_no_options(url, storage_options)
        return MemoryStore(url[len(_MEMORY) :])
    if url.partition("://")[0] in S3_PROTOCOLS and "://" in url:
        return _s3(url, storage_options)
    if "://" in url:
        return FsspecStore(url, storage_options)
    refuse_mistyped(url)
    return _local(url, storage_options)


def is_url(place: str) -> bool:
    """Whether a text names a store by a url, and not by a path; Spark writes that of a file with one slash."""
    return "://" in place or _FILE_URL.match(place) is not None


def refuse_mistyped(url: str) -> None:
    """``InvalidOption`` for what looks more like a url with a slash too few than like a path."""
    if _URL.match(url):
        raise InvalidOption(f"{url!r} is neither a path nor a url.", next_step="Write ://, or ./ before a path that has a colon.")


def _s3(url: str, storage_options: Mapping[str, Any] | None) -> Store:
    with extra("s3", url):
        from .s3.store import S3Store
    return S3Store(url, storage_options)


def _local(path: str, storage_options: Mapping[str, Any] | None) -> Store:
    _takes_no_options(path, storage_options)
    return LocalStore(Path(path).expanduser())


def _takes_no_options(url: str, storage_options: Mapping[str, Any] | None) -> None:
    if storage_options:
        raise InvalidOption(
            f"{url} takes no storage options, but was given {', '.join(sorted(storage_options))}.", next_step="Leave them out."
        )


def open_inventory(url: str, storage_options: Mapping[str, Any] | None = None) -> Inventory:
    """The inventory of ``s3://BUCKET/PATH``; asks nothing yet. ``InvalidOption`` for what is no such url or option."""
    with extra("s3", url):
        from .s3.inventory import S3Inventory
    return S3Inventory(url, storage_options)


def is_inventory_url(url: str) -> bool:
    """Whether ``open_inventory`` takes the url."""
    return "://" in url and url.partition("://")[0] in S3_PROTOCOLS
