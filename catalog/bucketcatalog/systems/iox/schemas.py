"""Schemas: what columns a data table has, whose files were written by writers that know nothing of each other.

No writer is refused for its schema. Whoever reads says what becomes of files that differ (persistence document, section 2.3): ``cast``
shows every column of any, a missing one as nulls, and values as the narrowest type that holds all of both without loss; ``error`` takes no
difference; ``skip`` leaves the files out that do not go together with those that were added before them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from ...errors import InvalidOption
from .errors import SchemaConflict

OnConflict = Literal["cast", "error", "skip"]
_SIGNED = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}
_UNITS = ("s", "ms", "us", "ns")
_EXACT_DOUBLE_BITS, _EXACT_FLOAT_BITS = 32, 16


@dataclass(frozen=True)
class Seen:
    """A schema of files, and one of these by its path."""

    id: str
    schema: pa.Schema
    path: str


@dataclass(frozen=True)
class Merged:
    """The columns of a table, and the ids of the schemas whose files are left out."""

    schema: pa.Schema
    skipped: frozenset[str] = frozenset()


def on_conflict(value: str) -> OnConflict:
    """What is to be done about schemas that differ; ``InvalidOption`` for anything else."""
    known: OnConflict
    for known in ("cast", "error", "skip"):
        if value == known:
            return known
    raise InvalidOption(f"onSchemaConflict cannot be {value!r}.", next_step="Give cast, error or skip.")


def merged(table: str, seen: Iterable[Seen], on: OnConflict) -> Merged:
    """The columns of the table, whose schemas come in the order in which their first files were added.

    ``SchemaConflict`` names two files that do not go together. Columns come in the order in which they were first seen.
    """
    found: dict[str, tuple[pa.Field, Seen]] = {}
    skipped: set[str] = set()
    first: Seen | None = None
    for each in seen:
        if first is not None and on == "error" and not _same(first.schema, each.schema):
            raise _differ(table, first, each)
        first = first or each
        added = dict(found)
        try:
            for field in each.schema:
                added[field.name] = _added(table, added.get(field.name), field, each)
        except SchemaConflict:
            if on != "skip":
                raise
            skipped.add(each.id)
            continue
        found = added
    return Merged(pa.schema([field for field, _ in found.values()]), frozenset(skipped))


def _added(table: str, known: tuple[pa.Field, Seen] | None, field: pa.Field, by: Seen) -> tuple[pa.Field, Seen]:
    """A column with what a schema says of it; every column may be null, in files that lack it."""
    if known is None:
        return pa.field(field.name, field.type), by
    both = widened(known[0].type, field.type)
    if both is None:
        raise SchemaConflict(
            f"Column {field.name!r} of data table {table!r} is {known[0].type} in {known[1].path} and {field.type} in {by.path}, "
            "and neither holds the other without loss.",
            next_step="Leave the later one out, by onSchemaConflict=skip in Spark and on_schema_conflict in Python, or write one anew.",
        )
    return pa.field(field.name, both), known[1] if both == known[0].type else by


def _same(one: pa.Schema, other: pa.Schema) -> bool:
    return [(f.name, f.type) for f in one] == [(f.name, f.type) for f in other]


def _differ(table: str, one: Seen, other: Seen) -> SchemaConflict:
    return SchemaConflict(
        f"Files of data table {table!r} have different columns: {one.path} and {other.path}.",
        next_step="Read with cast or skip instead of error.",
    )


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
