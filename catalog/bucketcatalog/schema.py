"""One table from several definitions: rows of older and newer schemas are read together.

Columns are matched by field number. The definition with the latest stamp decides names and options; columns that only others have are
kept. What cannot be read together is an error that names the table, never a silent cast.
"""

from __future__ import annotations

from collections.abc import Iterable

from .codec.descriptors import parse_definition
from .codec.unions import WIDER, union
from .errors import IncompatibleTable
from .tables import Column, DataType, Table

_INTEGERS = {DataType.INT32, DataType.INT64, DataType.UINT32, DataType.UINT64}
_TEXTS = {DataType.STRING, DataType.JSON, DataType.CUT}


def merge_tables(definitions: Iterable[Table]) -> dict[str, Table]:
    """The tables that these definitions, in order of their stamps, make together."""
    merged: dict[str, Table] = {}
    for table in definitions:
        known = merged.get(table.name)
        merged[table.name] = table if known is None or known.definition == table.definition else merge(known, table)
    return merged


def merge(older: Table, newer: Table) -> Table:
    """``newer`` with what only ``older`` declares; ``IncompatibleTable`` where the two contradict."""
    _check_key(older, newer)
    _check_columns(newer.name, older.columns, newer.columns)
    return parse_definition(union(older.definition, newer.definition))


def _check_key(older: Table, newer: Table) -> None:
    def shape(table: Table) -> list[tuple[int, DataType]]:
        return [(column.number, column.type) for column in table.key_columns]

    if shape(older) != shape(newer):
        raise IncompatibleTable(
            f"Table {newer.name!r} is defined with two keys: {', '.join(older.key)} and {', '.join(newer.key)}.",
            next_step="Give the new definition a name of its own.",
        )


def _check_columns(table: str, older: Iterable[Column], newer: Iterable[Column]) -> None:
    known = {column.number: column for column in older}
    for column in newer:
        other = known.get(column.number)
        if other is None:
            continue
        if other.shape is not column.shape or not _same_bytes(other, column) or not _same_meaning(other, column):
            raise IncompatibleTable(
                f"Column {column.name!r} (field {column.number}) of table {table!r} is defined in two ways: "
                f"as {_described(other)} and as {_described(column)}.",
                next_step="Give the new column a field number of its own.",
            )
        _check_columns(table, other.children, column.children)


def _same_bytes(one: Column, other: Column) -> bool:
    wires = (one.wire_type, other.wire_type)
    return wires[0] == wires[1] or WIDER.get(wires[0]) == wires[1] or WIDER.get(wires[1]) == wires[0]


def _same_meaning(one: Column, other: Column) -> bool:
    wide = one.wire_type != other.wire_type and {one.type, other.type} <= _INTEGERS
    return one.type is other.type or wide or {one.type, other.type} <= _TEXTS


def _described(column: Column) -> str:
    return f"{column.shape.value} {column.type.value} (protobuf type {column.wire_type})"
