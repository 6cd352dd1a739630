"""Ordered listings: pages of names below a prefix, with groups at a delimiter, as object stores list.

Order is that of the names' UTF-8 bytes. Source: RFD 149, "Higher level operations", and what its implementation does; a prefix is taken
literally: there is no pattern in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .base import TableBase
from .errors import InvalidOption
from .filters import raw_text, stored_condition
from .keys import KeyRange, after_prefix, prefix_range
from .reading import Part, read_slice
from .render import output_schema, render
from .tables import DataType

_SLICE = 8_192


@dataclass(frozen=True)
class Page:
    """A page of a listing: rows and groups, each in byte order, and the marker of the next page if there is one.

    Groups and marker are of the listed column's type.
    """

    rows: pa.Table
    groups: Sequence[str | bytes]
    next_marker: str | bytes | None


def list_page(
    base: TableBase, leading: Mapping[str, Any], prefix: str, delimiter: str | None, marker: str | bytes | None, limit: int
) -> Page:
    """One page; see ``Snapshot.list``."""
    table = base.table
    name_column = table.key_columns[-1]
    if name_column.type not in (DataType.STRING, DataType.BYTES):
        raise InvalidOption(f"Table {table.name!r} is not keyed by names.", next_step="Scan it instead.")
    if not isinstance(limit, int) or limit < 1 or delimiter in ("", b""):
        raise InvalidOption(
            "A listing needs a limit of at least 1 and a delimiter of at least one character.", next_step="Mend it."
        )
    below = [stored_condition(table, column, leading[column.name]) for column in table.key_columns[:-1]]
    raw_prefix, raw_delimiter, raw_marker = (
        raw_text(table, name_column, text) for text in (prefix or "", delimiter or "", marker or "")
    )
    keys = prefix_range(table, below, raw_prefix)
    collector = _Collector(raw_prefix, raw_delimiter or None, limit)
    start = prefix_range(table, below, None).start
    skip = None if marker is None else _after_marker(raw_marker, collector)
    position: bytes | None = keys.start if skip is None else max(keys.start, start + skip)
    parts: list[pa.Table] = []
    while position is not None and not collector.full:
        rest = keys.intersect(KeyRange(position, None))
        if rest is None:
            break
        position = _collect(base, rest, start, collector, parts)
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

    @property
    def has_more(self) -> bool:
        """Whether something lies behind the page, which then begins after ``last``."""
        return self.full and self.last is not None


def _collect(base: TableBase, keys: KeyRange, start: bytes, collector: _Collector, parts: list[pa.Table]) -> bytes | None:
    """Take from the first slices of a range until the page is full or a group is skipped; returns where to go on."""
    table = base.table
    for piece in base.plan([keys], only_live=True, target=_SLICE):
        facts = read_slice(base.store, table, piece, Part.LIVE)
        if not len(facts):
            continue
        names = facts.rows.column(table.key_columns[-1].field_name).combine_chunks().cast(pa.binary())
        plain = _run_of_rows(names, collector)
        take = min(plain, collector.room)
        if take:
            parts.append(render(facts.slice(0, take), table, output_schema(table)))
            collector.room -= take
            collector.last = names[take - 1].as_py()
        if take == len(names):
            continue
        if collector.room == 0:
            collector.full = True
            return None
        group = collector.group_of(names[take].as_py())
        assert group is not None
        collector.groups.append(group)
        collector.room -= 1
        collector.last = group
        after = after_prefix(group)
        return None if after is None else start + after
    return None


def _run_of_rows(names: pa.Array, collector: _Collector) -> int:
    """How many of the first names belong to no group."""
    if collector.delimiter is None:
        return len(names)
    longest = pc.max(pc.binary_length(names)).as_py()
    rest = pc.binary_slice(names, start=len(collector.prefix), stop=max(longest, len(collector.prefix)))
    first = pc.index(pc.greater_equal(pc.find_substring(rest, pattern=collector.delimiter), 0), True).as_py()
    return len(names) if first < 0 else first
