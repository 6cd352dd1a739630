"""Tables as their definitions say, and the bytes that their keys are ordered by (spec/tables.md, spec/keys.md)."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from .cuts import Ref
from .sealing import message, option
from .stamps import stamp_of
from .trust import is_maintainer, is_trusted

_WIDTHS = {"int32": (4, True), "uint32": (4, False), "int64": (8, True), "uint64": (8, False), "timestamp": (8, True)}
_CARRIED = ("", "int32", "int64", "uint32", "uint64", "double", "float", "bool", "enum", "string", "message")
_ZERO = {"string": "", "bytes": b"", "uuid": str(UUID(int=0)), "bool": False, "float": 0.0, "double": 0.0}


@dataclass(frozen=True)
class Column:
    """A field of a row message; of a list the child is what it holds, of a map its key and its value (spec/tables.md)."""

    number: int
    name: str
    type: str
    children: tuple[Column, ...] = ()
    symbols: dict[int, str] = field(default_factory=dict, hash=False)
    implicit: bool = False
    default: int = 0
    said_removed: bool = False
    removed: bool = False


@dataclass(frozen=True)
class Table:
    """A table as its definition says; ``older`` are the messages of rows by the definitions before it."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[Column, ...]
    fixed: frozenset[int]
    drops_tombstones: bool
    row: Any
    older: tuple[Any, ...] = ()
    reserved: tuple[tuple[int, int], ...] = ()

    @property
    def shown(self) -> list[Column]:
        """The columns that people see, in the order of their numbers."""
        return sorted((column for column in self.columns if not column.removed), key=lambda column: column.number)


def table_of(definition: Any) -> Table:
    """The table of a TableDefinition."""
    pool = descriptor_pool.DescriptorPool()
    for file in definition.files.file:
        pool.AddSerializedFile(file.SerializeToString())
    found = pool.FindMessageTypeByName(definition.message)
    options = option(found, "table")
    columns = {item.name: _column(item, options.key) for item in found.fields}
    return Table(
        name=options.name,
        columns=tuple(columns.values()),
        key=tuple(columns[name] for name in options.key),
        fixed=frozenset(columns[name].number for name in (*options.key, *options.data_reference, options.id) if name),
        drops_tombstones=options.tombstones == 2,
        row=message_factory.GetMessageClass(found),
        reserved=_reserved(found),
    )


def _reserved(described: Any) -> tuple[tuple[int, int], ...]:
    copied = descriptor_pb2.DescriptorProto()
    described.CopyToProto(copied)
    return tuple((span.start, span.end) for span in copied.reserved_range)


def _column(item: Any, key: Collection[str] = ()) -> Column:
    options, target = option(item, "column"), item.message_type
    carried = "bytes" if item.type == item.TYPE_BYTES else _CARRIED[item.cpp_type]
    one = Column(
        number=item.number,
        name=item.name,
        type={1: "uuid", 2: "timestamp"}.get(options.type, carried),
        children=tuple(_column(child) for child in target.fields) if target else (),
        symbols={value.number: value.name for value in item.enum_type.values} if item.enum_type else {},
        implicit=not item.has_presence and not item.is_repeated and item.name not in key,
        default=options.default,
        said_removed=options.removed,
        removed=options.removed,
    )
    if target and target.GetOptions().map_entry:
        return replace(one, type="map")
    marks = {"said_removed": options.removed, "removed": options.removed}
    return Column(item.number, item.name, "list", (one,), **marks) if item.is_repeated else one


Definer = tuple[Any, Any, str, bool]
"""The first and the latest stamp of a writer's transactions that carry a definition, the writer, and whether it has declared it."""


def definers_of(transactions: Iterable[Any], checkpoints: Iterable[Any] = ()) -> dict[str, dict[bytes, list[Definer]]]:
    """By table and definition who has made it (spec/tables.md, "Definitions")."""
    said: list[tuple[Any, Definer]] = []
    for transaction in transactions:
        stamp = stamp_of(transaction)
        said += [(d, (stamp, stamp, stamp[1], d.declared and is_maintainer(stamp[1]))) for d in transaction.tables]
    for definition in (d for checkpoint in checkpoints for d in checkpoint.tables):
        last = stamp_of(definition.defined_by)
        said += [(definition, (last, last, last[1], False))] if not definition.definers else []
        for one in definition.definers:
            first, latest = stamp_of(one.first), stamp_of(one.latest if one.HasField("latest") else one.first)
            said.append((definition, (first, latest, first[1], one.declared and is_maintainer(first[1]))))
    found: dict[str, dict[bytes, dict[tuple[str, bool], Definer]]] = {}
    for definition, (first, latest, *who) in said:
        bare = bare_definition(definition)
        same = found.setdefault(bare.name, {}).setdefault(bare.SerializeToString(deterministic=True), {})
        known = same.get((who[0], who[1]), (first, latest, *who))
        same[who[0], who[1]] = (min(first, known[0]), max(latest, known[1]), who[0], who[1])
    made = {(name, one, who): definer for name, of in found.items() for one, same in of.items() for who, definer in same.items()}
    counted = _counted(made)
    kept = {
        name: {one: [definer for who, definer in same.items() if (name, one, who) in counted] for one, same in of.items()}
        for name, of in found.items()
    }
    kept = {name: {one: definers for one, definers in of.items() if definers} for name, of in kept.items()}
    return {name: of for name, of in kept.items() if of}


