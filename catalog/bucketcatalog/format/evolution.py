"""One table from several definitions: rows of older and newer schemas are read together.

Columns are matched by field number. The definition with the latest stamp decides names and options; columns that only others have are
kept. What cannot be read together is an error that names the table, never a silent cast.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import reduce

from ..errors import IncompatibleTable
from ..model.tables import Column, DataType, Table
from .checkpoints import Definition
from .definitions import parse_definition
from .unions import WIDER, union

_INTEGERS = {DataType.INT32, DataType.INT64, DataType.UINT32, DataType.UINT64}
_TEXTS = {DataType.STRING, DataType.JSON, DataType.CUT}


class Definitions(Mapping[str, Table]):
    """The tables of a database by name, each merged from its definitions when it is asked for.

    Definitions count in the order of their stamps, whatever order they are given in; ``known`` are older than all. A table whose
    definitions contradict each other raises ``IncompatibleTable`` when it is asked for, and no other does.
    """

    def __init__(self, known: Iterable[Table], given: Iterable[Definition]) -> None:
        self._known = {table.name: table for table in known}
        latest: dict[tuple[str, bytes], Definition] = {}
        for definition in given:
            key = (definition.table.name, definition.table.definition)
            if key not in latest or latest[key].stamp < definition.stamp:
                latest[key] = definition
        self.given = tuple(sorted(latest.values(), key=lambda definition: (definition.stamp, definition.table.name)))
        self._names = dict.fromkeys([*self._known, *(definition.table.name for definition in self.given)])
        self._merged: dict[str, Table] = {}

    def __getitem__(self, name: str) -> Table:
        if name not in self._merged:
            if name not in self._names:
                raise KeyError(name)
            parts = [self._known[name]] if name in self._known else []
            parts += [definition.table for definition in self.given if definition.table.name == name]
            self._merged[name] = reduce(
                lambda older, newer: older if older.definition == newer.definition else merge(older, newer), parts
            )
        return self._merged[name]

    def usable(self) -> list[Table]:
        """The tables whose definitions fit together, by name."""
        return [self[name] for name in sorted(self) if self.contradiction(name) is None]

    def contradiction(self, name: str) -> str | None:
        """Why a table cannot be used, or None."""
        try:
            self[name]
        except IncompatibleTable as error:
            return error.message
        return None

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def merge(older: Table, newer: Table) -> Table:
    """``newer`` with what only ``older`` declares; ``IncompatibleTable`` where the two contradict."""
    _check_key(older, newer)
    _check_fixed(older, newer)
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


def _check_fixed(older: Table, newer: Table) -> None:
    """What a fold has forgotten cannot be had back, so what UPDATEs leave alone, and what becomes of ended versions, cannot change."""
    if older.fixed_columns != newer.fixed_columns:
        raise IncompatibleTable(
            f"Table {newer.name!r} is defined with two sets of columns that no update changes: its id or its data reference differs.",
            next_step="Give the new definition a name of its own.",
        )
    if older.keeps_tombstones != newer.keeps_tombstones:
        raise IncompatibleTable(
            f"Table {newer.name!r} is defined to keep tombstones, and to drop them.",
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
