"""Scans: one table of a snapshot, or its tombstones, as Arrow data.

A scan is planned from indexes alone; each slice is read, folded, filtered and shown on its own, so memory does not grow with the table.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import pyarrow as pa

from ..errors import UNREADABLE
from ..format.headers import TOMBSTONES, BlockClass, BlockPlace
from ..format.losses import STRICT, Losses
from ..log.blocks import Blocks, bytes_to_read
from ..log.pruned import telling_of_prunes
from ..model.facts import FACT_COLUMNS, Facts
from ..model.keys import KeyRange
from ..model.render import on_request, output_schema, render, storage_columns
from ..model.tables import Table
from ..parallel import in_order
from ..state.contents import TableState
from ..state.orders import Narrowed, narrowed_to
from ..state.plan import Part, Slice, rows_of_slices
from ..state.read import Selection, places_read, read_batches
from ..state.shares import Share, shares
from ..state.skipping import Unmatched
from ..state.sums import kept_totals
from ..state.untouched import Untouched, outlook, untouched
from ..store.base import Store
from ..store.obstacles import PastObstacles
from ..where.conditions import Where, allowed_values, check, key_ranges, matching, names_keys, wanted_keys
from ..where.timed import settled
from .files import Asked, Files, native_files
from .in_duckdb import native_relation
from .in_html import Plan
from .in_polars import native_frame
from .reads import BATCH_ROWS, Read, ReadTask

_LONGEST = 400
_NAMED = "its conditions name keys, which are looked up"


@dataclass(frozen=True)
class ScanTask:
    """What is needed to read any slice of a scan, anywhere: picklable.

    ``looks_up``: slices ask for the keys that the conditions name. ``by_key``: rows are wanted in the order of their keys.
    """

    table: Table
    part: Part
    schema: pa.Schema
    where: tuple[tuple[str, Any], ...]
    ignores_corruption: bool = False
    looks_up: bool = False
    by_key: bool = True

    def read(self, blocks: Blocks, slice_: Slice) -> Iterator[pa.Table]:
        """The rows of a slice that match, a few thousand at a time."""
        for facts in read_batches(blocks, self.table, slice_, self._selection):
            if len(facts):
                yield render(facts, self.table, self.schema)

    @property
    def _selection(self) -> Selection:
        return Selection(self.part, self.columns, self._meets if self.conditions else None, self.by_key)

    def _meets(self, facts: Facts) -> pa.Array:
        return matching(render(facts, self.table, self._tested), self.conditions, self._allowed)

    @cached_property
    def _tested(self) -> pa.Schema:
        return output_schema(self.table, tombstones=self.part is Part.TOMBSTONES, columns=list(self.conditions))

    @cached_property
    def columns(self) -> set[str]:
        """The storage columns that it needs."""
        return storage_columns(self.table, {**dict.fromkeys(self.schema.names), **self.conditions})

    @cached_property
    def conditions(self) -> dict[str, Any]:
        """The conditions that rows are checked by."""
        known = self.table.key if self.looks_up else ()  # only rows with the wanted keys come back
        return {name: condition for name, condition in self.where if name not in known}

    @cached_property
    def _allowed(self) -> dict[str, pa.Array]:
        """The values that the conditions allow."""
        conditions = dict(self.where)
        tested = output_schema(self.table, tombstones=self.part is Part.TOMBSTONES, columns=list(conditions))
        return allowed_values(self.table, conditions, tested)


@dataclass(frozen=True)
class ShareTask:
    """A share of a scan."""

    scan: ScanTask
    share: Share

    @property
    def rows(self) -> int:
        """An upper bound."""
        return self.share.rows

    def read(self, store: Store) -> Iterator[pa.Table]:
        """A table a block, or a slice where blocks have to be merged."""
        losses = Losses()
        blocks = Blocks(PastObstacles(store, losses.add), losses) if self.scan.ignores_corruption else Blocks(store, STRICT)
        for slice_ in self.share.unpacked():
            yield from self.scan.read(blocks, slice_)


class _Planned(NamedTuple):
    """The slices of the keys that can match, the same without blocks in which nothing matches, and how an order has narrowed these."""

    whole: list[Slice]
    matching: list[Slice]
    narrowed: Narrowed | None

    @property
    def slices(self) -> list[Slice]:
        """What is to be read."""
        return self.matching if self.narrowed is None else self.narrowed.slices


class Beside(NamedTuple):
    """What else a snapshot shows of a table's rows, and who reads columns of both, with conditions on the table's."""

    fields: Sequence[pa.Field]
    read: Callable[[Sequence[str], Where], Read]


class Scan(Read):
    """A read of one table at a snapshot's cut; where keys are given, encoded and sorted, it is ``among`` their rows alone."""

    def __init__(
        self,
        state: TableState,
        *,
        tombstones: bool,
        columns: Sequence[str] | None,
        where: Where,
        among: pa.Array | None = None,
        beside: Beside | None = None,
    ) -> None:
        self._state = state
        self._among = among
        self._beside = beside
        everything = output_schema(state.table, tombstones=tombstones, columns=None)
        every = [*everything.names, *on_request(tombstones=tombstones)]
        self._available = output_schema(state.table, tombstones=tombstones, columns=every)
        where = settled(where, self._available, state.table.name)
        self._stored = check(state.table, where, self._available)
        self.task = ScanTask(
            table=state.table,
            part=Part.TOMBSTONES if tombstones else Part.LIVE,
            schema=output_schema(state.table, tombstones=tombstones, columns=columns),
            where=tuple(where.items()),
            ignores_corruption=state.blocks.on_damage.reads_on,
            looks_up=among is None and names_keys(state.table, self._stored),
        )

    def _of_what(self) -> str:
        tombstones = ", tombstones" if self.task.part is Part.TOMBSTONES else ""
        return f"{self.task.table.name!r}{tombstones}, {f'where {dict(self.task.where)}, ' if self.task.where else ''}"[:_LONGEST]

    @property
    def schema(self) -> pa.Schema:
        """The schema of what the scan returns."""
        return self.task.schema

    @property
    def available(self) -> pa.Schema:
        """The table's columns, what every table shows on request, and what else a snapshot shows ``beside`` these."""
        return pa.schema([*self._available, *(self._beside.fields if self._beside is not None else ())])

    def plan(self) -> list[Slice]:
        """The slices to read, in key order. Of tombstones of a time it reads an order, and the keys that the overlay names."""
        return self._planned().slices

    def _planned(self) -> _Planned:
        where, only_live = dict(self.task.where), self.task.part is Part.LIVE
        if self._among is not None:
            slices = self._state.plan_keys(self._among, only_live=only_live, filtered=False) if len(self._among) else []
            return _Planned(slices, slices, None)
        keys = wanted_keys(self.task.table, self._stored)
        if keys is None:
            ranges, target = key_ranges(self.task.table, where, self._stored), rows_of_slices(self.task.columns)
            whole = self._state.plan(ranges, only_live=only_live, target=target)
        else:
            whole = self._state.plan_keys(keys, only_live=only_live) if len(keys) else []
        matching = self._matching(whole)
        narrowed = None if only_live or keys is not None else narrowed_to(self._state, matching, where, self._stored)
        return _Planned(whole, matching, narrowed)

    def _matching(self, slices: list[Slice]) -> list[Slice]:
        """The slices without blocks in which nothing matches. Who reads past damage asks every question of the same blocks."""
        if not self.task.conditions or self.task.ignores_corruption:
            return slices
        unmatched = Unmatched(self.task.table, self.task.conditions, self._stored)
        return list(unmatched.left_out_of(slices, self.task.part))

    @property
    def lies_in_files(self) -> bool:
        """Nearly all of them."""
        return True

    def files(self) -> Files:
        """See ``Read.files``. Reads the keys of what lies over the lowest level, and looks for them in its files."""
        table, part, where = self.task.table, self.task.part, dict(self.task.where)
        if self.task.looks_up:
            return Files(self.schema, (), self, why=_NAMED)
        found = self._untouched(key_ranges(table, where, self._stored))
        native = (
            found
            if isinstance(found, str)
            else native_files(found, table, Asked.of_table(table, part, self.schema, where), self._state.blocks.store.url)
        )
        if isinstance(found, str) or isinstance(native, str):
            return Files(self.schema, (), self, why=str(native))
        over = Scan(self._state, tombstones=part is Part.TOMBSTONES, columns=self.schema.names, where=where, among=found.touched)
        return Files(self.schema, native, over, len(found.touched))

    def count(self) -> int:
        """How many rows there are: as indexes or kept sums tell where all are meant, else by reading what the conditions are on."""
        if not self.task.where and self._among is None and not self.task.ignores_corruption:
            only_live = self.task.part is Part.LIVE
            known = self._state.folded_rows(frozenset({BlockClass.LIVE}) if only_live else TOMBSTONES)
            if known is None and only_live and (kept := kept_totals(self._state)) is not None:
                known, _ = kept
            if known is not None:
                return known
        return sum(map(len, self.only([*self.task.conditions, self.task.table.key[-1]][:1]).in_any_order().to_batches()))

    def only(self, columns: Sequence[str]) -> Read:
        """The scan of these columns alone, also of what is shown beside the table's."""
        tombstones, where = self.task.part is Part.TOMBSTONES, dict(self.task.where)
        if self._beside is not None and not {field.name for field in self._beside.fields}.isdisjoint(columns):
            return self._beside.read(columns, where)
        return Scan(self._state, tombstones=tombstones, columns=columns, where=where, among=self._among, beside=self._beside)

    def in_any_order(self) -> Scan:
        """See ``InBatches.in_any_order``: what was put again comes after the other rows of its slice."""
        found = copy(self)
        found.task = replace(self.task, by_key=False)
        return found

    def to_duckdb(self, connection: Any) -> Any:
        """See ``InBatches.to_duckdb``, and the module ``in_duckdb`` for what DuckDB reads itself, and what it does not see."""
        return native_relation(connection, self.files(), self, self._state.blocks.store)

    def to_polars(self) -> Any:
        """See ``InBatches.to_polars``, and the module ``in_polars`` for what Polars reads itself, and what it does not see."""
        return native_frame(self.files(), self, self._state.blocks.store)

    def _untouched(self, ranges: Sequence[KeyRange]) -> Untouched | str:
        """What stands in files; what is damaged there is for who reads it to tell."""
        try:
            with telling_of_prunes(self._state.blocks.store):
                return untouched(self._state, self.task.part, ranges)
        except UNREADABLE as error:
            return error.message.rstrip(".")

    def tasks(self, most_rows: int) -> list[ReadTask]:
        """The read in parts of at most about so many rows, for other processes; none where there is nothing to read."""
        return [ShareTask(self.task, share) for share in shares(self.task.table, self.task.part, self.plan(), most_rows)]

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, in key order unless any will do, in batches of at most 65,536; memory does not grow with the table."""
        for tables in in_order(self._read, self.plan()):
            for rows in tables:
                yield from rows.combine_chunks().to_batches(max_chunksize=BATCH_ROWS)

    def _read(self, slice_: Slice) -> list[pa.Table]:
        return list(self.task.read(self._state.blocks, slice_))

    def explain(self) -> str:
        """What the scan reads and what it skips, in a few lines: blocks and bytes of each level, uncovered events, requests.

        It plans, which reads indexes, and reads no row. The overlay of a block is known only when it is read: a look-up of a key that was
        put again can do with less, and a late put can need more. Where an order is used, planning reads its blocks, and those that lie
        over the lowest level once more than reading does.
        """
        whole, matching, narrowed = planned = self._planned()
        plan = planned.slices
        read = self._asked_of(plan)
        events = self._asked_for((slice_, block.place) for slice_ in plan for block in slice_.events)
        levels = self._state.blocks_by_level()
        lines = [f"table {self.task.table.name}, {self.task.part.value}: {len(plan)} slices"]
        lines += [
            f"level {level}: {_share({place: read[place] for place in places if place in read}, places)}"
            for level, places in enumerate(levels)
        ]
        before, left = self._asked_of(whole), self._asked_of(matching)
        left_out = [sizes for place, sizes in before.items() if place not in left]
        marked = {place for slice_ in plan for place in slice_.unmatched}
        if left_out or marked:
            said = f"statistics: {len(left_out):,} blocks left out, {sum(map(sum, left_out)):,} bytes"
            lines.append(said + (f"; {len(marked):,} more unless a key has to be folded" if marked else ""))
        if narrowed is not None:
            counts = f"{narrowed.keys:,} keys{'' if narrowed.worth else ', in too many blocks'}"
            lines.append(f"order {narrowed.name}: {_share(narrowed.read, narrowed.of)}, {counts}")
        if self._state.events:
            lines.append(f"not covered: {_share(events, [block.place for block in self._state.events])}")
        if self._state.tail:
            lines.append(
                f"not covered: {sum(len(p.tail) for p in plan if p.tail is not None):,} of {len(self._state.tail):,} events"
            )
        every = {place for places in levels for place in places}
        of_order = sum(map(len, narrowed.read.values())) if narrowed is not None else 0
        beside = narrowed.overlay if narrowed is not None else ()
        opened = _files(before) | (narrowed.opened if narrowed is not None else frozenset())
        ranges = key_ranges(self.task.table, dict(self.task.where), self._stored)
        lines.append(f"not natively: {_NAMED}" if self.task.looks_up else outlook(self._state, self.task.part, ranges))
        segments = opened | _files(every)
        lines.append(f"checkpoints: {self._state.checkpoints}, segments: {len(opened)} of {len(segments)}")
        skipped = len(every) + len(self._state.events) - len(read) - len(events)
        needed = sum(map(len, (*read.values(), *events.values()))) + of_order + sum(not place.is_at_hand for place in beside)
        lines.append(
            f"requests: {needed + len(opened):,} ({needed:,} blocks, {len(opened):,} indexes, each once), {skipped:,} blocks skipped"
        )
        return Plan("\n".join(lines))

    def _asked_of(self, plan: Sequence[Slice]) -> dict[BlockPlace, list[int]]:
        """For each block of a checkpoint that the slices are read from the bytes of the requests."""
        return self._asked_for((slice_, place) for slice_ in plan for place in places_read(slice_, self.task.part))

    def _asked_for(self, places: Iterable[tuple[Slice, BlockPlace]]) -> dict[BlockPlace, list[int]]:
        """For each block the bytes of the requests that reading it takes, at the most: stamps are left where nothing has to be folded."""
        table, columns = self.task.table, self.task.columns
        with_key = {*columns, *(column.field_name for column in table.key_columns)}
        asked = {}
        for slice_, place in places:
            whole = slice_.wanted is None and slice_.keys.covers(place.header.first_key, place.header.last_key)
            settled = columns if whole else with_key
            asked[place] = bytes_to_read(place, table, settled if slice_.settled else {*with_key, *FACT_COLUMNS})
        return asked


def _files(places: Collection[BlockPlace]) -> set[str]:
    """The segments that have to be opened for these."""
    return {place.name for place in places if not place.is_at_hand}


def _share(read: Mapping[BlockPlace, Sequence[int]], places: Collection[BlockPlace]) -> str:
    size, total = sum(sum(sizes) for sizes in read.values()), sum(place.length for place in places)
    return f"{len(read):,} of {len(places):,} blocks, {size:,} of {total:,} bytes"