def _counted(made: dict[Any, Definer]) -> set[Any]:
    """Of each plain writer the first 1,024 definitions, of 4 MiB together (spec/tables.md, "Definitions")."""
    counted, had = set(), dict[str, tuple[int, int]]()
    for key, (_, _, writer, _) in sorted(made.items(), key=lambda item: (item[1][0], item[0][0], item[0][1])):
        count, size = had.get(writer, (0, 0))
        had[writer] = count + 1, size + len(key[1])
        if is_trusted(writer) or (had[writer][0] <= 1_024 and had[writer][1] <= 4 << 20):
            counted.add(key)
    return counted


Witness = tuple[Any, Any, str, bytes]
"""Who says that a definition had been read, and who carries it, as stamps; the table, and the digest of the definition."""


def witnesses_of(transactions: Iterable[Any], checkpoints: Iterable[Any] = ()) -> list[Witness]:
    """What compactors and maintainers say of definitions that they had read, first to last (spec/tables.md, "Witnesses")."""
    said = [(stamp_of(t), entry) for t in transactions if is_trusted(t.writer) for entry in t.witnessed]
    carried = [entry for checkpoint in checkpoints if is_trusted(checkpoint.writer) for entry in checkpoint.witnessed]
    said += [(stamp_of(entry.carried_by), entry) for entry in carried if is_trusted(entry.carried_by.writer)]
    return sorted((stamp, stamp_of(entry.defined_by), entry.table, entry.definition) for stamp, entry in said)


def counting(witnesses: Iterable[Witness], asides: Collection[Ref]) -> list[Witness]:
    """Those whose transaction that carries the definition is not set aside."""
    return [witness for witness in witnesses if witness[1][1:] not in asides]


def digest(definition: bytes) -> bytes:
    """By what a definition is named."""
    return hashlib.sha256(definition).digest()


def bare_definition(definition: Any) -> Any:
    """A definition without what says who made it."""
    bare = type(definition).FromString(definition.SerializeToString())
    for name in ("defined_by", "definers", "declared"):
        bare.ClearField(name)
    return bare


def tables_of(transactions: Collection[Any], checkpoints: Collection[Any] = (), asides: Collection[Ref] = ()) -> dict[str, Table]:
    """The tables that transactions and checkpoints define, of definitions that fit each other (spec/tables.md, "Who decides").

    This reader knows no tables of its own: who defined one of the core's first stands for the release.
    """
    tables: dict[str, Table] = {}
    witnesses = counting(witnesses_of(transactions, checkpoints), asides)
    for name, definitions in definers_of(transactions, checkpoints).items():
        made = [(*definer, one) for one, definers in definitions.items() for definer in definers]
        about = [witness for witness in witnesses if witness[2] == name]
        known = [carrier[1] for _, carrier, *_ in about if "." in name and carrier[1] in {one[2] for one in made}]
        first = known[0] if known else min(made)[2]
        ranks = {said: (said_by, carrier) for said_by, carrier, _, said in reversed(about)}
        declared = [one for one in made if one[3]]
        deciding = declared or [one for one in made if one[2] == first]
        rest = [one for one in made if one not in deciding]
        parsed = {one: table_of(message("TableDefinition").FromString(one)) for one in definitions}
        table: Table | None = None
        for *_, one in sorted(deciding, key=lambda one: one[1]):
            table = parsed[one] if table is None else _together(table, parsed[one])
        assert table is not None
        for *_, one in sorted(rest, key=lambda one: _turn(ranks.get(digest(one[-1])), one[0], is_first=one[2] == first)):
            table = _together(parsed[one], table)
        tables[name] = table
    return tables


def _turn(rank: Any, since: Any, *, is_first: bool) -> tuple[Any, ...]:
    """What was witnessed comes before the rest, and of that the first definer's."""
    return (False, *rank) if rank else (True, not is_first, since)


def _together(older: Table, newer: Table) -> Table:
    """The newer with the columns that only the older has, which are removed where the newer has reserved their numbers."""
    numbers, names = {column.number for column in newer.columns}, {column.name for column in newer.columns}
    kept: list[Column] = []
    for column in (column for column in older.columns if column.number not in numbers):
        name = column.name
        while name in names:
            name = f"{name}_{column.number}"
        names.add(name)
        removed = column.said_removed or any(start <= column.number < end for start, end in newer.reserved)
        kept.append(replace(column, name=name, removed=removed))
    return replace(newer, columns=(*newer.columns, *kept), older=(*older.older, older.row, *newer.older))


def zero(column: Column) -> Any:
    """What a column without presence says that is unset."""
    return _ZERO.get(column.type, 0)


def encoded_key(table: Table, row: dict[Any, Any]) -> bytes:
    """The bytes that keys are ordered by (spec/keys.md)."""
    parts = []
    for column in table.key:
        value, last = row[column.number], column is table.key[-1]
        if column.type in _WIDTHS:
            width, signed = _WIDTHS[column.type]
            parts.append((value + (1 << 8 * width - 1 if signed else 0)).to_bytes(width, "big"))
        elif column.type == "uuid":
            parts.append(UUID(value).bytes)
        else:
            raw = value.encode() if isinstance(value, str) else value
            parts.append(raw if last else raw.replace(b"\x00", b"\x00\xff") + b"\x00\x01")
    return b"".join(parts)
