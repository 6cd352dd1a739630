"""Segments in the store: indexes and blocks read by range, each with one request and checked before it is decoded; files put when full."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from .. import clock, limits
from ..cache import LruCache
from ..errors import MissingObject, ObjectNotFound
from ..format.blocks import BlockClass, BlockPlace, EncodedBlock, decode_block
from ..format.held import held_in_block, shown_segment
from ..format.losses import STRICT, OnDamage
from ..format.runs import InlineRun, SegmentReference
from ..format.segments import (
    Origin,
    RunBuilder,
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
    """The facts of one block, or those of ``keys`` and ``columns`` alone: at most one range read, checked against its place."""
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
    data = place.data
    if data is None:
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
INLINE_RUN_BYTES = 16 << 10
"""The largest run that a checkpoint holds itself: what is larger is worth a request of its own, and too much to be written again."""


class RunWriter:
    """Collects blocks into runs of a writer, each in segments of its own, put when they are full; all that it holds is a segment's size.

    ``cut`` is what the rows cover, None for a transaction's events. The segments' uuids hold ``began``, the store's time before the work
    began: whoever finds one that nothing refers to knows how old the work is that may still be about to refer to it.
    ``origin`` is for which checkpoint they are. Small runs that are left at the end are put nowhere, up to ``inline_bytes`` of them: the
    checkpoint holds them itself.
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
        inline_bytes: int = 0,
    ) -> None:
        self.segments: list[SegmentReference] = []
        self.inline: list[InlineRun] = []
        self._store = store
        self._writer = writer
        self._database = database
        self._cut = cut
        self._began = began
        self._stopped = stopped
        self._origin = origin
        self._inline_bytes = inline_bytes
        self._open: dict[tuple[str, BlockClass], RunBuilder] = {}
        self._tables: dict[str, Table] = {}

    def add(self, block: EncodedBlock, table: Table) -> None:
        """Add a block of a run; blocks of a run come in the order of their keys. One that begins before the last begins a segment."""
        key = block.header.table, block.header.block_class
        if key in self._open and not self._open[key].can_hold(block.header):
            self.segments.append(self._put(self._open.pop(key)))
        if sum(builder.size for builder in self._open.values()) >= TARGET_SEGMENT_BYTES:
            largest = max(self._open, key=lambda key: self._open[key].size)
            self.segments.append(self._put(self._open.pop(largest)))
        self._open.setdefault(key, RunBuilder(table)).add(block)
        self._tables[table.name] = table

    def finish(self) -> None:
        """Put what was collected, but for what stays inline; nothing is added after that.

        One run at least is put, so that what stays inline is in a segment too, and not lost with the checkpoint.
        """
        left, room = sorted(self._open.values(), key=lambda builder: builder.size), self._inline_bytes
        while len(left) > 1 and left[0].size <= min(room, INLINE_RUN_BYTES):
            room -= left[0].size
            self.inline.append(left.pop(0).inline())
        for builder in reversed(left):  # the smallest last: its index, which has what stays inline, is the one that is read least
            self.segments.append(self._put(builder, is_last=builder is left[0]))
        self._open = {}

    def _put(self, builder: RunBuilder, *, is_last: bool = False) -> SegmentReference:
        uuid = clock.uuid7(self._began).bytes
        origin = self._origin
        if origin is not None:
            runs = (*origin.runs, *self.inline) if is_last else ()
            tables = (*origin.tables, *(self._tables[inline.run.table] for inline in self.inline)) if is_last else ()
            origin = replace(origin, part=len(self.segments), last=is_last, runs=runs, tables=tables)
        data, reference = builder.segment(writer=self._writer, database=self._database, uuid=uuid, cut=self._cut, origin=origin)
        is_over = for_seconds(limits.PATIENCE_SECONDS)
        name = paths.segment(self._writer, self._database, uuid)
        put_retrying(self._store, name, data, lambda: self._stopped() or is_over())
        return reference
