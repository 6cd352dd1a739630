"""What travels to a task: the slices that it reads and what it needs for them, nothing else.

A partition says how to read itself from a catalog that the task opens. What lies in blocks, of checkpoints or of events, travels as their
places; the part of the tail that transactions carry row by row as ``packedslices`` says.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from bucketcatalog import Catalog
from bucketcatalog.format.losses import Losses
from bucketcatalog.format.transactions import Transaction
from bucketcatalog.log.pruned import telling_of_prunes
from bucketcatalog.log.segments import Blocks
from bucketcatalog.model.cuts import Head
from bucketcatalog.model.tables import Table
from bucketcatalog.query.changes import Changes
from bucketcatalog.query.scan import ScanTask
from bucketcatalog.state.plan import PackedSlice, Slice, grouped

_FEWEST_ROWS = 1 << 17
"""Rows below which a further partition costs more than a further core saves."""


class CatalogPartition(InputPartition):
    """A part of a read that one task does."""

    @abstractmethod
    def tables(self, catalog: Catalog, columns: Sequence[str]) -> Iterator[pa.Table]:
        """The rows, as tables with at least these columns."""


@dataclass
class SlicesPartition(CatalogPartition):
    """Slices of a scan, next to each other in key order."""

    task: ScanTask
    slices: tuple[PackedSlice, ...]

    def tables(self, catalog: Catalog, columns: Sequence[str]) -> Iterator[pa.Table]:
        """A table a block, or a slice where blocks have to be merged; nothing else is read."""
        blocks = Blocks(catalog.store, Losses() if self.task.ignores_corruption else None)
        for packed in self.slices:
            yield from self.task.read(blocks, packed.unpacked(self.task.table))


@dataclass
class MetadataPartition(CatalogPartition):
    """A table about the catalog, whole: what it is made from is read by the task, not by the driver."""

    database: str
    version: str
    table: str
    ignore_corruption: bool = False

    def tables(self, catalog: Catalog, columns: Sequence[str]) -> Iterator[pa.Table]:
        """The whole table."""
        snapshot = catalog.snapshot(database=self.database, version=self.version, ignore_corruption=self.ignore_corruption)
        yield snapshot.scan(self.table, columns=columns).to_arrow()


@dataclass
class ChangesPartition(CatalogPartition):
    """The events of a table in some transactions, which the task reads again by name."""

    database: str
    table: Table
    transactions: tuple[tuple[str, Head], ...]

    def tables(self, catalog: Catalog, columns: Sequence[str]) -> Iterator[pa.Table]:
        """The events in the order of their stamps."""
        files = catalog.database(self.database).files
        with telling_of_prunes(catalog.store):
            transactions = [files.transaction(writer, head) for writer, head in self.transactions]
        for batch in Changes(catalog.store, self.table, transactions).to_batches():
            yield pa.Table.from_batches([batch])


def slice_partitions(task: ScanTask, slices: Sequence[Slice], max_rows: int) -> list[InputPartition]:
    """Partitions of about equal weight, known from the indexes alone."""
    packed = [PackedSlice.of(piece, task.table, task.part) for piece in slices]
    useful = [one for one in packed if one.rows]
    groups = grouped([one.rows for one in useful], partition_count(sum(one.rows for one in useful), max_rows))
    return [SlicesPartition(task, tuple(useful[at] for at in group)) for group in groups]


def change_partitions(changes: Changes, database: str, max_rows: int) -> list[InputPartition]:
    """Partitions of the transactions that hold events of the table."""
    concerned = [t for t in changes.transactions if _concerns(t, changes.table.name)]
    weights = [max(t.events, 1) for t in concerned]
    partitions: list[InputPartition] = []
    for group in grouped(weights, partition_count(sum(weights), max_rows)):
        refs = tuple((concerned[at].writer, concerned[at].head) for at in group)
        partitions.append(ChangesPartition(database, changes.table, refs))
    return partitions


def _concerns(transaction: Transaction, table: str) -> bool:
    named = (
        {action.table for action in transaction.actions}
        | {place.header.table for place in transaction.blocks}
        | {run.table for segment in transaction.segments for run in segment.runs}
    )
    return table in named


def partition_count(rows: int, max_rows: int) -> int:
    """How many partitions to make of so many rows.

    As many as ``max_rows`` demands, and where rows are few as many as this machine has cores, unless they would get too small. How many
    cores the executors have is not known where partitions are planned.
    """
    return max(-(-rows // max_rows), min(os.cpu_count() or 1, rows // _FEWEST_ROWS), 1)
