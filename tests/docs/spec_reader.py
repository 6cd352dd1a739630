"""A reader of catalogs written from docs/spec alone: it shares no code with the package, and takes the plainest way everywhere.

It needs what the specification asks for: protoc, a protobuf runtime, Arrow. The messages are compiled from proto/ each time. It holds the
whole catalog in memory and loops over rows; what it is for is to say the same as the engine, and so that the specification is complete.
"""

from __future__ import annotations

import datetime
import hashlib
import os
import re
import subprocess
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import UUID

import pyarrow as pa
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PROTO = Path(__file__).resolve().parent.parent.parent / "proto"
EVENTS, LIVE, ENDED, STUBS, SUPERSEDED = 1, 2, 3, 4, 5
ROWS, ORDER = 1, 2
END = 536_870_909
PUT, UPDATE, DELETE, PURGE = 1, 2, 3, 4
VERSION, BLIND, NAMED = 0, 1, 2
BY_PUT, BY_BLIND, BY_NAMED, BY_MOVE = 1, 2, 3, 4

# ---------------------------------------------------------------------------------------------------------------- messages


@cache
def _pool() -> Any:
    """The messages of the log, compiled now, in a pool of their own."""
    tools = Path(sys.prefix) / "protoc"
    environment = os.environ | ({"PYTHONPATH": str(tools)} if (tools / "grpc_tools").is_dir() else {})
    with TemporaryDirectory() as folder:
        out = Path(folder, "log.binpb")
        command = [sys.executable, "-m", "grpc_tools.protoc", f"--proto_path={PROTO}", "--include_imports"]
        command += [f"--descriptor_set_out={out}", "bucketcatalog/v1/log.proto", "bucketcatalog/v1/options.proto"]
        subprocess.run(command, env=environment, check=True, cwd=PROTO)
        files = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file
    pool = descriptor_pool.DescriptorPool()
    for file in files:
        pool.Add(file)
    return pool


def message(name: str) -> Any:
    """The class of a message of the log."""
    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"bucketcatalog.v1.{name}"))


def is_whole(data: bytes) -> bool:
    """Whether the checksum of sealed bytes is right."""
    body, tag, checksum = data[:-35], data[-35:-32], data[-32:]
    return tag == b"\xfa\x7f\x20" and hashlib.sha256(body).digest() == checksum


def unsealed(data: bytes, kind: str) -> Any:
    """A sealed message, its checksum checked before anything else (spec/sealing.md)."""
    assert is_whole(data)
    parsed = message(kind).FromString(data)
    assert parsed.format_version == 1
    known = {"Checkpoint": {"runs", "boundary", "voids", "losses"}, "Transaction": {"boundary", "voids", "losses"}}
    assert set(parsed.required_features) <= known.get(kind, set())
    return parsed


def seal(body: bytes) -> bytes:
    """A message's bytes with the checksum as their last field."""
    return body + b"\xfa\x7f\x20" + hashlib.sha256(body).digest()


# ------------------------------------------------------------------------------------------------------------------ tables

_WIDTHS = {"int32": (4, True), "uint32": (4, False), "int64": (8, True), "uint64": (8, False)}
_CARRIED = {1: "double", 2: "float", 3: "int64", 4: "uint64", 5: "int32", 6: "uint64", 7: "uint32", 8: "bool", 9: "string"}
_CARRIED |= {11: "message", 12: "bytes", 13: "uint32", 14: "enum", 15: "int32", 16: "int64", 17: "int32", 18: "int64"}
_ZERO = {"string": "", "bytes": b"", "uuid": bytes(16), "bool": False, "float": 0.0, "double": 0.0}


@dataclass(frozen=True)
class Column:
    """A field of a row message (spec/tables.md)."""

    number: int
    name: str
    type: str
    shape: str
    implicit: bool
    default: int
    children: tuple[Column, ...]
    symbols: dict[int, str] = field(hash=False)


