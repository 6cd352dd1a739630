"""Runs: the blocks of one table and class in a segment, in key order, found by bisection.

Planning asks runs for what lies in a range, so that it costs the blocks that it finds and not those that there are.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from ..cache import LruCache
from ..errors import UNREADABLE, CorruptionError
from ..format.blocks import BlockClass
from ..format.held import shown_segment
from ..format.losses import STRICT, OnDamage
from ..format.segment_refs import SegmentReference
from ..format.segments import BlockPlace
from ..log.pruned import telling_of_prunes
from ..log.segments import Filters, read_index, read_index_and_filters
from ..model.bloom import Hashes, hash_keys
from ..model.keys import KeyRange, lower_bound
from ..model.paths import segment as segment_path
from ..store.base import Store

_KEPT_FILTER_BYTES = 128 << 20


class IndexCache:
    """The indexes of segments, each read once, and their filters, of which as many are kept as a bound allows.

    Where ``on_damage`` notes an index that cannot be read, it has no blocks.
    """

    def __init__(self, store: Store, database: str, on_damage: OnDamage = STRICT) -> None:
        self.on_damage = on_damage
        self._store = store
        self._database = database
        self._runs: dict[bytes, dict[tuple[str, BlockClass], BlockRun]] = {}
        self._filters: LruCache[bytes, Filters] = LruCache(_KEPT_FILTER_BYTES, _size)

    def run(self, reference: SegmentReference, table: str, block_class: BlockClass) -> BlockRun:
        """The blocks of a table and class in a segment."""
        try:
            return self._strict(reference, table, block_class)
        except UNREADABLE as error:
            self.on_damage.lose_segment(segment_path(reference.writer, self._database, reference.uuid), error, reference)
            return BlockRun(block_class, ())

    def _strict(self, reference: SegmentReference, table: str, block_class: BlockClass) -> BlockRun:
        if reference.uuid not in self._runs:
            with telling_of_prunes(self._store):
                self._runs[reference.uuid] = runs_by_table(read_index(self._store, self._database, reference))
        try:
            return self._runs[reference.uuid][table, block_class]
        except KeyError:
            raise CorruptionError(
                f"The index of a segment has no {block_class.name.lower()} rows of {table}. It should hold {shown_segment(reference)}.",
            ) from None

    def holding(self, reference: SegmentReference, table: str, block_class: BlockClass, wanted: WantedKeys) -> BlockRun:
        """The blocks of a table and class in a segment that can hold one of the keys; an absent key passes once in two hundred."""
        filters = self._filters.get(reference.uuid)
        if filters is None:
            try:
                with telling_of_prunes(self._store):
                    places, filters = read_index_and_filters(self._store, self._database, reference)
            except UNREADABLE:
                if not self.on_damage.reads_on:
                    raise
                return self.run(reference, table, block_class).holding(wanted.keys)
            self._runs[reference.uuid] = runs_by_table(places)
            self._filters.put(reference.uuid, filters)
        found = filters.get((table, block_class))
        keys = wanted.keys if found is None else wanted.keys.filter(pa.array(found.may_hold(wanted.hashes)))
        return self.run(reference, table, block_class).holding(keys)


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
            each = (self.within(KeyRange.closed(key, key)) for key in keys.to_pylist())
            return BlockRun(self.block_class, tuple(dict.fromkeys(place for found in each for place in found)))
        found = self.within(KeyRange.closed(keys[0].as_py(), keys[-1].as_py()))
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
            )
        run.append(place)
    return {(table, block_class): BlockRun(block_class, tuple(run)) for (table, block_class), run in grouped.items()}


def _size(filters: Filters) -> int:
    return sum(each.words.nbytes for each in filters.values())


@dataclass(frozen=True)
class WantedKeys:
    """Encoded keys that are asked for, sorted and distinct."""

    keys: pa.Array

    @cached_property
    def hashes(self) -> Hashes:
        """What filters know the keys by."""
        return hash_keys(self.keys)
