# ruff: noqa: PTH100, PTH116
"""A directory of a POSIX file system as an object store.

A put writes a temporary file beside its target, syncs it, renames it and syncs the directories: a reader sees the whole object or
none, and so does whoever comes after a crash, which leaves at most a temporary file that no listing shows. Readers need no locks: a
file never changes once it has its name.
"""

from __future__ import annotations

import builtins
import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from .. import clock
from ..errors import BucketCatalogError, InvalidName, ObjectNotFound, OutcomeUnknown, StoreUnavailable, TruncatedObject
from . import filesystem
from .base import ObjectInfo, UnfinishedPut
from .filesystem import NO_SUCH_FILE, REFUSED_RENAME, Directories, LinkInTheWay, Place, from_os_error
from .learnt import Moment
from .object_names import TEMPORARY, check_most, check_name, check_prefix, check_range, holds_objects, is_hidden, walk

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_ATTEMPTS = 100
_REMOVED = (errno.ENOENT, errno.ESTALE)
"""What is said of a directory that is no longer there, where it was opened before."""
_IN_USE = (errno.EACCES, errno.EPERM, errno.EBUSY, errno.ETXTBSY, errno.EEXIST)
"""How some file systems refuse to replace a file that is open somewhere."""
_TICK = 20_000
"""Microseconds: kernels stamp files by a clock that moves in steps of up to 10 ms, so a difference below this is none."""


