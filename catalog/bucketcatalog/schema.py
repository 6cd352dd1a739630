"""One table from several definitions: rows of older and newer schemas are read together.

Columns are matched by field number. The definition with the latest stamp decides names and options; columns that only others have are
kept. What cannot be read together is an error that names the table, never a silent cast.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from .errors import IncompatibleTable
from .tables import Column, DataType, Table

_WIDENING = {(DataType.INT32, DataType.INT64), (DataType.UINT32, DataType.UINT64), (DataType.FLOAT, DataType.DOUBLE)}
_SAME_STORAGE = {DataType.STRING, DataType.JSON, DataType.CUT}


def merge_tables(definitions: Iterable[Table]) -> dict[str, Table]:
    """The tables that these definitions, in order of their stamps, make together."""
    merged: dict[str, Table] = {}
    for table in definitions:
        known = merged.get(table.name)
        merged[table.name] = table if known is None or known.definition == table.definition else merge(known, table)
    return merged


def merge(older: Table, newer: Table) -> Table:
    """``newer`` with the columns that only ``older`` has; ``IncompatibleTable`` where the two contradict."""
    _check_key(older, newer)
    known = {column.number: column for column in older.columns}
    columns = [_merged(newer.name, known.pop(column.number, column), column) for column in newer.columns]
    names = {column.name for column in columns}
    columns += [
        column if column.name not in names else replace(column, name=f"{column.name}_{column.number}")
        for column in known.values()
    ]
    definitions = dict.fromkeys((*older.older, older.definition, *newer.older))
    definitions.pop(newer.definition, None)
    return replace(newer, columns=tuple(sorted(columns, key=lambda column: column.number)), older=tuple(definitions))


def _check_key(older: Table, newer: Table) -> None:
    def shape(table: Table) -> list[tuple[int, DataType]]:
        return [(column.number, column.type) for column in table.key_columns]

    if shape(older) != shape(newer):
        raise IncompatibleTable(
            f"Table {newer.name!r} is defined with two keys: {', '.join(older.key)} and {', '.join(newer.key)}.",
            next_step="Give the new definition a name of its own.",
        )


def _merged(table: str, older: Column, newer: Column) -> Column:
    children = newer.children
    if older.children and newer.children:
        known: Mapping[int, Column] = {column.number: column for column in older.children}
        children = tuple(_merged(table, known.get(child.number, child), child) for child in newer.children)
        children += tuple(child for child in older.children if child.number not in {c.number for c in newer.children})
    same_type = older.type is newer.type or (older.type in _SAME_STORAGE and newer.type in _SAME_STORAGE)
    if older.shape is newer.shape and (same_type or (older.type, newer.type) in _WIDENING):
        return replace(newer, children=children)
    if older.shape is newer.shape and (newer.type, older.type) in _WIDENING:
        return replace(newer, type=older.type)
    raise IncompatibleTable(
        f"Column {newer.name!r} (field {newer.number}) of table {table!r} is defined as {older.type.value} and as {newer.type.value}.",
        next_step="Give the new column a field number of its own.",
    )
