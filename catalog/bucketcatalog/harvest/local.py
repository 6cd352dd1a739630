"""A directory of this machine as a source.

Every entry but directories is an object, named by its path below the source; directories are only parts of names, as in object stores, so
an empty one leaves no trace. Symbolic links are recorded and never followed (the source itself may be one); so are sockets, pipes and
devices, with ``file_type``, without being opened. Hard links are objects of their own. Other file systems mounted below are entered.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .. import clock
from ..errors import AccessDenied, InvalidName, SourceNotFound
from ..tables import TIMESTAMP
from .mediatypes import media_types
from .scope import Scope
from .source import BATCH_ROWS, ENTRY_SCHEMA, MAX_NAME_BYTES, EntryError, Report

Entry = os.DirEntry[bytes]
_NAME = attrgetter("name")
_FILE_TYPES = {
    stat.S_IFLNK: "symlink",
    stat.S_IFSOCK: "socket",
    stat.S_IFIFO: "fifo",
    stat.S_IFCHR: "char_device",
    stat.S_IFBLK: "block_device",
}
_VANISHED = (errno.ENOENT, errno.ENOTDIR)
_FIRST_YEAR, _LAST_YEAR = -62_135_596_800_000_000, 253_402_300_799_999_999


class LocalSource:
    """A directory tree. ``leave_out`` names directories whose content is not looked at, such as the catalog's own."""

    def __init__(
        self, path: str | os.PathLike[str], *, leave_out: Iterable[str | os.PathLike[str]] = (), batch_rows: int = BATCH_ROWS
    ) -> None:
        self._root = os.fsencode(os.path.abspath(os.path.expanduser(path)))  # noqa: PTH100, PTH111: bytes, and no symlink resolved
        self._leave_out = _below(os.path.realpath(self._root), leave_out)
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
        if not 0 < len(self._root) <= MAX_NAME_BYTES or not name:
            raise InvalidName(f"{self._root!r} cannot be the name of a bucket.", next_step="Name the bucket with --bucket.")
        return name

    def entries(self, scope: Scope, report: Report) -> Iterator[pa.RecordBatch]:
        """See ``Source``. Memory grows with the largest directories on one path, not with the tree."""
        names: list[bytes] = []
        stats: list[os.stat_result] = []
        for prefix, run in self._runs(scope, report):
            try:
                found = [entry.stat(follow_symlinks=False) for entry in run]
            except OSError:
                run, found = _readable(prefix, run, scope, report)
            stats += found
            names += [prefix + entry.name for entry in run]
            if len(names) >= self._batch_rows:
                yield from self._batch(names, stats, scope, report)
                names, stats = [], []
        if names:
            yield from self._batch(names, stats, scope, report)

    def _runs(self, scope: Scope, report: Report) -> Iterator[tuple[bytes, list[Entry]]]:
        """Runs of entries that are no directories, each with what comes before their names, depth first in byte order of paths."""
        stack = [iter(self._listing(self._root, b"", self._open_root()))]
        while stack:
            step = next(stack[-1], None)
            if step is None:
                stack.pop()
                continue
            prefix, run, directory = step
            if directory is None:
                while run:
                    yield prefix, run[: self._batch_rows]
                    del run[: self._batch_rows]
            elif self._enters(prefix + directory.name + b"/", scope, report):
                stack.append(self._opened(directory.path, prefix + directory.name + b"/", scope, report))

    def _open_root(self) -> list[Entry]:
        try:
            with os.scandir(self._root) as found:
                return list(found)
        except PermissionError as error:
            raise AccessDenied(f"{self._shown} cannot be read: {error.strerror}.", next_step="Ask for the right to.") from None
        except OSError as error:
            raise SourceNotFound(
                f"{self._shown} is no directory that can be listed: {error.strerror}.", next_step="Check the path of the source."
            ) from None

    @property
    def _shown(self) -> str:
        return repr(os.fsdecode(self._root))

    def _enters(self, prefix: bytes, scope: Scope, report: Report) -> bool:
        if prefix in self._leave_out:
            return False
        try:
            shown = prefix.decode()
        except UnicodeDecodeError:
            _report(prefix, _NOT_UTF8, scope, report)
            return False
        return scope.enters(shown)

    def _opened(
        self, path: bytes, prefix: bytes, scope: Scope, report: Report
    ) -> Iterator[tuple[bytes, list[Entry], Entry | None]]:
        try:
            with os.scandir(path) as found:
                entries = list(found)
        except OSError as error:
            if error.errno not in _VANISHED:
                _report(prefix, error, scope, report)
            return iter(())
        return self._listing(path, prefix, entries)

    def _listing(
        self, path: bytes, prefix: bytes, entries: list[Entry]
    ) -> Iterator[tuple[bytes, list[Entry], Entry | None]]:
        """The entries of a directory in order: runs of what is no directory, and between them the directories.

        A directory stands where the paths below it do: ``a-b`` comes before ``a/b``, so ``a`` sorts as ``a/``.
        """
        directories = {entry.name: entry for entry in entries if _is_directory(entry)}
        if not directories:
            entries.sort(key=_NAME)
            yield prefix, entries, None
            return
        entries.sort(key=lambda entry: entry.name + b"/" if entry.name in directories else entry.name)
        run: list[Entry] = []
        for entry in entries:
            if entry.name not in directories:
                run.append(entry)
                continue
            if run:
                yield prefix, run, None
                run = []
            yield prefix, run, entry
        if run:
            yield prefix, run, None

    def _batch(
        self, names: list[bytes], stats: list[os.stat_result], scope: Scope, report: Report
    ) -> Iterator[pa.RecordBatch]:
        """The entries as Arrow data, without those that are out of scope, cannot be named, or are links that vanished."""
        kept, text = _checked_names(names, scope, report)
        if kept is not None:
            names, stats = [names[at] for at in kept], [stats[at] for at in kept]
        lengths = pa.array([one.st_size for one in stats], pa.int64())
        times = [one.st_mtime_ns for one in stats]
        kinds = np.fromiter((one.st_mode & 0o170000 for one in stats), np.int32, len(stats))
        types = _file_types(kinds)
        targets, gone = self._targets(names, kinds, scope, report)
        batch = pa.record_batch(
            [
                text,
                _identities(lengths, times),
                lengths,
                _modified(times),
                pc.if_else(pa.array(kinds == stat.S_IFREG), media_types(names), pa.scalar(None, pa.string())),
                types,
                targets,
            ],
            schema=ENTRY_SCHEMA,
        )
        if gone:
            batch = batch.take(pa.array(np.setdiff1d(np.arange(len(names)), gone)))
        if len(batch):
            yield batch

    def _targets(
        self, names: Sequence[bytes], kinds: np.ndarray, scope: Scope, report: Report
    ) -> tuple[pa.Array, list[int]]:
        """Where the links point, and the positions of those that cannot be said."""
        links = np.flatnonzero(kinds == stat.S_IFLNK).tolist()
        targets: list[str | None] = [None] * len(names)
        gone = []
        for at in links:
            try:
                targets[at] = os.readlink(self._root + b"/" + names[at]).decode()  # noqa: PTH115: bytes
            except UnicodeDecodeError:
                gone.append(at)
                _report(names[at], _TARGET_NOT_UTF8, scope, report)
            except OSError as error:
                gone.append(at)
                if error.errno not in (*_VANISHED, errno.EINVAL):
                    _report(names[at], error, scope, report)
        return pa.array(targets, pa.string()), gone


