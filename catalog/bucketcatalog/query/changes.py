"""Every event of a table between two cuts: those of the transactions in the later cut and not in the earlier one.

They are read from the transactions themselves, and from the segments that these refer to. What is read, and by how many processes,
follows from the transactions alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InvalidOption, SetAsideError, take_in_command
from ..format.transactions import Transaction
from ..log.between import transactions_between
from ..log.entries import without_voided
from ..log.files import LogFiles
from ..log.pruned import telling_of_prunes
from ..log.salvage import SalvagingFiles
from ..model.arrays import Mask, one_chunk
from ..model.cuts import Cut
from ..model.facts import NO_STAMP, Facts, Kind, commit_times
from ..model.paths import transaction as transaction_path
from ..model.render import chosen, output_schema, render, version_names
from ..model.tables import TIMESTAMP, Default, Table
from ..state.conditions import Where
from ..state.feed import Feed, FeedPart, Find, feed_parts, joined
from ..state.keyed import OfKeys, key_conditions
from ..state.shares import grouped, share_count
from ..store.base import Store
from .metadata import METADATA_TABLES
from .reads import BATCH_ROWS, InBatches, ReadTask
from .snapshot import DELETED_PREFIX, Snapshot, check_table_name

CHANGE_TYPE = "_change_type"
_VERSION = "_version"
_EVENT_COLUMNS = [
    pa.field(CHANGE_TYPE, pa.string(), False),
    pa.field("_table", pa.string(), False),
    pa.field(_VERSION, pa.string()),
    pa.field("_stamp", pa.string(), False),
    pa.field("_commit_timestamp", TIMESTAMP, False),
    pa.field("_writer", pa.string(), False),
    pa.field("_revision", pa.int64(), False),
]
_NOT_OF_THE_KEY = "deletes and purges carry their key alone, so nobody could say which of them to show."
_ROWS_OF_A_FILE, _MUCH = 64, 1 << 20
"""Events that take as long to read as it takes to fetch a transaction, and as many as keep a process busy, whatever they are."""
_WORTH = 1 << 15
"""Events that are worth a process of their own: fewer than of a table's rows, since each names its version and itself."""


def changed_table(snapshot: Snapshot, name: str) -> Table:
    """The definition of a table that can change; ``InvalidOption`` for what is derived, ``UnknownTable`` for what is not there."""
    check_table_name(name)
    kept = name if name in snapshot.definitions else name.removeprefix(DELETED_PREFIX)
    if name in METADATA_TABLES or (kept != name and kept in snapshot.definitions):
        kind = "shows tombstones" if name not in METADATA_TABLES else "is about the catalog"
        rows = [kept] if kept in snapshot.definitions else sorted(snapshot.definitions)
        raise InvalidOption(
            f"The table {name!r} {kind}: only tables of rows have changes.", next_step=f"Ask for those of {', '.join(rows)}."
        )
    return snapshot.table(name)


@dataclass(frozen=True)
class EventsAsked:
    """Which events of a table are asked for, by conditions on its key, and which columns of them: picklable."""

    table: Table
    where: tuple[tuple[str, Any], ...] = ()
    columns: tuple[str, ...] | None = None

    @property
    def schema(self) -> pa.Schema:
        """The columns that are asked for, else all of them."""
        every = changes_schema(self.table)
        return every if self.columns is None else chosen(self.table.name, every, self.columns)

    def keys(self) -> OfKeys:
        """The keys that the conditions allow."""
        return OfKeys(self.table, dict(self.where))

    def parts(self, transactions: Iterable[Transaction]) -> list[FeedPart]:
        """The parts in which such events can be read, of transactions in the order of their stamps."""
        return feed_parts(transactions, self.keys())

    def feed(self, files: LogFiles) -> Feed:
        """How such events are read."""
        keys = self.keys()
        return Feed(files.store, files.database, keys, self._stored(keys), files.on_damage)

    def shown(self, events: Iterator[Facts]) -> Iterator[pa.RecordBatch]:
        """Events as people see them."""
        for facts in events:
            if len(facts):
                yield from _shown(facts, self.table, self.schema).combine_chunks().to_batches(max_chunksize=BATCH_ROWS)

    def _stored(self, keys: OfKeys) -> frozenset[str] | None:
        """The storage columns that are needed, None for all."""
        if self.columns is None:
            return None
        needed = {"_kind", "_seq", "_row_seq", *keys.columns}
        if CHANGE_TYPE in self.columns:
            needed.add("_purged")
        if _VERSION in self.columns:
            needed |= {"_name_uuid", "_name_seq"}
        for column in (self.table.by_name[name] for name in self.columns if name in self.table.by_name):
            needed |= {column.field_name, *(["_name_uuid"] if column.default is Default.CREATED else [])}
        return frozenset(needed)


