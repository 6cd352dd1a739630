"""Readers: partitions on the driver's side, record batches in the tasks.

A reader travels to every task, without what it planned; a task opens the store itself. It takes no filters from Spark, which would use one
query's for others too: ADR 0027.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from bucketcatalog.query.reads import BATCH_ROWS, ReadTask

from ..failing import ours_first
from ..types import arrow_schema, check_columns, conformed
from .relation import Relation

_ENOUGH_ROWS = BATCH_ROWS // 16
"""Rows of a table that are worth a batch of their own: half a block is. Fewer are put together, which copies them."""


def make_reader(relation: Relation, schema: StructType) -> DataSourceReader:
    """The reader of these columns of a relation; ``InvalidOption`` where it has no such columns."""
    check_columns(schema, relation.available, relation.options.table)
    return CatalogReader(relation, arrow_schema(schema))


@dataclass
class TaskPartition(InputPartition):
    """What travels to one of Spark's tasks: a part of a read, and nothing else."""

    task: ReadTask


class CatalogReader(DataSourceReader):
    """Reads the columns of ``schema``, which is what Spark expects of each batch."""

    def __init__(self, relation: Relation, schema: pa.Schema) -> None:
        self._relation = relation
        self._schema = schema

    @ours_first()
    def partitions(self) -> list[InputPartition]:
        """What the tasks read; for nothing to read, none."""
        return [TaskPartition(task) for task in self._relation.tasks(self._schema.names)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a partition in batches of about 65,536."""
        if isinstance(partition, TaskPartition):  # Spark makes up a plain one where there are none
            with ours_first():
                yield from batches(partition.task.read(self._relation.catalog.store), self._schema)


def batches(tables: Iterable[pa.Table], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of tables as batches of exactly this schema: small tables put together, large ones cut."""
    waiting: list[pa.Table] = []
    rows = 0
    for table in tables:
        if not waiting and table.num_rows >= _ENOUGH_ROWS:
            yield from _cut(conformed(table, schema))
        elif table.num_rows:
            waiting.append(conformed(table, schema))
            rows += table.num_rows
            if rows >= BATCH_ROWS:
                yield from _cut(pa.concat_tables(waiting))
                waiting, rows = [], 0
    if waiting:
        yield from _cut(pa.concat_tables(waiting))


def _cut(table: pa.Table) -> Iterator[pa.RecordBatch]:
    yield from table.combine_chunks().to_batches(max_chunksize=BATCH_ROWS)