def _below(root: bytes, directories: Iterable[str | os.PathLike[str]]) -> frozenset[bytes]:
    """Those of the directories that lie below ``root``, as the prefix of the names in them."""
    real = [os.fsencode(os.path.realpath(directory)) + b"/" for directory in directories]
    above = root.rstrip(b"/") + b"/"
    return frozenset(path[len(above) :] for path in real if path.startswith(above) and path != above)


_NOT_UTF8 = ("NOT_UTF8", "the name is not UTF-8")
_TARGET_NOT_UTF8 = ("TARGET_NOT_UTF8", "the target of the link is not UTF-8")
_TOO_LONG = ("NAME_TOO_LONG", f"the path below the source has more than {MAX_NAME_BYTES} bytes")


def _report(raw: bytes, what: OSError | tuple[str, str], scope: Scope, report: Report) -> None:
    """Report an entry that is in scope; a path that ends in ``/`` stands for all that it may hold."""
    if isinstance(what, OSError):
        error = EntryError(raw, errno.errorcode.get(what.errno or 0, "EIO"), what.strerror or "it cannot be read")
    else:
        error = EntryError(raw, *what, unreadable=False)
    if covers(scope, error.path):
        report(error)


def covers(scope: Scope, path: str) -> bool:
    """Whether a harvest of this scope says something about the path of an entry that cannot be catalogued."""
    return scope.enters(path) if path.endswith("/") else scope.holds(path)


