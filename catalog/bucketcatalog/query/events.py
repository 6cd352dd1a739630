"""Events of a table as they are asked for and shown, and read in parts by anybody.

What is read, and by how many processes, follows from the transactions alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..format.transactions import Transaction
from ..log.files import LogFiles
from ..log.pruned import telling_of_prunes
from ..log.salvage import SalvagingFiles
from ..model.arrays import Mask, one_chunk
from ..model.facts import FACT_COLUMNS, NO_STAMP, Facts, Kind, commit_times
from ..model.keys import EVERYTHING, KeyRange
from ..model.names import names_given
from ..model.render import chosen, output_schema, render, storage_columns, version_names
from ..model.tables import TIMESTAMP, Default, Table
from ..state.feed import Feed, FeedPart, Find, feed_parts, joined
from ..state.keyed import EVERY_KEY, KeyConditions, OfKeys
from ..state.shares import grouped, share_count
from ..store.base import Store
from .reads import BATCH_ROWS, ReadTask

CHANGE_TYPE = "_change_type"
BEFORE, VERSION_BEFORE = "_before", "_version_before"
_VERSION = "_version"
_CHANGES = pa.array(["put", "update", "purge", "delete"])
_EVENT_COLUMNS = [
    pa.field(CHANGE_TYPE, pa.string(), False),
    pa.field("_table", pa.string(), False),
    pa.field(_VERSION, pa.string()),
    pa.field("_stamp", pa.string(), False),
    pa.field("_commit_timestamp", TIMESTAMP, False),
    pa.field("_writer", pa.string(), False),
    pa.field("_revision", pa.int64(), False),
]
_ROWS_OF_A_FILE, _MUCH = 64, 1 << 20
"""Events that take as long to read as it takes to fetch a transaction, and as many as keep a process busy, whatever they are."""
_WORTH = 1 << 15
"""Events that are worth a process of their own: fewer than of a table's rows, since each names its version and itself."""


@dataclass(frozen=True)
class AskedByKey(ABC):
    """What has changed in a table, asked for by conditions on its key, and which columns of it: picklable.

    ``before`` are the columns of the rows as they were, which are asked for too; None for none of these.
    """

    table: Table
    conditions: KeyConditions = EVERY_KEY
    columns: tuple[str, ...] | None = None
    before: tuple[str, ...] | None = None

    @property
    @abstractmethod
    def available(self) -> pa.Schema:
        """The columns that can be asked for."""

    @property
    def schema(self) -> pa.Schema:
        """The columns that are asked for, else all of them."""
        return self.available if self.columns is None else chosen(self.table.name, self.available, self.columns)

    def keys(self) -> OfKeys:
        """The keys that the conditions allow."""
        return OfKeys(self.table, self.conditions)


@dataclass(frozen=True)
class EventsAsked(AskedByKey):
    """Which events of a table are asked for; before is what they ended or replaced."""

    @property
    def available(self) -> pa.Schema:
        """See ``AskedByKey``."""
        return changes_schema(self.table, self.before)

    @property
    def with_before(self) -> bool:
        """Whether it takes the state that events start from to show them."""
        return self.before is not None and not {BEFORE, VERSION_BEFORE}.isdisjoint(self.schema.names)

    def parts(self, transactions: Iterable[Transaction]) -> list[FeedPart]:
        """The parts in which such events can be read, of transactions in the order of their stamps."""
        return feed_parts(transactions, self.keys())

    def feed(self, files: LogFiles, within: KeyRange = EVERYTHING) -> Feed:
        """How such events are read, those of a range of keys alone."""
        keys = self.keys() if within == EVERYTHING else self.keys().within(within)
        return Feed(files.store, files.database, keys, self._stored(keys), files.on_damage)

    def shown(self, events: Iterator[Facts]) -> Iterator[pa.RecordBatch]:
        """Events as people see them."""
        for facts in events:
            if len(facts):
                yield from shown_events(facts, self.table, self.schema).combine_chunks().to_batches(max_chunksize=BATCH_ROWS)

    def _stored(self, keys: OfKeys) -> frozenset[str] | None:
        """The storage columns that are needed, None for all."""
        if self.columns is None:
            return None
        needed = {"_kind", "_seq", "_row_seq", *keys.columns}
        if self.with_before:  # which folds them
            needed |= {*FACT_COLUMNS, *storage_columns(self.table, [*self.table.key, *(self.before or ())])}
        if CHANGE_TYPE in self.columns:
            needed.add("_purged")
        if _VERSION in self.columns:
            needed |= {"_name_uuid", "_name_seq"}
        for column in (self.table.by_name[name] for name in self.columns if name in self.table.by_name):
            needed |= {column.field_name, *(["_name_uuid"] if column.default is Default.CREATED else [])}
        return frozenset(needed)


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
        find: Find = partial(fetched, files)
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


def fetched(files: LogFiles, refs: Any) -> list[Transaction]:
    """The transactions of these names, in their order."""
    with telling_of_prunes(files.store):
        return files.fetched(refs)


def changes_schema(table: Table, before: Sequence[str] | None = None) -> pa.Schema:
    """The columns of a table's change events; with ``before`` what each ended or replaced, and those columns of its row."""
    every = [*_EVENT_COLUMNS, *(field.with_nullable(True) for field in table.surface_schema)]
    if before is not None:
        every += [pa.field(VERSION_BEFORE, pa.string()), pa.field(BEFORE, row_before(table, before))]
    return pa.schema(every)


def columns_before(table: Table, pre_images: bool | Sequence[str]) -> tuple[str, ...] | None:
    """The columns of rows before that are asked for: all, those that are named, or None for none."""
    if isinstance(pre_images, bool):
        return tuple(table.by_name) if pre_images else None
    return tuple(output_schema(table, columns=names_given(pre_images, "columns", "pre_images=['name']")).names)


def row_before(table: Table, columns: Sequence[str]) -> pa.StructType:
    """What ``_before`` holds of a row."""
    return pa.struct([field.with_nullable(True) for field in output_schema(table, columns=columns)])


def struct_of(facts: Facts, at: pa.Array, table: Table, kind: pa.StructType) -> pa.Array:
    """The rows of facts at these places as structs, null where a place is."""
    shown = render(facts, table, output_schema(table, columns=[field.name for field in kind]))
    columns = [one_chunk(column).take(at) for column in shown.columns]
    return pa.StructArray.from_arrays(columns, fields=list(kind), mask=at.is_null())


def shown_events(facts: Facts, table: Table, schema: pa.Schema) -> pa.Table:
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
        return _CHANGES.take(pa.array(np.select([is_put, update, purge], [0, 1, 2], 3)))

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
