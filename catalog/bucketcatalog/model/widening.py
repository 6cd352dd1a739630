"""Types that hold the values of two others without loss, and columns cast to them: how what differs is shown as one."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

_SIGNED = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}
_UNITS = ("s", "ms", "us", "ns")
_EXACT_DOUBLE_BITS, _EXACT_FLOAT_BITS = 32, 16


def widened(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """The narrowest type that holds every value of both types without loss; None without one."""
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    for widen in (_numbers, _decimals, _moments, _bytes, _nested):
        if (found := widen(one, other)) is not None:
            return found
    return None


def _numbers(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    if pa.types.is_integer(one) and pa.types.is_integer(other):
        return _integers(one, other)
    if pa.types.is_floating(one) and pa.types.is_floating(other):
        return max((one, other), key=lambda kind: kind.bit_width)
    if pa.types.is_integer(one) and pa.types.is_floating(other):
        needed = one.bit_width
        if needed <= _EXACT_FLOAT_BITS and other.bit_width == 32:
            return other
        return pa.float64() if needed <= _EXACT_DOUBLE_BITS else None
    if pa.types.is_floating(one) and pa.types.is_integer(other):
        return _numbers(other, one)
    return None


def _integers(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    if pa.types.is_signed_integer(one) == pa.types.is_signed_integer(other):
        return max((one, other), key=lambda kind: kind.bit_width)
    unsigned, signed = (one, other) if pa.types.is_unsigned_integer(one) else (other, one)
    return _SIGNED.get(max(2 * unsigned.bit_width, signed.bit_width))


def _decimals(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    if not (pa.types.is_decimal(one) and pa.types.is_decimal(other)):
        return None
    scale = max(one.scale, other.scale)
    digits = max(one.precision - one.scale, other.precision - other.scale) + scale
    if digits > 76:
        return None
    return pa.decimal128(digits, scale) if digits <= 38 else pa.decimal256(digits, scale)


def _moments(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    if pa.types.is_timestamp(one) and pa.types.is_timestamp(other) and one.tz == other.tz:
        return pa.timestamp(max(one.unit, other.unit, key=_UNITS.index), one.tz)
    if pa.types.is_time(one) and pa.types.is_time(other):
        unit = max(one.unit, other.unit, key=_UNITS.index)
        return pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)
    if pa.types.is_duration(one) and pa.types.is_duration(other):
        return pa.duration(max(one.unit, other.unit, key=_UNITS.index))
    return None


def _bytes(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    binary = [pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind) for kind in (one, other)]
    return pa.binary() if all(binary) else None


def _nested(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    if pa.types.is_list(one) and pa.types.is_list(other):
        items = widened(one.value_type, other.value_type)
        return None if items is None else pa.list_(items)
    if pa.types.is_map(one) and pa.types.is_map(other) and one.key_type == other.key_type:
        items = widened(one.item_type, other.item_type)
        return None if items is None else pa.map_(one.key_type, items)
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        return _structs(one, other)
    return None


def _structs(one: pa.StructType, other: pa.StructType) -> pa.DataType | None:
    found = {field.name: field.type for field in one}
    for field in other:
        known = found.get(field.name)
        both = field.type if known is None else widened(known, field.type)
        if both is None:
            return None
        found[field.name] = both
    return pa.struct([pa.field(name, kind) for name, kind in found.items()])


def cast(values: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """The values of a column as a type that it was widened to."""
    if values.type == kind:
        return values
    return pa.chunked_array([_cast(chunk, kind) for chunk in values.chunks], kind)


def _cast(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_struct(kind) and pa.types.is_struct(values.type):
        known = {field.name: at for at, field in enumerate(values.type)}
        children: Sequence[pa.Array] = [
            _cast(values.field(known[field.name]), field.type) if field.name in known else pa.nulls(len(values), field.type)
            for field in kind
        ]
        mask = values.is_null() if values.null_count else None
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=mask)
    return values.cast(kind)
