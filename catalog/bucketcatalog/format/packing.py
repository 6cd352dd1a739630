"""Columns in fewer bytes than their own types need: the same values, which a cast to the column's type brings back.

Few distinct values become a dictionary; text and bytes of one width lose their offsets. Both also below lists, maps and structs.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from ..model.arrays import convert_list, convert_map

_WORTHWHILE_ROWS = 1_024
_ROWS_PER_VALUE = 8
_INDICES = ((1 << 7, pa.int8()), (1 << 15, pa.int16()), (1 << 31, pa.int32()))


def packed(values: pa.Array) -> pa.Array:
    """The values in the cheapest type; short arrays stay as they are, for a dictionary has its price too."""
    if len(values) < _WORTHWHILE_ROWS or values.null_count == len(values):
        return values
    kind = values.type
    if pa.types.is_map(kind):
        return convert_map(values, packed, packed)
    if pa.types.is_list(kind):
        return convert_list(values, packed)
    if pa.types.is_struct(kind):
        return _packed_struct(values)
    if pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return _flat(values)
    return values


def _packed_struct(values: pa.StructArray) -> pa.StructArray:
    children = [packed(values.field(at)) for at in range(values.type.num_fields)]
    fields = [pa.field(field.name, child.type) for field, child in zip(values.type, children, strict=True)]
    return pa.StructArray.from_arrays(children, fields=fields, mask=values.is_null() if values.null_count else None)


def _flat(values: pa.Array) -> pa.Array:
    encoded = values.dictionary_encode()
    distinct = len(encoded.dictionary)
    if distinct * _ROWS_PER_VALUE <= len(values):
        narrow = next(kind for limit, kind in _INDICES if distinct <= limit)
        return pa.DictionaryArray.from_arrays(encoded.indices.cast(narrow), encoded.dictionary)
    if pa.types.is_fixed_size_binary(values.type):
        return values
    widths = pc.min_max(pc.binary_length(values)).as_py()
    return values.cast(pa.binary(widths["min"])) if widths["min"] == widths["max"] and widths["min"] else values
