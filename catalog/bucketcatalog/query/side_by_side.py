"""Several catalogs read as one: the rows of each, one below the other.

The union is one of answers, not of logs. What a catalog has forgotten, or pruned, is its own affair; were logs put together, it would
change what the rows of another one are. So a key tells rows apart within a catalog, and ``_catalog``, a column of every read, catalogs.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .. import clock
from ..errors import IncompatibleTable, InvalidOption
from ..format.losses import Loss
from ..model.html import html_facts
from ..model.widening import cast, widened
from ..where.conditions import Where, listed
from ..where.given import Condition, Predicate
from ..where.timed import counts_from_now, settled
from .filtered import FilteredRows
from .members import CATALOG, Met, met, of_catalogs, of_those_with, telling_of, without_rows
from .reads import InBatches
from .snapshot import DELETED_PREFIX, Snapshot, asked_for


class NoRows(InBatches):
    """A read of which nothing is read: a condition is on a column that its catalog lacks."""

    def __init__(self, read: InBatches, lacks: Collection[str]) -> None:
        self._read = read
        self._lacks = lacks

    @property
    def schema(self) -> pa.Schema:
        """The columns that the read has."""
        return self._read.schema

    @property
    def available(self) -> pa.Schema:
        """The columns that could be asked of it."""
        return _available(self._read)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """None."""
        yield from ()

    def explain(self) -> str:
        """Why nothing is read."""
        return f"nothing: it has no column {', '.join(sorted(self._lacks))}"


class SideBySide(InBatches):
    """The rows of several reads, one below the other; a column that one of them lacks is null there."""

    def __init__(self, name: str, reads: Mapping[str, InBatches], columns: Sequence[str] | None = None) -> None:
        self._name = name
        self._reads = dict(reads)
        shown = {catalog: read.schema for catalog, read in reads.items()}
        self._schema = shown_of(name, shown, {catalog: _available(read) for catalog, read in reads.items()}, columns)

    @property
    def schema(self) -> pa.Schema:
        """The columns that were asked for, else all that one of the catalogs shows."""
        return self._schema

    def only(self, columns: Sequence[str]) -> SideBySide:
        """The same rows with these columns alone."""
        return SideBySide(self._name, self._reads, columns)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows in batches, catalog by catalog."""
        for catalog in self._reads:
            for batch in self._of(catalog):
                yield from conformed(pa.Table.from_batches([batch]), self._schema, catalog).to_batches()

    def _of(self, catalog: str) -> Iterator[pa.RecordBatch]:
        """The rows of one catalog, with those of the columns that it has."""
        read = self._reads[catalog]
        has = _available(read).names
        with telling_of(catalog):
            yield from read.only([name for name in self._schema.names if name in has] or has[:1]).to_batches()

    def explain(self) -> str:
        """What is read of each catalog."""
        told = {catalog: getattr(read, "explain", lambda: "read whole")() for catalog, read in self._reads.items()}
        return "\n".join(f"{catalog}\n{text}" for catalog, text in told.items())


def _available(read: InBatches) -> pa.Schema:
    """The columns that can be asked of a read."""
    found: pa.Schema = getattr(read, "available", read.schema)
    return found


def conformed(rows: pa.Table, schema: pa.Schema, catalog: str) -> pa.Table:
    """The rows of a catalog with the columns of all; ``IncompatibleTable`` for a value that a widened type does not hold."""
    columns = []
    for field in schema:
        if field.name == CATALOG:
            columns.append(pa.chunked_array([pa.repeat(pa.scalar(catalog), len(rows))]))
        elif field.name in rows.column_names:
            columns.append(_widened(rows[field.name], field, catalog))
        else:
            columns.append(pa.chunked_array([pa.nulls(len(rows), field.type)]))
    return pa.table(columns, schema=schema)


def _widened(values: pa.ChunkedArray, field: pa.Field, catalog: str) -> pa.ChunkedArray:
    try:
        return cast(values, field.type)
    except pa.ArrowException as error:
        raise IncompatibleTable(
            f"Column {field.name!r} has values in {catalog} that {field.type}, as which the catalogs together have it, does not hold: "
            f"{str(error).splitlines()[0]}.",
            next_step="Read the catalogs one by one, or without that column.",
        ) from None


def together(name: str, schemas: Mapping[str, pa.Schema]) -> pa.Schema:
    """The columns of any of these; ``IncompatibleTable`` names two catalogs of which neither's values can be the other's."""
    found: dict[str, tuple[pa.DataType, str]] = {}
    for catalog, schema in schemas.items():
        for field in schema:
            kind, first = found.get(field.name, (field.type, catalog))
            both = widened(kind, field.type)
            if both is None:
                raise IncompatibleTable(
                    f"Column {field.name!r} of table {name!r} is {kind} in {first} and {field.type} in {catalog}, and neither holds the "
                    "other without loss.",
                    next_step="Read the catalogs one by one, or only columns that go together.",
                )
            found[field.name] = both, first
    return pa.schema([pa.field(column, kind) for column, (kind, _) in found.items()])