class LocalStore:
    """The directory ``root`` as a store; made by the first put, not by opening.

    Times are those that the file system stamps on files. A deleted object takes the directories that it leaves empty with it, up to the
    root.

    The root may be a symbolic link. Below it nobody is led elsewhere by one: where a directory is one, a listing that gets to it, a put
    and a delete raise ``AccessDenied``, so that nothing is missing silently. A file that is one is read as what it leads to; a delete
    removes the link, and a put replaces it. With ``leaves_links`` listings leave out all that are, as suits a place for data, where
    what is listed is what may be deleted.
    """

    def __init__(self, root: str | os.PathLike[str], *, leaves_links: bool = False) -> None:
        self.url = os.path.abspath(os.fsdecode(root))
        self._leaves_links = leaves_links
        self._root = os.fsencode(self.url).rstrip(b"/")
        self._directories = Directories(self._root)
        self._offset_us = 0
        self._offset_learnt: Moment | None = None

    def __repr__(self) -> str:
        return f"LocalStore({self.url!r})"

    def __reduce__(self) -> tuple[Callable[[str, bool], LocalStore], tuple[str, bool]]:
        return _reopened, (self.url, self._leaves_links)

    def leaving_links(self) -> LocalStore:
        """The same place, where no listing shows what is a symbolic link."""
        return LocalStore(self.url, leaves_links=True)

    @property
    def concurrency(self) -> int:
        """One: files are in the machine's memory, or the disk is what limits."""
        return 1

    def put(self, name: str, data: bytes) -> None:
        """Atomic and durable on return, also where other processes put or delete beside it."""
        path = self._path(name)
        place = self._in_place(name, lambda place: self._write(place, path, data))
        try:
            self._directories.synced(place.sync())
        except OSError as error:
            raise _unknown(name, self.url, error) from error

    def get(self, name: str, *, most: int | None = None) -> bytes:
        """All bytes of the object or its first ``most``, or ``ObjectNotFound``."""
        check_most(most)

        def read(fd: int) -> bytes:
            size = os.fstat(fd).st_size + 1
            return _read(fd, 0, size if most is None else min(size, most))

        return self._reading(name, read)

    def get_range(self, name: str, offset: int, length: int) -> bytes:
        """Exactly ``length`` bytes from ``offset``, or ``TruncatedObject``; negative offsets count from the end."""
        check_range(length)

        def read(fd: int) -> bytes:
            size = os.fstat(fd).st_size
            start, wanted = offset, length
            if start < 0:
                start = max(0, size + start)
                wanted = min(wanted, size - start)
            data = _read(fd, start, wanted) if start + wanted <= size else b""
            if len(data) < wanted or start > size:
                raise TruncatedObject(
                    f"{name!r} in {self.url} has {size} bytes, fewer than the {start + wanted} that are read from it.",
                )
            return data

        return self._reading(name, read)

    def list(self, prefix: str, *, after: str = "", limit: int | None = None) -> Iterator[ObjectInfo]:
        """Every object below ``prefix`` that sorts after ``after``; opens only directories that can hold one, when it gets there."""
        check_prefix(prefix)
        return islice(self._list(prefix, after), limit)

    def list_prefixes(self, prefix: str, *, begin: str = "") -> builtins.list[str]:
        """The directories below ``prefix`` that hold an object at any depth, in byte order; no other than begin so are opened."""
        check_prefix(prefix)
        entries = _Entries(self._root, leaves_links=self._leaves_links)
        try:
            parts = sorted(part[:-1] for part, _ in entries.below(prefix) if part.endswith("/") and part[:-1].startswith(begin))
            return [part for part in parts if holds_objects(f"{prefix}{part}/", entries.below)]
        except OSError as error:
            raise self._failed(error, "list", prefix) from error

    def head(self, name: str) -> ObjectInfo:
        """Size and time of the object, or ``ObjectNotFound``."""
        try:
            status = os.stat(self._path(name))
        except OSError as error:
            raise self._failed(error, "get", name) from error
        if not stat.S_ISREG(status.st_mode):
            raise _not_found(name, self.url)
        return ObjectInfo(name, status.st_size, status.st_mtime_ns // 1_000)

    def delete(self, name: str) -> None:
        """The object is gone on return, and so are the directories that were left empty, up to the root."""
        check_name(name)
        for attempts in range(1, _ATTEMPTS + 1):
            try:
                return filesystem.unlink_below(self._root, name.encode())
            except OSError as error:
                if error.errno != errno.ESTALE or attempts == _ATTEMPTS:
                    raise self._failed(error, "delete", name) from error

    def unfinished_puts(self) -> Iterator[UnfinishedPut]:
        """Temporary files that no listing shows."""
        return filesystem.leftovers(self.url)

    def discard(self, put: UnfinishedPut) -> None:
        """Remove a temporary file."""
        try:
            filesystem.remove(self._root, put)
        except OSError as error:
            raise self._failed(error, "delete", put.name) from error

    def now_us(self, below: str | None = None) -> int:
        """The file system's time as a file of this store told it, see ``Moment``; where none can be made, the machine's for a reader."""
        learnt = self._offset_learnt
        if (learnt is None or not learnt.holds) and not self._ask_unnamed(below or ""):
            if below is None:
                return clock.now_us()
            self._ask_named(below)
        return clock.now_us() + self._offset_us

    def _ask_unnamed(self, below: str) -> bool:
        """Learn the time from a file that never has a name, so that asking leaves no trace; whether there are such files."""
        place = Path(self.url, below)
        while not place.is_dir() and place != place.parent:
            place = place.parent
        try:
            fd = os.open(place, os.O_TMPFILE | os.O_WRONLY, 0o600)
        except (OSError, AttributeError):
            return False
        try:
            self._learn_time(fd)
        finally:
            os.close(fd)
        return True

    def _ask_named(self, below: str) -> None:
        """Learn the time from a temporary file, which is what is left of it if this dies before it is removed."""
        check_prefix(below)

        def ask(place: Place) -> Place:
            _discard(place, self._temporary(place))
            return place

        self._in_place(f"{below}{TEMPORARY}", ask)

    def _in_place(self, name: str, act: Callable[[Place], Place]) -> Place:
        """Do something in the directory of a name, made if it is not there, and again where somebody removes it meanwhile."""
        directory = (self._root + b"/" + name.encode()).rpartition(b"/")[0]
        for _ in range(_ATTEMPTS):
            try:
                return act(self._directories.place(directory))
            except OSError as error:
                if error.errno not in _REMOVED:
                    raise self._failed(error, "put", name) from error
        raise StoreUnavailable(
            f"Cannot put {name!r} in {self.url}: its directory keeps being removed.",
            next_step="Stop what removes empty directories there, or check for a dangling symbolic link, then try again.",
        )

    def _temporary(self, place: Place, data: bytes | None = None) -> bytes:
        """The name of a new file that no listing shows, with the data on disk if there is any."""
        name = (TEMPORARY + clock.random_token()).encode()
        try:
            fd = os.open(name, _CREATE, 0o666, dir_fd=place.directory.fd)
            try:
                self._learn_time(fd)
                if data is not None:
                    _write_all(fd, data)
                    os.fsync(fd)
            finally:
                os.close(fd)
        except BaseException:
            _discard(place, name)
            raise
        return name

    def _write(self, place: Place, path: bytes, data: bytes) -> Place:
        """Put ``data`` at ``path`` whole; what remains for it to stay there through a crash is to sync the place."""
        name, within = path.rpartition(b"/")[2], place.directory.fd
        temporary = self._temporary(place, data)
        try:
            os.rename(temporary, name, src_dir_fd=within, dst_dir_fd=within)
        except BaseException as error:
            _discard(place, temporary)
            if not isinstance(error, OSError):
                raise
            if error.errno not in REFUSED_RENAME:  # a network file system may have lost its server's answer
                raise _unknown(path.decode(errors="replace"), self.url, error) from error
            if error.errno not in _IN_USE or not _holds(place, name, data):
                raise
        return place

    def _reading(self, name: str, read: Callable[[int], bytes]) -> bytes:
        """What is read of the open object, begun again where another machine replaced it meanwhile."""
        path, attempts = self._path(name), 1
        while True:
            try:
                fd = filesystem.open_file(path)
                try:
                    return read(fd)
                finally:
                    os.close(fd)
            except OSError as error:
                if error.errno != errno.ESTALE or attempts == _ATTEMPTS:
                    raise self._failed(error, "get", name) from error
                attempts += 1

    def _learn_time(self, fd: int) -> None:
        """Take the time of a file that was made just now, before anything is written: clients may stamp what they write themselves."""
        offset = os.fstat(fd).st_mtime_ns // 1_000 - clock.now_us()
        self._offset_us = offset if abs(offset) > _TICK else 0
        self._offset_learnt = Moment.now()

    def _list(self, prefix: str, after: str) -> Iterator[ObjectInfo]:
        if after > prefix and not after.startswith(prefix):
            return
        try:
            yield from walk(prefix, after, _Entries(self._root, leaves_links=self._leaves_links).below, _info)
        except OSError as error:
            raise self._failed(error, "list", prefix) from error

    def _path(self, name: str) -> bytes:
        check_name(name)
        return self._root + b"/" + name.encode()

    def _failed(self, error: OSError, doing: str, name: str) -> BucketCatalogError:
        if doing == "get" and error.errno in NO_SUCH_FILE:
            return _not_found(name, self.url)
        at = self._below(error) if doing == "list" else name  # deep below what is listed may be what cannot be
        if error.errno == errno.ENAMETOOLONG and at in (name, None) and filesystem.failing_link(error) is None:
            return InvalidName(
                f"{name!r} is too long for the file system of {self.url}.", next_step="Use names of at most 255 bytes."
            )
        if at is not None:
            name = at.rstrip("/") if isinstance(error, LinkInTheWay) else at
        failed = from_os_error(error, doing, f"{name!r} in {self.url}" if name else self.url)
        if filesystem.is_of_one_name(error) and at is not None and doing in ("list", "get"):
            failed.in_the_way = at
        return failed

    def _below(self, error: OSError) -> str | None:
        """What an error of the system happened to, by its name below the root, directories with a ``/``; None where it does not say."""
        path = os.fsencode(error.filename) if isinstance(error.filename, (str, bytes)) else b""
        return os.fsdecode(path.removeprefix(self._root + b"/")) if path.startswith(self._root + b"/") else None


class _Entries:
    """What lies in the directories of one listing, which are opened from above."""

    def __init__(self, root: bytes, *, leaves_links: bool) -> None:
        self._root = root
        self._leaves_links = leaves_links
        self._in_the_way: dict[str, LinkInTheWay] | None = None

    def below(self, prefix: str) -> list[tuple[str, os.DirEntry[bytes]]]:
        """What lies directly below a prefix, without what cannot be an object: temporary files, sockets, names that are not UTF-8.

        A link that may not be followed, or cannot be, counts as a directory: who gets to what would be below it gets the error.
        """
        directory = self._root + b"/" + prefix.encode()
        if self._in_the_way is None:
            self._in_the_way = {}
            filesystem.refuse_links(self._root, prefix.encode())
        elif prefix in self._in_the_way:
            raise self._in_the_way[prefix]
        found = []
        try:
            with os.scandir(directory) as entries:
                for entry in entries:
                    try:
                        part = entry.name.decode()
                    except UnicodeDecodeError:
                        continue
                    is_link = entry.is_symlink()
                    if is_hidden(part) or (self._leaves_links and is_link):
                        continue
                    why = _why_in_the_way(entry) if is_link else None
                    if why is not None and isinstance(why.why, (FileNotFoundError, NotADirectoryError)):
                        continue
                    if why is not None or entry.is_dir():
                        part += "/"
                    elif not entry.is_file():
                        continue
                    if why is not None:
                        self._in_the_way[prefix + part] = why
                    found.append((part, entry))
        except (FileNotFoundError, NotADirectoryError):
            pass
        return found


def _why_in_the_way(entry: os.DirEntry[bytes]) -> LinkInTheWay | None:
    """Why nobody gets to what is below a link, if so: it leads to a directory or nowhere, or cannot be followed for whatever reason."""
    try:
        return LinkInTheWay(entry.path + b"/") if entry.is_dir() else None
    except OSError as error:
        return LinkInTheWay(entry.path + b"/", error)


def _reopened(url: str, leaves_links: bool) -> LocalStore:
    return LocalStore(url, leaves_links=leaves_links)


def _discard(place: Place, temporary: bytes) -> None:
    with suppress(OSError):
        os.unlink(temporary, dir_fd=place.directory.fd)


def _holds(place: Place, name: bytes, data: bytes) -> bool:
    """Whether these very bytes have the name already."""
    try:
        fd = filesystem.open_file(name, within=place.directory.fd)
    except OSError:
        return False
    try:
        return _read(fd, 0, len(data) + 1) == data
    finally:
        os.close(fd)


def _write_all(fd: int, data: bytes) -> None:
    written = os.write(fd, data)
    while written < len(data):
        written += os.write(fd, memoryview(data)[written:])


def _read(fd: int, offset: int, length: int) -> bytes:
    """Up to ``length`` bytes, fewer only at the end of the file; one call of the system reads at most 2 GiB."""
    data = os.pread(fd, length, offset)
    while len(data) < length and (more := os.pread(fd, length - len(data), offset + len(data))):
        data += more
    return data


def _info(name: str, entry: os.DirEntry[bytes]) -> ObjectInfo | None:
    try:
        status = entry.stat()
    except FileNotFoundError:
        return None
    return ObjectInfo(name, status.st_size, status.st_mtime_ns // 1_000)


def _not_found(name: str, url: str) -> ObjectNotFound:
    return ObjectNotFound(f"There is no object {name!r} in {url}.", next_step="List what is there, or check the name.")


def _unknown(name: str, url: str, error: OSError) -> OutcomeUnknown:
    return OutcomeUnknown(
        f"It is not known whether {name!r} in {url} would survive a crash: {error.strerror}.",
        next_step="Put the same bytes under the same name again.",
    )
