"""Doing things on executors: one Spark task for each, and what came out of each back on the driver.

It is a DataFrame's ``mapInArrow``, since RDDs are not there on Spark Connect, and of ``spark.range``, since that alone has exactly one
row in each partition without a shuffle. Spark may do a thing again after a failure, or twice at once where it speculates: then one of
the outcomes comes back. Where a thing reads the state of a table, it is a share of it: slices next to each other.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import spark_partition_id
from pyspark.sql.types import StructType

from bucketcatalog import Catalog, InvalidOption
from bucketcatalog.log.blocks import Blocks
from bucketcatalog.maintain.gc.parents import slice_states
from bucketcatalog.model.facts import Facts
from bucketcatalog.model.tables import Column
from bucketcatalog.state.contents import TableState
from bucketcatalog.state.orders import plan_ended
from bucketcatalog.state.plan import Part
from bucketcatalog.state.shares import Share, shares
from bucketcatalog.store import Store
from bucketcatalog.store.open import is_url
from bucketcatalog.store.tickets import carried

from .failing import ours_first
from .types import arrow_schema, conformed, spark_schema


@dataclass(frozen=True)
class CatalogPlace:
    """Where a catalog is, for whoever opens it elsewhere; it travels with what its store needs, and shows none of it.

    This and what is ``sent`` are all whose pickles hold secrets of stores: executors cannot ask anybody else for them.
    """

    path: str
    storage: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, path: str | os.PathLike[str], storage_options: Mapping[str, Any] | None) -> CatalogPlace:
        """The place; executors run in other folders, so a path on disk is made whole. ``InvalidOption`` for what names none."""
        if isinstance(path, Catalog):
            raise InvalidOption(
                "A Catalog cannot travel to executors.",
                next_step="Give the path or url that it was opened with, and its storage_options.",
            )
        text = os.fspath(path)
        return cls(text if is_url(text) else str(Path(text).absolute()), dict(storage_options or {}))

    def open(self) -> Catalog:
        """The catalog, opened in this process."""
        return Catalog(self.path, storage_options=self.storage or None)


def sent(value: Any) -> bytes:
    """A value that executors unpickle, with the secrets of the stores in it."""
    with carried():
        packed: bytes = cloudpickle.dumps(value)  # type: ignore[no-untyped-call]
    return packed


Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


def on_executors(spark: SparkSession, do: Callable[[Item], Outcome], items: Sequence[Item]) -> list[Outcome]:
    """What ``do`` makes of each item, in no particular order. ``do``, the items and what comes back are pickled."""
    if not items:
        return []

    def work(item: Item) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"outcome": pa.array([pickle.dumps(do(item))], pa.binary())})

    return [pickle.loads(row.outcome) for row in _each(spark, work, items, "outcome binary").collect()]


def parallelism(spark: SparkSession) -> int:
    """How many tasks Spark does at a time, as far as it says so; on Connect, too, it divides ``spark.range`` into as many."""
    return spark.range(1 << 16).select(spark_partition_id()).distinct().count()


MOST_ROWS = 1 << 20
"""Rows of a task."""


def read_states(share: Share, store: Store, columns: Iterable[Column]) -> Iterator[Facts]:
    """The state of a share, with these row columns, a few thousand rows at a time."""
    blocks, wanted = Blocks(store), list(columns)
    for slice_ in share.unpacked():  # one after the other: Spark gives each processor a task of its own
        yield from slice_states(blocks, share.table, share.part, slice_, wanted)


def every_share(state: TableState, part: Part) -> list[Share]:
    """Shares of about equal weight that are all of a table, planned from indexes alone."""
    return shares(state.table, part, state.plan(only_live=part is Part.LIVE), MOST_ROWS)


def ended_shares(state: TableState, until: int) -> list[Share]:
    """Shares with tombstones of a table: at least all that ended at or before a commit time."""
    return shares(state.table, Part.TOMBSTONES, plan_ended(state, until), MOST_ROWS)


def frame(spark: SparkSession, do: Callable[[Item], Iterable[pa.Table]], items: Sequence[Item], schema: pa.Schema) -> DataFrame:
    """The rows that ``do`` makes of the items, one item a partition; ``do`` and the items are pickled."""
    columns = spark_schema(schema)
    if not items:
        return spark.createDataFrame([], columns)
    wanted = arrow_schema(columns)

    def work(item: Item) -> Iterator[pa.RecordBatch]:
        for rows in do(item):
            yield from conformed(rows, wanted).to_batches()

    return _each(spark, work, items, columns)


def _each(
    spark: SparkSession, do: Callable[[Item], Iterator[pa.RecordBatch]], items: Sequence[Item], columns: StructType | str
) -> DataFrame:
    """The batches that ``do`` makes of the items, of which there are some, one item a partition."""
    packed = [pickle.dumps(item) for item in items]  # a task takes its own apart, and no other

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                with ours_first():
                    yield from do(pickle.loads(packed[number]))

    return spark.range(0, len(packed), 1, len(packed)).mapInArrow(work, columns)


def packed_rows(rows: DataFrame, columns: Sequence[str], size: int) -> Iterator[pa.Table]:
    """The rows on the driver, so many at a time: the executors pack them, so that nobody handles them one by one."""

    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        waiting: list[pa.RecordBatch] = []
        for batch in batches:
            waiting.append(batch)
            if sum(len(some) for some in waiting) >= size:
                yield _packed(waiting)
                waiting = []
        if waiting:
            yield _packed(waiting)

    held: list[pa.Table] = []
    for row in rows.select(*columns).mapInArrow(pack, "rows binary").toLocalIterator():
        held.append(pa.ipc.open_stream(row.rows).read_all())
        if sum(len(some) for some in held) >= size:
            yield pa.concat_tables(held)
            held = []
    if held:
        yield pa.concat_tables(held)


def _packed(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    table = pa.Table.from_batches(batches)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return pa.record_batch({"rows": pa.array([sink.getvalue().to_pybytes()], pa.binary())})