@dataclass(frozen=True)
class Changes(InBatches):
    """The events between two cuts of one table.

    ``_change_type`` is put, update, delete or purge; ``_version`` the version concerned, null for a blind delete; ``_stamp`` names the
    event itself. Row columns are those of the event: deletes and purges have only the key, and every other column is null there. Puts and
    updates carry whole rows; times that their defaults stand for are those that the table shows.

    Transactions come in the order of their stamps, and the events of each in their own where they are at most 65,536 of the table, and
    32 MiB. Those of a larger one come in the order in which it was written: what its file carries first, then segment after segment, of
    each in the order of keys; so events of one key are in their order there too. ``tasks``, one after the other, give the same.
    """

    files: LogFiles
    transactions: Sequence[Transaction]
    asked: EventsAsked

    @property
    def table(self) -> Table:
        """Whose events they are."""
        return self.asked.table

    @property
    def schema(self) -> pa.Schema:
        """The event columns, then the table's; or those of them that are asked for."""
        return self.asked.schema

    def only(self, columns: Sequence[str]) -> Changes:
        """The same events with these of their columns alone: of what lies in blocks no others are read. ``InvalidOption`` as for a scan."""
        asked = replace(self.asked, columns=tuple(columns))
        _ = asked.schema
        return replace(self, asked=asked)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The events in batches of at most 65,536; memory does not grow with their number."""
        known = {transaction.ref: transaction for transaction in self.transactions}
        feed = self.asked.feed(self.files)
        yield from self.asked.shown(feed.read(self._parts, lambda refs: [known[ref] for ref in refs]))

    def tasks(self, most_rows: int) -> list[ReadTask]:
        """The read in parts of about so many events, for other processes; none where there is nothing to read.

        They follow from the transactions, and nothing is read for them. A transaction of at most 65,536 events is read by one process.
        """
        return events_tasks(self.files, self.asked, self._parts, most_rows)

    @cached_property
    def _parts(self) -> list[FeedPart]:
        return self.asked.parts(self.transactions)


@dataclass(frozen=True)
class EventsTask:
    """Some of the events. What transactions carry is read again, by their names; segments are referred to."""

    database: str
    asked: EventsAsked
    parts: tuple[FeedPart, ...]
    rows: int
    ignore_corruption: bool = False

    def read(self, store: Store) -> Iterator[pa.Table]:
        """The events in their order; memory does not grow with their number."""
        past = self.ignore_corruption
        files = SalvagingFiles(store, self.database, past_obstacles=True) if past else LogFiles(store, self.database)
        find: Find = partial(_fetched, files)
        for batch in self.asked.shown(self.asked.feed(files).read(self.parts, find)):
            yield pa.Table.from_batches([batch])


def events_tasks(files: LogFiles, asked: EventsAsked, parts: Sequence[FeedPart], most_rows: int) -> list[ReadTask]:
    """What reads the parts, for about so many events each."""
    rows, costs = sum(part.rows for part in parts), [part.rows + part.is_carried * _ROWS_OF_A_FILE for part in parts]
    count = max(share_count(rows, most_rows, _WORTH), share_count(sum(costs), max(most_rows, _MUCH), _WORTH))
    return [
        EventsTask(
            files.database,
            asked,
            joined(parts[at] for at in group),
            sum(parts[at].rows for at in group),
            files.on_damage.reads_on,
        )
        for group in grouped(costs, count)
    ]


def _fetched(files: LogFiles, refs: Any) -> list[Transaction]:
    with telling_of_prunes(files.store):
        return files.fetched(refs)


def changes_of(files: LogFiles, table: Table, transactions: Sequence[Transaction], where: Where | None = None) -> Changes:
    """The events of a table in these transactions, which are in the order of their stamps.

    ``where`` has conditions on columns of its key, in the forms that a scan takes; ``InvalidOption`` for others.
    """
    conditions = key_conditions(table, where, changes_schema(table), _NOT_OF_THE_KEY)
    return Changes(files, transactions, EventsAsked(table, tuple(conditions.items())))


def changes_between(
    start: Snapshot, end: Snapshot, name: str, *, where: Where | None = None, ignore_set_aside: bool = False
) -> Changes:
    """Every event of a table in the cut of ``end`` and not in that of ``start``; ``InvalidOption`` where the end is the earlier one.

    ``SetAsideError`` where one of the transactions between them was set aside, unless that is ignored: nobody knows its events. Where the
    snapshots read past damage, what cannot be read is left out, with a warning.
    """
    lost = {t.ref: t for t in end.view.tail if t.lost}  # also what can be read and is not what follows it says
    between = (lost.get(t.ref, t) for t in transactions_between(end.files, start.view, end.cut))
    transactions = list(without_voided(between, end.view.voids))
    end.files.on_damage.tell(called_from=3)
    aside = next((t for t in transactions if t.set_aside), None)
    if aside is not None and not ignore_set_aside:
        name_of_aside = transaction_path(aside.writer, aside.database, aside.head)
        raise SetAsideError(
            f"{name_of_aside} was set aside: what happened in it is not known.",
            next_step="Begin behind it, or leave its events out: --ignore-set-aside on a command line, ignore_set_aside=True in Python. "
            f"Once the file is whole again it can be taken in: {take_in_command(name_of_aside)}.",
        )
    found = changes_of(end.files, changed_table(end, name), transactions, where)
    _refuse_reversed(found, start.cut, end.cut)
    return found


def _refuse_reversed(found: Changes, start: Cut, end: Cut) -> None:
    """``InvalidOption`` where there are no events after ``start`` and up to ``end`` because ``end`` is the earlier of the two.

    Cuts of which neither is the earlier one can be compared: each has what the other lacks.
    """
    past = [w for w in start.heads if start.newest_revision(w) > end.newest_revision(w)]
    if past and not found.transactions:
        ends = end.newest_revision(past[0])
        raise InvalidOption(
            f"The start lies after the end: of writer {past[0]!r} it has revision {start.newest_revision(past[0])}, "
            f"and the end {'nothing' if ends < 0 else f'revision {ends}'}.",
            next_step="Exchange the two; a difference can be taken either way.",
        )


def changes_schema(table: Table) -> pa.Schema:
    """The columns of a table's change events."""
    return pa.schema([*_EVENT_COLUMNS, *(field.with_nullable(True) for field in table.surface_schema)])


