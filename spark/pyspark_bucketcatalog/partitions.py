"""What travels to a task: the slices that it reads and what it needs for them, nothing else.

A partition says how to read itself from a catalog that the task opens. What lies in blocks, of checkpoints or of events, travels as their
places. The part of the tail that transactions carry row by row has been read by the driver; it travels encoded as blocks itself, so it
holds no row of another slice.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from bucketcatalog import Catalog
from bucketcatalog.changes import Changes
from bucketcatalog.codec.blocks import BlockClass, decode_block, encode_blocks
from bucketcatalog.codec.transactions import Transaction
from bucketcatalog.cut import Head
from bucketcatalog.facts import concat
from bucketcatalog.fetch import Blocks
from bucketcatalog.losses import Losses
from bucketcatalog.merge import Part
from bucketcatalog.planning import Slice
from bucketcatalog.scan import ScanTask
from bucketcatalog.sortedfacts import SortedFacts
from bucketcatalog.tables import Table

_FEWEST_ROWS = 1 << 17
"""Rows below which a further partition costs more than a further core saves."""


class CatalogPartition(InputPartition):
    """A part of a read that one task does."""

    @abstractmethod
    def tables(self, catalog: Catalog, columns: Sequence[str]) -> Iterator[pa.Table]:
        """The rows, as tables with at least these columns."""


@dataclass(frozen=True)
class PackedSlice:
    """A slice whose part of the tail is encoded."""

    piece: Slice
    tail: tuple[bytes, ...]

    @classmethod
    def of(cls, piece: Slice, table: Table, part: Part) -> PackedSlice:
        """The slice with the blocks that reading ``part`` may need."""
        if piece.settled and part is Part.LIVE:
            return cls(replace(piece, rest=()), ())
        if piece.settled and part is Part.TOMBSTONES:
            return cls(replace(piece, live=()), ())
        if piece.tail is None:
            return cls(piece, ())
        blocks = encode_blocks(piece.tail.facts, table, BlockClass.STUBS)
        return cls(replace(piece, tail=None), tuple(block.data for block in blocks))

    def unpacked(self, table: Table) -> Slice:
        """The slice as it was."""
        if not self.tail:
            return self.piece
        facts = concat([decode_block(data, table, "the tail of a partition") for data in self.tail])
        return replace(self.piece, tail=SortedFacts.of(facts, table))


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
        transactions = [files.transaction(writer, head) for writer, head in self.transactions]
        for batch in Changes(catalog.store, self.table, transactions).to_batches():
            yield pa.Table.from_batches([batch])


def slice_partitions(task: ScanTask, slices: Sequence[Slice], max_rows: int) -> list[InputPartition]:
    """Partitions of about equal weight, known from the indexes alone."""
    packed = [PackedSlice.of(piece, task.table, task.part) for piece in slices]
    weighted = [(one, _weight(one, whole)) for one, whole in zip(packed, slices, strict=True)]
    useful = [(one, weight) for one, weight in weighted if weight]
    groups = grouped([weight for _, weight in useful], partition_count(sum(weight for _, weight in useful), max_rows))
    return [SlicesPartition(task, tuple(useful[at][0] for at in group)) for group in groups]


def _weight(packed: PackedSlice, whole: Slice) -> int:
    return packed.piece.rows + (len(whole.tail) if whole.tail is not None else 0)


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


def grouped(weights: Iterable[int], count: int) -> list[range]:
    """Positions of the weights in at most ``count`` groups of neighbours whose sums are about equal."""
    weights = list(weights)
    total = sum(weights)
    starts, seen, group = [], 0, -1
    for position, weight in enumerate(weights):
        own = min((2 * seen + weight) * count // (2 * total), count - 1) if total else 0
        if own != group:
            starts.append(position)
            group = own
        seen += weight
    stops = [*starts[1:], len(weights)][: len(starts)]
    return [range(start, stop) for start, stop in zip(starts, stops, strict=True)]
