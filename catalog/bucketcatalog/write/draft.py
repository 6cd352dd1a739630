"""Drafts: what a user puts into a transaction, checked against its tables and numbered, before anything is written.

Rows come as a dict, a list of dicts, or Arrow data. A few become events one by one; Arrow data stays columns all the way to the blocks.
Whatever does not fit is refused here, so a transaction that is committed fits its tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..clock import uuid7_time
from ..errors import InvalidRows, UnknownTable
from ..model.arrays import one_chunk
from ..model.coerce import storage_array, storage_row
from ..model.events import Event, EventKind, VersionName
from ..model.facts import FACT_COLUMNS, End, Expects, Kind
from ..model.keys import encode_keys
from ..model.minimums import refuse_column
from ..model.tables import Table
from ..query.snapshot import Snapshot
from .derived_ids import Incarnations
from .references import named_versions, refuse_collected, rows_as_columns
from .staging import Encoded, StagedEvents
from .targets import Targets, parse_versions

Rows: TypeAlias = Mapping[str, Any] | Sequence[Mapping[str, Any]] | pa.Table | pa.RecordBatch


@dataclass
class Draft:
    """The events of one transaction, in their order. ``look`` gives a snapshot of now, where an event needs one."""

    find_table: Callable[[str], Table]
    look: Callable[[], Snapshot]
    tables: dict[str, Table] = field(default_factory=dict)
    named_after: int = 0
    _own: StagedEvents = field(default_factory=StagedEvents)
    _snapshot: Snapshot | None = None
    _incarnations: dict[str, Incarnations] = field(default_factory=dict)

    def __len__(self) -> int:
        return self._own.count

    @property
    def read_at(self) -> int | None:
        """The store's time in microseconds at which the transaction looked at the catalog; None where it has not."""
        return self._snapshot.view.observed if self._snapshot is not None else None

    def looks_in(self, snapshot: Snapshot) -> None:
        """What the events come from was looked up in this snapshot; nothing is looked up in another one."""
        self._snapshot = snapshot

    def add(
        self, kind: EventKind, name: str, rows: Rows, *, expect: str | None = None, has_expect: bool = False, moved: bool = False
    ) -> None:
        """Check rows and add an event for each. ``InvalidRows`` names row and column, and nothing is added."""
        table = self._table(name)
        expects = None if expect in (None, "absent") else VersionName.parse(expect)
        columns = _as_table(rows)
        if columns is not None:
            self._add_columns(kind, table, columns, expects, has_expect, moved)
        else:
            self._add_rows(kind, table, _as_list(table, rows), expects, has_expect, moved)
        if expects is not None:
            self._named([expects.uuid])
        self.tables[name] = table

    def share(self, name: str, rows: Rows, versions: Rows) -> None:
        """Check that rows that are to be put may name the data of these versions; ``DataCollected`` where it may be deleted."""
        table = self._table(name)

        def stored(columns: pa.Table, *, key_only: bool = True) -> pa.Table:
            return _stored_columns(table, columns, key_only=key_only)

        named = _as_table(versions)
        keys, names = named_versions(table, _as_list(table, versions) if named is None else named, stored)
        columns = _as_table(rows)
        if columns is None:
            given = [storage_row(table, row, number=number) for number, row in enumerate(_as_list(table, rows))]
            columns = rows_as_columns(table, given)
        else:
            columns = stored(columns, key_only=False)
        refuse_collected(self._now(), table, keys, names, columns)
        self._named(pc.unique(parse_versions(names)[0]).to_pylist())

    def _table(self, name: str) -> Table:
        if not isinstance(name, str):
            raise UnknownTable(f"{name!r} is no table's name.", next_step="Give the name of a table as text.")
        return self.tables.get(name) or self.find_table(name)

    def _of(self, table: Table) -> Incarnations:
        return self._incarnations.setdefault(table.name, Incarnations(table, self._now))

    def _now(self) -> Snapshot:
        """What the whole transaction looks things up in: one cut."""
        if self._snapshot is None:
            self._snapshot = self.look()
        return self._snapshot

    def _targets(self, table: Table, kind: EventKind) -> Targets:
        return Targets(table, kind, self._now, self._own)

    def _named(self, uuids: Iterable[bytes]) -> None:
        """Naming a version counts as having read it."""
        self.named_after = max([self.named_after, *(uuid7_time(uuid) for uuid in uuids)])

    def _add_rows(
        self,
        kind: EventKind,
        table: Table,
        rows: Sequence[Mapping[str, Any]],
        expects: VersionName | None,
        has_expect: bool,
        moved: bool,
    ) -> None:
        targets, incarnations = self._targets(table, kind), self._of(table)
        key_only = kind in (EventKind.DELETE, EventKind.PURGE)
        given = []
        for number, row in enumerate(rows):
            if not isinstance(row, Mapping):
                raise InvalidRows(f"Row {number} for table {table.name!r} is no mapping.", next_step="Give dicts, or Arrow data.")
            named, rest = targets.split(row)
            given.append((named, storage_row(table, rest, key_only=key_only, number=number)))
        if kind is EventKind.PUT:
            incarnations.fill([stored for _, stored in given])
        events = []
        for (_, stored), (version, kept) in zip(given, targets.versions(given), strict=True):
            if not kept:
                continue
            if version is not None:
                self._named([version.uuid])
            if kind is EventKind.DELETE and version is not None and has_expect:
                raise _expecting_twice(table)
            if kind is EventKind.DELETE:
                incarnations.end(stored, version)
            events.append(Event(table.name, kind, stored, version, has_expect, expects, moved and version is not None))
        self._own.add(events)

    def _add_columns(
        self, kind: EventKind, table: Table, rows: pa.Table, expects: VersionName | None, has_expect: bool, moved: bool
    ) -> None:
        targets = self._targets(table, kind)
        named, rest = targets.split_columns(rows)
        stored = _stored_columns(table, rest, key_only=kind in (EventKind.DELETE, EventKind.PURGE))
        keys = encode_keys(table, stored)
        if kind is EventKind.PUT:
            stored = self._of(table).fill_columns(stored, keys)
        uuids, sequences, kept = targets.versions_of(stored, keys, named)
        if kept is not None and uuids is not None and sequences is not None:
            stored, keys = stored.filter(kept), keys.filter(kept)
            uuids, sequences = uuids.filter(kept), sequences.filter(kept)
        if kind is EventKind.DELETE:
            self._of(table).end_columns(keys, uuids, sequences)
        if uuids is not None and has_expect and kind is EventKind.DELETE:
            raise _expecting_twice(table)
        facts = _event_columns(kind, stored, uuids, sequences, self._own.count, moved)
        if has_expect:
            facts = _expecting(facts, expects)
        if uuids is not None and len(uuids):
            self._named(pc.unique(uuids.drop_null()).to_pylist())
        self._own.add_columns(table, facts)

    def encoded(self) -> Encoded:
        """The events as actions, or as blocks where they are more than a transaction carries one by one."""
        return self._own.encoded(self.tables)


