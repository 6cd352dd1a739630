"""What the state of one table at a cut is made from: the blocks of checkpoints, and the tail."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property

import pyarrow as pa

from .codec.blocks import BlockClass
from .codec.segments import Run, SegmentReference, held_by_segment
from .errors import CorruptionError, UnsupportedFormat
from .facts import Facts
from .fetch import Blocks, read_index
from .keys import EVERYTHING, KeyRange
from .losses import Losses
from .paths import segment as segment_path
from .planning import SLICE_ROWS, EventBlock, Levels, Slice, for_keys, plan_slices
from .runs import BlockRun, runs_by_table
from .sortedfacts import SortedFacts
from .store.base import Store
from .tables import Table

_FEW_KEYS = 64
_KEYS_OF_A_SLICE = 8_192
"""Few keys are looked for one by one, more of them together: a block that holds several is read once."""


class IndexCache:
    """The indexes of segments, each read once. With ``losses`` one that cannot be read is noted there and has no blocks."""

    def __init__(self, store: Store, database: str, losses: Losses | None = None) -> None:
        self.losses = losses
        self._store = store
        self._database = database
        self._read: dict[bytes, dict[tuple[str, BlockClass], BlockRun]] = {}

    def run(self, reference: SegmentReference, table: str, block_class: BlockClass) -> BlockRun:
        """The blocks of a table and class in a segment."""
        try:
            return self._strict(reference, table, block_class)
        except (CorruptionError, UnsupportedFormat) as error:
            if self.losses is None:
                raise
            self.losses.lose_segment(segment_path(reference.writer, self._database, reference.uuid), error, reference)
            return BlockRun(block_class, ())

    def _strict(self, reference: SegmentReference, table: str, block_class: BlockClass) -> BlockRun:
        if reference.uuid not in self._read:
            self._read[reference.uuid] = runs_by_table(read_index(self._store, self._database, reference))
        try:
            return self._read[reference.uuid][table, block_class]
        except KeyError:
            raise CorruptionError(
                f"{held_by_segment(reference)}: its index has no {block_class.name.lower()} rows of {table}.",
                next_step="Restore the checkpoint from a copy of the store.",
            ) from None


Stored = tuple[SegmentReference, Run]
"""A part of a run, and the segment that it lies in."""


class TableBase:
    """The blocks and the tail of one table; ``runs`` are those of each checkpoint."""

    def __init__(
        self,
        blocks: Blocks,
        table: Table,
        runs: Sequence[Sequence[Stored]],
        indexes: IndexCache,
        tail: Facts | None,
        events: Sequence[EventBlock],
    ) -> None:
        self.blocks = blocks
        self.table = table
        self.events = events
        self._stored = runs
        self._indexes = indexes
        self._tail = tail

    def above(self, level: int) -> TableBase:
        """The same without the runs below a level: what is new over them."""
        runs = [[stored for stored in each if stored[1].level >= level] for each in self._stored]
        return TableBase(self.blocks, self.table, runs, self._indexes, self._tail, self.events)

    @cached_property
    def tail(self) -> SortedFacts | None:
        """The uncovered events that transactions carry one by one, by key."""
        return SortedFacts.of(self._tail, self.table) if self._tail is not None and len(self._tail) else None

    @property
    def new_rows(self) -> int:
        """How many events no checkpoint covers."""
        return (len(self._tail) if self._tail is not None else 0) + sum(block.place.header.rows for block in self.events)

    @property
    def level_rows(self) -> list[int]:
        """The rows of each level, from the lowest on, of all checkpoints together."""
        rows: Counter[int] = Counter()
        for each in self._stored:
            for _, run in each:
                rows[run.level] += run.rows
        return [rows[level] for level in range(max(rows, default=-1) + 1)]

    def plan(
        self, ranges: Iterable[KeyRange] = (EVERYTHING,), *, only_live: bool = False, target: int = SLICE_ROWS
    ) -> list[Slice]:
        """The slices that cover the ranges, in key order; see ``plan_slices``."""
        ranges = list(ranges)
        levels = self.levels(ranges)
        if self._indexes.losses is not None:
            ranges = self._indexes.losses.without_withheld(self.table.name, ranges)
        return plan_slices(levels, self.events, self.tail, ranges, only_live=only_live, target=target)

    def plan_keys(self, keys: pa.Array, *, only_live: bool = False) -> list[Slice]:
        """The slices that can hold these keys, which are sorted, distinct and at least one."""
        step = 1 if len(keys) <= _FEW_KEYS else _KEYS_OF_A_SLICE
        parts = [keys[at : at + step] for at in range(0, len(keys), step)]
        ranges = [KeyRange(part[0].as_py(), part[-1].as_py() + b"\x00") for part in parts]
        return list(for_keys(self.plan(ranges, only_live=only_live, target=sys.maxsize), keys))

    def levels(self, ranges: Iterable[KeyRange] = (EVERYTHING,)) -> list[Levels]:
        """For each checkpoint the runs of the table that can hold keys of the ranges; reads the indexes of such segments only."""
        ranges = list(ranges)
        return [
            Levels(self._runs((s for s in each if not s[1].level), ranges), self._runs((s for s in each if s[1].level), ranges))
            for each in self._stored
        ]

    def _runs(self, stored: Iterable[Stored], ranges: Sequence[KeyRange]) -> list[BlockRun]:
        """Those of the runs that can hold keys of the ranges. What else their segments hold is not of this state."""
        return [
            self._indexes.run(reference, self.table.name, run.block_class)
            for reference, run in stored
            if any(keys.overlaps(run.first_key, run.last_key) for keys in ranges)
        ]
