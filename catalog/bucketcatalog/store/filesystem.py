# ruff: noqa: PTH102, PTH116, PTH120
"""What a local store knows of its file system: what its errors mean, which directories are on disk, what dead puts have left.

Below a root no directory is written or deleted in that a symbolic link leads to: each is opened within the one above it, so that nobody
can put a link there between a look and the deed.

A file's name is durable once its directory has been synced, a new directory's once its parent has, and so on up. Syncing all of
them for every put would cost as much as the put itself, so those that are known to be durable are remembered, each by an open file
descriptor: while it is open the inode cannot be reused, so comparing inodes tells whether the directory at that path is still the one
that was synced, or one that somebody removed and made again.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from ..errors import AccessDenied, StoreError, StoreUnavailable
from .base import UnfinishedPut
from .object_names import TEMPORARY

NO_SUCH_FILE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENXIO, errno.ENODEV})
"""A get that fails with one of these names no object."""

REFUSED_RENAME = frozenset(
    {
        errno.EACCES,
        errno.EBUSY,
        errno.EDQUOT,
        errno.EEXIST,
        errno.EISDIR,
        errno.ENAMETOOLONG,
        errno.ENOENT,
        errno.ENOSPC,
        errno.ENOTDIR,
        errno.EPERM,
        errno.EROFS,
        errno.ETXTBSY,
    }
)
"""A rename that fails with one of these did not happen; with any other it may have."""

_DENIED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_NEXT_STEPS = {
    errno.EACCES: "Give this user the permission, or run as one that has it.",
    errno.EPERM: "Give this user the permission, or run as one that has it.",
    errno.EROFS: "Mount the file system for writing, or choose another place.",
    errno.ENOSPC: "Free some space on the file system, then try again.",
    errno.EDQUOT: "Free some space or raise this user's quota, then try again.",
    errno.EMFILE: "Raise the limit of open files (ulimit -n), then try again.",
    errno.ENFILE: "Raise the machine's limit of open files, then try again.",
    errno.EEXIST: "Move away the file that stands where a directory is needed.",
    errno.ENOTDIR: "Move away the file that stands where a directory is needed.",
    errno.EISDIR: "Move away the directory that stands where the object is needed.",
    errno.ELOOP: "Remove the symbolic link that leads back to itself.",
    errno.ENAMETOOLONG: "Remove the link that leads there, or the directories that lie so deep.",
}
_TRY_AGAIN = "Try again; if it stays, check the disk and the system's log."
_OF_ONE_NAME = frozenset({errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENAMETOOLONG})
_LINK_FAILS = {errno.ELOOP: "leads back to itself", errno.ENAMETOOLONG: "is a symbolic link to a path that is too long"}


class LinkInTheWay(OSError):
    """A symbolic link below a root that is not followed: to a directory, or with a ``why`` one that cannot be. ``filename`` is its path."""

    def __init__(self, path: bytes, why: OSError | None = None) -> None:
        code = errno.ELOOP if why is None else why.errno or errno.EIO
        super().__init__(code, os.strerror(code), path)
        self.why = why


def is_of_one_name(error: OSError) -> bool:
    """Whether a read or a listing fails for what lies under one name, and not for the machine's sake."""
    return isinstance(error, LinkInTheWay) or error.errno in _OF_ONE_NAME


def next_step(error: OSError) -> str:
    """What a user can do about an error of the system."""
    return _NEXT_STEPS.get(error.errno or 0, _TRY_AGAIN)


def from_os_error(error: OSError, doing: str, what: str) -> StoreError:
    """The store's error for an ``OSError`` that came of ``doing`` something to ``what``, nothing having changed."""
    if isinstance(error, LinkInTheWay) and error.why is None:
        at = os.fsdecode(error.filename.rstrip(b"/"))
        return AccessDenied(
            f"Cannot {doing} {what}: {at!r} is a symbolic link, and below a store's root none to a directory is followed.",
            next_step="Remove the link; where you made it yourself, put there what it leads to. "
            "Or, if this is no catalog, give the path of one.",
        )
    kind = AccessDenied if error.errno in _DENIED else StoreUnavailable
    link = failing_link(error)
    where = f" ({link!r} {_LINK_FAILS[error.errno or 0]})" if link else ""
    return kind(f"Cannot {doing} {what}: {error.strerror or error}{where}.", next_step=next_step(error))


def failing_link(error: OSError) -> str | None:
    """The symbolic link on the path of the error that leads back to itself, or to too long a path; None where it is not for that."""
    path = Path(os.fsdecode(error.filename or ""))
    for part in [*reversed(path.parents), path] if error.errno in _LINK_FAILS and path.is_absolute() else []:
        try:
            part.stat()
        except OSError as failed:
            return str(part) if failed.errno == error.errno and _is_link(os.fsencode(part)) else None
    return None


_OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_PASS = getattr(os, "O_PATH", os.O_RDONLY)
_PASS_DIRECTORY = _PASS | os.O_DIRECTORY | os.O_CLOEXEC
"""Asks for no right to read its names, which nobody needs who only goes through."""
_NEVER_SYNCED = (errno.EINVAL, errno.EBADF, errno.ENOTSUP)
_REMEMBERED = 32
_HELD = 64
"""Of the directories above each other that a delete goes down through, how many it holds open for the way up."""


def _open_within(part: bytes, within: int, path: bytes, flags: int = _OPEN_DIRECTORY) -> int:
    """The directory ``part`` in an open one, of which ``path`` is what an error says; ``LinkInTheWay`` where a link leads to it."""
    try:
        return os.open(part, flags | os.O_NOFOLLOW, dir_fd=within)
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP, errno.EMLINK) and _is_link(part, within):
            raise LinkInTheWay(path) from None
        raise


