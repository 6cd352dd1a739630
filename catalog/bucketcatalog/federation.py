"""Several catalogs read as one: what ``Catalog([url, ...])`` gives. Each is written to, and maintained, by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from .errors import InvalidOption
from .model.times import Time
from .query.changes import Changes
from .query.database import require
from .query.difference import Diff
from .query.side_by_side import SideBySide, Snapshots, of_each, versions_of
from .query.snapshot import Snapshot
from .state.conditions import Where


class Member(Protocol):
    """What is asked of each of several catalogs, as ``Catalog`` has it."""

    @property
    def url(self) -> str: ...

    @property
    def databases(self) -> Callable[[], list[str]]: ...

    @property
    def snapshot(self) -> Callable[..., Snapshot]: ...

    @property
    def changes(self) -> Callable[..., Changes]: ...

    @property
    def diff(self) -> Callable[..., Diff]: ...


class Federation:
    """Catalogs that are read as one, in ``members``: the rows of each, one below the other, with the url of theirs in ``_catalog``.

    Every one of them has to have the database that is read. What writes or maintains is called on a member.
    """

    def __init__(self, members: Sequence[Member]) -> None:
        urls = [member.url for member in members]
        if not urls:
            raise InvalidOption("No catalog is named.", next_step="Give one, or a list of some.")
        if twice := sorted({url for url in urls if urls.count(url) > 1}):
            raise InvalidOption(f"{twice[0]} is given twice.", next_step="Give each catalog once.")
        self.members = tuple(members)

    def __repr__(self) -> str:
        return f"Catalog({[member.url for member in self.members]!r})"

    def __getattr__(self, name: str) -> Any:
        """``InvalidOption`` for what a catalog can, and several cannot at once."""
        if name.startswith("_") or name == "members" or not hasattr(type(self.members[0]), name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
        raise InvalidOption(
            f"Several catalogs are read as one, and each is written to and maintained by itself: {name}.",
            next_step=f"Use one of them: members[0].{name}.",
        )

    def databases(self) -> list[str]:
        """The databases that any of them has."""
        found = of_each(self._by_url, lambda url, member: member.databases())
        return sorted({name for names in found.values() for name in names})

    def snapshot(
        self,
        *,
        database: str | None = None,
        timestamp: Time | None = None,
        version: str | None = None,
        strict: bool = False,
        ignore_corruption: bool = False,
    ) -> Snapshots:
        """The database of each now, at a time, or at a version: that of ``Snapshots``, or a tag that each of them has.

        Without a ``database`` the only one there is. ``DatabaseNotFound`` names a catalog that has no such database.
        """
        name = self._resolved(database)
        versions = self._versions(version)
        return Snapshots(
            of_each(
                self._by_url,
                lambda url, member: member.snapshot(
                    database=name,
                    timestamp=timestamp,
                    version=versions[url],
                    strict=strict,
                    ignore_corruption=ignore_corruption,
                ),
            )
        )

    def changes(
        self, *, database: str | None = None, start: str | None = None, end: str | None = None, **options: Any
    ) -> SideBySide:
        """Every event of a table of each, as ``Catalog.changes``, between versions of ``Snapshots``; in order within a catalog."""
        return self._between(lambda member, ends: member.changes(**ends, **options), database, start, end)

    def diff(
        self, *, database: str | None = None, start: str | None = None, end: str | None = None, **options: Any
    ) -> SideBySide:
        """The net difference of a table of each, as ``Catalog.diff``, between versions of ``Snapshots``."""
        return self._between(lambda member, ends: member.diff(**ends, **options), database, start, end)

    def _between(
        self,
        read: Callable[[Member, Mapping[str, str | None]], Changes | Diff],
        database: str | None,
        start: str | None,
        end: str | None,
    ) -> SideBySide:
        name, starts, ends = self._resolved(database), self._versions(start), self._versions(end)
        reads = of_each(
            self._by_url, lambda url, member: read(member, {"database": name, "start": starts[url], "end": ends[url]})
        )
        return SideBySide(next(iter(reads.values())).table.name, reads)

    def data(self, table: str, *, database: str | None = None) -> FederatedData:
        """The data table of that name in those that have it, to be scanned."""
        return FederatedData(self, table, database)

    @property
    def _by_url(self) -> dict[str, Member]:
        return {member.url: member for member in self.members}

    def _resolved(self, database: str | None) -> str:
        if database is not None:
            return database
        names = self.databases()
        if len(names) != 1:
            require(", ".join(self._by_url), names, None)
        return names[0]

    def _versions(self, version: str | None) -> Mapping[str, str | None]:
        return versions_of(version, list(self._by_url))


class FederatedData:
    """A data table of several catalogs. Its key, where it has one, tells rows apart within a catalog."""

    def __init__(self, of: Federation, table: str, database: str | None) -> None:
        self._of = of
        self._database = database
        self.name = table

    def scan(
        self,
        *,
        columns: Sequence[str] | None = None,
        where: Where | None = None,
        timestamp: Time | None = None,
        version: str | None = None,
        on_schema_conflict: str = "cast",
    ) -> SideBySide:
        """The rows now, at a time, or at a version, as those of one catalog."""
        snapshots = self._of.snapshot(database=self._database, timestamp=timestamp, version=version)
        return snapshots.scan(f"data.{self.name}", columns=columns, where=where, on_schema_conflict=on_schema_conflict)
