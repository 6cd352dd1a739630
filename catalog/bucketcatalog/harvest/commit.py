"""What a harvest commits: events collected and committed chunk by chunk beside the listing, with checkpoints now and then.

What could not be catalogued, as the table ``harvest_errors`` is to show it: what is wrong now, and nothing that is over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..format.definitions import core_tables
from ..model.tables import Table
from ..query.snapshot import Snapshot
from ..write.commit import Committed
from ..write.staging import WrittenShare
from ..write.writer import Writer
from .compare import Step
from .mapping import BUCKETS, OBJECTS, Bucket, deleted_keys, entry_rows, lost_keys, updated_rows
from .scope import Scope
from .source import EntryError

ERRORS = core_tables()["harvest_errors"]
_COLUMNS = ("path", "code", "message")
_FEW = 10


@dataclass(frozen=True, slots=True)
class Failed:
    """An entry that cannot be catalogued, as ``harvest_errors`` shows it."""

    path: str
    code: str
    message: str


class Failures:
    """The errors of one run. They are held in memory, unlike the entries."""

    def __init__(self) -> None:
        self._found: dict[str, EntryError] = {}

    def __len__(self) -> int:
        return len(self._found)

    def add(self, error: EntryError) -> None:
        """Take note of an error."""
        self._found[error.path] = error

    @property
    def found(self) -> tuple[EntryError, ...]:
        """All of them."""
        return tuple(self._found.values())

    def first(self) -> tuple[Failed, ...]:
        """Some of them, in the order of their paths."""
        return tuple(Failed(path, self._found[path].code, self._found[path].message) for path in sorted(self._found)[:_FEW])

    def changes(self, snapshot: Snapshot, source: str, scope: Scope) -> tuple[pa.Table, pa.Table]:
        """Rows to put, for errors that are new or other than known, and keys to delete, for those in scope that are over."""
        columns = [*_COLUMNS, "_version"]
        known = snapshot.scan("harvest_errors", columns=columns, where={"source": source}).to_arrow().combine_chunks()
        found = pa.table(
            {
                "path": pa.array(list(self._found), pa.string()),
                "code": pa.array([error.code for error in self._found.values()], pa.string()),
                "message": pa.array([error.message for error in self._found.values()], pa.string()),
            }
        )
        new = found.filter(pc.invert(_among(found, known)))
        over = known.filter(pc.invert(pc.is_in(known.column("path"), value_set=found.column("path"))))
        in_scope = pa.array([scope.covers(path) for path in over.column("path").to_pylist()], pa.bool_())
        over = over.filter(in_scope).select(["path", "_version"])
        return _with_source(new, source), _with_source(over, source)


def _among(found: pa.Table, known: pa.Table) -> pa.Array:
    """Which rows of ``found`` are in ``known`` with all their columns."""
    at = pc.index_in(found.column("path"), value_set=known.column("path"))
    same = at.is_valid()
    for name in _COLUMNS[1:]:
        same = pc.and_(same, pc.fill_null(pc.equal(known.column(name).take(at), found.column(name)), False))
    return same


def _with_source(rows: pa.Table, source: str) -> pa.Table:
    return rows.add_column(0, "source", pa.repeat(pa.scalar(source), len(rows)))


Said = tuple[str, Table, Any]
"""Rows of a table, and what is said of them: ``put``, ``update`` or ``delete``."""


def said_of(bucket: Bucket, table: Table, step: Step) -> Iterator[Said]:
    """What a commit has to say of a step."""
    if step.put is not None:
        yield "put", table, entry_rows(bucket, step.put, step.ids)
    if step.update is not None and step.known is not None:
        yield "update", table, updated_rows(table, step.update, step.known)
    if len(step.gone) and table is OBJECTS:
        yield "delete", table, deleted_keys(bucket, step.gone, step.versions)
    elif len(step.gone) and step.lost is not None:
        yield "delete", table, lost_keys(table, step.lost, step.versions)


def said_of_bucket(bucket: Bucket) -> list[Said]:
    """What has to be said of the bucket itself, before anything in it."""
    return [] if bucket.row is None else [("update" if bucket.is_known else "put", BUCKETS, bucket.row)]


def said_of_failures(new: pa.Table, settled: pa.Table) -> list[Said]:
    """Entries that cannot be catalogued, as found now, and those for which that is over."""
    return [(kind, ERRORS, rows) for kind, rows in (("put", new), ("delete", settled)) if len(rows)]


def commit(writer: Writer, bucket: Bucket, said: Iterable[Said], shares: Iterable[WrittenShare] = ()) -> Committed | None:
    """One transaction of a harvest, with what other processes have put for it."""
    with writer.transaction(operation="harvest", metadata={"source": bucket.source, "bucket": bucket.name}) as tx:
        for kind, table, rows in said:
            if kind == "put":
                tx.put(table.name, rows)
            elif kind == "update":
                tx.update(table.name, rows)
            else:
                tx.delete(table.name, rows)
        tx.adopt(shares)
    return tx.committed


class Chunks:
    """Collects events and commits them, chunk by chunk, in one thread beside the walk: at most one chunk is under way.

    Without a writer (a dry run) it commits nothing. What is still waiting when its ``with`` block raises is not committed.
    """

    def __init__(
        self, writer: Writer | None, snapshot: Snapshot, bucket: Bucket, chunk_events: int, checkpoint_events: int
    ) -> None:
        self._writer = writer
        self._bucket = bucket
        self._limit = chunk_events
        self._checkpoint_events = checkpoint_events
        self._uncovered = sum(t.events for t in snapshot.view.tail if writer is not None and t.writer == writer.id)
        self._covered = sum(t.live + t.tombstones + t.stubs for c in snapshot.view.checkpoints for t in c.totals.values())
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="harvest-commit")
        self._under_way: Future[None] | None = None
        self._committed: list[Committed] = []
        self._waiting = said_of_bucket(bucket)
        self._count = 0

    @property
    def versions(self) -> tuple[str, ...]:
        """The transactions committed so far."""
        return tuple(committed.version for committed in self._committed)

    def add(self, step: Step, table: Table = OBJECTS) -> None:
        """The events of a step."""
        self._append(said_of(self._bucket, table, step))
        if self._count >= self._limit:
            self.flush()

    def add_failures(self, new: pa.Table, settled: pa.Table) -> None:
        """Entries that cannot be catalogued, as found now, and those for which that is over."""
        self._append(said_of_failures(new, settled))

    def _append(self, said: Iterable[Said]) -> None:
        for one in said:
            self._waiting.append(one)
            self._count += len(one[2])

    def flush(self) -> None:
        """Begin to commit what is waiting, once the chunk before it has been committed."""
        self._settle()
        waiting, self._waiting, self._count = self._waiting, [], 0
        if waiting and self._writer is not None:
            self._under_way = self._thread.submit(self._commit, self._writer, waiting)

    def _commit(self, writer: Writer, events: Sequence[Said]) -> None:
        committed = commit(writer, self._bucket, events)
        if committed is not None:
            self._committed.append(committed)
        self._uncovered += sum(len(rows) for _, _, rows in events)
        if self._uncovered >= max(self._checkpoint_events, self._covered // 4):
            self._checkpoint(writer)

    def _checkpoint(self, writer: Writer) -> None:
        """Keep the part of the log that readers have to replay small; a share of the whole, so that checkpoints cost O(events)."""
        written = writer.checkpoint()
        self._covered, self._uncovered = written.rows if written is not None else self._covered, 0

    def _settle(self) -> None:
        under_way, self._under_way = self._under_way, None
        if under_way is not None:
            under_way.result()

    def __enter__(self) -> Chunks:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._settle()
                if self._committed and self._writer is not None:
                    self._writer.check()  # commits look only now and then, and success must not be claimed for half of a fork
        finally:
            if self._writer is not None and kind is not None and not issubclass(kind, Exception):
                self._writer.close()  # first: who interrupts a run does not wait for a store that is away
            self._thread.shutdown()
            if self._writer is not None:
                self._writer.close()
