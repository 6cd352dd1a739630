"""Several catalogs read as one: what ``Catalog([url, ...])`` gives. Each is written to, and maintained, by itself."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from .errors import InvalidOption
from .model.names import database_name
from .model.times import Moment, Time, refuse_reversed_times, settled_time, span_of
from .query.changes import Changes
from .query.database import require
from .query.difference import Diff
from .query.filtered import FilteredRows
from .query.looked_up import LookedUp
from .query.members import of_catalogs, of_each, of_those_with, versions_of
from .query.reads import refuse_options
from .query.side_by_side import SideBySide, Snapshots
from .query.snapshot import Snapshot, asked_for
from .where.given import Condition


class Member(Protocol):
    """What is asked of each of several catalogs, as ``Catalog`` has it."""

    @property
    def url(self) -> str: ...

    @property
    def databases(self) -> Callable[..., list[str]]: ...

    @property
    def snapshot(self) -> Callable[..., Snapshot]: ...

    @property
    def changes(self) -> Callable[..., Changes | LookedUp]: ...

    @property
    def diff(self) -> Callable[..., Diff | LookedUp]: ...


class Given(NamedTuple):
    """A catalog as it was given with others: what it is to be called, None for its url, its place, and what its store is reached with."""

    name: str | None
    place: Any
    options: Mapping[str, Any] | None

    @property
    def reached(self) -> Any:
        """What tells it from another one of the same url."""
        return (self.options or {}) if isinstance(self.place, (str, os.PathLike)) else self.place


def each_given(places: Sequence[Any] | Mapping[str, Any], storage_options: Any) -> list[Given]:
    """The catalogs of a list of places, or of a mapping of names to these, each with its options.

    Options are a list in that order, a mapping by the names, or those of all. ``InvalidOption`` for what is neither.
    """
    names: list[Any] = list(places) if isinstance(places, Mapping) else [None] * len(places)
    if not names:
        raise InvalidOption("No catalog is named.", next_step="Give one, or a list of some.")
    for name in names if isinstance(places, Mapping) else ():
        if not isinstance(name, str) or not name:
            raise InvalidOption(
                f"No catalog can be called {name!r}.", next_step="Map texts to places: {'north': PLACE, 'south': PLACE}."
            )
    found = list(places.values()) if isinstance(places, Mapping) else list(places)
    for place in found:
        if isinstance(place, (list, tuple, Mapping)):
            raise InvalidOption(
                f"{place!r} is not one catalog, and others are given with it.",
                next_step="Give all of them in one list, or in one mapping of names to places.",
            )
    return [Given(*each) for each in zip(names, found, _options_of(names, storage_options), strict=True)]


def _options_of(names: Sequence[Any], given: Any) -> Sequence[Any]:
    """The options of each; no error shows any, for credentials may be among them."""
    if isinstance(given, Mapping):
        by_name = any(name in given for name in names) and all(isinstance(each, Mapping | None) for each in given.values())
        if by_name and given.keys() != {*names}:
            raise InvalidOption(
                f"The storage options of {', '.join(map(str, given))} are given, and the catalogs are {', '.join(names)}.",
                next_step="Give those of each, None for one that has none, or those that all of them have.",
            )
        return [given[name] for name in names] if by_name else [given] * len(names)
    if given is None:
        return [None] * len(names)
    if not isinstance(given, (list, tuple)):
        raise InvalidOption(
            f"The storage options of several catalogs cannot be a {type(given).__name__}.",
            next_step="Give a mapping that all of them have, a list with one for each, or one by their names.",
        )
    if len(given) != len(names):
        raise InvalidOption(
            f"{len(names)} catalogs cannot have the storage options of {len(given)}.",
            next_step="Give as many storage_options, or those that all of them have.",
        )
    return given


class _OfOne(InvalidOption, AttributeError):
    """What several catalogs cannot do at once; whoever only asks whether they can gets no for an answer."""


class Federation:
    """Catalogs that are read as one, in ``members``: the rows of each, one below the other, with what it is called in ``_catalog``.

    ``names`` are what they are called, in the order of ``members``: their urls, unless they were given names. Every one of them has to have
    the database that is read. What writes or maintains is called on a member.
    """

    def __init__(self, members: Mapping[str, Member]) -> None:
        self.names = tuple(members)
        self.members = tuple(members.values())

    @classmethod
    def of(cls, given: Sequence[Given], opened: Sequence[Member]) -> Federation:
        """What was given, and opened; ``InvalidOption`` for one that is there twice, and for two of one url that have no names."""
        for number, (each, member) in enumerate(zip(given, opened, strict=True)):
            for other in (given[at] for at in range(number) if opened[at].url == member.url):
                if each.reached == other.reached:
                    raise InvalidOption(f"{member.url} is given twice.", next_step="Give each catalog once.")
                if each.name is None:
                    raise InvalidOption(
                        f"Two of the catalogs are at {member.url}, in stores of their own, and are called alike.",
                        next_step="Give them names: Catalog({'north': PLACE, 'south': PLACE}), and storage_options by the same.",
                    )
        return cls({each.name or member.url: member for each, member in zip(given, opened, strict=True)})

    def __repr__(self) -> str:
        urls = [member.url for member in self.members]
        return f"Catalog({urls!r})" if tuple(urls) == self.names else f"Catalog({dict(zip(self.names, urls, strict=True))!r})"

    def __getattr__(self, name: str) -> Any:
        """An error that is ``InvalidOption`` too for what a catalog can, and several cannot at once."""
        if name.startswith("_") or name in ("members", "names") or not hasattr(type(self.members[0]), name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
        raise _OfOne(
            f"Several catalogs are read as one, and each is written to and maintained by itself: {name}.",
            next_step=f"Use one of them: members[0].{name}.",
        )

    def databases(self, *, ignore_corruption: bool = False) -> list[str]:
        """The databases that any of them has, as ``Catalog.databases``."""
        found = of_each(self._by_name, lambda _, member: member.databases(ignore_corruption=ignore_corruption))
        return sorted({name for names in found.values() for name in names})

    def resolve_database(self, database: str | None, *, ignore_corruption: bool = False) -> str:
        """The database to read of each: the one named, else the only one that there is in any of them."""
        if database is not None:
            return database_name(database)
        names = self.databases(ignore_corruption=ignore_corruption)
        if len(names) != 1:
            require(", ".join(self.names), names, None)
        return names[0]

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

        Without a ``database`` the only one there is. A time that counts from now is the same of all.
        ``DatabaseNotFound`` names a catalog that has no such database.
        """
        versions = self._versions(version)
        timestamp = None if timestamp is None else settled_time(timestamp)
        found = self.resolve_database(database, ignore_corruption=ignore_corruption)
        return Snapshots(
            of_each(
                self._by_name,
                lambda name, member: member.snapshot(
                    database=found,
                    timestamp=timestamp,
                    version=versions[name],
                    strict=strict,
                    ignore_corruption=ignore_corruption,
                ),
            )
        )

    def changes(
        self,
        *,
        database: str | None = None,
        table: str | None = None,
        start: Time | None = None,
        end: Time | None = None,
        columns: Sequence[str] | None = None,
        where: Condition | None = None,
        bucket: str | None = None,
        owner: str | uuid.UUID | None = None,
        prefix: str | None = None,
        pre_images: bool | Sequence[str] = False,
        ignore_set_aside: bool = False,
        ignore_corruption: bool = False,
        **options: Any,
    ) -> SideBySide:
        """Every event of a table of each that has it, as ``Catalog.changes``, between times or versions of ``Snapshots``.

        They are in order within a catalog. ``columns`` and ``where`` can have ``_catalog``, beside columns of the key. A ``bucket`` is
        that of each that has one of the name.
        """
        refuse_options("changes", options)
        span = span_of(start, end)
        refuse_reversed_times(*span)
        return self._between(
            lambda member, **asked: member.changes(ignore_set_aside=ignore_set_aside, **asked),
            table,
            columns,
            where,
            database=database,
            ends=span,
            bucket=bucket,
            owner=owner,
            prefix=prefix,
            pre_images=pre_images,
            ignore_corruption=ignore_corruption,
        )

    def diff(
        self,
        *,
        database: str | None = None,
        table: str | None = None,
        start: Time | None = None,
        end: Time | None = None,
        columns: Sequence[str] | None = None,
        where: Condition | None = None,
        bucket: str | None = None,
        owner: str | uuid.UUID | None = None,
        prefix: str | None = None,
        pre_images: bool | Sequence[str] = False,
        ignore_corruption: bool = False,
        **options: Any,
    ) -> SideBySide:
        """The net difference of a table of each that has it, as ``Catalog.diff``, between times or versions of ``Snapshots``.

        ``columns``, ``where`` and ``bucket`` are as of ``changes``.
        """
        refuse_options("diff", options)
        return self._between(
            lambda member, **asked: member.diff(**asked),
            table,
            columns,
            where,
            database=database,
            ends=span_of(start, end),
            bucket=bucket,
            owner=owner,
            prefix=prefix,
            pre_images=pre_images,
            ignore_corruption=ignore_corruption,
        )

    def _between(
        self,
        read: Callable[..., Changes | Diff | LookedUp],
        table: str | None,
        columns: Sequence[str] | None,
        where: Condition | None,
        *,
        database: str | None,
        ends: tuple[Moment, Moment],
        ignore_corruption: bool,
        **of: Any,
    ) -> SideBySide:
        names, held = asked_for(columns, where)
        conditions, chosen = of_catalogs(held, self.names)
        first, last = map(self._of_each, ends)
        if table is not None:  # which one it is otherwise is for the catalogs to say
            of["table"] = table
        found = self.resolve_database(database, ignore_corruption=ignore_corruption)
        reads = of_those_with(
            {name: self._by_name[name] for name in chosen},
            lambda name, member: read(
                member,
                database=found,
                start=first[name],
                end=last[name],
                where=conditions,
                ignore_corruption=ignore_corruption,
                **of,
            ),
        )
        return SideBySide(next(iter(reads.values())).table.name, reads, names)

    def data(self, table: str, *, database: str | None = None) -> FederatedData:
        """The data table of that name in those that have it, to be scanned."""
        return FederatedData(self, table, database)

    @property
    def _by_name(self) -> dict[str, Member]:
        return dict(zip(self.names, self.members, strict=True))

    def _of_each(self, moment: Moment) -> Mapping[str, Time | None]:
        """What each catalog is to be read at: the time, or what the version says of it."""
        if moment.timestamp is not None:
            return dict.fromkeys(self.names, moment.timestamp)
        return self._versions(moment.version)

    def _versions(self, version: str | int | None) -> Mapping[str, str | None]:
        return versions_of(version, self.names)


class FederatedData:
    """A data table of several catalogs. Its key, where it has one, tells rows apart within a catalog."""

    def __init__(self, of: Federation, table: str, database: str | None) -> None:
        self._of = of
        self._database = database
        self.name = table

    def __getattr__(self, name: str) -> Any:
        """As of ``Federation``: what changes a data table, or looks at its files, is done to one catalog's."""
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
        raise _OfOne(
            f"A data table of several catalogs can be scanned, and nothing else: {name}.",
            next_step=f"Use that of one: members[0].data({self.name!r}).{name}.",
        )

    def scan(
        self,
        *,
        columns: Sequence[str] | None = None,
        where: Condition | None = None,
        timestamp: Time | None = None,
        version: str | None = None,
        on_schema_conflict: str | None = None,
    ) -> SideBySide | FilteredRows:
        """The rows now, at a time, or at a version, as those of one catalog."""
        snapshots = self._of.snapshot(database=self._database, timestamp=timestamp, version=version)
        options = {} if on_schema_conflict is None else {"on_schema_conflict": on_schema_conflict}
        return snapshots.scan(f"data.{self.name}", columns=columns, where=where, **options)
