"""Keys as bytes whose order is the order of the rows.

A key is the concatenation of its fields' encodings: a uuid is its 16 bytes; an integer is big-endian in its protobuf width, signed ones
with the sign bit flipped; a string (UTF-8) or bytes field is itself where it is the key's last field, else with every NUL escaped as
``00 FF`` and ended by ``00 01``. So keys compare as plain bytes, field by field, and all keys with the same leading fields, or with a
last field that begins alike, are one range.

Keys taken apart into the values of their columns, for people who look at one: the way back from ``keys``.
"""

from __future__ import annotations

import datetime
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InvalidRows
from .arrays import is_constant, one_chunk
from .tables import Column, DataType, Table
from .times import datetime_of
from .uuids import from_text, uuid_bytes, uuid_text

_INTEGERS = {
    DataType.INT32: (4, True),
    DataType.UINT32: (4, False),
    DataType.INT64: (8, True),
    DataType.UINT64: (8, False),
    DataType.TIMESTAMP: (8, True),
}
_BIG_ENDIAN = {(4, True): ">i4", (4, False): ">u4", (8, True): ">i8", (8, False): ">u8"}
_NUL, _ESCAPED_NUL, _END = b"\x00", b"\x00\xff", b"\x00\x01"


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The keys from ``start`` on and before ``stop``; without a ``stop``, all of them."""

    start: bytes = b""
    stop: bytes | None = None

    @classmethod
    def closed(cls, first: bytes, last: bytes) -> KeyRange:
        """The keys from ``first`` to ``last``, both included."""
        return cls(first, last + _NUL)

    def overlaps(self, first: bytes, last: bytes) -> bool:
        """Whether a run of keys from ``first`` to ``last`` (both included) can hold a key of the range."""
        return last >= self.start and (self.stop is None or first < self.stop)

    def covers(self, first: bytes, last: bytes) -> bool:
        """Whether all of a run of keys from ``first`` to ``last`` (both included) lie in the range."""
        return first >= self.start and (self.stop is None or last < self.stop)

    def intersect(self, other: KeyRange) -> KeyRange | None:
        """The keys in both, or None."""
        start = max(self.start, other.start)
        stops = [stop for stop in (self.stop, other.stop) if stop is not None]
        stop = min(stops) if stops else None
        return None if stop is not None and start >= stop else KeyRange(start, stop)

    def without(self, other: KeyRange) -> list[KeyRange]:
        """The parts that are not in the other, in order."""
        before = self.intersect(KeyRange(b"", other.start)) if other.start else None
        after = self.intersect(KeyRange(other.stop, None)) if other.stop is not None else None
        return [part for part in (before, after) if part is not None]


EVERYTHING = KeyRange()


def after_prefix(prefix: bytes) -> bytes | None:
    """The smallest bytes that sort after everything that begins with ``prefix``, or None where nothing does."""
    stripped = prefix.rstrip(b"\xff")
    return stripped[:-1] + bytes([stripped[-1] + 1]) if stripped else None


def encode_value(column: Column, value: Any, *, last: bool) -> bytes:
    """One field of a key, from a Python value in storage form."""
    if column.type in _INTEGERS:
        width, signed = _INTEGERS[column.type]
        return (int(value) + (1 << (8 * width - 1) if signed else 0)).to_bytes(width, "big")
    if column.type is DataType.UUID:
        return uuid_bytes(value)
    raw = value.encode() if isinstance(value, str) else bytes(value)
    if last:
        return raw
    return raw.replace(_NUL, _ESCAPED_NUL) + _END


def encode_key(table: Table, row: Mapping[str, Any]) -> bytes:
    """The key of a row given by surface names and storage values."""
    columns = table.key_columns
    return b"".join(encode_value(column, row[column.name], last=column is columns[-1]) for column in columns)


def prefix_range(table: Table, leading: Sequence[Any], last_prefix: str | bytes | None = None) -> KeyRange:
    """The keys whose first fields equal ``leading`` and whose next field begins with ``last_prefix``.

    A prefix works on any string or bytes field: an inner one is escaped but not ended.
    """
    columns = table.key_columns
    parts = [encode_value(column, value, last=column is columns[-1]) for column, value in zip(columns, leading, strict=False)]
    if last_prefix is None and len(leading) == len(columns):
        key = b"".join(parts)
        return KeyRange(key, key + _NUL)
    if last_prefix:
        raw = last_prefix.encode() if isinstance(last_prefix, str) else last_prefix
        inner = len(leading) < len(columns) - 1
        parts.append(raw.replace(_NUL, _ESCAPED_NUL) if inner else raw)
    start = b"".join(parts)
    return KeyRange(start, after_prefix(start))


def encode_array(column: Column, values: pa.Array, *, last: bool) -> pa.Array:
    """``encode_value`` over a storage array without nulls, as binary."""
    if column.type in _INTEGERS:
        width, signed = _INTEGERS[column.type]
        numbers = values.cast(pa.int64()).to_numpy() if column.type is DataType.TIMESTAMP else values.to_numpy()
        if signed:
            unsigned = numbers.astype(f"u{width}") ^ np.array(1 << (8 * width - 1), dtype=f"u{width}")
        else:
            unsigned = numbers
        packed = np.ascontiguousarray(unsigned.astype(_BIG_ENDIAN[width, False]))
        return pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(values), [None, pa.py_buffer(packed)]).cast(pa.binary())
    if column.type is DataType.UUID:
        return from_text(values).cast(pa.binary())
    raw = values.cast(pa.binary())
    if last:
        return raw
    return pc.binary_join_element_wise(pc.replace_substring(raw, _NUL, _ESCAPED_NUL), _END, b"")


def encode_keys(table: Table, columns: Mapping[str, pa.Array] | pa.RecordBatch | pa.Table) -> pa.Array:
    """The keys of rows given as storage columns named by field number; ``InvalidRows`` where a key field is null."""
    parts = []
    for column in table.key_columns:
        values, last = one_chunk(columns[column.field_name]), column is table.key_columns[-1]
        if values.null_count:
            raise _without_key(table, column, values.null_count)
        if last or len(values) < 2 or not is_constant(values):
            parts.append(encode_array(column, values, last=last))
        elif column.type is DataType.UUID:  # most rows that lie together are of one owner and bucket
            parts.append(_encoded_uuid(values[0].as_py()))
        else:
            parts.append(encode_array(column, values[:1], last=False)[0])
    return parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, b"")


@lru_cache(maxsize=1_024)
def _encoded_uuid(text: str) -> pa.Scalar:
    return from_text(pa.array([text])).cast(pa.binary())[0]


def key_at(table: Table, columns: Mapping[str, pa.Array] | pa.Table, row: int) -> bytes:
    """The key of one of the rows given as storage columns; ``InvalidRows`` where a key field is null."""
    values = {column.name: columns[column.field_name][row] for column in table.key_columns}
    for column in table.key_columns:
        if not values[column.name].is_valid:
            raise _without_key(table, column, 1)
    return encode_key(table, {c.name: _storage_value(c, values[c.name]) for c in table.key_columns})


def _storage_value(column: Column, value: pa.Scalar) -> Any:
    return value.value if column.type is DataType.TIMESTAMP else value.as_py()


def _without_key(table: Table, column: Column, rows: int) -> InvalidRows:
    return InvalidRows(
        f"The key column {column.name!r} of table {table.name!r} is empty in {rows} rows.",
        next_step="Give every row all of its key columns.",
    )


def shared_columns(table: Table, first: bytes, last: bytes) -> int:
    """How many leading key columns, never all, have one value in all keys from ``first`` to ``last``."""
    end, count = 0, 0
    for column in table.key_columns[:-1]:
        if column.type in _INTEGERS:
            end += _INTEGERS[column.type][0]
        elif column.type is DataType.UUID:
            end += 16
        else:
            end = first.index(_END, end) + len(_END)  # an escaped NUL is no end
        if first[:end] != last[:end]:
            break
        count += 1
    return count


@cache
def without_leading(table: Table, count: int) -> Table:
    """The table as if the first ``count`` columns of its key were none of the key."""
    return replace(table, key=table.key[count:])


def rows_within(table: Table, columns: Mapping[str, pa.Array], count: int, keys: KeyRange) -> tuple[int, int]:
    """The first row in the range and the first behind it, of ``count`` rows in order of their keys; looks at few of them."""
    at = partial(key_at, table, columns)
    start = bisect_left(range(count), keys.start, key=at)
    if keys.stop is None:
        return start, count
    step = 1
    while start + step < count and at(start + step) < keys.stop:
        step *= 2  # most ranges that end within a block are of few rows
    return start, bisect_left(range(count), keys.stop, lo=start, hi=min(start + step, count), key=at)


def lower_bound(keys: pa.Array, key: bytes) -> int:
    """The number of sorted ``keys`` that sort before ``key``; looks at a logarithmic number."""
    return bisect_left(range(len(keys)), key, key=lambda at: keys[at].as_py())


def lies_within(keys: pa.Array | pa.ChunkedArray, within: KeyRange) -> pa.Array | pa.ChunkedArray:
    """For each key, in whatever order they are, whether it lies in the range."""
    inside = pc.greater_equal(keys, pa.scalar(within.start, keys.type))
    return inside if within.stop is None else pc.and_(inside, pc.less(keys, pa.scalar(within.stop, keys.type)))


def span(keys: pa.Array, within: KeyRange) -> tuple[int, int]:
    """Where the sorted ``keys`` that lie in the range begin and end."""
    return lower_bound(keys, within.start), len(keys) if within.stop is None else lower_bound(keys, within.stop)


_SIGNED = {DataType.INT32: 4, DataType.INT64: 8, DataType.TIMESTAMP: 8}
_LENGTHS = {**_SIGNED, DataType.UINT32: 4, DataType.UINT64: 8, DataType.UUID: 16}
_MOST_OF_A_VALUE, _MOST = 60, 240


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
        return uuid_text(raw)
    if column.type in _LENGTHS:
        number = int.from_bytes(raw, "big") - (1 << (8 * len(raw) - 1) if column.type in _SIGNED else 0)
        return datetime_of(number) if column.type is DataType.TIMESTAMP else number
    return raw if column.type is DataType.BYTES else raw.decode()
