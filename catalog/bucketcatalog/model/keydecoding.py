"""Keys taken apart into the values of their columns, for people who look at one: the way back from ``keys``."""

from __future__ import annotations

import datetime
import uuid
from typing import Any

from .tables import Column, DataType, Table

_SIGNED = {DataType.INT32: 4, DataType.INT64: 8, DataType.TIMESTAMP: 8}
_LENGTHS = {**_SIGNED, DataType.UINT32: 4, DataType.UINT64: 8, DataType.UUID: 16}
_MOST_OF_A_VALUE, _MOST = 60, 240
_END = b"\x00\x01"
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def decode_key(table: Table, key: bytes) -> dict[str, Any]:
    """The values of a key's columns by name, as rows show them: uuids as text, times as datetimes."""
    values, rest = {}, key
    for column in table.key_columns:
        raw, rest = _split(column, rest, last=column is table.key_columns[-1])
        values[column.name] = _value(column, raw)
    return values


def shown_key(table: Table, key: bytes) -> str:
    """A key as one bounded line, ``owner=..., name='a'``; what is no key of the table as hexadecimal digits."""
    try:
        values = [f"{name}={_bounded(_text(value), _MOST_OF_A_VALUE)}" for name, value in decode_key(table, key).items()]
    except (ValueError, OverflowError):
        values = [key.hex()]
    return _bounded(", ".join(values), _MOST)


def _text(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime.datetime) else repr(value)


def _bounded(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}..."


def _split(column: Column, key: bytes, *, last: bool) -> tuple[bytes, bytes]:
    """The bytes of the first field, and those of the fields behind it."""
    length = len(key) if last else _LENGTHS.get(column.type)
    if length is not None:
        return key[:length], key[length:]
    raw, _, rest = key.partition(_END)
    return raw.replace(b"\x00\xff", b"\x00"), rest


def _value(column: Column, raw: bytes) -> Any:
    if column.type is DataType.UUID:
        return str(uuid.UUID(bytes=raw))
    if column.type in _LENGTHS:
        number = int.from_bytes(raw, "big") - (1 << (8 * len(raw) - 1) if column.type in _SIGNED else 0)
        return _EPOCH + datetime.timedelta(microseconds=number) if column.type is DataType.TIMESTAMP else number
    return raw if column.type is DataType.BYTES else raw.decode()
