"""Reads with columns that are looked up: what the rows of a table do not hold, and other rows or the log say of them.

Such a column is made of others of the same row, batch by batch, once these were read. Conditions on it are checked on the rows, unless who
looks up can say them of columns of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import pyarrow as pa

from ..model.render import chosen
from ..model.tables import Table
from ..store.base import Store
from ..where.conditions import Where
from ..where.timed import settled
from .files import Files
from .in_duckdb import joined_relation
from .in_html import Plan
from .in_polars import joined_frame
from .reads import Read, ReadTask
from .row_tests import RowTest
from .scan import Scan


class Lookup(Protocol):
    """Some columns and what they are made of: picklable."""

    @property
    def of(self) -> tuple[str, ...]:
        """The columns of a row that they follow from."""
        ...

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        """The columns."""
        ...

    def made(self, rows: pa.Table, store: Store) -> Sequence[pa.Array]:
        """The columns of rows that have at least those that they follow from; ``store`` is the catalog's."""
        ...

    def table(self) -> pa.Table | None:
        """The same as a table: what the one column that they follow from may be, each value once, and these; None where there is none."""
        ...

    def below(self, where: Where) -> tuple[dict[str, Any], dict[str, Any]]:
        """Conditions on these columns as ones on those that they follow from, and what cannot be said so."""
        ...


@dataclass(frozen=True)
class Finish:
    """What makes the rows of a read of those of its source: picklable."""

    lookups: tuple[Lookup, ...]
    schema: pa.Schema
    test: RowTest | None

    def of(self, rows: pa.Table, store: Store) -> pa.Table:
        """The rows with the columns of ``schema``, those that meet the conditions."""
        for lookup in self.lookups:
            for field, values in zip(lookup.fields, lookup.made(rows, store), strict=True):
                rows = rows.append_column(field, values)
        return (rows if self.test is None else self.test.met_by(rows)).select(self.schema.names)


@dataclass(frozen=True)
class LookedUpTask:
    """A task of the source, and what makes the rows of what it reads."""

    source: ReadTask
    finish: Finish

    @property
    def rows(self) -> int:
        """An upper bound."""
        return self.source.rows

    def read(self, store: Store) -> Iterator[pa.Table]:
        """The rows with the columns that were asked for."""
        return (self.finish.of(rows, store) for rows in self.source.read(store))


class Source(Protocol):
    """What is read: rows of a table, or events of one, or what differs in it."""

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        ...

    def tasks(self, most_rows: int) -> list[ReadTask]:
        """See ``Read.tasks``."""
        ...

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows in batches."""
        ...


Make = Callable[[Sequence[str], Where], Source]
"""Makes a read of columns of a table and with conditions on them."""


class LookedUp(Read):
    """The rows of a read, with columns that are looked up.

    ``make`` makes it, of the columns and conditions that are no lookup's; ``own`` are the columns that it can have, and ``table`` is what
    they are of.
    """

    def __init__(
        self,
        table: Table,
        make: Make,
        own: pa.Schema,
        lookups: Sequence[Lookup],
        columns: Sequence[str],
        where: Where,
        store: Store,
    ) -> None:
        self.table = table
        self._available = with_lookups(own, lookups)
        where = settled(where, self._available, table.name)
        self._of_columns = partial(LookedUp, table, make, own, lookups, where=where, store=store)
        self._store = store
        schema = chosen(table.name, self._available, columns)
        below, rest = _divided(where, lookups)
        asked = {*schema.names, *rest}
        used = tuple(each for each in lookups if not asked.isdisjoint(field.name for field in each.fields))
        needed = dict.fromkeys([*(n for n in (*schema.names, *rest) if n in own.names), *(n for each in used for n in each.of)])
        self.source = make(list(needed), below)
        self.finish = Finish(used, schema, RowTest(table.name, rest, self._available) if rest else None)

    def _of_what(self) -> str:
        return f"{self.table.name!r}, "

    @property
    def schema(self) -> pa.Schema:
        """The columns that were asked for."""
        return self.finish.schema

    @property
    def available(self) -> pa.Schema:
        """Those of the source, and what is looked up."""
        return self._available

    def only(self, columns: Sequence[str]) -> LookedUp:
        """The same rows with these of their columns alone."""
        return self._of_columns(columns)

    def tasks(self, most_rows: int) -> list[ReadTask]:
        """The tasks of the source."""
        return [LookedUpTask(task, self.finish) for task in self.source.tasks(most_rows)]

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows in the order of the source."""
        for batch in self.source.to_batches():
            yield from self.finish.of(pa.Table.from_batches([batch]), self._store).combine_chunks().to_batches()

    def joins(self) -> list[pa.Table] | None:
        """The tables that give the columns that are looked up, where engines can read the source and join these by their first column.

        None where something is looked up otherwise, or conditions have to be checked on it.
        """
        tables = [lookup.table() for lookup in self.finish.lookups]
        found = [table for table in tables if table is not None]
        return found if len(found) == len(tables) and self.finish.test is None and isinstance(self.source, Scan) else None

    def to_duckdb(self, connection: Any) -> Any:
        """See ``InBatches.to_duckdb``: as of the source, whose rows are joined with what was looked up where that is a table."""
        joins = self.joins()
        if joins is None or not isinstance(self.source, Scan):
            return super().to_duckdb(connection)
        return joined_relation(connection, self.source.to_duckdb(connection), joins, self.schema.names)

    def to_polars(self) -> Any:
        """See ``InBatches.to_polars``; as ``to_duckdb``."""
        joins = self.joins()
        if joins is None or not isinstance(self.source, Scan):
            return super().to_polars()
        return joined_frame(self.source.to_polars(), joins, self.schema.names)

    @property
    def lies_in_files(self) -> bool:
        """As of the source."""
        return isinstance(self.source, Read) and self.source.lies_in_files

    def files(self) -> Files:
        """See ``Read.files``: none, for what is looked up stands in none."""
        return Files(self.schema, (), self, why="columns of it are looked up: " + ", ".join(self._looked_up))

    @property
    def _looked_up(self) -> list[str]:
        return [field.name for lookup in self.finish.lookups for field in lookup.fields if field.name in self._available.names]

    def explain(self) -> str:
        """What the source reads, and what is looked up."""
        source = self.source.explain() if isinstance(self.source, Read) else f"{type(self.source).__name__.lower()}"
        return Plan(f"{source}\nlooked up: {', '.join(self._looked_up)}")


def with_lookups(own: pa.Schema, lookups: Sequence[Lookup]) -> pa.Schema:
    """The columns of a table with those that can be looked up of its rows."""
    return pa.schema([*own, *(field for lookup in lookups for field in lookup.fields)])


def asks_for(lookups: Sequence[Lookup], names: Sequence[str] | None, where: Mapping[str, Any]) -> bool:
    """Whether columns or conditions are about what is looked up."""
    looked_up = {field.name for lookup in lookups for field in lookup.fields}
    return not looked_up.isdisjoint([*(names or ()), *where])


def _divided(where: Where, lookups: Sequence[Lookup]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The conditions that the source can be given, and those that have to be checked on what was looked up."""
    own: dict[str, Any] = dict(where)
    rest: dict[str, Any] = {}
    for lookup in lookups:
        about = {field.name: own.pop(field.name) for field in lookup.fields if field.name in own}
        if about:
            below, left = lookup.below(about)
            for column, condition in below.items():
                if column in own:
                    rest |= {column: own[column]}  # both have to hold, and a scan takes one of a column
                own[column] = condition
            rest |= left
    return own, rest
