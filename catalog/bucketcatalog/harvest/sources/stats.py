"""Names and stat results as Arrow columns, a batch at a time.

Media types by file name: what follows the last dot, looked up in Python's own table, the same on every machine.
"""

from __future__ import annotations

import mimetypes
import os
import stat
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...model.tables import TIMESTAMP
from ..scope import Scope
from ..source import ENTRY_SCHEMA, MAX_NAME_BYTES, NAME_TOO_LONG, NOT_UTF8, Reporter

_COMPRESSED = {
    b".gz": "application/gzip",
    b".bz2": "application/x-bzip2",
    b".xz": "application/x-xz",
    b".zst": "application/zstd",
    b".z": "application/x-compress",
    b".br": "application/x-brotli",
}
_BY_ENDING = {ending.encode(): kind for ending, kind in mimetypes.MimeTypes(()).types_map[True].items()} | _COMPRESSED


def media_types(names: Sequence[bytes]) -> pa.Array:
    """The type of each name, null where the ending says nothing. Something compressed has the type of what compressed it."""
    find = _BY_ENDING.get
    return pa.array([find(name[name.rfind(b".") :].lower()) for name in names], pa.string())


_FORMAT = 0o170000
_LINK_OR_DIRECTORY = (stat.S_IFLNK, stat.S_IFDIR)
_FILE_TYPES = {
    stat.S_IFLNK: "symlink",
    stat.S_IFSOCK: "socket",
    stat.S_IFIFO: "fifo",
    stat.S_IFCHR: "char_device",
    stat.S_IFBLK: "block_device",
}
_FIRST_MICROSECOND, _LAST_MICROSECOND = -62_135_596_800_000_000, 253_402_300_799_999_999


def is_link(one: os.stat_result) -> bool:
    """Whether a stat result is that of a symbolic link."""
    return one.st_mode & _FORMAT == stat.S_IFLNK


def links_and_directories(stats: Sequence[os.stat_result]) -> list[int]:
    """The positions of those that have no bytes of their own."""
    return [at for at, one in enumerate(stats) if one.st_mode & _FORMAT in _LINK_OR_DIRECTORY]


def entry_batch(
    text: pa.Array, names: Sequence[bytes], stats: Sequence[os.stat_result], targets: Sequence[str | None]
) -> pa.RecordBatch:
    """The entries as a batch of ``ENTRY_SCHEMA``; the identity is size and modification time in nanoseconds, ``"4096 17000..."``."""
    lengths = pa.array([one.st_size for one in stats], pa.int64())
    times = [one.st_mtime_ns for one in stats]
    formats = np.array([one.st_mode for one in stats], np.int32) & _FORMAT
    plain = pa.array(formats == stat.S_IFREG)
    columns = [
        text,
        _identities(lengths, times),
        lengths,
        _modified(times),
        pc.if_else(plain, media_types(names), pa.scalar(None, pa.string())),
        _file_types(formats),
        pa.array(targets, pa.string()),
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


def checked_names(names: Sequence[bytes], scope: Scope, report: Reporter) -> tuple[list[int] | None, pa.Array]:
    """Positions of the names that are UTF-8, short enough and in scope (None: all of them), and these as text."""
    good, text = _decoded(names, report)
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


def _decoded(names: Sequence[bytes], report: Reporter) -> tuple[list[int] | None, pa.Array]:
    raw = pa.array(names, pa.binary())
    try:
        return None, raw.cast(pa.string())
    except pa.ArrowInvalid:
        good = []
        for at, name in enumerate(names):
            try:
                name.decode()
                good.append(at)
            except UnicodeDecodeError:
                report(name, NOT_UTF8)
        return good, raw.take(pa.array(good, pa.int64())).cast(pa.string())
