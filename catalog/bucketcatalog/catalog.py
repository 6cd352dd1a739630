"""The catalog: the way in. It opens databases, snapshots and writers over one store."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from types import ModuleType
from typing import Any

from . import clock
from .changes import Changes, Diff, changed_table, refuse_reversed
from .codec.descriptors import core_tables, tables_of
from .cut import Cut
from .database import Database
from .errors import CatalogNotFound, DatabaseNotFound, IncompatibleTable, InvalidOption
from .log.owner import DEFAULT_LIMITS, Limits
from .log.walking import between, version_view
from .metadata import METADATA_TABLES
from .names import MAINTAINER_PREFIX, database_name, host_writer, is_maintainer, is_name, tag_name, writer_id
from .paths import newest_prefix, transactions_prefix
from .pruning import PruneResult, Pruning
from .retention import Retention
from .schema import merge
from .snapshot import DELETED_PREFIX, Snapshot
from .store import Store, open_store
from .tables import Table
from .tagging import Tag
from .times import Age, Time, parse_age
from .versions import Version
from .writer import Writer

DEFAULT_DATABASE = "default"


class Catalog:
    """A catalog in an object store, given by a path, any fsspec URL, or a ``Store``.

    Opening one reads nothing and creates nothing.
    """

    def __init__(self, url: str | os.PathLike[str] | Store, *, storage_options: Mapping[str, Any] | None = None) -> None:
        self.store: Store = _store(url, storage_options)
        self._registered: dict[str, Table] = {}
        self._databases: dict[str, Database] = {}

    def __repr__(self) -> str:
        return f"Catalog({self.url!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_databases": {}}

    @property
    def url(self) -> str:
        """Where the catalog is; never holds credentials."""
        return self.store.url

    def database(self, name: str) -> Database:
        """A database, whether or not there is anything in it."""
        return self._databases.setdefault(name, Database(self.store, database_name(name), self._registered))

    def databases(self) -> list[str]:
        """The databases there are; a request for each writer and one for each database.

        What lies two levels deep is a database only where a writer has a timeline there: any other directory is not taken for one.
        """
        found: set[str] = set()
        for writer in filter(is_name, self.store.list_prefixes("")):
            candidates = [name for name in self.store.list_prefixes(f"{writer}/") if is_name(name)]
            found |= {name for name in candidates if name not in found and self._has_timeline(writer, name)}
        return sorted(found)

    def _has_timeline(self, writer: str, database: str) -> bool:
        timelines = {transactions_prefix(writer, database), newest_prefix(writer, database)}
        below = f"{writer}/{database}/"
        return any(f"{below}{part}/" in timelines for part in self.store.list_prefixes(below))

    def register(self, tables: ModuleType | Iterable[Any] | Any) -> list[str]:
        """Make the tables of a compiled ``.proto`` (a module, a message class, or several) known to this catalog's writers.

        Returns their names. ``IncompatibleTable`` where a message is no table or contradicts one of the same name.
        """
        added = [table for item in _declarations(tables) for table in tables_of(item)]
        for table in added:
            if table.name in METADATA_TABLES or table.name.startswith(DELETED_PREFIX):
                raise IncompatibleTable(f"No table can be called {table.name!r}.", next_step="Call it SYSTEM.TABLE.")
            known = self._registered.get(table.name) or core_tables().get(table.name)
            self._registered[table.name] = table if known is None else merge(known, table)
        return [table.name for table in added]

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
        return Writer(self.database(database), writer_id(writer), clock, limits)

    def snapshot(
        self, *, database: str | None = None, timestamp: Time | None = None, version: Version | None = None, strict: bool = False
    ) -> Snapshot:
        """The database now, at a time, or at a version. ``strict`` makes an open fork an error instead of a warning."""
        name = self.resolve_database(database)
        snapshot = self.database(name).snapshot(timestamp, version, strict=strict)
        if not snapshot.cut.heads:
            self._require(name)
        return snapshot

    def tag(
        self,
        name: str,
        *,
        database: str | None = None,
        timestamp: Time | None = None,
        version: Version | None = None,
        writer: str | None = None,
        replace: bool = False,
    ) -> Tag:
        """Give a name to the cut of now, of a time, or of a version: wherever a version is taken, the name can be given from then on.

        It is committed by a maintainer, by default this machine's; see ``Writer.tag``.
        """
        tag_name(name)
        with self._maintainer(database, writer) as held:
            return held.tag(name, timestamp=timestamp, version=version, replace=replace)

    def drop_tag(self, name: str, *, database: str | None = None, writer: str | None = None) -> Tag:
        """Take a name back from its cut; see ``Writer.drop_tag``."""
        tag_name(name)
        with self._maintainer(database, writer) as held:
            return held.drop_tag(name)

    def prune(
        self,
        older_than: Age,
        *,
        keep: int = 1,
        database: str | None = None,
        writer: str | None = None,
        grace: Age = "24h",
        dry_run: bool = True,
        force: bool = False,
        tell: Callable[[int], None] = lambda _: None,
    ) -> PruneResult:
        """Delete what is needed for nothing that stays: ``keep`` checkpoints, everything younger than ``older_than``, and all tags.

        What may go is published first, by a maintainer, and deleted by a run after the ``grace`` period. ``InvalidOption`` for ages that
        writers or readers under way may need, unless forced. ``tell`` is called with the number of files deleted so far.
        """
        policy = Retention(parse_age(older_than), keep, parse_age(grace))
        name = self.resolve_database(database)
        maintainer = host_writer(MAINTAINER_PREFIX) if writer is None else writer_id(writer)
        if not is_maintainer(maintainer):
            raise InvalidOption(
                f"{maintainer!r} is no maintainer, and nobody else deletes.", next_step=f"Call it {MAINTAINER_PREFIX}NAME."
            )
        if dry_run:
            return Pruning(self.database(name), policy, None).run(force=force)
        with self._maintainer(name, maintainer) as held:
            return Pruning(self.database(name), policy, held, tell).run(force=force)

    def _maintainer(self, database: str | None, writer: str | None) -> Writer:
        """A writer of what is about the catalog itself, in a database that is there."""
        name = self.resolve_database(database)
        if database is not None and not self.database(name).view().cut.heads:
            self._require(name)
        return self.writer(host_writer(MAINTAINER_PREFIX) if writer is None else writer, database=name)

    def resolve_database(self, database: str | None) -> str:
        """The database to read: the one named, else the only one there is."""
        if database is not None:
            return database_name(database)
        names = self.databases()
        if len(names) != 1:
            self._require(None, names)
        return names[0]

    def require(self) -> None:
        """``CatalogNotFound`` where nothing at the place is a catalog."""
        if not self.databases():
            self._require(None, [])

    def _require(self, database: str | None, names: list[str] | None = None) -> None:
        """An error that says whether the catalog or the database is not there."""
        names = self.databases() if names is None else names
        if not names:
            raise CatalogNotFound(
                f"There is no catalog at {self.url}.",
                next_step="Check the path, or write one: bucketcatalog harvest SOURCE CATALOG.",
            )
        if database is None:
            raise DatabaseNotFound(
                f"{self.url} has several databases: {', '.join(names)}.", next_step="Name one of them, with the option database."
            )
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
        """Every event of a table after the cut ``start`` (without one: from the beginning) up to ``end`` (without one: now).

        ``InvalidOption`` where the end is the earlier of the two, ``HistoryPruned`` where events after the start may have been deleted.
        """
        later = self.snapshot(database=database, version=end)
        since = self._from(later, start).view
        found = Changes(self.store, changed_table(later, table), between(later.files, since, later.cut))
        refuse_reversed(found, since.cut, later.cut)
        return found

    def diff(
        self, *, database: str | None = None, table: str = "objects", start: Version | None = None, end: Version | None = None
    ) -> Diff:
        """The net difference of a table between the cuts ``start`` (without one: nothing) and ``end`` (without one: now)."""
        later = self.snapshot(database=database, version=end)
        return Diff(self._from(later, start), later, changed_table(later, table))

    def _from(self, later: Snapshot, start: Version | None) -> Snapshot:
        """The snapshot that a comparison with ``later`` starts from, read with its definitions; without a version the empty one."""
        if start is None:
            view = replace(version_view(later.files, Cut()), horizon=later.view.horizon)
        else:
            view = self.snapshot(database=later.database, version=start).view
        return Snapshot(later.files, view, later.definitions)


def _store(url: str | os.PathLike[str] | Store, storage_options: Mapping[str, Any] | None) -> Store:
    """The store given or named; ``InvalidOption`` for what is neither."""
    if not isinstance(url, (str, os.PathLike)) and hasattr(url, "list_prefixes"):
        return url
    if isinstance(url, (str, os.PathLike)) and isinstance(text := os.fspath(url), str) and "\0" not in text:
        return open_store(url, storage_options)
    raise InvalidOption(
        f"{url!r} names no catalog.", next_step="Give a path or a URL as text without NULs, a pathlib.Path, or a Store."
    )


def _declarations(tables: Any) -> Iterator[Any]:
    """What may declare tables, one by one; ``IncompatibleTable`` for a module that protoc has not generated."""
    if isinstance(tables, Iterable) and not isinstance(tables, (str, bytes)):
        for item in tables:
            yield from _declarations(item)
    elif isinstance(tables, ModuleType) and not hasattr(tables, "DESCRIPTOR"):
        raise IncompatibleTable(
            f"The module {tables.__name__!r} declares no tables.",
            next_step="Give a module that protoc generated, or its messages.",
        )
    else:
        yield tables
