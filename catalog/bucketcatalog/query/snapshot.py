"""Snapshots: one cut of one database, read as often as one likes, and the seam to who else answers for names that are no tables.

A snapshot never changes: whatever is committed after it was taken, its rows, look-ups, listings and version stay the same.
"""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import pyarrow as pa

from ..errors import InvalidOption, UnknownTable
from ..format.authority import Definitions
from ..format.losses import Loss
from ..log.files import LogFiles
from ..log.view import LogView
from ..model.arrays import one_chunk
from ..model.coerce import given_keys
from ..model.facts import NEVER
from ..model.keys import encode_keys
from ..model.names import names_given
from ..model.parents import name_column
from ..model.public import public
from ..model.render import on_request, output_schema, render, storage_columns
from ..model.tables import Table
from ..model.times import Time, datetime_of, parse_time, shown_time
from ..state.contents import Contents
from ..state.earliest import earliest_ended
from ..state.plan import Part
from ..where.conditions import Where
from ..where.given import Condition, Predicate, understood
from .filtered import FilteredRows, filtered
from .in_html import contents_html
from .listing import Page, list_page
from .looked_up import LookedUp, Lookup, with_lookups
from .metadata import METADATA_TABLES, MetadataScan, metadata_schema
from .named import NamesOf, Place, named_in, narrowed, owner_column
from .operations import Operations
from .reads import Read, refuse_options
from .scan import Beside, Scan

DELETED_PREFIX = "deleted_"


class Reads(Protocol):
    """Names that can be read although the database has no such table: who answers for them, and how."""

    def names(self, snapshot: Snapshot) -> Iterable[str]:
        """Those to show among the snapshot's tables."""
        ...

    def read(self, snapshot: Snapshot, name: str, columns: Sequence[str] | None, where: Where, **options: Any) -> Read | None:
        """A read of that name, None where it is not one of these; ``InvalidOption`` for a column that is not there, or an option."""
        ...


class Shows(Reads, Protocol):
    """Who answers for such names, and can tell somebody who takes one of them for a table."""

    def no_table(self, name: str) -> UnknownTable | None:
        """What to tell who asks for a table of that name; None where it is not one of these."""
        ...


