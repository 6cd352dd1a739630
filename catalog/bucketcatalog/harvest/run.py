"""A harvest: the source is walked, merged with the catalog, and what differs is committed in chunks while the walk goes on.

Every chunk is a transaction of its own and says nothing that depends on another, so a harvest that dies between any two calls leaves a
catalog that is right as far as it goes; the next run compares again and commits the rest. A run that finds nothing changed commits nothing.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .. import clock
from ..catalog import DEFAULT_DATABASE, Catalog
from ..errors import ForeignBranch, SourceNotFound
from ..names import writer_id
from ..snapshot import Snapshot
from ..writer import Committed, Writer
from .compare import OutOfReach, Side, Step, live_sides, merge, source_sides
from .failures import Failed, Failures
from .mapping import Bucket, deleted_keys, find_bucket, object_rows
from .open import open_source
from .scope import Scope
from .source import EntryError, Source

CHUNK_EVENTS = 65_536
CHECKPOINT_EVENTS = 1_000_000
"""How many events a run leaves uncovered before it writes a checkpoint of its writer's timeline."""


@dataclass(frozen=True, slots=True)
class Harvested:
    """What a harvest did, or has done so far. ``bytes`` is the content length of what was created and overwritten, in sum.

    ``entries`` counts what was seen; ``errors`` what the source has now that cannot be catalogued, of which ``failed`` are the first few;
    ``transactions`` are the versions of what was committed, none in a dry run.
    """

    source: str
    bucket: str
    bucket_id: str
    owner: str
    database: str
    writer: str
    dry_run: bool
    entries: int = 0
    created: int = 0
    overwritten: int = 0
    deleted: int = 0
    unchanged: int = 0
    bytes: int = 0
    errors: int = 0
    failed: tuple[Failed, ...] = ()
    transactions: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def changes(self) -> int:
        """How many objects were created, overwritten and deleted."""
        return self.created + self.overwritten + self.deleted


Progress = Callable[[Harvested], None]


def default_writer(source: Source) -> str:
    """The writer id of harvests of a source by this machine: the same each time."""
    host = re.sub(r"[^A-Za-z0-9.-]", "-", clock.host_name())[:64]
    return writer_id(f"harvest-{host}-{hashlib.sha256(source.url.encode()).hexdigest()[:12]}")


def harvest(
    catalog: Catalog,
    source: str | os.PathLike[str] | Source,
    *,
    database: str = DEFAULT_DATABASE,
    writer: str | None = None,
    bucket: str | None = None,
    owner: str | None = None,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    dry_run: bool = False,
    allow_empty: bool = False,
    progress: Progress | None = None,
    chunk_events: int = CHUNK_EVENTS,
    checkpoint_events: int = CHECKPOINT_EVENTS,
) -> Harvested:
    """Bring the catalog's inventory of ``source`` up to date, and say what changed.

    ``include`` and ``exclude`` are globs (see ``scope``). ``progress`` is called with what is done so far, about every 16,384 entries.
    ``SourceNotFound`` where there is nothing to list, or, without ``allow_empty``, where nothing is found of all that the catalog has:
    so looks a file system that is not mounted. ``InvalidOption`` where the bucket is not this source's. ``ForeignBranch`` where another
    harvest has written as the same writer meanwhile.
    """
    start = clock.monotonic()
    origin = open_source(source, _own_places(catalog)) if isinstance(source, (str, os.PathLike)) else source
    scope = Scope(tuple(include), tuple(exclude))
    name = writer_id(writer) if writer is not None else default_writer(origin)
    with _alone():
        opened = None if dry_run else catalog.writer(name, database=database)
    snapshot = catalog.database(database).look()
    target = find_bucket(snapshot, origin, bucket, owner)
    state = Harvested(
        source=origin.url,
        bucket=target.name,
        bucket_id=_text(target.id),
        owner=target.owner,
        database=database,
        writer=name,
        dry_run=dry_run,
    )
    with _alone(), _Chunks(opened, snapshot, target, chunk_events, checkpoint_events) as chunks:
        for counted in _run(state, origin, scope, snapshot, target, chunks, allow_empty=allow_empty):
            state = replace(counted, transactions=chunks.versions, seconds=clock.monotonic() - start)
            if progress is not None:
                progress(state)
    return replace(state, transactions=chunks.versions, seconds=clock.monotonic() - start)


