"""A stream of a table's change events: offsets that are cuts, and Spark's reader of what lies between two.

Spark keeps one reader in a process of its own for as long as the query runs, and asks it for offsets and partitions. ``read`` runs in the
tasks, on readers that know nothing but what they were made with.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from bucketcatalog import BucketCatalogError, Catalog, ForeignBranch, HistoryPruned, InvalidOption, InvalidTime, clock
from bucketcatalog.model.cuts import Cut, Head, Ref
from bucketcatalog.model.tables import Table
from bucketcatalog.model.times import parse_time
from bucketcatalog.query.changes import changed_table
from bucketcatalog.query.events import changes_schema
from bucketcatalog.query.following import ALL, Follower, Portion, state_tasks
from bucketcatalog.query.reads import ReadTask
from bucketcatalog.query.snapshot import Snapshot
from bucketcatalog.write.host_turn import host_turn

from ..failing import ours_first
from ..options import StreamOptions
from ..types import arrow_schema, check_columns
from .reader import TaskPartition, batches

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxBytes,
        ReadMaxFiles,
        SupportsTriggerAvailableNow,
    )
except ImportError:  # before 4.2 Spark asks for everything, always
    _READ_LIMITS = False

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """What Spark has none of."""
else:
    _READ_LIMITS = True

_AFTER_VERSION, _AFTER_TIME, _STATE_OF_VERSION, _STATE_OF_TIME = (
    "after version",
    "after time",
    "state of version",
    "state of time",
)
_STATE_OF_NOW = "state of now"
_STATES = frozenset({_STATE_OF_VERSION, _STATE_OF_TIME, _STATE_OF_NOW})
_BEGINNINGS = _STATES | {_AFTER_VERSION, _AFTER_TIME}
"""Where a stream begins; no writer can be called so."""
_TABLE = "of table"
"""What the offset says beside its heads: a cut is of a database, and another table's events up to there were not received."""
_BEGUN = "begins here"
"""What the offset says that the first batch ends with, where Spark tells how that one began: it has the state there, if any, and no event.

So where the stream begins is looked up once, and kept: a tag may be moved, and of a time more may arrive."""
PIN_EVERY, _PIN_PATIENCE = 600.0, 10.0
"""Seconds after which a stream's pin is moved to where the stream is, or tried again; and for which it waits for another process's turn."""
_log = logging.getLogger(__package__)
Json = dict[str, Any]


def beginning(asked: StreamOptions) -> Json:
    """The offset of a query that has received nothing: a function of its options, since Spark asks for it again before it keeps any."""
    at = asked.start
    if at.version is not None:
        return {_STATE_OF_VERSION if asked.with_state else _AFTER_VERSION: at.version}
    if at.timestamp is not None:
        return {_STATE_OF_TIME if asked.with_state else _AFTER_TIME: at.timestamp}
    return {_STATE_OF_NOW: True} if asked.with_state else {}


def offset_of(cut: Cut, table: str) -> Json:
    """A cut as Spark keeps it: for each writer the revision and uuid of its newest transaction; of several where its timeline is forked.

    With the name of the table, ``database/table``, that the stream is of.
    """
    heads = {writer: " ".join(f"{head.revision}:{head.uuid.hex()}" for head in heads) for writer, heads in cut.heads.items()}
    return {_TABLE: table, **heads}


def cut_of(offset: Mapping[str, Any], table: str) -> Cut:
    """The cut that ``offset_of`` gave of this table, or of the beginning; ``InvalidOption`` for what can be none, or is another table's."""
    of = offset.get(_TABLE, table)
    if of != table:
        raise InvalidOption(
            f"The checkpoint of this query is one of a stream of {of}, and it reads {table}.",
            next_step="Start the query with a checkpointLocation of its own.",
        )
    try:
        return Cut.of(_refs({writer: heads for writer, heads in offset.items() if writer not in (_TABLE, _BEGUN)}))
    except (AttributeError, TypeError, ValueError):
        raise InvalidOption(
            f"{str(offset)[:80]} is no offset of a stream of change events.",
            next_step="Start the query with a checkpointLocation of its own, which no other source has used.",
        ) from None


