"""A database as one process knows it: its log, its tables, and what the process has read of it.

What a process has read decides what its commits come after: the newest cut that it has seen is what its writers name in their
transactions. So a reader that sees a transaction sees all that its writer had seen.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from .. import limits
from ..errors import CatalogNotFound, CatalogWarning, DatabaseNotFound, ForkDetected, IncompatibleTable, UnknownTable
from ..format.authority import Definitions
from ..format.definitions import core_tables, tables_of
from ..format.evolution import merge
from ..format.records import Void
from ..log.discovery import LastLook, look
from ..log.files import LogFiles
from ..log.salvage import salvaged
from ..log.versions import Version, find_view
from ..log.view import LogView
from ..model.cuts import Cut, Ref
from ..model.names import MAINTAINER_PREFIX, is_maintainer, is_name
from ..model.parents import misfit, never_unset
from ..model.paths import TIMELINE_FOLDERS, database_prefix, writer_prefix
from ..model.tables import Column, Table
from ..model.times import Time, settled_time
from ..store.base import Store
from ..wording import either
from .metadata import METADATA_TABLES
from .seen import Seen
from .snapshot import DELETED_PREFIX, Shows, Snapshot

_OPTIONS = ("sums", "orders", "tombstone_retention_seconds")
"""What a later declaration of a table may say otherwise."""


@dataclass(frozen=True)
class Beside:
    """What is known beside what a database holds: tables that were made known, by name, and who answers for names that are no tables.

    ``keeps_data`` is of which tables' rows the data lies in the catalog, named by its path.
    """

    table: Callable[[str], Table | None] = lambda name: None
    reads: Callable[[], Sequence[Shows]] = tuple
    keeps_data: Callable[[str], bool] = lambda name: False


class Database:
    """One database of a catalog, as far as this process has read it."""

    def __init__(self, store: Store, name: str, beside: Beside = Beside()) -> None:
        self.name = name
        self.files = LogFiles(store, name)
        self._beside = beside
        self._seen = Seen()
        self._seeing = threading.Lock()
        self._found: dict[tuple[str, str], Table] = {}

    def of_trusted(self) -> Database:
        """The same for who deletes: it is read anew, and without checkpoints of plain writers (``LogFiles.of_trusted``)."""
        twin = Database(self.files.store, self.name, self._beside)
        twin.files = twin.files.of_trusted()
        return twin

    @property
    def seen(self) -> Cut:
        """The newest cut that this process has read: what its commits come after."""
        return self._seen.cut

    @property
    def voids(self) -> Mapping[Ref, Void]:
        """What is voided by what this process has read."""
        return self._seen.voids

    @property
    def retired(self) -> frozenset[str]:
        """The writers that are retired by what this process has read."""
        return self._seen.retired

    def has_read(self, transaction: bytes) -> bool:
        """Whether a transaction has certainly been read, which its uuid names."""
        return self._seen.has(transaction)

    def has_seen(self, commit_time: int) -> bool:
        """Whether every transaction of that commit time has certainly been listed."""
        return self._seen.has_all_of(commit_time)

    def keeps_data(self, table: str) -> bool:
        """Whether the data of a table's rows lies in the catalog, named by its path, as far as this process knows."""
        return self._beside.keeps_data(table)

    def look(self) -> Snapshot:
        """A snapshot of now, also of a database that has nothing in it yet."""
        return Snapshot(self.files, self.view(), reads=self._beside.reads)

    def snapshot(
        self, timestamp: Time | None, version: Version | None, *, strict: bool, ignore_corruption: bool = False
    ) -> Snapshot:
        """A snapshot of now, of a time, or of a version. ``strict`` makes an open fork an error instead of a warning.

        With ``ignore_corruption`` it is one of what can be read.
        """
        files, timestamp = self.files, None if timestamp is None else settled_time(timestamp)
        if ignore_corruption:
            files, view = salvaged(
                files.store,
                self.name,
                lambda files: find_view(files, lambda: look(files, LastLook())[0], timestamp, version),
            )
            self.remember(view.cut)
        elif timestamp is None and version is None:
            view = self.view()
        else:
            view = find_view(self.files, self.view, timestamp, version)
            self.remember(view.cut)
        _warn(view, strict=strict)
        return Snapshot(files, view, reads=self._beside.reads)

    def view(self) -> LogView:
        """A view of now. What an earlier one found is not asked for again."""
        began = self._seen
        view, found = look(self.files, began.known)
        with self._seeing:
            self._seen = self._seen.after_look(began, view, found, self.files)
            self.files = self.files.aware(view.asides)
        return view

    def remember(self, cut: Cut) -> None:
        """The cut has been read too."""
        with self._seeing:
            self._seen = self._seen.after_reading(cut, self.files)

    def definition(self, name: str, by: str) -> Table:
        """The definition to check rows of a table against that are written ``by`` a writer: made known, the core's, or the database's.

        For a table that is not the core's the database is looked at once; ``IncompatibleTable`` where what was made known contradicts it,
        or names a parent to whose rows none can belong, or where what the writer has declared before was left out.
        """
        registered = self._beside.table(name)
        if registered is None and name in core_tables():
            return core_tables()[name]
        known = self._found.get((name, by))
        if known is None or registered not in (None, known):
            seen = self.look()
            if (there := seen.definitions.get(name)) is not None and (why := _left_out(there, by)) is not None:
                raise why
            if registered is not None:
                self._refuse_misfits(registered, seen.definitions)
                _tell_who_decides(registered, seen.definitions, by)
            known = self._found[name, by] = registered or seen.table(name)
            self._refuse_more(seen.definitions, known, by)
        return known

    def made_known(self, name: str) -> Table:
        """The definition that was made known of a table; ``UnknownTable`` without one."""
        registered = self._beside.table(name)
        if registered is None:
            raise UnknownTable(
                f"No table {name!r} was made known to this catalog.", next_step="Register its compiled .proto, or give its name."
            )
        return registered

    def to_declare(self, tables: Iterable[Table], by: str) -> tuple[Table, ...]:
        """Those of the tables of which a commit of a writer has to say what they are: the database has them otherwise, or not at all.

        The database is looked at. ``IncompatibleTable`` where one does not fit it, and where others decide what the writer would have
        otherwise: nothing would come of the commit.
        """
        there = self.look().definitions
        return tuple(table for table in tables if self._is_new(table, there, by))

    def _is_new(self, table: Table, there: Definitions, by: str) -> bool:
        known = there.get(table.name)
        if known is not None and (why := _left_out(known, by)) is not None:
            raise why
        self._refuse_misfits(table, there)
        then = there.if_declared(table, by)[table.name]
        if known is not None and (refused := _not_decided(table, known, then)):
            raise IncompatibleTable(
                f"{by!r} cannot say what becomes of {', '.join(refused)} in table {table.name!r}: {_who_decides(there, known)} can.",
                next_step=f"Declare it as {MAINTAINER_PREFIX}NAME.",
            )
        if then == known and (known.is_maintained or not is_maintainer(by)):
            return False
        self._refuse_more(there, table, by)
        return True

    def declares(self, name: str) -> bool:
        """Whether a table was made known here: who writes to it says what it is, and not only what it has read of it."""
        return self._beside.table(name) is not None

    def _refuse_more(self, there: Definitions, table: Table, by: str) -> None:
        if not there.has_room(table, by):
            raise IncompatibleTable(
                f"{by!r} has defined {limits.PLAIN_DEFINITIONS:,} tables, or by {limits.DEFINITION_BYTES:,} bytes: no more count.",
                next_step="Write to this table under another writer id.",
            )

    def _refuse_misfits(self, declared: Table, there: Definitions) -> None:
        """``IncompatibleTable`` for a definition that does not fit those of the database, which it is about to be one of.

        What these say already, it may say again: that stays, whoever says it.
        """
        known, parent = there.get(declared.name), declared.parent
        if known is not None:
            merge(known, declared)
        is_new = {"id": known is None, "parent": known is None or known.parent is None}
        for what, column in never_unset(declared):
            if is_new[what]:
                raise _never_unset(declared, what, column)
        if parent is not None and is_new["parent"]:
            owner = declared if parent.table == declared.name else there.get(parent.table) or self._beside.table(parent.table)
            if (why := misfit(declared, owner)) is not None:
                raise _misfit(f"Table {declared.name!r} cannot have the parent {parent.table!r}: {why}.")
        children = (
            [t for t in there.usable() if t.parent is not None and t.parent.table == declared.name] if known is None else []
        )
        for child in children:
            if (why := misfit(child, declared)) is not None:
                raise _misfit(f"Table {declared.name!r} cannot be the parent of {child.name!r}, which is written already: {why}.")


