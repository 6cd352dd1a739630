"""Views: rows of a table, or its tombstones, under other names and with columns that are computed from them.

A view holds nothing. It is read as its table is, with what is asked of it handed on as far as the table can answer that: conditions on
renamed columns narrow what is read, those on computed ones are checked on what came back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from ..errors import InvalidOption, UnknownTable
from ..model.arrays import one_chunk
from ..model.render import REQUESTED, chosen, output_schema
from ..model.tables import Table
from ..store.base import Store
from ..where.conditions import Where, allowed_values, check, matching
from ..where.timed import settled
from .blame import Problem, blaming, failed, shown
from .files import Files
from .in_duckdb import renamed_relation
from .in_html import Plan
from .in_polars import renamed_frame
from .reads import Read, ReadTask, refuse_options
from .scan import Scan
from .snapshot import DELETED_PREFIX, Snapshot


@dataclass(frozen=True)
class Computed:
    """A column that Arrow kernels make of others.

    ``compute`` is given the columns ``of`` the view's table, at least one, as arrays of equal length, and returns an array of ``type`` as
    long. It travels to other processes by its name, so it is a function of a module.
    """

    type: pa.DataType
    of: tuple[str, ...]
    compute: Callable[..., pa.Array]
    nullable: bool = True


@dataclass(frozen=True)
class View:
    """What a view shows: the rows of the table (or ``deleted_`` table) ``of`` that meet ``where``.

    ``columns`` are in their order; each is a column of the table, called otherwise or not, or computed.
    """

    name: str
    of: str
    columns: Mapping[str, str | Computed]
    where: Where = field(default_factory=dict)

    def needs(self, name: str) -> tuple[str, ...]:
        """The table's columns that one of the view's is made of; what every table shows on request is called the same in a view."""
        column = self.columns.get(name, name)
        return column.of if isinstance(column, Computed) else (column,)

    def table(self, tables: Mapping[str, Table]) -> Table | None:
        """Of these tables the one that it shows, or whose tombstones."""
        return tables.get(self.of) or tables.get(self.of.removeprefix(DELETED_PREFIX))

    def problem(self, tables: Mapping[str, Table], views: Collection[str] = ()) -> Problem | None:
        """What is wrong with it for tables that are so declared, beside views of these names."""
        tombstones, table = self.of not in tables, self.table(tables)
        if self.of in views:
            return Problem(
                f"shows {self.of!r}, which is a view itself", f"Let it show the table, or write it as an SqlView of {{{self.of}}}"
            )
        if table is None or (tombstones and not table.keeps_tombstones):
            return Problem(
                f"shows {self.of!r}, which is no table that it can be of",
                f"Name one of {', '.join(sorted(tables))}, or the {DELETED_PREFIX} table of one that keeps tombstones",
            )
        every = output_schema(table, tombstones=tombstones).names
        needed = [*self.where, *(column for name in self.columns for column in self.needs(name))]
        unknown = [name for name in needed if name not in (*every, *REQUESTED)]
        if unknown:
            return Problem(
                f"has no column {unknown[0]!r} in {self.of!r}", f"Its columns are {', '.join(every)}: name one of them"
            )
        hidden = [name for name in self.columns if name in REQUESTED]
        if hidden:
            return Problem(f"calls a column {hidden[0]!r}, as every table has one", "Call it otherwise")
        constant = [name for name, column in self.columns.items() if isinstance(column, Computed) and not column.of]
        if constant:
            return Problem(
                f"computes {constant[0]!r} of no column, and nothing says how many values that has",
                "Compute it of a column of the key, whatever that holds",
            )
        try:
            known = output_schema(table, tombstones=tombstones, columns=[*every, *REQUESTED])
            check(table, settled(self.where, known, table.name), known)
        except InvalidOption as error:
            return Problem(f"has a condition that cannot be met: {error.message}", error.next_step)
        return None if self.columns else Problem("has no columns", "Name those that it is to show")

    def shown_as(self, column: str) -> str | None:
        """What the view calls a column of its table, None where it does not show it."""
        return next((name for name, source in self.columns.items() if source == column), None)


_BRACES = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True)
class SqlView:
    """A view that only SQL can say, such as a join. In ``sql`` each table or view stands in braces: ``SELECT ... FROM {objects}``."""

    name: str
    sql: str

    @property
    def of(self) -> tuple[str, ...]:
        """The tables and views that it names."""
        return tuple(dict.fromkeys(_BRACES.findall(self.sql)))

    def problem(self, views: Mapping[str, object]) -> Problem | None:
        """What is wrong with it beside views of these names."""
        if not self.sql.strip():
            return Problem("has no SQL", "Write a query that names what it reads in braces: SELECT ... FROM {objects}")
        left = _BRACES.sub("", self.sql)
        if "{" in left or "}" in left:
            return Problem(
                "has a brace that has no other half",
                "Write each table as {table}; a brace in a text of SQL is char(123) or char(125)",
            )
        if not self.of:
            return Problem("names no table", "Put each table or view in braces: FROM {objects}")
        wrong = [name for name in self.of if not all(part.isidentifier() for part in name.split("."))]
        if wrong:
            return Problem(f"has {wrong[0]!r} in braces, which names no table", "Put only names of tables and views in braces")
        stacked = [name for name in self.of if isinstance(views.get(name), SqlView)]
        if stacked:
            return Problem(f"reads {stacked[0]!r}, which is an SqlView", "Write out what that one reads")
        return None

    def text(self, shown: Mapping[str, str]) -> str:
        """The SQL, with what its tables and views are called where it is run."""
        return _BRACES.sub(lambda found: shown[found[1]], self.sql)


@dataclass(frozen=True)
class Projection:
    """What makes a view's rows of its table's: picklable.

    ``below`` are conditions on the table's columns that its scan was not given, ``where`` those on computed columns of the view.
    ``system`` is whose view it is.
    """

    system: str
    view: View
    table: Table
    schema: pa.Schema
    source: pa.Schema
    tested: pa.Schema
    below: Sequence[tuple[str, Any]]
    where: Where

    @property
    def checks_rows(self) -> bool:
        """Whether rows of the table may be none of the view's."""
        return bool(self.below or self.where)

    @property
    def renamed(self) -> dict[str, str] | None:
        """The columns of the table by what the view calls them, where that is all there is to it; else None."""
        columns = {name: self.view.columns.get(name, name) for name in self.schema.names}
        names = {name: column for name, column in columns.items() if isinstance(column, str)}
        return names if len(names) == len(columns) and not self.checks_rows else None

    def of(self, rows: pa.Table) -> pa.Table:
        """The view's rows."""
        for column, condition in self.below:
            one = {column: condition}
            rows = rows.filter(matching(rows, one, allowed_values(self.table, one, self.source)))
        if self.where:
            allowed = allowed_values(_as_called(self.view, self.table), self.where, self.tested)
            rows = rows.filter(matching(self._shown(rows, self.tested), self.where, allowed))
        return self._shown(rows, self.schema)

    def _shown(self, rows: pa.Table, schema: pa.Schema) -> pa.Table:
        made = (self.column(name, [one_chunk(rows.column(each)) for each in self.view.needs(name)]) for name in schema.names)
        return pa.table(list(made), schema=schema)

    def column(self, name: str, given: Sequence[pa.Array]) -> pa.Array:
        """A column of the view, given the columns of its table that it ``needs``."""
        column, rows = self.view.columns.get(name), len(given[0])
        if not isinstance(column, Computed):
            return given[0]
        part = f"the column {name!r} of its view {self.view.name!r}"
        with blaming(self.system, part):
            values = column.compute(*given)
        values = one_chunk(values) if isinstance(values, pa.ChunkedArray) else values
        if not isinstance(values, pa.Array) or values.type != column.type or len(values) != rows:
            wanted = f"an array of {rows} values of {column.type} was to come of it"
            raise failed(self.system, part, f"{wanted}, and not {_described(values)}")
        if values.null_count and not column.nullable:
            raise failed(self.system, part, "nulls came of it, which it says it has not")
        return values


