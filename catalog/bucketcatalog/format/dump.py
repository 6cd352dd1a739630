"""What any file of a catalog holds, as far as it can be read: for people who look at a file, damaged or not.

Unlike the decoders, which stop at the first thing that is wrong, this takes a message apart field by field, keeps what parses, and lists
every problem beside it.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError, Message

from ..errors import BucketCatalogError
from ..model.facts import Facts
from ..model.keys import shown_key
from ..model.paths import FileKind, kind_of
from ..model.render import surface_array
from ..model.tables import UUID_BYTES, Table, split_side
from ..model.times import datetime_of
from ..model.uuids import to_text, uuid_text
from ..v1 import log_pb2
from .blocks import decode_block, facts_of_block
from .bounds import check_size
from .definitions import core_tables, parse_definition
from .footers import MAGIC, Footer, footer_start
from .headers import header_of
from .parquet import RowGroup, check_row_group, read_row_groups
from .rows import decode_row
from .sealing import find_sealed, has_seal, unseal, varint_at
from .segments import decode_filters, index_span

_MESSAGES: Mapping[FileKind, Any] = {
    FileKind.TRANSACTION: log_pb2.Transaction,
    FileKind.CHECKPOINT: log_pb2.Checkpoint,
    FileKind.SEGMENT: log_pb2.SegmentIndex,
}
_HOLDS = {FileKind.TRANSACTION: "a transaction", FileKind.CHECKPOINT: "a checkpoint", FileKind.SEGMENT: "a segment"}
_TIMES = frozenset({"commit_time", "created", "newest_commit_time", "oldest", "newest", "settled", "forgotten_before"})
_UUIDS = frozenset({"uuid", "checkpoint", "kept", "replaces"})
_ROWS = log_pb2.RunPurpose.Name(log_pb2.RUN_PURPOSE_ROWS)
_SHOWN_ZEROS = ("revision", "sequence")
_LENGTHS = {1: 8, 5: 4}
_LENGTH_DELIMITED = 2


@dataclass
class Inspection:
    """A file's kind, its readable content as plain values, what is wrong with it and what it does not show, each as one sentence.

    ``is_foreign``: it is a Parquet file that has a footer, and before that no index.
    """

    kind: str
    content: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    is_foreign: bool = False


def inspect(data: bytes, name: str, *, rows: int = 0) -> Inspection:
    """Look at the file ``name``; never raises for what its bytes are. ``rows``: how many rows of each block to show."""
    kind = kind_of(name) or _kind(data)
    looking = _Looking(Inspection(kind.value), name, rows)
    if not data:
        looking.problem("The file is empty.")
        return looking.found
    if kind is FileKind.SEGMENT:
        looking.look_at_segment(data)
        return looking.found
    if not looking.is_small(data, _HOLDS[kind]):
        return looking.found
    message = looking.parts(_MESSAGES[kind], data)
    looking.learn_tables(message)
    looking.check_seal(data, _HOLDS[kind])
    looking.found.content = looking.readable(message)
    return looking.found


def _kind(data: bytes) -> FileKind:
    """What the first fields look like."""
    if data[:4] == MAGIC:
        return FileKind.SEGMENT
    wires = {part.number: part.wire for part in _fields(data, [])}
    return FileKind.CHECKPOINT if wires.get(8) == _LENGTH_DELIMITED else FileKind.TRANSACTION


class _Looking:
    """One inspection under way."""

    def __init__(self, found: Inspection, name: str, rows: int) -> None:
        self.found = found
        self._name = name
        self._rows = rows
        self._tables: dict[str, Table] = dict(core_tables())

    def problem(self, text: str) -> None:
        """Note what is wrong."""
        self.found.problems.append(text)

    def is_small(self, data: bytes, holds: str) -> bool:
        """Whether a transaction or checkpoint can have so many bytes: of more, which may be their beginning, nothing is made."""
        return self._check(lambda: check_size(len(data), self._name, holds))

    def parts(self, message_type: Any, data: bytes) -> Any:
        """The message with every field that parses."""
        message = message_type()
        for part in _fields(data, self.found.problems):
            parsed = message_type()
            try:
                parsed.MergeFromString(data[part.start : part.stop])
                message.MergeFrom(parsed)
            except DecodeError:
                self.problem(f"Field {part.number} at byte {part.start}, {part.stop - part.start} bytes, cannot be read.")
        return message

    def learn_tables(self, message: Any) -> None:
        """Use the file's own definitions of tables for its rows."""
        for definition in message.tables:
            try:
                self._tables[definition.name] = parse_definition(definition.SerializeToString(deterministic=True))
            except Exception as error:
                self.problem(f"The definition of table {definition.name!r} cannot be used: {_said(error)}")

    def check_seal(self, data: bytes, holds: str) -> None:
        """Note a checksum that does not match."""
        self._check(lambda: unseal(data, self._name, holds))

    def look_at_segment(self, data: bytes) -> None:
        """Note what its index says and what its row groups hold, and where these are not there, not whole, or not each other's."""
        if data[: len(MAGIC)] != MAGIC:
            self.problem("It does not begin as a Parquet file does.")
        placed = self._index_in(data)
        if placed is None:
            return
        start, stop, footer = placed
        index = self.parts(log_pb2.SegmentIndex, data[start:stop])
        self.learn_tables(index)
        self.check_seal(data[start:stop], "the index of a segment")
        shown = self.readable(index)
        shown.pop("entries", None)  # each is shown with its row group
        self.found.content = {"index": shown}
        of = Footer(self._name, footer, len(data) - footer, index.footer_digest)
        self._check(lambda: of.give(data[footer:]))
        end = max((entry.offset + sum(entry.lengths) for entry in index.entries), default=0)
        if index.filters_digest:
            self._check(lambda: decode_filters(data[end:start], self._name, index.filters_digest))
        if not of.needs():
            self.found.content["blocks"] = [
                self._row_group(data, number, of, entry) for number, entry in enumerate(index.entries)
            ]

    def _index_in(self, data: bytes) -> tuple[int, int, int] | None:
        """Where the index lies, from and up to, and where the footer begins; what is not there, or elsewhere, is a problem."""
        footer = None
        try:
            footer = footer_start(data[-8:], len(data), self._name)
            start, stop = index_span(data[footer - 4 : footer], footer, self._name)
            if has_seal(data[start:stop]):
                return start, stop, footer
        except BucketCatalogError as error:
            if footer is None:
                self.problem(error.message)
        found = find_sealed(data)
        if footer is None:
            if found is None:
                self.problem("It is cut short, or its end is damaged, and nothing is left of the index that says what it holds.")
            return None if found is None else (*found, found[1] + 4)
        self.found.is_foreign = found is None
        if found is None:
            self.problem(
                "It has no index before its footer: it is a Parquet file of another program, or its index was overwritten."
            )
            return None
        self.problem("Where its index lies is not what is said before its footer.")
        return *found, footer

    def _row_group(self, data: bytes, number: int, of: Footer, entry: Any) -> dict[str, Any]:
        group = RowGroup.of(number, entry, of)
        shown = {**self.readable(entry.header), "bytes": sum(entry.lengths)}

        def fetch(at: int, length: int) -> bytes:
            return data[at : at + length]

        def held() -> str:
            return f"row group {number}"

        def facts(table: Table) -> Facts:
            read = partial(read_row_groups, [group], fetch=fetch, held=held)
            return facts_of_block(read, of.layout.schema, header_of(entry.header), table, self._name)

        if of.needs():
            return {**shown, "readable": False}
        try:
            check_row_group(group, fetch, held)
        except BucketCatalogError as error:
            self.problem(error.message)
            return {**shown, "readable": False}
        return self._with_rows(shown, entry.header.table, facts)

    def _check(self, check: Callable[[], object]) -> bool:
        try:
            check()
        except BucketCatalogError as error:
            self.problem(error.message)
            return False
        return True

    def readable(self, message: Any) -> dict[str, Any]:
        """The set fields by name, as plain values; a revision or number of 0 is shown though it is not on the wire.

        Keys of rows of a table that is defined are shown as the values of their columns, too.
        """
        zeros = {name: 0 for name in _SHOWN_ZEROS if name in message.DESCRIPTOR.fields_by_name}
        shown = zeros | {descriptor.name: self._field(descriptor, value) for descriptor, value in message.ListFields()}
        table = self._tables.get(shown.get("table", ""))
        if table is not None and shown.keys() >= {"first_key", "last_key"} and shown.get("purpose", _ROWS) == _ROWS:
            return {**shown, "shown": [shown_key(table, key) for key in (message.first_key, message.last_key)]}
        return shown

    def _field(self, descriptor: Any, value: Any) -> Any:
        if descriptor.message_type is not None and descriptor.message_type.GetOptions().map_entry:
            return {str(key): item for key, item in value.items()}
        if isinstance(value, (str, bytes, int, float, Message)):
            return self._value(descriptor, value)
        return [self._value(descriptor, item) for item in value]

    def _value(self, descriptor: Any, value: Any) -> Any:
        if isinstance(value, log_pb2.Block):
            return self._block(value)
        if isinstance(value, log_pb2.InlineRun):
            return {"run": self.readable(value.run), "blocks": [self._block(self.parts(log_pb2.Block, b)) for b in value.blocks]}
        if isinstance(value, log_pb2.Action):
            return self._action(value)
        if isinstance(value, log_pb2.TableDefinition):
            return value.name
        if isinstance(value, Message):
            return self.readable(value)
        if isinstance(value, bytes):
            return uuid_text(value) if descriptor.name in _UUIDS and len(value) == 16 else value.hex()
        if descriptor.enum_type is not None:
            symbol = descriptor.enum_type.values_by_number.get(value)
            return symbol.name if symbol is not None else value
        return _time(value) if descriptor.name in _TIMES else value

    def _undefined(self, table: str) -> None:
        """Note that rows are not shown: mostly an earlier transaction of the writer defines their table."""
        note = f"Rows of table {table!r} are not shown, for another file defines it."
        if note not in self.found.notes:
            self.found.notes.append(note)

    def _action(self, action: Any) -> dict[str, Any]:
        shown = {d.name: self._field(d, value) for d, value in action.ListFields() if d.name != "row"}
        table = self._tables.get(action.table)
        if table is None:
            self._undefined(action.table)
            return {**shown, "row": action.row.hex()}
        try:
            stored = decode_row(table, action.row, self._name)
        except Exception as error:
            self.problem(f"A row of table {action.table!r} cannot be read: {_said(error)}")
            return {**shown, "row": action.row.hex()}
        by_number = {column.field_name: column for column in table.columns}
        return {**shown, "row": {by_number[name].name: _stored(value) for name, value in stored.items()}}

    def _block(self, block: Any) -> dict[str, Any]:
        data = block.SerializeToString(deterministic=True)
        shown = {**self.readable(block.header), "bytes": len(data)}
        return self._with_rows(shown, block.header.table, lambda table: decode_block(data, table, self._name))

    def _with_rows(self, shown: dict[str, Any], of: str, read: Callable[[Table], Facts]) -> dict[str, Any]:
        """What is shown of a block of the table ``of``, with the rows that were asked for; what cannot be read is a problem."""
        owner, side = split_side(of)
        if side is not None and owner in self._tables:
            return shown  # sums or an order of its rows: of what stands in the name
        table = self._tables.get(of)
        if table is None:
            self._undefined(of)
            return shown
        try:
            facts = read(table)
            if self._rows:
                shown["first_rows"] = self._shown_rows(facts, table)
        except Exception as error:
            self.problem(f"A block of table {of!r} cannot be read: {_said(error)}")
            return {**shown, "readable": False}
        return shown

    def _shown_rows(self, facts: Facts, table: Table) -> list[dict[str, Any]]:
        rows = facts.rows.slice(0, self._rows)
        by_number = {column.field_name: column for column in table.columns}
        named = {}
        for name in rows.column_names:
            values = rows.column(name).combine_chunks()
            column = by_number.get(name)
            if column is not None:
                named[column.name] = surface_array(column, values).to_pylist()
            else:
                named[name] = (to_text(values) if values.type == UUID_BYTES else values).to_pylist()
        shown = [dict(zip(named, values, strict=True)) for values in zip(*named.values(), strict=True)]
        return [{name: _stored(value) for name, value in row.items() if value is not None} for row in shown]


