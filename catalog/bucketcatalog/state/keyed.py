"""Conditions on the key alone, for what may have no more than that: events, and rows that one of two cuts has.

They narrow what is read as those of a scan do: by ranges of keys, by the keys that they name, and by a test of what is read there.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ..errors import InvalidOption
from ..model.facts import Facts
from ..model.keys import EVERYTHING, KeyRange, encode_keys, lies_within, lower_bound
from ..model.parents import name_column
from ..model.render import output_schema, render
from ..model.tables import Table
from ..where.conditions import allowed_values, check, key_ranges, matching, wanted_keys
from ..where.given import Condition, Predicate, RowsTest, positions_met, understood
from ..where.timed import settled
from ..wording import either


@dataclass(frozen=True)
class KeyConditions:
    """Conditions on key columns, and a ``test`` of rows by these where the conditions do not say all of it: picklable."""

    where: tuple[tuple[str, Any], ...] = ()
    test: RowsTest | None = None


EVERY_KEY = KeyConditions()


def key_conditions(table: Table, where: Condition | None, shown: pa.Schema, why: str) -> KeyConditions:
    """The conditions, of which each is on a column of the key and fits it; ``InvalidOption`` says ``why`` no other can be asked for.

    ``shown`` are all columns of what is to be narrowed.
    """
    given = understood(where)
    beside = given.beside if isinstance(given, Predicate) else given
    columns = (given.columns or ()) if isinstance(given, Predicate) else ()
    for name in (*beside, *columns):
        if name == name_column(table) and name not in shown.names:
            raise InvalidOption(
                f"A condition cannot be on {name!r} here: only columns of the key of table {table.name!r} are asked for.",
                next_step=either(
                    f"Give the name as bucket=..., in Spark as the option bucket; or give conditions on {', '.join(table.key)}.",
                    "Give the name as BUCKET or --bucket.",
                ),
            )
        if name in shown.names and name not in table.key:
            raise InvalidOption(
                f"The column {name!r} is not one of the key of table {table.name!r}: {why}",
                next_step=f"Give conditions on {', '.join(table.key)}, and filter what is read by the rest.",
            )
    every = output_schema(table)
    beside = settled(beside, every, table.name)
    check(table, beside, every)
    if not isinstance(given, Predicate):
        return KeyConditions(tuple(beside.items()))
    keys = pa.schema([every.field(name) for name in table.key])
    bound = given.bound(table.name, keys, every.names, table.uuid_columns)
    pushed = {column: condition for column, condition in bound.pushed.items() if _fits(table, column, condition, every)}
    is_exact = bound.is_exact and pushed.keys() == bound.pushed.keys()
    return KeyConditions(tuple({**pushed, **beside}.items()), None if is_exact else bound.test)


def _fits(table: Table, column: str, condition: Any, schema: pa.Schema) -> bool:
    try:
        check(table, {column: condition}, schema)
    except InvalidOption:
        return False
    return True


class OfKeys:
    """The keys that conditions on key columns allow: ``ranges`` of them, in order, and which blocks and rows have some.

    ``hull`` is from the first key of the ranges to the last. Without conditions it is of all keys.
    """

    def __init__(self, table: Table, conditions: KeyConditions) -> None:
        where = dict(conditions.where)
        stored = check(table, where, output_schema(table))
        self.table = table
        self.ranges = key_ranges(table, where, stored)
        self.hull = KeyRange(self.ranges[0].start, self.ranges[-1].stop) if self.ranges else EVERYTHING
        self._keys = wanted_keys(table, stored)
        self._range: KeyRange | None = None
        self._where = where
        self._test = conditions.test
        self._tested = _schema_of(table, where)
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
        is_narrowed = bool(self._where) or self._test is not None or self._range is not None
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
        if self._where and len(facts):
            facts = facts.filter(matching(render(facts, self.table, self._tested), self._where, self._allowed))
        if self._test is not None and len(facts):
            shown = render(facts, self.table, _schema_of(self.table, self._test.columns))
            facts = facts.take(positions_met(self._test, shown))
        return facts


def _schema_of(table: Table, columns: Iterable[str]) -> pa.Schema:
    return output_schema(table, columns=list(columns))
