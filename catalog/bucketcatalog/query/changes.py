"""What happened between two cuts: every event, or the net difference of a table.

Events are those of the transactions in the later cut and not in the earlier one, read from the transactions themselves. The net
difference compares the live rows of the two cuts; both are streams in key order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InvalidOption, SetAsideError, take_in_command
from ..format.losses import STRICT, OnDamage
from ..format.transactions import Transaction
from ..log.ancestry import transactions_between
from ..log.entries import without_voided
from ..log.files import LogFiles
from ..log.pruned import telling_of_prunes
from ..log.salvage import SalvagingFiles
from ..model.arrays import Mask, one_chunk
from ..model.cuts import Cut, Ref
from ..model.facts import NO_STAMP, NO_TRANSACTIONS, Facts, Kind, commit_times, concat
from ..model.keys import KeyRange, encode_keys
from ..model.paths import transaction as transaction_path
from ..model.render import output_schema, render, version_names
from ..model.tables import TIMESTAMP, Default, Table
from ..state.contents import TableState
from ..state.plan import Part, Slice
from ..state.read import empty_rows, read_slice
from ..state.shares import grouped, share_count
from ..state.tail import every_event
from ..store.base import Store
from .metadata import METADATA_TABLES
from .reads import InBatches, ReadTask
from .snapshot import DELETED_PREFIX, Snapshot, check_table_name

CHANGE_TYPE = "_change_type"
_EVENT_COLUMNS = [
    pa.field(CHANGE_TYPE, pa.string(), False),
    pa.field("_table", pa.string(), False),
    pa.field("_version", pa.string()),
    pa.field("_stamp", pa.string(), False),
    pa.field("_commit_timestamp", TIMESTAMP, False),
    pa.field("_writer", pa.string(), False),
    pa.field("_revision", pa.int64(), False),
]
_PORTION = 65_536


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
class Changes(InBatches):
    """The events between two cuts of one table, by stamp.

    ``_change_type`` is put, update, delete or purge; ``_version`` the version concerned, null for a blind delete; ``_stamp`` names the
    event itself. Row columns are those of the event: deletes and purges have only the key, and every other column is null there. Puts and
    updates carry whole rows; times that their defaults stand for are those that the table shows.
    """

    store: Store
    table: Table
    transactions: Sequence[Transaction]
    on_damage: OnDamage = STRICT

    @property
    def schema(self) -> pa.Schema:
        """The event columns, then the table's."""
        return changes_schema(self.table)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The events in order of their stamps."""
        for some in _portions(self.transactions):
            with telling_of_prunes(self.store):
                facts = every_event(self.store, some, self.table, self.on_damage)
            if facts is not None and len(facts):
                order = pa.array(np.argsort(facts.stamps(), kind="stable"))
                yield from _shown(facts.take(order), self.table).combine_chunks().to_batches(max_chunksize=_PORTION)

    def tasks(self, most_rows: int) -> list[ReadTask]:
        """The read in parts of about so many events, for other processes: of the transactions that hold events of the table."""
        concerned = [t for t in self.transactions if _concerns(t, self.table.name)]
        weights = [max(t.events, 1) for t in concerned]
        return [
            EventsTask(
                concerned[group[0]].database,
                self.table,
                tuple(concerned[at].ref for at in group),
                sum(weights[at] for at in group),
                self.on_damage.reads_on,
            )
            for group in grouped(weights, share_count(sum(weights), most_rows))
        ]


@dataclass(frozen=True)
class EventsTask:
    """The events of a table in some transactions, which are read again by name."""

    database: str
    table: Table
    refs: tuple[Ref, ...]
    rows: int
    ignore_corruption: bool = False

    def read(self, store: Store) -> Iterator[pa.Table]:
        """The events in the order of their stamps."""
        past = self.ignore_corruption
        files = SalvagingFiles(store, self.database, past_obstacles=True) if past else LogFiles(store, self.database)
        with telling_of_prunes(files.store):
            transactions = files.fetched(self.refs)
        for batch in Changes(files.store, self.table, transactions, files.on_damage).to_batches():
            yield pa.Table.from_batches([batch])


def _concerns(transaction: Transaction, table: str) -> bool:
    named = (
        {action.table for action in transaction.actions}
        | {place.header.table for place in transaction.blocks}
        | {segment.run.table for segment in transaction.segments}
    )
    return table in named


def changes_between(start: Snapshot, end: Snapshot, name: str, *, ignore_set_aside: bool = False) -> Changes:
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
    found = Changes(end.files.store, changed_table(end, name), transactions, end.files.on_damage)
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


def _portions(transactions: Sequence[Transaction]) -> Iterator[list[Transaction]]:
    """Consecutive transactions with about as many events as are held at a time."""
    portion: list[Transaction] = []
    events = 0
    for transaction in transactions:
        portion.append(transaction)
        events += transaction.events
        if events >= _PORTION:
            yield portion
            portion, events = [], 0
    if portion:
        yield portion


def changes_schema(table: Table) -> pa.Schema:
    """The columns of a table's change events."""
    return pa.schema([*_EVENT_COLUMNS, *(field.with_nullable(True) for field in table.surface_schema)])


