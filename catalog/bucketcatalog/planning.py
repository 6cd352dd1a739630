"""Planning a read: key ranges, and for each the blocks and the part of the tail that can hold its rows.

Planning reads indexes, never rows, so its work grows with the number of blocks. Slices do not overlap and are in key order; each is read
on its own, by one process or on many executors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from .arrays import one_chunk
from .codec.blocks import BlockClass
from .codec.segments import BlockPlace
from .facts import Facts
from .keys import EVERYTHING, KeyRange, encode_keys
from .tables import Table

SLICE_ROWS = 65_536


@dataclass(frozen=True)
class SortedTail:
    """The tail of one table sorted by key, with its keys beside it."""

    facts: Facts
    keys: pa.Array

    @classmethod
    def of(cls, facts: Facts, table: Table) -> SortedTail:
        """``facts`` in order of their keys."""
        keys = one_chunk(encode_keys(table, facts.rows)) if len(facts) else pa.array([], pa.binary())
        order = pc.sort_indices(keys)
        return cls(facts.take(order), keys.take(order))

    def __len__(self) -> int:
        return len(self.keys)

    def within(self, keys: KeyRange) -> SortedTail:
        """The part whose keys lie in the range, without copying."""
        start = lower_bound(self.keys, keys.start)
        stop = len(self) if keys.stop is None else lower_bound(self.keys, keys.stop)
        return replace(self, facts=self.facts.slice(start, stop), keys=self.keys.slice(start, stop - start))


def lower_bound(keys: pa.Array, key: bytes) -> int:
    """The number of sorted ``keys`` that sort before ``key``; takes a logarithmic number of looks."""
    low, high = 0, len(keys)
    while low < high:
        middle = (low + high) // 2
        if keys[middle].as_py() < key:
            low = middle + 1
        else:
            high = middle
    return low


@dataclass(frozen=True, slots=True)
class EventBlock:
    """A block of events of an uncovered transaction, and what their stamps begin with."""

    place: BlockPlace
    stamp: tuple[int, str, int, bytes]


@dataclass(frozen=True)
class Slice:
    """A range of keys and what can hold their rows.

    ``live`` are blocks of live versions, ``rest`` those of ended ones and stubs; ``events`` and ``tail`` are what no checkpoint covers.
    ``combined`` is set where the blocks come from several checkpoints: then a row of one may be changed by what another holds, and all
    have to be folded together.
    """

    keys: KeyRange
    live: tuple[BlockPlace, ...]
    rest: tuple[BlockPlace, ...]
    events: tuple[EventBlock, ...]
    tail: SortedTail | None
    combined: bool

    @property
    def rows(self) -> int:
        """An upper bound of the rows in the blocks and the tail."""
        places = (*self.live, *self.rest, *(block.place for block in self.events))
        return sum(place.header.rows for place in places) + (len(self.tail) if self.tail else 0)

    @property
    def settled(self) -> bool:
        """Whether the blocks hold the state as it is: nothing came after their checkpoint, and there is only one."""
        return self.tail is None and not self.events and not self.combined


BaseBlocks = Sequence[Sequence[BlockPlace]]
"""For each checkpoint that is read from, its blocks of one table."""


def plan_slices(
    base: BaseBlocks,
    events: Sequence[EventBlock],
    tail: SortedTail | None,
    ranges: Iterable[KeyRange] = (EVERYTHING,),
    *,
    only_live: bool,
    target: int = SLICE_ROWS,
) -> list[Slice]:
    """Slices of about ``target`` rows that cover the ranges, in key order. ``only_live``: weigh live blocks only."""
    slices = []
    for keys in sorted(ranges, key=lambda r: r.start):
        parts = [[p for p in blocks if keys.overlaps(p.header.first_key, p.header.last_key)] for blocks in base]
        within = tail.within(keys) if tail is not None else None
        new = [e for e in events if keys.overlaps(e.place.header.first_key, e.place.header.last_key)]
        weigh = [p for blocks in parts for p in blocks if not only_live or p.header.block_class is BlockClass.LIVE]
        for piece in _split(keys, [*weigh, *(e.place for e in new)], within, target):
            slices.append(_slice(piece, parts, new, within))
    return [s for s in slices if s.live or s.rest or s.events or s.tail is not None]


def _split(keys: KeyRange, places: Sequence[BlockPlace], tail: SortedTail | None, target: int) -> list[KeyRange]:
    cuts = set(_every(target, ((p.header.first_key, p.header.rows) for p in sorted(places, key=lambda p: p.header.first_key))))
    if tail is not None:
        cuts |= {tail.keys[at].as_py() for at in range(target, len(tail), target)}
    starts = [keys.start, *sorted(cut for cut in cuts if cut > keys.start)]
    return [KeyRange(start, stop) for start, stop in zip(starts, [*starts[1:], keys.stop], strict=True)]


def _every(target: int, weights: Iterable[tuple[bytes, int]]) -> Iterable[bytes]:
    total = 0
    for key, weight in weights:
        if total >= target:
            yield key
            total = 0
        total += weight


def _slice(keys: KeyRange, base: BaseBlocks, events: Sequence[EventBlock], tail: SortedTail | None) -> Slice:
    parts = [[p for p in blocks if keys.overlaps(p.header.first_key, p.header.last_key)] for blocks in base]
    places = [p for blocks in parts for p in blocks]
    in_tail = tail.within(keys) if tail is not None else None
    return Slice(
        keys=keys,
        live=tuple(p for p in places if p.header.block_class is BlockClass.LIVE),
        rest=tuple(p for p in places if p.header.block_class is not BlockClass.LIVE),
        events=tuple(e for e in events if keys.overlaps(e.place.header.first_key, e.place.header.last_key)),
        tail=in_tail if in_tail is not None and len(in_tail) else None,
        combined=sum(1 for blocks in parts if blocks) > 1,
    )
