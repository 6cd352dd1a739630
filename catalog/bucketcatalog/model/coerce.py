"""Values between how blocks hold them (storage) and how people see them (surface).

Storage columns are named by field number and hold uuids as 16 bytes and enumerations as numbers; surface columns have the names of the
``.proto`` and hold both as text. An empty map or list is null on both sides, as protobuf cannot tell the two apart.
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InvalidRows
from . import uuids
from .arrays import convert_list, convert_map
from .keys import uuid_value
from .minimums import refuse_value
from .tables import Column, DataType, Shape, Table

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)
_LARGEST_FLOAT = (2 - 2**-23) * 2.0**127
_INT_BITS = {DataType.INT32: (32, True), DataType.INT64: (64, True), DataType.UINT32: (32, False), DataType.UINT64: (64, False)}


def micros(value: datetime.datetime) -> int:
    """Microseconds since the epoch; a time without zone is UTC."""
    aware = value if value.tzinfo else value.replace(tzinfo=datetime.UTC)
    return (aware - _EPOCH) // _MICROSECOND


FIRST_TIME = micros(datetime.datetime.min.replace(tzinfo=datetime.UTC))
LAST_TIME = micros(datetime.datetime.max.replace(tzinfo=datetime.UTC))
"""What a datetime can be, in microseconds: a time that nobody could show is refused."""


def _text(column: Column, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("text is expected")
    size = len(value.encode())  # a lone surrogate is no UTF-8 and raises here
    if column.max_bytes and size > column.max_bytes:
        raise ValueError(f"{size} bytes are more than the {column.max_bytes} allowed")
    return value


def _bytes(column: Column, value: Any) -> bytes:
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise TypeError("bytes are expected")
    if column.max_bytes and len(value) > column.max_bytes:
        raise ValueError(f"{len(value)} bytes are more than the {column.max_bytes} allowed")
    return bytes(value)


def _json(column: Column, value: Any) -> str:
    try:
        text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), sort_keys=True, allow_nan=False)
        json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return _text(column, text)


def _integer(column: Column, value: Any) -> int:
    bits, signed = _INT_BITS[column.type]
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError("an integer is expected")
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    if not low <= value <= high:
        raise ValueError(f"{value} does not fit {column.type.value}")
    return value


def _timestamp(column: Column, value: Any) -> int:
    if isinstance(value, datetime.datetime):
        return micros(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError("a datetime or microseconds since the epoch are expected")
    if not FIRST_TIME <= value <= LAST_TIME:
        raise ValueError(f"{value} lies outside of the years 1 to 9999")
    return value


def _bool(column: Column, value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError("true or false is expected")
    return value


def _float(column: Column, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError("a number is expected")
    if column.type is DataType.FLOAT and math.isfinite(value) and abs(value) > _LARGEST_FLOAT:
        raise ValueError(f"{value!r} does not fit {column.type.value}")
    return float(value)


def _enum(column: Column, value: Any) -> int:
    by_symbol = {symbol: number for number, symbol in column.symbols}
    if value in by_symbol:
        return by_symbol[value]
    if isinstance(value, int) and not isinstance(value, bool) and -(1 << 31) <= value < 1 << 31:
        return value
    raise ValueError(f"{value!r} is none of {', '.join(by_symbol)}")


def _message(column: Column, value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise TypeError("a mapping of fields is expected")
    return storage_fields(column.children, value)


_VALUES: dict[DataType, Callable[[Column, Any], Any]] = {
    DataType.STRING: _text,
    DataType.CUT: _text,
    DataType.BYTES: _bytes,
    DataType.UUID: lambda _, value: uuid_value(value),
    DataType.JSON: _json,
    DataType.TIMESTAMP: _timestamp,
    DataType.BOOL: _bool,
    DataType.FLOAT: _float,
    DataType.DOUBLE: _float,
    DataType.ENUM: _enum,
    DataType.MESSAGE: _message,
    **dict.fromkeys(_INT_BITS, _integer),
}


def storage_value(column: Column, value: Any) -> Any:
    """One surface value in storage form; ``TypeError`` or ``ValueError`` says what does not fit."""
    convert = _VALUES[column.type]
    if column.shape is Shape.ONE:
        return convert(column, value)
    if column.shape is Shape.LIST:
        if isinstance(value, (str, bytes, Mapping)):
            raise TypeError("a list is expected")
        return [convert(column, item) for item in value] or None
    key, item = column.children
    pairs = [(storage_value(key, k), storage_value(item, v)) for k, v in (value.items() if isinstance(value, Mapping) else value)]
    if len({k for k, _ in pairs}) < len(pairs):
        raise ValueError("a key stands in it twice")
    return sorted(pairs, key=lambda pair: pair[0]) or None


def storage_fields(columns: tuple[Column, ...], row: Mapping[str, Any]) -> dict[str, Any]:
    """The set fields of a message by storage name."""
    unknown = row.keys() - {column.name for column in columns}
    if unknown:
        raise ValueError(f"no field is called {sorted(unknown)[0]!r}")
    return {c.field_name: storage_value(c, row[c.name]) for c in columns if row.get(c.name) is not None}


def storage_row(table: Table, row: Mapping[str, Any], *, key_only: bool = False, number: int = 0) -> dict[str, Any]:
    """A row's set columns by storage name, checked against the table; ``InvalidRows`` names row and column.

    With ``key_only`` the row is a key: every key column and nothing else.
    """
    stored: dict[str, Any] = {}
    for name, value in row.items():
        column = table.by_name.get(name)
        if column is None or (key_only and name not in table.key):
            what = "key columns" if key_only else "columns"
            known = ", ".join(table.key if key_only else table.by_name)
            raise InvalidRows(
                f"Row {number} for table {table.name!r} has the column {name!r}, which it does not take.",
                next_step=f"Its {what} are {known}.",
            )
        if value is None:
            continue
        try:
            stored[column.field_name] = storage_value(column, value)
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidRows(
                f"Row {number} for table {table.name!r}, column {name!r}: {error}.",
                next_step=f"Give it a {column.type.value} ({column.shape.value}).",
            ) from None
        if not key_only:
            refuse_value(table, column, stored[column.field_name], number)
    for column in table.key_columns:
        if column.field_name not in stored:
            raise InvalidRows(
                f"Row {number} for table {table.name!r} lacks the key column {column.name!r}.",
                next_step=f"Give every row {', '.join(table.key)}.",
            )
    return stored


def surface_array(column: Column, values: pa.Array) -> pa.Array:
    """A storage column as people see it."""
    if column.implicit and values.null_count:
        values = pc.fill_null(values, column.zero)
    if values.type == column.surface_type:
        return values
    if column.shape is Shape.LIST:
        return convert_list(values, partial(surface_array, _one(column)))
    if column.shape is Shape.MAP:
        key, item = column.children
        return convert_map(values, partial(surface_array, key), partial(surface_array, item))
    if column.type is DataType.UUID:
        return uuids.to_text(values)
    if column.type is DataType.ENUM:
        return _symbols(column, values)
    children = [surface_array(c, values.field(i)) for i, c in enumerate(column.children)]
    fields = [pa.field(c.name, c.surface_type) for c in column.children]
    return pa.StructArray.from_arrays(children, fields=fields, mask=values.is_null() if values.null_count else None)


def _one(column: Column) -> Column:
    return Column(column.number, column.name, column.type, children=column.children, symbols=column.symbols)


def _symbols(column: Column, values: pa.Array) -> pa.Array:
    numbers = pa.array([number for number, _ in column.symbols], pa.int32())
    names = pa.array([name for _, name in column.symbols], pa.string())
    return pc.coalesce(names.take(pc.index_in(values, value_set=numbers)), values.cast(pa.string()))
