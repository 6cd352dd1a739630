"""Planning a read: key ranges, and for each the blocks and the part of the tail that can hold its rows.

Planning reads indexes, never rows, so its work grows with the number of blocks. Slices do not overlap and are in key order; each is read
on its own, by one process or on many executors.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import accumulate

import pyarrow as pa
import pyarrow.compute as pc

from ..format.headers import BlockClass, BlockPlace
from ..model.facts import NEVER, SortedFacts
from ..model.keys import EVERYTHING, KeyRange, span
from .indexes import StoredRun, holds_one


class Part(Enum):
    """Which rows of the state a reader wants."""

    LIVE = "live"
    TOMBSTONES = "tombstones"
    EVERYTHING = "everything"


SLICE_ROWS = 65_536
_FEW_COLUMNS, _TIMES = 8, 2
"""Of few columns more rows are read at once: what a slice costs whatever it holds weighs more then, and they take no more memory."""
_BYTES_A_ROW = 64
"""Bytes of an ordinary row, compressed; wider ones weigh more."""
_FINE = 4
"""Files whose blocks are at least this share of those of the file that has the most tell where to cut."""


@dataclass(frozen=True, slots=True)
class EventBlock:
    """A block of events of an uncovered transaction, what their stamps begin with, and what is added to their sequence numbers."""

    place: BlockPlace
    stamp: tuple[int, str, int, bytes]
    first_sequence: int = 0


@dataclass(frozen=True)
class Slice:
    """A range of keys and what can hold their rows.

    ``live`` are blocks of live versions, ``rest`` those of ended ones and stubs, all of one folded state: the base. ``upper`` are blocks of
    any class that have to be folded with it: of higher levels, or of other checkpoints. ``events`` and ``tail`` are what no checkpoint
    covers. ``wanted`` are, in order, the only keys that are asked for, where not the whole range is. ``look_up``: it takes a few rows of a
    block, as look-ups and pages do; the next one may want others. ``unmatched`` are blocks of the base of which no row is asked for:
    they are read for keys that have to be folded, and for nothing else.
    """

    keys: KeyRange
    live: tuple[BlockPlace, ...]
    rest: tuple[BlockPlace, ...]
    upper: tuple[BlockPlace, ...]
    events: tuple[EventBlock, ...]
    tail: SortedFacts | None
    wanted: pa.Array | None = None
    look_up: bool = False
    unmatched: frozenset[BlockPlace] = frozenset()

    @property
    def is_of_one_key(self) -> bool:
        """Whether a single key is asked for, and all of its range is that."""
        return self.wanted is not None and len(self.wanted) == 1 and self.keys == KeyRange.closed(*[self.wanted[0].as_py()] * 2)

    @property
    def rows(self) -> int:
        """An upper bound of the rows in the blocks and the tail."""
        return sum(place.header.rows for place in self.places) + (len(self.tail) if self.tail else 0)

    @property
    def places(self) -> tuple[BlockPlace, ...]:
        """All of the blocks."""
        return (*self.live, *self.rest, *self.upper, *(block.place for block in self.events))

    @property
    def settled(self) -> bool:
        """Whether the base holds the state as it is."""
        return self.tail is None and not self.events and not self.upper


def rows_of_slices(columns: Collection[str] | None) -> int:
    """How many rows slices should have of which these columns are read, by their storage names; without them all are."""
    return SLICE_ROWS if columns is None or len(columns) > _FEW_COLUMNS else _TIMES * SLICE_ROWS


def narrowed(slice_: Slice, keys: KeyRange) -> Slice | None:
    """The part of a slice within a range, or None where the two have nothing in common."""
    within = slice_.keys.intersect(keys)
    if within is None:
        return None
    tail = slice_.tail.within(within) if slice_.tail is not None else None
    return replace(
        slice_,
        keys=within,
        live=_within(slice_.live, within),
        rest=_within(slice_.rest, within),
        upper=_within(slice_.upper, within),
        events=tuple(e for e in slice_.events if within.overlaps(e.place.header.first_key, e.place.header.last_key)),
        tail=tail if tail is not None and len(tail) else None,
        wanted=None if slice_.wanted is None else slice_.wanted[slice(*span(slice_.wanted, within))],
    )


def _within(places: Iterable[BlockPlace], keys: KeyRange) -> tuple[BlockPlace, ...]:
    return tuple(place for place in places if keys.overlaps(place.header.first_key, place.header.last_key))


@dataclass(frozen=True, slots=True)
class Levels:
    """The runs of one table in a checkpoint: those of its lowest level, one folded state, and those of the ``upper`` ones."""

    lowest: Sequence[StoredRun] = ()
    upper: Sequence[StoredRun] = ()


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
    splits = []
    for keys, new in zip(ranges, _spread(events, ranges), strict=True):
        runs = [run for each in levels for run in each.lowest if not only_live or run.block_class is BlockClass.LIVE]
        runs += [run for each in levels for run in each.upper if _matters(run.block_class, only_live)]
        weighed = [place for run in runs for place in run.within(keys)] + [event.place for event in new]
        splits += _split(keys, weighed, tail.within(keys) if tail is not None else None, target)
    parts = [
        (keys, new, tail.within(keys) if tail is not None else None)
        for keys, new in zip(splits, _spread(events, splits), strict=True)
    ]
    since = _oldest_above(levels, events, tail) if only_live else -1
    slices = [_slice(keys, levels, new, part, only_live=only_live, since=since) for keys, new, part in parts]
    return [s for s in slices if s.live or s.rest or s.upper or s.events or s.tail is not None]


def for_keys(slices: Iterable[Slice], keys: pa.Array, *, look_up: bool = False) -> Iterator[Slice]:
    """The slices, of which each asks for these sorted keys alone, and without the blocks that hold none of them.

    ``look_up``: the keys are looked for one by one.
    """
    for slice_ in slices:
        wanted = keys[slice(*span(keys, slice_.keys))]
        if len(wanted):
            yield replace(
                slice_,
                live=tuple(place for place in slice_.live if holds_one(place, wanted)),
                rest=tuple(place for place in slice_.rest if holds_one(place, wanted)),
                upper=tuple(place for place in slice_.upper if holds_one(place, wanted)),
                events=tuple(event for event in slice_.events if holds_one(event.place, wanted)),
                wanted=wanted,
                look_up=look_up,
            )


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
    cuts = set(_evenly(keys, places, target))
    if tail is not None:
        cuts |= {tail.keys[at].as_py() for at in range(target, len(tail), target)}
    starts = [keys.start, *sorted(cut for cut in cuts if cut > keys.start)]
    return [KeyRange(start, stop) for start, stop in zip(starts, [*starts[1:], keys.stop], strict=True)]


def _evenly(keys: KeyRange, places: Sequence[BlockPlace], target: int) -> Iterator[bytes]:
    """Where to cut so that about ``target`` rows lie between: first keys of blocks, each block's rows taken for spread over its keys.

    So a block that spans many others weighs in all of their ranges, and not in that of its first key alone. Of the files that hold many
    blocks the first keys tell how the keys are spread; those of single blocks would only tell where keys begin.
    """
    if sum(map(_weight, places)) <= target:
        return
    blocks = Counter(place.name for place in places)
    most = max(blocks.values(), default=0)
    firsts = (place.header.first_key for place in places if blocks[place.name] * _FINE >= most)
    starts = sorted({keys.start, *(first for first in firsts if first > keys.start)})
    steps = [0.0] * (len(starts) + 1)
    for place in places:
        first = max(bisect_right(starts, place.header.first_key) - 1, 0)
        last = max(bisect_right(starts, place.header.last_key) - 1, 0)
        rows = _weight(place) / (last - first + 1)
        steps[first] += rows
        steps[last + 1] -= rows
    total = 0.0
    for start, rows in zip(starts, accumulate(steps), strict=False):
        if total >= target:
            yield start
            total = 0.0
        total += rows


def _weight(place: BlockPlace) -> int:
    """The rows of a block, or as many as its bytes would make of ordinary ones: what is read at once has to fit into memory."""
    return max(place.header.rows, place.length // _BYTES_A_ROW)


def _oldest_above(levels: Sequence[Levels], events: Sequence[EventBlock], tail: SortedFacts | None) -> int:
    """No stamp of what lies over the base has an earlier commit time. The largest number there is where nothing does."""
    if len(levels) > 1:
        return -1  # the lowest level of one lies over that of another
    times = [run.run.oldest for each in levels for run in each.upper] + [event.stamp[0] for event in events]
    if tail is not None and len(tail):
        times.append(pc.min(tail.facts.transactions.column("commit_time")).as_py())
    return min(times, default=NEVER)


def _slice(
    keys: KeyRange,
    levels: Sequence[Levels],
    events: Sequence[EventBlock],
    tail: SortedFacts | None,
    *,
    only_live: bool,
    since: int,
) -> Slice:
    """The slice of a range: its base is the lowest level that holds most of it, all other blocks are its overlay.

    Without an overlay what is live is in live blocks alone: then no others are looked up. Nor are runs that are older than ``since``, and
    so than all of the overlay: what waits there concerns an older PUT alone.
    """
    upper = [place for each in levels for run in each.upper if _matters(run.block_class, only_live) for place in run.within(keys)]
    is_tail = tail is not None and len(tail) > 0
    alone = only_live and len(levels) == 1 and not (upper or events or is_tail)
    lowest = [
        [run for run in each.lowest if run.block_class is BlockClass.LIVE or (run.run.newest >= since and not alone)]
        for each in levels
    ]
    found = [[(run.block_class, run.within(keys)) for run in runs] for runs in lowest]
    base = max(found, key=lambda runs: sum(place.header.rows for _, places in runs for place in places), default=[])
    others = [run for run in found if run is not base]
    upper += [place for runs in others for kind, places in runs if _matters(kind, only_live) for place in places]
    live = [place for kind, places in base if kind is BlockClass.LIVE for place in places]
    return Slice(
        keys=keys,
        live=_in_order(live),
        rest=_in_order(place for kind, places in base if kind is not BlockClass.LIVE for place in places),
        upper=tuple(upper),
        events=tuple(events),
        tail=tail if is_tail else None,
    )


def _matters(kind: BlockClass, only_live: bool) -> bool:
    """Whether a run of the overlay can say anything: a live version has ended all that it supersedes, and what these had ended."""
    return not (only_live and kind is BlockClass.SUPERSEDED)


def _in_order(places: Iterable[BlockPlace]) -> tuple[BlockPlace, ...]:
    """Blocks of a folded state by their keys: a class of it may lie in several segments, listed in any order."""
    return tuple(sorted(places, key=lambda place: (place.header.first_key, place.header.last_key)))
