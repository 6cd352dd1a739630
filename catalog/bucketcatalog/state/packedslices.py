"""Slices that travel: what reads or merges a range of keys elsewhere gets that range's rows of the tail encoded, and no others.

What lies in blocks, of checkpoints or of events, travels as its places. The part of the tail that transactions carry row by row has been
read where the slices were planned; a slice of it would drag the whole tail along when it is pickled.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ..format.blocks import BlockClass, decode_block, encode_blocks
from ..model.facts import concat
from ..model.sortedfacts import SortedFacts
from ..model.tables import Table
from .overlay import Part
from .plan import Slice


@dataclass(frozen=True)
class PackedSlice:
    """A slice whose part of the tail is encoded: picklable, and small. ``tail_rows`` is how many rows of the tail it holds."""

    piece: Slice
    tail: tuple[bytes, ...]
    tail_rows: int = 0

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
        return cls(replace(piece, tail=None), tuple(block.data for block in blocks), len(piece.tail))

    @property
    def rows(self) -> int:
        """An upper bound of the rows in the blocks and the tail."""
        return self.piece.rows + self.tail_rows

    def unpacked(self, table: Table) -> Slice:
        """The slice as it was."""
        if not self.tail:
            return self.piece
        facts = concat([decode_block(data, table, "the tail of a slice") for data in self.tail])
        return replace(self.piece, tail=SortedFacts.of(facts, table))


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
