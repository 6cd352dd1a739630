"""Shares: slices that travel to who reads or merges them, in this process or another, with what is needed for them and nothing else.

What lies in blocks, of checkpoints or of events, travels as its places. The part of the tail that transactions carry row by row has been
read where the slices were planned; a slice of it would drag the whole tail along when it is pickled, so it travels encoded.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from ..format.blocks import decode_block, encode_blocks, read_stream, stream_of
from ..format.headers import BlockClass
from ..model.arrays import one_chunk
from ..model.facts import SortedFacts, concat
from ..model.tables import Table
from .plan import Part, Slice

_KEY = "key"
_FEWEST_ROWS = 1 << 17
"""Rows below which a further share costs more than a further core saves."""


@dataclass(frozen=True)
class PackedSlice:
    """A slice whose part of the tail is encoded, and the keys that it asks for: picklable, and small.

    ``tail_rows`` is how many rows of the tail it holds.
    """

    slice: Slice
    tail: tuple[bytes, ...]
    tail_rows: int = 0
    wanted: bytes = b""

    @classmethod
    def of(cls, slice_: Slice, table: Table, part: Part) -> PackedSlice:
        """The slice with the blocks that reading ``part`` may need."""
        wanted = b""
        if slice_.wanted is not None:  # sorted keys are alike
            slice_, wanted = replace(slice_, wanted=None), stream_of(pa.table({_KEY: slice_.wanted}))
        if slice_.settled and part is Part.LIVE:
            return cls(replace(slice_, rest=()), (), wanted=wanted)
        if slice_.settled and part is Part.TOMBSTONES:
            return cls(replace(slice_, live=()), (), wanted=wanted)
        if slice_.tail is None:
            return cls(slice_, (), wanted=wanted)
        blocks = encode_blocks(slice_.tail.facts, table, BlockClass.STUBS)
        return cls(replace(slice_, tail=None), tuple(block.data for block in blocks), len(slice_.tail), wanted)

    @property
    def rows(self) -> int:
        """An upper bound of the rows in the blocks and the tail."""
        return self.slice.rows + self.tail_rows

    def unpacked(self, table: Table) -> Slice:
        """The slice as it was."""
        slice_ = self.slice
        if self.wanted:
            slice_ = replace(slice_, wanted=one_chunk(read_stream(self.wanted, [_KEY]).column(_KEY)))
        if not self.tail:
            return slice_
        facts = concat([decode_block(data, table, "the tail of a slice") for data in self.tail])
        return replace(slice_, tail=SortedFacts.of(facts, table))


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


def share_count(rows: int, most_rows: int, fewest_rows: int | None = None) -> int:
    """How many shares to make of so many rows.

    As many as ``most_rows`` demands, and where rows are few as many as this machine has cores, each of ``fewest_rows`` at least, by
    default 131,072. More than that are so many for each core, so that none is left alone at the end. How many cores there are where they
    are read is not known where they are planned.
    """
    cores, fewest = os.cpu_count() or 1, _FEWEST_ROWS if fewest_rows is None else fewest_rows
    demanded = -(-rows // most_rows)
    return max(-(-demanded // cores) * cores if demanded > cores else demanded, min(cores, rows // fewest), 1)


@dataclass(frozen=True)
class Share:
    """Slices of one table, next to each other in key order, and what of their state is wanted: picklable."""

    table: Table
    part: Part
    slices: tuple[PackedSlice, ...]

    @property
    def rows(self) -> int:
        """An upper bound of the rows that are read."""
        return sum(slice_.rows for slice_ in self.slices)

    def unpacked(self) -> Iterator[Slice]:
        """The slices, one by one."""
        return (slice_.unpacked(self.table) for slice_ in self.slices)


def shares(table: Table, part: Part, slices: Sequence[Slice], most_rows: int) -> list[Share]:
    """Shares of about equal weight, known from the indexes alone; slices that hold nothing are in none."""
    packed = [one for slice_ in slices if (one := PackedSlice.of(slice_, table, part)).rows]
    weights = [one.rows for one in packed]
    # A block that spans several slices is read once by who reads them all, and kept: it makes no share larger than its rows.
    places = {place: place.header.rows for one in packed for place in one.slice.places}
    rows = sum(places.values()) + sum(one.tail_rows for one in packed)
    groups = grouped(weights, share_count(rows, most_rows))
    return [Share(table, part, tuple(packed[at] for at in group)) for group in groups]
