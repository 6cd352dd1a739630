"""Single rows as protobuf messages, for transactions small enough to carry their events one by one.

Rows are dictionaries of storage values by field number, as ``coerce.storage_row`` makes them; unset columns are absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from google.protobuf.message import Message

from .. import limits
from ..errors import CorruptionError
from ..model.tables import Column, DataType, Shape, Table
from ..model.times import FIRST_TIME, LAST_TIME
from ..model.uuids import uuid_bytes, uuid_text
from .bounds import UNDECODABLE, why
from .definitions import row_class

StorageRow = dict[str, Any]


def encode_row(table: Table, row: Mapping[str, Any]) -> bytes:
    """The row as its message's bytes; equal rows give equal bytes."""
    message = row_class(table.definition)()
    _fill(message, table.by_number, row)
    data: bytes = message.SerializeToString(deterministic=True)
    return data


def _fill(message: Message, columns: Mapping[str, Column], row: Mapping[str, Any]) -> None:
    for name, value in row.items():
        if value is None:
            continue
        column = columns[name]
        if column.shape is Shape.ONE:
            if column.type is DataType.MESSAGE:
                child = getattr(message, column.name)
                child.SetInParent()
                _fill(child, _by_number(column), value)
            else:
                setattr(message, column.name, _on_wire(column, value))
        elif column.shape is Shape.LIST:
            _fill_list(getattr(message, column.name), column, value)
        else:
            _fill_map(getattr(message, column.name), column, value)


def _by_number(column: Column) -> dict[str, Column]:
    return {child.field_name: child for child in column.children}


def _fill_list(items: Any, column: Column, values: Iterable[Any]) -> None:
    if column.type is not DataType.MESSAGE:
        items.extend(_on_wire(column, value) for value in values)
        return
    for value in values:
        _fill(items.add(), _by_number(column), value)


def _fill_map(entries: Any, column: Column, pairs: Iterable[tuple[Any, Any]]) -> None:
    item = column.children[1]
    for key, value in pairs:
        if item.type is DataType.MESSAGE:
            _fill(entries[key], _by_number(item), value)
        else:
            entries[key] = _on_wire(item, value)


def decode_row(table: Table, data: bytes, name: str) -> StorageRow:
    """The set columns of a row message; ``CorruptionError`` names the file where the bytes are none."""
    columns = {column.number: column for column in table.columns}
    try:
        if len(data) > limits.ACTION_BYTES:
            raise ValueError(f"it has {len(data)} bytes, and none has more than {limits.ACTION_BYTES}")
        row = _read(row_class(table.definition).FromString(data), columns)
    except UNDECODABLE as error:
        raise CorruptionError(f"{name} holds a row of table {table.name!r} that cannot be read: {why(error)}.") from None
    for column in table.key_columns:
        row.setdefault(column.field_name, column.zero)
    return row


def _read(message: Message, columns: Mapping[int, Column]) -> StorageRow:
    row: StorageRow = {}
    for field, value in message.ListFields():
        column = columns.get(field.number)
        if column is not None:
            row[column.field_name] = _value(column, value)
    return row


def _value(column: Column, value: Any) -> Any:
    if column.shape is not Shape.ONE and len(value) > limits.ACTION_VALUES:
        raise ValueError(f"its {column.name} has {len(value)} values, and none has more than {limits.ACTION_VALUES}")
    if column.shape is Shape.MAP:
        item = column.children[1]
        return sorted((key, _single(item, entry)) for key, entry in value.items())
    if column.shape is Shape.LIST:
        return [_single(column, entry) for entry in value]
    return _single(column, value)


def _single(column: Column, value: Any) -> Any:
    if column.type is DataType.MESSAGE:
        return _read(value, {child.number: child for child in column.children})
    if column.type is DataType.TIMESTAMP:
        if not FIRST_TIME <= value <= LAST_TIME:
            raise ValueError(f"its {column.name}, {value}, lies outside of the years 1 to 9999")
        return value
    if column.type is not DataType.UUID:
        return value
    if len(value) != 16:
        raise ValueError(f"its {column.name} has {len(value)} bytes where a uuid has 16")
    return uuid_text(value)


def _on_wire(column: Column, value: Any) -> Any:
    """What a field holds of a value that is no message: a uuid's 16 bytes."""
    return uuid_bytes(value) if column.type is DataType.UUID else value