def _left_out(there: Table, by: str) -> IncompatibleTable | None:
    """That rows of this writer could not be read, where it has declared the table before in a way that does not fit."""
    for left_out in there.misfits:
        if left_out.writer == by:
            return IncompatibleTable(
                f"What {by!r} writes to table {there.name!r} cannot be read: it has declared the table otherwise before. {left_out.why}",
                next_step="Write to it under another writer id, with a declaration that fits.",
            )
    return None


def _tell_who_decides(declared: Table, there: Definitions, by: str) -> None:
    """A warning where what a writer declares anew of a table does not count, but for the columns that it adds."""
    known = there.get(declared.name)
    if known is None or is_maintainer(by) or there.decided_by(declared.name, by) or there.holds(declared):
        return
    if otherwise := _not_decided(declared, known, known):
        warnings.warn(
            f"What {by!r} declares of table {declared.name!r} counts for its new columns alone: {', '.join(otherwise)} "
            f"are for {_who_decides(there, known)} to say. To change them, register the declaration and commit as a maintainer-NAME.",
            CatalogWarning,
            stacklevel=5,
        )


def _not_decided(declared: Table, known: Table, then: Table) -> list[str]:
    """What a declaration says of a table and is not so ``then``: columns by other names, or shown or not, and options."""
    kept = then.by_number
    names = [
        c.name
        for c in declared.shown_columns
        if (now := kept.get(c.field_name)) and (now.removed or now.name != c.name or _limits_of(now) != _limits_of(c))
    ]
    removed = [c.name for c in merge(known, declared).columns if c.removed and not kept[c.field_name].removed]
    parent = ["parent"] if declared.parent is not None and then.parent is not None and declared.parent != then.parent else []
    return [*names, *removed, *parent, *(name for name in _OPTIONS if getattr(declared, name) != getattr(then, name))]


