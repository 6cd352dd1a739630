"""What the state of one table at a cut is made from: the blocks of checkpoints, and the tail."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

from .codec.checkpoints import Checkpoint
from .codec.segments import BlockPlace, SegmentReference, places_in, read_index
from .facts import Facts
from .keys import EVERYTHING, KeyRange
from .planning import SLICE_ROWS, EventBlock, Slice, SortedTail, plan_slices
from .store.base import Store
from .tables import Table


class IndexCache:
    """The indexes of segments, each read once."""

    def __init__(self, store: Store, database: str) -> None:
        self._store = store
        self._database = database
        self._read: dict[bytes, tuple[BlockPlace, ...]] = {}

    def places(self, reference: SegmentReference) -> tuple[BlockPlace, ...]:
        """The blocks of a segment."""
        if reference.uuid not in self._read:
            self._read[reference.uuid] = read_index(self._store, self._database, reference)
        return self._read[reference.uuid]


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
        return plan_slices(self.blocks(ranges), self.events, self.tail, ranges, only_live=only_live, target=target)

    def blocks(self, ranges: Iterable[KeyRange] = (EVERYTHING,)) -> list[list[BlockPlace]]:
        """For each checkpoint its blocks of the table that can hold keys of the ranges; reads the indexes of such segments only."""
        ranges = list(ranges)
        found = []
        for checkpoint in self._checkpoints:
            places: dict[BlockPlace, None] = {}
            for segment in checkpoint.segments:
                if self._concerns(segment, ranges):
                    for keys in ranges:
                        places |= dict.fromkeys(places_in(self._indexes.places(segment), self.table.name, keys))
            found.append(list(places))
        return found

    def _concerns(self, segment: SegmentReference, ranges: Sequence[KeyRange]) -> bool:
        runs = [run for run in segment.runs if run.table == self.table.name]
        return any(keys.overlaps(run.first_key, run.last_key) for run in runs for keys in ranges)