@public("database", "ended", "get", "get_all", "list", "missing", "scan", "table", "tables", "version", "watermark")
class Snapshot(Contents):
    """A database at one cut. ``version`` names it for good, until it is pruned.

    ``reads`` says who answers for names that are no tables; it is asked where one is read or taken for a table, and for the snapshot's
    tables.
    """

    def __init__(
        self,
        files: LogFiles,
        view: LogView,
        definitions: Definitions | None = None,
        *,
        reads: Callable[[], Sequence[Shows]] = tuple,
    ) -> None:
        super().__init__(files, view, definitions)
        self._reads = reads

    def __repr__(self) -> str:
        at = f", {shown_time(self.cut.newest_commit_time)}" if self.cut.heads else ""
        return f"Snapshot({self.files.store.url!r}, {self.database!r}, at {self.cut.short}{at})"

    def _repr_html_(self) -> str:
        """For notebooks: the cut, and its tables as far as the log and indexes tell of them."""
        return contents_html(self, self._beside)

    def _beside(self) -> Iterator[tuple[str, str]]:
        """What can be scanned beside tables and their tombstones, and what kind that is."""
        yield from ((name, "view") for reads in self._reads() for name in sorted(reads.names(self)))
        yield ", ".join(sorted(METADATA_TABLES)), "about the catalog"

    @property
    def version(self) -> str:
        """The cut as text; give it as ``version`` to read the same again."""
        return str(self.view.cut)

    @property
    def watermark(self) -> datetime.datetime:
        """Everything with an earlier commit time is in the snapshot: times before it are settled."""
        return datetime_of(self.view.watermark)

    @property
    def missing(self) -> tuple[Loss, ...]:
        """With ``ignore_corruption`` what could not be read so far and is in no answer; the table ``damage`` looks for all there is."""
        return self.files.on_damage.found

    @property
    def tables(self) -> list[str]:
        """What can be scanned: tables, their tombstones as ``deleted_...``, what systems show, and what is known about the catalog."""
        shown = [name for reads in self._reads() for name in reads.names(self)]
        return sorted({*self.rows, *shown, *METADATA_TABLES})

    @property
    def rows(self) -> set[str]:
        """The tables, and their tombstones as ``deleted_...``."""
        kept = [f"{DELETED_PREFIX}{name}" for name in self.definitions if self._keeps_tombstones(name)]
        return {*self.definitions, *kept}

    def _keeps_tombstones(self, name: str) -> bool:
        return self.definitions.contradiction(name) is not None or self.definitions[name].keeps_tombstones

    def table(self, name: str) -> Table:
        """The definition of a table; ``UnknownTable``, which says what else has that name where something has."""
        check_table_name(name)
        try:
            return super().table(name)
        except UnknownTable as error:
            told = (shows.no_table(name) for shows in self._reads())
            raise next((each for each in told if each is not None), error) from None

    def known_as(self, table: Table) -> Snapshot:
        """The same cut, one of its tables as who declares it knows it; ``IncompatibleTable`` where the two contradict each other."""
        known = self.definitions.known_as(table)
        is_same = known[table.name].definition == self.table(table.name).definition
        return self if is_same else Snapshot(self.files, self.view, known, reads=self._reads)

    def scan(
        self,
        table: str,
        *,
        columns: Sequence[str] | None = None,
        where: Condition | None = None,
        bucket: str | None = None,
        owner: str | uuid.UUID | None = None,
        prefix: str | None = None,
        **options: Any,
    ) -> Read | MetadataScan | FilteredRows:
        """Read a table, its tombstones (``deleted_...``), one about the catalog, or what a system shows under that name.

        ``where`` maps columns to a value, a list of values, None, ``prefix(...)`` or ``between(...)``, or is text such as
        ``"content_length > 100 and name like '2024/%'"``, or an expression of ``pyarrow.compute``. ``bucket``, ``owner`` and
        ``prefix`` name rows of a table as ``query.named`` says: other ranges of keys are not read. On request there are also the column
        ``bucket`` of rows that belong to one, and of tombstones ``_end_operation`` and ``_end_metadata``. ``options`` are those of who
        keeps rows by itself, such as ``on_schema_conflict`` of data tables. ``InvalidOption`` names a column or an option that is not
        there, and the owners of several buckets of one name; ``NotFound`` a bucket that is not there.
        """
        names, conditions = asked_for(columns, where)
        check_table_name(table)
        place = Place(bucket, owner, prefix)
        if place and table not in self.rows:
            raise InvalidOption(
                f"{table!r} has no rows of buckets.", next_step="Leave bucket, owner and prefix out, and give where."
            )
        if table not in self.rows and table not in METADATA_TABLES:
            found = (self._shown_by(reads, table, names, conditions, **options) for reads in self._reads())
            if (read := next((read for read in found if read is not None), None)) is not None:
                return read
        if table in METADATA_TABLES:
            refuse_options(table, options)
            return self._about(table, names, conditions)
        kept = table.removeprefix(DELETED_PREFIX)
        tombstones = table not in self.definitions and kept != table and kept in self.names
        definition = self.table(kept if tombstones else table)
        refuse_options(table, options)  # of a table that there is: who would have known what they are of is not here
        conditions = narrowed([self], definition, place, conditions, ended=tombstones)
        return self._scan(definition, tombstones, names, conditions)

    def _shown_by(
        self, reads: Reads, name: str, columns: Sequence[str] | None, where: Where | Predicate, **options: Any
    ) -> Read | None:
        """What somebody else shows under a name."""
        if not isinstance(where, Predicate):
            return reads.read(self, name, columns, where, **options)
        every = reads.read(self, name, None, {}, **options)
        if every is None:
            return None

        def again(columns: Sequence[str] | None, where: Where) -> Read | None:
            return every.asked_again(columns, where) or reads.read(self, name, columns, where, **options)

        found: Read = filtered(name, where, every.available, columns, again)
        return found

    def _about(self, name: str, columns: Sequence[str] | None, where: Where | Predicate) -> MetadataScan | FilteredRows:
        """A table about the catalog."""

        def scan(columns: Sequence[str] | None, where: Where) -> MetadataScan:
            return MetadataScan(self, name, columns=columns, where=where)

        if not isinstance(where, Predicate):
            return scan(columns, where)
        found: MetadataScan | FilteredRows = filtered(name, where, metadata_schema(name), columns, scan)
        return found

    def _scan(self, table: Table, tombstones: bool, columns: Sequence[str] | None, where: Where | Predicate) -> Read:
        def scan(columns: Sequence[str] | None, where: Where) -> Scan:
            return Scan(self.state(table.name), tombstones=tombstones, columns=columns, where=where, beside=beside)

        lookups = self.lookups(table, tombstones=tombstones)
        beside = Beside([field for lookup in lookups for field in lookup.fields], partial(self._scan, table, tombstones))
        every = output_schema(table, tombstones=tombstones)
        own = output_schema(table, tombstones=tombstones, columns=[*every.names, *on_request(tombstones=tombstones)])
        if not isinstance(where, Predicate) and {*own.names}.issuperset([*(columns or ()), *where]):
            return scan(columns, where)
        if isinstance(where, Predicate):
            available = with_lookups(own, lookups)
            again = partial(self._scan, table, tombstones)
            found: Read = filtered(table.name, where, available, columns, again, table.uuid_columns)
            return found
        return LookedUp(table, scan, own, lookups, every.names if columns is None else columns, where, self.files.store)

    def lookups(self, table: Table, *, tombstones: bool = False) -> tuple[Lookup, ...]:
        """What can be looked up of a table's rows. Nothing is read before it is."""
        is_named = name_column(table) is not None and table.parent is not None and table.parent.table in self.definitions
        named = [NamesOf(self, table)] if is_named else []
        return (*named, *([Operations.of_ends(self.database)] if tombstones else []))

    def with_ids(self, table: Table, key: Mapping[str, Any]) -> Mapping[str, Any]:
        """Key columns with ids in place of the name of the bucket that the row belongs to; the owner is needed where several have one."""
        name = name_column(table)
        if name is None or name not in key:
            return key
        assert table.parent is not None
        rest = {column: value for column, value in key.items() if column != name}
        owner = owner_column(self, table)
        named = named_in([self], table, Place(key[name], rest.get(owner) if owner is not None else None), ended=False)
        shared = {column: value for column, value in named.leading.items() if column in table.by_name}
        return {**rest, **shared, table.parent.column: named.ids[0]}

    def get(self, table: str, /, **key: Any) -> dict[str, Any] | None:
        """The live row under a key, given by its key columns, or None; a ``bucket`` can be given by its name, and then needs no owner."""
        return self.get_all(table, [key])[0]

    def get_all(
        self, table: str, keys: Sequence[Mapping[str, Any]], *, columns: Sequence[str] | None = None
    ) -> Sequence[dict[str, Any] | None]:
        """The live row under each of several keys, in their order, or None for it: what lies together is read once.

        ``columns`` may ask for what every table shows on request, such as ``_version``, as a scan's do.
        """
        definition = self.table(table)
        schema = output_schema(definition, columns=columns)
        encoded = given_keys(definition, [self.with_ids(definition, key) for key in keys])
        found = self.find(table, pa.array(encoded, pa.binary()), Part.LIVE)
        shown = render(found, definition, schema).to_pylist()
        if len(keys) == 1:
            return shown or [None]
        by_key = dict(zip(one_chunk(encode_keys(definition, found.rows)).to_pylist(), shown, strict=True))
        return [by_key.get(key) for key in encoded]

    def ended(
        self,
        table: str,
        *,
        before: Time | None = None,
        after: Mapping[str, Any] | None = None,
        limit: int = 1000,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        """The tombstones of a table that ended first, at most ``limit``, by ``deleted_at`` and then by key; none from ``before`` on.

        The next page is that ``after`` the last row's ``deleted_at`` and key columns: of one key that ended twice at one time it passes
        over both. Where a checkpoint keeps an order of the table by ``deleted_at``, this costs about as much as the page and what was
        purged before its end since, and of an order that is not covering a look-up of each key; else as much as all tombstones.
        """
        definition = self.table(table)
        if not isinstance(limit, int) or limit < 1:
            raise InvalidOption(
                f"A page of tombstones cannot have the limit {limit!r}.", next_step="Give a whole number above 0."
            )
        schema = output_schema(definition, tombstones=True, columns=columns)
        until = NEVER if before is None else parse_time(before)
        found = earliest_ended(self.state(table), until, limit, storage_columns(definition, schema.names), after=after)
        return render(found, definition, schema)

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
    ) -> Page:
        """One page of a table in key order (bytes of UTF-8), below the leading key columns given.

        ``marker`` is exclusive. With a ``delimiter``, names that share what lies between ``prefix`` and its next occurrence make one
        group, which counts as one row against ``limit``. ``next_marker`` is None on the last page. A ``bucket`` can be given by its name.
        """
        definition = self.table(table)
        *leading, last = definition.key
        key = dict(self.with_ids(definition, key))
        if unknown := [name for name in key if name not in leading]:
            raise InvalidOption(
                f"A listing of table {table!r} takes no {', '.join(map(repr, unknown))}.",
                next_step=f"Give {', '.join(leading) or 'no key column'}, and prefix, delimiter, marker or limit.",
            )
        if sorted(key) != sorted(leading):
            raise InvalidOption(
                f"A listing of table {table!r} needs {', '.join(leading) or 'no key column'}.",
                next_step=f"Give these; {last!r} is what is listed.",
            )
        return list_page(self.state(table), key, prefix, delimiter, marker, limit)


def asked_for(columns: Sequence[str] | None, where: Condition | None) -> tuple[tuple[str, ...] | None, Where | Predicate]:
    """The columns and the conditions of a read; ``InvalidOption`` for what is none, and for no column, which has no rows."""
    conditions = understood(where)
    names = None if columns is None else names_given(columns, "columns", "columns=['name']")
    if names == ():
        raise InvalidOption("No column is asked for, and without one there are no rows.", next_step="Name one to count rows.")
    return names, conditions


def check_table_name(table: Any) -> None:
    """``InvalidOption`` for what is no text, and so no table's name."""
    if not isinstance(table, str):
        raise InvalidOption(f"{table!r} is no table's name.", next_step="Give one of the snapshot's tables.")
