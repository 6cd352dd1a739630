"""Sums and counts of live rows by group, as tables declare them.

A lowest level holds each live row once, so the sums over its rows are kept beside it. Its overlay, higher levels and the tail, is
added as the difference that it makes: the rows of the same keys are taken away as the base has them, and added as they are now. So a sum
costs the groups there are and what has changed since the lowest level was written; without kept sums it costs the rows.

Sums are exact: decimals of 38 digits, more than 2^62 rows of the largest integers need. In blocks they are two 64-bit integers, which every
reader has, and the upper one is left out where it is 0 throughout, as it nearly always is.

An increment of a counter by many writers would lose some; a sum over rows loses none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..format.headers import BlockClass, Purpose, Side
from ..format.segments import RunRows, side_rows
from ..log.blocks import read_block
from ..model.arrays import EXACT, exact_sum, is_constant, one_chunk
from ..model.facts import NO_TRANSACTIONS, Facts
from ..model.render import texts_of
from ..model.tables import Column, DataType, Sum, Table, side_table
from ..parallel import in_order
from .contents import TableState
from .plan import Part, Slice, rows_of_slices
from .read import read_slice, read_touched

SUMS = pa.schema(
    [
        pa.field("table", pa.string(), False),
        pa.field("name", pa.string(), False),
        pa.field("group", pa.map_(pa.string(), pa.string()), False),
        pa.field("value", EXACT, False),
    ]
)
_UPPER = Column(536_870_908, "#upper", DataType.INT64)
_ROWS = Column(536_870_910, "#rows", DataType.INT64)
_VALUE = Column(536_870_911, "#value", DataType.INT64)
"""What a group's row holds beside its key, under the last numbers that a field can have, and under names that none has.

Its sum is the value and 2^64 times the upper."""
_REGROUPED = 1 << 18
_NO_TEXT = pa.nulls(0, pa.string())


def sums_of(state: TableState) -> pa.Table:
    """The table's declared sums over its live rows, with the columns of ``SUMS``: a row for each group that has any, in order."""
    kept = _from_kept(state)
    found = {total: kept.get(total) or _Summing(state.table, total) for total in state.table.sums}
    others = [total for total in found if total not in kept]
    for slice_ in state.plan(only_live=True) if others else ():
        live = read_slice(state.blocks, state.table, slice_, Part.LIVE, _columns(state.table, others))
        for total in others:
            found[total].add(live)
    return _all_shown(state.table, found)


def kept_sums_of(state: TableState, names: Collection[str]) -> pa.Table | None:
    """The same of these sums, from what is kept of them and what lies over it; None where one of them is not kept."""
    kept = _from_kept(state, names)
    if len(kept) < len(names):
        return None
    return _all_shown(state.table, kept)


def kept_totals(state: TableState) -> tuple[int, dict[str, int]] | None:
    """How many live rows there are, and what each declared sum adds up to that is kept beside them, by name; None where none is."""
    kept = {total.name: each.sums() for total, each in _from_kept(state).items()}
    if not kept:
        return None
    rows, *_ = kept.values()
    return exact_sum(rows[_ROWS.field_name]), {name: exact_sum(sums[_VALUE.field_name]) for name, sums in kept.items()}


def _from_kept(state: TableState, names: Collection[str] | None = None) -> dict[Sum, _Summing]:
    """Of the declared sums, or of those of these names, what is kept beside the lowest level, with its overlay."""
    runs = [run for run in sum_runs(state.table) if names is None or run.total.name in names]
    kept = {run.total: rows for run in runs if (rows := run.kept(state)) is not None}
    found = {total: _Summing(state.table, total) for total in kept}
    for total, rows in kept.items():
        found[total].add_sums(rows)
    has_overlay = state.folded_rows(SumRun.classes) is None
    plan = state.plan(only_live=True, target=rows_of_slices(_columns(state.table, kept))) if kept and has_overlay else []
    for sign, live in _differences(state, kept, plan):
        for total in kept:
            found[total].add(live, sign)
    return found


