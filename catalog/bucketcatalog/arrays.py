"""Arrow arrays taken apart and put together again, sliced or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Convert = Callable[[pa.Array], pa.Array]


def one_chunk(values: Any) -> pa.Array:
    """A chunked array as one array."""
    if not isinstance(values, pa.ChunkedArray):
        return values
    return values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()


def hexadecimal(values: pa.Array) -> pa.Array:
    """Binary values without nulls as text, two digits a byte."""
    raw = values.cast(pa.binary())
    offsets = np.frombuffer(raw.buffers()[1], dtype=np.int32, count=len(raw) + 1, offset=4 * raw.offset)
    digits = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
    data = np.frombuffer(raw.buffers()[2] or b"", dtype=np.uint8)[offsets[0] : offsets[-1]] if len(raw) else np.empty(0, np.uint8)
    text = np.stack([digits[data >> 4], digits[data & 15]], axis=1)
    starts = np.ascontiguousarray((offsets - offsets[0]) * 2)
    return pa.StringArray.from_buffers(len(raw), pa.py_buffer(starts), pa.py_buffer(np.ascontiguousarray(text)))


def convert_list(values: pa.ListArray, items: Convert) -> pa.ListArray:
    """The lists with their items converted, no other items than the lists' own."""
    offsets, (below,) = _entries(values, values.values)
    return pa.ListArray.from_arrays(offsets, items(below), mask=_nulls(values))


def convert_map(values: pa.MapArray, keys: Convert, items: Convert) -> pa.MapArray:
    """The maps with their keys and items converted, no other entries than the maps' own."""
    offsets, (own_keys, own_items) = _entries(values, values.keys, values.items)
    return pa.MapArray.from_arrays(offsets, keys(own_keys), items(own_items), mask=_nulls(values))


def _entries(values: Any, *below: pa.Array) -> tuple[pa.Array, list[pa.Array]]:
    """Offsets from 0 on and what lies below: a slice shares its parent's entries, and Arrow takes no mask with a slice's offsets."""
    first, last = values.offsets[0].as_py(), values.offsets[-1].as_py()
    return pc.subtract(values.offsets, first), [entries.slice(first, last - first) for entries in below]


def _nulls(values: pa.Array) -> pa.Array | None:
    return values.is_null() if values.null_count else None