@dataclass(frozen=True)
class Table:
    """A table as its definition says."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[Column, ...]
    fixed: frozenset[int]
    drops_tombstones: bool
    row: Any


def _extension(name: str) -> Any:
    return _pool().FindExtensionByName(f"bucketcatalog.v1.{name}")


def table_of(definition: Any) -> Table:
    """The table of a TableDefinition."""
    types: dict[str, Any] = {}
    pool = descriptor_pool.DescriptorPool()
    for file in definition.files.file:
        pool.AddSerializedFile(file.SerializeToString())
        for item in (*file.message_type, *file.enum_type):
            _collect(types, f".{file.package}" if file.package else "", item)
    found = types[f".{definition.message}"]
    options = found.options.Extensions[_extension("table")]
    columns = tuple(_column(item, types, set(options.key)) for item in found.field)
    by_name = {column.name: column for column in columns}
    fixed = {*options.key, *options.data_reference, *([options.id] if options.id else [])}
    row = message_factory.GetMessageClass(pool.FindMessageTypeByName(definition.message))
    return Table(
        name=options.name,
        columns=columns,
        key=tuple(by_name[name] for name in options.key),
        fixed=frozenset(by_name[name].number for name in fixed),
        drops_tombstones=options.tombstones == 2,
        row=row,
    )


def _collect(types: dict[str, Any], prefix: str, item: Any) -> None:
    types[f"{prefix}.{item.name}"] = item
    for nested in (*getattr(item, "nested_type", ()), *getattr(item, "enum_type", ())):
        _collect(types, f"{prefix}.{item.name}", nested)


def _column(item: Any, types: dict[str, Any], key: set[str]) -> Column:
    options = item.options.Extensions[_extension("column")]
    logical = {1: "uuid", 2: "timestamp", 3: "string", 4: "string"}.get(options.type)
    carried = _CARRIED[item.type]
    target = types.get(item.type_name)
    repeated = item.label == 3
    is_map = item.type == 11 and target.options.map_entry
    return Column(
        number=item.number,
        name=item.name,
        type=logical or carried,
        shape="map" if is_map else "list" if repeated else "one",
        implicit=not repeated and item.type != 11 and not item.proto3_optional and item.name not in key,
        default=options.default,
        children=tuple(_column(child, types, set()) for child in target.field) if item.type == 11 else (),
        symbols={value.number: value.name for value in target.value} if item.type == 14 else {},
    )


def merged(older: Table, newer: Table) -> Table:
    """``newer`` with the columns that only ``older`` has."""
    numbers = {column.number for column in newer.columns}
    return replace(newer, columns=(*newer.columns, *(column for column in older.columns if column.number not in numbers)))


def encoded_key(table: Table, row: dict[int, Any]) -> bytes:
    """The bytes that keys are ordered by (spec/keys.md)."""
    parts = []
    for column in table.key:
        value, last = row[column.number], column is table.key[-1]
        if column.type == "timestamp" or column.type in _WIDTHS:
            width, signed = _WIDTHS["int64" if column.type == "timestamp" else column.type]
            parts.append((value + (1 << 8 * width - 1 if signed else 0)).to_bytes(width, "big"))
            continue
        raw = value.encode() if isinstance(value, str) else value
        parts.append(raw if last or column.type == "uuid" else raw.replace(b"\x00", b"\x00\xff") + b"\x00\x01")
    return b"".join(parts)


# ------------------------------------------------------------------------------------------------------------------- facts

Stamp = tuple[int, str, int, bytes, int]
"""Commit time, writer, revision, uuid, sequence number: compares as stamps do."""
Name = tuple[bytes, int]


def name_of(stamp: Stamp) -> Name:
    """The name of the version or event with this stamp."""
    return stamp[3], stamp[4]


def text_of(name: Name) -> str:
    """A version's name as people see it."""
    return f"{UUID(bytes=name[0])}:{name[1]}"


def uuid_time(uuid: bytes) -> int:
    """The microseconds that a version 7 uuid holds (spec/stamps.md)."""
    return int.from_bytes(uuid[:6], "big") * 1000 + (int.from_bytes(uuid[6:8], "big") & 0xFFF)


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
        values.setdefault(column.number, _zero(column))
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


def _zero(column: Column) -> Any:
    return _ZERO.get(column.type, 0)


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


