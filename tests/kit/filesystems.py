"""File systems that answer as network and user-space ones do, over a real directory: a double of ``os`` for the modules that call it.

======================  ===============================================================================================================
NFS                     listings tell no types; no unnamed files (EOPNOTSUPP); what is removed or replaced while it is open stays as
                        ``.nfs`` and 24 digits until it is closed; what is asked of a removed directory by descriptor, or of a file that
                        another machine removed, answers ESTALE; now and then an answer is lost, the client asks again and is
                        told of what its first request did (a rename: ENOENT, a new directory: EEXIST); the server stamps the times
SMB                     no unnamed files (EOPNOTSUPP); times in steps of two seconds (FAT), stamped by the server; a file that is open
                        is not replaced (EACCES); directories are not synced (EINVAL)
FUSE                    listings tell no types; unnamed files are taken for an attempt to write a directory (EISDIR), as where the
                        kernel or the file system does not know them; directories are not synced (EINVAL)
XFS                     made without ftype: listings tell no types. All else is as on any local file system
======================  ===============================================================================================================

Nothing is synced in truth, for no test here pulls the plug. A test that runs under one replaces the name ``os`` in the modules that are
meant, so that it looks at the real directory itself.
"""

from __future__ import annotations

import errno
import itertools
import os
import stat
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import ModuleType, TracebackType
from typing import Any

import pytest

Call = Callable[[str, Any], None]


@dataclass(frozen=True)
class Kind:
    """What a kind of file system does otherwise; see the table above."""

    name: str
    is_typeless: bool = False
    unnamed: int = 0
    grain_ns: int = 1
    is_of_a_server: bool = False
    syncs_directories: bool = True
    replaces_open_files: bool = True
    repeats: int = 0

    def __str__(self) -> str:
        return self.name


NFS = Kind("nfs", is_typeless=True, unnamed=errno.EOPNOTSUPP, grain_ns=1_000_000, is_of_a_server=True, repeats=7)
SMB = Kind("smb", unnamed=errno.EOPNOTSUPP, grain_ns=2 * 10**9, syncs_directories=False, replaces_open_files=False)
FUSE = Kind("fuse", is_typeless=True, unnamed=errno.EISDIR, syncs_directories=False)
XFS = Kind("xfs without ftype", is_typeless=True)
LOCAL = Kind("local")
KINDS = [NFS, SMB, FUSE, XFS]


