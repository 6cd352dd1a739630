# ruff: noqa: PTH100, PTH111
"""A directory of this machine as a source.

Every entry but directories is an object, named by its path below the source; directories are only parts of names, as in object stores, so
an empty one leaves no trace. Symbolic links are recorded and never followed (the source itself may be one); so are sockets, pipes and
devices, with ``file_type``, without being opened. Hard links are objects of their own. Other file systems mounted below are entered.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa

from ... import clock
from ...errors import AccessDenied, InvalidName, SourceNotFound
from ...wording import either
from ..ranges import ALL_NAMES, NameRange
from ..scope import Scope
from ..source import (
    BATCH_ROWS,
    MAX_NAME_BYTES,
    NAME_TOO_LONG,
    NOT_UTF8,
    REPLACED,
    TARGET_NOT_UTF8,
    AnyPath,
    Report,
    Reporter,
    own_source,
)
from .descent import Descent, Entry, Level, Place, Stats, place_of, raw_name, raw_names, steps_of, text_bounds
from .points import SAMPLE, points_of
from .reading import pieces_of
from .stats import Numbers, checked_names, entry_batch, links_and_directories

_REPLACED = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EINVAL)
"""What is said of a name that is there, and no longer leads to what was listed: to a directory, or to a link."""


class LocalSource:
    """A directory tree. What is in a directory that ``leave_out`` names is not looked at; ``InvalidOption`` where the tree is in one.

    A pickle of it is for the same tree: another machine that has another directory there says so, and lists nothing.
    """

    def __init__(
        self,
        path: AnyPath,
        *,
        leave_out: Iterable[AnyPath] = (),
        batch_rows: int = BATCH_ROWS,
    ) -> None:
        self._root = os.path.abspath(os.path.expanduser(os.fsencode(path)))  # a link in the path may be meant to move
        real, left_out = os.path.realpath(self._root), [os.fsencode(os.path.realpath(one)) for one in leave_out]
        if any(_with_slash(real).startswith(_with_slash(one)) for one in left_out):
            raise own_source(self.url, whole=real in left_out)
        self._leave_out = _below(real, left_out)
        self._batch_rows = batch_rows
        self._pickled_as: Place | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_pickled_as": self._pickled_as or place_of(self._root)}

    @property
    def authority(self) -> str:
        """This machine's name."""
        return clock.host_name()

    @property
    def url(self) -> str:
        """``file://host/path``, as RFC 8089 has it."""
        return f"file://{self.authority}{quote(self._root)}"

    @property
    def name(self) -> str:
        """The absolute path; ``InvalidName`` where it cannot be the name of a bucket."""
        try:
            name = self._root.decode()
        except UnicodeDecodeError:
            name = ""
        if not name or len(self._root) > MAX_NAME_BYTES:
            raise InvalidName(
                f"{self._root!r} cannot be the name of a bucket.",
                next_step=f"Name the bucket with {either('bucket=', '--bucket')}.",
            )
        return name

    @property
    def compared(self) -> tuple[str, ...]:
        """What may change of a file and leave its size and time as they are; numbers of files are not always the same."""
        return ("uid", "gid", "mode", "links")

    @property
    def readers(self) -> int:
        """More than there are processors: disks and file servers are quicker for several at once."""
        return max(8, int(pa.cpu_count()))

    def pieces(self, entry: Mapping[str, Any]) -> Iterator[bytes]:
        """See ``ReadSource``."""
        return pieces_of(self._root, entry["name"].encode(), entry["identity"])

    def entries(self, scope: Scope, report: Report, within: NameRange = ALL_NAMES) -> Iterator[pa.RecordBatch]:
        """See ``Source``. Memory grows with the largest directories on one path, not with the tree."""
        self._require_same()
        return _Walk(self._root, self._leave_out, self._batch_rows, scope, Reporter(scope, report), within).batches()

    def _require_same(self) -> None:
        """``SourceNotFound`` for another directory than on the machine that the source comes from: its entries would replace all others."""
        here, there = place_of(self._root), self._pickled_as
        if here is not None and there is not None and not here.is_as(there):
            raise SourceNotFound(
                f"{os.fsdecode(self._root)!r} on {here.host} is another directory than on {there.host}.",
                next_step=f"Mount there what {there.host} has, or harvest with executors on that machine alone: master local[*].",
            )

    def divide(self, within: NameRange, parts: int) -> list[bytes]:
        """See ``DividedSource``. Nothing is asked of single entries."""
        return points_of(self._names_in, within, parts)

    def _names_in(self, directory: bytes) -> list[bytes]:
        """What is in a directory, as far as it can be listed: what cannot be, whoever is given that part finds out."""
        try:
            with os.scandir(_with_slash(self._root) + directory) as listed:
                some = islice(listed, SAMPLE)
                return [directory + one.name + (b"/" if one.is_dir(follow_symlinks=False) else b"") for one in some]
        except OSError:
            return []


