"""Arrow arrays taken apart and put together again, sliced or not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..cache import LruCache

Mask = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.int64]
Convert = Callable[[pa.Array], pa.Array]
EXACT = pa.decimal128(38, 0)
"""What sums of integers are: no number of rows that there can be makes it overflow."""
_PLAIN = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
NULL_IN_MAP = "a map holds a null"
_LISTS = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
_BITS = {pa.float32(): pa.uint32(), pa.float64(): pa.uint64()}


def exact_sum(values: Any) -> int:
    """The sum of integers, which no number of them makes wrong; nulls count nothing."""
    return int(pc.sum(values.cast(EXACT), min_count=0).as_py())


def one_chunk(values: Any) -> pa.Array:
    """A chunked array as one array."""
    if not isinstance(values, pa.ChunkedArray):
        return values
    return values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()


def plain(values: pa.Array) -> pa.Array:
    """The values as what Arrow joins and takes rows of: what dictionaries and views of text or bytes show, the rest as it is.

    So they are in lists, maps and structs too.
    """
    kind = values.type
    if _is_plain(kind):
        return values
    if pa.types.is_dictionary(kind):
        return plain(values.dictionary).take(values.indices)
    if pa.types.is_struct(kind):
        children = [plain(values.field(at)) for at in range(kind.num_fields)]
        return convert_struct(
            values, [field.with_type(child.type) for field, child in zip(kind, children, strict=True)], children
        )
    if pa.types.is_map(kind):
        return convert_map(values, plain, plain)
    return values.cast(_PLAIN[kind]) if kind in _PLAIN else convert_list(values.cast(pa.list_(kind.value_type)), plain)


def _is_plain(kind: pa.DataType) -> bool:
    if kind in _PLAIN or pa.types.is_dictionary(kind):
        return False
    if pa.types.is_map(kind):
        return _is_plain(kind.key_type) and _is_plain(kind.item_type)
    if pa.types.is_struct(kind):
        return all(_is_plain(field.type) for field in kind)
    return not any(fits(kind) for fits in _LISTS) or _is_plain(kind.value_type)


def is_constant(values: pa.Array) -> bool:
    """Whether all values, at least one, are the same and none is null."""
    if values.null_count or values[-1] != values[0]:
        return False
    return bool(pc.all(pc.equal(values, values[0])).as_py())


_REPEATED = 1_024
"""Rows from which a value that stands in all of them is kept."""
_repetitions: LruCache[tuple[pa.Scalar, int], pa.Array] = LruCache(8 << 20, lambda values: int(values.nbytes) + 1_024)


def repeated(value: pa.Scalar, count: int) -> pa.Array:
    """A value so many times, which is no fraction: zeros are equal.

    Blocks side by side hold the same owner. Who asks again is given the same array, and memory is needed once.
    """
    if count < _REPEATED:
        return pa.repeat(value, count)
    key = value, count
    found = _repetitions.get(key)
    if found is None:
        found = pa.repeat(value, count)
        _repetitions.put(key, found)
    return found


def hexadecimal(values: pa.Array) -> pa.Array:
    """Binary values as text, two digits a byte; null stays null."""
    raw = pc.fill_null(values.cast(pa.binary()), b"")
    offsets = np.frombuffer(raw.buffers()[1], dtype=np.int32, count=len(raw) + 1, offset=4 * raw.offset)
    digits = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
    data = np.frombuffer(raw.buffers()[2] or b"", dtype=np.uint8)[offsets[0] : offsets[-1]] if len(raw) else np.empty(0, np.uint8)
    text = np.stack([digits[data >> 4], digits[data & 15]], axis=1)
    starts = np.ascontiguousarray((offsets - offsets[0]) * 2)
    shown = pa.StringArray.from_buffers(len(raw), pa.py_buffer(starts), pa.py_buffer(np.ascontiguousarray(text)))
    return pc.if_else(values.is_valid(), shown, pa.scalar(None, pa.string())) if values.null_count else shown


def convert_list(values: pa.ListArray, items: Convert) -> pa.ListArray:
    """The lists with their items converted, no other items than the lists' own."""
    offsets, (below,) = _entries(values, values.values)
    return pa.ListArray.from_arrays(offsets, items(below), mask=_nulls(values))


def convert_map(values: pa.MapArray, keys: Convert, items: Convert) -> pa.MapArray:
    """The maps with their keys and items converted, no other entries than the maps' own; ``ValueError`` where a key comes to null."""
    offsets, (own_keys, own_items) = _entries(values, values.keys, values.items)
    made = keys(own_keys)
    if made.null_count:
        raise ValueError(NULL_IN_MAP)
    return pa.MapArray.from_arrays(offsets, made, items(own_items), mask=_nulls(values))


