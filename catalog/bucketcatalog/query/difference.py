"""The net difference of a table between two cuts: their live rows compared, range by range of keys.

Both cuts are planned from indexes; ranges in which both read the same blocks are left out. What is left is read and compared one range
after the other, here or by several processes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..format.losses import STRICT, Losses
from ..log.blocks import Blocks
from ..model.arrays import one_chunk
from ..model.facts import NO_TRANSACTIONS, Facts, concat
from ..model.keys import EVERYTHING, KeyRange, encode_keys, lies_within
from ..model.public import public
from ..model.render import output_schema, render, storage_columns, version_names
from ..model.tables import Table
from ..state.contents import TableState
from ..state.keyed import key_conditions
from ..state.plan import Part, Slice
from ..state.read import empty_rows, read_slice
from ..state.shares import PackedSlice, grouped, share_count
from ..store.base import Store
from ..store.obstacles import PastObstacles
from ..where.conditions import Where
from ..where.given import Condition
from .events import BEFORE, CHANGE_TYPE, VERSION_BEFORE, AskedByKey, columns_before, row_before, struct_of
from .looked_up import LookedUp, asks_for, with_lookups
from .named import ANYWHERE, Place, narrowed
from .reads import InBatches, ReadTask
from .snapshot import Snapshot

_AFTER = "_version"
_OF_VERSIONS = ("_kind", "_txn", "_seq", "_row_txn", "_row_seq")
_NOT_OF_THE_KEY = "a row may meet a condition on it at one of the two versions alone."
Plans = tuple[Sequence[Slice], Sequence[Slice]]
"""The slices of one range of keys in two states."""


def diff_schema(table: Table, before: Sequence[str] | None = None) -> pa.Schema:
    """The columns of a table's net difference; with ``before`` those columns of the earlier row too."""
    versions = [pa.field(VERSION_BEFORE, pa.string()), pa.field(_AFTER, pa.string())]
    row = [] if before is None else [pa.field(BEFORE, row_before(table, before))]
    return pa.schema([pa.field(CHANGE_TYPE, pa.string(), False), *table.surface_schema, *versions, *row])


@dataclass(frozen=True)
class DiffAsked(AskedByKey):
    """Which differences of a table are asked for; before is the earlier of two cuts."""

    @property
    def available(self) -> pa.Schema:
        """See ``AskedByKey``."""
        return diff_schema(self.table, self.before)

    @property
    def stored(self) -> set[str] | None:
        """The storage columns that are needed, None for all."""
        if self.columns is None:
            return None
        before = (self.before or ()) if BEFORE in self.columns else ()
        of_rows = [name for name in (*self.columns, *before) if name in self.table.by_name]
        return {*storage_columns(self.table, [*self.table.key, *of_rows]), *_OF_VERSIONS}


