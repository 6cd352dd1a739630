"""Segments in the store: indexes and blocks read by range, each with one request and checked before it is decoded; files put when full."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from .. import clock, limits
from ..cache import LruCache
from ..errors import MissingObject, ObjectNotFound
from ..format.blocks import BlockClass, EncodedBlock, decode_block
from ..format.held import held_in_block, shown_segment
from ..format.losses import STRICT, OnDamage
from ..format.segment_refs import SegmentReference
from ..format.segments import (
    BlockPlace,
    Origin,
    SegmentBuilder,
    SegmentFile,
    check_between,
    check_sealed_block,
    decode_filters,
    decode_index,
    decode_segment_file,
    index_place,
)
from ..model import paths
from ..model.bloom import KeyFilter
from ..model.cuts import Cut
from ..model.facts import Facts, SortedFacts
from ..model.keys import EVERYTHING, KeyRange
from ..model.paths import segment as segment_path
from ..model.tables import Table
from ..store.base import Store
from ..store.retry import for_seconds, put_retrying

Filters = dict[tuple[str, BlockClass], KeyFilter]
_KEPT_BYTES = 64 << 20
_KEPT_SEALED_BYTES = 8 << 20


def read_index(store: Store, database: str, reference: SegmentReference) -> tuple[BlockPlace, ...]:
    """The places of a segment's blocks: one range read, checked against the reference's digest."""
    name = segment_path(reference.writer, database, reference.uuid)
    sealed = _range(store, name, reference.index_offset, reference.index_length, lambda: shown_segment(reference))
    return decode_index(sealed, name, reference).places


def read_segment_file(store: Store, name: str, size: int) -> SegmentFile:
    """What a segment of that size says of itself, without anybody who refers to it: two range reads."""
    offset = index_place(_range(store, name, -9, 9, lambda: "a segment"), size, name)
    data = _range(store, name, offset, size - 9 - offset, lambda: "a segment")
    return decode_segment_file(data, offset, size, name)


def read_index_and_filters(store: Store, database: str, reference: SegmentReference) -> tuple[tuple[BlockPlace, ...], Filters]:
    """The places of a segment's blocks and the filters over their keys, none where it has none: one range read, checked as above."""
    if not reference.filters_length:
        return read_index(store, database, reference), {}
    name = segment_path(reference.writer, database, reference.uuid)
    start, stop = reference.filters_offset, reference.index_offset + reference.index_length
    data = _range(store, name, start, stop - start, lambda: shown_segment(reference))
    check_between(data[reference.filters_length : reference.index_offset - start], name, reference)
    index = decode_index(data[reference.index_offset - start :], name, reference)
    return index.places, decode_filters(data[: reference.filters_length], name, index.filters_digest)


def read_block(
    store: Store, place: BlockPlace, table: Table, columns: Collection[str] | None = None, keys: KeyRange = EVERYTHING
) -> Facts:
    """The facts of one block, or those of ``keys`` and ``columns`` alone: one range read, checked against the block's place."""
    return decode_block(_sealed(store, place, table), table, place.name, columns, keys)


class Blocks:
    """The blocks of a store. Those whose rows several slices take are read once and kept for a while, up to a bound.

    ``on_damage`` says what becomes of a block that cannot be read: where it is noted, who reads its slice leaves its keys out. Threads may
    share it; a pickle is of the store and of that.
    """

    def __init__(self, store: Store, on_damage: OnDamage = STRICT) -> None:
        self.store = store
        self.on_damage = on_damage
        self._kept: LruCache[tuple[str, int, frozenset[str] | None], SortedFacts] = LruCache(_KEPT_BYTES, _size)
        self._sealed: LruCache[tuple[str, int], bytes] = LruCache(_KEPT_SEALED_BYTES, len)

    def __reduce__(self) -> tuple[type[Blocks], tuple[Store, OnDamage]]:
        return Blocks, (self.store, self.on_damage)

    def shared(
        self, place: BlockPlace, table: Table, columns: Collection[str] | None, keys: KeyRange, *, again: bool = False
    ) -> SortedFacts:
        """The facts of a block, of ``keys`` and ``columns`` alone, from what is kept or read whole.

        ``again``: other columns of it may be asked for next, so it is kept for a while as it came from the store.
        """
        name = place.name, place.offset, None if columns is None else frozenset(columns)
        found = self._kept.get(name)
        if found is None:
            found = SortedFacts.of(decode_block(self._data(place, table, again=again), table, place.name, columns), table)
            self._kept.put(name, found)
        return found.within(keys)

    def _data(self, place: BlockPlace, table: Table, *, again: bool) -> bytes:
        name = place.name, place.offset
        data = self._sealed.get(name)
        if data is None:
            data = _sealed(self.store, place, table)
            if again:
                self._sealed.put(name, data)
        return data


def _size(facts: SortedFacts) -> int:
    return int(facts.facts.rows.nbytes + facts.facts.transactions.nbytes + facts.keys.nbytes)


def _sealed(store: Store, place: BlockPlace, table: Table) -> bytes:
    data = _range(store, place.name, place.offset, place.length, lambda: str(held_in_block(place.header, table)))
    check_sealed_block(data, place, table)
    return data


def _range(store: Store, name: str, offset: int, length: int, held: Callable[[], str]) -> bytes:
    try:
        return store.get_range(name, offset, length)
    except ObjectNotFound:
        lost = MissingObject(f"{name} is gone. It held {held()}.")
        lost.name = name
        raise lost from None


TARGET_SEGMENT_BYTES = 64 << 20


class SegmentWriter:
    """Collects blocks into a writer's segments, and puts each when it is full; holds one segment at a time.

    ``cut`` is what the rows cover, None for a transaction's events. The segments' uuids hold ``began``, the store's time before the work
    began: whoever finds one that nothing refers to knows how old the work is that may still be about to refer to it.
    ``origin`` is for which checkpoint they are.
    """

    def __init__(
        self,
        store: Store,
        writer: str,
        database: str,
        *,
        cut: Cut | None,
        began: int,
        stopped: Callable[[], bool] = lambda: False,
        origin: Origin | None = None,
    ) -> None:
        self.written: list[SegmentReference] = []
        self._store = store
        self._writer = writer
        self._database = database
        self._cut = cut
        self._began = began
        self._stopped = stopped
        self._origin = origin
        self._builder = SegmentBuilder()
        self._tables: dict[str, Table] = {}

    def add(self, block: EncodedBlock, table: Table) -> None:
        """Add a block of a run; blocks of a run come in the order of their keys. One that begins before the last begins a segment."""
        if self._builder.size >= TARGET_SEGMENT_BYTES or not self._builder.can_hold(block.header):
            self._put(last=False)
        self._builder.add(block)
        self._tables[table.name] = table

    def flush(self) -> None:
        """Put what was collected; nothing is added after that."""
        self._put(last=True)

    def _put(self, *, last: bool) -> None:
        if self._builder.size:
            uuid = clock.uuid7(self._began).bytes
            tables = [self._tables[name] for name in sorted(self._tables)]
            origin = None if self._origin is None else replace(self._origin, part=len(self.written), last=last)
            data, reference = self._builder.finish(
                writer=self._writer, database=self._database, uuid=uuid, cut=self._cut, tables=tables, origin=origin
            )
            is_over = for_seconds(limits.PATIENCE_SECONDS)
            name = paths.segment(self._writer, self._database, uuid)
            put_retrying(self._store, name, data, lambda: self._stopped() or is_over())
            self.written.append(reference)
        self._builder, self._tables = SegmentBuilder(), {}
