"""The tombstones that ended first: a page of them in the order in which they ended, without reading all.

A kept order gives the keys of the lowest level's tombstones as they ended; the overlay is in no order, and what it makes of its keys is
read whole. Both are taken together up to a place that the order has been read to: before it nothing can be missing. Where no order is kept
all tombstones are looked at, and a page of them held.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from ..format.headers import BlockPlace
from ..log.blocks import read_block
from ..log.pruned import telling_of_prunes
from ..model.arrays import one_chunk
from ..model.facts import NO_TRANSACTIONS, Facts, concat
from ..model.keys import encode_keys
from ..model.tables import END_TIME, SecondaryOrder, Table
from ..parallel import in_order
from .contents import TableState
from .orders import OrderRun, order_entries, order_runs, without_others
from .plan import Part, for_keys
from .read import empty_rows, ending_keys, read_slice


def earliest_ended(state: TableState, before: int, limit: int) -> Facts:
    """The first ``limit`` tombstones by the time when they ended, then by key, of those that ended before a commit time."""
    order = next((run for run in order_runs(state.table) if run.order.columns[0] == END_TIME.name and run.kept(state)), None)
    with telling_of_prunes(state.blocks.store):
        return _of_all(state, before, limit) if order is None else _Search(state, order, before, limit).found()


def _of_all(state: TableState, before: int, limit: int) -> Facts:
    order = OrderRun(state.table, SecondaryOrder(END_TIME.name, (END_TIME.name,), of_tombstones=True))
    best = _none(state.table)
    for facts in in_order(lambda slice_: read_slice(state.blocks, state.table, slice_, Part.TOMBSTONES), state.plan()):
        best = _first(order, [best, _before(facts, before)], limit)
    return best


class _Search:
    """One search by a kept order: of what stands in it before the ``frontier`` nothing is missing."""

    def __init__(self, state: TableState, order: OrderRun, before: int, limit: int) -> None:
        self._state = state
        self._order = order
        self._before = before
        self._limit = limit
        self._plan = state.plan()
        runs = order.kept(state) or ()
        self._places = sorted((place for run in runs for place in run.places), key=lambda place: place.header.first_key)

    def found(self) -> Facts:
        """The page. All tombstones of a key are read where the order names the first of them."""
        over = self._overlay()
        touched = _joined([keys for keys, _ in over])
        known = _joined([keys for _, keys in over])
        parts, read = [self._read(known, touched)], 0
        while True:
            first, read = read, self._next(read)
            frontier = self._places[read].header.first_key if read < len(self._places) else None
            keys = self._keys(first, read, known)
            known = pa.concat_arrays([known, keys])
            parts.append(self._read(keys, touched))
            best = _first(self._order, parts, self._limit, frontier)
            if len(best) >= self._limit or frontier is None:
                return best

    def _next(self, read: int) -> int:
        """How many of the order's blocks are read next: as many as can fill the page, and at least as many as were read."""
        rows, at = 0, read
        while at < len(self._places) and (rows < self._limit or at < 2 * read):
            rows += self._places[at].header.rows
            at += 1
        return at

    def _overlay(self) -> list[tuple[pa.Array, pa.Array]]:
        """Of each slice the keys above the lowest level, and those of them that may have a version ended by what is there."""
        read = partial(ending_keys, self._state.blocks, self._state.table, before=self._before)
        return list(in_order(read, self._plan))

    def _keys(self, first: int, stop: int, known: pa.Array) -> pa.Array:
        """The keys that some of the order's blocks name and that are not known, sorted."""

        def keys_of(place: BlockPlace) -> pa.Array:
            rows = read_block(self._state.blocks.store, place, self._order.shape).rows
            return one_chunk(encode_keys(self._state.table, rows))

        keys = pc.unique(pa.chunked_array(list(in_order(keys_of, self._places[first:stop])), pa.binary()))
        keys = keys.filter(pc.invert(pc.is_in(keys, value_set=known)))
        return keys.take(pc.sort_indices(keys))

    def _read(self, keys: pa.Array, touched: pa.Array) -> Facts:
        """The tombstones of these keys, of which some are touched by what lies above the lowest level."""
        slices = [without_others(slice_, touched) for slice_ in for_keys(self._plan, keys)]
        read = partial(read_slice, self._state.blocks, self._state.table, part=Part.TOMBSTONES)
        parts = list(in_order(read, slices))
        return _before(concat(parts), self._before) if parts else _none(self._state.table)


def _joined(parts: Sequence[pa.Array]) -> pa.Array:
    return pa.concat_arrays([pa.array([], pa.binary()), *parts])


def _places_of(order: OrderRun, facts: Facts) -> pa.Array:
    """Where tombstones stand in an order, as bytes that compare so."""
    return one_chunk(encode_keys(order.shape, order_entries(order, facts)))


def _first(order: OrderRun, parts: Sequence[Facts], limit: int, frontier: bytes | None = None) -> Facts:
    """The first of some tombstones, of those that stand before the frontier."""
    parts = [facts for facts in parts if len(facts)]
    if not parts:
        return _none(order.table)
    facts = concat(parts)
    places = _places_of(order, facts)
    if frontier is not None:
        inside = pc.less(places, pa.scalar(frontier, pa.binary()))
        facts, places = facts.filter(inside), places.filter(inside)
    return facts.take(pc.sort_indices(places)[:limit])


def _before(facts: Facts, before: int) -> Facts:
    return facts.filter(pa.array(facts.end_times() < before))


def _none(table: Table) -> Facts:
    return Facts(NO_TRANSACTIONS, empty_rows(table))