def _refs(heads: Mapping[str, str]) -> Iterator[Ref]:
    for writer, each in heads.items():
        for one in each.split():
            revision, _, uuid = one.partition(":")
            yield Ref(writer, Head(int(revision), bytes.fromhex(uuid)))


@dataclass(frozen=True)
class Stream:
    """What a stream is of: a table as it was defined at ``version``, when the query was written, whose columns stay those of the query."""

    options: StreamOptions
    database: str
    table: Table
    version: str

    @property
    def schema(self) -> pa.Schema:
        """What tells of the event, then the table's columns."""
        return changes_schema(self.table)

    @property
    def name(self) -> str:
        """The table's, as offsets have it."""
        return f"{self.database}/{self.table.name}"


def open_stream(options: Mapping[str, str]) -> Stream:
    """The stream that options ask for; a typed error where there is no such table, or it has no changes.

    Where it starts is looked up when the query first does, and never again: what has been received decides from then on.
    """
    asked = StreamOptions.parse(options)
    catalog = Catalog(asked.path, storage_options=asked.storage)
    snapshot = catalog.snapshot(database=asked.database, ignore_corruption=asked.ignore_corruption)
    return Stream(asked, snapshot.database, changed_table(snapshot, asked.table), snapshot.version)


class ChangesStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Hands out every event once, in batches that end at cuts; see ``bucketcatalog.query.following``."""

    def __init__(self, stream: Stream, schema: StructType) -> None:
        check_columns(schema, stream.schema, stream.table.name)
        self._stream = stream
        self._schema = arrow_schema(schema)
        self._pinned: float | None = None

    def __getstate__(self) -> dict[str, Any]:
        """What a task has to know."""
        return {"_stream": self._stream, "_schema": self._schema, "_pinned": None}

    @cached_property
    def _catalog(self) -> Catalog:
        return Catalog(self._stream.options.path, storage_options=self._stream.options.storage)

    @cached_property
    def _follower(self) -> Follower:
        return Follower(self._catalog.database(self._stream.database), self._stream.table)

    def initialOffset(self) -> Json:  # noqa: N802
        """Where a query starts that has received nothing."""
        return beginning(self._stream.options)

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        """The bound that the options set; where these are two, one stands for both."""
        asked = self._stream.options
        if asked.max_files is not None:
            return ReadMaxFiles(asked.max_files)
        return ReadMaxBytes(asked.max_bytes) if asked.max_bytes is not None else ReadAllAvailable()

    @ours_first()
    def latestOffset(self, *asked: Any) -> Json:  # noqa: N802
        """Where the next batch ends: given its start and the bound that the trigger allows; Spark before 4.2 gives neither."""
        if not asked:
            return self._offset(self._follower.newest().cut)
        start, limit = asked
        if start.keys() & _BEGINNINGS:
            cut = self._follower.newest().cut if _STATE_OF_NOW in start else self._begun(start).cut
            self._pin(cut)  # before the state is read: it may take long
            return {**self._offset(cut), _BEGUN: True}
        cut = self._cut(start)
        self._pin(cut)
        end = self._follower.end_of(cut, self._portion(limit))
        return start if end == cut else self._offset(end)

    def _offset(self, cut: Cut) -> Json:
        return offset_of(cut, self._stream.name)

    def _cut(self, offset: Json) -> Cut:
        return cut_of(offset, self._stream.name)

    def _portion(self, limit: ReadLimit) -> Portion:
        if isinstance(limit, ReadAllAvailable):
            return ALL
        return Portion(self._stream.options.max_files, self._stream.options.max_bytes)

    @ours_first()
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """What is committed from now on is left to the next run."""
        self._follower.stop_at(self._follower.newest())

    @ours_first()
    def partitions(self, start: Json, end: Json) -> list[InputPartition]:
        """What the tasks of a batch read: the same for the same offsets, whenever and wherever they are asked for.

        Of a first batch before 4.2 that is so for as long as where the options say that it begins stays the same.
        """
        tasks: list[ReadTask] = []
        if start != end and (_BEGUN in end or _STATE_OF_NOW in start):
            tasks = self._state(self._snapshot(version=str(self._cut(end)))) if start.keys() & _STATES else []
        elif start != end:
            tasks = self._tasks(start, self._cut(end))
        return [TaskPartition(task) for task in tasks]

    def _tasks(self, start: Json, end: Cut) -> list[ReadTask]:
        asked = self._stream.options
        tasks: list[ReadTask] = []
        if _STATE_OF_VERSION in start or _STATE_OF_TIME in start:
            tasks += self._state(self._begun(start))
        if (begin := self._reached(start)) != end:
            found = self._follower.transactions(begin, end, ignore_set_aside=asked.ignore_corruption)
            tasks += self._follower.tasks(found, self._schema.names, asked.max_partition_rows)
        return tasks

    def _state(self, snapshot: Snapshot) -> list[ReadTask]:
        return state_tasks(snapshot, self._stream.table, self._stream.options.max_partition_rows)

    def _reached(self, start: Json) -> Cut:
        """The cut that a batch starts from."""
        return self._cut(start) if not start.keys() & _BEGINNINGS else self._begun(start).cut

    def _begun(self, start: Json) -> Snapshot:
        """The snapshot that a query begins with, or after."""
        ((what, at),) = start.items()
        if what in (_AFTER_VERSION, _STATE_OF_VERSION):
            return self._snapshot(version=at)
        found = self._snapshot(timestamp=at)
        if what == _STATE_OF_TIME and parse_time(at) > found.view.watermark:
            raise InvalidTime(
                f"The state of {at} is not settled: transactions of that time may still arrive.",
                next_step=f"Give an earlier time, leave startingTimestamp out, or give startingVersion: {found.version}.",
            )
        return found

    def _snapshot(self, **at: Any) -> Snapshot:
        return self._catalog.snapshot(database=self._stream.database, **at)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The events of a partition."""
        if isinstance(partition, TaskPartition):
            with ours_first():
                yield from batches(partition.task.read(self._catalog.store), self._schema)

    @ours_first()
    def commit(self, end: Json) -> None:
        """What was committed up to there need not be kept for this stream any more. Before 4.2 nothing else says where it is."""
        if not _READ_LIMITS:
            self._pin(self._cut(end))

    def _pin(self, cut: Cut) -> None:
        """Keep what is committed after the cut, which all of the stream's batches up to now end at or before."""
        pin, now = self._stream.options.pin, clock.monotonic()
        if pin is None or (self._pinned is not None and now - self._pinned < PIN_EVERY):
            return
        self._pinned, asked = now, self._stream.options
        database, store, writer = self._stream.database, self._catalog.store, asked.pinner
        try:
            with (
                host_turn(store, database, named=asked.writer, default=writer, patience=_PIN_PATIENCE),
                self._catalog.writer(writer, database=database) as held,
            ):
                held.pin(pin, version=str(cut))
        except (HistoryPruned, ForeignBranch):
            raise
        except BucketCatalogError as error:  # a stream goes on without for a while: the last one still counts
            _log.warning("The pin %r of %r cannot be given: %s", pin, writer, error)

    def stop(self) -> None:
        """Nothing is held open."""


class RefusedStreamReader(DataSourceStreamReader):
    """The reader of a stream that cannot be: raises the error once it is asked for anything.

    Of one that is raised instead of a reader Spark tells an error of its own, of a reader that it cannot stop.
    """

    def __init__(self, error: BucketCatalogError) -> None:
        self._error = error

    @ours_first()
    def _refuse(self, *asked: Any) -> Any:
        raise self._error

    _any: Any = _refuse
    initialOffset = latestOffset = getDefaultReadLimit = partitions = read = commit = _any  # noqa: N815