def _shown(facts: Facts, table: Table, schema: pa.Schema) -> pa.Table:
    """Events as rows of ``schema``, which has columns of ``changes_schema``."""
    kinds = facts.numbers("_kind")
    named = kinds == Kind.NAMED
    update = named & (facts.numbers("_row_txn", NO_STAMP) >= 0)
    of_events = _of_events(facts, table, kinds, update)
    has_row = (kinds == Kind.VERSION) | update
    rows = dict(_rows_of(facts, table, [name for name in schema.names if name not in of_events], update, has_row))
    return pa.table([rows[name] if name in rows else of_events[name]() for name in schema.names], schema=schema)


def _of_events(facts: Facts, table: Table, kinds: Any, update: Mask) -> dict[str, Callable[[], pa.Array]]:
    """What tells of the events, by the columns' names."""
    is_put = kinds == Kind.VERSION

    def change() -> pa.Array:
        purge = (kinds == Kind.NAMED) & (facts.numbers("_purged") > 0)
        return pa.array(np.select([is_put, update, purge], ["put", "update", "purge"], "delete"), pa.string())

    def version() -> pa.Array:
        about = version_names(facts.column("_name_uuid"), facts.column("_name_seq"))
        return pc.if_else(pa.array(is_put), version_names(*facts.own_names()), about)

    def of_transaction(name: str) -> pa.Array:
        return one_chunk(facts.transactions[name]).take(facts.column("_txn"))

    return {
        CHANGE_TYPE: change,
        "_table": lambda: pa.repeat(pa.scalar(table.name), len(facts)),
        _VERSION: version,
        "_stamp": lambda: version_names(*facts.own_names()),
        "_commit_timestamp": lambda: of_transaction("commit_time").cast(TIMESTAMP),
        "_writer": lambda: of_transaction("writer"),
        "_revision": lambda: of_transaction("revision"),
    }


def _rows_of(facts: Facts, table: Table, names: Sequence[str], update: Mask, has_row: Mask) -> Iterator[tuple[str, pa.Array]]:
    """Row columns of events: defaults are for those that carry a row, and what the others do not say is null."""
    own = pa.array(np.arange(len(facts)), mask=~has_row)
    shown = render(_begun(facts, table, names, update), table, output_schema(table, columns=names))
    for name in names:
        values = one_chunk(shown.column(name))
        yield name, values if name in table.key or has_row.all() else values.take(own)


def _begun(facts: Facts, table: Table, names: Sequence[str], update: Mask) -> Facts:
    """The facts with the commit time of the PUT, which the version's name holds, where an UPDATE leaves it to that."""
    created = [column for column in map(table.by_name.__getitem__, names) if column.default is Default.CREATED]
    if not created or not update.any():
        return facts
    rows = facts.rows
    times = pa.array(commit_times(facts.column("_name_uuid")), mask=~update).cast(TIMESTAMP)
    for name in (column.field_name for column in created):
        if name in rows.column_names:
            said = pc.coalesce(one_chunk(rows.column(name)), times)
            rows = rows.set_column(rows.schema.get_field_index(name), name, said)
        else:
            rows = rows.append_column(name, times)
    return replace(facts, rows=rows)