@dataclass(frozen=True)
class ViewTask:
    """A task of the table's read, and what makes the view's rows of it."""

    source: ReadTask
    projection: Projection

    @property
    def rows(self) -> int:
        """An upper bound."""
        return self.source.rows

    def read(self, store: Store) -> Iterator[pa.Table]:
        """The view's rows."""
        return (self.projection.of(rows) for rows in self.source.read(store))


class ViewScan(Read):
    """A read of a system's view at a snapshot's cut: what the ``projection`` makes of the rows of the scan ``source``."""

    def __init__(self, view: View, snapshot: Snapshot, columns: Sequence[str] | None, where: Where, *, system: str) -> None:
        self.view = view
        if view.of not in snapshot.rows:
            raise UnknownTable(
                f"The view {view.name!r} shows {view.of!r}, which database {snapshot.database!r} does not have.",
                next_step="See the snapshot's tables.",
            )
        every = snapshot.scan(view.of)
        assert isinstance(every, Scan)
        table = every.task.table
        self._available = pa.schema([*_fields(view, every.available), *(every.available.field(name) for name in REQUESTED)])
        schema = chosen(view.name, self._available, list(view.columns) if columns is None else columns)
        where = settled(where, self._available, view.name)
        check(_as_called(view, table), where, self._available)  # in the view's own words, whoever will check it on rows
        pushed, below, rest = _divided(view, where, self._available)
        shown = dict.fromkeys(column for name in [*schema.names, *rest] for column in view.needs(name))
        source = snapshot.scan(view.of, columns=list({**shown, **dict(below)}), where={**view.where, **pushed})
        assert isinstance(source, Scan)
        self.source = source
        tested = pa.schema([self._available.field(name) for name in rest])
        self.projection = Projection(system, view, table, schema, source.schema, tested, below, rest)

    @property
    def schema(self) -> pa.Schema:
        """The columns that were asked for."""
        return self.projection.schema

    @property
    def available(self) -> pa.Schema:
        """The view's columns, and what every table shows on request."""
        return self._available

    def tasks(self, most_rows: int) -> list[ReadTask]:
        """The tasks of the table's read."""
        return [ViewTask(task, self.projection) for task in self.source.tasks(most_rows)]

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows in the order of the table's keys."""
        for batch in self.source.to_batches():
            yield from self.projection.of(pa.Table.from_batches([batch])).combine_chunks().to_batches()

    @property
    def lies_in_files(self) -> bool:
        """Those of the table."""
        return True

    def files(self) -> Files:
        """See ``Read.files``: none, for what engines show of them goes by the names of the table."""
        return Files(self.schema, (), self, why=f"it is a view, and its rows lie in the files of {self.view.of!r}")

    def to_duckdb(self, connection: Any) -> Any:
        """See ``Read.to_duckdb``: read as a scan of the table is, unless columns are computed or conditions are checked on rows."""
        names = self.projection.renamed
        return super().to_duckdb(connection) if names is None else renamed_relation(self.source.to_duckdb(connection), names)

    def to_polars(self) -> Any:
        """See ``Read.to_polars``: read as ``to_duckdb`` says."""
        names = self.projection.renamed
        return super().to_polars() if names is None else renamed_frame(self.source.to_polars(), names)

    def explain(self) -> str:
        """What is read of the table."""
        after = [*(column for column, _ in self.projection.below), *self.projection.where]
        computed = [name for name in self.schema.names if isinstance(self.view.columns.get(name), Computed)]
        said = [("checked on its rows", after), ("computed in Python", computed)]
        told = "".join(f", {what}: {', '.join(names)}" for what, names in said if names)
        lines = self.source.explain().splitlines()
        if after:
            why = f"not natively: {self.view.name} has conditions that are checked on its rows"
            lines = [why if line.removeprefix("not ").startswith("natively: ") else line for line in lines]
        return Plan("\n".join([f"view {self.view.name} of {self.view.of}{told}", *lines]))