_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)


def _scalar(column: Column, value: Any) -> Any:
    if column.type == "timestamp":
        return (value - _EPOCH) // _MICROSECOND
    if column.type == "message":
        children = {child.number: child for child in column.children}
        return {int(number): _from_arrow(children[int(number)], item) for number, item in value.items() if item is not None}
    return (
        value.decode() if isinstance(value, bytes) and column.type == "string" else value
    )  # text of one width is packed as bytes


# -------------------------------------------------------------------------------------------------------------------- fold


@dataclass
class Version:
    """What the fold makes of one version of a key."""

    stamp: Stamp
    row: dict[int, Any]
    row_stamp: Stamp
    expects: Any
    end: Stamp | None = None
    purged: bool = False


@dataclass
class State:
    """The state of one key: its versions by stamp, and every blind delete with what it expected."""

    versions: list[Version]
    deletes: dict[Stamp, Any]


def comes_after(stamp: Stamp, name: Name) -> bool:
    """Whether an event with this stamp can have an effect on the version with this name (spec/fold.md)."""
    return stamp[4] > name[1] if stamp[3] == name[0] else stamp[0] > uuid_time(name[0])


def fold(facts: Iterable[Fact], table: Table) -> State:
    """The state that facts about one key make (spec/fold.md)."""
    versions: dict[Name, Version] = {}
    ends: dict[Name, list[Stamp]] = {}
    deletes: dict[Stamp, Any] = {}
    named = []
    for fact in facts:
        if fact.kind == BLIND:
            assert fact.stamp is not None
            deletes[fact.stamp] = fact.expects
        elif fact.kind == NAMED:
            named.append(fact)
        else:
            assert fact.stamp is not None
            name = name_of(fact.stamp)
            new = Version(fact.stamp, fact.row, fact.row_stamp or fact.stamp, fact.expects, purged=fact.purged)
            known = versions.setdefault(name, new)
            if new.row_stamp > known.row_stamp:
                known.row, known.row_stamp = new.row, new.row_stamp
            known.purged = known.purged or new.purged
            if fact.end is not None:
                ends.setdefault(name, []).append(fact.end)
            if fact.end is not None and fact.end_kind == BY_BLIND:
                deletes[fact.end] = fact.end_expects
    for fact in named:
        assert fact.name is not None
        version = versions.get(fact.name)
        if version is None:
            continue
        version.purged = version.purged or fact.purged
        if fact.end is not None and comes_after(fact.end, fact.name):
            ends.setdefault(fact.name, []).append(fact.end)
        if fact.row_stamp is not None and comes_after(fact.row_stamp, fact.name) and fact.row_stamp > version.row_stamp:
            fixed = {number: value for number, value in version.row.items() if number in table.fixed}
            version.row = {n: v for n, v in fact.row.items() if n not in table.fixed} | fixed
            version.row_stamp = fact.row_stamp
    ordered = sorted(versions.values(), key=lambda version: version.stamp)
    for at, version in enumerate(ordered):
        candidates = ends.get(name_of(version.stamp), []) + [d for d in deletes if d > version.stamp]
        candidates += [ordered[at + 1].stamp] if at + 1 < len(ordered) else []
        version.end = min(candidates, default=None)
    return State(ordered, deletes)


def conflicts(state: State) -> Iterator[tuple[Any, ...]]:
    """Kind, version, event, expected and found of every conflict (spec/fold.md)."""
    replaced = {version.end: name_of(version.stamp) for version in state.versions if version.end is not None}
    for version in state.versions:
        name = name_of(version.stamp)
        if version.end is not None and version.row_stamp > version.end:
            yield "late_update", text_of(name), version.row_stamp, None, None
        found = replaced.get(version.stamp, "absent")
        if version.expects is not None and version.expects != found:
            yield "expectation", text_of(name), version.stamp, _said(version.expects), _said(found)
    for stamp, expects in state.deletes.items():
        found = replaced.get(stamp, "absent")
        if expects is not None and expects != found:
            yield "expectation", None, stamp, _said(expects), _said(found)


