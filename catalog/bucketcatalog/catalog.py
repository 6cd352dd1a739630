"""The catalog: the way in. It opens databases, snapshots and writers over one store, and remembers what it has shown.

What a process has read decides what its commits come after: a catalog keeps the newest cut it has shown of each database, and its writers
name what is new in it in every transaction. So a reader that sees the transaction sees all that its writer had seen.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any

from . import clock
from .changes import Changes, Diff
from .codec.descriptors import core_tables, tables_of
from .codec.transactions import Transaction
from .cut import Cut, Head
from .errors import (
    CatalogNotFound,
    CatalogWarning,
    DatabaseNotFound,
    ForkDetected,
    IncompatibleTable,
    InvalidTime,
    InvalidVersion,
    UnknownTable,
)
from .log.files import LogFiles
from .log.owner import DEFAULT_LIMITS, MAX_CLOCK_SKEW, Limits
from .log.view import DEFAULT_LATENESS_BOUND, View, between, newest_view, version_view
from .metadata import METADATA_TABLES
from .names import database_name, is_data_writer, is_name, writer_id
from .schema import merge
from .snapshot import DELETED_PREFIX, Snapshot
from .store import Store, open_store
from .tables import Table
from .times import Time, parse_causal, parse_time, refuse_unknown_tag
from .writer import Writer

DEFAULT_DATABASE = "default"
Version = str | int


class Catalog:
    """A catalog in an object store, given by a path, any fsspec URL, or a ``Store``.

    Opening one reads nothing and creates nothing.
    """

    def __init__(self, url: str | os.PathLike[str] | Store, *, storage_options: Mapping[str, Any] | None = None) -> None:
        self.store: Store = open_store(url, storage_options) if isinstance(url, (str, os.PathLike)) else url
        self._files: dict[str, LogFiles] = {}
        self._registered: dict[str, Table] = {}
        self._seen: dict[str, Cut] = {}
        self._observed: dict[str, int] = {}

    @property
    def url(self) -> str:
        """Where the catalog is; never holds credentials."""
        return self.store.url

    def files(self, database: str) -> LogFiles:
        """The log of a database."""
        return self._files.setdefault(database, LogFiles(self.store, database))

    def databases(self) -> list[str]:
        """The databases there are; one request a writer."""
        found = {name for writer in self._writers() for name in self.store.list_prefixes(f"{writer}/") if is_name(name)}
        return sorted(found)

    def _writers(self) -> list[str]:
        return [name for name in self.store.list_prefixes("") if is_name(name)]

    def register(self, tables: ModuleType | Iterable[Any] | Any) -> list[str]:
        """Make the tables of a compiled ``.proto`` (a module, a message class, or several) known to this catalog's writers.

        Returns their names. ``IncompatibleTable`` where a message is no table or contradicts one of the same name.
        """
        added = tables_of(tables)
        for table in added:
            if table.name in METADATA_TABLES or table.name.startswith(DELETED_PREFIX):
                raise IncompatibleTable(f"No table can be called {table.name!r}.", next_step="Call it SYSTEM.TABLE.")
            known = self._registered.get(table.name) or core_tables().get(table.name)
            self._registered[table.name] = table if known is None else merge(known, table)
        return [table.name for table in added]

    def definition(self, name: str, database: str) -> Table:
        """The definition to check rows of a table against: registered, the core's, or what the database holds."""
        known = self._registered.get(name) or core_tables().get(name)
        if known is not None:
            return known
        try:
            return self.snapshot(database=database).table(name)
        except (CatalogNotFound, DatabaseNotFound):
            raise UnknownTable(
                f"There is no table {name!r}.", next_step=f"Register it, or use one of {', '.join(core_tables())}."
            ) from None

    def writer(
        self,
        writer: str,
        *,
        database: str = DEFAULT_DATABASE,
        clock: Callable[[], int] = clock.now_us,
        limits: Limits = DEFAULT_LIMITS,
    ) -> Writer:
        """Open a writer id in a database for commits. One process at a time may hold it.

        ``clock`` gives the time in microseconds. ``ForeignBranch`` where the id's timeline is forked beyond one stray transaction.
        """
        return Writer(self, writer_id(writer), database_name(database), clock, limits)

    def snapshot(
        self, *, database: str | None = None, timestamp: Time | None = None, version: Version | None = None, strict: bool = False
    ) -> Snapshot:
        """The database now, at a time, or at a version. ``strict`` makes an open fork an error instead of a warning."""
        if timestamp is not None and version is not None:
            raise InvalidVersion("A snapshot has a timestamp or a version, not both.", next_step="Give one of them.")
        name = self.resolve_database(database)
        files = self.files(name)
        view = self._view(files, timestamp, version)
        if not view.cut.heads and timestamp is None and version is None:
            self._require(name)
        self._warn(view, strict)
        if timestamp is None and version is None:
            self._observed[name] = view.observed
            self.remember(name, view.cut)
        else:
            self.remember(name, self.seen(name).joined(view.cut))
        return Snapshot(files, view)

    def _view(self, files: LogFiles, timestamp: Time | None, version: Version | None) -> View:
        if timestamp is not None:
            time = parse_time(timestamp)
            self._refuse_future(files, time)
            return newest_view(files, before=time)
        return newest_view(files) if version is None else version_view(files, self._cut(files, str(version)))

    def _refuse_future(self, files: LogFiles, time: int) -> None:
        now = self.store.now_us()
        if time > now:
            newest = newest_view(files).cut.newest_commit_time
            if time > newest:
                raise InvalidTime(
                    f"The time @{time} lies {(time - max(now, newest)) / 1e6:.6f} s after now and after the newest commit.",
                    next_step="Ask for a time that has passed.",
                )

    def _cut(self, files: LogFiles, text: str) -> Cut:
        causal = parse_causal(text)
        if causal is None:
            refuse_unknown_tag(text)
            return Cut.parse(text)
        writer, revision = causal
        return self._causal_cut(files, self._only_writer(files, revision) if writer is None else writer, revision)

    def _only_writer(self, files: LogFiles, revision: int) -> str:
        writers = [w for w in files.writers() if is_data_writer(w) and next(files.timeline(w), None) is not None]
        if len(writers) != 1:
            raise InvalidVersion(
                f"The version {revision} needs a writer: the database has {', '.join(writers) or 'none'}.",
                next_step=f"Use WRITER@{revision}.",
            )
        return writers[0]

    def _causal_cut(self, files: LogFiles, writer: str, revision: int) -> Cut:
        """What the commit at a revision had read, and itself."""
        at = []
        for head in files.transactions(writer, revision):
            if head.revision > revision:
                break
            at.append(head)
        if len(at) != 1:
            there = " and ".join(head.uuid.hex() for head in at)
            raise InvalidVersion(
                f"Writer {writer!r} has {'several commits' if at else 'no commit'} at revision {revision}{': ' + there if at else ''}.",
                next_step="Use a snapshot's version." if at else "See bucketcatalog log for the revisions there are.",
            )
        ancestors: dict[Head, Transaction] = {}
        pending = [at[0]]
        while pending:
            head = pending.pop()
            if head not in ancestors:
                ancestors[head] = files.transaction(writer, head)
                pending += [Head(link.revision, link.uuid) for link in ancestors[head].parents]
        reads = Cut()
        for head in sorted(ancestors):
            reads = reads.updated(ancestors[head].reads)
        own = {w: heads for w, heads in reads.heads.items() if w != writer}
        return Cut.of([(writer, at[0]), *((w, head) for w, heads in own.items() for head in heads)])

    def _warn(self, view: View, strict: bool) -> None:
        forked = [fork for fork in view.forks if fork.open]
        if forked:
            text = (
                f"The timeline of writer {forked[0].writer!r} is forked at revision {forked[0].revision}; both branches are read."
            )
            if strict:
                raise ForkDetected(text, next_step="Join the branches with bucketcatalog repair, or read without strict.")
            warnings.warn(text, CatalogWarning, stacklevel=3)
        ahead = [w for w, heads in view.cut.heads.items() if any(h.commit_time > view.observed + MAX_CLOCK_SKEW for h in heads)]
        if ahead:
            warnings.warn(f"Writer {ahead[0]!r} has committed with a time in the future.", CatalogWarning, stacklevel=3)

    def resolve_database(self, database: str | None) -> str:
        """The database to read: the one named, else the only one there is."""
        if database is not None:
            return database_name(database)
        names = self.databases()
        if len(names) != 1:
            self._require(None, names)
        return names[0]

    def _require(self, database: str | None, names: list[str] | None = None) -> None:
        """An error that says whether the catalog or the database is not there."""
        names = self.databases() if names is None else names
        if not names:
            raise CatalogNotFound(
                f"There is no catalog at {self.url}.",
                next_step="Check the path, or write one: bucketcatalog harvest SOURCE CATALOG.",
            )
        if database is None:
            raise DatabaseNotFound(f"{self.url} has several databases: {', '.join(names)}.", next_step="Name one of them.")
        if database not in names:
            raise DatabaseNotFound(f"{self.url} has no database {database!r}.", next_step=f"Choose one of {', '.join(names)}.")

    def changes(
        self,
        *,
        database: str | None = None,
        table: str = "objects",
        start: Version | None = None,
        end: Version | None = None,
    ) -> Changes:
        """Every event of a table after the cut ``start`` (without one: from the beginning) up to ``end`` (without one: now)."""
        later = self._at(database, end)
        files = later.files
        since = self._at(later.database, start).view if start is not None else version_view(files, Cut())
        transactions = between(files, since, later.cut)
        definitions = dict(later.definitions)
        return Changes(self.store, later.table(table), transactions, definitions)

    def diff(
        self, *, database: str | None = None, table: str = "objects", start: Version | None = None, end: Version | None = None
    ) -> Diff:
        """The net difference of a table between the cuts ``start`` (without one: nothing) and ``end`` (without one: now)."""
        later = self._at(database, end)
        earlier = (
            self._at(later.database, start) if start is not None else Snapshot(later.files, version_view(later.files, Cut()))
        )
        return Diff(earlier, later, later.table(table))

    def _at(self, database: str | None, version: Version | None) -> Snapshot:
        return self.snapshot(database=database, version=version)

    # What writers of this catalog ask.

    def look(self, database: str) -> Snapshot:
        """A snapshot of now, also of a database that has nothing in it yet."""
        files = self.files(database)
        view = newest_view(files)
        self.remember(database, view.cut)
        self._observed[database] = view.observed
        return Snapshot(files, view)

    def own_view(self, database: str, writer: str) -> View:
        """A view of one writer's own timeline."""
        return newest_view(self.files(database), only=writer)

    def remember(self, database: str, cut: Cut) -> None:
        """Everything in the cut, which holds all that was remembered before, has been read; what lies in the future is not counted."""
        limit = self.store.now_us() + MAX_CLOCK_SKEW
        known = self.seen(database)
        settled = {w: heads for w, heads in cut.heads.items() if all(head.commit_time <= limit for head in heads)}
        self._seen[database] = Cut(dict(sorted({**known.heads, **settled}.items())))

    def seen(self, database: str) -> Cut:
        """The newest cut that was read of a database."""
        return self._seen.get(database, Cut())

    def has_seen(self, database: str, commit_time: int) -> bool:
        """Whether every transaction of that commit time has certainly been listed."""
        return commit_time + DEFAULT_LATENESS_BOUND < self._observed.get(database, 0)
