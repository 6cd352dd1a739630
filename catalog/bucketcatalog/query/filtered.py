"""Reads whose rows are tested once more, by a condition that is no mapping: whatever it demands of single columns has narrowed them before.

That is a read of the columns that are asked for and those that the test is about, of which the rows that meet it are left. Where there is
nothing to test, there is no such read: then it is as if the conditions had been given as a mapping.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import pyarrow as pa

from ..errors import InvalidOption
from ..model.render import chosen
from ..store.base import Store
from ..where.conditions import Where
from ..where.given import Bound, Predicate, RowsTest
from ..where.given import Condition as Condition
from .files import Files
from .in_html import Plan
from .reads import InBatches, Read, ReadTask

_CHECKED = "its condition has to be checked on the rows"


class FilteredRows(InBatches):
    """The rows of a read that meet a test, with the columns of ``schema``; the ``source`` has those that the test is about too."""

    def __init__(self, source: InBatches, schema: pa.Schema, test: RowsTest) -> None:
        self.source = source
        self.test = test
        self._schema = schema

    @property
    def schema(self) -> pa.Schema:
        """The columns that were asked for."""
        return self._schema

    def only(self, columns: Sequence[str]) -> FilteredRows:
        """The same rows with these of their columns alone."""
        source = self.source.only(list(dict.fromkeys([*columns, *self.test.columns])))
        return type(self)(source, pa.schema([source.schema.field(name) for name in columns]), self.test)

    def in_any_order(self) -> FilteredRows:
        """See ``InBatches.in_any_order``."""
        return type(self)(self.source.in_any_order(), self._schema, self.test)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows in the order of the read."""
        for batch in self.source.to_batches():
            rows = self.test.met_by(pa.Table.from_batches([batch]))
            yield from rows.select(self._schema.names).combine_chunks().to_batches()

    def explain(self) -> str:
        """What is read, and what its rows are tested by."""
        told = getattr(self.source, "explain", lambda: "read whole")()
        lines = [f"not natively: {_CHECKED}" if _is_of_files(line) else line for line in told.splitlines()]
        return Plan("\n".join([*lines, f"checked on the rows: {self.test}"]))


def _is_of_files(line: str) -> bool:
    return line.removeprefix("not ").startswith("natively: ")


@dataclass(frozen=True)
class FilteredTask:
    """A task of the read, and what tests the rows of it."""

    source: ReadTask
    columns: tuple[str, ...]
    test: RowsTest

    @property
    def rows(self) -> int:
        """An upper bound."""
        return self.source.rows

    def read(self, store: Store) -> Iterator[pa.Table]:
        """The rows that meet the test."""
        return (self.test.met_by(rows).select(list(self.columns)) for rows in self.source.read(store))


class Filtered(FilteredRows, Read):
    """The same of rows that can be read in tasks."""

    @property
    def available(self) -> pa.Schema:
        """What can be asked of the read."""
        return cast(Read, self.source).available

    def tasks(self, most_rows: int) -> list[ReadTask]:
        """The tasks of the read."""
        names = tuple(self.schema.names)
        return [FilteredTask(task, names, self.test) for task in cast(Read, self.source).tasks(most_rows)]

    @property
    def lies_in_files(self) -> bool:
        """As of the read."""
        return cast(Read, self.source).lies_in_files

    def files(self) -> Files:
        """See ``Read.files``: none, for engines do not test rows by what this package does."""
        return Files(self.schema, (), self, why=_CHECKED)


Make = Callable[[Sequence[str] | None, Where], Any]
"""Makes a read of columns, None for those that are shown, with conditions of a mapping."""


def filtered(
    name: str,
    predicate: Predicate,
    available: pa.Schema,
    columns: Sequence[str] | None,
    make: Make,
    uuids: Collection[str] = (),
) -> Any:
    """What ``make`` makes for a predicate on some of the ``available`` columns, of ``name``: as such, or with its rows tested.

    ``uuids`` are those columns whose text is that of uuids.

    ``InvalidOption`` where the predicate does not fit the columns, and for a column that is not there.
    """
    bound = predicate.bound(name, available, uuids=uuids)
    if bound.is_exact:
        try:
            return make(columns, bound.where)
        except InvalidOption:
            pass  # a column takes no such condition, or something is wrong that will be found again
    return tested(name, bound, available, columns, make)


def tested(name: str, bound: Bound, available: pa.Schema, columns: Sequence[str] | None, make: Make) -> FilteredRows:
    """What ``make`` makes for a condition, with its rows tested whatever they were narrowed by."""
    shown = make(None, {}).schema.names if columns is None else list(columns)
    schema = chosen(name, available, shown)
    source = _narrowed(bound, list(dict.fromkeys([*shown, *bound.test.columns])), make)
    return (Filtered if isinstance(source, Read) else FilteredRows)(source, schema, bound.test)


def _narrowed(bound: Bound, columns: Sequence[str], make: Make) -> Any:
    """The read, narrowed by those of the conditions that columns take: of enumerations there is no range, and no text is a uuid."""
    try:
        return make(columns, bound.where)
    except InvalidOption:
        kept: Mapping[str, Any] = bound.beside
        found = make(columns, kept)
    for column, condition in bound.pushed.items():
        try:
            found = make(columns, {column: condition, **kept})
        except InvalidOption:
            continue
        kept = {column: condition, **kept}
    return found
