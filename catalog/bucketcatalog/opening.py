"""What a catalog's url leads to: its store, its databases, their snapshots and their writers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import ModuleType
from typing import Any

from . import clock
from .errors import CatalogNotFound, DatabaseNotFound, IncompatibleTable, InvalidOption
from .format.definitions import core_tables, tables_of
from .format.evolution import merge
from .log.timeline import DEFAULT_LIMITS, Limits
from .log.versions import Version
from .model.names import database_name, is_name, writer_id
from .model.paths import newest_prefix, transactions_prefix
from .model.tables import Table
from .model.times import Time
from .query.database import Database
from .query.metadata import METADATA_TABLES
from .query.snapshot import DELETED_PREFIX, Snapshot
from .store import Store, open_store
from .write.writer import Writer

DEFAULT_DATABASE = "default"


class Opened:
    """What a path, any fsspec URL, or a ``Store`` leads to. Opening it reads nothing and creates nothing."""

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
        self,
        *,
        database: str | None = None,
        timestamp: Time | None = None,
        version: Version | None = None,
        strict: bool = False,
        ignore_corruption: bool = False,
    ) -> Snapshot:
        """The database now, at a time, or at a version. ``strict`` makes an open fork an error instead of a warning.

        With ``ignore_corruption`` damaged and missing files are no errors: the rest is read; the snapshot's ``missing`` says what is not.
        """
        name = self.resolve_database(database)
        snapshot = self.database(name).snapshot(timestamp, version, strict=strict, ignore_corruption=ignore_corruption)
        if not snapshot.cut.heads:
            self._require(name)
        return snapshot

    def _existing(self, database: str | None) -> Database:
        """A database that is there."""
        name = self.resolve_database(database)
        if database is not None and not self.database(name).view().cut.heads:
            self._require(name)
        return self.database(name)

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
