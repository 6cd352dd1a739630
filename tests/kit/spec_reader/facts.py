"""Facts, from single actions and from blocks (spec/facts.md, spec/transactions.md, spec/segments.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pyarrow as pa

from .stamps import EPOCH, MICROSECOND, Name, Stamp, stamp_of
from .tables import Column, Table, encoded_key, zero

PUT, UPDATE, DELETE, PURGE = 1, 2, 3, 4
END = 536_870_909
VERSION, BLIND, NAMED = 0, 1, 2
BY_PUT, BY_BLIND, BY_NAMED, BY_MOVE = 1, 2, 3, 4


@dataclass(frozen=True)
class Fact:
    """One row of the relation of spec/facts.md, about one key. ``expects`` is None, ``absent`` or a name."""

    kind: int
    row: dict[int, Any]
    stamp: Stamp | None = None
    name: Name | None = None
    row_stamp: Stamp | None = None
    end: Stamp | None = None
    end_kind: int = 0
    expects: Any = None
    end_expects: Any = None
    purged: bool = False


def facts_of_actions(transaction: Any, tables: dict[str, Table]) -> Iterator[tuple[str, Fact]]:
    """The events that a transaction carries one by one."""
    for sequence, action in enumerate(transaction.actions):
        table, stamp = tables[action.table], (*stamp_of(transaction), sequence)
        row = {column.number: zero(column) for column in table.key}
        for message in (*table.older, table.row):
            row |= _fields(message.FromString(action.row), table.columns)
        name = (action.version.uuid, action.version.sequence) if action.HasField("version") else None
        expected = (action.expects.version.uuid, action.expects.version.sequence)
        expects = {"absent": "absent", "version": expected}.get(action.expects.WhichOneof("what"))
        blind = Fact(BLIND, row, stamp=stamp, expects=expects)
        ended = Fact(NAMED, row, name=name, end=stamp, end_kind=BY_MOVE if action.moved else BY_NAMED)
        facts = {
            PUT: Fact(VERSION, row, stamp=stamp, expects=expects),
            UPDATE: Fact(NAMED, row, name=name, row_stamp=stamp),
            DELETE: ended if name else blind,
            PURGE: Fact(NAMED, row, name=name, purged=True),
        }
        yield action.table, facts[action.kind]


def _fields(message: Any, columns: Iterable[Column]) -> dict[int, Any]:
    """What is set in a message, by number; a uuid is text, as it is in Arrow."""
    known = {column.number: column for column in columns}
    return {item.number: _plain(known[item.number], value) for item, value in message.ListFields() if item.number in known}


def _plain(column: Column, value: Any) -> Any:
    if column.type == "map":
        return [(key, _plain(column.children[1], item)) for key, item in sorted(value.items())]
    if column.type == "list":
        return [_plain(column.children[0], item) for item in value]
    if column.type == "message":
        return _fields(value, column.children)
    return str(UUID(bytes=value)) if column.type == "uuid" else value


def rows_of_block(header: Any, rows: pa.Table, table: Table) -> list[dict[Any, Any]]:
    """What is not null in the rows of a block, by the numbers of the columns, and the names of those beside the table's."""
    labels = [field.name if field.name.startswith("_") else _number(field) for field in rows.schema]
    columns = [[_from_arrow(array.type, value) for value in array.to_pylist()] for array in rows.columns]
    found = [
        {label: value for label, value in zip(labels, values, strict=True) if value is not None}
        for values in zip(*columns, strict=True)
    ]
    keys = [encoded_key(table, row) for row in found]
    assert (len(keys), keys, keys[0], keys[-1]) == (header.rows, sorted(keys), header.first_key, header.last_key)
    return found


def _number(field: pa.Field) -> int | None:
    number = (field.metadata or {}).get(b"PARQUET:field_id")
    return None if number is None else int(number)


def _from_arrow(kind: pa.DataType, value: Any) -> Any:
    if value is None:
        return None
    if pa.types.is_map(kind):
        return [(key, _from_arrow(kind.item_type, item)) for key, item in value]
    if pa.types.is_list(kind):
        return [_from_arrow(kind.value_type, item) for item in value]
    if pa.types.is_struct(kind):
        numbers = {_number(field): _from_arrow(field.type, value[field.name]) for field in kind}
        return {number: item for number, item in numbers.items() if number is not None and item is not None}
    return (value - EPOCH) // MICROSECOND if pa.types.is_timestamp(kind) else value


def facts_of_block(header: Any, rows: pa.Table, table: Table, transaction: Any = None) -> Iterator[Fact]:
    """The facts of a block; ``transaction`` is the one that a block of events belongs to (spec/segments.md, spec/facts.md)."""
    assert transaction is None or not any(name.endswith("_commit_time") for name in rows.column_names)
    known = {column.number for column in table.columns}
    for row in rows_of_block(header, rows, table):
        yield _fact(row, {number: value for number, value in row.items() if number in known}, transaction)


def _fact(row: dict[Any, Any], values: dict[int, Any], transaction: Any) -> Fact:
    def stamp(what: str) -> Any:
        if f"_{what}seq" not in row:
            return None
        if transaction is not None:
            return *stamp_of(transaction), row[f"_{what}seq"]
        time = row[END] if what == "end_" and END in row else row[f"_{what}commit_time"]
        return time, row[f"_{what}writer"], row[f"_{what}revision"], *named(what)

    def named(what: str) -> Name:
        return UUID(row[f"_{what}uuid"]).bytes, row[f"_{what}seq"]

    def expects(what: str) -> Any:
        said = row.get(f"_{what}", 0)
        return named(f"{what}_") if said == 2 else (None, "absent")[said]

    kind = row.get("_kind", VERSION)
    return Fact(
        kind=kind,
        row=values,
        stamp=None if kind == NAMED else stamp(""),
        name=named("name_") if kind == NAMED else None,
        row_stamp=stamp("row_"),
        end=stamp("end_"),
        end_kind=row.get("_end_kind", 0),
        expects=expects("expects"),
        end_expects=expects("end_expects"),
        purged=row.get("_purged", False),
    )
