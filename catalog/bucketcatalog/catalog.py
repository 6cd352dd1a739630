"""The catalog: the way in. It opens databases, snapshots and writers over one store."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import ModuleType
from typing import Any

from . import clock
from .changes import Changes, Diff, changed_table, refuse_reversed
from .checking.findings import Finding
from .checking.walk import verify
from .codec.descriptors import core_tables, tables_of
from .collection.boundary import GRACE, check_grace
from .collection.collecting import Collected, InProcess, Workers, collect, dry_run_of
from .collection.deleters import Callback, Deleter, deleter_of
from .collection.orphans import Orphan, namer_of, orphans
from .collection.reaping import Find, Reaped, reap
from .collection.templates import Place
from .cut import Cut
from .database import Database
from .errors import CatalogNotFound, DatabaseNotFound, IncompatibleTable, InvalidOption
from .information import Information, describe
from .log.files import LogFiles
from .log.owner import DEFAULT_LIMITS, Limits
from .log.voids import without_voided
from .log.walking import between, version_view
from .metadata import METADATA_TABLES
from .names import MAINTAINER_PREFIX, database_name, host_writer, is_name, tag_name, writer_id
from .paths import newest_prefix, transactions_prefix
from .repairing.run import Repair, Repairer
from .restoring import Restored, plan_restore, restore
from .schema import merge
from .snapshot import DELETED_PREFIX, Snapshot
from .store import Store, open_store
from .tables import Table
from .tagging import Tag
from .times import Age, Time, age_micros
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

    def info(self, *, database: str | None = None, progress: Callable[[int], None] | None = None) -> Information:
        """What a database is, how large, how old, and what needs doing; ``progress`` is told how many rows were counted so far."""
        return describe(self.snapshot(database=database), self.url, progress or (lambda _: None))

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

    def restore(
        self,
        table: str,
        *,
        database: str | None = None,
        timestamp: Time | None = None,
        version: Version | None = None,
        writer: str | None = None,
        dry_run: bool = False,
        skip_collected: bool = False,
    ) -> Restored:
        """Make a table's live rows what they were at a time or version, in one transaction; nothing where they are that already.

        It is committed by a maintainer, by default this machine's; with ``dry_run`` nothing is written. ``DataCollected`` where data of
        rows may be gone, unless ``skip_collected`` leaves these out; ``ParentEnded`` where rows belong to rows that have ended.
        """
        if dry_run:
            return plan_restore(self._existing(database), table, timestamp, version)
        with self._maintainer(database, writer) as held:
            return restore(self.database(held.database), held, table, timestamp, version, skip_collected=skip_collected)

    def collect(
        self,
        *,
        database: str | None = None,
        older_than: Age = GRACE,
        deleter: Callback | None = None,
        data_url: str | None = None,
        data_options: Mapping[str, Any] | None = None,
        dry_run: bool = True,
        force: bool = False,
        writer: str | None = None,
        clock: Callable[[], int] = clock.now_us,
        workers: Callable[[Deleter | None], Workers] = InProcess,
    ) -> Collected:
        """Forget tombstones that are old enough and delete their data where nothing needs it; without ``dry_run=False`` only say what.

        A run collects by the boundary that an earlier one has published, six hours before at least, and publishes the next; see
        ``collection``. ``deleter`` is called with tables of data references and returns a boolean for each, whether that data is gone;
        or ``data_url`` says where data lies, such as ``s3://data/{owner}/{bucket_id}/{id}``, reached with ``data_options``.
        ``InvalidOption`` for an age that readers may need, unless forced; ``force`` also waits for nobody. ``workers`` makes of a deleter
        who does the work, by default this process.
        """
        grace = age_micros(older_than)
        check_grace(grace, force=force)
        place = Place.open(data_url, data_options, self.store) if data_url is not None else None
        given = deleter_of(deleter, place)
        opened = self._existing(database)
        if dry_run:
            return dry_run_of(opened.look(), workers(given), grace)
        with self._maintainer(opened.name, writer, clock) as held:
            return collect(opened.look, held, workers(given), grace, force=force)

    def reap(
        self,
        *,
        database: str | None = None,
        older_than: Age = GRACE,
        dry_run: bool = True,
        force: bool = False,
        writer: str | None = None,
        clock: Callable[[], int] = clock.now_us,
        find: Find | None = None,
    ) -> Reaped:
        """End the rows whose parent has ended, such as the objects of deleted buckets; without ``dry_run=False`` only count them.

        ``find`` finds a table's rows of some parents, by default in this process.
        """
        grace = age_micros(older_than)
        check_grace(grace, force=force)
        opened = self._existing(database)
        if dry_run:
            return reap(opened.look, None, grace, find)
        with self._maintainer(opened.name, writer, clock) as held:
            return reap(opened.look, held, grace, find)

    def orphans(
        self,
        *,
        database: str | None = None,
        older_than: Age = GRACE,
        data_url: str | None = None,
        data_options: Mapping[str, Any] | None = None,
        dry_run: bool = True,
        force: bool = False,
    ) -> Iterator[Orphan]:
        """Data that no version names, at ``data_url`` or below the writers' own folders; deleted as it is found with ``dry_run=False``.

        ``InvalidOption`` where no table could name anything there, or for an age that a writer's commit may need, unless forced.
        """
        grace = age_micros(older_than)
        check_grace(grace, force=force)
        place = Place.open(data_url, data_options, self.store) if data_url is not None else None
        opened = self._existing(database)
        return orphans(opened.look, namer_of(place, opened.files, opened.look()), grace, delete=not dry_run)

    def _maintainer(self, database: str | None, writer: str | None, now: Callable[[], int] = clock.now_us) -> Writer:
        """A writer of what is about the catalog itself, in a database that is there."""
        name = self._existing(database).name
        return self.writer(host_writer(MAINTAINER_PREFIX) if writer is None else writer, database=name, clock=now)

    def _existing(self, database: str | None) -> Database:
        """A database that is there."""
        name = self.resolve_database(database)
        if database is not None and not self.database(name).view().cut.heads:
            self._require(name)
        return self.database(name)

    def verify(
        self, *, database: str | None = None, deep: bool = False, tell: Callable[[str], None] = lambda _: None
    ) -> Iterator[Finding]:
        """Read everything, and say one by one what is wrong or worth knowing; without a ``database`` of all that there are.

        Nothing is written. ``deep`` compares each checkpoint with what its transactions say; ``tell`` is told how far it is.
        """
        there = self.databases()
        names = there if database is None else [database_name(database)]
        if not names or names[0] not in there:
            self._require(database, there)
        for name in names:
            yield from verify(LogFiles(self.store, name), deep=deep, tell=tell)

    def repair(
        self,
        *,
        database: str | None = None,
        join: Collection[str] = (),
        void: Collection[str] = (),
        deep: bool = False,
        writer: str | None = None,
        dry_run: bool = True,
        clock: Callable[[], int] = clock.now_us,
        tell: Callable[[str], None] = lambda _: None,
    ) -> Repair:
        """Mend what is wrong with a database as far as what is left allows, and say what is lost; nothing is written in a ``dry_run``.

        Markers of damaged checkpoints are removed where nothing is lost with them, and a checkpoint is written instead. The forked
        timelines of the writers in ``join`` are joined, and the commits from the future that ``void`` names, as ``WRITER@REVISION``, are
        voided. It is done by a maintainer, by default this machine's.
        """
        name = self.resolve_database(database)
        if name not in (there := self.databases()):
            self._require(name, there)
        by = writer_id(host_writer(MAINTAINER_PREFIX) if writer is None else writer)
        if not by.startswith(MAINTAINER_PREFIX):
            raise InvalidOption(
                f"The writer {by!r} cannot repair.", next_step=f"Use one whose id begins with {MAINTAINER_PREFIX}."
            )
        repairer = Repairer(self.store, self._registered, by, clock, DEFAULT_LIMITS)
        return repairer.repair(name, join=join, void=void, deep=deep, dry_run=dry_run, tell=tell)

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

        ``InvalidOption`` where the end is the earlier of the two.
        """
        later = self.snapshot(database=database, version=end)
        since = self._from(later, start).view
        transactions = without_voided(between(later.files, since, later.cut), later.view.voids)
        found = Changes(self.store, changed_table(later, table), list(transactions))
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
            view = version_view(later.files, Cut())
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
