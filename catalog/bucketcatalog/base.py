"""What the state of one table at a cut is made from: the blocks of checkpoints, and the tail."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from functools import cached_property

import pyarrow as pa

from .codec.checkpoints import Checkpoint
from .codec.segments import SegmentReference
from .facts import Facts
from .fetch import read_index
from .keys import EVERYTHING, KeyRange
from .planning import SLICE_ROWS, EventBlock, Slice, SortedTail, for_keys, plan_slices
from .runs import BlockRun, runs_by_table
from .store.base import Store
from .tables import Table

_FEW_KEYS = 64
_KEYS_OF_A_SLICE = 8_192
"""Few keys are looked for one by one, more of them together: a block that holds several is read once."""


class IndexCache:
    """The indexes of segments, each read once."""

    def __init__(self, store: Store, database: str) -> None:
        self._store = store
        self._database = database
        self._read: dict[bytes, dict[str, list[BlockRun]]] = {}

    def runs(self, reference: SegmentReference, table: str) -> list[BlockRun]:
        """The runs of a table in a segment."""
        if reference.uuid not in self._read:
            self._read[reference.uuid] = runs_by_table(read_index(self._store, self._database, reference))
        return self._read[reference.uuid].get(table, [])


class TableBase:
    """The blocks and the tail of one table."""

    def __init__(
        self,
        store: Store,
        table: Table,
        checkpoints: Sequence[Checkpoint],
        indexes: IndexCache,
        tail: Facts | None,
        events: Sequence[EventBlock],
    ) -> None:
        self.store = store
        self.table = table
        self._checkpoints = checkpoints
        self._indexes = indexes
        self._tail = tail
        self.events = events

    @cached_property
    def tail(self) -> SortedTail | None:
        """The uncovered events that transactions carry one by one, by key."""
        return SortedTail.of(self._tail, self.table) if self._tail is not None and len(self._tail) else None

    def plan(
        self, ranges: Iterable[KeyRange] = (EVERYTHING,), *, only_live: bool = False, target: int = SLICE_ROWS
    ) -> list[Slice]:
        """The slices that cover the ranges, in key order; see ``plan_slices``."""
        ranges = list(ranges)
        return plan_slices(self.runs(ranges), self.events, self.tail, ranges, only_live=only_live, target=target)

    def plan_keys(self, keys: pa.Array, *, only_live: bool = False) -> list[Slice]:
        """The slices that can hold these keys, which are sorted, distinct and at least one."""
        step = 1 if len(keys) <= _FEW_KEYS else _KEYS_OF_A_SLICE
        parts = [keys[at : at + step] for at in range(0, len(keys), step)]
        ranges = [KeyRange(part[0].as_py(), part[-1].as_py() + b"\x00") for part in parts]
        return list(for_keys(self.plan(ranges, only_live=only_live, target=sys.maxsize), keys))

    def runs(self, ranges: Iterable[KeyRange] = (EVERYTHING,)) -> list[list[BlockRun]]:
        """For each checkpoint its runs of the table that can hold keys of the ranges; reads the indexes of such segments only."""
        ranges = list(ranges)
        return [
            [run for segment in checkpoint.segments if self._concerns(segment, ranges) for run in self._runs_of(segment)]
            for checkpoint in self._checkpoints
        ]

    def _runs_of(self, segment: SegmentReference) -> list[BlockRun]:
        return self._indexes.runs(segment, self.table.name)

    def _concerns(self, segment: SegmentReference, ranges: Sequence[KeyRange]) -> bool:
        runs = [run for run in segment.runs if run.table == self.table.name]
        return any(keys.overlaps(run.first_key, run.last_key) for run in runs for keys in ranges)