@contextmanager
def _alone() -> Iterator[None]:
    """What to do where two harvests have written as one writer."""
    try:
        yield
    except ForeignBranch as error:
        raise ForeignBranch(
            error.message,
            next_step="Let no two harvests of a source run at a time. What both committed is kept and read; harvest on under "
            "another writer id, with --writer.",
        ) from error


def _own_places(catalog: Catalog) -> list[str]:
    """Directories of this machine that are the catalog itself."""
    return [] if "://" in catalog.url else [catalog.url]


def _text(uuid: bytes) -> str:
    digits = uuid.hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _run(
    state: Harvested, source: Source, scope: Scope, snapshot: Snapshot, bucket: Bucket, chunks: _Chunks, *, allow_empty: bool
) -> Iterator[Harvested]:
    """Merge the two sides and hand on what differs; gives the counts after each step."""
    failures, out_of_reach = Failures(), OutOfReach()

    def report(error: EntryError) -> None:
        failures.add(error)
        out_of_reach.add(error)

    entries, live = source_sides(bucket, source.entries(scope, report)), live_sides(snapshot, bucket, scope)
    first = next(entries, None)
    if first is None and not failures and not allow_empty:
        live = _refuse_emptied(source, live)
    for step in map(out_of_reach.spare, merge(entries if first is None else chain([first], entries), live)):
        state = _counted(state, step, failures)
        chunks.add(step)
        yield state
    chunks.add_failures(*failures.changes(snapshot, source.url, scope))
    chunks.flush()
    yield replace(state, errors=len(failures), failed=failures.first())


def _refuse_emptied(source: Source, live: Iterator[Side]) -> Iterator[Side]:
    """``SourceNotFound`` where a source has nothing and the catalog something: all of it would be taken for deleted."""
    if next(live, None) is not None:
        raise SourceNotFound(
            f"Nothing at all is found in {source.url}, and the catalog has entries of it: all of them would be taken for deleted.",
            next_step="See that it is mounted and that the globs fit. If it is meant to be empty: --allow-empty, allow_empty=True.",
        )
    return live


def _counted(state: Harvested, step: Step, failures: Failures) -> Harvested:
    put = 0 if step.put is None else len(step.put)
    size = 0 if step.put is None else pc.sum(step.put.column("content_length"), min_count=0).as_py()
    return replace(
        state,
        entries=state.entries + put + step.unchanged,
        created=state.created + step.created,
        overwritten=state.overwritten + put - step.created,
        deleted=state.deleted + len(step.gone),
        unchanged=state.unchanged + step.unchanged,
        bytes=state.bytes + size,
        errors=len(failures),
    )


class _Chunks:
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
        self._waiting: list[tuple[str, str, Any]] = [] if bucket.row is None else [("put", "buckets", bucket.row)]
        self._count = 0

    @property
    def versions(self) -> tuple[str, ...]:
        """The transactions committed so far."""
        return tuple(committed.version for committed in self._committed)

    def add(self, step: Step) -> None:
        """The events of a step."""
        if step.put is not None:
            self._append("put", "objects", object_rows(self._bucket, step.put, step.ids))
        if len(step.gone):
            self._append("delete", "objects", deleted_keys(self._bucket, step.gone, step.versions))
        if self._count >= self._limit:
            self.flush()

    def add_failures(self, new: pa.Table, settled: pa.Table) -> None:
        """Entries that cannot be catalogued, as found now, and those for which that is over."""
        for kind, rows in (("put", new), ("delete", settled)):
            if len(rows):
                self._append(kind, "harvest_errors", rows)

    def _append(self, kind: str, table: str, rows: pa.Table) -> None:
        self._waiting.append((kind, table, rows))
        self._count += len(rows)

    def flush(self) -> None:
        """Begin to commit what is waiting, once the chunk before it has been committed."""
        self._settle()
        waiting, self._waiting, self._count = self._waiting, [], 0
        if waiting and self._writer is not None:
            self._under_way = self._thread.submit(self._commit, self._writer, waiting)

    def _commit(self, writer: Writer, events: Sequence[tuple[str, str, Any]]) -> None:
        with writer.transaction(operation="harvest", metadata={"source": self._bucket.source, "bucket": self._bucket.name}) as tx:
            for kind, table, rows in events:
                (tx.put if kind == "put" else tx.delete)(table, rows)
        if tx.committed is not None:
            self._committed.append(tx.committed)
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

    def __enter__(self) -> _Chunks:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._settle()
                if self._committed and self._writer is not None:
                    self._writer.check()  # commits look only now and then, and success must not be claimed for half of a fork
        finally:
            self._thread.shutdown()
            if self._writer is not None:
                self._writer.close()
