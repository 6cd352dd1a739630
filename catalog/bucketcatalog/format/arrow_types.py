"""Which column a type of Arrow makes, and whether a column that is there can be of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from ..errors import IncompatibleTable
from ..model.tables import Column, DataType, Shape

_SCALARS: tuple[tuple[Callable[[pa.DataType], bool], DataType], ...] = (
    (lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind), DataType.STRING),
    (lambda kind: pa.types.is_binary(kind) or pa.types.is_large_binary(kind), DataType.BYTES),
    (lambda kind: pa.types.is_binary_view(kind) or pa.types.is_fixed_size_binary(kind), DataType.BYTES),
    (pa.types.is_timestamp, DataType.TIMESTAMP),
    (pa.types.is_boolean, DataType.BOOL),
    (lambda kind: pa.types.is_signed_integer(kind) and kind.bit_width <= 32, DataType.INT32),
    (pa.types.is_signed_integer, DataType.INT64),
    (lambda kind: pa.types.is_unsigned_integer(kind) and kind.bit_width <= 32, DataType.UINT32),
    (pa.types.is_unsigned_integer, DataType.UINT64),
    (lambda kind: pa.types.is_floating(kind) and kind.bit_width <= 32, DataType.FLOAT),
    (pa.types.is_floating, DataType.DOUBLE),
    (pa.types.is_struct, DataType.MESSAGE),
)
_EXTENSIONS = {"arrow.uuid": DataType.UUID, "arrow.json": DataType.JSON}
_LISTS = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
_MAP_KEYS = {DataType.STRING, DataType.BOOL, DataType.INT32, DataType.INT64, DataType.UINT32, DataType.UINT64}
_INSTEAD: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (pa.types.is_date, "Make it a timestamp('us', tz='UTC'), which takes dates, or a string."),
    (pa.types.is_decimal, "Make it a string, which keeps every digit, or a float64."),
    (pa.types.is_null, "Say what type its values are to have."),
    (lambda kind: pa.types.is_time(kind) or pa.types.is_duration(kind), "Make it an int64, such as of microseconds."),
    (pa.types.is_interval, "Make it an int64, such as of microseconds."),
)
_WIDER = {DataType.INT32: DataType.INT64, DataType.UINT32: DataType.UINT64, DataType.FLOAT: DataType.DOUBLE}
_CANNOT_WIDEN = {DataType.FLOAT}
"""Those whose bytes mean something else than those of the wider one: a narrower value fits, and a column stays what it is."""
_AS_TEXT = {DataType.UUID, DataType.JSON, DataType.CUT, DataType.ENUM}
"""What is shown as text: who has read a table's schema gives it so."""


@dataclass(frozen=True)
class Kind:
    """What a column is: of a map ``key`` and ``item`` are the types of its parts, of a message ``fields`` are what lies in it."""

    shape: Shape
    type: DataType
    key: DataType | None = None
    fields: tuple[pa.Field, ...] = ()


def kind_of(table: str, path: str, given: pa.DataType) -> Kind:
    """The column that a type makes; ``IncompatibleTable``, which says what to use instead, where no column has that type."""
    kind = _plain(given)
    if any(is_one(kind) for is_one in _LISTS):
        return _value(table, path, given, kind.value_type, Shape.LIST)
    if pa.types.is_map(kind):
        key = _value(table, path, given, kind.key_type, Shape.ONE).type
        if key not in _MAP_KEYS:
            raise _no_type(table, path, given, "Make its keys strings, integers or booleans.")
        item = _value(table, path, given, kind.item_type, Shape.MAP)
        return Kind(Shape.MAP, item.type, key, item.fields)
    return _value(table, path, given, kind, Shape.ONE)


def type_with(table: str, path: str, kind: Kind, known: Column) -> DataType:
    """Of what type a column, or what a map maps to, is from now on that is there already: the wider of the two.

    ``IncompatibleTable`` where what is there can be no column of that kind.
    """
    held = known.children[1] if known.shape is Shape.MAP else known
    if known.shape is kind.shape and (kind.shape is not Shape.MAP or known.children[0].type is kind.key):
        same = held.type is kind.type or _WIDER.get(kind.type) is held.type
        if same or (kind.type is DataType.STRING and held.type in _AS_TEXT):
            return held.type
        if _WIDER.get(held.type) is kind.type and held.type not in _CANNOT_WIDEN:
            return kind.type
    raise IncompatibleTable(
        f"Column {path!r} of table {table!r} is {known.type_name}, and cannot become {_described(kind)}.",
        next_step=f"Give it as {known.surface_type}, or give the new column another name: what is left out is removed.",
    )


def _value(table: str, path: str, given: pa.DataType, kind: pa.DataType, shape: Shape) -> Kind:
    """A single value of that type, or those of a list or map."""
    kind = _plain(kind)
    found = _EXTENSIONS.get(getattr(kind, "extension_name", ""))
    if found is not None:
        return Kind(shape, found)
    for is_one, type_ in _SCALARS:
        if is_one(kind):
            return Kind(shape, type_, fields=tuple(kind) if type_ is DataType.MESSAGE else ())
    if shape is not Shape.ONE and (pa.types.is_nested(kind)):
        raise _no_type(table, path, given, "Put what lies within into a struct with one field.")
    steps = (step for is_one, step in _INSTEAD if is_one(kind))
    raise _no_type(
        table,
        path,
        given,
        next(steps, "Make it a string, binary, boolean, integer, float or timestamp, or a list, map or struct of these."),
    )


def _plain(kind: pa.DataType) -> pa.DataType:
    """What the values of an encoding are."""
    while pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        kind = kind.value_type
    return kind


def _no_type(table: str, path: str, given: pa.DataType, step: str) -> IncompatibleTable:
    return IncompatibleTable(f"Column {path!r} for table {table!r} is of the type {given}, which no column has.", next_step=step)


def _described(kind: Kind) -> str:
    if kind.key is not None:
        return f"map of {kind.key.value} to {kind.type.value}"
    return f"list of {kind.type.value}" if kind.shape is Shape.LIST else kind.type.value
