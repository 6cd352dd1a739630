# ruff: noqa: PTH116
"""The directories from the root of a walk down to where it is, each opened in the one above it and never through a link.

What is asked of an entry is asked relative to its open directory: whatever is moved or replaced meanwhile, the answer is about what
was listed, and no name leads out of the tree.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from operator import attrgetter

import pyarrow as pa

from ... import clock
from ..ranges import NameRange

Entry = os.DirEntry[str]
Stats = os.stat_result
Step = tuple[list[Entry], Entry | None]
"""Entries that are no directories, and the directory that comes after them."""
_ENCODING, _ERRORS = sys.getfilesystemencoding(), sys.getfilesystemencodeerrors()
"""Between names as text, as open directories are listed, and the bytes that they are."""
_ROOT = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_BELOW = _ROOT | os.O_NOFOLLOW
_OPEN = 64
"""How many directories besides the root stay open; in deeper trees those above are closed, and opened again on the way back."""


@dataclass(frozen=True)
class Place:
    """Which directory a root is: on what machine, and its number and its file system's, on which those agree that share it."""

    host: str
    inode: int
    file_system: int

    def is_as(self, other: Place) -> bool:
        """Whether it is the same directory as far as anybody can tell from another machine."""
        return self.host == other.host or (self.inode, self.file_system) == (other.inode, other.file_system)


def place_of(root: bytes) -> Place | None:
    """None where it cannot be looked at; whoever lists it says why."""
    try:
        return Place(clock.host_name(), os.stat(root).st_ino, os.statvfs(root).f_fsid)
    except OSError:
        return None


class Level:
    """A directory on the way down: what the paths in it begin with, as text, and what is still to do in it."""

    __slots__ = ("fd", "identity", "is_as_listed", "name", "prefix", "steps")

    def __init__(self, name: str, prefix: str, fd: int) -> None:
        self.name = name
        self.prefix = prefix
        self.fd = fd
        self.identity = (0, 0)
        self.is_as_listed = True
        self.steps: Iterator[Step] = iter(())

    def close(self) -> None:
        """Close it, if it is open. Its entries only know the descriptor that they were listed by, which may soon be something else."""
        if self.fd >= 0:
            fd, self.fd, self.is_as_listed = self.fd, -1, False
            os.close(fd)


class Descent:
    """The open directories. ``root`` is a path, which may be a link. Whatever opens or asks raises ``OSError`` where that fails."""

    def __init__(self, root: bytes) -> None:
        self._root = os.fsdecode(root) + "/"
        self._levels = [Level("", "", os.open(root, _ROOT))]
        self._first_open = 1

    def close(self) -> None:
        """Close all of them."""
        while self._levels:
            self._levels.pop().close()

    @property
    def level(self) -> Level | None:
        """Where the walk is; None once it has left the root."""
        return self._levels[-1] if self._levels else None

    def enter(self, name: str) -> None:
        """Go down into the directory ``name``; ``ENOTDIR`` or ``ELOOP`` where it is none, or a link to one."""
        above = self._levels[-1]
        fd = os.open(name, _BELOW, dir_fd=above.fd)
        self._levels.append(Level(name, f"{above.prefix}{name}/", fd))
        self._close_above(len(self._levels) - 1)

    def leave(self) -> None:
        """Go up. Before anything is asked there comes ``reopen``."""
        self._levels.pop().close()
        self._first_open = max(1, min(self._first_open, len(self._levels)))

    def reopen(self) -> None:
        """Open the directory again if it was closed on the way down; ``ESTALE`` where it is another one by now."""
        if self._levels[-1].fd >= 0:
            return
        start = max(at for at, level in enumerate(self._levels) if level.fd >= 0)
        self._first_open = self._first_open if start else 1
        for at in range(start + 1, len(self._levels)):
            above, level = self._levels[at - 1], self._levels[at]
            fd = os.open(level.name, _BELOW, dir_fd=above.fd)
            if _identity(os.fstat(fd)) != level.identity:
                os.close(fd)
                raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
            level.fd = fd
            self._close_above(at)

    def entries(self) -> list[Entry]:
        """All that is in the directory where the walk is."""
        with os.scandir(self._levels[-1].fd) as found:
            return list(found)

    def stats(self, run: Sequence[Entry]) -> list[Stats]:
        """What entries of the directory are; links are not followed."""
        level = self._levels[-1]
        if level.is_as_listed:
            return [entry.stat(follow_symlinks=False) for entry in run]
        return [os.stat(entry.name, dir_fd=level.fd, follow_symlinks=False) for entry in run]

    def target(self, entry: Entry) -> bytes:
        """Where a link points; ``EINVAL`` where it is none."""
        return raw_name(os.readlink(entry.name, dir_fd=self._levels[-1].fd))

    def has(self, name: str) -> bool:
        """Whether something of that name is in the directory now."""
        try:
            os.stat(name, dir_fd=self._levels[-1].fd, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    def is_in_place(self) -> bool:
        """Whether the path still leads to the directory where the walk is: what is missing in one that was moved is not gone."""
        level = self._levels[-1]
        try:
            return _identity(os.stat(self._root + level.prefix)) == _identity(os.fstat(level.fd))
        except (FileNotFoundError, NotADirectoryError):
            return False

    def _close_above(self, last: int) -> None:
        """Close all but the last few up to ``last``."""
        while last - self._first_open >= _OPEN:
            level = self._levels[self._first_open]
            level.identity = _identity(os.fstat(level.fd))
            level.close()
            self._first_open += 1


def steps_of(entries: list[Entry], directories: set[str]) -> Iterator[Step]:
    """A directory's entries in byte order of the paths: runs of what is no directory, each with the directory that comes after it.

    A directory stands where the paths below it do: ``a-b`` comes before ``a/b``, so ``a`` sorts as ``a/``.
    """
    if not directories:
        entries.sort(key=_by_name)
        yield entries, None
        return
    entries.sort(key=lambda entry: _ordered(entry.name + "/" if entry.name in directories else entry.name))
    run: list[Entry] = []
    for entry in entries:
        if entry.name in directories:
            yield run, entry
            run = []
        else:
            run.append(entry)
    if run:
        yield run, None


def raw_name(name: str) -> bytes:
    """The bytes of a name or path."""
    return name.encode(_ENCODING, _ERRORS)


def text_bounds(within: NameRange) -> tuple[str | None, str | None]:
    """The ends of a range of names as text that compares as they do; None for the first where they cannot be had so."""
    if not _IS_UTF8:
        return None, None
    try:
        return within.after.decode(), None if within.upto is None else within.upto.decode()
    except UnicodeDecodeError:
        return None, None


def raw_names(names: list[str]) -> pa.Array:
    """The bytes of each name."""
    if _IS_UTF8:
        with suppress(UnicodeEncodeError):
            return pa.array(names, pa.string()).cast(pa.binary())
    return pa.array(list(map(raw_name, names)), pa.binary())


def _ordered(name: str) -> str | bytes:
    """What sorts as the bytes of the name do. As UTF-8 text does so itself, but for names that are none, which are left out anyway."""
    return name if _IS_UTF8 else raw_name(name)


def _identity(one: Stats) -> tuple[int, int]:
    return one.st_dev, one.st_ino


_IS_UTF8 = _ENCODING.lower().replace("_", "-") in ("utf-8", "utf8")
_by_name = attrgetter("name") if _IS_UTF8 else lambda entry: _ordered(entry.name)
