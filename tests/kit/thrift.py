"""Thrift's compact protocol, as Parquet's footers and page headers have it: read and written without knowing what the fields mean."""

from __future__ import annotations

from typing import Any, NamedTuple

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)


class Value(NamedTuple):
    """A value with its type: an int, bytes, a ``Struct``, or a ``List`` of values."""

    kind: int
    value: Any


class List(list[Any]):
    """The items of a list, all of one type, and how many the list claims to have where that is a lie."""

    def __init__(self, kind: int, items: Any = (), claims: int | None = None) -> None:
        super().__init__(items)
        self.kind = kind
        self.claims = claims


class Struct(dict[int, Value]):
    """Fields by their numbers, in the order in which they are written; ``raw`` is written in place of them."""

    raw: bytes | None = None

    def get_value(self, number: int, missing: Any = None) -> Any:
        """What a field holds."""
        return self[number].value if number in self else missing

    def put(self, number: int, kind: int, value: Any) -> None:
        """Set a field; the fields stay in the order of their numbers."""
        self[number] = Value(kind, value)
        ordered = sorted(self.items())
        self.clear()
        self.update(ordered)


def i32(value: int) -> Value:
    """A number of 32 bits."""
    return Value(I32, value)


def i64(value: int) -> Value:
    """A number of 64 bits."""
    return Value(I64, value)


def binary(value: bytes) -> Value:
    """Text or bytes."""
    return Value(BINARY, value)


def _varint(data: Any, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def _zigzag(data: Any, at: int) -> tuple[int, int]:
    value, at = _varint(data, at)
    return value >> 1 ^ -(value & 1), at


def read_struct(data: Any, at: int = 0) -> tuple[Struct, int]:
    """The struct that begins there, and where it ends."""
    found, number = Struct(), 0
    while (head := data[at]) != 0:
        at += 1
        if head >> 4:
            number += head >> 4
        else:
            number, at = _zigzag(data, at)
        kind = head & 15
        value, at = (None, at) if kind in (TRUE, FALSE) else _read(data, at, kind)
        found[number] = Value(kind, value)
    return found, at + 1


def _read(data: Any, at: int, kind: int) -> tuple[Any, int]:
    if kind in (I16, I32, I64):
        return _zigzag(data, at)
    if kind in (BYTE, TRUE, FALSE):
        return data[at], at + 1
    if kind == DOUBLE:
        return bytes(data[at : at + 8]), at + 8
    if kind == BINARY:
        length, at = _varint(data, at)
        return bytes(data[at : at + length]), at + length
    if kind == STRUCT:
        return read_struct(data, at)
    assert kind == LIST, kind
    head, at = data[at], at + 1
    count = head >> 4
    if count == 15:
        count, at = _varint(data, at)
    items = List(head & 15)
    for _ in range(count):
        item, at = _read(data, at, items.kind)
        items.append(item)
    return items, at


def varint(value: int) -> bytes:
    """A number without a sign."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def zigzag(value: int) -> bytes:
    """A number with a sign."""
    return varint(value << 1 if value >= 0 else (-value << 1) - 1)


def write_struct(struct: Struct) -> bytes:
    """The bytes of a struct."""
    if struct.raw is not None:
        return struct.raw
    out, before = [], 0
    for number, (kind, value) in struct.items():
        step = number - before
        out.append(bytes([step << 4 | kind]) if 0 < step < 16 else bytes([kind]) + zigzag(number))
        if kind not in (TRUE, FALSE):
            out.append(_write(kind, value))
        before = number
    return b"".join([*out, b"\0"])


def _write(kind: int, value: Any) -> bytes:
    if kind in (I16, I32, I64):
        return zigzag(value)
    if kind in (BYTE, TRUE, FALSE):
        return bytes([value])
    if kind == DOUBLE:
        return bytes(value)
    if kind == BINARY:
        return varint(len(value)) + value
    if kind == STRUCT:
        return write_struct(value)
    count = len(value) if value.claims is None else value.claims
    head = bytes([count << 4 | value.kind]) if count < 15 else bytes([0xF0 | value.kind]) + varint(count)
    return head + b"".join(_write(value.kind, item) for item in value)