def _limits_of(column: Column) -> tuple[Any, ...]:
    """What writers may put into a column."""
    return column.minimum, column.maximum, column.allowed, column.max_bytes


def _who_decides(there: Definitions, known: Table) -> str:
    first = there.first_definer(known.name)
    if first is None:
        return "a release and maintainers"
    return "maintainers" if known.is_maintained else f"{first!r}, who has defined it first, and maintainers"


def _never_unset(table: Table, what: str, column: Column) -> IncompatibleTable:
    role = "its id" if what == "id" else "the field of its parent"
    why = "the field cannot be unset, so nobody could tell whether a row says it"
    return IncompatibleTable(
        f"Table {table.name!r} cannot have {column.name!r} as {role}: {why}.",
        next_step="Make the field optional, or one of the key.",
    )


def _misfit(message: str) -> IncompatibleTable:
    return IncompatibleTable(
        message, next_step="Register both, with declarations that fit each other: what is written keeps its parent and its id."
    )


@dataclass(frozen=True)
class MetadataTask:
    """A table about the catalog, whole: what it is made from is read where the task is done."""

    database: str
    version: str
    name: str
    columns: tuple[str, ...]
    ignore_corruption: bool = False
    rows: int = 1

    def read(self, store: Store) -> Iterator[pa.Table]:
        """The whole table."""
        opened = Database(store, self.database)
        snapshot = opened.snapshot(None, self.version, strict=False, ignore_corruption=self.ignore_corruption)
        yield snapshot.scan(self.name, columns=self.columns).to_arrow()


_SHOWN = 20


def databases_in(store: Store) -> list[str]:
    """The databases that a store has; a request for each writer and one for each database.

    What lies two levels deep is a database only where a writer has a timeline there: any other directory is not taken for one.
    """
    found: set[str] = set()
    for writer in filter(is_name, store.list_prefixes("")):
        candidates = [name for name in store.list_prefixes(writer_prefix(writer)) if is_name(name)]
        found |= {name for name in candidates if name not in found and has_timeline(store, writer, name)}
    return sorted(found)


def has_timeline(store: Store, writer: str, database: str) -> bool:
    """Whether a writer has committed, or written a checkpoint, in a database."""
    return not TIMELINE_FOLDERS.isdisjoint(store.list_prefixes(database_prefix(writer, database)))


def require(url: str, names: Sequence[str], database: str | None) -> None:
    """``CatalogNotFound`` without any database, ``DatabaseNotFound`` where the one asked for is not there, or none of several is named."""
    if not names:
        raise CatalogNotFound(
            f"There is no catalog at {url}.",
            next_step="Check the path, or write one: "
            + either("catalog.writer(NAME), or harvest(catalog, source).", "bucketcatalog harvest SOURCE CATALOG."),
        )
    if database is None:
        shown = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else "")
        raise DatabaseNotFound(
            f"{url} has several databases: {shown}.",
            next_step="Name the one that you mean: "
            + either("database='NAME', in Spark option('database', 'NAME').", "--database NAME."),
        )
    if database not in names:
        raise DatabaseNotFound(f"{url} has no database {database!r}.", next_step=f"Choose one of {', '.join(names[:_SHOWN])}.")


def declared(tables: Any, known: Mapping[str, Table]) -> list[Table]:
    """The tables that compiled ``.proto`` files declare, each as one with what is known of the same name.

    ``IncompatibleTable`` where a message is no table, has a name that the engine uses, or contradicts what is known.
    """
    found: dict[str, Table] = {}
    for table in tables_of(tables):
        if table.name in METADATA_TABLES or table.name.startswith(DELETED_PREFIX):
            raise IncompatibleTable(f"No table can be called {table.name!r}.", next_step="Call it SYSTEM.TABLE.")
        other = found.get(table.name) or known.get(table.name) or core_tables().get(table.name)
        found[table.name] = table if other is None else merge(other, table)
    return list(found.values())


def _warn(view: LogView, *, strict: bool) -> None:
    forked = [fork for fork in view.forks if fork.open]
    if forked:
        text = f"The timeline of writer {forked[0].writer!r} is forked at revision {forked[0].revision}; both branches are read."
        if strict:
            raise ForkDetected(text, next_step="Give each process a writer id of its own, or read without strict.")
        warnings.warn(text, CatalogWarning, stacklevel=4)
    limit = view.observed + limits.MAX_CLOCK_SKEW
    ahead = [ref.writer for ref in view.cut.refs() if ref.head.commit_time > limit and ref not in view.voids]
    if ahead:
        warnings.warn(f"Writer {ahead[0]!r} has committed with a time in the future.", CatalogWarning, stacklevel=4)