def _is_directory(entry: Entry) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False  # where the file system does not say, asking may fail; the stat that follows reports why


def _readable(
    prefix: bytes, run: Sequence[Entry], scope: Scope, report: Report
) -> tuple[list[Entry], list[os.stat_result]]:
    """The entries that can be read; the others are reported, except what vanished."""
    kept, found = [], []
    for entry in run:
        try:
            found.append(entry.stat(follow_symlinks=False))
            kept.append(entry)
        except OSError as error:
            if error.errno not in _VANISHED:
                _report(prefix + entry.name, error, scope, report)
    return kept, found


def _checked_names(names: Sequence[bytes], scope: Scope, report: Report) -> tuple[list[int] | None, pa.Array]:
    """Positions of the names that are UTF-8, short enough and in scope (None: all), and these as text."""
    raw = pa.array(names, pa.binary())
    good: list[int] | None = None
    try:
        text = raw.cast(pa.string())
    except pa.ArrowInvalid:
        good = [at for at, name in enumerate(names) if _is_utf8(name)]
        for at in sorted(set(range(len(names))) - set(good)):
            _report(names[at], _NOT_UTF8, scope, report)
        text = raw.take(pa.array(good, pa.int64())).cast(pa.string())
    mask = scope.mask(text)
    lengths = pc.binary_length(text)
    if (pc.max(lengths).as_py() or 0) > MAX_NAME_BYTES:
        for at in np.flatnonzero(np.asarray(pc.greater(lengths, MAX_NAME_BYTES))).tolist():
            _report(text[at].as_py().encode(), _TOO_LONG, scope, report)
        short = pc.less_equal(lengths, MAX_NAME_BYTES)
        mask = short if mask is None else pc.and_(mask, short)
    if mask is None:
        return good, text
    kept = np.flatnonzero(np.asarray(mask))
    positions = kept if good is None else np.asarray(good)[kept]
    return positions.tolist(), text.take(pa.array(kept))


def _is_utf8(name: bytes) -> bool:
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True


def _file_types(kinds: np.ndarray) -> pa.Array:
    """``file_type``: null for a plain file."""
    values = [kind for kind in np.unique(kinds).tolist() if kind in _FILE_TYPES]
    names = pa.array([_FILE_TYPES[kind] for kind in values], pa.string())
    return names.take(pc.index_in(pa.array(kinds), value_set=pa.array(values, pa.int32())))


def _identities(lengths: pa.Array, times: Sequence[int]) -> pa.Array:
    """Size and modification time in nanoseconds, in decimal, with a space between."""
    try:
        stamps = pa.array(times, pa.int64()).cast(pa.string())
    except (pa.ArrowInvalid, OverflowError):
        stamps = pa.array([str(time) for time in times], pa.string())
    return pc.binary_join_element_wise(lengths.cast(pa.string()), stamps, " ").cast(pa.binary())


def _modified(times: Sequence[int]) -> pa.Array:
    """Microseconds; what lies outside the years 1 to 9999, as a broken clock may leave behind, as the nearest time within."""
    try:
        stamps = np.array(times, np.int64) // 1_000
    except OverflowError:
        stamps = np.array([min(max(time // 1_000, _FIRST_YEAR), _LAST_YEAR) for time in times], np.int64)
    return pa.array(stamps).cast(TIMESTAMP)
