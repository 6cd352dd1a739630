"""Counts and exact sums of rows by group, with kernels of Arrow: batches go in, one row for each group comes out.

A column that is the same throughout a batch, as owners and buckets nearly always are, is not hashed. Names come in the order of keys, so
what they begin with comes in runs: of each run one row is made before anything is hashed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..model.arrays import EXACT, is_constant, one_chunk

COUNT, BYTES = "objects", "bytes"
DELIMITER = "/"
_REGROUPED = 1 << 18
_SLASH = DELIMITER.encode()[0]
Numbers = npt.NDArray[np.int64]


class Totals:
    """How many objects each group has, and how many bytes, under way; what was added is grouped again once it is much.

    ``more`` are further columns to be summed. Sums are exact: decimals, unless 64-bit integers are sure to do.
    """

    def __init__(self, keys: Sequence[pa.Field], more: Sequence[str] = ()) -> None:
        self.keys = list(keys)
        self._sums = [COUNT, BYTES, *more]
        self._parts: list[pa.Table] = []

    def add(self, keys: Mapping[str, pa.Array], sums: Mapping[str, pa.Array], count: int | None = None) -> None:
        """Count rows by their keys: each once, unless the sums have a number for it; what has no size counts no bytes."""
        rows = len(next(iter(sums.values()))) if count is None else count
        if not rows:
            return
        same = {name: values for name, values in keys.items() if is_constant(values)}
        numbers = {COUNT: pa.repeat(pa.scalar(1, pa.int64()), rows), **sums}
        summed = {name: _summable(pc.fill_null(one_chunk(values), 0)) for name, values in numbers.items()}
        grouped = _summed(pa.table({**{n: v for n, v in keys.items() if n not in same}, **summed}), list(summed))
        constant = {name: pa.repeat(values[0], len(grouped)) for name, values in same.items()}
        self.add_sums(pa.table({**constant, **dict(zip(grouped.column_names, grouped.columns, strict=True))}))

    def add_runs(self, keys: Mapping[str, pa.Array], sizes: pa.Array) -> None:
        """The same for rows of which those of one group mostly lie together."""
        if not len(sizes):
            return
        starts = _run_starts(keys, len(sizes))
        ends = np.append(starts[1:], len(sizes))
        numbers = {COUNT: pa.array(ends - starts).cast(EXACT), BYTES: _sums_between(sizes, starts)}
        first = pa.array(starts)
        self.add_sums(pa.table({**{name: values.take(first) for name, values in keys.items()}, **numbers}))

    def add_sums(self, rows: pa.Table) -> None:
        """Add sums of other rows."""
        schema = pa.schema([*self.keys, *(pa.field(name, EXACT) for name in self._sums)])
        self._parts.append(rows.select(schema.names).cast(schema))
        if sum(map(len, self._parts)) > max(_REGROUPED, 2 * len(self._parts[0])):
            self._parts = [self._all()]

    def exact(self) -> pa.Table:
        """One row for each group, in the order of the keys, with sums as decimals."""
        return self._all().sort_by([(field.name, "ascending") for field in self.keys]) if self.keys else self._all()

    def rows(self) -> pa.Table:
        """One row for each group, in the order of the keys."""
        return narrow(self.exact(), self._sums)

    def _all(self) -> pa.Table:
        schema = pa.schema([*self.keys, *(pa.field(name, EXACT) for name in self._sums)])
        joined = pa.concat_tables([schema.empty_table(), *self._parts])
        return _summed(joined, self._sums).select(schema.names).cast(schema) if len(joined) else joined


def _summable(numbers: pa.Array) -> pa.Array:
    """The numbers as what adds up fastest and exactly: 64-bit integers where no sum of any of them can be larger."""
    bounds = pc.min_max(numbers).as_py()
    largest = max(abs(int(bounds["min"])), abs(int(bounds["max"])))
    return numbers.cast(pa.int64() if largest * len(numbers) < 1 << 63 else EXACT)


def _summed(rows: pa.Table, sums: Sequence[str]) -> pa.Table:
    """One row for each group of the other columns."""
    keys = [name for name in rows.column_names if name not in sums]
    grouped = rows.group_by(keys).aggregate([(name, "sum") for name in sums])
    return grouped.select([*keys, *(f"{name}_sum" for name in sums)]).rename_columns([*keys, *sums])


def narrow(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """Decimals as 64-bit integers, as whoever counts or draws them expects; a column that has a larger number stays as it is."""
    for name in names:
        try:
            whole = rows[name].cast(pa.int64())
        except pa.ArrowInvalid:
            continue
        rows = rows.set_column(rows.column_names.index(name), pa.field(name, pa.int64(), rows.schema.field(name).nullable), whole)
    return rows


def _run_starts(keys: Mapping[str, pa.Array], count: int) -> Numbers:
    """Where rows begin whose keys are not those of the row before them."""
    begins = np.zeros(count, dtype=bool)
    begins[0] = True
    for values in keys.values():
        if not is_constant(values):
            begins[1:] |= np.asarray(pc.fill_null(pc.not_equal(values.slice(1), values.slice(0, count - 1)), True))
    return np.flatnonzero(begins)


def _sums_between(sizes: pa.Array, starts: Numbers) -> pa.Array:
    """The sums of the sizes from each start to the next."""
    numbers = np.asarray(pc.fill_null(sizes, 0))
    if numbers.max(initial=0) >= (1 << 62) // len(numbers):
        numbers = numbers.astype(object)
    return (
        pa.array(np.add.reduceat(numbers, starts).tolist(), EXACT)
        if numbers.dtype == object
        else pa.array(np.add.reduceat(numbers, starts)).cast(EXACT)
    )


def prefixes(names: pa.Array, skip: int, depth: int) -> pa.Array:
    """What each name begins with, up to and with the ``depth``-th delimiter behind its first ``skip`` bytes.

    A name with fewer delimiters lies less deep: it has its prefix up to the last of them, or these bytes alone.
    """
    raw = names.cast(pa.binary())
    offsets = np.frombuffer(raw.buffers()[1], dtype=np.int32, count=len(raw) + 1, offset=4 * raw.offset).astype(np.int64)
    data = np.frombuffer(raw.buffers()[2] or b"", dtype=np.uint8)[: offsets[-1]]
    begins, ends = offsets[:-1], offsets[1:]
    stops = begins + skip
    if depth:
        slashes = np.flatnonzero(data == _SLASH)
        first = np.searchsorted(slashes, stops)
        last = np.minimum(np.searchsorted(slashes, ends), first + depth)
        found = last > first
        stops = np.where(found, slashes[np.where(found, last - 1, 0)] + 1, stops) if len(slashes) else stops
    return _slices(data, begins, stops).cast(pa.string())


def last_components(names: pa.Array) -> pa.Array:
    """What stands in each name behind the last delimiter; all of it where it has none."""
    raw = names.cast(pa.binary())
    offsets = np.frombuffer(raw.buffers()[1], dtype=np.int32, count=len(raw) + 1, offset=4 * raw.offset).astype(np.int64)
    data = np.frombuffer(raw.buffers()[2] or b"", dtype=np.uint8)[: offsets[-1]]
    begins, ends = offsets[:-1], offsets[1:]
    slashes = np.flatnonzero(data == _SLASH)
    if len(slashes):
        at = np.searchsorted(slashes, ends) - 1
        behind = slashes[np.maximum(at, 0)] + 1
        begins = np.where((at >= 0) & (behind > begins), behind, begins)
    return _slices(data, begins, ends).cast(pa.string())


def _slices(data: npt.NDArray[np.uint8], begins: Numbers, ends: Numbers) -> pa.Array:
    """The bytes from each beginning to its end, as values."""
    lengths = ends - begins
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    places = np.repeat((begins - offsets[:-1]).astype(np.int32), lengths)
    places += np.arange(offsets[-1], dtype=np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data.take(places))]
    return pa.Array.from_buffers(pa.binary(), len(lengths), buffers)