def _said(error: Exception) -> str:
    """What an error says. Damage makes definitions fail in more ways than can be told apart, hence the wide nets above."""
    return error.message if isinstance(error, BucketCatalogError) else f"{type(error).__name__}: {error}"


def _stored(value: Any) -> Any:
    """A value of a row as plain as JSON."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime.datetime):
        return value.isoformat()
    if isinstance(value, (list, tuple)):
        return [_stored(item) for item in value]
    return {str(key): _stored(item) for key, item in value.items()} if isinstance(value, Mapping) else value


def _time(micros: int) -> str | int:
    try:
        return datetime_of(micros).isoformat()
    except OverflowError:
        return micros


class _Part(NamedTuple):
    """One field of a message: its bytes from ``start`` to ``stop``, its value's from ``payload`` on."""

    number: int
    wire: int
    start: int
    payload: int
    stop: int


def _fields(data: bytes, problems: list[str]) -> Iterator[_Part]:
    """The fields of a message, up to the first that is none; what is behind is a problem."""
    at = 0
    while at < len(data):
        try:
            tag, after = varint_at(data, at)
            number, wire = tag >> 3, tag & 7
            if wire == 0:
                stop = varint_at(data, after)[1]
            elif wire == _LENGTH_DELIMITED:
                length, after = varint_at(data, after)
                stop = after + length
            else:
                stop = after + _LENGTHS[wire]
            if stop > len(data) or number == 0:
                raise ValueError
        except (ValueError, KeyError):
            problems.append(
                f"From byte {at} on, {len(data) - at} bytes are not fields of a message: the file is cut short or damaged."
            )
            return
        yield _Part(number, wire, at, after, stop)
        at = stop
