"""A large footer, read before a library makes objects of it: of a chunk of three bytes it makes one of several hundred."""

from __future__ import annotations

from .. import limits
from .thrift import LIST, STRUCT, read_fields, read_list, read_struct, skip_fields

_SCHEMA, _ROW_GROUPS = 2, 4
_CHILDREN = 5
_COLUMNS = 1


def check_chunks(footer: bytes) -> None:
    """``ValueError`` or ``IndexError`` where a footer has not so many chunks as its schema says, or more than a segment has."""
    _, at = read_fields(footer, 0, before=_SCHEMA)
    elements, at = _structs(footer, at)
    columns = 0
    for _ in range(elements):
        element, at = read_struct(footer, at)
        columns += not element.get(_CHILDREN)
    _, at = read_fields(footer, at, after=_SCHEMA, before=_ROW_GROUPS)
    row_groups, at = _structs(footer, at)
    if row_groups * columns > limits.CHUNKS:
        raise ValueError(f"{row_groups} row groups of {columns} columns are more than a segment has")
    for number in range(row_groups):
        _, at = read_fields(footer, at, before=_COLUMNS)
        count, at = _structs(footer, at)
        if count != columns:
            raise ValueError(f"row group {number} has {count} columns, and the schema {columns}")
        for _ in range(count):
            at = skip_fields(footer, at)
        at = skip_fields(footer, at)


def _structs(data: bytes, at: int) -> tuple[int, int]:
    """How many structs a field that begins there is a list of, and where the first one begins."""
    kind, count, start = read_list(data, at + 1)
    if data[at] & 15 != LIST or kind != STRUCT:
        raise ValueError("what should be a list is none")
    if count > limits.COLUMNS:
        raise ValueError(f"a list has {count} items")
    return count, start