def _as_table(rows: Any) -> pa.Table | None:
    """Arrow data as a table; None for anything else."""
    return pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows if isinstance(rows, pa.Table) else None


def _as_list(table: Table, rows: Any) -> list[Any]:
    if isinstance(rows, Mapping):
        return [rows]
    if not isinstance(rows, Iterable):
        raise InvalidRows(
            f"{rows!r} is no row for table {table.name!r}.", next_step="Give a dict, a list of dicts, or Arrow data."
        )
    return list(rows)


def _stored_columns(table: Table, rows: pa.Table, *, key_only: bool) -> pa.Table:
    allowed = table.key if key_only else tuple(table.by_name)
    for name in rows.column_names:
        if rows.column_names.count(name) > 1:
            raise InvalidRows(f"Rows for table {table.name!r} have the column {name!r} twice.", next_step="Give it once.")
        if name not in allowed:
            raise InvalidRows(
                f"Rows for table {table.name!r} have the column {name!r}, which it does not take.",
                next_step=f"Its {'key columns' if key_only else 'columns'} are {', '.join(allowed)}.",
            )
    for name in table.key:
        if name not in rows.column_names:
            raise InvalidRows(
                f"Rows for table {table.name!r} lack the key column {name!r}.", next_step=f"Give {', '.join(table.key)}."
            )
    arrays = {}
    for name in rows.column_names:
        column = table.by_name[name]
        arrays[column.field_name] = storage_array(table, column, one_chunk(rows.column(name)))
        if not key_only:
            refuse_column(table, column, arrays[column.field_name])
    return pa.table(arrays)


def _event_columns(
    kind: EventKind, stored: pa.Table, uuids: pa.Array | None, sequences: pa.Array | None, first: int, moved: bool
) -> pa.Table:
    count = len(stored)
    numbers = pa.array(np.arange(first, first + count, dtype=np.int32))
    facts = stored.append_column("_seq", numbers)
    if kind is EventKind.PUT:
        return facts
    if uuids is None:
        return facts.append_column("_kind", pa.repeat(pa.scalar(int(Kind.DELETE), pa.uint8()), count))
    named = uuids.is_valid()
    kinds = pc.if_else(named, pa.scalar(int(Kind.NAMED), pa.uint8()), pa.scalar(int(Kind.DELETE), pa.uint8()))
    facts = facts.append_column("_kind", kinds).append_column("_name_uuid", uuids).append_column("_name_seq", sequences)
    if kind is EventKind.UPDATE:
        return facts.append_column("_row_seq", numbers)
    if kind is EventKind.PURGE:
        return facts.append_column("_purged", pa.repeat(pa.scalar(True), count))
    end = pa.scalar(int(End.MOVED if moved else End.NAMED_DELETE), FACT_COLUMNS["_end_kind"])
    facts = facts.append_column("_end_seq", pc.if_else(named, numbers, pa.scalar(None, pa.int32())))
    return facts.append_column("_end_kind", pc.if_else(named, end, pa.scalar(None, FACT_COLUMNS["_end_kind"])))


def _expecting(facts: pa.Table, expects: VersionName | None) -> pa.Table:
    count = len(facts)
    kind = Expects.ABSENT if expects is None else Expects.VERSION
    facts = facts.append_column("_expects", pa.repeat(pa.scalar(int(kind), pa.uint8()), count))
    if expects is None:
        return facts
    uuid = pa.repeat(pa.scalar(expects.uuid, FACT_COLUMNS["_expects_uuid"]), count)
    sequence = pa.repeat(pa.scalar(expects.sequence, pa.int32()), count)
    return facts.append_column("_expects_uuid", uuid).append_column("_expects_seq", sequence)


def _expecting_twice(table: Table) -> InvalidRows:
    return InvalidRows(
        f"A delete from table {table.name!r} names a version and expects one too.",
        next_step="Name the version to end only that one, or expect it to end whatever is current and see a conflict.",
    )
