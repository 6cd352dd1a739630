"""Packages that a store needs and that are not installed with this one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import UnsupportedStore


@contextmanager
def extra(name: str, url: str) -> Iterator[None]:
    """Around the imports of what ``pip install 'bucketcatalog[name]'`` installs: ``UnsupportedStore`` where it is missing.

    They stand where a store is opened: botocore takes a third of a second, and is not always there.
    """
    try:
        yield
    except ImportError as error:
        raise UnsupportedStore(
            f"{url} needs a package that is not installed: {error.name}.", next_step=f"pip install 'bucketcatalog[{name}]'"
        ) from error
