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
        table = tables[action.table]
        row = _plain_row(table, table.row.FromString(action.row))
        stamp = (transaction.commit_time, transaction.writer, transaction.revision, transaction.uuid, sequence)
        name = (action.version.uuid, action.version.sequence) if action.HasField("version") else None
        what = action.expects.WhichOneof("what")
        expects = "absent" if what == "absent" else None
        if what == "version":
            expects = (action.expects.version.uuid, action.expects.version.sequence)
        if action.kind == PUT:
            yield action.table, Fact(VERSION, row, stamp=stamp, expects=expects)
        elif action.kind == UPDATE:
            yield action.table, Fact(NAMED, row, name=name, row_stamp=stamp)
        elif action.kind == PURGE:
            yield action.table, Fact(NAMED, row, name=name, purged=True)
        elif action.kind == DELETE and name is None:
            yield action.table, Fact(BLIND, row, stamp=stamp, expects=expects)
        else:
            assert action.kind == DELETE
            yield action.table, Fact(NAMED, row, name=name, end=stamp, end_kind=BY_MOVE if action.moved else BY_NAMED)


def _plain_row(table: Table, row: Any) -> dict[int, Any]:
    values = _plain_fields(row, table.columns)
    for column in table.key:
        values.setdefault(column.number, zero(column))
    return values


def _plain_fields(row: Any, columns: Iterable[Column]) -> dict[int, Any]:
    known = {column.number: column for column in columns}
    return {item.number: _plain(known[item.number], value) for item, value in row.ListFields() if item.number in known}


def _plain(column: Column, value: Any) -> Any:
    if column.shape == "map":
        return [(key, _one(column.children[1], item)) for key, item in sorted(value.items())]
    return [_one(column, item) for item in value] if column.shape == "list" else _one(column, value)


def _one(column: Column, value: Any) -> Any:
    if column.type == "uuid":
        return str(UUID(bytes=value))
    return _plain_fields(value, column.children) if column.type == "message" else value


def facts_of_block(header: Any, rows: pa.Table, table: Table, transaction: Any = None) -> Iterator[Fact]:
    """The facts of a block; ``transaction`` is the one that a block of events belongs to (spec/segments.md, spec/facts.md)."""
    assert len(rows) == header.rows > 0
    known = {column.number for column in table.columns}
    names = {field.name: number for field in rows.schema if (number := _number(field)) in known}
    ended = {field.name: "_end_commit_time" for field in rows.schema if _number(field) == END and END not in known}
    columns = {
        ended.get(field.name, field.name): [_from_arrow(field.type, value) for value in rows[field.name].to_pylist()]
        for field in rows.schema
    }
    assert transaction is None or not [name for name in columns if name.endswith("_commit_time")]
    keys = []
    for values in zip(*columns.values(), strict=True):
        row = dict(zip(columns, values, strict=True))
        fact = _fact(row, {number: row[name] for name, number in names.items() if row[name] is not None}, transaction)
        keys.append(encoded_key(table, fact.row))
        yield fact
    assert (keys, keys[0], keys[-1]) == (sorted(keys), header.first_key, header.last_key)


def _number(field: pa.Field) -> int | None:
    number = (field.metadata or {}).get(b"PARQUET:field_id")
    return int(number) if number is not None and not field.name.startswith("_") else None


def _from_arrow(kind: pa.DataType, value: Any) -> Any:
    if value is None:
        return None
    if pa.types.is_map(kind):
        return [(_from_arrow(kind.key_type, key), _from_arrow(kind.item_type, item)) for key, item in value]
    if pa.types.is_list(kind):
        return [_from_arrow(kind.value_type, item) for item in value]
    if pa.types.is_struct(kind):
        numbers = {_number(field): _from_arrow(field.type, value[field.name]) for field in kind}
        return {number: item for number, item in numbers.items() if number is not None and item is not None}
    return (value - EPOCH) // MICROSECOND if pa.types.is_timestamp(kind) else value


def _fact(row: dict[str, Any], values: dict[int, Any], transaction: Any) -> Fact:
    def stamp(what: str) -> Any:
        if row.get(f"_{what}seq") is None:
            return None
        time, writer, revision = (row.get(f"_{what}{name}") for name in ("commit_time", "writer", "revision"))
        of = stamp_of(transaction) if transaction else (time, writer, revision, UUID(row[f"_{what}uuid"]).bytes)
        return (*of, row[f"_{what}seq"])

    def named(what: str) -> Any:
        return UUID(row[f"_{what}_uuid"]).bytes, row[f"_{what}_seq"]

    def expects(what: str = "") -> Any:
        said = row.get(f"_{what}expects") or 0
        return named(f"{what}expects") if said == 2 else (None, "absent")[said]

    kind = row.get("_kind") or VERSION
    return Fact(
        kind=kind,
        row=values,
        stamp=None if kind == NAMED else stamp(""),
        name=named("name") if kind == NAMED else None,
        row_stamp=stamp("row_"),
        end=stamp("end_"),
        end_kind=row.get("_end_kind") or 0,
        expects=expects(),
        end_expects=expects("end_"),
        purged=bool(row.get("_purged")),
    )
