"""Events: what a transaction says, one by one, and how each becomes a fact."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import pyarrow as pa

from ..errors import InvalidVersion
from .facts import FACT_COLUMNS, End, EventNames, Expects, Facts, Kind
from .tables import Table
from .uuids import uuid_bytes, uuid_text


class EventKind(IntEnum):
    """What an event does; the numbers are the format's."""

    PUT = 1
    UPDATE = 2
    DELETE = 3
    PURGE = 4


@dataclass(frozen=True, slots=True, order=True)
class VersionName:
    """Names a version: the uuid of the transaction that put it and the event's number there."""

    uuid: bytes
    sequence: int

    def __str__(self) -> str:
        return f"{uuid_text(self.uuid)}:{self.sequence}"

    @classmethod
    def parse(cls, text: object) -> VersionName:
        """The version that ``_version`` shows as ``text``, or ``InvalidVersion``."""
        uuid, _, sequence = text.partition(":") if isinstance(text, str) else ("", "", "")
        try:
            name = cls(uuid_bytes(uuid), int(sequence))
        except ValueError:
            name = cls(b"", 0)
        if len(name.uuid) != 16 or not 0 <= name.sequence < 1 << 31 or str(name) != str(text).lower():
            raise InvalidVersion(f"{text!r} names no version of a row.", next_step="Use a value of the column _version.")
        return name


def version_list(names: EventNames) -> list[VersionName | None]:
    """The names one by one, None where one is null."""
    pairs = zip(names.uuids.to_pylist(), names.sequences.to_pylist(), strict=True)
    return [None if uuid is None else VersionName(uuid, sequence) for uuid, sequence in pairs]


Expectation = VersionName | None
"""What an event expects to replace: this version, or with None nothing at all."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a table: ``row`` holds storage values by field number, only the key's for DELETE and PURGE.

    ``expects`` is meant only where ``has_expectation``; None then means that nothing is expected to be live.
    """

    table: str
    kind: EventKind
    row: Mapping[str, Any]
    version: VersionName | None = None
    has_expectation: bool = False
    expects: Expectation = None
    moved: bool = False


Placed = tuple[int, int, Event]
"""An event with its transaction's position in a list of transactions and its number in there."""

_PUT = int(EventKind.PUT)


def facts_of_events(table: Table, events: Sequence[Placed], transactions: pa.Table) -> Facts:
    """The facts that events of one table make; ``transactions`` is the list that their positions refer to."""
    columns: dict[str, list[Any]] = {name: [] for name in FACT_COLUMNS}
    for position, sequence, event in events:
        for name, value in _fact(position, sequence, event).items():
            columns[name].append(value)
    arrays = {name: pa.array(values, FACT_COLUMNS[name]) for name, values in columns.items()}
    said = {name: values for name, values in arrays.items() if name in ("_txn", "_seq") or values.null_count < len(values)}
    names = {name for _, _, event in events for name in event.row} | {c.field_name for c in table.key_columns}
    rows = {
        column.field_name: pa.array([event.row.get(column.field_name) for _, _, event in events], column.storage_type)
        for column in table.columns
        if column.field_name in names
    }
    return Facts(transactions, pa.table({**rows, **said}))


def _fact(position: int, sequence: int, event: Event) -> dict[str, Any]:
    fact: dict[str, Any] = dict.fromkeys(FACT_COLUMNS)
    fact["_txn"], fact["_seq"] = position, sequence
    if event.has_expectation and (event.kind == _PUT or event.version is None):  # what names a version expects nothing
        expects = event.expects
        fact["_expects"] = int(Expects.ABSENT if expects is None else Expects.VERSION)
        if expects is not None:
            fact["_expects_uuid"], fact["_expects_seq"] = expects.uuid, expects.sequence
    if event.kind == _PUT:
        return fact
    if event.version is None:
        fact["_kind"] = int(Kind.DELETE)
        return fact
    fact["_kind"] = int(Kind.NAMED)
    fact["_name_uuid"], fact["_name_seq"] = event.version.uuid, event.version.sequence
    if event.kind is EventKind.UPDATE:
        fact["_row_txn"], fact["_row_seq"] = position, sequence
    elif event.kind is EventKind.DELETE:
        fact["_end_txn"], fact["_end_seq"] = position, sequence
        fact["_end_kind"] = int(End.MOVED if event.moved else End.NAMED_DELETE)
    else:
        fact["_purged"] = True
    return fact
