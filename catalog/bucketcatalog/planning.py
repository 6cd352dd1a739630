"""Planning a read: key ranges, and for each the blocks and the part of the tail that can hold its rows.

Planning reads indexes, never rows, so its work grows with the number of blocks. Slices do not overlap and are in key order; each is read
on its own, by one process or on many executors.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from .arrays import one_chunk
from .codec.blocks import BlockClass
from .codec.segments import BlockPlace
from .facts import Facts
from .keys import EVERYTHING, KeyRange, encode_keys, lower_bound, span
from .runs import BlockRun
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
        start, stop = span(self.keys, keys)
        return replace(self, facts=self.facts.slice(start, stop), keys=self.keys[start:stop])

    def of_keys(self, keys: pa.Array) -> SortedTail:
        """The part about these keys."""
        mask = pc.is_in(self.keys, value_set=keys)
        return replace(self, facts=self.facts.filter(mask), keys=self.keys.filter(mask))


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
    have to be folded together. ``wanted`` are, in order, the only keys that are asked for, where not the whole range is.
    """

    keys: KeyRange
    live: tuple[BlockPlace, ...]
    rest: tuple[BlockPlace, ...]
    events: tuple[EventBlock, ...]
    tail: SortedTail | None
    combined: bool
    wanted: pa.Array | None = None

    @property
    def rows(self) -> int:
        """An upper bound of the rows in the blocks and the tail."""
        places = (*self.live, *self.rest, *(block.place for block in self.events))
        return sum(place.header.rows for place in places) + (len(self.tail) if self.tail else 0)

    @property
    def settled(self) -> bool:
        """Whether the blocks hold the state as it is: nothing came after their checkpoint, and there is only one."""
        return self.tail is None and not self.events and not self.combined


Base = Sequence[Sequence[BlockRun]]
"""For each checkpoint that is read from, its runs of one table."""


def plan_slices(
    base: Base,
    events: Sequence[EventBlock],
    tail: SortedTail | None,
    ranges: Iterable[KeyRange] = (EVERYTHING,),
    *,
    only_live: bool,
    target: int = SLICE_ROWS,
) -> list[Slice]:
    """Slices of about ``target`` rows that cover the disjoint ranges, in key order. ``only_live``: weigh live blocks only."""
    ranges = sorted(ranges, key=lambda r: r.start)
    pieces = []
    for keys, new in zip(ranges, _spread(events, ranges), strict=True):
        runs = [run for runs in base for run in runs if not only_live or run.block_class is BlockClass.LIVE]
        weighed = [place for run in runs for place in run.within(keys)] + [event.place for event in new]
        pieces += _split(keys, weighed, tail.within(keys) if tail is not None else None, target)
    slices = [_slice(keys, base, new, tail) for keys, new in zip(pieces, _spread(events, pieces), strict=True)]
    return [s for s in slices if s.live or s.rest or s.events or s.tail is not None]


def for_keys(slices: Iterable[Slice], keys: pa.Array) -> Iterator[Slice]:
    """The slices, of which each asks for these sorted keys alone, and without the blocks that hold none of them."""
    for piece in slices:
        wanted = keys[slice(*span(keys, piece.keys))]
        if len(wanted):
            yield replace(
                piece,
                live=tuple(place for place in piece.live if _holds(place, wanted)),
                rest=tuple(place for place in piece.rest if _holds(place, wanted)),
                events=tuple(event for event in piece.events if _holds(event.place, wanted)),
                wanted=wanted,
            )


def _holds(place: BlockPlace, keys: pa.Array) -> bool:
    at = lower_bound(keys, place.header.first_key)
    return at < len(keys) and keys[at].as_py() <= place.header.last_key


def _spread(events: Sequence[EventBlock], ranges: Sequence[KeyRange]) -> list[list[EventBlock]]:
    """For each of the ranges, disjoint and in order, the blocks of events that can hold its keys."""
    starts = [keys.start for keys in ranges]
    stops = [keys.stop for keys in ranges if keys.stop is not None]
    found: list[list[EventBlock]] = [[] for _ in ranges]
    for event in events:
        header = event.place.header
        for at in range(bisect_right(stops, header.first_key), bisect_right(starts, header.last_key)):
            found[at].append(event)
    return found


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


def _slice(keys: KeyRange, base: Base, events: Sequence[EventBlock], tail: SortedTail | None) -> Slice:
    parts = [[(run.block_class, run.within(keys)) for run in runs] for runs in base]
    found = [one for runs in parts for one in runs]
    in_tail = tail.within(keys) if tail is not None else None
    return Slice(
        keys=keys,
        live=tuple(place for kind, places in found if kind is BlockClass.LIVE for place in places),
        rest=tuple(place for kind, places in found if kind is not BlockClass.LIVE for place in places),
        events=tuple(events),
        tail=in_tail if in_tail is not None and len(in_tail) else None,
        combined=sum(1 for runs in parts if any(places for _, places in runs)) > 1,
    )