def _said(what: Any) -> str:
    return what if isinstance(what, str) else text_of(what)


# ----------------------------------------------------------------------------------------------------------------- catalog

_UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_LOG = re.compile(rf"([A-Za-z0-9_-][A-Za-z0-9._-]*)/([A-Za-z0-9_-][A-Za-z0-9._-]*)/transactions/(\d{{20}})/({_UUID})\.(txn|ckpt)")
Ref = tuple[str, int, bytes]
"""Names a transaction or a checkpoint: writer, revision, uuid."""


class SpecReader:
    """One database of a catalog in a directory. Its answers are rows as people see them, in order of their keys."""

    def __init__(self, root: Path, database: str = "default") -> None:
        self.root = root
        self.database = database
        self.transactions: dict[Ref, Any] = {}
        self.checkpoints: dict[Ref, Any] = {}
        unread: set[Ref] = set()
        for path in sorted(root.rglob("*")):
            match = _LOG.fullmatch(path.relative_to(root).as_posix())
            if match is not None and match[5] == "txn" and not is_whole(path.read_bytes()):
                unread.add((match[1], int(match[3]), UUID(match[4]).bytes))
            elif match is not None and match[2] == database:
                kind, into = ("Transaction", self.transactions) if match[5] == "txn" else ("Checkpoint", self.checkpoints)
                into[match[1], int(match[3]), UUID(match[4]).bytes] = self._log_file(path, kind, match)

        self.lost = {
            _ref_of(loss.transaction): loss
            for ref, t in self.transactions.items()
            for loss in t.losses
            if loss.transaction.writer == ref[0]
        }
        self.unread = {ref: _stand_in(self.lost[ref]) for ref in unread}  # whatever is not lost must be readable
        for transaction in self.transactions.values():
            self._check_parents(transaction)
        self.transactions |= self.unread

    def _log_file(self, path: Path, kind: str, match: re.Match[str]) -> Any:
        parsed = unsealed(path.read_bytes(), kind)
        assert (parsed.writer, parsed.database, parsed.revision) == (match[1], match[2], int(match[3]))
        assert parsed.uuid == UUID(match[4]).bytes
        if kind == "Transaction":
            assert uuid_time(parsed.uuid) == parsed.commit_time
        else:
            voided = {link.uuid for link in parsed.voids}
            heads = [head for writer in parsed.cut.writers for head in writer.heads if head.uuid not in voided]
            assert uuid_time(parsed.uuid) == max(uuid_time(head.uuid) for head in heads)
            countdown = 10**20 - 1 - parsed.revision
            assert (self.root / match[1] / match[2] / "newest" / f"{countdown:020}-{match[4]}").read_bytes() == b""
        return parsed

    def _check_parents(self, transaction: Any) -> None:
        for link in transaction.parents:
            name = f"{transaction.writer}/{self.database}/transactions/{link.revision:020}/{UUID(bytes=link.uuid)}.txn"
            if (transaction.writer, link.revision, link.uuid) not in self.lost:
                assert (self.root / name).read_bytes()[-32:] == link.digest

    def from_transactions(self, until: int | None = None) -> Answer:
        """The state that the transactions make, all of them or those with a commit time of at most ``until``."""
        wanted = {ref: t for ref, t in self.transactions.items() if until is None or t.commit_time <= until}
        voided = _voided(wanted.values(), [])
        for ref, transaction in wanted.items():
            for other in _reads(ref, transaction):
                assert other in wanted or other in voided  # closed under parents and reads
        said = self._said(wanted, voided)
        return Answer(*self._facts(said, []), _tag_entries(said, []))

    def from_checkpoints(self, *used: Ref, classes: frozenset[int] | None = None) -> Answer:
        """The state that checkpoints and the transactions make that none of them covers (spec/checkpoints.md).

        With ``classes`` only such blocks are read, and others where spec/reading.md says so.
        """
        checkpoints = [self.checkpoints[ref] for ref in used]
        tail: dict[Ref, Any] = {}
        for ref, transaction in self.transactions.items():
            known = [entry.list_from for c in checkpoints for entry in c.coverage if entry.writer == ref[0]]
            listed = ref[1] >= min(known, default=0)
            if listed and not any(self._covers(c, ref) for c in checkpoints):
                tail[ref] = transaction
        for ref, transaction in tail.items():
            for other in _reads(ref, transaction):
                assert other in tail or any(self._covers(c, other) for c in checkpoints)
        voided = _voided(tail.values(), checkpoints)
        for checkpoint in checkpoints:  # one that does not know of a void must not be used
            assert all(ref in _voided([], [checkpoint]) for ref in voided if self._covers(checkpoint, ref))
        said = self._said(tail, voided)
        return Answer(*self._facts(said, checkpoints, classes), _tag_entries(said, checkpoints))

    def _said(self, found: dict[Ref, Any], voided: set[Ref]) -> list[Any]:
        """Transactions of a cut as they count there (spec/voids.md, spec/losses.md)."""
        assert not (self.unread.keys() & found.keys()) - voided  # their loss was accepted by what is not in the cut
        left = {ref: t for ref, t in found.items() if ref not in voided}
        left |= {ref: _emptied(t) for ref, t in found.items() if ref in voided and ref not in self.lost}
        return list(left.values())

    def _covers(self, checkpoint: Any, ref: Ref) -> bool:
        """Whether the checkpoint covers a transaction (spec/checkpoints.md, "Coverage")."""
        writer, revision, uuid = ref
        heads = {(w.writer, head.revision, head.uuid) for w in checkpoint.cut.writers for head in w.heads}
        newest = max((head[1] for head in heads if head[0] == writer), default=-1)
        coverage = next((entry for entry in checkpoint.coverage if entry.writer == writer), None)
        if coverage is None or revision > newest:
            return False
        said = {(head.revision, head.uuid) for head in (*coverage.recent, *coverage.branches)}
        if (revision, uuid) in said or ref in heads:
            return True
        if revision >= coverage.list_from or any(head.revision == revision for head in coverage.branches):
            return False
        if sum(1 for other in self.transactions if other[:2] == (writer, revision)) == 1:
            return True
        children = [
            t for other, t in self.transactions.items() if other[:2] == (writer, revision + 1) and self._covers(checkpoint, other)
        ]
        return any(link.uuid == uuid for child in children for link in child.parents)

    def _facts(
        self, tail: Iterable[Any], checkpoints: Iterable[Any], classes: frozenset[int] | None = None
    ) -> tuple[dict[str, Table], dict[str, dict[bytes, list[Fact]]]]:
        transactions = sorted(tail, key=_stamp_of)
        tables: dict[str, Table] = {}
        definitions = [(_stamp_of(d.defined_by), d) for checkpoint in checkpoints for d in checkpoint.tables]
        definitions += [(_stamp_of(transaction), d) for transaction in transactions for d in transaction.tables]
        for _, definition in sorted(definitions, key=lambda one: one[0]):
            table = table_of(definition)
            tables[table.name] = merged(tables[table.name], table) if table.name in tables else table
        facts: dict[str, dict[bytes, list[Fact]]] = {name: {} for name in tables}

        def add(name: str, fact: Fact) -> None:
            facts[name].setdefault(encoded_key(tables[name], fact.row), []).append(fact)

        for transaction in transactions:
            for name, fact in self._events(transaction, tables):
                add(name, fact)
        for number, checkpoint in enumerate(checkpoints):  # of the first one the lowest level is the base

            def lies_over(header: Any, level: int, number: int = number) -> bool:
                return (number > 0 or level > 0) and (classes is None or getattr(header, "class") != SUPERSEDED)

            for name, fact in self._checkpoint_facts(checkpoint, tables, lies_over):
                add(name, fact)
        wanted = _needed(facts, classes)  # everything that lies over the base is there
        for first in [*checkpoints][:1]:
            for name, fact in self._checkpoint_facts(first, tables, lambda header, level: not level and wanted(header)):
                add(name, fact)
        return tables, facts

    def _events(self, transaction: Any, tables: dict[str, Table]) -> Iterator[tuple[str, Fact]]:
        """The facts of a transaction's events, wherever it has them (spec/transactions.md)."""
        assert len(transaction.actions) <= 64
        assert not (transaction.actions and (transaction.blocks or transaction.segments))
        yield from facts_of_actions(transaction, tables)
        blocks = [(block.header, block.SerializeToString()) for block in transaction.blocks]
        for reference in transaction.segments:
            assert reference.writer == transaction.writer
            for header, run, data in self._blocks(reference, of_cut=False):
                assert run is not None and getattr(header, "class") == EVENTS
                blocks.append((header, data))
        for header, data in blocks:
            for fact in facts_of_block(data, tables[header.table], transaction):
                yield header.table, fact

    def _checkpoint_facts(
        self, checkpoint: Any, tables: dict[str, Table], wanted: Callable[[Any, int], bool] = lambda *_: True
    ) -> Iterator[tuple[str, Fact]]:
        """The rows of a checkpoint's segments. ``wanted`` is asked with a block's header and its level."""
        shares = "runs" in checkpoint.required_features
        for reference in checkpoint.segments:
            assert shares or not any(run.level for run in reference.runs)
            for header, run, block in self._blocks(reference, of_cut=True):
                assert shares or run is not None
                if run is not None and run.purpose in (0, ROWS) and wanted(header, run.level):
                    for fact in facts_of_block(block, tables[header.table]):
                        yield header.table, fact

    def orders(self, ref: Ref) -> dict[tuple[str, str], tuple[list[bytes], list[bytes]]]:
        """For each kept order of a checkpoint its keys, and those that the tombstones of level 0 make (spec/segments.md)."""
        checkpoint = self.checkpoints[ref]
        tables, _ = self._facts([], [checkpoint])
        said: dict[tuple[str, str], list[bytes]] = {}
        shapes: dict[tuple[str, str], Table] = {}
        for reference in checkpoint.segments:
            for _, run, block in self._blocks(reference, of_cut=True):
                if run is not None and run.purpose == ORDER:
                    shape = shapes.setdefault((run.table, run.name), _order(tables[run.table], run.name))
                    keys = [encoded_key(shape, fact.row) for fact in facts_of_block(block, shape)]
                    said.setdefault((run.table, run.name), []).extend(keys)
        wanted = (ENDED, SUPERSEDED)
        ended = self._checkpoint_facts(checkpoint, tables, lambda header, level: not level and getattr(header, "class") in wanted)
        made: dict[tuple[str, str], list[bytes]] = {name: [] for name in said}
        for table, fact in ended:
            assert fact.end is not None
            for name in (name for name in said if name[0] == table):
                made[name].append(encoded_key(shapes[name], {**fact.row, END: fact.end[0]}))
        return {name: (sorted(keys), sorted(made[name])) for name, keys in said.items()}

    def _blocks(self, reference: Any, *, of_cut: bool) -> Iterator[tuple[Any, Any, bytes]]:
        """Header, listed run and bytes of each block of a segment, checked along the chain of digests (spec/segments.md)."""
        name = f"{reference.writer}/{self.database}/segments/{UUID(bytes=reference.uuid)}.seg"
        data = (self.root / name).read_bytes()
        assert len(data) == reference.size
        assert int.from_bytes(data[-8:], "little") < reference.index_offset
        sealed = data[reference.index_offset : reference.index_offset + reference.index_length]
        assert sealed[-32:] == reference.index_digest
        index = unsealed(sealed, "SegmentIndex")
        assert index.HasField("cut") == of_cut
        whole = message("Segment").FromString(data)  # the file is one message, too
        assert len(whole.blocks) == len(index.entries)
        assert whole.filters.checksum == index.filters_digest
        if reference.filters_length:
            filters = data[reference.filters_offset :][: reference.filters_length]
            assert filters[-32:] == index.filters_digest == hashlib.sha256(filters[:-35]).digest()
        listed = {(_block_table(run), getattr(run, "class")): run for run in reference.runs}
        counts = Counter((entry.header.table, getattr(entry.header, "class")) for entry in index.entries)
        assert all(counts[name] == run.blocks for name, run in listed.items())
        for entry in index.entries:
            block = data[entry.offset : entry.offset + entry.length]
            assert block[-4:] == entry.checksum.to_bytes(4, "little")
            yield entry.header, listed.get((entry.header.table, getattr(entry.header, "class"))), block


