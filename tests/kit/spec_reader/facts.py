"""Facts, from single actions and from blocks (spec/facts.md, spec/transactions.md, spec/segments.md)."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from .sealing import message
from .stamps import EPOCH, MICROSECOND, Name, Stamp
from .tables import Column, Table, encoded_key, zero

PUT, UPDATE, DELETE, PURGE = 1, 2, 3, 4
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
    return _plain_fields(value, column.children) if column.type == "message" else value


def facts_of_block(data: bytes, table: Table, transaction: Any = None) -> Iterator[Fact]:
    """The facts of a block; ``transaction`` is the one that a block of events belongs to (spec/segments.md, spec/facts.md)."""
    assert data[-6:-4] == b"\xfd\x7f"
    assert zlib.crc32(data[:-6]) == int.from_bytes(data[-4:], "little")
    block = message("Block").FromString(data)
    assert len(data) <= 1 << 20 or block.header.rows == 1
    stamps = [t[:4] for t in _tuples(block.transactions)] if block.transactions else []
    if transaction is not None:
        stamps = [(transaction.commit_time, transaction.writer, transaction.revision, transaction.uuid)]
    assert stamps == sorted(stamps)
    rows = _rows(block.rows)
    twins = {same.column: getattr(same, "as") for same in block.header.same}
    assert len(rows) == block.header.rows
    keys = []
    for row in rows:
        row |= {column: row.get(twin) for column, twin in twins.items()}
        if transaction is not None:
            row |= {f"_{what}txn": 0 for what in ("", "row_", "end_") if row.get(f"_{what}seq") is not None}
        fact = _fact(row, table, stamps)
        keys.append(encoded_key(table, fact.row))
        yield fact
    assert (keys, keys[0], keys[-1]) == (sorted(keys), block.header.first_key, block.header.last_key)


def _rows(data: bytes) -> list[dict[str, Any]]:
    with pa.ipc.open_stream(data) as reader:
        batches = list(reader)
    assert len(batches) == 1
    return [dict(row) for row in batches[0].to_pylist()]


def _tuples(data: bytes) -> list[Any]:
    return [tuple(row.values()) for row in _rows(data)]


def _fact(row: dict[str, Any], table: Table, stamps: list[Any]) -> Fact:
    def stamp(what: str = "") -> Any:
        position = row.get(f"_{what}txn")
        return None if position is None else (*stamps[position], row[f"_{what}seq"])

    def expects(what: str = "") -> Any:
        said = row.get(f"_{what}expects") or 0
        return (None, "absent", (row.get(f"_{what}expects_uuid"), row.get(f"_{what}expects_seq")))[said]

    kind = row.get("_kind") or VERSION
    own = stamp()
    columns = {column.number: column for column in table.columns}
    values = {int(name): value for name, value in row.items() if not name.startswith("_") and value is not None}
    return Fact(
        kind=kind,
        row={number: _from_arrow(columns[number], value) for number, value in values.items()},
        stamp=None if kind == NAMED else own,
        name=(row["_name_uuid"], row["_name_seq"]) if kind == NAMED else None,
        row_stamp=stamp("row_"),
        end=stamp("end_"),
        end_kind=row.get("_end_kind") or 0,
        expects=expects(),
        end_expects=expects("end_"),
        purged=bool(row.get("_purged")),
    )


def _from_arrow(column: Column, value: Any) -> Any:
    if column.shape == "map":
        return [(_scalar(column.children[0], key), _scalar(column.children[1], item)) for key, item in value]
    return [_scalar(column, item) for item in value] if column.shape == "list" else _scalar(column, value)


def _scalar(column: Column, value: Any) -> Any:
    if column.type == "timestamp":
        return (value - EPOCH) // MICROSECOND
    if column.type == "message":
        children = {child.number: child for child in column.children}
        return {int(number): _from_arrow(children[int(number)], item) for number, item in value.items() if item is not None}
    return (
        value.decode() if isinstance(value, bytes) and column.type == "string" else value
    )  # text of one width is packed as bytes
