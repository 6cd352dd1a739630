# ruff: noqa: PTH100, PTH111, PTH115
"""A directory of this machine as a source.

Every entry but directories is an object, named by its path below the source; directories are only parts of names, as in object stores, so
an empty one leaves no trace. Symbolic links are recorded and never followed (the source itself may be one); so are sockets, pipes and
devices, with ``file_type``, without being opened. Hard links are objects of their own. Other file systems mounted below are entered.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from urllib.parse import quote

import numpy as np
import pyarrow as pa

from .. import clock
from ..errors import AccessDenied, InvalidName, SourceNotFound
from .reporting import NOT_UTF8, TARGET_NOT_UTF8, Reporter, has_vanished
from .scope import Scope
from .source import BATCH_ROWS, MAX_NAME_BYTES, Report, itself
from .stats import checked_names, entry_batch, is_link

Entry = os.DirEntry[bytes]
Stats = os.stat_result
_NAME = attrgetter("name")


class LocalSource:
    """A directory tree. What is in a directory that ``leave_out`` names is not looked at; ``InvalidOption`` where the tree is in one."""

    def __init__(
        self, path: str | os.PathLike[str], *, leave_out: Iterable[str | os.PathLike[str]] = (), batch_rows: int = BATCH_ROWS
    ) -> None:
        self._root = os.fsencode(os.path.abspath(os.path.expanduser(path)))  # a link in the path may be meant to move
        real, left_out = os.path.realpath(self._root), [os.fsencode(os.path.realpath(one)) for one in leave_out]
        if any(_with_slash(real).startswith(_with_slash(one)) for one in left_out):
            raise itself(self.url)
        self._leave_out = _below(real, left_out)
        self._batch_rows = batch_rows

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
            raise InvalidName(f"{self._root!r} cannot be the name of a bucket.", next_step="Name the bucket with --bucket.")
        return name

    def entries(self, scope: Scope, report: Report) -> Iterator[pa.RecordBatch]:
        """See ``Source``. Memory grows with the largest directories on one path, not with the tree."""
        return _Walk(self._root, self._leave_out, self._batch_rows, scope, Reporter(scope, report)).batches()


def _below(root: bytes, directories: Iterable[bytes]) -> frozenset[bytes]:
    """Those of the directories that lie below ``root``, as what the names in them begin with; all are real paths."""
    above = _with_slash(root)
    return frozenset(path[len(above) :] for path in map(_with_slash, directories) if path.startswith(above))


def _with_slash(path: bytes) -> bytes:
    return path.rstrip(b"/") + b"/"


class _Walk:
    """One walk through the tree, depth first, in byte order of the paths."""

    def __init__(self, root: bytes, leave_out: frozenset[bytes], batch_rows: int, scope: Scope, report: Reporter) -> None:
        self._root = root
        self._leave_out = leave_out
        self._batch_rows = batch_rows
        self._scope = scope
        self._report = report

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The entries."""
        names: list[bytes] = []
        stats: list[Stats] = []
        for prefix, run in self._runs():
            try:
                found = [entry.stat(follow_symlinks=False) for entry in run]
            except OSError:
                run, found = self._readable(prefix, run)
            stats += found
            names += [prefix + entry.name for entry in run]
            if len(names) >= self._batch_rows:
                yield from self._batch(names, stats)
                names, stats = [], []
        if names:
            yield from self._batch(names, stats)

    def _runs(self) -> Iterator[tuple[bytes, list[Entry]]]:
        """Runs of entries that are no directories, each with what comes before their names."""
        stack = [_in_order(b"", self._listed_root())]
        while stack:
            step = next(stack[-1], None)
            if step is None:
                stack.pop()
                continue
            prefix, run, directory = step
            while run:
                yield prefix, run[: self._batch_rows]
                del run[: self._batch_rows]
            if directory is not None:
                below = prefix + directory.name + b"/"
                if self._enters(below):
                    stack.append(_in_order(below, self._listed(directory.path, below)))

    def _listed_root(self) -> list[Entry]:
        shown = repr(os.fsdecode(self._root))
        try:
            with os.scandir(self._root) as found:
                return list(found)
        except PermissionError as error:
            raise AccessDenied(f"{shown} cannot be read: {error.strerror}.", next_step="Ask for the right to list it.") from None
        except OSError as error:
            raise SourceNotFound(
                f"{shown} is no directory that can be listed: {error.strerror}.", next_step="Check the path of the source."
            ) from None

    def _enters(self, prefix: bytes) -> bool:
        try:
            return prefix not in self._leave_out and self._scope.enters(prefix.decode())
        except UnicodeDecodeError:
            self._report(prefix, NOT_UTF8)
            return False

    def _listed(self, path: bytes, prefix: bytes) -> list[Entry]:
        try:
            with os.scandir(path) as found:
                return list(found)
        except OSError as error:
            if not has_vanished(error):
                self._report(prefix, error)
            return []

    def _readable(self, prefix: bytes, run: Sequence[Entry]) -> tuple[list[Entry], list[Stats]]:
        """The entries that can be read; the others are reported, except what vanished."""
        kept, found = [], []
        for entry in run:
            try:
                found.append(entry.stat(follow_symlinks=False))
                kept.append(entry)
            except OSError as error:
                if not has_vanished(error):
                    self._report(prefix + entry.name, error)
        return kept, found

    def _batch(self, names: list[bytes], stats: list[Stats]) -> Iterator[pa.RecordBatch]:
        """The entries as Arrow data, without those that are out of scope, cannot be named, or are links that vanished."""
        kept, text = checked_names(names, self._scope, self._report)
        if kept is not None:
            names, stats = [names[at] for at in kept], [stats[at] for at in kept]
        targets, gone = self._targets(names, stats)
        batch = entry_batch(text, names, stats, targets)
        if gone:
            batch = batch.take(pa.array(np.setdiff1d(np.arange(len(names)), gone)))
        if len(batch):
            yield batch

    def _targets(self, names: Sequence[bytes], stats: Sequence[Stats]) -> tuple[list[str | None], list[int]]:
        """Where the links point, and the positions of those that cannot be said."""
        targets: list[str | None] = [None] * len(names)
        gone = []
        for at in [at for at, one in enumerate(stats) if is_link(one)]:
            try:
                targets[at] = os.readlink(self._root + b"/" + names[at]).decode()
            except UnicodeDecodeError:
                gone.append(at)
                self._report(names[at], TARGET_NOT_UTF8)
            except OSError as error:
                gone.append(at)
                if not has_vanished(error):
                    self._report(names[at], error)
        return targets, gone


def _in_order(prefix: bytes, entries: list[Entry]) -> Iterator[tuple[bytes, list[Entry], Entry | None]]:
    """A directory's entries: runs of what is no directory, each with the directory that comes after it.

    A directory stands where the paths below it do: ``a-b`` comes before ``a/b``, so ``a`` sorts as ``a/``.
    """
    directories = {entry.name for entry in entries if _is_directory(entry)}
    if not directories:
        entries.sort(key=_NAME)
        yield prefix, entries, None
        return
    entries.sort(key=lambda entry: entry.name + b"/" if entry.name in directories else entry.name)
    run: list[Entry] = []
    for entry in entries:
        if entry.name in directories:
            yield prefix, run, entry
            run = []
        else:
            run.append(entry)
    yield prefix, run, None


def _is_directory(entry: Entry) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False  # where a file system does not say, asking may fail; the stat that follows reports why
