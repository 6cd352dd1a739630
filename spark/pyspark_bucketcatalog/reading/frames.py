"""DataFrames of a read: natively where Spark can, with what lies over the files beside them, else by tasks of this package.

Rows that come through Python are tasks of ``mapInArrow`` rather than a Python data source. It plans nothing in processes of its own, so
that a view costs what its plan does, and it is known about how large it is, so that Spark joins it as it would a file. Few rows are a
local relation.
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it
from pyspark.sql.types import StructField, StructType

from bucketcatalog import InvalidOption
from bucketcatalog.errors import UNREADABLE
from bucketcatalog.query.files import Files
from bucketcatalog.query.scan import ReadTask
from bucketcatalog.store import Store

from ..types import arrow_schema, conformed, spark_schema
from .native import native_frame, spark_root, why_unread
from .reader import batches
from .relation import Relation, TableRelation

LOCAL_ROWS, LOCAL_BYTES = 8_192, 48 << 20
"""As many rows of a table, and bytes of them in memory, are read where the frame is planned, and travel with the plan."""
LOCAL_KEYS = 131_072
"""As many keys may have their rows over files for these to travel so: every query of the frame would ask Python for them."""
_BYTES_OF_A_COLUMN = 16
_LEAST_BYTES, _MOST_BYTES = 64 << 20, 1 << 30
"""What Spark is told of rows that come through Python: never so little that it would send them all to everybody."""
_log = logging.getLogger(__package__)


@dataclass(frozen=True)
class Natively:
    """Whether to read natively (None: where it can be), and what Spark calls the catalog's root where that is not known."""

    wanted: bool | None = None
    root: str | None = None

    def why_not(self, spark: SparkSession, files: Files, url: str) -> str | None:
        """Why the files are not read by Spark itself, or None: also where there are none, and what lies over them is all."""
        if files.why is not None:
            return files.why
        if not files.native:
            return "no file has such rows" if self.wanted and files.touched > LOCAL_KEYS else None
        root = self.root_of(url)
        if root is None:
            return f"nobody says what Spark calls {url}: give native_root"
        return why_unread(spark, files.native, root)

    def root_of(self, url: str) -> str | None:
        """What Spark calls a store of that URL, where that is known."""
        return self.root or spark_root(url)


def shown(spark: SparkSession, relation: Relation, natively: Natively) -> DataFrame:
    """``frame_of`` for a view among others: where something is damaged, its error comes with a query of this one."""
    try:
        return frame_of(spark, relation, natively)
    except UNREADABLE:
        return _through_python(spark, relation, [WholeRead(relation)])


@dataclass(frozen=True)
class WholeRead:
    """All rows of a relation, planned where they are read."""

    relation: Relation
    rows: int = 0

    def read(self, store: Store) -> Iterator[pa.Table]:
        """The rows of each of its tasks."""
        for task in self.relation.tasks(self.relation.schema.names):
            yield from task.read(store)


def frame_of(spark: SparkSession, relation: Relation, natively: Natively) -> DataFrame:
    """The rows of a relation; ``InvalidOption`` where they are many, have to be read natively, and cannot be."""
    why: str | None = "only tables and their tombstones lie in files"
    if isinstance(relation, TableRelation):
        files = relation.files() if natively.wanted is not False else None
        why = "native=False" if files is None else natively.why_not(spark, files, relation.catalog.store.url)
        if files is not None and why is None:
            return _natively(spark, relation, files, natively)
    tasks = relation.tasks(relation.schema.names)
    is_small = isinstance(relation, TableRelation) and sum(task.rows for task in tasks) <= LOCAL_ROWS
    if (found := _few(relation, tasks) if is_small else None) is not None:
        return _local(spark, found)
    if natively.wanted:
        raise InvalidOption(
            f"Table {relation.options.table!r} cannot be read natively: {why}.", next_step="Leave out native=True, or mend that."
        )
    if natively.wanted is None and relation.options.table in relation.snapshot.rows and not relation.options.changes:
        _log.warning("Table %r is read through Python: %s.", relation.options.table, why)
    return _through_python(spark, relation, tasks)


def _natively(spark: SparkSession, relation: Relation, files: Files, natively: Natively) -> DataFrame:
    """Native files, and what lies over them."""
    over = _over(spark, relation, files)
    if not files.native:
        return over if over is not None else _local(spark, relation.schema.empty_table())
    native = native_frame(spark, files.native, natively.root_of(relation.catalog.store.url) or "")
    return native if over is None else native.union(over)


def _over(spark: SparkSession, relation: Relation, files: Files) -> DataFrame | None:
    """What lies over the native files."""
    if not files.touched:
        return None
    tasks = files.overlay.tasks(relation.options.max_partition_rows)
    found = _few(relation, tasks) if files.touched <= LOCAL_KEYS else None
    if found is not None:
        return _local(spark, found) if len(found) else None
    return _through_python(spark, relation, tasks)


def _few(relation: Relation, tasks: Sequence[ReadTask]) -> pa.Table | None:
    """The rows of all tasks, or None where they take more memory than may travel with a plan."""
    found, size = [relation.schema.empty_table()], 0
    for task in tasks:
        for rows in task.read(relation.catalog.store):
            found.append(rows.select(relation.schema.names))
            size += rows.nbytes
            if size > LOCAL_BYTES:
                return None
    return pa.concat_tables(found)


def _local(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """Rows that travel with the plan."""
    columns = _nullable(rows.schema)
    return spark.createDataFrame(conformed(rows, arrow_schema(columns)), columns)


def _nullable(schema: pa.Schema) -> StructType:
    """The columns as Spark knows those of files: any may hold nulls."""
    columns = spark_schema(schema)
    return StructType([StructField(field.name, field.dataType) for field in columns.fields])


def _through_python(spark: SparkSession, relation: Relation, tasks: Sequence[ReadTask]) -> DataFrame:
    """The rows of tasks, each read by an executor. Spark is told that they are many: nobody knows how large they are."""
    columns = _nullable(relation.schema)
    width = _BYTES_OF_A_COLUMN * len(columns.fields)
    size = min(max(sum(task.rows for task in tasks) * width, _LEAST_BYTES), _MOST_BYTES)
    numbers = max(1, size // 8 // max(1, len(tasks)))
    work = _Work(relation, tuple(map(pickle.dumps, tasks)), numbers, arrow_schema(columns))
    # Spark takes this for as large as the numbers are, those that are left out too.
    each = spark.range(0, numbers * len(tasks), 1, max(1, len(tasks))).where(F.col("id") % numbers == 0)
    return each.mapInArrow(work, columns)


@dataclass(frozen=True)
class _Work:
    """Reads the tasks whose numbers come, each times ``numbers``."""

    relation: Relation
    tasks: tuple[bytes, ...]
    numbers: int
    schema: pa.Schema

    def __call__(self, asked: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of those tasks."""
        for batch in asked:
            for number in batch.column(0).to_pylist():
                task: ReadTask = pickle.loads(self.tasks[number // self.numbers])
                yield from batches(task.read(self.relation.catalog.store), self.schema)
