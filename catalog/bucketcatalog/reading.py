"""Reading a slice: blocks and tail in, the state of the slice's keys out, in key order.

Only keys that the tail touches are folded; all other rows pass as they are, for a checkpoint's rows are folded already. Reading what is
live reads the blocks of live versions alone, unless the tail holds a PUT that is not newer than what an overlapping block of ended
versions or stubs holds: only such a PUT can be ended by, or updated by, what waits there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from enum import Enum

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from .arrays import one_chunk
from .codec.blocks import BlockClass
from .codec.segments import BlockPlace
from .facts import FACT_COLUMNS, NO_TRANSACTIONS, Facts, Kind, concat
from .fetch import read_block
from .keys import KeyRange, encode_keys, span
from .planning import Slice, SortedTail
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
    """``read_pieces`` in one."""
    pieces = list(read_pieces(store, table, piece, part, columns))
    return concat(pieces) if pieces else Facts(NO_TRANSACTIONS, empty_rows(table))


def read_pieces(store: Store, table: Table, piece: Slice, part: Part, columns: Collection[str] | None = None) -> Iterator[Facts]:
    """The state rows of a slice that ``part`` names, a few thousand at a time, by key and stamp; of ``EVERYTHING`` the live ones first.

    ``columns`` are storage names; without them every column is read. Raises ``CorruptionError`` for a damaged block.
    """
    keys = () if piece.wanted is None else tuple(c.field_name for c in table.key_columns)
    if piece.settled:
        last = table.key_columns[-1].field_name  # without any column, who could count the rows?
        needed = None if columns is None else {*columns, last, *keys}
        for place in (p for p in (*piece.live, *piece.rest) if _holds(p, part)):
            yield _wanted(read_block(store, place, table, needed, piece.keys), table, piece)
        return
    needed = None if columns is None else {*columns, *FACT_COLUMNS, *(c.field_name for c in table.key_columns)}
    tail = _tail(store, table, piece, needed)
    blocks = [_wanted(read_block(store, place, table, needed, piece.keys), table, piece) for place in _places(piece, part, tail)]
    base = concat(blocks) if blocks else Facts(NO_TRANSACTIONS, empty_rows(table))
    yield _pick(_merged(base, tail, table, combined=piece.combined), part)


def _wanted(facts: Facts, table: Table, piece: Slice) -> Facts:
    if piece.wanted is None:
        return facts
    return facts.filter(pc.is_in(one_chunk(encode_keys(table, facts.rows)), value_set=piece.wanted))


def _tail(store: Store, table: Table, piece: Slice, needed: Collection[str] | None) -> SortedTail | None:
    """Everything that no checkpoint covers of the keys asked for, by key."""
    tail = piece.tail
    if tail is not None and needed is not None:
        rows = tail.facts.rows
        tail = replace(tail, facts=Facts(tail.facts.transactions, rows.select([n for n in rows.column_names if n in needed])))
    if piece.events:
        read = concat([read_events(store, block, table, needed, piece.keys) for block in piece.events])
        tail = SortedTail.of(read if tail is None else concat([tail.facts, read]), table)
    if tail is not None and piece.wanted is not None:
        tail = tail.of_keys(piece.wanted)
    return tail if tail is not None and len(tail) else None


def _holds(place: BlockPlace, part: Part) -> bool:
    wanted = {Part.LIVE: BlockClass.LIVE, Part.TOMBSTONES: BlockClass.ENDED}.get(part)
    return wanted is None or place.header.block_class is wanted


def _places(piece: Slice, part: Part, tail: SortedTail | None) -> list[BlockPlace]:
    """The blocks that can say something about what is asked for.

    Where all blocks are one checkpoint's, those of ended versions and stubs concern a live row only if the tail has a PUT that is not
    newer than what they hold. Where keys are asked for, blocks that are all older than the tail's PUTs of their keys concern none.
    """
    if part is not Part.LIVE or tail is None:
        return [*piece.live, *(piece.rest if part is not Part.LIVE or piece.combined else ())]
    puts = _put_times(tail)
    rest = piece.rest if piece.combined else [p for p in piece.rest if _oldest_put(tail, puts, p) <= p.header.newest]
    if piece.wanted is None:
        return [*piece.live, *rest]
    newest = _newest_puts(tail, puts, piece.wanted)
    return [p for p in (*piece.live, *rest) if (newest[slice(*_span(piece.wanted, p))] <= p.header.newest).any()]


def _put_times(tail: SortedTail) -> npt.NDArray[np.int64]:
    """The commit times of the tail's PUTs, -1 for other facts."""
    commit_time = np.asarray(one_chunk(tail.facts.transactions.column("commit_time")))
    puts = tail.facts.numbers("_kind") == Kind.VERSION
    return np.where(puts, commit_time[np.where(puts, tail.facts.numbers("_txn"), 0)], -1)


def _oldest_put(tail: SortedTail, puts: npt.NDArray[np.int64], place: BlockPlace) -> int:
    """The commit time of the oldest PUT of a key of the block."""
    own = puts[slice(*_span(tail.keys, place))]
    return int(own[own >= 0].min(initial=np.iinfo(np.int64).max))


def _newest_puts(tail: SortedTail, puts: npt.NDArray[np.int64], keys: pa.Array) -> npt.NDArray[np.int64]:
    """For each of the keys the commit time of its newest PUT, -1 where the tail has none."""
    newest = np.full(len(keys), -1, dtype=np.int64)
    np.maximum.at(newest, np.asarray(pc.index_in(tail.keys, value_set=keys)), puts)
    return newest


def _span(keys: pa.Array, place: BlockPlace) -> tuple[int, int]:
    return span(keys, KeyRange(place.header.first_key, place.header.last_key + b"\x00"))


def empty_rows(table: Table) -> pa.Table:
    """No rows, with the key's columns."""
    return pa.table({c.field_name: pa.array([], c.storage_type) for c in table.key_columns})


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
