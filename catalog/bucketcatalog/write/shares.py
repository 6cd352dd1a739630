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
from .intake import Rows
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
        writing = self.begin(store)
        for portion in portions(rows):
            writing.add([(self.kind, portion)])
        return writing.finish()

    def begin(self, store: Store) -> ShareWriter:
        """A share to which rows are added portion by portion, of whatever kind."""
        return ShareWriter(self, store)


class ShareWriter:
    """A share in the making. Portions that come in the order of their keys, one after the other, become segments in that order."""

    def __init__(self, task: ShareTask, store: Store) -> None:
        self._task = task
        self._runs = RunWriter(store, task.writer, task.database, cut=None, began=task.began)
        self._looking = _Looking(store, task.database, task.version)
        self._events = self._named_after = 0

    def add(self, portion: Iterable[tuple[EventKind, Rows]]) -> None:
        """Add rows, which are sorted and put together; in the order given where they are of one key."""
        task = self._task
        draft = Draft(self._table, lambda: self._looking.snapshot, lambda _: task.data_in).numbered_from(self._events)
        for kind, rows in portion:
            draft.add(kind, task.table.name, rows)
        draft.put_into(self._runs)
        self._events, self._named_after = len(draft), max(self._named_after, draft.named_after)

    def _table(self, name: str) -> Table:
        """The table of the rows, or, where they name what they belong to, the one of that."""
        return self._task.table if name == self._task.table.name else self._looking.snapshot.table(name)

    def finish(self) -> WrittenShare:
        """Put what is left; nothing is added after that."""
        self._runs.finish()
        return WrittenShare(self._task.table, tuple(self._runs.segments), self._events, self._named_after, self._task.began)


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
