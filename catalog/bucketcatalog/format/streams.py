"""Arrow streams: what reading one would take, by what it says of itself, known before anything of it is decoded.

A decoder believes a stream. A few bytes can stand for a buffer of any size once they are decompressed, and values of some types need no
bytes at all. A block's stream is a schema and one batch, without dictionaries; what the batch says of its buffers stands in a FlatBuffer,
of which as much is read here as it takes to add them up. Source: Arrow's columnar format, "Encapsulated message format"; ``Message.fbs``.
"""

from __future__ import annotations

from struct import Struct, error
from typing import NamedTuple

from .. import limits

_CONTINUATION = 0xFFFFFFFF
_SCHEMA, _RECORD_BATCH = 1, 3
"""Kinds of messages."""
_KIND, _HEADER, _BODY, _MORE = 1, 2, 3, 4
"""Fields of a message; the last one, with which early releases of Arrow have spoken of compression, a block has not."""
_ROWS, _NODES, _BUFFERS, _COMPRESSION = 0, 1, 2, 3
"""Of a record batch."""
_AS_IT_IS = -1
"""What stands where the length of a buffer without compression should, if it is not compressed."""
_OF_A_VALUE = 4
"""What a value takes to be read beside its bytes, as of a row group."""
_PREFIX, _U16, _I32, _U32, _I64, _PAIR = (Struct(f"<{kind}") for kind in ("II", "H", "i", "I", "q", "qq"))


class _Message(NamedTuple):
    """A message of a stream: its kind, where its header lies, where its body begins, and how long that is."""

    kind: int
    header: int
    start: int
    length: int


def check_stream(data: bytes, rows: int) -> None:
    """``ValueError`` where a stream is not one batch of so many rows, or comes to more than anything that is read of a block."""
    if rows > limits.BLOCK_ROWS:
        raise ValueError(f"it claims {rows} rows, and none has more than {limits.BLOCK_ROWS}")
    try:
        schema = _message(data, 0)
        batch = _message(data, schema.start + schema.length)
        at = batch.start + batch.length
        if schema.kind != _SCHEMA or batch.kind != _RECORD_BATCH or _goes_on(data, at):
            raise ValueError("its stream is not of one batch without dictionaries")
        if (claimed := _number(data, batch.header, _ROWS)) != rows:
            raise ValueError(f"its stream has {claimed} rows, and not {rows}")
        size = _size(data, batch)
    except (error, IndexError):
        raise ValueError("its stream ends within what it says of itself") from None
    if size > limits.GROUP_BYTES:
        raise ValueError(f"its stream comes to {size} bytes, and none to more than {limits.GROUP_BYTES}")


def _message(data: bytes, at: int) -> _Message:
    """The message that begins at an offset."""
    mark, length = _PREFIX.unpack_from(data, at)
    start = at + _PREFIX.size
    if mark != _CONTINUATION or not length or start + length > len(data):
        raise ValueError("its stream is not made of messages")
    table = start + _U32.unpack_from(data, start)[0]
    kind, header = _field(data, table, _KIND), _field(data, table, _HEADER)
    body = _number(data, table, _BODY)
    if not kind or not header or _field(data, table, _MORE) or body < 0 or start + length + body > len(data):
        raise ValueError("its stream has a message that is none of a block's, or that ends beyond it")
    return _Message(data[kind], header + _U32.unpack_from(data, header)[0], start + length, body)


def _goes_on(data: bytes, at: int) -> bool:
    """Whether another message begins there: a stream ends by saying so, or by itself."""
    return len(data) - at >= _PREFIX.size and _PREFIX.unpack_from(data, at)[1] != 0


def _field(data: bytes, table: int, number: int) -> int:
    """Where a field of a table lies; 0 where it is not there."""
    known = table - int(_I32.unpack_from(data, table)[0])
    at = 4 + 2 * number
    if known < 0 or at + 2 > _U16.unpack_from(data, known)[0]:
        return 0
    offset = int(_U16.unpack_from(data, known + at)[0])
    return table + offset if offset else 0


def _number(data: bytes, table: int, number: int) -> int:
    """A field that is an integer of 64 bits."""
    at = _field(data, table, number)
    return int(_I64.unpack_from(data, at)[0]) if at else 0


def _pairs(data: bytes, table: int, number: int) -> list[tuple[int, int]]:
    """A field that is a list of pairs of such integers."""
    at = _field(data, table, number)
    if not at:
        return []
    at += _U32.unpack_from(data, at)[0]
    (count,), start = _U32.unpack_from(data, at), at + 4
    if start + count * _PAIR.size > len(data):
        raise ValueError("its stream has a list that ends beyond it")
    return list(_PAIR.iter_unpack(memoryview(data)[start : start + count * _PAIR.size]))


def _size(data: bytes, batch: _Message) -> int:
    """To how many bytes a batch comes when it is read: its buffers without compression, and something for each value."""
    size = 0
    for values, _ in _pairs(data, batch.header, _NODES):
        if values < 0:
            raise ValueError("its stream has less than no values")
        size += _OF_A_VALUE * values
    is_packed = bool(_field(data, batch.header, _COMPRESSION))
    for offset, length in _pairs(data, batch.header, _BUFFERS):
        if offset < 0 or length < 0 or offset + length > batch.length:
            raise ValueError("its stream has a buffer that lies beyond it")
        if is_packed and length:
            (unpacked,) = _I64.unpack_from(data, batch.start + offset)
            if unpacked < _AS_IT_IS:
                raise ValueError(f"its stream has a buffer of {unpacked} bytes")
            size += max(unpacked, length - _I64.size) if unpacked != _AS_IT_IS else length
        else:
            size += length
    return size
