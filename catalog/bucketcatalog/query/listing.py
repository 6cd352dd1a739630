"""Ordered listings: pages of names below a prefix, with groups at a delimiter, as object stores list.

Order is that of the names' UTF-8 bytes. Source: RFD 149, "Higher level operations", and what its implementation does; a prefix is taken
literally: there is no pattern in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InvalidOption
from ..model.arrays import one_chunk
from ..model.keys import KeyRange, after_prefix, lower_bound, prefix_range
from ..model.render import output_schema, render
from ..model.tables import DataType
from ..state.contents import TableState
from ..state.plan import Part
from ..state.read import read_slice
from ..where.conditions import raw_text, stored_condition
from .in_html import rows_html

_SLICE = 8_192


@dataclass(frozen=True)
class Page:
    """A page of a listing: rows and groups, each in byte order, and the marker of the next page if there is one.

    Groups and marker are of the listed column's type.
    """

    rows: pa.Table
    groups: Sequence[str | bytes]
    next_marker: str | bytes | None

    def __repr__(self) -> str:
        return f"Page({len(self.rows):,} rows, {len(self.groups):,} groups, next_marker={self.next_marker!r})"

    def _repr_html_(self) -> str:
        """For notebooks: the first rows."""
        return rows_html(f"page, {len(self.groups):,} groups", lambda: self.rows)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows for libraries that take any Arrow stream."""
        return self.rows.__arrow_c_stream__(requested_schema)


def list_page(
    state: TableState, leading: Mapping[str, Any], prefix: str, delimiter: str | None, marker: str | bytes | None, limit: int
) -> Page:
    """One page; see ``Snapshot.list``."""
    table = state.table
    name_column = table.key_columns[-1]
    if name_column.type not in (DataType.STRING, DataType.BYTES):
        raise InvalidOption(f"Table {table.name!r} is not keyed by names.", next_step="Scan it instead.")
    if delimiter is not None and not delimiter:
        raise InvalidOption("The delimiter is empty.", next_step="Give one of at least one character, such as '/', or none.")
    if not isinstance(limit, int) or limit < 1:
        raise InvalidOption(f"A page of a listing cannot have the limit {limit!r}.", next_step="Give a whole number above 0.")
    below = [stored_condition(table, column, leading[column.name], alone=True) for column in table.key_columns[:-1]]
    raw_prefix, raw_delimiter, raw_marker = (
        raw_text(table, name_column, text) for text in (prefix or "", delimiter or "", marker or "")
    )
    keys = prefix_range(table, below, raw_prefix)
    collector = _Collector(raw_prefix, raw_delimiter or None, limit)
    start = prefix_range(table, below, None).start
    first = keys.start if marker is None else max(keys.start, start + _after_marker(raw_marker, collector))
    rest = keys.intersect(KeyRange(first, None))
    parts = [] if rest is None else list(_collect(state, rest, start, collector, look_up=limit <= _SLICE))
    rows = pa.concat_tables(parts) if parts else output_schema(table).empty_table()
    last = collector.last if collector.has_more else None
    if name_column.type is DataType.BYTES:
        return Page(rows, collector.groups, last)
    return Page(rows, [group.decode() for group in collector.groups], None if last is None else last.decode())


def _after_marker(marker: bytes, collector: _Collector) -> bytes:
    """The first name that a page after ``marker`` can hold: a group that the marker lies in sorts before it and is passed over."""
    group = collector.group_of(marker)
    return marker + b"\x00" if group is None else after_prefix(group) or marker + b"\x00"


class _Collector:
    """Fills one page, in order: what was taken last and how much room is left."""

    def __init__(self, prefix: bytes, delimiter: bytes | None, limit: int) -> None:
        self.prefix = prefix
        self.delimiter = delimiter
        self.room = limit
        self.groups: list[bytes] = []
        self.last: bytes | None = None
        self.full = False

    def group_of(self, name: bytes) -> bytes | None:
        """The group that a name belongs to, or None."""
        if self.delimiter is None or not name.startswith(self.prefix):
            return None
        at = name.find(self.delimiter, len(self.prefix))
        return None if at < 0 else name[: at + len(self.delimiter)]

    def take(self, names: pa.Array, after: bytes) -> Iterator[tuple[int, int]]:
        """Take names from ``after`` on, in turn and of a group the first alone, while there is room; gives runs that are rows."""
        grouped = self._grouped(names)
        at = lower_bound(names, after)
        while at < len(names):
            nearest = int(np.searchsorted(grouped, at))
            plain = int(grouped[nearest]) if nearest < len(grouped) else len(names)
            taken = min(plain - at, self.room)
            if taken:
                yield at, at + taken
                self.room -= taken
                self.last = names[at + taken - 1].as_py()
            at += taken
            if at < len(names) and self.room == 0:
                self.full = True
                return
            if at < len(names):
                at = self._take_group(names, at)

    def _take_group(self, names: pa.Array, at: int) -> int:
        """Take the group of a name; gives the first name behind it."""
        group = self.group_of(names[at].as_py())
        assert group is not None
        self.groups.append(group)
        self.room -= 1
        self.last = group
        behind = after_prefix(group)
        return len(names) if behind is None else lower_bound(names, behind)

    def _grouped(self, names: pa.Array) -> npt.NDArray[np.int64]:
        """The places of the names that belong to groups."""
        if self.delimiter is None or not len(names):
            return np.empty(0, dtype=np.int64)
        longest = pc.max(pc.binary_length(names)).as_py()
        rest = pc.binary_slice(names, start=len(self.prefix), stop=max(longest, len(self.prefix)))
        return np.flatnonzero(pc.greater_equal(pc.find_substring(rest, pattern=self.delimiter), 0))

    @property
    def has_more(self) -> bool:
        """Whether something lies behind the page, which then begins after ``last``."""
        return self.full and self.last is not None


def _collect(state: TableState, keys: KeyRange, start: bytes, collector: _Collector, *, look_up: bool) -> Iterator[pa.Table]:
    """The rows of the page from the slices of a range, until it is full; what lies in a group that was taken is passed over."""
    table = state.table
    of_key = [column.field_name for column in table.key_columns]
    names_first = collector.delimiter is not None and not state.blocks.on_damage.reads_on
    after = b""
    for slice_ in state.plan([keys], only_live=True, target=_SLICE):
        if slice_.keys.stop is not None and slice_.keys.stop <= start + after:
            continue
        slice_ = replace(slice_, look_up=look_up)
        facts = read_slice(state.blocks, table, slice_, Part.LIVE, of_key if names_first else None)
        names = one_chunk(facts.rows.column(table.key_columns[-1].field_name)).cast(pa.binary())
        runs = list(collector.take(names, after))
        if runs and names_first:
            facts = read_slice(state.blocks, table, slice_, Part.LIVE)
        for first, last in runs:
            yield render(facts.slice(first, last), table, output_schema(table))
        if collector.full:
            return
        if collector.groups and collector.last == collector.groups[-1]:
            behind = after_prefix(collector.groups[-1])
            if behind is None:
                return
            after = behind
