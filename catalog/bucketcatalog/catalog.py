"""The catalog: the way in, to reading, to writing, and to what maintainers do.

``Catalog`` opens what a url leads to and hands on what is asked of it: ``query`` answers, ``write`` commits, ``maintain`` keeps house.
"""

from __future__ import annotations

import os
import uuid
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

from . import clock, limits
from .errors import CatalogWarning, InvalidOption, StoreError
from .limits import DEFAULT_LIMITS, Limits
from .log.ancestry import version_view
from .log.files import LogFiles
from .log.versions import Version, telling_to_begin_anew
from .model.cuts import Cut
from .model.names import (
    COMPACTOR_PREFIX,
    MAINTAINER_PREFIX,
    WriterId,
    database_name,
    host_writer,
    is_compactor,
    is_maintainer,
    maintainer_id,
    names_given,
    new_pin_name,
    new_tag_name,
    pin_name,
    tag_name,
    writer_id,
)
from .model.public import public
from .model.times import Age, Moment, Time, age_micros, refuse_reversed_times, span_of
from .query.database import Database, databases_in, require
from .query.snapshot import Snapshot
from .registry.installed import Registry
from .store import Store
from .store.obstacles import Obstacles, PastObstacles
from .store.open import store_at
from .where.given import Condition

if TYPE_CHECKING:
    from .maintain.clone import Cloned
    from .maintain.gc.collect import Collected, GcWorkers
    from .maintain.gc.data import Callback, Deleters
    from .maintain.gc.orphans import Orphan
    from .maintain.gc.reap import Find, Reaped
    from .maintain.prune import PruneResult
    from .maintain.repair import Repair
    from .maintain.restore import Restored
    from .maintain.retire import Retired
    from .maintain.verify.findings import Finding
    from .query.changes import Changes
    from .query.difference import Diff
    from .query.info import Information
    from .query.looked_up import LookedUp
    from .registry.jobs import RunTasks
    from .write.commit import Committed
    from .write.declaring import CreatedTable
    from .write.pins import Pin
    from .write.tags import Tag
    from .write.writer import Writer

# What writers and maintainers do is imported where it is asked for, and so is what more than one cut or catalog is read by: who takes a
# first look starts the sooner for it.

DEFAULT_DATABASE = "default"
Place = str | os.PathLike[str] | Store
"""Where a catalog is."""
Options = Mapping[str, Any] | None
"""What its store is reached with."""
Places = Sequence[Place] | Mapping[str, Place]
"""Where several catalogs are, which may have names."""
OptionsOfEach = Sequence[Options] | Mapping[str, Options]
"""What the stores of several are reached with, in their order or by their names."""


