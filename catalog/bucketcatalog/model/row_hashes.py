"""Hashes of rows by all of their values, whatever types these have: by them many rows are compared with many others in whatever order."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .arrays import one_chunk, plain
from .bloom import Hashes, hash_keys

_MIX = np.uint64(0x9E3779B97F4A7C15)
_NULL = np.uint64(0x6A09E667F3BCC909)


def hash_rows(columns: Iterable[pa.Array | pa.ChunkedArray], count: int) -> Hashes:
    """A hash of each of ``count`` rows, by its values in these columns and their order; null is a value of its own."""
    hashes = np.full(count, _MIX, dtype=np.uint64)
    for values in columns:
        hashes = _mixed(hashes, _hash_values(plain(one_chunk(values))))
    return hashes


def _mixed(hashes: Hashes, more: Hashes) -> Hashes:
    mixed: Hashes = (hashes ^ hashes >> np.uint64(29)) * _MIX + more
    return mixed


def _hash_values(values: pa.Array) -> Hashes:
    kind = values.type
    if pa.types.is_null(kind):
        return np.full(len(values), _NULL, dtype=np.uint64)
    if pa.types.is_map(kind):
        hashes = _of_lists(values.offsets, _mixed(_hash_values(values.keys), _hash_values(values.items)))
    elif pa.types.is_list(kind):
        hashes = _of_lists(values.offsets, _hash_values(values.values))
    elif pa.types.is_struct(kind):
        hashes = hash_rows(values.flatten(), len(values))
    elif pa.types.is_string(kind) or pa.types.is_binary(kind):
        hashes = hash_keys(pc.fill_null(values.cast(pa.binary()), b""))
    else:
        numbers = values.cast(pa.int64()) if pa.types.is_timestamp(kind) else values
        hashes = hash_keys(pc.fill_null(numbers.cast(pa.string()), "").cast(pa.binary()))
    return np.where(np.asarray(values.is_valid()), hashes, _NULL) if values.null_count else hashes


def _of_lists(offsets: pa.Array, items: Hashes) -> Hashes:
    """What the items of each list come to, with how many there are and the place of each: sums that wrap, so no list is gone through."""
    at = np.asarray(pc.fill_null(offsets, 0)).astype(np.int64)
    start, stop = at[:-1], at[1:]
    places = np.arange(len(items), dtype=np.uint64)
    plain_sums, placed_sums = (np.concatenate([[np.uint64(0)], np.cumsum(of, dtype=np.uint64)]) for of in (items, items * places))
    total = plain_sums[stop] - plain_sums[start]
    placed = placed_sums[stop] - placed_sums[start] - total * start.astype(np.uint64)
    return _mixed(_mixed(total, placed), (stop - start).astype(np.uint64))
