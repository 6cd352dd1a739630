"""Ranges of segments and transactions from the store: indexes and blocks, each with one request and checked before it is decoded."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection

from .codec.blocks import decode_block
from .codec.segments import (
    TRAILER_BYTES,
    BlockPlace,
    SegmentReference,
    check_block,
    covers_a_cut,
    decode_index,
    held_by_block,
    held_by_segment,
    index_start,
)
from .errors import CorruptionError, MissingObject, ObjectNotFound
from .facts import Facts
from .keys import EVERYTHING, KeyRange
from .log.lost import if_pruned
from .paths import segment as segment_path
from .sortedfacts import SortedFacts
from .store.base import ObjectInfo, Store
from .tables import Table

_KEPT_BYTES = 64 << 20


def read_index(store: Store, database: str, reference: SegmentReference) -> tuple[BlockPlace, ...]:
    """The places of a segment's blocks: one range read, checked against the reference's digest."""
    name = segment_path(reference.writer, database, reference.uuid)
    sealed = _range(store, name, reference.index_offset, reference.index_length, lambda: held_by_segment(reference))
    return decode_index(sealed, name, reference)


def read_block(
    store: Store, place: BlockPlace, table: Table, columns: Collection[str] | None = None, keys: KeyRange = EVERYTHING
) -> Facts:
    """The facts of one block, or those of ``keys`` and ``columns`` alone: one range read, checked against the block's place."""
    data = _range(store, place.name, place.offset, place.length, lambda: held_by_block(place))
    check_block(data, place)
    return decode_block(data, table, place.name, columns, keys)


def is_of_checkpoint(store: Store, info: ObjectInfo) -> bool:
    """Whether a segment that nothing refers to was written for a checkpoint; ``CorruptionError`` where it does not say."""
    start = index_start(store.get_range(info.name, -TRAILER_BYTES, TRAILER_BYTES), info.name)
    if not 0 <= start < info.size:
        raise CorruptionError(f"{info.name} has no index.", next_step="Restore the file from a copy of the store.")
    return covers_a_cut(store.get_range(info.name, start, info.size - start), info.name)


class Blocks:
    """The blocks of a store. Those whose rows several slices take are read once and kept for a while, up to a bound.

    Threads may share it; a pickle is of the store alone.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self._kept: OrderedDict[tuple[str, int, frozenset[str] | None], SortedFacts] = OrderedDict()
        self._kept_bytes = 0
        self._keeping = threading.Lock()

    def __reduce__(self) -> tuple[type[Blocks], tuple[Store]]:
        return Blocks, (self.store,)

    def shared(self, place: BlockPlace, table: Table, columns: Collection[str] | None, keys: KeyRange) -> SortedFacts:
        """The facts of a block, of ``keys`` and ``columns`` alone, from what is kept or read whole."""
        name = place.name, place.offset, None if columns is None else frozenset(columns)
        with self._keeping:
            found = self._kept.get(name)
            if found is not None:
                self._kept.move_to_end(name)
        if found is None:
            found = SortedFacts.of(read_block(self.store, place, table, columns), table)
            self._keep(name, found)
        return found.within(keys)

    def _keep(self, name: tuple[str, int, frozenset[str] | None], facts: SortedFacts) -> None:
        with self._keeping:
            if name not in self._kept:
                self._kept[name] = facts
                self._kept_bytes += _size(facts)
            while self._kept_bytes > _KEPT_BYTES and len(self._kept) > 1:
                self._kept_bytes -= _size(self._kept.popitem(last=False)[1])


def _size(facts: SortedFacts) -> int:
    return int(facts.facts.rows.nbytes + facts.facts.transactions.nbytes + facts.keys.nbytes)


def _range(store: Store, name: str, offset: int, length: int, held: Callable[[], str]) -> bytes:
    try:
        return store.get_range(name, offset, length)
    except ObjectNotFound:
        lost = MissingObject(f"{name} is gone. It held {held()}.", next_step="Restore the file from a copy of the store.")
        raise if_pruned(store, name) or lost from None