class FileSystem:
    """``os``, on a file system of a kind.

    ``before`` is called with the name of each call and what it is about, before it is carried out: it may change the tree, or raise what
    the call is to fail with. ``ahead_ns`` is how far the server's clock is ahead of the machine's.
    """

    def __init__(self, kind: Kind, *, before: Call | None = None, ahead_ns: int = 0) -> None:
        self.kind = kind
        self.before = before
        self.ahead_ns = ahead_ns
        self._files: dict[int, tuple[int, int]] = {}
        self._silly: dict[tuple[int, int], tuple[int, str]] = {}
        self._changes = itertools.count(1)
        self._number = itertools.count()
        self._lock = threading.RLock()

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    @contextmanager
    def used_by(self, *modules: ModuleType) -> Iterator[FileSystem]:
        """The modules call this instead of the system meanwhile."""
        with pytest.MonkeyPatch.context() as patch:
            for module in modules:
                patch.setattr(module, "os", self)
            yield self

    # Asking

    def stat(self, path: Any, *, dir_fd: int | None = None, follow_symlinks: bool = True) -> os.stat_result:
        self._called("stat", path, dir_fd)
        return os.stat(path, dir_fd=dir_fd, follow_symlinks=follow_symlinks)

    def fstat(self, fd: int) -> os.stat_result:
        self._called("fstat", fd)
        return os.fstat(fd)

    def readlink(self, path: Any, *, dir_fd: int | None = None) -> Any:
        self._called("readlink", path, dir_fd)
        return os.readlink(path, dir_fd=dir_fd)

    def scandir(self, path: Any) -> Listing:
        within = path if isinstance(path, int) else None
        self._called("scandir", path, within)
        return Listing(self, os.scandir(path), within)

    def pread(self, fd: int, length: int, offset: int) -> bytes:
        self._called("pread", fd)
        self._refuse_stale(fd)
        return os.pread(fd, length, offset)

    # Opening

    def open(self, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        self._called("open", path, dir_fd)
        if flags & os.O_TMPFILE == os.O_TMPFILE and self.kind.unnamed:
            raise OSError(self.kind.unnamed, os.strerror(self.kind.unnamed))
        with self._lock:
            fd = os.open(path, flags, mode, dir_fd=dir_fd)
            one = os.fstat(fd)
            if stat.S_ISREG(one.st_mode):
                self._files[fd] = (one.st_dev, one.st_ino)
                if flags & os.O_CREAT:
                    self._stamp(fd)
        return fd

    def close(self, fd: int) -> None:
        with self._lock:
            known = self._files.pop(fd, None)
            os.close(fd)
            if known in self._silly and known not in self._files.values():
                within, name = self._silly.pop(known)
                with suppress(OSError):
                    os.unlink(name, dir_fd=within)
                os.close(within)

    # Changing

    def write(self, fd: int, data: Any) -> int:
        self._called("write", fd)
        written = os.write(fd, data)
        self._stamp(fd)
        return written

    def fsync(self, fd: int) -> None:
        self._called("fsync", fd)
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            self._refuse_stale(fd)
            if not self.kind.syncs_directories:
                raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    def mkdir(self, path: Any, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        self._called("mkdir", path, dir_fd)
        self._carried_out(lambda: os.mkdir(path, mode, dir_fd=dir_fd))

    def rmdir(self, path: Any, *, dir_fd: int | None = None) -> None:
        self._called("rmdir", path, dir_fd)
        self._carried_out(lambda: os.rmdir(path, dir_fd=dir_fd))

    def unlink(self, path: Any, *, dir_fd: int | None = None) -> None:
        self._called("unlink", path, dir_fd)
        self._carried_out(lambda: self._set_aside(path, dir_fd) or os.unlink(path, dir_fd=dir_fd))

    def rename(self, source: Any, target: Any, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None) -> None:
        self._called("rename", source, src_dir_fd)
        with self._lock:
            if not self.kind.replaces_open_files and self._is_open(target, dst_dir_fd):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

            def carry_out() -> None:
                if self._exists(source, src_dir_fd):
                    self._set_aside(target, dst_dir_fd)
                os.rename(source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

            self._carried_out(carry_out)

    # What makes a kind

    def _called(self, call: str, about: Any, within: int | None = None) -> None:
        if self.before is not None:
            self.before(call, about)
        if within is not None:
            self._refuse_stale(within)

    def _refuse_stale(self, fd: int) -> None:
        if self.kind.is_of_a_server and os.fstat(fd).st_nlink == 0:
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    def _stamp(self, fd: int) -> None:
        """The server's time, as far as it keeps it."""
        now = time.time_ns() + self.ahead_ns
        if self.ahead_ns or self.kind.grain_ns > 1:
            os.utime(fd, ns=(now, now - now % self.kind.grain_ns))

    def _carried_out(self, change: Callable[[], Any]) -> None:
        """Every so often the answer is lost, and that to the repeated request is what the caller gets."""
        with self._lock:
            change()
            if self.kind.repeats and next(self._changes) % self.kind.repeats == 0:
                change()

    def _identity(self, path: Any, within: int | None) -> tuple[int, int] | None:
        try:
            one = os.stat(path, dir_fd=within, follow_symlinks=False)
        except OSError:
            return None
        return one.st_dev, one.st_ino

    def _exists(self, path: Any, within: int | None) -> bool:
        return self._identity(path, within) is not None

    def _is_open(self, path: Any, within: int | None) -> bool:
        return self._identity(path, within) in self._files.values()

    def _set_aside(self, path: Any, within: int | None) -> bool:
        """Give a file that is open another name instead of removing it; whether that was needed."""
        with self._lock:
            if not self.kind.is_of_a_server or not self._is_open(path, within):
                return False
            identity = self._identity(path, within)
            assert identity is not None
            directory, _, _ = os.fsdecode(path).rpartition("/")
            holder = os.open(directory or ".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=within)
            name = f".nfs{next(self._number):024x}"
            os.rename(path, name, src_dir_fd=within, dst_dir_fd=holder)
            self._silly[identity] = (holder, name)
            return True


class Listing:
    """What ``os.scandir`` gives. Reading on is a call of its own, so it may fail half-way."""

    def __init__(self, system: FileSystem, found: Any, within: int | None) -> None:
        self._system = system
        self._found = found
        self._within = within

    def __enter__(self) -> Listing:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._found.close()

    def __iter__(self) -> Listing:
        return self

    def __next__(self) -> Entry:
        self._system._called("readdir", self._within)
        return Entry(self._system, next(self._found), self._within)


class Entry:
    """An ``os.DirEntry``: where the listing tells no types, to ask for one is to ask for the attributes, which may fail."""

    def __init__(self, system: FileSystem, listed: Any, within: int | None) -> None:
        self.name = listed.name
        self.path = listed.path
        self._system = system
        self._within = within
        self._stats: dict[bool, os.stat_result] = {}
        self._type = None if system.kind.is_typeless else self._listed(listed)

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return self._is(stat.S_IFDIR, follow_symlinks)

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        return self._is(stat.S_IFREG, follow_symlinks)

    def is_symlink(self) -> bool:
        return self._is(stat.S_IFLNK, follow_symlinks=False)

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        if follow_symlinks not in self._stats:
            self._stats[follow_symlinks] = self._system.stat(self.path, dir_fd=self._within, follow_symlinks=follow_symlinks)
        return self._stats[follow_symlinks]

    def _is(self, wanted: int, follow_symlinks: bool) -> bool:
        if self._type is not None and not (follow_symlinks and self._type == stat.S_IFLNK):
            return self._type == wanted
        try:
            return stat.S_IFMT(self.stat(follow_symlinks=follow_symlinks).st_mode) == wanted
        except FileNotFoundError:
            return False

    @staticmethod
    def _listed(listed: Any) -> int:
        if listed.is_symlink():
            return stat.S_IFLNK
        if listed.is_dir(follow_symlinks=False):
            return stat.S_IFDIR
        return stat.S_IFREG if listed.is_file(follow_symlinks=False) else stat.S_IFIFO


class Counted:
    """A ``before`` that counts, and does something at one of the calls; what is done does not count."""

    def __init__(self, at: int = -1, act: Callable[[], None] | None = None) -> None:
        self.calls = 0
        self.kinds: Counter[str] = Counter()
        self._at = at
        self._act = act

    def __call__(self, call: str, about: Any) -> None:
        self.calls += 1
        self.kinds[call] += 1
        if self.calls - 1 == self._at and self._act is not None:
            self._act()
