"""Several catalogs read as one: the rows of each, one below the other.

The union is one of answers, not of logs. What a catalog has forgotten, or pruned, is its own affair; were logs put together, it would
change what the rows of another one are. So a key tells rows apart within a catalog, and ``_catalog``, a column of every read, catalogs.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import BucketCatalogError, IncompatibleTable, InvalidOption, InvalidVersion, UnknownTable
from ..format.losses import Loss
from ..model.html import html_facts
from ..model.names import names_given
from ..model.widening import cast, widened
from ..parallel import in_order
from ..state.conditions import Where
from .reads import InBatches
from .snapshot import Snapshot

CATALOG = "_catalog"
"""The url of the catalog that a row is of."""
Of = TypeVar("Of")
Made = TypeVar("Made")


@contextmanager
def telling_of(url: str) -> Iterator[None]:
    """Whatever is wrong with one of several catalogs is told with its url."""
    try:
        yield
    except BucketCatalogError as error:
        if url in error.message:
            raise
        told = type(error)(f"{error.message} That is so in {url}.", next_step=error.next_step)
        raise told from error


def of_each(members: Mapping[str, Of], make: Callable[[str, Of], Made]) -> dict[str, Made]:
    """What ``make`` makes of each member, by url, several at once."""

    def made(url: str) -> Made:
        with telling_of(url):
            return make(url, members[url])

    return dict(zip(members, in_order(made, list(members), threads=len(members)), strict=True))


class SideBySide(InBatches):
    """The rows of several reads, one below the other; a column that one of them lacks is null there."""

    def __init__(self, name: str, reads: Mapping[str, InBatches], columns: Sequence[str] | None = None) -> None:
        self._name = name
        self._reads = dict(reads)
        shown = together(name, {url: read.schema for url, read in reads.items()})
        every = together(name, {url: getattr(read, "available", read.schema) for url, read in reads.items()})
        self._schema = shown if columns is None else chosen(name, every, columns)

    @property
    def schema(self) -> pa.Schema:
        """The columns that were asked for, else all that one of the catalogs shows."""
        return self._schema

    def only(self, columns: Sequence[str]) -> SideBySide:
        """The same rows with these columns alone."""
        return SideBySide(self._name, self._reads, columns)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows in batches, catalog by catalog."""
        for url, read in self._reads.items():
            has = getattr(read, "available", read.schema).names
            some = [name for name in self._schema.names if name in has] or has[:1]
            with telling_of(url):
                for batch in read.only(some).to_batches():
                    yield from conformed(pa.Table.from_batches([batch]), self._schema, url).to_batches()

    def to_pandas(self) -> Any:
        """All rows as a pandas DataFrame; needs pandas."""
        return self.to_arrow().to_pandas()

    def explain(self) -> str:
        """What is read of each catalog."""
        told = {url: getattr(read, "explain", lambda: "read whole")() for url, read in self._reads.items()}
        return "\n".join(f"{url}\n{text}" for url, text in told.items())


def conformed(rows: pa.Table, schema: pa.Schema, url: str) -> pa.Table:
    """The rows of a catalog with the columns of all."""
    columns = []
    for field in schema:
        if field.name == CATALOG:
            columns.append(pa.chunked_array([pa.repeat(pa.scalar(url), len(rows))]))
        elif field.name in rows.column_names:
            columns.append(cast(rows[field.name], field.type))
        else:
            columns.append(pa.chunked_array([pa.nulls(len(rows), field.type)]))
    return pa.table(columns, schema=schema)


def together(name: str, schemas: Mapping[str, pa.Schema]) -> pa.Schema:
    """The columns of any of these; ``IncompatibleTable`` names two catalogs of which neither's values can be the other's."""
    found: dict[str, tuple[pa.DataType, str]] = {}
    for url, schema in schemas.items():
        for field in schema:
            kind, first = found.get(field.name, (field.type, url))
            both = widened(kind, field.type)
            if both is None:
                raise IncompatibleTable(
                    f"Column {field.name!r} of table {name!r} is {kind} in {first} and {field.type} in {url}, and neither holds the other "
                    "without loss.",
                    next_step="Read the catalogs one by one, or only columns that go together.",
                )
            found[field.name] = both, first
    return pa.schema([pa.field(column, kind) for column, (kind, _) in found.items()])


