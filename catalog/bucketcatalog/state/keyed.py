"""Conditions on the key alone, for what may have no more than that: events, and rows that one of two cuts has.

They narrow what is read as those of a scan do: by ranges of keys, by the keys that they name, and by a mask over what is read there.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy

import pyarrow as pa

from ..errors import InvalidOption
from ..model.facts import Facts
from ..model.keys import EVERYTHING, KeyRange, encode_keys, lies_within, lower_bound
from ..model.render import output_schema, render
from ..model.tables import Table
from .conditions import Where, allowed_values, check, key_ranges, matching, wanted_keys
from .timed import settled


def key_conditions(table: Table, where: Where | None, shown: pa.Schema, why: str) -> dict[str, object]:
    """The conditions, of which each is on a column of the key and fits it; ``InvalidOption`` says ``why`` no other can be asked for.

    ``shown`` are all columns of what is to be narrowed.
    """
    if not isinstance(where, Mapping | None):
        raise InvalidOption(
            f"{where!r} is not a condition.", next_step="Map columns to values, lists of values, prefix(...) or between(...)."
        )
    found = dict(where or {})
    for name in found:
        if name in shown.names and name not in table.key:
            raise InvalidOption(
                f"The column {name!r} is not one of the key of table {table.name!r}: {why}",
                next_step=f"Give conditions on {', '.join(table.key)}, and filter what is read by the rest.",
            )
    found = dict(settled(found, output_schema(table), table.name))
    check(table, found, output_schema(table))
    return found


class OfKeys:
    """The keys that conditions on key columns allow: ``ranges`` of them, in order, and which blocks and rows have some.

    ``hull`` is from the first key of the ranges to the last. Without conditions it is of all keys.
    """

    def __init__(self, table: Table, where: Where) -> None:
        stored = check(table, where, output_schema(table))
        self.table = table
        self.ranges = key_ranges(table, where, stored)
        self.hull = KeyRange(self.ranges[0].start, self.ranges[-1].stop) if self.ranges else EVERYTHING
        self._keys = wanted_keys(table, stored)
        self._range: KeyRange | None = None
        self._where = dict(where)
        self._tested = output_schema(table, columns=list(where))
        self._allowed = allowed_values(table, where, self._tested)

    def within(self, keys: KeyRange) -> OfKeys:
        """Those of them that lie in a range."""
        twin = copy(self)
        twin.ranges = [part for each in self.ranges if (part := each.intersect(keys)) is not None]
        twin.hull = KeyRange(twin.ranges[0].start, twin.ranges[-1].stop) if twin.ranges else keys
        twin._range = keys if self._range is None else self._range.intersect(keys)
        return twin

    @property
    def columns(self) -> set[str]:
        """The storage columns that have to be read to tell which rows they are."""
        is_narrowed = bool(self._where) or self._range is not None
        return {column.field_name for column in self.table.key_columns} if is_narrowed else set()

    def may_hold(self, first: bytes, last: bytes) -> bool:
        """Whether one of the keys can be among rows with keys from ``first`` to ``last``."""
        if self._range is not None and not self._range.overlaps(first, last):
            return False
        if self._keys is None:
            return any(keys.overlaps(first, last) for keys in self.ranges)
        at = lower_bound(self._keys, first)
        return at < len(self._keys) and self._keys[at].as_py() <= last

    def of(self, facts: Facts) -> Facts:
        """The facts about these keys."""
        if self._range is not None and len(facts):
            facts = facts.filter(lies_within(encode_keys(self.table, facts.rows), self._range))
        if not self._where or not len(facts):
            return facts
        return facts.filter(matching(render(facts, self.table, self._tested), self._where, self._allowed))