def _shown(facts: Facts, table: Table) -> pa.Table:
    kinds = facts.numbers("_kind")
    named = kinds == Kind.NAMED
    update = named & (facts.numbers("_row_txn", NO_STAMP) >= 0)
    purge = named & (facts.numbers("_purged") > 0)
    change = np.select([kinds == Kind.VERSION, update, purge], ["put", "update", "purge"], "delete")
    position = facts.column("_txn")
    own = version_names(*facts.own_names())
    about = version_names(facts.column("_name_uuid"), facts.column("_name_seq"))
    version = pc.if_else(pa.array(kinds == Kind.VERSION), own, about)
    columns = [
        pa.array(change, pa.string()),
        pa.repeat(pa.scalar(table.name), len(facts)),
        version,
        own,
        one_chunk(facts.transactions["commit_time"]).take(position).cast(TIMESTAMP),
        one_chunk(facts.transactions["writer"]).take(position),
        one_chunk(facts.transactions["revision"]).take(position),
    ]
    has_row = (kinds == Kind.VERSION) | update
    return pa.table([*columns, *_rows_of(facts, table, update, has_row)], schema=changes_schema(table))


def _rows_of(facts: Facts, table: Table, update: Mask, has_row: Mask) -> Iterator[pa.Array]:
    """The row columns of events: defaults are for those that carry a row, and what the others do not say is null."""
    own = pa.array(np.arange(len(facts)), mask=~has_row)
    shown = render(_begun(facts, table, update), table, output_schema(table))
    for column, values in zip(table.shown_columns, shown.columns, strict=True):
        yield values if column.name in table.key or has_row.all() else one_chunk(values).take(own)


def _begun(facts: Facts, table: Table, update: Mask) -> Facts:
    """The facts with the commit time of the PUT, which the version's name holds, where an UPDATE leaves it to that."""
    rows = facts.rows
    times = pa.array(commit_times(facts.column("_name_uuid")), mask=~update).cast(TIMESTAMP)
    for name in (column.field_name for column in table.columns if column.default is Default.CREATED):
        if name in rows.column_names:
            said = pc.coalesce(one_chunk(rows.column(name)), times)
            rows = rows.set_column(rows.schema.get_field_index(name), name, said)
        else:
            rows = rows.append_column(name, times)
    return replace(facts, rows=rows)


@dataclass(frozen=True)
class Diff(InBatches):
    """The net difference of one table between two snapshots, by key.

    ``_change_type`` is created, overwritten (another version is live), modified (the same version has another row) or deleted. The row
    is the later one; for a deleted key the earlier.
    """

    start: Snapshot
    end: Snapshot
    table: Table

    @property
    def schema(self) -> pa.Schema:
        """The change type, then the table's columns, then the versions before and after."""
        return diff_schema(self.table)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The differences in key order; memory does not grow with the table."""
        for before, after in live_sides(self.start, self.end, self.table):
            yield from _compare(before, after, self.table).combine_chunks().to_batches()


def diff_schema(table: Table) -> pa.Schema:
    """The columns of a table's net difference."""
    versions = [pa.field("_version_before", pa.string()), pa.field("_version", pa.string())]
    return pa.schema([_EVENT_COLUMNS[0], *table.surface_schema, *versions])