def chosen(name: str, columns: pa.Schema, asked: Sequence[str]) -> pa.Schema:
    """Those of the columns that were asked for, among them ``_catalog``; ``InvalidOption`` for one that no catalog has."""
    every = columns.append(pa.field(CATALOG, pa.string()))
    for column in asked:
        if column not in every.names:
            raise InvalidOption(
                f"Table {name!r} has no column {column!r} in any of the catalogs.",
                next_step=f"Choose some of {', '.join(every.names)}.",
            )
    return pa.schema([every.field(column) for column in asked])


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

    ``version`` names all of these cuts; give it as ``version`` to read the same again.
    """

    def __init__(self, members: Mapping[str, Snapshot]) -> None:
        self.members = dict(members)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.members.values()))})"

    def _repr_html_(self) -> str:
        """For notebooks: the catalogs and their versions."""
        return html_facts("catalogs", {url: snapshot.version for url, snapshot in self.members.items()})

    @property
    def version(self) -> str:
        """The cuts of all catalogs as text."""
        return json.dumps({url: snapshot.version for url, snapshot in self.members.items()})

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

    def scan(self, table: str, *, columns: Sequence[str] | None = None, where: Where | None = None, **options: Any) -> SideBySide:
        """Read a table of all that have it, as ``Snapshot.scan`` does of one; with ``_catalog`` as a condition of those that it names.

        ``UnknownTable`` where none has it, ``IncompatibleTable`` where two have a column whose types do not go together.
        """
        names = None if columns is None else names_given(columns, "columns", "columns=['name']")
        conditions = dict(where or {})
        reads = of_each(
            self._named(conditions.pop(CATALOG, None)), lambda url, snapshot: _scan(snapshot, table, conditions, options)
        )
        found = {url: read for url, read in reads.items() if not isinstance(read, UnknownTable)}
        for unknown in reads.values() if not found else ():
            if isinstance(unknown, UnknownTable):
                raise unknown
        return SideBySide(table, found, names)

    def get(self, table: str, /, **key: Any) -> dict[str, Any] | None:
        """The live row under a key in the one catalog that has it, or None; ``InvalidOption`` where several have one."""
        rows = of_each(self._having(table), lambda url, snapshot: snapshot.get(table, **key))
        found = {url: row for url, row in rows.items() if row is not None}
        if len(found) > 1:
            raise InvalidOption(
                f"A row of table {table!r} is under that key in {' and in '.join(found)}.",
                next_step="Ask one of the catalogs: members[0].snapshot().get(...).",
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
        having = self._having(table)
        pages = of_each(
            having,
            lambda url, snapshot: snapshot.list(table, prefix=prefix, delimiter=delimiter, marker=marker, limit=limit, **key),
        )
        last = next(iter(having.values())).table(table).key[-1]
        schema = together(table, {url: page.rows.schema for url, page in pages.items()}).append(pa.field(CATALOG, pa.string()))
        rows = pa.concat_tables([conformed(page.rows, schema, url) for url, page in pages.items()])
        groups = {group for page in pages.values() for group in page.groups}
        ends = [page.next_marker for page in pages.values() if page.next_marker is not None]
        # Behind the first page that ends nobody knows what that catalog has.
        end = min(map(_bytes, ends), default=None)
        names = sorted({*rows[last].to_pylist(), *groups}, key=_bytes)
        kept = [name for name in names if end is None or _bytes(name) <= end][:limit]
        shown = rows.filter(pc.is_in(rows[last], value_set=pa.array([n for n in kept if n not in groups], rows[last].type)))
        shown = shown.take(pc.sort_indices(shown[last].cast(pa.binary())))
        return Pages(shown, [n for n in kept if n in groups], kept[-1] if kept and (ends or len(kept) < len(names)) else None)

    def _having(self, table: str) -> dict[str, Snapshot]:
        """The catalogs that have a table; ``UnknownTable`` where none has."""
        having = {url: snapshot for url, snapshot in self.members.items() if table in snapshot.definitions}
        if not having:
            next(iter(self.members.values())).table(table)
        return having

    def _named(self, wanted: Any) -> dict[str, Snapshot]:
        """The catalogs that a condition on ``_catalog`` names."""
        if wanted is None:
            return self.members
        named = [wanted] if isinstance(wanted, str) else list(wanted) if isinstance(wanted, (list, tuple, set)) else []
        for each in named or [wanted]:
            if not isinstance(each, str) or each not in self.members:
                raise InvalidOption(
                    f"None of the catalogs is {each!r}.", next_step=f"Give one, or a list, of {', '.join(self.members)}."
                )
        return {url: snapshot for url, snapshot in self.members.items() if url in named}


def _scan(snapshot: Snapshot, table: str, where: Where, options: Mapping[str, Any]) -> InBatches | UnknownTable:
    """A read of all columns, or that this catalog has no such table."""
    try:
        return snapshot.scan(table, where=where, **options)
    except UnknownTable as error:
        return error


def _bytes(name: str | bytes) -> bytes:
    return name.encode() if isinstance(name, str) else name


def versions_of(version: str | None, urls: Sequence[str]) -> Mapping[str, str | None]:
    """The version of each catalog: what a text of all of them names, or a tag for each; ``InvalidVersion`` for other catalogs' versions."""
    if version is None or (isinstance(version, str) and version[:1].isalpha() and "@" not in version):
        return dict.fromkeys(urls, version)
    try:
        found = json.loads(version)
    except ValueError:
        found = None
    if not isinstance(found, dict) or sorted(found) != sorted(urls) or not all(isinstance(text, str) for text in found.values()):
        raise InvalidVersion(
            f"{version!r} does not name a version of each of {', '.join(urls)}.",
            next_step="Give the version of a snapshot of these catalogs, or a tag that each of them has.",
        )
    return found