@dataclass(frozen=True)
class SumRun:
    """A declared sum as a side run: a row for each group that has live rows, in the order of the groups."""

    table: Table
    total: Sum
    classes: ClassVar = frozenset({BlockClass.LIVE})

    @property
    def described(self) -> str:
        """What the declaration calls it."""
        return f"sum {self.total.name!r}"

    @property
    def can_be_kept(self) -> bool:
        """Whether the groups have an order: their columns are of the key, so that none of them is empty."""
        return bool(self.total.group) and set(self.total.group) <= set(self.table.key)

    @cached_property
    def side(self) -> Side:
        """Named after the sum and what it sums, so that a declaration that has changed finds no sums of another."""
        by_name = self.table.by_name
        groups = ",".join(by_name[name].field_name for name in self.total.group)
        summed = by_name[self.total.column].field_name if self.total.column else ""
        return Side(self.table.name, Purpose.SUMS, f"{self.total.name}({summed};{groups})")

    @cached_property
    def shape(self) -> Table:
        """The table that the groups make in blocks."""
        columns = (*(self.table.by_name[name] for name in self.total.group), _UPPER, _ROWS, _VALUE)
        return Table(side_table(self.table.name, self.side.name), columns, self.total.group)

    def keeping(self) -> _Keeping:
        """The run in the making."""
        return _Keeping(self)

    def kept(self, state: TableState) -> pa.Table | None:
        """The sums over the lowest level as they are kept beside it; None where they are not, or not of all of its rows.

        Who reads on past damage sums up the rows that can be read.
        """
        if state.blocks.on_damage.reads_on:
            return None
        parts = [
            read_block(state.blocks.store, place, self.shape).rows for run in state.beside(self.side) for place in run.places
        ]
        if not parts or not all(map(self._are_sums, parts)):
            return None
        if sum(exact_sum(rows[_ROWS.field_name]) for rows in parts) != state.lowest_rows(self.classes):
            return None
        return pa.concat_tables([_whole(rows) for rows in parts])

    def _are_sums(self, rows: pa.Table) -> bool:
        """Whether a block says all that it has to: in one that somebody has forged numbers may be missing."""
        said = [column.field_name for column in self.shape.columns if column is not _UPPER]
        return set(said) <= set(rows.column_names) and not any(
            rows[name].null_count for name in (_ROWS.field_name, _VALUE.field_name)
        )

    def differs(self, state: TableState) -> bool:
        """Whether what is kept is not what the live rows of the lowest level make; reads both, a block after the other."""
        if not state.beside(self.side):
            return False
        made, columns = _Summing(self.table, self.total), _columns(self.table, [self.total])
        for place in state.lowest_places(self.classes):
            made.add(read_block(state.blocks.store, place, self.table, columns))
        said, kept = _Summing(self.table, self.total), self.kept(state)
        if kept is not None:
            said.add_sums(kept)
        ordered = [(name, "ascending") for name in made.sums().column_names]
        return kept is None or not said.sums().sort_by(ordered).equals(made.sums().sort_by(ordered))


def sum_runs(table: Table) -> list[SumRun]:
    """The declared sums that checkpoints keep."""
    return [run for run in (SumRun(table, total) for total in table.sums) if run.can_be_kept]


class _Keeping:
    """A sum over live rows that are met a few thousand at a time, each once."""

    def __init__(self, run: SumRun) -> None:
        self._run = run
        self._sum = _Summing(run.table, run.total)

    def add(self, rows: Facts) -> Iterator[RunRows]:
        """Count these rows too; nothing is written before all are counted."""
        self._sum.add(rows)
        return iter(())

    def rest(self) -> Iterator[RunRows]:
        """The sums."""
        rows = self._sum.sums()
        if len(rows):
            yield side_rows(Facts(NO_TRANSACTIONS, _halved(rows)), self._run.table, self._run.shape, self._run.side)


class _Summing:
    """One sum under way; what was added is grouped again once it is much."""

    def __init__(self, table: Table, total: Sum) -> None:
        self.table = table
        self.total = total
        self._parts: list[pa.Table] = []

    def add(self, live: Facts, sign: int = 1) -> None:
        """Count rows, or with -1 take them away."""
        groups = _groups(live, self.table, self.total)
        if len(live) and all(map(is_constant, groups.values())):  # most rows that lie together are of one
            number = len(live)
            if self.total.column is not None:
                number = exact_sum(live.meant_column(self.table.by_name[self.total.column]))
            counts = {_ROWS.field_name: pa.array([sign * len(live)]), _VALUE.field_name: pa.array([sign * number], EXACT)}
            first = {name: values.take(pa.array([0])) for name, values in groups.items()}  # a slice would keep all of the rows
            self.add_sums(pa.table(first | counts))
        else:
            self.add_sums(_summed([_counted(live, self.table, self.total, sign)], self.table, self.total))

    def add_sums(self, rows: pa.Table) -> None:
        """Add sums of other rows."""
        self._parts.append(rows)
        if sum(len(part) for part in self._parts) > max(_REGROUPED, 2 * len(self._parts[0])):
            self._parts = [_summed(self._parts, self.table, self.total)]

    def sums(self) -> pa.Table:
        """One row for each group that has live rows."""
        found = _summed(self._parts, self.table, self.total)
        return found.filter(pc.greater(found[_ROWS.field_name], 0))