@dataclass(frozen=True)
class Views:
    """The views of a system as what can be read.

    ``tables``, by name, are as those who declare the views know them, whatever a database calls their columns. ``listed`` says of a
    snapshot whether they are shown among its tables. Of those that SQL says it only knows what they are called.
    """

    system: str
    views: Mapping[str, View]
    tables: Mapping[str, Table]
    listed: Callable[[Snapshot], bool]
    in_sql: Collection[str] = ()

    def names(self, snapshot: Snapshot) -> Iterable[str]:
        """All of them, or none; only those whose tables are there."""
        return [name for name, view in self.views.items() if view.of in snapshot.rows] if self.listed(snapshot) else []

    def read(self, snapshot: Snapshot, name: str, columns: Sequence[str] | None, where: Where, **options: Any) -> Read | None:
        """See ``Reads``; a view has no options."""
        view = self.views.get(name)
        if view is None:
            return None
        refuse_options(name, options)
        table = view.table(self.tables)
        known = snapshot if table is None or view.of not in snapshot.rows else snapshot.known_as(table)
        return ViewScan(view, known, columns, where, system=self.system)

    def no_table(self, name: str) -> UnknownTable | None:
        """See ``Shows``."""
        view = self.views.get(name)
        if view is not None:
            return UnknownTable(
                f"{name!r} is no table: it is the view of {view.of!r} that the system {self.system!r} shows.",
                next_step=f"Scan it, export it, or read it in Spark; for anything else take {view.of.removeprefix(DELETED_PREFIX)!r}.",
            )
        if name in self.in_sql:
            return UnknownTable(
                f"{name!r} is a view that the system {self.system!r} writes in SQL: it is there in Spark alone.",
                next_step=f"Show it by attach(spark, CATALOG, systems=[{self.system!r}]), and read it by spark.table({name!r}).",
            )
        return None


def _as_called(view: View, table: Table) -> Table:
    """The columns of the table that the view shows, under its names; of computed ones nothing: conditions go by their Arrow types."""
    shown = [(name, table.by_name.get(source)) for name, source in view.columns.items() if isinstance(source, str)]
    return Table(view.name, tuple(replace(column, name=name) for name, column in shown if column is not None), ())


def _fields(view: View, source: pa.Schema) -> Iterator[pa.Field]:
    for name, column in view.columns.items():
        if isinstance(column, Computed):
            yield pa.field(name, column.type, column.nullable)
        else:
            yield source.field(column).with_name(name)


def _described(values: Any) -> str:
    return f"{len(values)} of {values.type}" if isinstance(values, pa.Array) else shown(values)


def _divided(view: View, where: Where, available: pa.Schema) -> tuple[Where, Sequence[tuple[str, Any]], Where]:
    """The conditions that go to the scan of the table and those that it cannot have, on its columns; and those on the view's own."""
    pushed: dict[str, Any] = {}
    below: list[tuple[str, Any]] = []
    rest: dict[str, Any] = {}
    for name, condition in where.items():
        column = view.columns.get(name, name)
        if not isinstance(column, str) or available.get_field_index(name) < 0:
            rest[name] = condition
        elif column in pushed or column in view.where:
            below.append((column, condition))
        else:
            pushed[column] = condition
    return pushed, below, rest
