"""Planning a read: key ranges, and for each the blocks and the part of the tail that can hold its rows.

Planning reads indexes, never rows, so its work grows with the number of blocks. Slices do not overlap and are in key order; each is read
on its own, by one process or on many executors.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from .codec.blocks import BlockClass
from .codec.segments import BlockPlace
from .keys import EVERYTHING, KeyRange, lower_bound, span
from .runs import BlockRun
from .sortedfacts import SortedFacts

SLICE_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class EventBlock:
    """A block of events of an uncovered transaction, and what their stamps begin with."""

    place: BlockPlace
    stamp: tuple[int, str, int, bytes]


@dataclass(frozen=True)
class Slice:
    """A range of keys and what can hold their rows.

    ``live`` are blocks of live versions, ``rest`` those of ended ones and stubs, all of one folded state: the base. ``over`` are blocks of
    any class that have to be folded with it: of higher levels, or of other checkpoints. ``events`` and ``tail`` are what no checkpoint
    covers. ``wanted`` are, in order, the only keys that are asked for, where not the whole range is.
    """

    keys: KeyRange
    live: tuple[BlockPlace, ...]
    rest: tuple[BlockPlace, ...]
    over: tuple[BlockPlace, ...]
    events: tuple[EventBlock, ...]
    tail: SortedFacts | None
    wanted: pa.Array | None = None

    @property
    def rows(self) -> int:
        """An upper bound of the rows in the blocks and the tail."""
        places = (*self.live, *self.rest, *self.over, *(block.place for block in self.events))
        return sum(place.header.rows for place in places) + (len(self.tail) if self.tail else 0)

    @property
    def settled(self) -> bool:
        """Whether the base holds the state as it is."""
        return self.tail is None and not self.events and not self.over


def narrowed(piece: Slice, keys: KeyRange) -> Slice | None:
    """The part of a slice within a range, or None where the two have nothing in common."""
    within = piece.keys.intersect(keys)
    if within is None:
        return None
    tail = piece.tail.within(within) if piece.tail is not None else None
    return replace(
        piece,
        keys=within,
        live=_within(piece.live, within),
        rest=_within(piece.rest, within),
        over=_within(piece.over, within),
        events=tuple(e for e in piece.events if within.overlaps(e.place.header.first_key, e.place.header.last_key)),
        tail=tail if tail is not None and len(tail) else None,
        wanted=None if piece.wanted is None else piece.wanted[slice(*span(piece.wanted, within))],
    )


def _within(places: Iterable[BlockPlace], keys: KeyRange) -> tuple[BlockPlace, ...]:
    return tuple(place for place in places if keys.overlaps(place.header.first_key, place.header.last_key))


@dataclass(frozen=True, slots=True)
class Levels:
    """The runs of one table in a checkpoint: those of its lowest level, one folded state, and those ``over`` it."""

    lowest: Sequence[BlockRun] = ()
    over: Sequence[BlockRun] = ()


def plan_slices(
    levels: Sequence[Levels],
    events: Sequence[EventBlock],
    tail: SortedFacts | None,
    ranges: Iterable[KeyRange] = (EVERYTHING,),
    *,
    only_live: bool,
    target: int = SLICE_ROWS,
) -> list[Slice]:
    """Slices of about ``target`` rows that cover the disjoint ranges, in key order, from the ``levels`` of each checkpoint.

    ``only_live``: of the base weigh live blocks only.
    """
    ranges = sorted(ranges, key=lambda r: r.start)
    pieces = []
    for keys, new in zip(ranges, _spread(events, ranges), strict=True):
        runs = [run for each in levels for run in each.lowest if not only_live or run.block_class is BlockClass.LIVE]
        runs += [run for each in levels for run in each.over]
        weighed = [place for run in runs for place in run.within(keys)] + [event.place for event in new]
        pieces += _split(keys, weighed, tail.within(keys) if tail is not None else None, target)
    slices = [_slice(keys, levels, new, tail) for keys, new in zip(pieces, _spread(events, pieces), strict=True)]
    return [s for s in slices if s.live or s.rest or s.over or s.events or s.tail is not None]


def for_keys(slices: Iterable[Slice], keys: pa.Array) -> Iterator[Slice]:
    """The slices, of which each asks for these sorted keys alone, and without the blocks that hold none of them."""
    for piece in slices:
        wanted = keys[slice(*span(keys, piece.keys))]
        if len(wanted):
            yield replace(
                piece,
                live=tuple(place for place in piece.live if _holds(place, wanted)),
                rest=tuple(place for place in piece.rest if _holds(place, wanted)),
                over=tuple(place for place in piece.over if _holds(place, wanted)),
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


def _split(keys: KeyRange, places: Sequence[BlockPlace], tail: SortedFacts | None, target: int) -> list[KeyRange]:
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


def _slice(keys: KeyRange, levels: Sequence[Levels], events: Sequence[EventBlock], tail: SortedFacts | None) -> Slice:
    """The slice of a range: its base is the lowest level that holds most of it, all other blocks lie over that."""
    lowest = [[(run.block_class, run.within(keys)) for run in each.lowest] for each in levels]
    base = max(lowest, key=lambda found: sum(place.header.rows for _, places in found for place in places), default=[])
    others = [places for found in lowest if found is not base for _, places in found]
    others += [run.within(keys) for each in levels for run in each.over]
    in_tail = tail.within(keys) if tail is not None else None
    return Slice(
        keys=keys,
        live=tuple(
            sorted((p for kind, places in base if kind is BlockClass.LIVE for p in places), key=lambda p: p.header.first_key)
        ),
        rest=tuple(place for kind, places in base if kind is not BlockClass.LIVE for place in places),
        over=tuple(place for places in others for place in places),
        events=tuple(events),
        tail=in_tail if in_tail is not None and len(in_tail) else None,
    )
