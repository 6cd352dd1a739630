"""Values and columns of users in the form in which blocks hold them (storage), checked.

Nothing is turned into text or numbers that was none. Storage columns are named by field number and hold enumerations as numbers; what
people see (surface) has the names of the ``.proto``, of columns and of an enumeration's values. What Arrow can hold and protobuf cannot
(nulls in lists, a key twice in a map, text that is not UTF-8) is refused, and an empty map or list is null, so that rows mean the same
however they are given.
"""

from __future__ import annotations

import datetime
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InvalidRows
from . import arrays
from .allowed import refuse_value
from .keys import encode_key
from .tables import UUID_BYTES, Column, DataType, Shape, Table
from .times import FIRST_TIME, LAST_TIME, in_calendar, micros
from .uuids import from_text, to_text, uuid_value

_LARGEST_FLOAT = (2 - 2**-23) * 2.0**127
_INT_BITS = {DataType.INT32: (32, True), DataType.INT64: (64, True), DataType.UINT32: (32, False), DataType.UINT64: (64, False)}
_NUMBER = re.compile("0|-?[1-9][0-9]{0,9}", re.ASCII)
"""What a number of an enumeration that has no symbol reads as."""


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
    if column.implicit and isinstance(value, str) and not value:
        return ""  # what is unset reads so
    try:
        text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), sort_keys=True, allow_nan=False)
        json.loads(text, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return _text(column, text)


def _no_constant(name: str) -> Any:
    """Python reads what is no JSON."""
    raise ValueError(f"{name} is no JSON")


def _from_numpy(value: Any, kinds: tuple[type[np.generic], ...], expected: str) -> Any:
    """What is no number of Python's and one of numpy's as Python has it; ``TypeError`` where it is neither."""
    if isinstance(value, kinds) and not isinstance(value, (np.timedelta64, np.longdouble)):
        return value.item()
    raise TypeError(expected)


def _integer(column: Column, value: Any) -> int:
    bits, signed = _INT_BITS[column.type]
    is_one = isinstance(value, int) and not isinstance(value, bool)
    number: int = value if is_one else _from_numpy(value, (np.integer,), "an integer is expected")
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    if not low <= number <= high:
        raise ValueError(f"{number} does not fit {column.type.value}")
    return number


def _timestamp(column: Column, value: Any) -> int:
    if isinstance(value, datetime.datetime):
        return micros(value)
    if isinstance(value, bool) or not isinstance(value, int):
        value = _from_numpy(value, (np.integer,), "a datetime or microseconds since the epoch are expected")
    return in_calendar(value, value)


def _bool(column: Column, value: Any) -> bool:
    return value if isinstance(value, bool) else bool(_from_numpy(value, (np.bool_,), "true or false is expected"))


def _float(column: Column, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        value = _from_numpy(value, (np.floating, np.integer), "a number is expected")
    if column.type is DataType.FLOAT and math.isfinite(value) and abs(value) > _LARGEST_FLOAT:
        raise ValueError(f"{value!r} does not fit {column.type.value}")
    return float(value)


def _enum(column: Column, value: Any) -> int:
    by_symbol = {symbol: number for number, symbol in column.symbols}
    if isinstance(value, str) and value in by_symbol:
        return by_symbol[value]
    number = int(value) if isinstance(value, str) and _NUMBER.fullmatch(value) else value
    if isinstance(number, np.generic):
        number = _from_numpy(number, (np.integer,), "a symbol or its number is expected")
    if isinstance(number, int) and not isinstance(number, bool) and -(1 << 31) <= number < 1 << 31:
        return number
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
        if not isinstance(value, Iterable) or isinstance(value, (str, bytes, Mapping)):
            raise TypeError("a list is expected")
        return [convert(column, item) for item in value] or None
    key, item = column.children
    pairs = [(storage_value(key, k), storage_value(item, v)) for k, v in _pairs(value)]
    if len({k for k, _ in pairs}) < len(pairs):
        raise ValueError("a key stands in it twice")
    return sorted(pairs, key=lambda pair: pair[0]) or None


def _pairs(value: Any) -> Iterable[Any]:
    """What a map is made of: a mapping, or lists or tuples of a key and a value."""
    if isinstance(value, Mapping):
        return value.items()
    pairs = list(value) if isinstance(value, Iterable) else [None]
    if not all(isinstance(pair, (list, tuple)) and len(pair) == 2 for pair in pairs):
        raise TypeError("a mapping, or a list of pairs, is expected")
    return pairs


def storage_fields(columns: tuple[Column, ...], row: Mapping[str, Any]) -> dict[str, Any]:
    """The set fields of a message by storage name."""
    unknown = row.keys() - {column.name for column in columns}
    if unknown:
        raise ValueError(f"no field is called {sorted(unknown, key=str)[0]!r}")
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
                next_step=f"Give a value of its type: {column.type_name}.",
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


def given_keys(table: Table, keys: Iterable[Mapping[str, Any]]) -> list[bytes]:
    """Keys given by their key columns, encoded; ``InvalidRows`` for one that lacks a column, has another, or a value that does not fit."""
    rows = (storage_row(table, key, key_only=True, number=number) for number, key in enumerate(keys))
    return [encode_key(table, {c.name: row[c.field_name] for c in table.key_columns}) for row in rows]


def storage_array(table: Table, column: Column, values: pa.Array) -> pa.Array:
    """A column given as Arrow data in storage form; ``InvalidRows`` where its type or values do not fit."""
    try:
        return _to_storage(column, values)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, ValueError, TypeError, OverflowError) as error:
        raise InvalidRows(
            f"Column {column.name!r} for table {table.name!r}: {str(error).splitlines()[0]}.",
            next_step=f"Give it as {column.surface_type}.",
        ) from None


def _to_storage(column: Column, values: pa.Array) -> pa.Array:
    values = arrays.plain(values)
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    if pa.types.is_null(values.type):
        return values.cast(column.storage_type)
    if column.shape is Shape.LIST and _is_list(values.type):
        return _lists(column, values)
    if column.shape is Shape.MAP and pa.types.is_struct(values.type):
        values = _as_maps(values)
    if column.shape is Shape.MAP and _is_list(values.type) and _is_pair(values.type.value_type):
        values = _pairs_as_maps(values)
    if column.shape is Shape.MAP and pa.types.is_map(values.type):
        return _maps(column, values)
    if column.shape is Shape.ONE and column.type in _FAMILIES:
        if not any(fits(values.type) for fits in _FAMILIES[column.type]):
            raise TypeError(f"{column.type_name} is expected, not {values.type}")
        return _scalars(column, values)
    converted = [None if value is None else storage_value(column, value) for value in values.to_pylist()]
    return pa.array(converted, column.storage_type)


def _is_pair(kind: pa.DataType) -> bool:
    return pa.types.is_struct(kind) and [field.name for field in kind] == ["key", "value"]


def _is_list(kind: pa.DataType) -> bool:
    return any(fits(kind) for fits in (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list))


_TEXT = (pa.types.is_string, pa.types.is_large_string)
_BINARY = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
_FAMILIES: dict[DataType, tuple[Callable[[pa.DataType], bool], ...]] = {
    **dict.fromkeys((DataType.STRING, DataType.JSON, DataType.CUT), _TEXT),
    DataType.BYTES: _BINARY,
    DataType.UUID: (*_TEXT, *_BINARY),
    DataType.BOOL: (pa.types.is_boolean,),
    DataType.TIMESTAMP: (pa.types.is_timestamp, pa.types.is_date, pa.types.is_integer),
    **dict.fromkeys((DataType.INT32, DataType.INT64, DataType.UINT32, DataType.UINT64), (pa.types.is_integer,)),
    **dict.fromkeys((DataType.FLOAT, DataType.DOUBLE), (pa.types.is_floating, pa.types.is_integer)),
}


def _scalars(column: Column, values: pa.Array) -> pa.Array:
    if column.type is DataType.UUID:
        is_binary = any(fits(values.type) for fits in _BINARY)
        return to_text(values.cast(UUID_BYTES) if is_binary else from_text(values))
    converted = values.cast(column.storage_type)
    if pa.types.is_string(converted.type):
        converted.validate(full=True)  # nobody has checked that it is UTF-8
    if column.type is DataType.FLOAT and not pc.is_inf(converted).equals(pc.is_inf(values.cast(pa.float64()))):
        raise ValueError("a number is too large for a float")  # a cast makes it infinite
    if column.type is DataType.JSON:
        for text in converted.drop_null().to_pylist():
            storage_value(column, text)
    if column.type is DataType.TIMESTAMP and len(converted):
        found = pc.min_max(converted.cast(pa.int64())).as_py()
        if found["min"] is not None and not FIRST_TIME <= found["min"] <= found["max"] <= LAST_TIME:
            raise ValueError("a time lies outside of the years 1 to 9999")
    if column.max_bytes and len(converted) and pa.types.is_string(converted.type) | pa.types.is_binary(converted.type):
        longest = pc.max(pc.binary_length(converted)).as_py() or 0
        if longest > column.max_bytes:
            raise ValueError(f"{longest} bytes are more than the {column.max_bytes} allowed")
    return converted


def _entries(values: pa.Array) -> tuple[arrays.Positions, arrays.Positions]:
    """For each entry of the lists or maps its row, and its place among the values below; entries of null rows do not count."""
    offsets = np.asarray(values.offsets).astype(np.int64)
    row = np.repeat(np.arange(len(values)), np.diff(offsets))
    place = np.arange(offsets[0], offsets[-1]) if len(offsets) else row
    if values.null_count:
        known = np.asarray(values.is_valid())[row]
        row, place = row[known], place[known]
    return row, place


def _offsets(row: arrays.Positions, count: int) -> pa.Array:
    """The offsets of ``count`` lists whose entries lie in these rows; lists without entries are null."""
    sizes = np.bincount(row, minlength=count)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    return pa.array(offsets, mask=np.append(sizes == 0, False))


def _as_maps(values: pa.StructArray) -> pa.Array:
    """Messages, as which frames hand over dicts, as maps of those of their fields that say something; null where they were.

    ``TypeError`` for fields of several types.
    """
    fields = [values.type.field(at) for at in range(values.type.num_fields)]
    kinds = {field.type for field in fields if not pa.types.is_null(field.type)}
    if len(kinds) > 1:
        raise TypeError(f"values of one type are expected, not {' and '.join(sorted(map(str, kinds)))}")
    kind = next(iter(kinds), pa.string())
    parts = [plain.cast(kind) for plain in (arrays.one_chunk(pc.struct_field(values, [at])) for at in range(len(fields)))]
    items = pa.concat_arrays(parts) if parts else pa.array([], kind)
    rows, width = len(values), len(fields)
    row, field = np.repeat(np.arange(rows), width), np.tile(np.arange(width), rows)
    said = np.asarray(items.is_valid())[field * rows + row] if width else np.zeros(0, dtype=bool)
    row, field = row[said], field[said]
    offsets = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=rows))]).astype(np.int32)
    names = pa.array([each.name for each in fields], pa.string()).take(pa.array(field, pa.int64()))
    made = pa.MapArray.from_arrays(pa.array(offsets), names, items.take(pa.array(field * rows + row, pa.int64())))
    return made.take(pa.array(np.arange(rows), mask=np.asarray(values.is_null()))) if values.null_count else made


