"""The tombstones that ended first: a page of them in the order in which they ended, without reading all.

A kept order gives the lowest level's tombstones as they ended, or their keys, which are then looked up; the overlay is in no order, and
what it makes of its keys is read whole. Both are taken together up to a place that the order has been read to: before it nothing can be
missing. Where no order is kept all tombstones are looked at, and a page of them held.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..format.headers import BlockPlace
from ..log.blocks import read_block
from ..log.pruned import telling_of_prunes
from ..model.arrays import one_chunk
from ..model.coerce import given_keys
from ..model.facts import FACT_COLUMNS, NEVER, NO_STAMP, NO_TRANSACTIONS, EventNames, Facts, Kind, SortedFacts, concat
from ..model.keys import EVERYTHING, KeyRange, encode_keys, encode_value
from ..model.render import version_names
from ..model.tables import END_TIME, SecondaryOrder, Table
from ..parallel import in_order
from .contents import TableState
from .orders import OrderRun, order_entries, order_runs, without_others
from .plan import Part, Slice, for_keys
from .read import empty_rows, may_end, overlay_of, read_slice


def earliest_ended(
    state: TableState, before: int, limit: int, columns: Collection[str], *, after: Mapping[str, Any] | None = None
) -> Facts:
    """The first ``limit`` tombstones by the time when they ended, then by key, of those that ended before a commit time.

    Those ``after`` one are told by its end and key. Of their rows they have at least these storage columns and the key.
    """
    by_end = (END_TIME.name, *state.table.key)
    order = next((run for run in order_runs(state.table) if run.shape.key == by_end and run.kept(state)), None)
    behind = b"" if after is None else given_keys(_order_of(state.table).shape, [after])[0]
    page = _Page(state, before, limit, columns, behind)
    with telling_of_prunes(state.blocks.store):
        return page.of(state.plan()) if order is None else _Search(page, order).found()


_AT_ONCE = 4
"""So many blocks of whole rows are read at once, when the first were not enough."""


@dataclass(frozen=True)
class _Page:
    """What is asked for, and the first of whatever was read."""

    state: TableState
    before: int
    limit: int
    columns: Collection[str]
    behind: bytes

    def of(self, slices: Iterable[Slice]) -> Facts:
        """The first tombstones of some slices, of which no more are held than the page has and a slice."""
        best = self.none
        for facts in in_order(self._read, list(slices)):
            best = self.first([best, facts])
        return best

    def first(self, parts: Sequence[Facts], frontier: bytes | None = None) -> Facts:
        """The first of some tombstones, of those that stand before the frontier."""
        parts = [facts for facts in parts if len(facts)]
        if not parts:
            return self.none
        facts = concat(parts)
        places = self.places(facts)
        if frontier is not None:
            inside = pc.less(places, pa.scalar(frontier, pa.binary()))
            facts, places = facts.filter(inside), places.filter(inside)
        return facts.take(pc.sort_indices(places)[: self.limit])

    def places(self, facts: Facts) -> pa.Array:
        """Where tombstones stand, as bytes that compare so."""
        order = _order_of(self.state.table)
        return one_chunk(encode_keys(order.shape, order_entries(order, facts).rows))

    def place_of(self, time: int) -> bytes:
        """The first place of a commit time."""
        return encode_value(END_TIME, time, last=False)

    @cached_property
    def none(self) -> Facts:
        """Nothing."""
        return Facts(NO_TRANSACTIONS, empty_rows(self.state.table))

    def _read(self, slice_: Slice) -> Facts:
        wanted = {*self.columns, *FACT_COLUMNS}
        return self.asked_for(read_slice(self.state.blocks, self.state.table, slice_, Part.TOMBSTONES, wanted))

    def asked_for(self, found: Facts) -> Facts:
        """Those of some tombstones that ended before the time, and stand behind the one that the page comes after."""
        if len(found):
            found = found.filter(pa.array(found.end_times() < self.before))
        return found.filter(pc.greater(self.places(found), self.behind)) if self.behind and len(found) else found


def _order_of(table: Table) -> OrderRun:
    """The order in which tombstones are asked for, kept or not."""
    return OrderRun(table, SecondaryOrder(END_TIME.name, (END_TIME.name,), of_tombstones=True))


class _Search:
    """One search by a kept order: of what stands in it before the ``frontier`` nothing is missing."""

    def __init__(self, page: _Page, order: OrderRun) -> None:
        self._page = page
        self._state = page.state
        self._order = order
        self._plan = page.state.plan()
        runs = order.kept(page.state) or ()
        every = sorted((place for run in runs for place in run.places), key=lambda place: place.header.first_key)
        until = KeyRange(b"", page.place_of(page.before)) if page.before < NEVER else EVERYTHING
        asked = (place for place in every if until.overlaps(place.header.first_key, place.header.first_key))
        self._places = [place for place in asked if place.header.last_key > page.behind]

    def found(self) -> Facts:
        """The page. Of the keys that are looked up all tombstones are read where the order names the first of them."""
        over = self._overlay()
        known = over.ending
        parts, read = [self._read(known, over.keys)], 0
        while True:
            first, read = read, self._next(read)
            frontier = self._places[read].header.first_key if read < len(self._places) else None
            keys, whole = self._found(first, read, over)
            keys = keys.filter(pc.invert(pc.is_in(keys, value_set=known)))
            known = pa.concat_arrays([known, keys])
            parts = [self._page.first([*parts, *whole, self._read(keys, over.keys)])]
            best = self._page.first(parts, frontier)
            if len(best) >= self._page.limit or frontier is None:
                return best

    def _next(self, read: int) -> int:
        """How many of the order's blocks are read next: as many as can fill the page, and more where that was not enough.

        Of keys twice as many each time, for each round looks them up; of whole rows, which are held until it ends, a few.
        """
        rows, at = 0, read
        more = min(2 * read, read + _AT_ONCE) if self._order.order.covering else 2 * read
        while at < len(self._places) and (rows < self._page.limit or at < more):
            rows += self._places[at].header.rows
            at += 1
        return at

    def _overlay(self) -> _Over:
        """What lies over the lowest level."""
        read = partial(overlay_of, self._state.blocks, self._state.table)
        parts = [_Over.of(overlay, self._page.before) for overlay in in_order(read, self._plan) if overlay is not None]
        return _Over(
            _joined([over.keys for over in parts], pa.binary()),
            _joined([over.touched for over in parts], pa.binary()),
            _joined([over.ending for over in parts], pa.binary()),
            _joined([over.purged for over in parts], pa.binary()),
        )

    def _found(self, first: int, stop: int, over: _Over) -> tuple[pa.Array, list[Facts]]:
        """What some of the order's blocks have: the keys to look up, sorted and distinct, and the tombstones that are there whole."""
        found = list(in_order(partial(self._of_block, over), self._places[first:stop]))
        keys = pc.unique(pa.chunked_array([keys for keys, _ in found], pa.binary()))
        return keys.take(pc.sort_indices(keys)), [facts for _, facts in found]

    def _of_block(self, over: _Over, place: BlockPlace) -> tuple[pa.Array, Facts]:
        is_covering = self._order.order.covering
        wanted = {*self._order.of_key, *((*self._page.columns, *FACT_COLUMNS) if is_covering else ())}
        facts = read_block(self._state.blocks.store, place, self._order.shape, wanted)
        keys = one_chunk(encode_keys(self._state.table, facts.rows))
        if not is_covering:
            return keys, self._page.none
        is_over = pc.is_in(keys, value_set=over.touched)
        facts = replace(facts, rows=facts.rows.drop_columns([END_TIME.field_name])).filter(pc.invert(is_over))
        if len(over.purged):
            named = _named(keys.filter(pc.invert(is_over)), facts.own_names())
            facts = facts.filter(pc.invert(pc.is_in(named, value_set=over.purged)))
        return keys.filter(is_over), self._page.asked_for(facts)

    def _read(self, keys: pa.Array, touched: pa.Array) -> Facts:
        """The first tombstones of these keys, of which some are touched by what lies above the lowest level."""
        return self._page.of(without_others(slice_, touched) for slice_ in for_keys(self._plan, keys))