def _below(root: bytes, directories: Iterable[bytes]) -> frozenset[bytes]:
    """Those of the directories that lie below ``root``, as what the names in them begin with; all are real paths."""
    above = _with_slash(root)
    return frozenset(path[len(above) :] for path in map(_with_slash, directories) if path.startswith(above))


def _with_slash(path: bytes) -> bytes:
    return path.rstrip(b"/") + b"/"


@dataclass
class _Found:
    """Entries that wait to become a batch; where the links among them point, by position, and None for what is left out."""

    names: list[str] = field(default_factory=list)
    numbers: Numbers = field(default_factory=Numbers)
    targets: dict[int, bytes | None] = field(default_factory=dict)


class _Walk:
    """One walk through the tree, depth first, in byte order of the paths."""

    def __init__(
        self,
        root: bytes,
        leave_out: frozenset[bytes],
        batch_rows: int,
        scope: Scope,
        report: Reporter,
        within: NameRange,
    ) -> None:
        self._root = root
        self._leave_out = leave_out
        self._batch_rows = batch_rows
        self._scope = scope
        self._report = report
        self._within = within

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The entries."""
        with closing(self._begun()) as self._descent:
            found = _Found()
            for level, run in self._runs():
                self._ask(level, run, found)
                if len(found.names) >= self._batch_rows:
                    yield from self._batch(found)
                    found = _Found()
            if found.names:
                yield from self._batch(found)

    def _begun(self) -> Descent:
        """A descent that has listed the root."""
        shown = repr(os.fsdecode(self._root))
        try:
            descent = Descent(self._root)
            try:
                self._list(descent)
            except BaseException:
                descent.close()
                raise
        except PermissionError as error:
            raise AccessDenied(f"{shown} cannot be read: {error.strerror}.", next_step="Ask for the right to list it.") from None
        except OSError as error:
            raise SourceNotFound(
                f"{shown} is not a directory that can be listed: {error.strerror}.", next_step="Check the path of the source."
            ) from None
        return descent

    def _runs(self) -> Iterator[tuple[Level, list[Entry]]]:
        """Runs of entries that are no directories, each asked about while the walk is in its directory."""
        while (level := self._descent.level) is not None:
            step = next(level.steps, None)
            if step is None:
                self._descent.leave()
                continue
            try:
                self._descent.reopen()
            except OSError:
                self._report(raw_name(level.prefix), REPLACED)
                self._descent.leave()
                continue
            run, directory = step
            for start in range(0, len(run), self._batch_rows):
                yield level, run[start : start + self._batch_rows] if len(run) > self._batch_rows else run
            if directory is not None:
                self._enter(level, directory.name)

    def _enter(self, level: Level, name: str) -> None:
        """Go down, and list what is there. Whatever of it cannot be read may be there all the same."""
        below = raw_name(f"{level.prefix}{name}/")
        if not self._is_wanted(below):
            return
        try:
            self._descent.enter(name)
            try:
                self._list(self._descent)
            except OSError:
                self._descent.leave()
                raise
        except OSError as error:
            self._failed(level, name, error, below=below)

    def _is_wanted(self, prefix: bytes) -> bool:
        """Whether a directory is entered; what is in one of a longer name than any object may have could only be refused, one by one."""
        try:
            if prefix in self._leave_out or not self._scope.enters(prefix.decode()):
                return False
        except UnicodeDecodeError:
            self._report(prefix, NOT_UTF8)
            return False
        if len(prefix) >= MAX_NAME_BYTES:
            self._report(prefix, NAME_TOO_LONG)
            return False
        return True

    def _list(self, descent: Descent) -> None:
        """List the directory where the walk is; an entry of which nobody can say whether it is a directory is left out as a whole."""
        level, entries = descent.level, descent.entries()
        assert level is not None
        if not descent.is_in_place():  # one that is removed meanwhile ends early, and without an error
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        try:
            directories = {entry.name for entry in entries if entry.is_dir(follow_symlinks=False)}
        except OSError:
            entries, directories = self._typed(level, entries)
        if not self._within.covers(raw_name(level.prefix)):
            entries = self._inside(level, entries, directories)
        level.steps = steps_of(entries, directories)

    def _inside(self, level: Level, entries: Sequence[Entry], directories: set[str]) -> list[Entry]:
        """Those of a directory's entries that are in the range of names, or may have something below them that is."""
        after, upto = text_bounds(self._within.below(raw_name(level.prefix)))
        if after is None:
            return [entry for entry in entries if self._is_within(level, entry.name, is_directory=entry.name in directories)]
        # Most are files, of directories that may be huge, and all that is asked of most of them is this.
        inner = [e for e in entries if e.name > after and e.name not in directories]
        inner = inner if upto is None else [entry for entry in inner if entry.name <= upto]
        found = [entry for entry in entries if entry.name in directories] if directories else []
        return inner + [entry for entry in found if self._is_within(level, entry.name, is_directory=True)]

    def _is_within(self, level: Level, name: str, *, is_directory: bool) -> bool:
        """Whether an entry is in the range of names that is walked, or of a directory something that may be below it."""
        raw = raw_name(level.prefix + name)
        return self._within.enters(raw + b"/") if is_directory else self._within.holds(raw)

    def _typed(self, level: Level, entries: Sequence[Entry]) -> tuple[list[Entry], set[str]]:
        """The entries of which the type can be learnt, and which are directories: some file systems list names alone."""
        typed, directories = [], set()
        for entry in entries:
            try:
                if entry.is_dir(follow_symlinks=False):
                    directories.add(entry.name)
                typed.append(entry)
            except OSError as error:
                if any(self._is_within(level, entry.name, is_directory=kind) for kind in (True, False)):
                    self._report(raw_name(level.prefix + entry.name), error, below=True)
        return typed, directories

    def _ask(self, level: Level, run: list[Entry], found: _Found) -> None:
        """Add what the entries are; those that cannot be read are reported, except what has vanished."""
        try:
            stats = self._descent.stats(run)
        except OSError:
            run, stats = self._readable(level, run)
        first, prefix = len(found.names), level.prefix
        modes = found.numbers.add(stats)
        found.names += [prefix + entry.name for entry in run]
        for at, is_link in links_and_directories(modes):
            if is_link:
                found.targets[first + at] = self._target(level, run[at])
            else:
                found.targets[first + at] = None
                self._report(raw_name(found.names[first + at]), REPLACED, below=True)

    def _readable(self, level: Level, run: Sequence[Entry]) -> tuple[list[Entry], list[Stats]]:
        kept, found = [], []
        for entry in run:
            try:
                found += self._descent.stats([entry])
                kept.append(entry)
            except OSError as error:
                self._failed(level, entry.name, error)
        return kept, found

    def _target(self, level: Level, link: Entry) -> bytes | None:
        try:
            return self._descent.target(link)
        except OSError as error:
            self._failed(level, link.name, error)
            return None

    def _failed(self, level: Level, name: str, error: OSError, *, below: bytes = b"") -> None:
        """Report what could not be read: ``below``, or the entry itself. What is gone is no error, if it is gone from this very path."""
        if error.errno == errno.ENOENT:
            try:
                if not self._descent.is_in_place():
                    self._moved(level)
                    return
                if not self._descent.has(name):
                    return
            except OSError as worse:
                error = worse
        if error.errno in _REPLACED:
            self._report(raw_name(level.prefix + name), REPLACED, below=True)
        else:
            self._report(below or raw_name(level.prefix + name), error)

    def _moved(self, level: Level) -> None:
        """The directory is no longer where it was found, so what is missing in it tells nothing of what is there now."""
        if not level.prefix:
            raise SourceNotFound(
                f"{os.fsdecode(self._root)!r} was replaced while it was read.",
                next_step="Harvest it again when it stays where it is.",
            )
        self._report(raw_name(level.prefix), REPLACED)

    def _batch(self, found: _Found) -> Iterator[pa.RecordBatch]:
        """The entries as Arrow data, without those that are out of scope, cannot be named, or are links that cannot be read."""
        names, targets = found.names, found.targets
        kept, text = checked_names(raw_names(names), self._scope, self._report)
        if kept is not None:
            names = [names[at] for at in kept]
            targets = {new: targets[old] for new, old in enumerate(kept) if old in targets} if targets else targets
        shown, gone = self._shown(names, targets)
        batch = entry_batch(text, found.numbers, shown, kept)
        if gone:
            batch = batch.take(pa.array(np.setdiff1d(np.arange(len(names)), gone)))
        if len(batch):
            yield batch

    def _shown(self, names: Sequence[str], targets: Mapping[int, bytes | None]) -> tuple[list[str | None], list[int]]:
        """Where the links point, and the positions of what is left out."""
        shown: list[str | None] = [None] * len(names)
        gone = []
        for at, target in targets.items():
            try:
                shown[at] = None if target is None else target.decode()
            except UnicodeDecodeError:
                self._report(raw_name(names[at]), TARGET_NOT_UTF8)
            if shown[at] is None:
                gone.append(at)
        return shown, gone
