"""Blocks that a scan can leave out, since the statistics of their columns show that no row of theirs meets its conditions.

Rows of the base pass as they are unless the overlay names their keys. So such a block is left out where no overlay reaches. Elsewhere it is
marked, for what an overlay names is known when it is read: then the block is read if a key of it has to be folded, and only then. What lies
in the overlay may hide what lies below, and is always read.

Statistics stand in the indexes of segments, which whoever plans has read. Blocks within messages have none, and are at hand.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from ..errors import CorruptionError, UnsupportedFormat
from ..format.columns import columns_to_read, stored_names
from ..format.headers import BlockPlace
from ..format.parquet import RowGroup, column_statistics
from ..format.statistics import ColumnStatistics
from ..model.keys import KeyRange, after_prefix
from ..model.tables import Column, Table
from ..where.conditions import Between, Prefix, StoredConditions, Where, listed
from .indexes import holds_one
from .plan import Part, Slice
from .read import holds_rows_of


@dataclass(frozen=True, slots=True)
class _Allowed:
    """What a condition allows of a column: sorted values or a range, text as bytes, and ``nothing``, which is no value."""

    values: Sequence[Any] | Between
    nothing: bool

    def meets(self, low: Any, high: Any) -> bool:
        """Whether it can allow one of some values, of which none is below ``low`` or above ``high``; these are None where nobody knows."""
        if not isinstance(self.values, Between):
            at = 0 if low is None else bisect_left(self.values, low)
            return at < len(self.values) and (low is None or self.values[at] <= high)
        start, stop = self.values.low, self.values.high
        return low is None or (
            (start is None or (high > start if self.values.above else high >= start))
            and (stop is None or (low < stop if self.values.below else low <= stop))
        )


class Unmatched:
    """Which blocks hold no row of a table that meets the conditions; ``stored`` is what ``check`` has made of these."""

    def __init__(self, table: Table, where: Where, stored: StoredConditions) -> None:
        self._table = table
        self._allowed = {name: _allowed(condition, stored.get(name, ())) for name, condition in where.items()}
        self._known: dict[BlockPlace, bool] = {}
        self._columns: dict[tuple[str, str], list[str] | None] = {}
        self._refused: dict[str, bool] = {}

    def left_out_of(self, slices: Iterable[Slice], part: Part) -> Iterator[Slice]:
        """The slices without such blocks, or with these marked; slices of which nothing is left are left out too."""
        for slice_ in slices:
            found = {p for p in (*slice_.live, *slice_.rest) if self._is_certain(p)}
            marked = frozenset(place for place in found if _may_lie_over(slice_, place))
            gone = found - marked
            live, rest = (tuple(place for place in of if place not in gone) for of in (slice_.live, slice_.rest))
            if not slice_.settled or any(holds_rows_of(place, part) for place in (*live, *rest)):
                yield replace(slice_, live=live, rest=rest, unmatched=marked)

    def _is_certain(self, place: BlockPlace) -> bool:
        """Whether a block is one of them, by statistics that are at hand."""
        group, rows = place.row_group, place.header.rows
        if group is None or group.footer.needs() or self._is_refused(place, group):
            return False
        if place not in self._known:
            self._known[place] = not all(self._can_meet(group, rows, name, each) for name, each in self._allowed.items())
        return self._known[place]

    def _is_refused(self, place: BlockPlace, group: RowGroup) -> bool:
        """Whether reading a block can fail by what its file's columns are: then it is read, so that nobody's conditions hide that."""
        if place.name not in self._refused:
            self._refused[place.name] = False
            try:
                columns_to_read(group.footer.layout.schema, self._table, place.header.block_class, None, place.name)
            except (CorruptionError, UnsupportedFormat):
                self._refused[place.name] = True
        return self._refused[place.name]

    def _can_meet(self, group: RowGroup, rows: int, name: str, allowed: _Allowed) -> bool:
        layout, column, file = group.footer.layout, self._table.by_name.get(name), group.footer.name
        if (file, name) not in self._columns:
            self._columns[file, name] = stored_names(layout.schema, self._table, name)
        names = self._columns[file, name]
        if names is None or len(names) > 1:
            return True
        said = column_statistics(group, names[0]) if names else ColumnStatistics(pa.null(), rows, rows)
        if said is None:
            return True
        return (said.nulls != said.rows and allowed.meets(said.low, said.high)) or (
            said.nulls != 0 and _null_can_meet(column, allowed)
        )


def _may_lie_over(slice_: Slice, place: BlockPlace) -> bool:
    """Whether the overlay may name a key of a block."""
    keys = KeyRange.closed(place.header.first_key, place.header.last_key)
    others = (*slice_.upper, *(event.place for event in slice_.events))
    if any(keys.overlaps(other.header.first_key, other.header.last_key) for other in others):
        return True
    return slice_.tail is not None and holds_one(place, slice_.tail.keys)


def _allowed(condition: Any, stored: Sequence[Any] | Between) -> _Allowed:
    if isinstance(condition, Prefix):
        text = _raw(condition.text)
        return _Allowed(Between(text, after_prefix(text), below=True), nothing=False)
    if isinstance(stored, Between):
        return _Allowed(replace(stored, low=_raw(stored.low), high=_raw(stored.high)), nothing=False)
    return _Allowed(sorted(map(_raw, stored)), nothing=None in listed(condition))


def _raw(value: Any) -> Any:
    """A value in storage form as statistics have it."""
    return value.encode() if isinstance(value, str) else value


def _null_can_meet(column: Column | None, allowed: _Allowed) -> bool:
    """Whether what people see where storage has no value can be allowed."""
    if column is not None and column.implicit:
        zero = _raw(column.zero)
        return allowed.meets(zero, zero)
    return allowed.nothing or (column is not None and column.default.is_of_a_stamp)  # it stands for any time
