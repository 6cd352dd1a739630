"""What a harvest commits: events collected and committed chunk by chunk beside the listing, with checkpoints now and then.

Each transaction says what the harvest has done since the one before, as its metrics; the table ``log`` shows them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pyarrow as pa

from .. import clock
from ..model.tables import Table
from ..query.snapshot import Snapshot
from ..write.commit import Committed
from ..write.staging import WrittenShare
from ..write.writer import Writer
from .account import Counts
from .compare import Step
from .failures import ERRORS
from .mapping import BUCKETS, OBJECTS, Bucket, deleted_keys, entry_rows, lost_keys, updated_rows

CHUNK_SECONDS = 300.0
"""How long what has changed waits at most, where it takes that long to come by: a harvest that dies loses no more."""

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


def commit(
    writer: Writer, bucket: Bucket, said: Iterable[Said], metrics: Mapping[str, int], shares: Iterable[WrittenShare] = ()
) -> Committed | None:
    """One transaction of a harvest, with what other processes have put for it; ``metrics`` say what was done (``Counts.metrics``)."""
    with writer.transaction(operation="harvest", metadata={"source": bucket.source, "bucket": bucket.name}) as tx:
        tx.metrics.update(metrics)
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

    The first says what was done since ``started``, microseconds since the epoch, each other one what was since the one before. Without a
    writer (a dry run) it commits nothing. What is still waiting when its ``with`` block raises is not committed.
    """

    def __init__(
        self,
        writer: Writer | None,
        snapshot: Snapshot,
        bucket: Bucket,
        chunk_events: int,
        checkpoint_events: int,
        *,
        started: int,
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
        self._started, self._told, self._counts = started, Counts(), Counts()
        self._since = clock.monotonic()

    @property
    def versions(self) -> tuple[str, ...]:
        """The transactions committed so far."""
        return tuple(committed.version for committed in self._committed)

    def add(self, step: Step, table: Table, counts: Counts) -> None:
        """The events of a step; ``counts`` are those of the harvest up to it."""
        self._append(said_of(self._bucket, table, step))
        self._counts = counts
        if self._count >= self._limit or (self._count and clock.monotonic() - self._since >= CHUNK_SECONDS):
            self.flush()

    def add_failures(self, new: pa.Table, settled: pa.Table, counts: Counts) -> None:
        """Entries that cannot be catalogued, as found now, and those for which that is over; ``counts`` are those of the harvest."""
        self._append(said_of_failures(new, settled))
        self._counts = counts

    def _append(self, said: Iterable[Said]) -> None:
        for one in said:
            self._waiting.append(one)
            self._count += len(one[2])

    def flush(self) -> None:
        """Begin to commit what is waiting, once the chunk before it has been committed."""
        self._settle()
        waiting, self._waiting, self._count = self._waiting, [], 0
        self._since = clock.monotonic()
        if waiting and self._writer is not None:
            ended = max(clock.now_us(), self._started)
            metrics = (self._counts - self._told).metrics(self._started, ended)
            self._started, self._told = ended, self._counts
            self._under_way = self._thread.submit(self._commit, self._writer, waiting, metrics)

    def _commit(self, writer: Writer, events: Sequence[Said], metrics: Mapping[str, int]) -> None:
        committed = commit(writer, self._bucket, events, metrics)
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