@dataclass(frozen=True)
class _Over:
    """What lies over the lowest level, of these ``keys``.

    ``touched`` are those of which more may be otherwise than that a version is purged, ``ending`` those that may have one ended by it.
    ``purged`` are versions of the others, each of its key: but for these their tombstones are those of the lowest level.
    """

    keys: pa.Array
    touched: pa.Array
    ending: pa.Array
    purged: pa.Array

    @classmethod
    def of(cls, overlay: SortedFacts, before: int) -> Self:
        """That of one slice, for tombstones that ended before a time."""
        facts, keys = overlay.facts, overlay.keys
        only_purges = (facts.numbers("_kind") == Kind.NAMED) & (facts.numbers("_purged") > 0)
        only_purges &= (facts.stamps("row") == NO_STAMP) & (facts.stamps("end") == NO_STAMP)
        touched = pc.unique(keys.filter(pa.array(~only_purges)))
        alone = pa.array(only_purges & ~np.asarray(pc.is_in(keys, value_set=touched)))
        purges = facts.filter(alone)
        purged = _named(keys.filter(alone), EventNames(purges.column("_name_uuid"), purges.column("_name_seq")))
        return cls(pc.unique(keys), touched, pc.unique(keys.filter(pa.array(may_end(overlay, before)))), purged)


def _named(keys: pa.Array, names: EventNames) -> pa.Array:
    """Versions of keys, as bytes: a purge concerns a version under its own key alone. No name of a version has a NUL."""
    return pc.binary_join_element_wise(keys, version_names(*names).cast(pa.binary()), pa.scalar(b"\0"))


def _joined(parts: Sequence[pa.Array], kind: pa.DataType) -> pa.Array:
    return pa.concat_arrays([pa.array([], kind), *parts])
