"""Rows of one table that several processes write for one transaction: each puts segments of its own, and one commit names them all.

What no commit names is part of nothing: a process that dies, or does its share twice, leaves files that nobody reads, and that a prune
deletes. Each share numbers its events from 0; where they begin among all of them the commit says. Shares know nothing of each other:
rows of one key, in two of them, come in the order in which the commit names these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from ..log.segments import RunWriter
from ..model.events import EventKind
from ..model.tables import Table
from ..query.database import Database
from ..query.snapshot import Snapshot
from ..store.base import Store
from .draft import Draft
from .staging import WrittenShare

PORTION_ROWS, PORTION_BYTES = 1 << 18, 256 << 20
"""Rows that are sorted at once, and bytes of them in memory: each portion becomes segments of its own."""


@dataclass(frozen=True)
class ShareTask:
    """How a process writes rows as events of one kind, wherever it runs: picklable.

    What rows mean that name a version by their id, or whose id is derived, is looked up in the cut ``version``, the same for all shares.
    ``data_in`` is the database whose data the rows may name, None where they name none of a catalog.
    """

    writer: str
    database: str
    table: Table
    kind: EventKind
    version: str
    began: int
    data_in: str | None = None

    def write(self, store: Store, rows: Iterable[pa.RecordBatch]) -> WrittenShare:
        """Put segments with these rows. ``InvalidRows`` names row and column of what does not fit the table, as ``tx.put`` does."""
        runs = RunWriter(store, self.writer, self.database, cut=None, began=self.began)
        looking = _Looking(store, self.database, self.version)
        events = named_after = 0
        for portion in portions(rows):
            draft = Draft(lambda _: self.table, lambda: looking.snapshot, lambda _: self.data_in).numbered_from(events)
            draft.add(self.kind, self.table.name, portion)
            draft.put_into(runs)
            events, named_after = len(draft), max(named_after, draft.named_after)
        runs.finish()
        return WrittenShare(self.table, tuple(runs.segments), events, named_after, self.began)


@dataclass(frozen=True)
class _Looking:
    """Looks things up in a cut, which is read once somebody does."""

    store: Store
    database: str
    version: str

    @cached_property
    def snapshot(self) -> Snapshot:
        """The state at the cut."""
        database = Database(self.store, self.database)
        return database.snapshot(None, self.version, strict=False) if self.version else database.look()


def share_task(database: Database, writer: str, table: str, kind: EventKind) -> ShareTask:
    """How shares of events of this kind are written, of a table as the writer would write it itself, from now on."""
    began = database.files.time_for(writer)
    definition = database.definition(table, by=writer)
    data_in = database.name if kind is EventKind.PUT and database.keeps_data(table) else None
    return ShareTask(writer, database.name, definition, kind, database.look().version, began, data_in)


def portions(rows: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The rows, so many at a time as are sorted at once."""
    waiting: list[pa.RecordBatch] = []
    for batch in rows:
        waiting.append(batch)
        if sum(map(len, waiting)) >= PORTION_ROWS or sum(each.nbytes for each in waiting) >= PORTION_BYTES:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)
