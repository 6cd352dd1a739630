"""Names and stat results as Arrow columns, a batch at a time.

Media types by file name: what follows the last dot, looked up in Python's own table, the same on every machine.
"""

from __future__ import annotations

import mimetypes
import os
import stat
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...model.tables import TIMESTAMP
from ..scope import Scope
from ..source import ENTRY_SCHEMA, MAX_NAME_BYTES, NAME_TOO_LONG, NOT_UTF8, Reporter

_COMPRESSED = {
    ".gz": "application/gzip",
    ".bz2": "application/x-bzip2",
    ".xz": "application/x-xz",
    ".zst": "application/zstd",
    ".z": "application/x-compress",
    ".br": "application/x-brotli",
}
_BY_ENDING = mimetypes.MimeTypes(()).types_map[True] | _COMPRESSED
_ENDINGS = pa.array([ending.removeprefix(".") for ending in _BY_ENDING], pa.string())
_TYPES = pa.array(list(_BY_ENDING.values()), pa.string())


def media_types(names: pa.Array) -> pa.Array:
    """The type of each name, null where the ending says nothing. Something compressed has the type of what compressed it."""
    parts = pc.split_pattern(names, ".", max_splits=1, reverse=True)
    last = parts.flatten().take(pc.subtract(parts.offsets[1:], 1))
    endings = pc.if_else(pc.equal(parts.value_lengths(), 2), last, pa.scalar(None, pa.string())).dictionary_encode()
    known = pc.index_in(pc.ascii_lower(endings.dictionary), value_set=_ENDINGS)
    return _TYPES.take(known).take(endings.indices)


_FORMAT, _PERMISSIONS = 0o170000, 0o7777
_LINK_OR_DIRECTORY = (stat.S_IFLNK, stat.S_IFDIR)
_PLAIN = stat.S_IFREG, stat.S_IFREG | 0o7777
_FILE_TYPES = {
    stat.S_IFLNK: "symlink",
    stat.S_IFSOCK: "socket",
    stat.S_IFIFO: "fifo",
    stat.S_IFCHR: "char_device",
    stat.S_IFBLK: "block_device",
}
_FIRST_MICROSECOND, _LAST_MICROSECOND = -62_135_596_800_000_000, 253_402_300_799_999_999


_NUMBERS = {
    "st_size": np.int64,
    "st_mode": np.int64,
    "st_uid": np.int64,
    "st_gid": np.int64,
    "st_ino": np.uint64,
    "st_nlink": np.int64,
}
_GETTERS = [(attrgetter(name), kind) for name, kind in _NUMBERS.items()]
Modes = npt.NDArray[Any]


class Numbers:
    """What ``lstat`` says of entries, in columns: taken at once, and the results let go of, which is quicker than to come back to each."""

    def __init__(self) -> None:
        self.times: list[int] = []
        self._parts: list[list[npt.NDArray[Any]]] = [[] for _ in _GETTERS]

    def add(self, stats: Sequence[os.stat_result]) -> Modes:
        """Add some, and give their modes."""
        for (get, kind), parts in zip(_GETTERS, self._parts, strict=True):
            parts.append(np.fromiter(map(get, stats), kind, len(stats)))
        self.times += [one.st_mtime_ns for one in stats]  # a broken clock may leave behind what no machine word holds
        return self._parts[1][-1]

    def columns(self, kept: Sequence[int] | None = None) -> tuple[list[npt.NDArray[Any]], list[int]]:
        """All columns, in the order of ``_NUMBERS``, and the times, of all entries or of those that are ``kept``, by position."""
        columns = [np.concatenate(parts) for parts in self._parts]
        if kept is None:
            return columns, self.times
        return [column[kept] for column in columns], [self.times[at] for at in kept]


def links_and_directories(modes: Modes) -> Iterator[tuple[int, bool]]:
    """The positions of those that have no bytes of their own, each with whether it is a symbolic link."""
    if len(modes) and (modes.min() < _PLAIN[0] or modes.max() > _PLAIN[1]):  # nearly all directories hold nothing but plain files
        for at, mode in enumerate(modes.tolist()):
            if mode & _FORMAT in _LINK_OR_DIRECTORY:
                yield at, mode & _FORMAT == stat.S_IFLNK


def entry_batch(
    text: pa.Array, numbers: Numbers, targets: Sequence[str | None], kept: Sequence[int] | None = None
) -> pa.RecordBatch:
    """The entries as a batch of ``ENTRY_SCHEMA``; the identity is size and modification time in nanoseconds, ``"4096 17000..."``.

    Where only some of the ``numbers`` are ``kept``, by position, names and targets are those of these.
    """
    (sizes, modes, users, groups, inodes, links), times = numbers.columns(kept)
    lengths = pa.array(sizes)
    formats, permissions = (modes & _FORMAT).astype(np.int32), (modes & _PERMISSIONS).astype(np.int32)
    plain = pa.array(formats == stat.S_IFREG)
    columns = [
        text,
        _identities(lengths, times),
        lengths,
        _modified(times),
        pc.if_else(plain, media_types(text), pa.scalar(None, pa.string())),
        _file_types(formats),
        pa.array(targets, pa.string()),
        *(pa.array(column) for column in (users, groups, permissions, inodes, links)),
    ]
    return pa.record_batch(columns, schema=ENTRY_SCHEMA)


def _identities(lengths: pa.Array, times: Sequence[int]) -> pa.Array:
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
        stamps = np.array([min(max(time // 1_000, _FIRST_MICROSECOND), _LAST_MICROSECOND) for time in times], np.int64)
    return pa.array(stamps).cast(TIMESTAMP)


def _file_types(formats: npt.NDArray[np.int32]) -> pa.Array:
    """Null for a plain file."""
    values = [value for value in np.unique(formats).tolist() if value in _FILE_TYPES]
    names = pa.array([_FILE_TYPES[value] for value in values], pa.string())
    return names.take(pc.index_in(pa.array(formats), value_set=pa.array(values, pa.int32())))


def checked_names(raw: pa.Array, scope: Scope, report: Reporter) -> tuple[list[int] | None, pa.Array]:
    """Positions of the names, given as bytes, that are UTF-8, short enough and in scope (None: all of them), and these as text."""
    good, text = _decoded(raw, report)
    mask = scope.mask(text)
    lengths = pc.binary_length(text)
    if (pc.max(lengths).as_py() or 0) > MAX_NAME_BYTES:
        for at in np.flatnonzero(np.asarray(pc.greater(lengths, MAX_NAME_BYTES))).tolist():
            report(text[at].as_py().encode(), NAME_TOO_LONG)
        short = pc.less_equal(lengths, MAX_NAME_BYTES)
        mask = short if mask is None else pc.and_(mask, short)
    if mask is None:
        return good, text
    kept = np.flatnonzero(np.asarray(mask))
    positions = kept if good is None else np.asarray(good, np.int64)[kept]
    return positions.tolist(), text.take(pa.array(kept))


def _decoded(raw: pa.Array, report: Reporter) -> tuple[list[int] | None, pa.Array]:
    try:
        return None, raw.cast(pa.string())
    except pa.ArrowInvalid:
        good = []
        for at, name in enumerate(raw.to_pylist()):
            try:
                name.decode()
                good.append(at)
            except UnicodeDecodeError:
                report(name, NOT_UTF8)
        return good, raw.take(pa.array(good, pa.int64())).cast(pa.string())
