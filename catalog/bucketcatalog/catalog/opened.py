"""What a url leads to: a store, the databases in it, and the systems that are there for them.

Before it come the packages that do the work; after it what is asked of a catalog, by who reads, who writes and who maintains it.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from .. import clock
from ..errors import CatalogWarning, StoreError
from ..limits import DEFAULT_LIMITS
from ..model.names import MAINTAINER_PREFIX, WriterId, database_name, host_writer
from ..model.public import public
from ..query.database import Database, databases_in, require
from ..registry.installed import Registry
from ..store import Store
from ..store.obstacles import PastObstacles

if TYPE_CHECKING:
    from ..write.writer import Writer

# In all of this package what writers and maintainers do is imported where it is asked for, and so is what more than one cut or catalog is
# read by: who takes a first look starts the sooner for it.

DEFAULT_DATABASE = "default"
Place = str | os.PathLike[str] | Store
"""Where a catalog is."""


@public("databases", "store", "url")
class Opened:
    """A store in which a catalog is, or can be. Nothing is read or created before somebody asks for it."""

    def __init__(self, store: Store) -> None:
        self.store: Store = store
        self.registry = Registry()
        self._databases: dict[str, Database] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_databases": {}}

    @property
    def url(self) -> str:
        """Where the catalog is; never holds credentials."""
        return self.store.url

    def database(self, name: str) -> Database:
        """A database, whether or not there is anything in it."""
        return self._databases.setdefault(name, Database(self.store, database_name(name), self.registry.beside))

    def databases(self, *, ignore_corruption: bool = False) -> list[str]:
        """The databases there are; a request for each writer and one for each database.

        With ``ignore_corruption`` those that can be found, with a warning of each directory that cannot be looked into.
        """
        return databases_in(PastObstacles(self.store, _warn_of) if ignore_corruption else self.store)

    def resolve_database(self, database: str | None, *, ignore_corruption: bool = False) -> str:
        """The database to read: the one named, else the only one there is, of those that can be found with ``ignore_corruption``."""
        if database is not None:
            return database_name(database)
        names = self.databases(ignore_corruption=ignore_corruption)
        if len(names) != 1:
            require(self.url, names, None)
        return names[0]

    def require(self) -> None:
        """``CatalogNotFound`` where nothing at the place is a catalog."""
        if not (names := self.databases()):
            require(self.url, names, None)

    def _existing(self, database: str | None) -> Database:
        """A database that is there."""
        name = self.resolve_database(database)
        if database is not None and not self.database(name).view().cut.heads:
            require(self.url, self.databases(), name)
        return self.database(name)

    @contextmanager
    def _maintainer(
        self, opened: Database, writer: str | None, now: Callable[[], int] = clock.now_us, role: str = MAINTAINER_PREFIX
    ) -> Iterator[Writer]:
        """A writer of what is about the catalog itself, in a database that is there."""
        from ..write.writer import Writer

        with (
            self._turn(opened.name, writer, role) as chosen,
            Writer(opened, chosen, now, DEFAULT_LIMITS, takes=self.registry.writes) as held,
        ):
            yield held

    def _turn(self, database: str, writer: str | None, role: str = MAINTAINER_PREFIX) -> AbstractContextManager[WriterId]:
        """The writer that was named, else this machine's in that role, which no other process of it has open meanwhile."""
        from ..write.host_turn import host_turn

        return host_turn(self.store, database, named=writer, default=host_writer(role))


def _warn_of(name: str, error: StoreError) -> None:
    """Whoever goes past something that is in the way is told."""
    warnings.warn(error.message, CatalogWarning, stacklevel=2)
