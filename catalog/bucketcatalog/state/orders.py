"""Secondary orders: the tombstones of a table by when they ended, so that those of a time are found without reading all of them.

A lowest level holds each tombstone once, so beside its rows stand all tombstones in the order that the table declares: their keys, or
where the order is covering whole rows, by which who goes through them in that order is answered. Its overlay, higher levels and the tail,
is in no order: the keys that it concerns are read. A condition on when versions ended goes by keys, whatever else stands there: those of
the order and of the overlay are looked up as if somebody had named them, and every condition is checked on the rows. So its answer never
depends on an order, which only says which keys cannot be in it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..format.headers import TOMBSTONES, BlockClass, BlockPlace, Purpose, Side
from ..format.segments import RunRows, side_rows
from ..log.blocks import bytes_to_read, read_block
from ..log.pruned import telling_of_prunes
from ..model.arrays import one_chunk
from ..model.facts import NO_TRANSACTIONS, Facts, concat
from ..model.keys import EVERYTHING, KeyRange, encode_keys
from ..model.render import version_names
from ..model.row_hashes import hash_rows
from ..model.tables import END_TIME, TIMESTAMP, SecondaryOrder, Table, side_table
from ..parallel import in_order
from ..where.conditions import Between, StoredConditions, Where, key_ranges
from .contents import TableState
from .indexes import StoredRun, holds_one
from .plan import Part, Slice, for_keys
from .read import ending_keys, places_read

RUN_ROWS, RUN_BYTES = 1 << 19, 128 << 20
"""About the most of a sorted run, which is held while it is written, and about twice more while it is sorted."""
MOST_KEYS = 1 << 19
"""The most keys that a question is narrowed to: they are held while it is planned."""
SHARE = 3
"""A question is narrowed by an order only if all that is read then is at most this part of the rows that would be read without."""


@dataclass(frozen=True)
class OrderRun:
    """A declared order of tombstones as a side run: the key of each, or its whole row, in that order."""

    table: Table
    order: SecondaryOrder
    classes: ClassVar = TOMBSTONES

    @property
    def described(self) -> str:
        """What the declaration calls it."""
        return f"order {self.order.name!r}"

    @property
    def can_be_kept(self) -> bool:
        """Whether it is one of tombstones by what is the same for good: when they ended, and their keys."""
        return self.order.of_tombstones and {END_TIME.name} <= set(self.order.columns) <= {END_TIME.name, *self.table.key}

    @cached_property
    def side(self) -> Side:
        """Named after the order and its fields, so that a declaration that has changed finds no order of another."""
        said = [END_TIME.name if name == END_TIME.name else self.table.by_name[name].field_name for name in self.order.columns]
        said += ["*"] if self.order.covering else []
        return Side(self.table.name, Purpose.ORDER, f"{self.order.name}({','.join(said)})")

    @property
    def block_class(self) -> BlockClass:
        """That of its rows: of a covering order they are tombstones."""
        return BlockClass.ENDED if self.order.covering else BlockClass.LIVE

    @cached_property
    def shape(self) -> Table:
        """The table that the entries make. Its key are the order's fields and those of the table's; a covering one has all others too."""
        names = tuple(dict.fromkeys([*self.order.columns, *self.table.key]))
        key = tuple(END_TIME if name == END_TIME.name else self.table.by_name[name] for name in names)
        others = tuple(column for column in self.table.columns if column not in key) if self.order.covering else ()
        return Table(side_table(self.table.name, self.side.name), (*key, *others), names)

    @property
    def of_key(self) -> list[str]:
        """The storage names of what an entry stands by."""
        return [column.field_name for column in self.shape.key_columns]

    def keeping(self) -> _Keeping:
        """The run in the making."""
        return _Keeping(self)

    def kept(self, state: TableState) -> list[StoredRun] | None:
        """The sorted runs; None where the order is not kept, or not of all tombstones of the lowest level."""
        runs = state.beside(self.side)
        usable = not state.blocks.on_damage.reads_on and state.checkpoints == 1
        return runs if usable and sum(_rows(run.places) for run in runs) == state.lowest_rows(self.classes) else None

    def differs(self, state: TableState) -> bool:
        """Whether what is kept is not what the tombstones of the lowest level make; reads both, a block after the other."""
        runs = state.beside(self.side)
        if not runs:
            return False
        store = state.blocks.store
        said = (read_block(store, place, self.shape) for run in runs for place in run.places)
        made = (order_entries(self, read_block(store, place, self.table)) for place in state.lowest_places(self.classes))
        return _digest(self, said) != _digest(self, made)


def order_runs(table: Table) -> list[OrderRun]:
    """The declared orders that checkpoints keep."""
    return [run for run in (OrderRun(table, order) for order in table.orders) if run.can_be_kept]


class _Keeping:
    """An order of tombstones that are met a few thousand at a time, each once: the entries since the last sorted run."""

    def __init__(self, run: OrderRun) -> None:
        self._run = run
        self._parts: list[Facts] = []
        self._rows = self._bytes = 0

    def add(self, rows: Facts) -> Iterator[RunRows]:
        """Take these in too; gives a sorted run where so many are held that they have to be written."""
        part = order_entries(self._run, rows)
        self._parts.append(part)
        self._rows += len(part)
        self._bytes += int(part.rows.nbytes)
        if self._rows >= RUN_ROWS or self._bytes >= RUN_BYTES:
            yield from self.rest()

    def rest(self) -> Iterator[RunRows]:
        """What is held, as a sorted run."""
        if self._rows:
            rows, of = concat(self._parts), self._run
            self._parts, self._rows, self._bytes = [], 0, 0
            yield side_rows(rows, of.table, of.shape, of.side, of.block_class)


def order_entries(run: OrderRun, tombstones: Facts) -> Facts:
    """The entries of tombstones, in the order of these."""
    ended = pa.array(tombstones.end_times(), pa.int64()).cast(TIMESTAMP)
    if run.order.covering:
        return replace(tombstones, rows=tombstones.rows.append_column(END_TIME.field_name, ended))
    columns = {
        column.field_name: ended if column is END_TIME else one_chunk(tombstones.rows[column.field_name])
        for column in run.shape.columns
    }
    return Facts(NO_TRANSACTIONS, pa.table(columns))


@dataclass(frozen=True)
class Narrowed:
    """The slices that are left to read of a plan, and what it took to know: ``read`` blocks ``of`` an order's, called ``name``, each with
    the bytes of its requests.

    ``overlay`` are the blocks above the lowest level: their keys were read too. ``keys`` is how many were found, ``opened`` are the
    segments whose indexes were read for the plan and for the order. Not ``worth`` it: the keys lie in so many blocks that the slices are
    those of the plan.
    """

    slices: list[Slice]
    name: str
    read: Mapping[BlockPlace, Sequence[int]]
    of: Collection[BlockPlace]
    overlay: Collection[BlockPlace]
    keys: int
    opened: frozenset[str]
    worth: bool


def narrowed_to(state: TableState, plan: list[Slice], where: Where, stored: StoredConditions) -> Narrowed | None:
    """A plan for tombstones narrowed to the keys that conditions on the end allow; None where no order can say so for clearly less.

    What is read to know it are the blocks of the order that can hold such tombstones, and those above the lowest level. Of a plan of a few
    blocks that is nothing: the order's and those of its keys would be as many.
    """
    orders = order_runs(state.table)
    if END_TIME.name not in stored or not orders or len(_blocks_of(plan)) <= SHARE:
        return None
    new = _rows(_overlay(plan)) + sum(len(slice_.tail) for slice_ in plan if slice_.tail is not None)
    limit = min(MOST_KEYS, _read_of(plan) // SHARE) - new
    found = [each for order in orders if (each := _question(state, order, where, stored)) is not None]
    best = min(found, key=lambda each: _rows(each.places), default=None)
    if best is None or _rows(best.places) > limit:
        return None
    with telling_of_prunes(state.blocks.store):
        narrowed = _narrowed(state, plan, best, _before(stored[END_TIME.name]))
    spent = new + _rows(best.places) + _read_of(narrowed.slices)
    return narrowed if spent * SHARE <= _read_of(plan) else replace(narrowed, slices=plan, worth=False)


def _read_of(plan: Iterable[Slice]) -> int:
    """The rows of the blocks that tombstones are read from."""
    return _rows(_blocks_of(plan))


def _blocks_of(plan: Iterable[Slice]) -> dict[BlockPlace, None]:
    """The blocks that tombstones are read from."""
    return _distinct(place for slice_ in plan for place in places_read(slice_, Part.TOMBSTONES))


@dataclass(frozen=True)
class _Question:
    """The blocks of an order that hold what conditions allow, within a range of its keys."""

    order: OrderRun
    keys: KeyRange
    places: dict[BlockPlace, None]
    of: dict[BlockPlace, None]


def _question(state: TableState, order: OrderRun, where: Where, stored: StoredConditions) -> _Question | None:
    """What to read of an order; None where it is not kept, not of all tombstones, or does not begin with what is asked."""
    runs, ranges = order.kept(state), key_ranges(order.shape, where, stored)
    if runs is None or EVERYTHING in ranges:
        return None
    places = _distinct(place for run in runs for keys in ranges for place in run.within(keys))
    spanning = KeyRange(ranges[0].start, ranges[-1].stop) if ranges else EVERYTHING
    return _Question(order, spanning, places, _distinct(place for run in runs for place in run.places))


def plan_ended(state: TableState, until: int) -> list[Slice]:
    """The slices in which versions can have ended at or before a commit time."""
    plan, condition = state.plan(), {END_TIME.name: Between(high=until)}
    found = narrowed_to(state, plan, condition, condition)
    return plan if found is None else found.slices


def _digest(run: OrderRun, parts: Iterable[Facts]) -> tuple[int, int]:
    """How many entries there are, and what is the same for the same ones in whatever order: of whole rows by all that readers see."""
    rows = total = 0
    for part in parts:
        said = [one_chunk(encode_keys(run.shape, part.rows))]
        if run.order.covering:
            said += [version_names(*part.own_names()), *map(part.meant_column, run.table.columns)]
        rows += len(part)
        total += int(hash_rows(said, len(part)).sum(dtype=np.uint64))
    return rows, total % (1 << 64)


def _narrowed(state: TableState, plan: list[Slice], asked: _Question, before: int | None) -> Narrowed:
    """The plan for the keys that the order and the overlay give."""
    ending = list(in_order(partial(ending_keys, state.blocks, state.table, before=before), plan))
    read = partial(_keys_of, state, asked.order, asked.keys)
    parts = [*in_order(read, list(asked.places)), *(keys for _, keys in ending)]
    distinct = pc.unique(pa.chunked_array(parts, pa.binary()))
    keys = distinct.take(pc.sort_indices(distinct))
    slices = [
        without_others(narrowed, touched)
        for slice_, (touched, _) in zip(plan, ending, strict=True)
        for narrowed in for_keys([slice_], keys)
    ]
    return Narrowed(
        slices=[slice_ for slice_ in slices if slice_.places or slice_.tail is not None],
        name=asked.order.order.name,
        read={place: bytes_to_read(place, asked.order.shape, asked.order.of_key) for place in asked.places},
        of=asked.of,
        overlay=_overlay(plan),
        keys=len(keys),
        opened=frozenset(
            place.name
            for places in (asked.of, *(places_read(p, Part.EVERYTHING) for p in plan))
            for place in places
            if not place.is_at_hand
        ),
        worth=True,
    )


def _keys_of(state: TableState, order: OrderRun, within: KeyRange, place: BlockPlace) -> pa.Array:
    """The keys of tombstones that a block of an order names within a range."""
    return one_chunk(encode_keys(state.table, read_block(state.blocks.store, place, order.shape, order.of_key, within).rows))


def without_others(slice_: Slice, touched: pa.Array) -> Slice:
    """A slice of wanted keys without the blocks that hold others only: a key that is in no overlay is a tombstone or none."""
    mine = touched.filter(pc.is_in(touched, value_set=slice_.wanted))
    return replace(
        slice_,
        live=tuple(place for place in slice_.live if holds_one(place, mine)),
        upper=tuple(place for place in slice_.upper if holds_one(place, mine)),
        events=tuple(event for event in slice_.events if holds_one(event.place, mine)),
        tail=slice_.tail if len(mine) else None,
    )


def _before(condition: Sequence[int] | Between) -> int | None:
    """The first commit time that is too late for a condition on when versions ended; None where none is."""
    if not isinstance(condition, Between):
        return max(condition, default=-1) + 1
    if condition.high is None:
        return None
    return int(condition.high) + (not condition.below)


def _overlay(plan: Iterable[Slice]) -> dict[BlockPlace, None]:
    """The blocks of the overlay, above the lowest level."""
    return _distinct(place for slice_ in plan for place in (*slice_.upper, *(event.place for event in slice_.events)))


def _distinct(places: Iterable[BlockPlace]) -> dict[BlockPlace, None]:
    return dict.fromkeys(places)


def _rows(places: Iterable[BlockPlace]) -> int:
    return sum(place.header.rows for place in places)