def shown_of(
    name: str, shown: Mapping[str, pa.Schema], available: Mapping[str, pa.Schema], asked: Sequence[str] | None
) -> pa.Schema:
    """The columns of a read: those that were asked for, of what is ``available`` in any of the catalogs, else what any has ``shown``.

    ``InvalidOption`` for one that no catalog has, or that is asked for twice. ``IncompatibleTable`` where what is to be shown does not go
    together, and for a table with a column that is called as that is by which rows say whose they are.
    """
    for catalog, schema in available.items():
        if CATALOG in schema.names:
            raise IncompatibleTable(
                f"Table {name!r} has a column {CATALOG!r} of its own in {catalog}.",
                next_step=f"Read the catalogs one by one: of several {CATALOG} says which one a row is of.",
            )
    if asked is None:
        return together(name, shown)
    every = [*dict.fromkeys(chain.from_iterable(schema.names for schema in available.values())), CATALOG]
    for number, column in enumerate(asked):
        if column not in every:
            raise InvalidOption(
                f"Table {name!r} has no column {column!r} in any of the catalogs.",
                next_step=f"Choose some of {', '.join(every)}.",
            )
        if column in asked[:number]:
            raise InvalidOption(f"The column {column!r} is asked for twice.", next_step="Name each column once.")
    # What nobody asks for need not go together.
    wanted = {catalog: pa.schema([field for field in schema if field.name in asked]) for catalog, schema in available.items()}
    found = together(name, wanted).append(pa.field(CATALOG, pa.string()))
    return pa.schema([found.field(column) for column in asked])


@dataclass(frozen=True)
class Pages:
    """A page of a listing over several catalogs: rows with their ``_catalog``, and groups, each in byte order of names.

    Rows of one name are never on two pages, so that one may have more than its limit.
    """

    rows: pa.Table
    groups: Sequence[str | bytes]
    next_marker: str | bytes | None