def convert_struct(values: pa.StructArray, fields: list[pa.Field], children: list[pa.Array]) -> pa.StructArray:
    """The structs with these children, as many as there are structs, in place of their own."""
    if not fields:  # nothing would say how many there are
        return pa.Array.from_buffers(pa.struct([]), len(values), [values.is_valid().buffers()[1]])
    return pa.StructArray.from_arrays(children, fields=fields, mask=_nulls(values))


def _entries(values: Any, *below: pa.Array) -> tuple[pa.Array, list[pa.Array]]:
    """Offsets from 0 on and what lies below: a slice shares its parent's entries, and Arrow takes no mask with a slice's offsets."""
    first, last = values.offsets[0].as_py(), values.offsets[-1].as_py()
    return pc.subtract(values.offsets, first), [entries.slice(first, last - first) for entries in below]


def _nulls(values: pa.Array) -> pa.Array | None:
    return values.is_null() if values.null_count else None


def comparable(values: pa.Array) -> pa.Array:
    """Values as conditions compare them: of numbers with a fraction integers in the same order, any other values as they are.

    Both zeros are one number. Whatever is no number is one value, and comes after every number.
    """
    if not pa.types.is_floating(values.type):
        return values
    wide = pc.add(one_chunk(values).cast(pa.float64()), 0.0)  # the sum of the two zeros is the one without a sign
    bits = pc.if_else(pc.is_nan(wide), pa.scalar(np.nan), wide).view(pa.int64())
    return pc.if_else(pc.less(bits, 0), pc.bit_wise_xor(bits, np.iinfo(np.int64).max), bits)


def compared_fractions(values: pa.Array) -> pa.Array:
    """The numbers with a fraction that these were before they were made ``comparable``, in double precision."""
    return pc.if_else(pc.less(values, 0), pc.bit_wise_xor(values, np.iinfo(np.int64).max), values).view(pa.float64())


def same_values(left: pa.Array, right: pa.Array) -> Mask:
    """Where two arrays of one type and length hold the same value, bit for bit: null equals null, lists and maps entry by entry.

    So the two zeros are not the same, and what is no number is the same only with the same bits.
    """
    missing, absent = np.asarray(left.is_null()), np.asarray(right.is_null())
    both = ~missing & ~absent
    if pa.types.is_struct(left.type):
        alike = np.ones(len(left), dtype=bool)
        for place in range(left.type.num_fields):
            alike &= same_values(left.field(place), right.field(place))
    elif pa.types.is_list(left.type):
        alike = _same_entries(left, right, both, (left.values, right.values))
    elif pa.types.is_map(left.type):
        alike = _same_entries(left, right, both, (left.keys, right.keys), (left.items, right.items))
    else:
        alike = np.asarray(pc.fill_null(pc.equal(_bits(left), _bits(right)), False))
    same: Mask = np.where(both, alike, missing & absent)
    return same


def _bits(values: pa.Array) -> pa.Array:
    return values.view(_BITS[values.type]) if values.type in _BITS else values


def _same_entries(left: Any, right: Any, both: Mask, *below: tuple[pa.Array, pa.Array]) -> Mask:
    """Where two arrays of lists or maps have as many entries and the same ones; ``below`` are the arrays that hold these."""
    starts = np.asarray(left.offsets)[:-1].astype(np.int64), np.asarray(right.offsets)[:-1].astype(np.int64)
    sizes = np.diff(np.asarray(left.offsets)), np.diff(np.asarray(right.offsets))
    alike: Mask = both & (sizes[0] == sizes[1])
    rows = np.flatnonzero(alike)
    counts = sizes[0][rows]
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    owner = np.repeat(rows, counts)
    places = [pa.array(start[owner] + within) for start in starts]
    for mine, theirs in below:
        differ = ~same_values(mine.take(places[0]), theirs.take(places[1]))
        alike[owner[differ]] = False
    return alike


def leaves(values: pa.Array) -> Iterator[pa.Array]:
    """The leaves of an array: those of the values that lie in lists, maps and structs, or the array itself."""
    kind = values.type
    if pa.types.is_map(kind):
        yield from leaves(values.keys)
        yield from leaves(values.items)
    elif pa.types.is_list(kind):
        yield from leaves(values.values)
    elif pa.types.is_struct(kind):
        for at in range(kind.num_fields):
            yield from leaves(values.field(at))
    else:
        yield values
