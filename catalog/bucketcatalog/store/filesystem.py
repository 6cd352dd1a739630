# ruff: noqa: PTH102, PTH116, PTH120
"""The directories of a local store: made where needed, and known to be on disk before a put into them is acknowledged.

A file's name is durable once its directory has been synced, a new directory's once its parent has, and so on up. Syncing all of
them for every put would cost as much as the put itself, so those that are known to be durable are remembered, each by an open file
descriptor: while it is open the inode cannot be reused, so comparing inodes tells whether the directory at that path is still the one
that was synced, or one that somebody removed and made again.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NEVER_SYNCED = (errno.EINVAL, errno.EBADF, errno.ENOTSUP)
_REMEMBERED = 32


class Directory:
    """An open directory, closed when the last reference to it goes."""

    __slots__ = ("_identity", "fd")

    def __init__(self, path: bytes, *, within: Directory | None = None) -> None:
        self.fd: int = os.open(path or b"/", _OPEN_DIRECTORY, dir_fd=within.fd if within else None)
        status = os.fstat(self.fd)
        self._identity = (status.st_dev, status.st_ino)

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        with suppress(AttributeError, OSError):
            close(self.fd)

    def sync(self) -> None:
        """Make the names in this directory durable, as far as the file system knows of such a thing: some refuse to."""
        try:
            os.fsync(self.fd)
        except OSError as error:
            if error.errno not in _NEVER_SYNCED:
                raise

    def is_at(self, path: bytes) -> bool:
        """Whether ``path`` still leads to this very directory."""
        try:
            status = os.stat(path or b"/")
        except OSError:
            return False
        return (status.st_dev, status.st_ino) == self._identity


class Place:
    """Where a put goes: the open directory, and what must be synced before its name is durable."""

    __slots__ = ("_fresh", "_unsynced", "directory")

    def __init__(self, directory: Directory, unsynced: list[Directory], fresh: dict[bytes, Directory]) -> None:
        self.directory = directory
        self._unsynced = unsynced
        self._fresh = fresh

    def sync(self) -> dict[bytes, Directory]:
        """Make every name in the directory, its own and those above it durable; gives the directories then known to be."""
        self.directory.sync()
        for directory in self._unsynced:
            directory.sync()
        return self._fresh


class Directories:
    """The directories below one root. Safe to use from several threads."""

    def __init__(self, root: bytes) -> None:
        self._root = root
        self._durable: dict[bytes, Directory] = {}
        self._lock = threading.Lock()

    def place(self, path: bytes) -> Place:
        """The directory at ``path``, absolute and not above the root, made if it is not there.

        Raises ``FileNotFoundError`` where somebody removes directories at the same time; trying again is right then.
        """
        unsynced: list[Directory] = []
        fresh: dict[bytes, Directory] = {}
        directory, made = self._open(path, unsynced, fresh)
        if made:
            fresh.pop(path, None)  # most are made for one object and never written to again
        return Place(directory, unsynced, fresh)

    def synced(self, fresh: dict[bytes, Directory]) -> None:
        """Remember directories that are known to be durable."""
        if fresh:
            with self._lock:
                self._durable.update(fresh)
                while len(self._durable) > _REMEMBERED:
                    del self._durable[next(iter(self._durable))]

    def _open(self, path: bytes, unsynced: list[Directory], fresh: dict[bytes, Directory]) -> tuple[Directory, bool]:
        known = self._durable.get(path)
        if known is not None and known.is_at(path):
            return known, False
        made = False
        if path == self._root:
            made = _make_root(path)
            directory = Directory(path)
        else:
            above, _, name = path.rpartition(b"/")
            parent, _ = self._open(above, unsynced, fresh)
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=parent.fd)
                made = True
            directory = Directory(name, within=parent)
            unsynced.append(parent)
        fresh[path] = directory
        return directory, made


def _make_root(path: bytes) -> bool:
    """Make the root and what is missing above it, each durable; whether it was missing."""
    parent = os.path.dirname(path) or b"/"
    made = False
    try:
        os.mkdir(path or b"/")
        made = True
    except FileExistsError:
        pass
    except FileNotFoundError:
        if Path(os.fsdecode(parent)).is_dir():
            raise  # a file system that makes no directories, such as /proc
        _make_root(parent)
        return _make_root(path)
    # Also where the root was there: whoever made it may have died before this.
    with suppress(PermissionError):
        Directory(parent).sync()
    return made