@public(
    *(
        "changes",
        "clone",
        "collect",
        "create_table",
        "data",
        "databases",
        "declare",
        "diff",
        "drop_tag",
        "info",
        "orphans",
        "pin",
    ),
    *(
        "prune",
        "reap",
        "register",
        "repair",
        "restore",
        "retire",
        "run_job",
        "snapshot",
        "store",
        "tag",
        "unpin",
        "url",
        "verify",
    ),
    "writer",
)
class Catalog:
    """A catalog in an object store, given by a path, any fsspec URL, or a ``Store``; several of these are read as one, by a ``Federation``.

    Opening one reads nothing and creates nothing. Whatever deletes is a dry run unless it is told otherwise.
    An age is text such as ``24h``, a timedelta, or a whole number of microseconds.
    """

    def __new__(cls, url: Place | Places = "", *, storage_options: Options | OptionsOfEach = None) -> Any:
        """A catalog, or of a list of places, or of a mapping of names to places, a federation of catalogs.

        Each of these has its options where they are a list too, or a mapping by the names.
        """
        if isinstance(url, (list, tuple, Mapping)):
            from .federation import Federation, each_given

            given = each_given(url, storage_options)
            return Federation.of(given, [cls(each.place, storage_options=each.options) for each in given])
        if not isinstance(storage_options, Mapping | None):
            raise InvalidOption(
                f"The storage options of a catalog cannot be a {type(storage_options).__name__}.",
                next_step="Map the names of options to their values.",
            )
        return super().__new__(cls)

    def __init__(self, url: Place | Places, *, storage_options: Options | OptionsOfEach = None) -> None:
        self.store: Store = store_at(cast(Place, url), cast(Options, storage_options))
        self.registry = Registry()
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

    def register(self, tables: ModuleType | Iterable[Any] | Any) -> list[str]:
        """Make the tables of a compiled ``.proto`` (a module, a message class, or several) known to this catalog's writers.

        Returns their names. ``IncompatibleTable`` where a message is no table or contradicts one of the same name.
        """
        return self.registry.register(tables)

    def declare(self, tables: Iterable[str], *, database: str = DEFAULT_DATABASE, writer: str | None = None) -> Committed | None:
        """Say in a database what tables are that were made known to this catalog, in one commit: every reader knows them from then on.

        None, and no commit, where the database has them so. It is committed by a maintainer, by default this machine's, whose word counts
        above others'; see ``Writer.declare`` for what another ``writer`` can say.
        """
        names = names_given(tables, "tables", "tables=['jobs.runs']")
        with self._maintainer(self.database(database), writer) as held:
            return held.declare(names)

    def create_table(
        self,
        name: str,
        schema: Any,
        *,
        key: Iterable[str],
        id: str | None = None,
        keep_tombstones: bool | None = None,
        tombstone_retention: Age | None = None,
        minimum: Mapping[str, int | None] | None = None,
        maximum: Mapping[str, int | None] | None = None,
        allowed: Mapping[str, Iterable[str | int] | None] | None = None,
        parent: tuple[str, str] | None = None,
        parent_must_exist: bool | None = None,
        rename: Mapping[str, str] | None = None,
        remove: Iterable[str] = (),
        database: str = DEFAULT_DATABASE,
        writer: str | None = None,
    ) -> CreatedTable:
        """Make a table of an Arrow schema, or of that of Arrow data or a frame, known to this catalog and declare it in a database.

        Called again it changes the table to the schema: what is new is added, what is left out has to be named in ``remove``, and
        ``rename`` maps old names to new ones. What is None stays as it is; tombstones are kept by default. Returns the table's ``.proto``.
        Rows with values below a column's ``minimum``, above its ``maximum`` or not ``allowed`` are refused; a limit that is None is none.
        ``parent`` is a table and the column that has the id of a row of it, which ``parent_must_exist`` when rows that name it are put.
        Nothing is committed where the table is so already; it is by a maintainer, by default this machine's, and of a ``writer`` that is
        none new columns alone count, unless it has made the table.

        ``IncompatibleTable`` for a type that no column has, and for what the table cannot become; ``InvalidName`` for what it, or a column,
        cannot be called.
        """
        from .write.declaring import create_table, wanted_table

        wanted = wanted_table(
            name,
            schema,
            key=key,
            id=id,
            keep_tombstones=keep_tombstones,
            tombstone_retention=tombstone_retention,
            minimum=minimum,
            maximum=maximum,
            allowed=allowed,
            parent=parent,
            parent_must_exist=parent_must_exist,
            rename=rename,
            remove=remove,
        )
        self.registry.refuse_owned(name)
        opened = self.database(database)
        with self._maintainer(opened, writer) as held:
            table, created = create_table(opened, held, wanted)
        self.registry.know(table)
        return created

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
        from .write.writer import Writer

        return Writer(self.database(database), writer_id(writer), clock, limits, takes=self.registry.writes)

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
        name = self.resolve_database(database, ignore_corruption=ignore_corruption)
        snapshot = self.database(name).snapshot(timestamp, version, strict=strict, ignore_corruption=ignore_corruption)
        if not snapshot.cut.heads:
            require(self.url, self.databases(ignore_corruption=ignore_corruption), name)
        return snapshot

    def data(
        self,
        table: str,
        *,
        database: str | None = None,
        writer: str | None = None,
        clock: Callable[[], int] = clock.now_us,
    ) -> Any:
        """The data table of that name: rows in Parquet files, to append, remove, delete and scan; see the guide to data tables.

        ``writer`` is who commits, by default this machine's; ``database`` the one to write to, by default ``default``, or to read, by
        default the only one there is.
        """
        return self.registry.opens("data")(self, table, database=database, writer=writer, clock=clock)

    def info(self, *, database: str | None = None, progress: Callable[[int], None] | None = None) -> Information:
        """What a database is, how large, how old, and what needs doing; ``progress`` is told how many rows were counted so far."""
        from .query.info import describe

        return describe(self.snapshot(database=database), self.url, progress or (lambda _: None))

    def changes(
        self,
        *,
        database: str | None = None,
        table: str = "objects",
        start: Time | Version | None = None,
        end: Time | Version | None = None,
        columns: Sequence[str] | None = None,
        where: Condition | None = None,
        bucket: str | None = None,
        owner: str | uuid.UUID | None = None,
        prefix: str | None = None,
        pre_images: bool | Sequence[str] = False,
        ignore_set_aside: bool = False,
        ignore_corruption: bool = False,
    ) -> Changes | LookedUp:
        """Every event of a table after the time or version ``start`` (without one: from the beginning) up to ``end`` (without one: now).

        ``where`` has conditions on columns of its key, as a scan takes them, and ``bucket``, ``owner`` and ``prefix`` are as of a scan:
        blocks of other keys are not read. ``pre_images`` adds what each event ended or replaced, ``_before``, with all columns of its row
        or the ones that are named: what was deleted can be summed. ``columns`` may ask for ``bucket``, ``_operation``, ``_metadata`` too.

        A text that may be either is a time where it looks like one, as on the command line. ``InvalidOption`` where the end is the earlier
        of the two, ``HistoryPruned`` where events after the start may have been deleted, ``SetAsideError`` where events of a file are
        missing that was set aside, unless that is to be ignored. With ``ignore_corruption`` what cannot be read is left out, and a warning
        tells so.
        """
        from .query.changes import changes_between
        from .query.named import Place as Named

        span = span_of(start, end)
        refuse_reversed_times(*span)
        with telling_to_begin_anew():
            since, later = self._between(database, *span, ignore_corruption=ignore_corruption)
            found = changes_between(
                since,
                later,
                table,
                where=where,
                place=Named(bucket, owner, prefix),
                pre_images=pre_images,
                ignore_set_aside=ignore_set_aside,
            )
        return found if columns is None else found.only(names_given(columns, "columns", "columns=['name']"))

    def diff(
        self,
        *,
        database: str | None = None,
        table: str = "objects",
        start: Time | Version | None = None,
        end: Time | Version | None = None,
        columns: Sequence[str] | None = None,
        where: Condition | None = None,
        bucket: str | None = None,
        owner: str | uuid.UUID | None = None,
        prefix: str | None = None,
        pre_images: bool | Sequence[str] = False,
        ignore_corruption: bool = False,
    ) -> Diff | LookedUp:
        """The net difference of a table between ``start`` (without one: nothing) and ``end`` (without one: now), as of ``changes``.

        With ``pre_images`` also the earlier row, in ``_before``. With ``ignore_corruption`` keys of which either lacks rows are left out,
        with a warning.
        """
        from .query.changes import changed_table
        from .query.difference import Diff
        from .query.named import Place as Named

        since, later = self._between(database, *span_of(start, end), ignore_corruption=ignore_corruption)
        place = Named(bucket, owner, prefix)
        found = Diff.between(since, later, changed_table(later, table), where, place=place, pre_images=pre_images)
        return found if columns is None else found.only(names_given(columns, "columns", "columns=['name']"))

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
        new_tag_name(name)
        with self._maintainer(self._existing(database), writer) as held:
            return held.tag(name, timestamp=timestamp, version=version, replace=replace)

    def drop_tag(self, name: str, *, database: str | None = None, writer: str | None = None) -> Tag:
        """Take a name back from its cut; see ``Writer.drop_tag``."""
        tag_name(name)
        with self._maintainer(self._existing(database), writer) as held:
            return held.drop_tag(name)

    def pin(
        self,
        name: str,
        *,
        database: str | None = None,
        timestamp: Time | None = None,
        version: Version | None = None,
        writer: str | None = None,
    ) -> Pin:
        """Keep what is committed after the cut of now, of a time, or of a version from being pruned.

        It is committed by a maintainer, by default this machine's, and holds until it is dropped; who follows changes gives a pin of its
        own writer instead, which ends by itself. See ``Writer.pin``.
        """
        new_pin_name(name)
        with self._maintainer(self._existing(database), writer) as held:
            return held.pin(name, timestamp=timestamp, version=version)

    def unpin(self, name: str, *, database: str | None = None, writer: str | None = None) -> Pin:
        """Drop a pin of a maintainer, by default this machine's; see ``Writer.unpin``."""
        pin_name(name)
        with self._maintainer(self._existing(database), writer) as held:
            return held.unpin(name)

    def restore(
        self,
        table: str,
        *,
        database: str | None = None,
        timestamp: Time | None = None,
        version: Version | None = None,
        bucket: str | None = None,
        owner: str | uuid.UUID | None = None,
        prefix: str | None = None,
        writer: str | None = None,
        dry_run: bool = True,
        skip_collected: bool = False,
        with_purged: bool = False,
    ) -> Restored:
        """Make a table's live rows what they were at a time or version, in one transaction; nothing where they are that already.

        ``bucket``, ``owner`` and ``prefix`` name those that this is about, as in ``Snapshot.scan``; others are left alone.

        It is committed by a maintainer, by default this machine's; without ``dry_run=False`` nothing is written, and it only says what
        would be. ``DataCollected`` where data of rows may be gone, unless ``skip_collected`` leaves these out; ``ParentEnded`` where rows
        belong to rows that have ended. Who knows that nobody has deleted the data of what was purged restores that ``with_purged``, as
        far as collection has not come yet.
        """
        from .maintain.restore import plan_restore, restore
        from .query.named import Place as Named

        self.registry.refuse_alone(table)
        opened, place = self._existing(database).of_trusted(), Named(bucket, owner, prefix)
        if dry_run:
            return plan_restore(opened, table, timestamp, version, place=place, with_purged=with_purged)
        with self._maintainer(opened, writer) as held:
            return restore(
                opened, held, table, timestamp, version, place=place, skip_collected=skip_collected, with_purged=with_purged
            )

    def clone(
        self,
        target: str | os.PathLike[str] | Store,
        *,
        database: str | None = None,
        timestamp: Time | None = None,
        version: Version | None = None,
        writer: str | None = None,
        storage_options: Mapping[str, Any] | None = None,
    ) -> Cloned:
        """Write the state of now, of a time or of a version as a catalog of its own, without the history before it.

        Data files stay where they are: a tag, given by a maintainer of this catalog, keeps those of the version. ``storage_options`` are
        the target's. ``TargetNotEmpty`` where the database is there already; a clone that was interrupted is finished. A warning tells
        of tables whose data lies in this catalog by paths that lead to nothing in the clone.
        """
        from .maintain.clone import clone

        place = store_at(target, storage_options)
        opened = self._existing(database).of_trusted()
        with self._maintainer(opened, writer) as held:
            made = clone(opened, held, place, timestamp, version)
        of_clone = Database(place, opened.name).look()
        kept = [of_clone.table(name) for name in sorted(of_clone.definitions) if self.registry.keeps_data(name)]
        if left := [table.name for table in kept if any(of_clone.scan(table.name, columns=table.key[:1]).to_batches())]:
            warnings.warn(
                f"The data of {', '.join(left)} lies in {self.url} and is not in the clone: copy what lies below data/ of each "
                "writer to the same names there.",
                CatalogWarning,
                stacklevel=2,
            )
        return made

    def collect(
        self,
        *,
        database: str | None = None,
        older_than: Age = limits.COLLECTION_GRACE,
        deleter: Callback | None = None,
        data_url: str | None = None,
        data_options: Mapping[str, Any] | None = None,
        dry_run: bool = True,
        force: bool = False,
        pin_age: Age = limits.PLAIN_PIN_AGE,
        writer: str | None = None,
        clock: Callable[[], int] = clock.now_us,
        workers: Callable[[Deleters], GcWorkers] | None = None,
    ) -> Collected:
        """Forget tombstones that are old enough and delete their data where nothing needs it; without ``dry_run=False`` only say what.

        A run collects by the boundary that an earlier one has published, six hours before at least, and publishes the next; see
        ``maintain.gc.collect``. ``deleter`` is called with tables of data references and returns a boolean for each, whether that data
        is gone; or ``data_url`` says where data lies, such as ``s3://data/{owner}/{bucket_id}/{id}``, reached with ``data_options``.
        ``InvalidOption`` for an age that readers may need, unless forced; ``force`` also waits for nobody. A tag of who is no maintainer
        holds what it names for ``pin_age``. ``workers`` makes of deleters who does the work, by default this process.
        """
        from .maintain.gc.boundaries import check_grace
        from .maintain.gc.collect import InProcess, collect, dry_run_of
        from .maintain.gc.data import DataPlace, deleters
        from .maintain.gc.orphans import namer_of

        grace, longest = age_micros(older_than), age_micros(pin_age)
        check_grace(grace, force=force)
        place = DataPlace.given_by(data_url, data_options, self.store)
        opened = self._existing(database).of_trusted()
        given = deleters(deleter, place, self.registry.deleters(self.store, opened.name))
        maintainer_id(writer)
        if place is not None:
            namer_of(place, opened.files, opened.look())  # a URL that no table's data can have is a mistake
        work = InProcess(given) if workers is None else workers(given)
        if dry_run:
            return dry_run_of(opened.look(), work, grace, longest)
        with self._maintainer(opened, writer, clock) as held:
            return collect(opened.look, held, work, grace, longest, force=force)

    def reap(
        self,
        *,
        database: str | None = None,
        older_than: Age = limits.COLLECTION_GRACE,
        dry_run: bool = True,
        force: bool = False,
        writer: str | None = None,
        clock: Callable[[], int] = clock.now_us,
        find: Find | None = None,
    ) -> Reaped:
        """End the rows whose parent has ended, such as the objects of deleted buckets; without ``dry_run=False`` only count them.

        ``find`` finds a table's rows of some parents, by default in this process.
        """
        from .maintain.gc.boundaries import check_grace
        from .maintain.gc.reap import reap

        grace = age_micros(older_than)
        check_grace(grace, force=force)
        opened = self._existing(database).of_trusted()
        if dry_run:
            return reap(opened.look, None, grace, find)
        with self._maintainer(opened, writer, clock) as held:
            return reap(opened.look, held, grace, find, force=force)

    def orphans(
        self,
        *,
        database: str | None = None,
        older_than: Age = limits.COLLECTION_GRACE,
        data_url: str | None = None,
        data_options: Mapping[str, Any] | None = None,
        dry_run: bool = True,
        force: bool = False,
        writer: str | None = None,
    ) -> Iterator[Orphan]:
        """Data that no version names, at ``data_url`` or below the writers' own folders; deleted as it is found with ``dry_run=False``.

        A maintainer deletes them, by default this machine's, by the time of the store that they lie in.
        ``InvalidOption`` where no table could name anything there, or for an age that a writer's commit may need, unless forced;
        ``StoreNotFound`` where ``data_url`` is of a folder that is not there.
        """
        from .maintain.gc.boundaries import check_grace
        from .maintain.gc.data import DataPlace
        from .maintain.gc.orphans import namer_of, orphans

        grace = age_micros(older_than)
        check_grace(grace, force=force)
        place = DataPlace.given_by(data_url, data_options, self.store)
        if place is not None:
            place.require()
        by = maintainer_id(writer)
        opened = self._existing(database).of_trusted()
        return orphans(opened.look, namer_of(place, opened.files, opened.look()), grace, None if dry_run else by)

    def prune(
        self,
        older_than: Age,
        *,
        keep: int = 1,
        database: str | None = None,
        writer: str | None = None,
        grace: Age = limits.PRUNE_GRACE,
        pin_age: Age = limits.PLAIN_PIN_AGE,
        dry_run: bool = True,
        force: bool = False,
        clock: Callable[[], int] = clock.now_us,
        tell: Callable[[int], None] = lambda _: None,
    ) -> PruneResult:
        """Delete what is needed for nothing that stays: ``keep`` checkpoints, everything younger than ``older_than``, and what tags hold.

        Those of maintainers hold what they name, those of others for ``pin_age`` from their commit.

        What may go is published first, by a maintainer, and deleted by a run after the ``grace`` period. ``InvalidOption`` for ages that
        writers or readers under way may need, unless forced. ``tell`` is called with the number of files deleted so far.
        """
        from .maintain.prune import Pruning
        from .maintain.retention import Retention

        policy = Retention(age_micros(older_than), keep, age_micros(grace), age_micros(pin_age))
        # What stays must be there, and be whole: what this process has read of it before says nothing.
        opened = self._existing(database).of_trusted()
        maintainer_id(writer)
        if dry_run:
            return Pruning(opened, policy, None).run(force=force)
        with self._maintainer(opened, writer, clock) as held:
            return Pruning(opened, policy, held, tell).run(force=force)

    def retire(
        self,
        writers: str | Iterable[str],
        *,
        database: str | None = None,
        writer: str | None = None,
        dry_run: bool = True,
        clock: Callable[[], int] = clock.now_us,
    ) -> Retired:
        """Retire writers that have ended, for good; without ``dry_run=False`` only say which.

        A checkpoint of everybody says so, written by a compactor, by default this machine's: it takes over what they have committed, and
        who commits as one of them is refused with ``WriterRetired``. The first such checkpoint from ``limits.SEALED_AFTER`` later on seals
        their timelines: nothing of them can arrive any more, and readers ask nothing for them. Call it again to have it written.
        ``NotFound`` for a writer that is not there, ``InvalidOption`` for one that has committed lately or is forked, and for compactors
        and maintainers.
        """
        from .maintain.retire import retire

        named = names_given([writers] if isinstance(writers, str) else writers, "writers", "writers=['node-a']")
        opened = self._existing(database)
        if dry_run:
            return retire(opened, None, named)
        with self._maintainer(opened, writer, clock, COMPACTOR_PREFIX) as held:
            return retire(opened, held, named)

    def run_job(
        self,
        job: str,
        *,
        database: str | None = None,
        writer: str | None = None,
        clock: Callable[[], int] = clock.now_us,
        run: RunTasks | None = None,
        **options: Any,
    ) -> Any:
        """Run a job of an installed system, called ``SYSTEM.JOB``, with its own options; returns what the job does.

        It is committed by a compactor or a maintainer, as the job says, by default this machine's. ``run`` has the job's tasks done and
        returns what each came to, by default in this process. ``InvalidOption`` for an option that the job does not
        take; ``StaleRead`` where it took so long that what its tasks wrote may have been taken for orphans when its commit lands.
        """
        from .registry.jobs import in_turn

        found = self.registry.job(job)
        if writer is not None and not (is_maintainer(writer_id(writer)) or is_compactor(writer)):
            raise InvalidOption(
                f"{writer!r} is not a compactor or a maintainer, who do jobs.", next_step=f"Call it {found.role}NAME."
            )
        with self._maintainer(self._existing(database), writer, clock, found.role) as held:
            return found.done(job, held, run or in_turn, options)

    def verify(
        self,
        *,
        database: str | None = None,
        deep: bool = False,
        tell: Callable[[str], None] = lambda _: None,
        left_out: Callable[[Finding], None] = lambda _: None,
    ) -> Iterator[Finding]:
        """Read everything, and say one by one what is wrong or worth knowing; without a ``database`` of all that there are.

        Nothing is written. ``deep`` compares each checkpoint with what its transactions say; ``tell`` is told how far it is, and
        ``left_out`` of each database which checkpoints were not compared.
        """
        from .maintain.verify.report import verify

        obstacles, names = Obstacles(), [] if database is None else [database_name(database)]
        past = PastObstacles(self.store, obstacles.add)
        there = self._found_beside(obstacles, past)
        if not there or not {*names} <= {*there}:
            require(self.url, there, database)
        for name in names or there:
            yield from verify(LogFiles(past, name), deep=deep, tell=tell, left_out=left_out, obstacles=obstacles)

    def repair(
        self,
        *,
        database: str | None = None,
        join: Collection[str] = (),
        void: Collection[str] = (),
        set_aside: Collection[str] = (),
        take_in: Collection[str] = (),
        force: bool = False,
        deep: bool = False,
        writer: str | None = None,
        dry_run: bool = True,
        clock: Callable[[], int] = clock.now_us,
        tell: Callable[[str], None] = lambda _: None,
    ) -> Repair:
        """Mend what is wrong with a database as far as what is left allows, and say what is lost; nothing is written in a ``dry_run``.

        Markers of damaged checkpoints are removed where nothing is lost with them, and a checkpoint is written instead. The forked
        timelines of the writers in ``join`` are joined, and the commits from the future that ``void`` names, as ``WRITER@REVISION``, are
        voided. Transactions in ``set_aside``, by the names of their files or likewise, count as ones without events from then on, if
        they are bad, or with ``force`` whatever they are; a writer's name stands for all that are bad of it. Those in ``take_in``, whose
        files are whole again, count as what they are. It is done by a maintainer, by default this machine's.
        """
        from .maintain.remedies import Named
        from .maintain.repair import Repairer

        named = Named(
            join=names_given(join, "writers", "join=['node-a']"),
            void=names_given(void, "commits", "void=['node-a@7']"),
            set_aside=names_given(set_aside, "files", "set_aside=['node-a@7']"),
            take_in=names_given(take_in, "files", "take_in=['node-a@7']"),
            force=force,
        )
        obstacles, wanted = Obstacles(), None if database is None else database_name(database)
        past = PastObstacles(self.store, obstacles.add)
        there = self._found_beside(obstacles, past)
        if wanted not in there and (wanted is not None or len(there) != 1):
            require(self.url, there, wanted)
        name = wanted or there[0]
        repairer = Repairer(past, self.registry.beside, maintainer_id(writer), clock, DEFAULT_LIMITS, obstacles)
        with nullcontext() if dry_run else self._turn(name, writer):
            return repairer.repair(name, named, deep=deep, dry_run=dry_run, tell=tell)

    def _found_beside(self, obstacles: Obstacles, past: Store) -> list[str]:
        """The databases that are found past what is in the way; where that is all there is its own error."""
        there = databases_in(past)
        for _, error in [] if there else obstacles.untold():
            raise error
        return there

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
        from .write.writer import Writer

        with (
            self._turn(opened.name, writer, role) as chosen,
            Writer(opened, chosen, now, DEFAULT_LIMITS, takes=self.registry.writes) as held,
        ):
            yield held

    def _turn(self, database: str, writer: str | None, role: str = MAINTAINER_PREFIX) -> AbstractContextManager[WriterId]:
        """The writer that was named, else this machine's in that role, which no other process of it has open meanwhile."""
        from .write.host_turn import host_turn

        return host_turn(self.store, database, named=writer, default=host_writer(role))

    def _between(self, database: str | None, start: Moment, end: Moment, *, ignore_corruption: bool) -> tuple[Snapshot, Snapshot]:
        """The snapshots that are compared, both with the definitions of the later one; without a start the empty one.

        What is committed meanwhile must not look as if the start lay after the end, so a start that is a time is read first.
        """
        first = None
        if start.timestamp is not None:
            database = self.resolve_database(database, ignore_corruption=ignore_corruption)
            first = self.snapshot(database=database, ignore_corruption=ignore_corruption, **start.asked)
        later = self.snapshot(database=database, ignore_corruption=ignore_corruption, **end.asked)
        if first is None and start.given:
            first = self.snapshot(database=later.database, ignore_corruption=ignore_corruption, **start.asked)
        view = replace(version_view(later.files, Cut()), horizon=later.view.horizon) if first is None else first.view
        return Snapshot(later.files, view, later.definitions), later


def _warn_of(name: str, error: StoreError) -> None:
    """Whoever goes past something that is in the way is told."""
    warnings.warn(error.message, CatalogWarning, stacklevel=2)
