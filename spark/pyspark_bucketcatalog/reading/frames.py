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
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it
from pyspark.sql.types import StructField, StructType

from bucketcatalog import InvalidOption
from bucketcatalog.errors import UNREADABLE
from bucketcatalog.query.files import Files, at_hand
from bucketcatalog.query.reads import IN_NO_FILES, ReadTask
from bucketcatalog.store import Store

from ..failing import ours_first
from ..types import arrow_schema, conformed, spark_schema
from .native import NotRead, native_frame, spark_root
from .reader import batches
from .relation import Joined, Relation, TableRelation
from .viewed import joined, projected

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

    @classmethod
    def of(cls, wanted: Any, root: str | None) -> Natively:
        """What a user says; ``InvalidOption`` where that is neither yes nor no."""
        known = {"none": None, "true": True, "false": False}
        text = str(wanted).strip().lower()
        if not isinstance(wanted, bool | str | None) or text not in known:
            raise InvalidOption(f"native cannot be {wanted!r}.", next_step="Give True or False, or leave it out.")
        return cls(known[text], root)

    def why_not(self, files: Files, url: str) -> str | None:
        """Why Spark is not to read the files itself, or None: also where there are none, and what lies over them is all."""
        if files.why is not None:
            return files.why
        if not files.native:
            return "no file has such rows" if self.wanted and files.touched > LOCAL_ROWS else None
        return f"nobody says what Spark calls {url}: give native_root" if self.root_of(url) is None else None

    def root_of(self, url: str) -> str | None:
        """What Spark calls a store of that URL, where that is known."""
        return self.root or spark_root(url)


def frame_to_show(spark: SparkSession, relation: Relation, natively: Natively) -> DataFrame:
    """``frame_of`` for a view among others: where something is damaged, its error comes with a query of this one.

    Of what lies in no files nothing is demanded. Where it has to be read natively, damage is an error at once.
    """
    lies_in_files = isinstance(relation, TableRelation) and relation.lies_in_files
    try:
        return frame_of(spark, relation, natively if lies_in_files else Natively())
    except UNREADABLE as error:
        if natively.wanted:
            raise
        _log.warning("Table %r cannot be read: %s", relation.options.table, error)
        return _through_python(spark, relation, relation.schema, [WholeRead(relation)])


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
    why = None
    if isinstance(relation, TableRelation) and relation.lies_in_files and natively.wanted is not False:
        try:
            return _natively(spark, relation, natively)
        except NotRead as error:
            why = str(error)
    tasks = relation.tasks(relation.schema.names)
    is_small = isinstance(relation, TableRelation) and sum(task.rows for task in tasks) <= LOCAL_ROWS
    if (found := _few(relation, relation.schema, tasks) if is_small else None) is not None:
        return _local(spark, found)
    if natively.wanted:
        is_between = relation.options.changes or relation.options.difference
        lies_in_none = "what has changed is wanted, and only rows lie in files" if is_between else IN_NO_FILES
        raise InvalidOption(
            f"Table {relation.options.table!r} cannot be read natively: {why or lies_in_none}.",
            next_step="Leave out native=True. Where the rows are merged in no file yet, or too much lies over these: "
            f"pyspark_bucketcatalog.jobs.checkpoint(spark, {relation.options.path!r}).",
        )
    if why:
        _log.warning("Table %r is read through Python: %s.", relation.options.table, why)
    return _through_python(spark, relation, relation.schema, tasks)


def _natively(spark: SparkSession, relation: TableRelation, natively: Natively) -> DataFrame:
    """Native files, and what lies over them; ``NotRead`` where Spark cannot read them, or is not to."""
    read, projection = relation.in_files()
    files, url = read.files(), relation.catalog.store.url
    if why := natively.why_not(files, url):
        raise NotRead(why)
    some = [native_frame(spark, files.native, natively.root_of(url) or "")] if files.native else []
    if files.touched:
        some += _over(spark, relation, files)
    rows = reduce(DataFrame.union, some) if some else _local(spark, files.schema.empty_table())
    if isinstance(projection, Joined):
        return joined(rows, projection)
    return rows if projection is None else projected(rows, files.schema, projection)


def _over(spark: SparkSession, relation: TableRelation, files: Files) -> list[DataFrame]:
    """What lies over the native files, if there is any."""
    tasks = files.overlay.tasks(relation.options.max_partition_rows)
    found = _few(relation, files.schema, tasks) if files.touched <= LOCAL_KEYS else None
    if found is None:
        return [_through_python(spark, relation, files.schema, tasks)]
    return [_local(spark, found)] if len(found) else []


def _few(relation: Relation, schema: pa.Schema, tasks: Sequence[ReadTask]) -> pa.Table | None:
    """The rows of all tasks, or None where they take more memory than may travel with a plan."""
    store = relation.catalog.store
    return at_hand((rows.select(schema.names) for task in tasks for rows in task.read(store)), schema, LOCAL_BYTES)


def _local(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """Rows that travel with the plan."""
    columns = _nullable(rows.schema)
    return spark.createDataFrame(conformed(rows, arrow_schema(columns)), columns)


def _nullable(schema: pa.Schema) -> StructType:
    """The columns as Spark knows those of files: any may hold nulls."""
    columns = spark_schema(schema)
    return StructType([StructField(field.name, field.dataType) for field in columns.fields])


def _through_python(spark: SparkSession, relation: Relation, schema: pa.Schema, tasks: Sequence[ReadTask]) -> DataFrame:
    """The rows of tasks, each read by an executor. Spark is told that they are many: nobody knows how large they are."""
    columns = _nullable(schema)
    width = _BYTES_OF_A_COLUMN * len(columns.fields)
    size = min(max(sum(task.rows for task in tasks) * width, _LEAST_BYTES), _MOST_BYTES)
    numbers = max(1, size // 8 // max(1, len(tasks)))
    work = _Work(relation, tuple(map(pickle.dumps, tasks)), numbers, arrow_schema(columns), _said_of(relation, tasks))
    # Spark takes this for as large as the numbers are, those that are left out too.
    each = spark.range(0, numbers * len(tasks), 1, max(1, len(tasks))).where(F.col("id") % numbers == 0)
    return each.mapInArrow(work, columns)


def _said_of(relation: Relation, tasks: Sequence[ReadTask]) -> str:
    """What is read, once conditions and options have chosen ranges of it: the table, and how much."""
    asked, rows = relation.options, sum(task.rows for task in tasks)
    kind = "changes of " if asked.changes else "difference of " if asked.difference else ""
    size = f", about {rows:,} rows" if rows else ""
    return f"{kind}{asked.table}: {len(tasks):,} tasks{size} "


@dataclass(frozen=True)
class _Work:
    """Reads the tasks whose numbers come, each times ``numbers``."""

    relation: Relation
    tasks: tuple[bytes, ...]
    numbers: int
    schema: pa.Schema
    said: str

    @property
    def __name__(self) -> str:
        """What Spark's plans call it, and nothing else tells them what is read."""
        return self.said

    def __call__(self, asked: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of those tasks."""
        for batch in asked:
            for number in batch.column(0).to_pylist():
                task: ReadTask = pickle.loads(self.tasks[number // self.numbers])
                with ours_first():
                    yield from batches(task.read(self.relation.catalog.store), self.schema)