def _is_link(part: bytes, within: int | None = None) -> bool:
    try:
        return stat.S_ISLNK(os.stat(part, dir_fd=within, follow_symlinks=False).st_mode)
    except OSError:
        return False


_READ = os.O_RDONLY | os.O_CLOEXEC
_READ_AT_ONCE = _READ | os.O_NONBLOCK | os.O_NOCTTY
"""Waits for nobody: a pipe would for who writes to it."""


def open_file(path: bytes, *, within: int | None = None) -> int:
    """The plain file at a path, or of that name in an open directory, to be read; a link is what it leads to.

    ``FileNotFoundError`` for a pipe, a device or a directory: nothing of these is read, nor waited for.
    """
    try:
        fd = os.open(path, _READ_AT_ONCE, dir_fd=within)
    except BlockingIOError:  # somebody on the machine has a lease on it, as servers of network file systems take
        return _open_leased(path, within)
    return _plain(fd, path)


def _open_leased(path: bytes, within: int | None) -> int:
    """The same, waiting until the lease is given up: of what is seen to be a plain file before it is opened, and cannot be swapped then."""
    seen = _plain(os.open(path, _PASS | os.O_CLOEXEC, dir_fd=within), path)
    try:
        return os.open(f"/proc/self/fd/{seen}", _READ)
    finally:
        os.close(seen)


def _plain(fd: int, path: bytes) -> int:
    """The same descriptor where it is of a plain file; else it is closed."""
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)


def refuse_links(root: bytes, prefix: bytes) -> None:
    """``LinkInTheWay`` where a directory of a prefix, which is empty or ends in ``/``, is a symbolic link."""
    path = root
    for part in prefix.split(b"/")[:-1]:
        path += b"/" + part
        try:
            is_link = stat.S_ISLNK(os.stat(path, follow_symlinks=False).st_mode)
        except OSError:
            return  # whoever opens it says what is wrong
        if is_link:
            raise LinkInTheWay(path + b"/")


def unlink_below(root: bytes, name: bytes) -> None:
    """Remove a file, if it is there, and the directories that are left empty by that, up to the root.

    A file that is a symbolic link goes itself, what it leads to stays. ``LinkInTheWay`` where a directory is one.
    """
    parts = name.split(b"/")
    left = _take_below(root, parts, lambda last, within: os.unlink(last, dir_fd=within))
    while left:
        try:
            left = _take_below(root, parts[:left], lambda last, within: os.rmdir(last, dir_fd=within))
        except OSError:
            return  # it is not empty


def _take_below(root: bytes, parts: list[bytes], take: Callable[[bytes, int], None]) -> int:
    """Take away what is named so, if it is there, and the lowest directories above it that are left empty.

    There may be more directories above each other than a process can hold open: as many of the ``parts`` as are returned name one that
    may have been left empty too, and 0 says that there is none.
    """
    *above, last = parts
    held: list[int] = []
    closed = 0
    try:
        try:
            path = root
            held.append(os.open(root or b"/", _PASS_DIRECTORY))
            for part in above:
                path += b"/" + part
                held.append(_open_within(part, held[-1], path, _PASS_DIRECTORY))
                if len(held) > _HELD:
                    os.close(held.pop(0))
                    closed += 1
            take(last, held[-1])
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            pass
        while len(held) > 1:
            os.close(held.pop())
            try:
                os.rmdir(above[closed + len(held) - 1], dir_fd=held[-1])
            except FileNotFoundError:
                continue
            except OSError:
                return 0
        return closed
    finally:
        for fd in held:
            os.close(fd)


class Directory:
    """An open directory, closed when the last reference to it goes."""

    __slots__ = ("_identity", "fd")

    def __init__(self, path: bytes, *, within: Directory | None = None) -> None:
        """The one at a path, or with ``within``, the one above it, the one in there, which is none that a symbolic link leads to."""
        self.fd: int = (
            os.open(path or b"/", _OPEN_DIRECTORY) if within is None else _open_within(path.rpartition(b"/")[2], within.fd, path)
        )
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

    def is_at(self, path: bytes, *, is_root: bool = False) -> bool:
        """Whether ``path`` still leads to this very directory; by a symbolic link only to a root."""
        try:
            status = os.stat(path or b"/", follow_symlinks=is_root)
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
        if known is not None and known.is_at(path, is_root=path == self._root):
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
            directory = Directory(path, within=parent)
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


def leftovers(root: str) -> Iterator[UnfinishedPut]:
    """Every temporary file below ``root``, of puts that are under way too: how old they are tells the two apart. No link is followed.

    What cannot be looked at is left out: nobody could remove it.
    """
    unseen = [""]
    while unseen:
        prefix = unseen.pop()
        found: list[os.DirEntry[str]] = []
        with suppress(OSError), os.scandir(f"{root}/{prefix}") as entries:
            found += entries
        for entry in found:
            with suppress(OSError):
                if entry.is_dir(follow_symlinks=False):
                    unseen.append(f"{prefix}{entry.name}/")
                elif entry.name.startswith(TEMPORARY):
                    yield UnfinishedPut(prefix + entry.name, entry.stat(follow_symlinks=False).st_mtime_ns // 1_000)


def remove(root: bytes, put: UnfinishedPut) -> None:
    """Remove a temporary file; one that is gone already is none. ``ValueError`` for any other file."""
    if not put.name.rpartition("/")[2].startswith(TEMPORARY):
        raise ValueError(f"{put.name!r} is not a temporary file")
    unlink_below(root, os.fsencode(put.name))