def _pairs_as_maps(values: pa.Array) -> pa.Array:
    """Lists of keys with their values, as which frames without maps hand them over, as maps."""
    lists = values.cast(pa.list_(values.type.value_type))
    row, place = _entries(lists)
    keys, items = (arrays.one_chunk(pc.struct_field(lists.values, [at])).take(pa.array(place)) for at in (0, 1))
    if keys.null_count:
        raise ValueError(arrays.NULL_IN_MAP)
    return pa.MapArray.from_arrays(_offsets(row, len(values)), keys, items)


def _lists(column: Column, values: pa.Array) -> pa.Array:
    lists = values.cast(pa.list_(values.type.value_type))
    row, place = _entries(lists)
    items = _to_storage(replace(column, shape=Shape.ONE), arrays.plain(lists.values).take(pa.array(place)))
    if items.null_count:
        raise ValueError("a list holds a null")
    return pa.ListArray.from_arrays(_offsets(row, len(values)), items).cast(column.storage_type)


def _maps(column: Column, values: pa.Array) -> pa.Array:
    key, item = column.children
    row, place = _entries(values)
    keys = _to_storage(key, arrays.plain(values.keys).take(pa.array(place)))
    items = _to_storage(item, arrays.plain(values.items).take(pa.array(place)))
    if keys.null_count or items.null_count:
        raise ValueError(arrays.NULL_IN_MAP)
    names = ("row", "key")
    order = pc.sort_indices(pa.table([pa.array(row), keys], names=names), sort_keys=[(name, "ascending") for name in names])
    row, keys = row[np.asarray(order)], keys.take(order)
    if len(keys) > 1 and np.any((row[1:] == row[:-1]) & np.asarray(pc.equal(keys[1:], keys[:-1]))):
        raise ValueError("a map holds a key twice")
    return pa.MapArray.from_arrays(_offsets(row, len(values)), keys, items.take(order)).cast(column.storage_type)
