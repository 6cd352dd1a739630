"""A store's objects as files of those who read by themselves: the file that one is, or bytes that are asked of the store for them.

Who asks so is given no credentials, and the store is asked as this package asks it: by its own client, with its retries.
"""

from __future__ import annotations

import datetime
import io
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .base import Store
from .local import LocalStore

_EVER = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def local_path(store: Store, name: str) -> str | None:
    """The path of the file that is the object of a store in a directory; None for any other store."""
    return f"{store.url.rstrip('/')}/{name}" if isinstance(store, LocalStore) else None


@dataclass(frozen=True)
class ObjectStore:
    """How the Rust crate ``object_store``, by which Polars reads, is to reach a store: its options, and who gives it credentials.

    ``credentials`` gives them by the names of its options, and the second at which to ask again or None; None where there are none to give.
    """

    options: Mapping[str, str]
    credentials: Callable[[], tuple[dict[str, str], int | None]] | None = field(repr=False)


def for_object_store(store: Store) -> ObjectStore | None:
    """How that crate is to reach the store under its URL; None where it cannot."""
    known = getattr(store, "for_object_store", None)
    return None if known is None else known()


class _Position(threading.local):
    """Where a thread stands in a file."""

    at = 0


class ObjectFile(io.RawIOBase):
    """An object of a store as a file that is read: each read is a request for that range.

    Threads that share it have a position each, at first 0: an engine that reads parts of it at once seeks and then reads, which is no
    single step. So no thread goes on where another has stopped.
    """

    def __init__(self, store: Store, name: str, size: int) -> None:
        self._store, self._name, self._size, self._position = store, name, size, _Position()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position.at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._position.at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._position.at, io.SEEK_END: self._size}[whence]
        return self._position.at

    def readinto(self, buffer: Any) -> int:
        at = self._position.at
        wanted = max(0, min(len(buffer), self._size - at))
        if wanted:
            buffer[:wanted] = self._store.get_range(self._name, at, wanted)
            self._position.at = at + wanted
        return wanted


def path_of(protocol: str, name: str, size: int) -> str:
    """What ``as_files`` calls an object of that size."""
    return f"{protocol}://{size}/{name}"


def as_files(store: Store, protocol: str) -> Any:
    """The objects of a store as a file system of fsspec's with that protocol, which never change and can only be read.

    A path says the object's size, see ``path_of``: nothing has to be asked for it. No character of a path is a wildcard. fsspec is
    imported here, since a catalog in a directory or on S3 does without.
    """
    from fsspec import AbstractFileSystem

    class Objects(AbstractFileSystem):  # type: ignore[misc]
        cachable = False

        def _open(self, path: str, mode: str = "rb", **_: Any) -> ObjectFile:
            if mode != "rb":
                raise PermissionError(f"{path} can only be read.")
            size, _slash, name = path.partition("/")
            return ObjectFile(store, name, int(size))

        def info(self, path: str, **_: Any) -> dict[str, Any]:
            size = self._strip_protocol(path).partition("/")[0]
            return {"name": path, "size": int(size), "type": "file"}

        def glob(self, path: str, **_: Any) -> list[str]:
            return [path]

        def modified(self, path: str) -> datetime.datetime:
            return _EVER

    Objects.protocol = protocol
    return Objects()
