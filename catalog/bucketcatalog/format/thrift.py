"""Thrift's compact protocol, in which Parquet writes footers and page headers: structs to dictionaries, by field number.

What is read here takes no more memory than a few times its bytes, whatever it claims. ``ValueError`` or ``IndexError`` is what everything
raises where the bytes are none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Data = bytes | memoryview
Struct = dict[int, Any]
"""Numbers and flags, bytes, lists and structs by field number."""

Known = Mapping[int, Any]
"""Which fields of a struct are looked at, by number: each is of a type, a list of one, such as ``[I64]``, or a struct, itself a mapping."""

_TRUE, _FALSE, _BYTE, I16, I32, I64, _DOUBLE, BINARY, LIST, STRUCT = 1, 2, 3, 4, 5, 6, 7, 8, 9, 12
_INTEGERS = (I16, I32, I64)
_FLAGS = (_TRUE, _FALSE)
_OUT_OF_ORDER = "its fields are not in order"  # one says its number, as none of Parquet's has to: so it may come again
_LAST = (1 << 15) - 1
"""The largest number that a field can have; libraries take one beyond it for another."""
_DEEPEST = 8
"""Structs and lists within each other; Parquet's have five."""


def read_struct(data: Data, at: int, depth: int = 0) -> tuple[Struct, int]:
    """The struct that begins at ``at``, and where it ends."""
    found, at = read_fields(data, at, depth)
    return found, at + 1


def read_fields(data: Data, at: int, depth: int = 0, *, after: int = 0, before: int = 1 << 16) -> tuple[Struct, int]:
    """The fields of a struct from ``at`` on, and where its end stands, or the first field that is ``before`` or a later one.

    At ``at`` the struct begins, or what comes ``after`` one of its fields.
    """
    found: Struct = {}
    number = after
    while head := data[at]:
        if head < 16:
            raise ValueError(_OUT_OF_ORDER)
        number += head >> 4
        if number >= before:
            return found, at
        at += 1
        kind = head & 15
        if kind in _INTEGERS:
            value = data[at]
            at += 1
            if value > 127:
                value, at = _varint(data, at - 1)
            found[number] = value >> 1 ^ -(value & 1)
        elif kind in _FLAGS:
            found[number] = kind == _TRUE
        else:
            found[number], at = _value(data, at, kind, depth)
    return found, at


def skip_fields(data: Data, at: int, depth: int = 0) -> int:
    """Where a struct ends of which a field, or the end, begins at ``at``."""
    while head := data[at]:
        at += 1
        kind = head & 15
        if head < 16:
            raise ValueError(_OUT_OF_ORDER)
        if kind in _INTEGERS:
            while data[at] > 127:
                at += 1
            at += 1
        elif kind > _FALSE:
            at = _skip(data, at, kind, depth)
    return at + 1


def read_known(data: Data, at: int, known: Known, depth: int = 0, *, after: int = 0, before: int = 1 << 16) -> tuple[Struct, int]:
    """Of the fields of a struct those that are known, as libraries read them that were made for these; else as ``read_fields``.

    Of a list whose items are no structs, or such as nothing is known of, it is said how many there are. Libraries pass over a field of
    another type than they know, so it is left out here. The items of a list they take for what they know, whatever these say that they
    are, so there another type is an error. A field may say its number, as those far from the last one do.
    """
    found: Struct = {}
    number = after
    while head := data[at]:
        start = at + 1
        if head > 15:
            number += head >> 4
        else:
            number, start = _said(data, start, number)
        if number >= before:
            return found, at
        at, kind, wanted = start, head & 15, known.get(number)
        if kind in _INTEGERS:
            value = data[at]
            at += 1
            if value > 127:
                value, at = _varint(data, at - 1)
            if kind == wanted:
                found[number] = value >> 1 ^ -(value & 1)
        elif kind == BINARY:
            start, at = _after_text(data, at)
            if wanted == BINARY:
                found[number] = data[start:at]
        elif kind == STRUCT and isinstance(wanted, dict):
            found[number], at = _known(data, at, wanted, depth)
        elif kind == LIST and isinstance(wanted, list):
            found[number], at = _items(data, at, wanted[0], depth)
        elif kind not in _FLAGS:
            at = _pass(data, at, kind, depth)
    return found, at