def _order(table: Table, name: str) -> Table:
    """The table that the rows of an order are of (spec/segments.md)."""
    end = Column(END, "deleted_at", "timestamp", "one", False, 0, (), {})
    fields = [end if f == "deleted_at" else int(f) for f in name[name.rindex("(") + 1 : -1].split(",")]
    by_number = {column.number: column for column in table.key}
    first = [field if isinstance(field, Column) else by_number[field] for field in fields]
    key = (*first, *(column for column in table.key if column not in first))
    return replace(table, name=f"{table.name}#{name}", columns=key, key=key)


def _block_table(run: Any) -> str:
    """What the blocks of a run have as their table (spec/segments.md)."""
    return run.table if run.purpose in (0, ROWS) else f"{run.table}#{run.name}"


def _tag_entries(tail: Iterable[Any], checkpoints: Iterable[Any]) -> list[tuple[tuple[Any, ...], Any]]:
    """What transactions and checkpoints say of tags, each with the stamp of its transaction (spec/tags.md)."""
    entries = [(_stamp_of(transaction), entry) for transaction in tail for entry in transaction.tags]
    return entries + [(_stamp_of(entry.carried_by), entry) for checkpoint in checkpoints for entry in checkpoint.tags]


def _voided(tail: Iterable[Any], checkpoints: Iterable[Any]) -> set[Ref]:
    """What maintainers have voided (spec/voids.md), and what timelines have lost (spec/losses.md)."""
    tail = list(tail)
    links = [loss.transaction for transaction in tail for loss in transaction.losses]
    links += [link for transaction in tail if transaction.writer.startswith("maintainer-") for link in transaction.voids]
    links += [link for checkpoint in checkpoints for link in checkpoint.voids]
    return set(map(_ref_of, links))