def _differences(state: TableState, totals: Iterable[Sum], plan: Iterable[Slice]) -> Iterator[tuple[int, Facts]]:
    """What the overlay makes of the sums: rows of its keys as the base has them, to be taken away, and as they are now."""
    columns = _columns(state.table, totals)

    def of(slice_: Slice) -> tuple[Facts, Facts]:
        return read_touched(state.blocks, state.table, slice_, columns)

    for before, now in in_order(of, [slice_ for slice_ in plan if not slice_.settled]):
        yield from ((-1, before), (1, now))


def _columns(table: Table, totals: Iterable[Sum]) -> set[str]:
    names = {name for total in totals for name in (*total.group, total.column) if name is not None}
    return {table.by_name[name].field_name for name in names}


def _groups(live: Facts, table: Table, total: Sum) -> dict[str, pa.Array]:
    """The columns by which rows are grouped."""
    return {table.by_name[name].field_name: live.meant_column(table.by_name[name]) for name in total.group}


def _counted(live: Facts, table: Table, total: Sum, sign: int) -> pa.Table:
    """For each row its group, and what it counts for."""
    groups = _groups(live, table, total)
    ones = pa.repeat(pa.scalar(sign, pa.int64()), len(live))
    values = ones.cast(EXACT)
    if total.column is not None:
        numbers = pc.fill_null(live.meant_column(table.by_name[total.column]), 0).cast(EXACT)
        values = numbers if sign > 0 else pc.negate(numbers)
    return pa.table({**groups, _ROWS.field_name: ones, _VALUE.field_name: values})


def _halved(rows: pa.Table) -> pa.Table:
    """Sums as blocks hold them; the upper half is null where it is 0."""
    exact = one_chunk(rows[_VALUE.field_name])
    words = np.frombuffer(exact.buffers()[1], dtype="<i8").reshape(-1, 2)[exact.offset : exact.offset + len(exact)]
    upper = words[:, 1] + (words[:, 0] < 0)
    place = rows.schema.get_field_index(_VALUE.field_name)
    whole = rows.set_column(place, _VALUE.field_name, pa.array(words[:, 0]))
    return whole.append_column(_UPPER.field_name, pa.array(upper, mask=upper == 0))


def _whole(rows: pa.Table) -> pa.Table:
    """Sums that blocks hold, as one number each."""
    lower = np.asarray(one_chunk(rows[_VALUE.field_name]))
    there = _UPPER.field_name in rows.column_names
    upper = (np.asarray(pc.fill_null(one_chunk(rows[_UPPER.field_name]), 0)) if there else 0) - (lower < 0)
    words = np.ascontiguousarray(np.stack([lower, upper], axis=1).astype("<i8"))
    exact = pa.Array.from_buffers(EXACT, len(lower), [None, pa.py_buffer(words)])
    left = [name for name in rows.column_names if name not in (_VALUE.field_name, _UPPER.field_name)]
    return rows.select(left).append_column(_VALUE.field_name, exact)


def _summed(parts: Iterable[pa.Table], table: Table, total: Sum) -> pa.Table:
    """One row for each group."""
    groups = [table.by_name[name] for name in total.group]
    counts = {_ROWS.field_name: pa.int64(), _VALUE.field_name: EXACT}
    nothing = pa.schema([*((column.field_name, column.storage_type) for column in groups), *counts.items()]).empty_table()
    joined = pa.concat_tables([nothing, *(part.select(nothing.column_names) for part in parts)], promote_options="permissive")
    names = [column.field_name for column in groups]
    grouped = joined.group_by(names).aggregate([(name, "sum") for name in counts])
    return grouped.rename_columns([*names, *counts])


def _all_shown(table: Table, found: Mapping[Sum, _Summing]) -> pa.Table:
    return pa.concat_tables([SUMS.empty_table(), *(_shown(table, total, each.sums()) for total, each in found.items())])


def _shown(table: Table, total: Sum, rows: pa.Table) -> pa.Table:
    """The sums of the groups as people see them."""
    ordered = rows.sort_by([(table.by_name[name].field_name, "ascending") for name in total.group]) if total.group else rows
    groups = [table.by_name[name] for name in total.group]
    texts = texts_of(groups, [one_chunk(ordered[column.field_name]) for column in groups])
    columns = [
        pa.repeat(table.name, len(ordered)),
        pa.repeat(total.name, len(ordered)),
        texts if groups else pa.MapArray.from_arrays(pa.array([0] * (len(ordered) + 1), pa.int32()), _NO_TEXT, _NO_TEXT),
        one_chunk(ordered[_VALUE.field_name]),
    ]
    return pa.table(columns, schema=SUMS)