def live_sides(start: Snapshot, end: Snapshot, table: Table) -> Iterator[tuple[Facts, Facts]]:
    """The live rows of a table in two snapshots, by ranges of keys in their order; ranges where both read the same blocks are left out.

    So are keys of which one of them lacks rows for damage that both read past, ``end`` and ``start`` by the same files.
    """
    before, after = start.state(table.name), end.state(table.name)
    starts = sorted({slice_.keys.start for state in (before, after) for slice_ in state.plan(only_live=True)})
    stops = [start for start in starts if start > b""]
    for first, stop in zip([b"", *stops], [*stops, None], strict=True):
        keys = KeyRange(first, stop)
        plans = before.plan([keys], only_live=True), after.plan([keys], only_live=True)
        if not _same_blocks(*plans):
            sides = _live(before, plans[0]), _live(after, plans[1])
            lost = end.files.on_damage.lost_keys(table.name)
            yield (_without(sides[0], table, lost), _without(sides[1], table, lost)) if lost else sides


def _same_blocks(before: Sequence[Slice], after: Sequence[Slice]) -> bool:
    """Whether two plans of one range read the same blocks and nothing else, which makes their states equal."""
    if any(slice_.tail is not None for slice_ in (*before, *after)):
        return False
    return _places(before) == _places(after)


def _places(plan: Sequence[Slice]) -> set[tuple[str, int] | bytes]:
    """Which blocks they are: by their places, and by what they are where one checkpoint after the other holds them."""
    events = {event.place for slice_ in plan for event in slice_.events}
    places = (p for slice_ in plan for p in (*slice_.live, *slice_.rest, *slice_.upper, *events))
    return {(p.name, p.offset) if p.data is None else p.data for p in places}


def _live(state: TableState, plan: Sequence[Slice]) -> Facts:
    batches = [read_slice(state.blocks, state.table, slice_, Part.LIVE) for slice_ in plan]
    return concat(batches) if batches else Facts(NO_TRANSACTIONS, empty_rows(state.table))


def _without(facts: Facts, table: Table, lost: Sequence[KeyRange]) -> Facts:
    """The rows whose keys are in none of the ranges."""
    keys = one_chunk(encode_keys(table, facts.rows))
    kept = np.ones(len(facts), np.bool_)
    for each in lost:
        inside = np.asarray(pc.greater_equal(keys, pa.scalar(each.start, keys.type)))
        if each.stop is not None:
            inside &= np.asarray(pc.less(keys, pa.scalar(each.stop, keys.type)))
        kept &= ~inside
    return facts.take(pa.array(np.flatnonzero(kept)))


def _compare(before: Facts, after: Facts, table: Table) -> pa.Table:
    old_keys, new_keys = one_chunk(encode_keys(table, before.rows)), one_chunk(encode_keys(table, after.rows))
    match = pc.index_in(new_keys, value_set=old_keys)
    kept = np.asarray(match.is_valid())
    at = np.asarray(pc.fill_null(match, 0)).astype(np.int64)
    old_version, new_version = (version_names(*facts.event_names(facts.stamps())) for facts in (before, after))
    old_row, new_row = (version_names(*facts.event_names(facts.row_stamps())) for facts in (before, after))
    partner = pa.array(at, mask=~kept)
    same_version = np.asarray(pc.fill_null(pc.equal(new_version, old_version.take(partner)), False))
    same_row = np.asarray(pc.fill_null(pc.equal(new_row, old_row.take(partner)), False))
    change = np.select([~kept, ~same_version, ~same_row], ["created", "overwritten", "modified"], "")
    changed = pa.array(np.flatnonzero(change != ""))
    gone = pa.array(np.flatnonzero(~np.asarray(pc.is_in(old_keys, value_set=new_keys))))
    later = [pa.array(change, pa.string()).take(changed), old_version.take(partner).take(changed), new_version.take(changed)]
    earlier = [pa.repeat(pa.scalar("deleted"), len(gone)), old_version.take(gone), pa.nulls(len(gone), pa.string())]
    schema = diff_schema(table)
    tables = []
    for facts, rows, (kind, old, new) in ((after, changed, later), (before, gone, earlier)):
        shown = render(facts.take(rows), table, output_schema(table))
        tables.append(pa.table([kind, *shown.columns, old, new], schema=schema))
    keys = pa.concat_arrays([new_keys.take(changed), old_keys.take(gone)])
    return pa.concat_tables(tables).take(pc.sort_indices(keys))