def _ref_of(link: Any) -> Ref:
    return link.writer, link.revision, link.uuid


def _stand_in(loss: Any) -> Any:
    """What counts in the place of a transaction that is lost: its name, and what it follows (spec/losses.md)."""
    link = loss.transaction
    return message("Transaction")(
        writer=link.writer, revision=link.revision, uuid=link.uuid, commit_time=uuid_time(link.uuid), parents=loss.follows
    )


def _emptied(transaction: Any) -> Any:
    """A voided transaction, of which only its definitions count."""
    left = type(transaction).FromString(transaction.SerializeToString())
    for field_name in ("actions", "blocks", "segments", "tags"):
        left.ClearField(field_name)
    return left


def _cut_text(cut: Any) -> str:
    """A cut as text (spec/cuts.md)."""
    heads = [
        (writer.writer, head)
        for writer in sorted(cut.writers, key=lambda writer: writer.writer.encode())
        for head in sorted(writer.heads, key=lambda head: (head.revision, head.uuid))
    ]
    return ",".join(f"{writer}@{head.revision}:{head.uuid.hex()}" for writer, head in heads) or ":"


def _stamp_of(message: Any) -> tuple[Any, ...]:
    return message.commit_time, message.writer, message.revision, message.uuid


def _reads(ref: Ref, transaction: Any) -> Iterator[Ref]:
    for link in transaction.parents:
        yield ref[0], link.revision, link.uuid
    for writer in transaction.reads:
        for head in writer.heads:
            yield writer.writer, head.revision, head.uuid