class Snapshots:
    """A database of several catalogs, each at a cut of its own, read as one. They are not of one moment unless a time was asked for.

    ``members`` are the snapshots by what their catalogs are called. ``version`` names all of these cuts; give it as ``version`` to read the
    same again.
    """

    def __init__(self, members: Mapping[str, Snapshot]) -> None:
        self.members = dict(members)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.members.values()))})"

    def _repr_html_(self) -> str:
        """For notebooks: the catalogs and their versions."""
        return html_facts("catalogs", {name: snapshot.version for name, snapshot in self.members.items()})

    @property
    def version(self) -> str:
        """The cuts of all catalogs as text."""
        return json.dumps({name: snapshot.version for name, snapshot in self.members.items()})

    @property
    def watermark(self) -> datetime.datetime:
        """Everything with an earlier commit time is there, in each of them."""
        return min(snapshot.watermark for snapshot in self.members.values())

    @property
    def missing(self) -> tuple[Loss, ...]:
        """With ``ignore_corruption`` what could not be read so far of any."""
        return tuple(chain.from_iterable(snapshot.missing for snapshot in self.members.values()))

    @property
    def tables(self) -> list[str]:
        """What can be scanned in any of them."""
        return sorted({name for snapshot in self.members.values() for name in snapshot.tables})

    def scan(
        self, table: str, *, columns: Sequence[str] | None = None, where: Condition | None = None, **options: Any
    ) -> SideBySide | FilteredRows:
        """Read a table of all that have it, as ``Snapshot.scan`` does of one; with ``_catalog`` as a condition of those that it names.

        In a catalog that lacks a column of ``where`` that is null; of one that lacks the ``bucket`` there are no rows. ``UnknownTable``
        where none has the table, ``NotFound`` where none has the bucket, ``IncompatibleTable`` where
        two have a column that is shown and whose types do not go together, ``InvalidOption`` for a column that none has.
        """
        names, held = asked_for(columns, where)
        if isinstance(held, Predicate):
            return self._met(table, names, held, options)
        conditions, chosen = of_catalogs(held, list(self.members))

        now = clock.now_us()

        def scan(snapshot: Snapshot, where: Where) -> InBatches:
            if counts_from_now(where):  # in all of them from one now
                where = settled(where, _available(snapshot.scan(table, **options)), table, now)
            return snapshot.scan(table, where=where, **options)

        def read(_: str, snapshot: Snapshot) -> Met[InBatches]:
            return met(conditions, lambda some: scan(snapshot, some), lambda whole: _available(whole).names)

        found = of_those_with({name: self.members[name] for name in chosen}, read)
        empty = without_rows(table, conditions, found)
        reads = {name: NoRows(each.made, each.lacks) if name in empty else each.made for name, each in found.items()}
        return SideBySide(table, reads, names)

    def _met(
        self, table: str, names: Sequence[str] | None, predicate: Predicate, options: Mapping[str, Any]
    ) -> SideBySide | FilteredRows:
        """The rows that meet a predicate, which is about the columns as all of them together have these.

        It narrows what is read of each by columns that have one type in all of them.
        """
        reads = of_those_with(self.members, lambda _, snapshot: snapshot.scan(table, **options))
        each = {name: _available(read) for name, read in reads.items()}
        every = [*dict.fromkeys(chain.from_iterable(schema.names for schema in each.values())), CATALOG]
        about = every if predicate.columns is None else predicate.columns
        wanted = {name: pa.schema([field for field in schema if field.name in about]) for name, schema in each.items()}
        schema = together(table, wanted).append(pa.field(CATALOG, pa.string()))
        bound = predicate.bound(table, schema, every, self._uuids(table))
        pushed = {c: condition for c, condition in bound.pushed.items() if c != CATALOG and _is_alike(c, schema, each.values())}
        chosen = {CATALOG: bound.pushed[CATALOG]} if _names(bound.pushed.get(CATALOG)) else {}
        of_catalogs(chosen, list(self.members))  # what is called as none of them is a mistake
        try:
            read = self.scan(table, where={**pushed, **chosen}, **options)
        except InvalidOption:  # a column takes no such condition
            pushed, read = {}, self.scan(table, where=chosen, **options)
        assert isinstance(read, SideBySide)
        if bound.is_exact and {**pushed, **chosen}.keys() == bound.pushed.keys():
            return read if names is None else read.only(names)
        shown = read.only(read.schema.names if names is None else names).schema
        return FilteredRows(read.only(list(dict.fromkeys([*shown.names, *bound.test.columns]))), shown, bound.test)

    def _uuids(self, table: str) -> frozenset[str]:
        """The columns of a table, or of its tombstones, that are of uuids in all that have it."""
        found = [
            snapshot.table(name).uuid_columns
            for snapshot in self.members.values()
            for name in (table, table.removeprefix(DELETED_PREFIX))
            if name in snapshot.definitions
        ]
        return frozenset.intersection(*found) if found else frozenset()

    def get(self, table: str, /, **key: Any) -> dict[str, Any] | None:
        """The live row under a key in the one catalog that has it, or None; ``InvalidOption`` where several have one."""
        rows = of_those_with(self.members, lambda _, snapshot: snapshot.get(table, **key))
        found = {name: row for name, row in rows.items() if row is not None}
        if len(found) > 1:
            raise InvalidOption(
                f"A row of table {table!r} is under that key in {' and in '.join(found)}.",
                next_step=f"Ask one of them: members[{next(iter(found))!r}].get(...).",
            )
        return next(iter(found.values()), None)

    def list(
        self,
        table: str,
        /,
        *,
        prefix: str = "",
        delimiter: str | None = None,
        marker: str | bytes | None = None,
        limit: int = 1000,
        **key: Any,
    ) -> Pages:
        """One page of a table in key order over all catalogs, as ``Snapshot.list`` has it of one; rows have a ``_catalog``."""
        pages = of_those_with(
            self.members,
            lambda _, snapshot: snapshot.list(table, prefix=prefix, delimiter=delimiter, marker=marker, limit=limit, **key),
        )
        last = self.members[next(iter(pages))].table(table).key[-1]
        schemas = {name: page.rows.schema for name, page in pages.items()}
        schema = shown_of(table, schemas, schemas, None).append(pa.field(CATALOG, pa.string()))
        rows = pa.concat_tables([conformed(page.rows, schema, name) for name, page in pages.items()])
        groups = {group for page in pages.values() for group in page.groups}
        ends = [page.next_marker for page in pages.values() if page.next_marker is not None]
        # Behind the first page that ends nobody knows what that catalog has.
        end = min(map(_bytes, ends), default=None)
        names = sorted({*rows[last].to_pylist(), *groups}, key=_bytes)
        kept = [name for name in names if end is None or _bytes(name) <= end][:limit]
        shown = rows.filter(pc.is_in(rows[last], value_set=pa.array([n for n in kept if n not in groups], rows[last].type)))
        shown = shown.take(pc.sort_indices(shown[last].cast(pa.binary())))
        return Pages(shown, [n for n in kept if n in groups], kept[-1] if kept and (ends or len(kept) < len(names)) else None)


def _names(condition: Any) -> bool:
    """Whether a condition is one text, or several."""
    return bool(listed(condition)) and all(isinstance(value, str) for value in listed(condition))


def _is_alike(column: str, schema: pa.Schema, each: Iterable[pa.Schema]) -> bool:
    return all(one.field(column).type == schema.field(column).type for one in each if column in one.names)


def _bytes(name: str | bytes) -> bytes:
    return name.encode() if isinstance(name, str) else name
