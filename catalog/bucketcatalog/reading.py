"""Reading a slice: blocks and tail in, the state of the slice's keys out, in key order.

Only keys that the tail touches are folded; all other rows pass as they are, for a checkpoint's rows are folded already. Reading what is
live reads the blocks of live versions alone, unless the tail holds a PUT that is not newer than what an overlapping block of ended
versions or stubs holds: only such a PUT can be ended by, or updated by, what waits there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from enum import Enum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .arrays import one_chunk
from .codec.blocks import BlockClass
from .codec.segments import BlockPlace, read_block
from .facts import FACT_COLUMNS, NO_TRANSACTIONS, Facts, Kind, concat
from .keys import KeyRange, encode_keys
from .planning import Slice, SortedTail, lower_bound
from .replay.fold import fold
from .replay.tail import read_events
from .store.base import Store
from .tables import Table


class Part(Enum):
    """Which rows of the state a reader wants."""

    LIVE = "live"
    TOMBSTONES = "tombstones"
    EVERYTHING = "everything"


def read_slice(store: Store, table: Table, piece: Slice, part: Part, columns: Collection[str] | None = None) -> Facts:
    """The state rows of a slice that ``part`` names, by key and stamp.

    ``columns`` are storage names; without them every column is read. Raises ``CorruptionError`` for a damaged block.
    """
    if piece.settled:
        places = [p for p in (*piece.live, *piece.rest) if _holds(p, part)]
        return _within(_read(store, table, places, _plus_one(columns, table)), table, piece.keys, places)
    needed = None if columns is None else {*columns, *FACT_COLUMNS, *(c.field_name for c in table.key_columns)}
    tail = _tail(store, table, piece, needed)
    places = _places(piece, part, tail)
    base = _within(_read(store, table, places, needed), table, piece.keys, places)
    return _pick(_merged(base, tail, table, combined=piece.combined), part)


def _tail(store: Store, table: Table, piece: Slice, needed: Collection[str] | None) -> SortedTail | None:
    """Everything of the slice that no checkpoint covers, by key."""
    inline = piece.tail.facts if piece.tail is not None else None
    if inline is not None and needed is not None:
        inline = Facts(inline.transactions, inline.rows.select([name for name in inline.rows.column_names if name in needed]))
    if not piece.events:
        return replace(piece.tail, facts=inline) if piece.tail is not None and inline is not None else None
    read = concat([read_events(store, block, table, needed) for block in piece.events])
    read = _within(read, table, piece.keys, [block.place for block in piece.events])
    every = read if inline is None else concat([inline, read])
    return SortedTail.of(every, table) if len(every) else None


def _plus_one(columns: Collection[str] | None, table: Table) -> Collection[str] | None:
    """The last key column too: a block without any column would not tell how many rows it has."""
    return None if columns is None else {*columns, table.key_columns[-1].field_name}


def _holds(place: BlockPlace, part: Part) -> bool:
    wanted = {Part.LIVE: BlockClass.LIVE, Part.TOMBSTONES: BlockClass.ENDED}.get(part)
    return wanted is None or place.header.block_class is wanted


def _places(piece: Slice, part: Part, tail: SortedTail | None) -> list[BlockPlace]:
    if part is not Part.LIVE or piece.combined:
        return [*piece.live, *piece.rest]
    return [*piece.live, *(_waiting_for(tail, piece.rest) if tail is not None else ())]


def _waiting_for(tail: SortedTail, rest: Sequence[BlockPlace]) -> list[BlockPlace]:
    """The blocks of ended versions and stubs that can say something about a PUT of the tail."""
    puts = tail.facts.numbers("_kind") == Kind.VERSION
    if not rest or not puts.any():
        return []
    commit_time = np.asarray(one_chunk(tail.facts.transactions.column("commit_time")))
    time = np.where(puts, commit_time[np.where(puts, tail.facts.numbers("_txn"), 0)], np.iinfo(np.int64).max)
    found = []
    for place in rest:
        start, stop = _span(tail, place)
        if start < stop and time[start:stop].min() <= place.header.newest:
            found.append(place)
    return found


def _span(tail: SortedTail, place: BlockPlace) -> tuple[int, int]:
    return lower_bound(tail.keys, place.header.first_key), lower_bound(tail.keys, place.header.last_key + b"\x00")


def _read(store: Store, table: Table, places: Iterable[BlockPlace], columns: Collection[str] | None) -> Facts:
    pieces = [read_block(store, place, table, columns) for place in places]
    return concat(pieces) if pieces else Facts(NO_TRANSACTIONS, empty_rows(table))


def empty_rows(table: Table) -> pa.Table:
    """No rows, with the key's columns."""
    return pa.table({c.field_name: pa.array([], c.storage_type) for c in table.key_columns})


def _within(facts: Facts, table: Table, keys: KeyRange, places: Sequence[BlockPlace]) -> Facts:
    """The rows in the range; blocks at its ends may hold others."""
    if all(p.header.first_key >= keys.start and (keys.stop is None or p.header.last_key < keys.stop) for p in places):
        return facts
    encoded = one_chunk(encode_keys(table, facts.rows))
    if len(places) == 1:  # a block is sorted
        stop = len(encoded) if keys.stop is None else lower_bound(encoded, keys.stop)
        return facts.slice(lower_bound(encoded, keys.start), stop)
    mask = pc.greater_equal(encoded, keys.start)
    if keys.stop is not None:
        mask = pc.and_(mask, pc.less(encoded, keys.stop))
    return facts.filter(mask)


def _merged(base: Facts, tail: SortedTail | None, table: Table, *, combined: bool) -> Facts:
    """Base and tail folded where they meet, in key order."""
    if combined:
        return fold(base if tail is None else concat([base, tail.facts]), table)
    if tail is None:
        return base
    if not len(base):
        return fold(tail.facts, table)
    keys = one_chunk(encode_keys(table, base.rows))
    touched = pc.is_in(keys, value_set=tail.keys)
    folded = fold(concat([base.filter(touched), tail.facts]), table)
    untouched = pc.invert(touched)
    passed = base.filter(untouched)
    everything = concat([passed, folded])
    order = pc.sort_indices(pa.concat_arrays([keys.filter(untouched), one_chunk(encode_keys(table, folded.rows))]))
    return everything.take(order)


def _pick(facts: Facts, part: Part) -> Facts:
    if part is Part.EVERYTHING or not len(facts):
        return facts
    is_version = facts.numbers("_kind") == Kind.VERSION
    ended = facts.numbers("_end_kind") > 0
    if part is Part.LIVE:
        return facts.filter(pa.array(is_version & ~ended))
    return facts.filter(pa.array(is_version & ended & (facts.numbers("_purged") == 0)))