def _needed(tail: dict[str, dict[bytes, list[Fact]]], classes: frozenset[int] | None) -> Callable[[Any], bool]:
    """Which blocks have to be read: those of the classes, and those that can say something about a PUT of the tail."""
    puts = {
        name: [(k, f.stamp[0]) for k, fs in keys.items() for f in fs if f.kind == VERSION and f.stamp]
        for name, keys in tail.items()
    }

    def wanted(header: Any) -> bool:
        if classes is None or getattr(header, "class") in classes:
            return True
        return any(header.first_key <= k <= header.last_key and t <= header.newest for k, t in puts.get(header.table, []))

    return wanted


@dataclass
class Answer:
    """What the facts of a database say."""

    tables: dict[str, Table]
    facts: dict[str, dict[bytes, list[Fact]]]
    tag_entries: list[tuple[tuple[Any, ...], Any]]

    def tags(self) -> list[dict[str, Any]]:
        """Every tag, dropped ones too, with what it replaced (spec/tags.md)."""
        found = []
        for name in sorted({entry.name for _, entry in self.tag_entries}):
            entries = sorted(((s, e) for s, e in self.tag_entries if e.name == name), key=lambda one: one[0])
            (time, writer, revision, _), latest = entries[-1]
            version = _cut_text(latest.cut)
            others = [(stamp, _cut_text(e.cut)) for stamp, e in entries if _cut_text(e.cut) != version]
            replaced = others[-1] if others else None
            found.append(
                {
                    "name": name,
                    "version": version,
                    "created": _time(latest.created),
                    "dropped": latest.dropped,
                    "commit_timestamp": _time(time),
                    "writer": writer,
                    "revision": revision,
                    "replaced_version": replaced[1] if replaced else None,
                    "replaced_commit_timestamp": _time(replaced[0][0]) if replaced else None,
                    "replaced_writer": replaced[0][1] if replaced else None,
                }
            )
        return found

    def _states(self, name: str) -> Iterator[tuple[bytes, State]]:
        for key, facts in sorted(self.facts[name].items()):
            yield key, fold(facts, self.tables[name])

    def live(self, name: str) -> list[dict[str, Any]]:
        """The live rows."""
        table = self.tables[name]
        return [_shown(table, v) for _, state in self._states(name) for v in state.versions if v.end is None]

    def tombstones(self, name: str) -> list[dict[str, Any]]:
        """The tombstones, with ``deleted_at``."""
        table = self.tables[name]
        found = (
            []
            if table.drops_tombstones
            else [v for _, state in self._states(name) for v in state.versions if v.end and not v.purged]
        )
        return [_shown(table, v) | {"deleted_at": _time(v.end[0])} for v in found if v.end]

    def conflicts(self) -> list[dict[str, Any]]:
        """The conflicts of every table."""
        return [
            {
                "kind": kind,
                "table": name,
                "key": key,
                "version": version,
                "event": text_of(name_of(event)),
                "commit_timestamp": _time(event[0]),
                "writer": event[1],
                "expected": expected,
                "found": found,
            }
            for name in self.tables
            for key, state in self._states(name)
            for kind, version, event, expected, found in conflicts(state)
        ]


