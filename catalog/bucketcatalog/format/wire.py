"""Where fields lie within a message's bytes, for what is read again by range instead of being kept."""

from __future__ import annotations

from collections.abc import Iterator

_VARINT, _FIXED64, _LENGTH_DELIMITED, _FIXED32 = 0, 1, 2, 5


def field_spans(message: bytes, number: int) -> Iterator[tuple[int, int]]:
    """Offset and length of the content of every length-delimited top-level field ``number``; ``ValueError`` where it is no message."""
    at, end = 0, len(message)
    while at < end:
        tag, at = _varint(message, at)
        kind = tag & 7
        if kind == _LENGTH_DELIMITED:
            length, at = _varint(message, at)
            if tag >> 3 == number:
                yield at, length
            at += length
        elif kind == _VARINT:
            _, at = _varint(message, at)
        elif kind in (_FIXED64, _FIXED32):
            at += 8 if kind == _FIXED64 else 4
        else:
            raise ValueError(f"wire type {kind} at byte {at}")
    if at != end:
        raise ValueError("a field ends beyond the message")


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(message):
            raise ValueError("a number ends beyond the message")
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