@public("available", "end", "start", "table")
@dataclass(frozen=True, repr=False)
class Diff(InBatches):
    """The net difference of one table between two snapshots, by key.

    ``_change_type`` is created, overwritten (another version is live), modified (the same version has another row) or deleted. The row
    is the later one; for a deleted key the earlier. With pre-images ``_before`` is the earlier one wherever there was one.
    """

    start: Snapshot
    end: Snapshot
    asked: DiffAsked

    def _of_what(self) -> str:
        return f"{self.table.name!r}, from {self.start.cut.short} to {self.end.cut.short}, "

    @classmethod
    def between(
        cls,
        start: Snapshot,
        end: Snapshot,
        table: Table,
        where: Condition | None = None,
        *,
        place: Place = ANYWHERE,
        pre_images: bool | Sequence[str] = False,
    ) -> Diff:
        """The difference, of the keys that conditions on their columns allow; ``InvalidOption`` for conditions on others."""
        where = narrowed([end, start], table, place, where, ended=True)
        conditions = key_conditions(table, where, diff_schema(table), _NOT_OF_THE_KEY)
        return cls(start, end, DiffAsked(table, conditions, before=columns_before(table, pre_images)))

    @property
    def table(self) -> Table:
        """Whose rows differ."""
        return self.asked.table

    @property
    def schema(self) -> pa.Schema:
        """The change type, then the table's columns, then the versions before and after; or those of them that are asked for."""
        return self.asked.schema

    @property
    def available(self) -> pa.Schema:
        """The columns that can be asked for."""
        return with_lookups(self.asked.available, self.end.lookups(self.table))

    def only(self, columns: Sequence[str]) -> Diff | LookedUp:
        """The same differences with these of their columns alone; no others are read. ``InvalidOption`` as for a scan.

        On request there is also the name of what a row belongs to, such as its ``bucket``.
        """
        lookups = self.end.lookups(self.table)
        if asks_for(lookups, columns, {}):
            return LookedUp(self.table, self._of, self.asked.available, lookups, columns, {}, self.end.files.store)
        return self._of(columns)

    def _of(self, columns: Sequence[str], _: Where | None = None) -> Diff:
        asked = replace(self.asked, columns=tuple(columns))
        _ = asked.schema
        return replace(self, asked=asked)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The differences in key order; memory does not grow with the table."""
        keys = self.asked.keys()
        for before, after in live_sides(self.start, self.end, self.table, keys.ranges, self.asked.stored):
            yield from _compared(keys.of(before), keys.of(after), self.asked).combine_chunks().to_batches()

    def tasks(self, most_rows: int) -> list[ReadTask]:
        """The comparison in parts of at most about so many rows of both sides, for other processes; none where both read the same."""
        before, after = self.start.state(self.table.name), self.end.state(self.table.name)
        sides = [
            _PackedSides(_packed(old, before.table), _packed(new, after.table))
            for old, new in _differing(before, after, self.asked.keys().ranges)
        ]
        weights = [side.rows for side in sides]
        lost = tuple(self.end.files.on_damage.lost_keys(self.table.name))
        return [
            DiffTask(before.table, self.asked, tuple(sides[at] for at in group), self.end.files.on_damage.reads_on, lost)
            for group in grouped(weights, share_count(sum(weights), most_rows))
        ]


@dataclass(frozen=True)
class _PackedSides:
    """The slices of a range of keys at the two cuts."""

    before: tuple[PackedSlice, ...]
    after: tuple[PackedSlice, ...]

    @property
    def rows(self) -> int:
        """An upper bound of the rows of both."""
        return sum(slice_.rows for slice_ in (*self.before, *self.after))


def _packed(plan: Iterable[Slice], table: Table) -> tuple[PackedSlice, ...]:
    return tuple(PackedSlice.of(slice_, table, Part.LIVE) for slice_ in plan)


@dataclass(frozen=True)
class DiffTask:
    """Ranges of a difference, next to each other in key order. ``before`` is the table as the earlier cut is read; ``lost`` are keys of
    which a side lacks rows, as was known where this was planned.
    """

    before: Table
    asked: DiffAsked
    sides: tuple[_PackedSides, ...]
    ignore_corruption: bool = False
    lost: tuple[KeyRange, ...] = ()

    @property
    def rows(self) -> int:
        """An upper bound: of the rows of both sides."""
        return sum(side.rows for side in self.sides)

    def read(self, store: Store) -> Iterator[pa.Table]:
        """The differences in key order, a table for each range that has some."""
        losses = Losses()
        blocks = Blocks(PastObstacles(store, losses.add), losses) if self.ignore_corruption else Blocks(store, STRICT)
        keys, table = self.asked.keys(), self.asked.table
        for sides in self.sides:
            before = _live(blocks, self.before, [s.unpacked(self.before) for s in sides.before], self.asked.stored)
            after = _live(blocks, table, [s.unpacked(table) for s in sides.after], self.asked.stored)
            lost = [*self.lost, *losses.lost_keys(table.name)]
            before, after = _without(before, table, lost), _without(after, table, lost)
            found = _compared(keys.of(before), keys.of(after), self.asked)
            if len(found):
                yield found


def live_sides(
    start: Snapshot,
    end: Snapshot,
    table: Table,
    ranges: Iterable[KeyRange] = (EVERYTHING,),
    columns: set[str] | None = None,
) -> Iterator[tuple[Facts, Facts]]:
    """The live rows of a table in two snapshots, by ranges of keys in their order; ranges where both read the same blocks are left out.

    So are keys of which one of them lacks rows for damage that both read past, ``end`` and ``start`` by the same files. ``columns`` are
    storage names, with those of the key among them; without them every column is read.
    """
    before, after = start.state(table.name), end.state(table.name)
    for old, new in _differing(before, after, ranges):
        sides = _live(before.blocks, before.table, old, columns), _live(after.blocks, after.table, new, columns)
        lost = end.files.on_damage.lost_keys(table.name)
        yield _without(sides[0], table, lost), _without(sides[1], table, lost)


def _differing(before: TableState, after: TableState, ranges: Iterable[KeyRange]) -> Iterator[Plans]:
    """The plans of both states, by ranges of keys in their order, where they read not the same blocks."""
    for keys in ranges:
        found = {slice_.keys.start for state in (before, after) for slice_ in state.plan([keys], only_live=True)}
        starts = sorted(start for start in found if start > keys.start)
        for first, stop in zip([keys.start, *starts], [*starts, keys.stop], strict=True):
            part = KeyRange(first, stop)
            plans = before.plan([part], only_live=True), after.plan([part], only_live=True)
            if not _same_blocks(*plans):
                yield plans


def _same_blocks(before: Sequence[Slice], after: Sequence[Slice]) -> bool:
    """Whether two plans of one range read the same blocks and nothing else, which makes their states equal."""
    if any(slice_.tail is not None for slice_ in (*before, *after)):
        return False
    return _places(before) == _places(after)


def _places(plan: Sequence[Slice]) -> set[tuple[str, int] | bytes]:
    """Which blocks they are: by their places, and by what they are where one checkpoint after the other holds them."""
    events = {event.place for slice_ in plan for event in slice_.events}
    places = (p for slice_ in plan for p in (*slice_.live, *slice_.rest, *slice_.upper, *events))
    return {(p.name, p.offset) if p.data is None else p.data for p in places}


def _live(blocks: Blocks, table: Table, plan: Iterable[Slice], columns: set[str] | None) -> Facts:
    batches = [read_slice(blocks, table, slice_, Part.LIVE, columns) for slice_ in plan]
    return concat(batches) if batches else Facts(NO_TRANSACTIONS, empty_rows(table))


def _without(facts: Facts, table: Table, lost: Sequence[KeyRange]) -> Facts:
    """The rows whose keys are in none of the ranges."""
    if not lost:
        return facts
    keys = one_chunk(encode_keys(table, facts.rows))
    kept = np.ones(len(facts), np.bool_)
    for each in lost:
        kept &= ~np.asarray(lies_within(keys, each))
    return facts.take(pa.array(np.flatnonzero(kept)))


def _compared(before: Facts, after: Facts, asked: DiffAsked) -> pa.Table:
    """What differs between two sides of one range of keys, in the order of the keys."""
    table, schema = asked.table, asked.schema
    old_keys, new_keys = one_chunk(encode_keys(table, before.rows)), one_chunk(encode_keys(table, after.rows))
    match = pc.index_in(new_keys, value_set=old_keys)
    kept = np.asarray(match.is_valid())
    at = np.asarray(pc.fill_null(match, 0)).astype(np.int64)
    old_version, new_version = (version_names(*facts.event_names(facts.stamps())) for facts in (before, after))
    old_row, new_row = (version_names(*facts.event_names(facts.row_stamps())) for facts in (before, after))
    partner = pa.array(at, mask=~kept)
    same_version = np.asarray(pc.fill_null(pc.equal(new_version, old_version.take(partner)), False))
    same_row = np.asarray(pc.fill_null(pc.equal(new_row, old_row.take(partner)), False))
    change = np.select([~kept, ~same_version, ~same_row], ["created", "overwritten", "modified"], "")
    changed = pa.array(np.flatnonzero(change != ""))
    gone = pa.array(np.flatnonzero(~np.asarray(pc.is_in(old_keys, value_set=new_keys))))
    later = [pa.array(change, pa.string()).take(changed), old_version.take(partner).take(changed), new_version.take(changed)]
    earlier = [pa.repeat(pa.scalar("deleted"), len(gone)), old_version.take(gone), pa.nulls(len(gone), pa.string())]
    shown = output_schema(table, columns=[name for name in schema.names if name in table.by_name])
    tables = []
    for facts, rows, told, was in ((after, changed, later, partner.take(changed)), (before, gone, earlier, gone)):
        columns = dict(zip((CHANGE_TYPE, VERSION_BEFORE, _AFTER), told, strict=True))
        if BEFORE in schema.names:
            columns[BEFORE] = struct_of(before, was, table, schema.field(BEFORE).type)
        columns |= zip(shown.names, render(facts.take(rows), table, shown).columns, strict=True)
        tables.append(pa.table([columns[name] for name in schema.names], schema=schema))
    keys = pa.concat_arrays([new_keys.take(changed), old_keys.take(gone)])
    return pa.concat_tables(tables).take(pc.sort_indices(keys))