def _said(data: Data, at: int, last: int) -> tuple[int, int]:
    """The number of a field that says it there, and where its value begins."""
    value, at = _varint(data, at)
    number = value >> 1 ^ -(value & 1)
    if not last < number <= _LAST:
        raise ValueError(_OUT_OF_ORDER)
    return number, at


def _known(data: Data, at: int, known: Known, depth: int) -> tuple[Struct, int]:
    if depth >= _DEEPEST:
        raise ValueError(f"it has more than {_DEEPEST} levels")
    found, at = read_known(data, at, known, depth + 1)
    return found, at + 1


def _items(data: Data, at: int, wanted: Any, depth: int) -> tuple[list[Struct] | int, int]:
    of, count, at = read_list(data, at)
    is_struct = isinstance(wanted, dict)
    if count and of != (STRUCT if is_struct else wanted):
        raise ValueError("a list has items of another type")
    if is_struct and wanted:
        items = []
        for _ in range(count):
            item, at = _known(data, at, wanted, depth + 1)
            items.append(item)
        return items, at
    for _ in range(count):
        if of in _INTEGERS and data[at] < 128:
            at += 1
        else:
            at = _pass(data, at, of, depth + 1)
    return count, at


def _pass(data: Data, at: int, kind: int, depth: int) -> int:
    """Where a value ends of which nothing is known; its structs may have fields that say their numbers."""
    if kind == STRUCT:
        return _known(data, at, {}, depth)[1]
    if kind != LIST:
        return _skip(data, at, kind, depth)
    if depth >= _DEEPEST:
        raise ValueError(f"it has more than {_DEEPEST} levels")
    of, count, at = read_list(data, at)
    for _ in range(count):
        at = _pass(data, at, of, depth + 1)
    return at


def read_list(data: Data, at: int) -> tuple[int, int, int]:
    """The type of a list's items, how many it claims to have, and where the first one begins."""
    head = data[at]
    if head < 0xF0:
        return head & 15, head >> 4, at + 1
    count, at = _varint(data, at + 1)
    return head & 15, count, at


def _varint(data: Data, at: int) -> tuple[int, int]:
    value = shift = 0
    while (byte := data[at]) > 127:
        value |= (byte & 127) << shift
        shift += 7
        at += 1
        if shift > 63:
            raise ValueError("a number has more than 64 bits")
    return value | byte << shift, at + 1


def _after_text(data: Data, at: int) -> tuple[int, int]:
    """Where a text begins of which the length stands at ``at``, and where it ends."""
    length = data[at]
    at += 1
    if length > 127:
        length, at = _varint(data, at - 1)
    if at + length > len(data):
        raise ValueError("it ends within a text")
    return at, at + length


def _value(data: Data, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind == BINARY:
        start, stop = _after_text(data, at)
        return bytes(data[start:stop]), stop
    if kind in _INTEGERS:
        value, at = _varint(data, at)
        return value >> 1 ^ -(value & 1), at
    if depth >= _DEEPEST:
        raise ValueError(f"it has more than {_DEEPEST} levels")
    if kind == STRUCT:
        return read_struct(data, at, depth + 1)
    if kind == LIST:
        of, count, at = read_list(data, at)
        items = []
        for _ in range(count):
            item, at = _value(data, at, of, depth + 1)
            items.append(item)
        return items, at
    stop = _skip(data, at, kind, depth)
    return bytes(data[at:stop]), stop


def _skip(data: Data, at: int, kind: int, depth: int) -> int:
    if kind in _INTEGERS:
        while data[at] > 127:
            at += 1
        return at + 1
    if kind == BINARY:
        return _after_text(data, at)[1]
    if depth >= _DEEPEST:
        raise ValueError(f"it has more than {_DEEPEST} levels")
    if kind == STRUCT:
        return skip_fields(data, at, depth + 1)
    if kind == LIST:
        of, count, at = read_list(data, at)
        if of == STRUCT:
            for _ in range(count):
                at = skip_fields(data, at, depth + 2)
            return at
        for _ in range(count):
            at = _skip(data, at, of, depth + 1)
        return at
    if kind in (_BYTE, _DOUBLE):
        at += 1 if kind == _BYTE else 8
        if at > len(data):
            raise ValueError("it ends within a number")
        return at
    raise ValueError(f"it has a field of type {kind}")
