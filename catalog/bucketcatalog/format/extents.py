"""How large a table is by its descriptors, known before any column is made of them.

A few messages can lie in each other in more ways than can be counted: 1,400 bytes come to 2^60 columns. So they are counted by what lies in
each message, which is looked at once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from google.protobuf import descriptor_pb2

from .. import limits
from ..errors import IncompatibleTable

_Field = descriptor_pb2.FieldDescriptorProto
Types = dict[str, Any]
"""The descriptors of messages and enumerations by their full names."""


def cannot_be(name: str, problem: str) -> IncompatibleTable:
    """The error for a declaration of which that is wrong."""
    return IncompatibleTable(
        f"Table {name!r} cannot be declared so: {problem}.",
        next_step="Change its declaration: what create_table is given, or its row message.",
    )


def is_map(field: Any, types: Types) -> bool:
    """Whether a field is a map."""
    return bool(field.type == _Field.TYPE_MESSAGE and types[field.type_name.lstrip(".")].options.map_entry)


class _Extent(NamedTuple):
    """What the fields of a message are as columns: how many, with their groups and what lies in them, how deep the deepest is.

    ``symbols`` are the names that their enumerations have, each counted where it is used.
    """

    columns: int
    levels: int
    symbols: int


def refuse_too_large(message: str, types: Types, table: str) -> None:
    """``IncompatibleTable`` where rows would have more columns, or deeper ones, than whoever reads a segment or a block takes."""
    extent = _extent(message, types, table, (), {})
    if extent.columns > limits.TABLE_COLUMNS:
        most = f"{extent.columns} columns with what lies in them, and nobody reads more than {limits.TABLE_COLUMNS}"
        raise cannot_be(table, f"it has {most}")
    if extent.levels > limits.LEVELS:
        raise _too_deep(table)
    if extent.symbols > limits.TABLE_SYMBOLS:
        most = f"with {extent.symbols} names, and nobody reads more than {limits.TABLE_SYMBOLS}"
        raise cannot_be(table, f"its columns have enumerations {most}")


def _extent(name: str, types: Types, table: str, within: tuple[str, ...], known: dict[str, _Extent]) -> _Extent:
    """That of a message within others. ``known`` are those looked at: a few can name each other in more ways than can be counted."""
    if name in within:
        raise cannot_be(table, f"the message {name!r} lies within itself")
    if len(within) >= limits.LEVELS:
        raise _too_deep(table)
    if name not in known:
        columns, deepest, symbols, message = 0, 0, 0, types.get(name)
        if not isinstance(message, descriptor_pb2.DescriptorProto):
            raise cannot_be(table, f"nothing says what the message {name!r} is")
        for field in message.field:
            count = levels = 1
            if field.type == _Field.TYPE_MESSAGE:
                below = _extent(field.type_name.lstrip("."), types, table, (*within, name), known)
                count, levels = 1 + max(below.columns, 1), 1 + max(below.levels, 1)
                symbols += below.symbols
            elif field.type == _Field.TYPE_ENUM:
                symbols += len(_symbols(field, types, table))
            if field.label == _Field.LABEL_REPEATED:
                count, levels = count + (1 if is_map(field, types) else 2), levels + 1
            columns, deepest = columns + count, max(deepest, levels)
        known[name] = _Extent(columns, deepest, symbols)
    return known[name]


def _too_deep(table: str) -> IncompatibleTable:
    return cannot_be(
        table, f"a column of it has more than {limits.LEVELS} levels, with messages and lists as one each and maps as two"
    )


def _symbols(field: Any, types: Types, table: str) -> Any:
    """The names that the field's enumeration gives to numbers."""
    found = types.get(field.type_name.lstrip("."))
    if not isinstance(found, descriptor_pb2.EnumDescriptorProto):
        raise cannot_be(table, f"nothing says what the enumeration {field.type_name.lstrip('.')!r} is")
    return found.value
