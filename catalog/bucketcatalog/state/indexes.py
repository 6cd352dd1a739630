"""Runs: the blocks of one table and class in key order, found by bisection, wherever they lie.

Planning asks runs for what lies in a range, so that it costs the blocks that it finds and not those that there are.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from ..cache import LruCache
from ..errors import UNREADABLE, CorruptionError
from ..format.headers import BlockClass, BlockPlace
from ..format.losses import STRICT, OnDamage
from ..format.runs import InlineRun, Run, StoredPart
from ..log.pruned import telling_of_prunes
from ..log.segments import Filters, read_index, read_index_and_filters
from ..model.bloom import Hashes, hash_keys
from ..model.keys import KeyRange, lower_bound
from ..model.paths import segment as segment_path
from ..store.base import Store

_KEPT_FILTER_BYTES = 128 << 20


class IndexCache:
    """The indexes of segments, each read once, and their filters, of which as many are kept as a bound allows.

    Threads that ask for one at the same time may each read it: nobody waits for another's request. Where ``on_damage`` notes an index that
    cannot be read, it has no blocks.
    """

    def __init__(self, store: Store, database: str, on_damage: OnDamage = STRICT) -> None:
        self.on_damage = on_damage
        self._store = store
        self._database = database
        self._runs: dict[tuple[str, bytes], BlockRun] = {}
        self._filters: LruCache[tuple[str, bytes], Filters] = LruCache(_KEPT_FILTER_BYTES, _size)

    def run(self, part: StoredPart) -> BlockRun:
        """The blocks of a run."""
        if isinstance(part, InlineRun):
            return block_run(part.run, part.blocks)
        try:
            if part.place not in self._runs:
                with telling_of_prunes(self._store):
                    self._runs[part.place] = block_run(part.run, read_index(self._store, self._database, part))
            return self._runs[part.place]
        except UNREADABLE as error:
            self.on_damage.lose_segment(segment_path(part.writer, self._database, part.uuid), error, part)
            return BlockRun(part.run.block_class, ())

    def holding(self, part: StoredPart, wanted: WantedKeys, is_kept: Callable[[BlockPlace], bool]) -> BlockRun:
        """The blocks of a run that can hold one of the keys; an absent key passes a segment's filter once in two hundred.

        Of few keys no filter is asked where it would save the reading of no block, since each ``is_kept`` as it was decoded.
        """
        if isinstance(part, InlineRun):
            return self.run(part).holding(wanted.keys)
        if part.place in self._runs and len(wanted.keys) <= LOOKED_UP_KEYS:
            found = self._runs[part.place].holding(wanted.keys)
            if all(map(is_kept, found.places)):
                return found
        filters = self._filters.get(part.place)
        if filters is None:
            try:
                with telling_of_prunes(self._store):
                    places, filters = read_index_and_filters(self._store, self._database, part)
                self._runs[part.place] = block_run(part.run, places)
            except UNREADABLE:
                if not self.on_damage.reads_on:
                    raise
                return self.run(part).holding(wanted.keys)
            self._filters.put(part.place, filters)
        of_run = filters.get((part.run.block_table, part.run.block_class))
        keys = wanted.keys if of_run is None else wanted.keys.filter(pa.array(of_run.may_hold(wanted.hashes)))
        return self.run(part).holding(keys)


LOOKED_UP_KEYS = 64
"""As many keys are looked for one by one."""


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
        if len(keys) <= LOOKED_UP_KEYS:
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

    run: Run
    look_up: Callable[[], BlockRun]

    @property
    def block_class(self) -> BlockClass:
        """What its rows are."""
        return self.run.block_class

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


def block_run(run: Run, places: Sequence[BlockPlace]) -> BlockRun:
    """A run of which these are the blocks; ``CorruptionError`` where they are not its own, or not in order."""
    last = b""
    for place in places:
        header = place.header
        if (header.table, header.block_class) != (run.block_table, run.block_class):
            raise CorruptionError(
                f"{place.name} lists a block of table {header.table!r} that is not of the run that it is listed for."
            )
        if header.last_key < header.first_key or header.first_key < last:
            raise CorruptionError(
                f"{place.name} lists blocks of table {header.table!r} that are not in the order of their keys.",
            )
        last = header.last_key
    return BlockRun(run.block_class, tuple(places))


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