# ----------------------------------------------------------------------------------------------------------------- surface


def _shown(table: Table, version: Version) -> dict[str, Any]:
    """A row as people see it (spec/tables.md), with what every table shows on request."""
    commit_time, writer, revision = version.stamp[:3]
    row = {}
    for column in sorted(table.columns, key=lambda column: column.number):
        value = version.row.get(column.number)
        if value is None and column.default in (1, 2):
            value = commit_time if column.default == 1 else version.row_stamp[0]
        row[column.name] = _surface(column, value)
    return row | {
        "_version": text_of(name_of(version.stamp)),
        "_commit_timestamp": _time(commit_time),
        "_writer": writer,
        "_revision": revision,
    }


def _surface(column: Column, value: Any) -> Any:
    if value is None:
        return _surface(column, _zero(column)) if column.implicit else None
    if column.shape == "map":
        return [(_surface_one(column.children[0], key), _surface_one(column.children[1], item)) for key, item in value]
    return [_surface_one(column, item) for item in value] if column.shape == "list" else _surface_one(column, value)


def _surface_one(column: Column, value: Any) -> Any:
    if column.type == "uuid":
        return str(UUID(bytes=value))
    if column.type == "timestamp":
        return _time(value)
    if column.type == "enum":
        return column.symbols.get(value, str(value))
    if column.type == "message":
        return {child.name: _surface(child, value.get(child.number)) for child in column.children}
    return value


def _time(micros: int) -> datetime.datetime:
    return _EPOCH + micros * _MICROSECOND
