"""Runs: the blocks of one table and class in a segment, in key order, found by bisection.

Planning asks runs for what lies in a range, so that it costs the blocks that it finds and not those that there are.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from ..errors import CorruptionError
from ..format.blocks import BlockClass
from ..format.segments import BlockPlace
from ..model.keys import KeyRange, lower_bound

_FEW_KEYS = 64


def holds_one(place: BlockPlace, keys: pa.Array) -> bool:
    """Whether the block can hold one of the sorted ``keys``."""
    at = lower_bound(keys, place.header.first_key)
    return at < len(keys) and keys[at].as_py() <= place.header.last_key


@dataclass(frozen=True)
class BlockRun:
    """Blocks of one class in key order: each begins where, or after, the one before it ends."""

    block_class: BlockClass
    places: tuple[BlockPlace, ...]

    def within(self, keys: KeyRange) -> Sequence[BlockPlace]:
        """The blocks that can hold keys of the range."""
        start = bisect_left(self._last_keys, keys.start)
        stop = len(self.places) if keys.stop is None else bisect_left(self._first_keys, keys.stop)
        return self.places[start:stop]

    def holding(self, keys: pa.Array) -> BlockRun:
        """The run without the blocks that can hold none of the sorted ``keys``."""
        if len(keys) <= _FEW_KEYS:
            each = (self.within(KeyRange(key, key + b"\x00")) for key in keys.to_pylist())
            return BlockRun(self.block_class, tuple(dict.fromkeys(place for found in each for place in found)))
        found = self.within(KeyRange(keys[0].as_py(), keys[-1].as_py() + b"\x00"))
        return BlockRun(self.block_class, tuple(place for place in found if holds_one(place, keys)))

    @cached_property
    def _first_keys(self) -> list[bytes]:
        return [place.header.first_key for place in self.places]

    @cached_property
    def _last_keys(self) -> list[bytes]:
        return [place.header.last_key for place in self.places]


@dataclass(frozen=True)
class StoredRun:
    """A run whose blocks are looked up once somebody asks for them, as ``BlockRun`` gives them."""

    block_class: BlockClass
    look_up: Callable[[], BlockRun]

    @property
    def places(self) -> Sequence[BlockPlace]:
        """The blocks in key order."""
        return self._found.places

    def within(self, keys: KeyRange) -> Sequence[BlockPlace]:
        """The blocks that can hold keys of the range."""
        return self._found.within(keys)

    @cached_property
    def _found(self) -> BlockRun:
        return self.look_up()


def runs_by_table(places: Iterable[BlockPlace]) -> dict[tuple[str, BlockClass], BlockRun]:
    """The runs of a segment whose index lists these blocks, by table and class; ``CorruptionError`` where they are not in order."""
    grouped: dict[tuple[str, BlockClass], list[BlockPlace]] = {}
    for place in places:
        run = grouped.setdefault((place.header.table, place.header.block_class), [])
        if place.header.last_key < place.header.first_key or (run and place.header.first_key < run[-1].header.last_key):
            raise CorruptionError(
                f"{place.name} lists blocks of table {place.header.table!r} that are not in the order of their keys.",
                next_step="Restore the file from a copy of the store.",
            )
        run.append(place)
    return {(table, block_class): BlockRun(block_class, tuple(run)) for (table, block_class), run in grouped.items()}
