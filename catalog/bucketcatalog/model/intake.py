"""Arrow columns as users give them, in the form that blocks hold, a whole column at a time.

A column is taken in any Arrow type that holds the same values and refused in any other: nothing is turned into text or numbers that was
none. What Arrow can hold and protobuf cannot (nulls in lists, a key twice in a map, text that is not UTF-8) is refused, and an empty list
or map is null, so that rows mean the same however they are given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InvalidRows
from . import uuids
from .coerce import FIRST_TIME, LAST_TIME, storage_value
from .tables import UUID_STORAGE, Column, DataType, Shape, Table

Rows = npt.NDArray[np.int64]


def storage_array(table: Table, column: Column, values: pa.Array) -> pa.Array:
    """A column given as Arrow data in storage form; ``InvalidRows`` where its type or values do not fit."""
    try:
        return _to_storage(column, values)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, ValueError, TypeError) as error:
        raise InvalidRows(
            f"Column {column.name!r} for table {table.name!r}: {str(error).splitlines()[0]}.",
            next_step=f"Give it as {column.surface_type}.",
        ) from None


def _to_storage(column: Column, values: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    if pa.types.is_null(values.type):
        return values.cast(column.storage_type)
    if column.shape is Shape.LIST and _is_list(values.type):
        return _lists(column, values)
    if column.shape is Shape.MAP and pa.types.is_map(values.type):
        return _maps(column, values)
    if column.shape is Shape.ONE and column.type in _FAMILIES:
        if not any(fits(values.type) for fits in _FAMILIES[column.type]):
            raise TypeError(f"a {column.type.value} is expected, not {values.type}")
        return _scalars(column, values)
    converted = [None if value is None else storage_value(column, value) for value in values.to_pylist()]
    return pa.array(converted, column.storage_type)


def _is_list(kind: pa.DataType) -> bool:
    return any(fits(kind) for fits in (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list))


_TEXT = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
_BINARY = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary)
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
        return values.cast(UUID_STORAGE) if is_binary else uuids.from_text(values)
    converted = values.cast(column.storage_type)
    if pa.types.is_string(converted.type):
        converted.validate(full=True)  # nobody has checked that it is UTF-8
    if column.type is DataType.FLOAT and not pc.is_inf(converted).equals(pc.is_inf(values.cast(pa.float64()))):
        raise ValueError("a number is too large for a float")  # a cast makes it infinite
    if column.type is DataType.JSON:
        for text in converted.drop_null().to_pylist():
            storage_value(column, text)
    if column.type is DataType.TIMESTAMP and len(converted):
        bounds = pc.min_max(converted.cast(pa.int64())).as_py()
        if bounds["min"] is not None and not FIRST_TIME <= bounds["min"] <= bounds["max"] <= LAST_TIME:
            raise ValueError("a time lies outside of the years 1 to 9999")
    if column.max_bytes and len(converted) and pa.types.is_string(converted.type) | pa.types.is_binary(converted.type):
        longest = pc.max(pc.binary_length(converted)).as_py() or 0
        if longest > column.max_bytes:
            raise ValueError(f"{longest} bytes are more than the {column.max_bytes} allowed")
    return converted


def _entries(values: pa.Array) -> tuple[Rows, Rows]:
    """For each entry of the lists or maps its row, and its place among the values below; entries of null rows do not count."""
    offsets = np.asarray(values.offsets).astype(np.int64)
    row = np.repeat(np.arange(len(values)), np.diff(offsets))
    place = np.arange(offsets[0], offsets[-1]) if len(offsets) else row
    if values.null_count:
        known = np.asarray(values.is_valid())[row]
        row, place = row[known], place[known]
    return row, place


def _offsets(row: Rows, count: int) -> pa.Array:
    """The offsets of ``count`` lists whose entries lie in these rows; lists without entries are null."""
    sizes = np.bincount(row, minlength=count)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    return pa.array(offsets, mask=np.append(sizes == 0, False))


def _lists(column: Column, values: pa.Array) -> pa.Array:
    plain = values.cast(pa.list_(values.type.value_type))
    row, place = _entries(plain)
    items = _to_storage(replace(column, shape=Shape.ONE), plain.values.take(pa.array(place)))
    if items.null_count:
        raise ValueError("a list holds a null")
    return pa.ListArray.from_arrays(_offsets(row, len(values)), items).cast(column.storage_type)


def _maps(column: Column, values: pa.Array) -> pa.Array:
    key, item = column.children
    row, place = _entries(values)
    keys = _to_storage(key, values.keys.take(pa.array(place)))
    items = _to_storage(item, values.items.take(pa.array(place)))
    if keys.null_count or items.null_count:
        raise ValueError("a map holds a null")
    names = ("row", "key")
    order = pc.sort_indices(pa.table([pa.array(row), keys], names=names), sort_keys=[(name, "ascending") for name in names])
    row, keys = row[np.asarray(order)], keys.take(order)
    if len(keys) > 1 and np.any((row[1:] == row[:-1]) & np.asarray(pc.equal(keys[1:], keys[:-1]))):
        raise ValueError("a map holds a key twice")
    return pa.MapArray.from_arrays(_offsets(row, len(values)), keys, items.take(order)).cast(column.storage_type)
