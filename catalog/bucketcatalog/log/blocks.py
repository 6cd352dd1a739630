"""Blocks in the store: row groups of segments and messages, read by range, each checked before it is decoded, and some kept for a while."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..cache import LruCache
from ..errors import CorruptionError, MissingObject, ObjectNotFound
from ..format.blocks import decode_block, facts_of_block
from ..format.columns import columns_to_read
from ..format.footers import Fetch
from ..format.headers import BlockPlace, joined
from ..format.held import held_in_block
from ..format.losses import STRICT, OnDamage
from ..format.parquet import ranges_to_read, read_row_groups, rows_of
from ..model.arrays import one_chunk
from ..model.facts import Facts, SortedFacts, commit_times, concat
from ..model.keys import EVERYTHING, KeyRange, rows_within
from ..model.tables import Table
from ..model.uuids import MARK_BYTES, writer_mark
from ..store.base import Store

_KEPT_BYTES = 256 << 20
"""Blocks over many slices: a row group of each of twenty upserts, and as many that were begun before, with all of their columns."""
_KEPT_SEALED_BYTES = 8 << 20
_LOOKED_UP_BYTES = 256 << 20
"""The keys of two million objects, or all columns of a tenth of them."""
_TOGETHER, _TOGETHER_ROWS, _TOGETHER_BYTES = 4, 65_536, 32 << 20
"""The most blocks that are read together, their rows, and their bytes in the file."""


def read_block(
    store: Store,
    place: BlockPlace,
    table: Table,
    columns: Collection[str] | None = None,
    keys: KeyRange = EVERYTHING,
    *,
    whole: bool = False,
) -> Facts:
    """The facts of one block, or those of ``keys`` and ``columns`` alone, checked against its place before anything is decoded.

    A block of a segment takes a range read for each run of neighbouring columns, and one more where its footer is not at hand. What its
    statistics tell is not read, unless ``whole`` asks for every byte of it.
    """
    if place.row_group is None:
        return _own(decode_block(_sealed(store, place, table), table, place.name, columns, keys), place)
    return _row_groups(partial(store.get_range, place.name), store, [place], table, columns, keys, whole=whole)


def read_blocks(
    store: Store, places: Sequence[BlockPlace], table: Table, columns: Collection[str] | None = None, keys: KeyRange = EVERYTHING
) -> Facts:
    """The facts of blocks that lie ``side_by_side``, which takes less than to read each by itself, and the same requests."""
    if len(places) > 1:
        with suppress(CorruptionError):  # each tells by itself if that is so, and which it is
            return _row_groups(partial(store.get_range, places[0].name), store, places, table, columns, keys)
    return concat([read_block(store, place, table, columns, keys) for place in places])


def side_by_side(places: Iterable[BlockPlace], keys: KeyRange = EVERYTHING) -> Iterator[list[BlockPlace]]:
    """The blocks in their order, those together that are one row group of a file after the other, up to a bound, all of ``keys``."""
    together: list[BlockPlace] = []
    for place in places:
        if together and not _goes_on(together, place, keys):
            yield together
            together = []
        together.append(place)
    if together:
        yield together


def _goes_on(together: Sequence[BlockPlace], place: BlockPlace, keys: KeyRange) -> bool:
    last, every = together[-1], (*together, place)
    if len(every) > _TOGETHER or last.row_group is None or place.row_group is None or last.name != place.name:
        return False
    if place.row_group.number != last.row_group.number + 1 or last.header.last_key > place.header.first_key:
        return False
    # Of a block that is wanted in part the key has to be read as well.
    are_whole = all(keys.covers(each.header.first_key, each.header.last_key) for each in (last, place))
    rows, size = sum(each.header.rows for each in every), sum(each.length for each in every)
    return are_whole and rows <= _TOGETHER_ROWS and size <= _TOGETHER_BYTES


def bytes_to_read(place: BlockPlace, table: Table, columns: Collection[str] | None) -> list[int]:
    """How many bytes each request asks for that ``read_block`` makes for a block of which the index has been read."""
    if place.is_at_hand:
        return []
    if place.row_group is None:
        return [place.length]
    names = columns_to_read(place.row_group.footer.layout.schema, table, place.header.block_class, columns, place.name)
    return [stop - start for start, stop in ranges_to_read(place.row_group, names)]


class Made(Protocol):
    """What makes facts of a block out of those that stand in it; equal ones make the same."""

    def __call__(self, facts: Facts) -> Facts:
        """The facts."""
        ...

    def __hash__(self) -> int: ...


class Blocks:
    """The blocks of a store. Those whose rows several slices take are read once and kept for a while, up to a bound.

    So are those that look-ups and pages take a few rows of, up to a bound of their own: who reads much drives none of them out.
    ``on_damage`` says what becomes of a block that cannot be read: where it is noted, who reads its slice leaves its keys out. Threads may
    share it; a pickle is of the store and of that.
    """

    def __init__(self, store: Store, on_damage: OnDamage = STRICT) -> None:
        self.store = store
        self.on_damage = on_damage
        self._kept: LruCache[tuple[str, int, frozenset[str] | None, Made | None], SortedFacts] = LruCache(_KEPT_BYTES, _size)
        self._sealed: LruCache[tuple[str, int], bytes] = LruCache(_KEPT_SEALED_BYTES, len)
        self._looked_up: LruCache[tuple[str, int, frozenset[str] | None], Facts] = LruCache(_LOOKED_UP_BYTES, _bytes)

    def __reduce__(self) -> tuple[type[Blocks], tuple[Store, OnDamage]]:
        return Blocks, (self.store, self.on_damage)

    def shared(
        self,
        place: BlockPlace,
        table: Table,
        columns: Collection[str] | None,
        keys: KeyRange,
        *,
        again: bool = False,
        look_up: bool = False,
        made: Made | None = None,
    ) -> SortedFacts:
        """The facts of a block, of ``keys`` and ``columns`` alone, from what is kept or read whole; or what is ``made`` of them.

        What is made is kept too: what equals ``made`` makes the same of the same block. ``again``: other columns of it may be asked for
        next, so it is kept for a while as it came from the store. ``look_up``: as below.
        """
        of = made or _as_they_are
        if look_up:
            return SortedFacts.of(of(self.looked_up(place, table, columns, keys, again=again)), table)
        name = place.name, place.offset, None if columns is None else frozenset(columns), made
        found = self._kept.get(name)
        if found is None:
            found = SortedFacts.of(of(self._facts(place, table, columns, again=again)), table)
            self._kept.put(name, found)
        return found.within(keys)

    def looked_up(
        self, place: BlockPlace, table: Table, columns: Collection[str] | None, keys: KeyRange, *, again: bool = False
    ) -> Facts:
        """The same for a look-up or a page: the keys are taken from all of the block, of which the next one is likely to want others.

        It is decoded whole the first time, as no column can be in part.
        """
        at = place.name, place.offset
        whole = self._looked_up.get((*at, None))
        if whole is None:
            needed = None if columns is None else frozenset({*columns, *(c.field_name for c in table.key_columns)})
            whole = self._looked_up.get((*at, needed))
            if whole is None:
                whole = self._facts(place, table, needed, again=again)
                self._looked_up.put((*at, needed), whole)
        of_key = {column.field_name: one_chunk(whole.rows.column(column.field_name)) for column in table.key_columns}
        start, stop = rows_within(table, of_key, len(whole), keys)
        kept = [name for name in whole.rows.column_names if columns is None or name in columns] or list(of_key)[:1]
        return replace(whole, rows=whole.rows.select(kept)).slice(start, stop)

    def holds(self, place: BlockPlace) -> bool:
        """Whether few keys of a block, with all of their columns, are taken from what is kept."""
        return (place.name, place.offset, None) in self._looked_up

    def _facts(self, place: BlockPlace, table: Table, columns: Collection[str] | None, *, again: bool) -> Facts:
        if place.row_group is None:
            return _own(decode_block(self._data(place, table, again=again), table, place.name, columns), place)
        if not again and self._sealed.get((place.name, place.offset)) is None:
            return read_block(self.store, place, table, columns)
        data, start = self._data(place, table, again=again), place.offset
        return _row_groups(lambda at, length: data[at - start : at - start + length], self.store, [place], table, columns)

    def _data(self, place: BlockPlace, table: Table, *, again: bool) -> bytes:
        name = place.name, place.offset
        data = self._sealed.get(name)
        if data is None:
            data = _sealed(self.store, place, table)
            if again:
                self._sealed.put(name, data)
        return data


def _as_they_are(facts: Facts) -> Facts:
    return facts


def _size(facts: SortedFacts) -> int:
    return _bytes(facts.facts) + int(facts.keys.nbytes)


def _bytes(facts: Facts) -> int:
    return int(facts.rows.nbytes + facts.transactions.nbytes)


def _sealed(store: Store, place: BlockPlace, table: Table) -> bytes:
    """The bytes of a block: of a message as its checksum says, of a row group to be checked column by column."""
    data = place.data
    if data is None:
        data = read_range(store, place.name, place.offset, place.length, lambda: str(held_in_block(place.header, table)))
    if place.row_group is None and data[-4:] != place.checksum.to_bytes(4, "little"):
        held = held_in_block(place.header, table)
        raise CorruptionError(f"{place.name} is damaged: the checksum of {held} does not match.")
    return data


def _row_groups(
    fetch: Fetch,
    store: Store,
    places: Sequence[BlockPlace],
    table: Table,
    columns: Collection[str] | None,
    keys: KeyRange = EVERYTHING,
    *,
    whole: bool = False,
) -> Facts:
    """The facts of row groups of a file, of ``keys`` and ``columns`` alone, whose bytes ``fetch`` gives."""
    name, groups = places[0].name, [place.row_group for place in places if place.row_group is not None]
    header, footer = joined([place.header for place in places]), groups[0].footer

    def held() -> str:
        return str(held_in_block(header, table))

    try:
        footer.obtain(partial(store.get_range, name))
        if len(places) > 1 and [rows_of(group) for group in groups] != [place.header.rows for place in places]:
            raise CorruptionError(f"{name} has row groups of other sizes than its index says.")
        read = partial(read_row_groups, groups, fetch=fetch, held=held, whole=whole)
        return _own(facts_of_block(read, footer.layout.schema, header, table, name, columns, keys), places[0])
    except ObjectNotFound:
        raise gone(name, held()) from None


def _own(facts: Facts, place: BlockPlace) -> Facts:
    """The facts of a block; ``CorruptionError`` where all have to be one writer's and a stamp is another's.

    Where no stamps are read nobody compares the rows with others': they are what their writer could have put.
    """
    stamps = facts.transactions
    if place.only_of and len(stamps):
        is_own = pc.and_(
            pc.equal(stamps["writer"], place.only_of),
            pc.equal(pc.binary_slice(stamps["uuid"].cast(pa.binary()), -MARK_BYTES), writer_mark(place.only_of)),
        )
        is_timed = np.array_equal(commit_times(one_chunk(stamps["uuid"])), np.asarray(one_chunk(stamps["commit_time"])))
        if not is_timed or not pc.all(is_own).as_py():
            raise CorruptionError(
                f"{place.name} holds rows with stamps of others than {place.only_of!r}, whose checkpoint they are for."
            )
    return facts


def read_range(store: Store, name: str, offset: int, length: int, held: Callable[[], str]) -> bytes:
    """A range of a file, of which ``held`` is what is lost where it is gone: ``MissingObject`` says so."""
    try:
        return store.get_range(name, offset, length)
    except ObjectNotFound:
        raise gone(name, held()) from None


def gone(name: str, held: str) -> MissingObject:
    """The error of one who finds a file gone that held this."""
    lost = MissingObject(f"{name} is gone. It held {held}.")
    lost.name = name
    return lost
