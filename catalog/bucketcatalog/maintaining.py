"""What is done about a catalog as a whole, by maintainers: tags, restores, collection, checks and repairs."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from . import clock
from .errors import InvalidOption
from .log.files import LogFiles
from .log.timeline import DEFAULT_LIMITS
from .log.versions import Version
from .maintain.clone import Cloned, clone
from .maintain.gc.collect import GRACE, Collected, InProcess, Workers, check_grace, collect, dry_run_of
from .maintain.gc.data import Callback, Deleter, Place, deleter_of
from .maintain.gc.orphans import Orphan, namer_of, orphans
from .maintain.gc.reap import Find, Reaped, reap
from .maintain.prune import PruneResult, Pruning
from .maintain.repair import Repair, Repairer
from .maintain.restore import Restored, plan_restore, restore
from .maintain.retention import Retention
from .maintain.verify.findings import Finding
from .maintain.verify.walk import verify
from .model.names import MAINTAINER_PREFIX, database_name, host_writer, is_maintainer, several, tag_name, writer_id
from .model.times import Age, Time, age_micros
from .opening import Opened
from .query.database import Database
from .store import Store
from .write.tags import Tag
from .write.writer import Writer


class Maintained(Opened):
    """A catalog and what its maintainers do. Whatever deletes is a dry run unless it is told otherwise."""

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
        the target's. ``TargetNotEmpty`` where the database is there already; a clone that was interrupted is finished.
        """
        place = Opened(target, storage_options=storage_options).store
        with self._maintainer(database, writer) as held:
            return clone(self.database(held.database), held, place, timestamp, version)

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
        place = Place.given_by(data_url, data_options, self.store)
        given = deleter_of(deleter, place)
        opened = self._existing(database)
        by = maintainers_name(writer)
        if place is not None:
            namer_of(place, opened.files, opened.look())  # a URL that no table's data can have is a mistake
        if dry_run:
            return dry_run_of(opened.look(), workers(given), grace)
        with self._maintainer(opened.name, by, clock) as held:
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
        writer: str | None = None,
    ) -> Iterator[Orphan]:
        """Data that no version names, at ``data_url`` or below the writers' own folders; deleted as it is found with ``dry_run=False``.

        A maintainer deletes them, by default this machine's, by the time of the store that they lie in.
        ``InvalidOption`` where no table could name anything there, or for an age that a writer's commit may need, unless forced;
        ``StoreNotFound`` where ``data_url`` is of a folder that is not there.
        """
        grace = age_micros(older_than)
        check_grace(grace, force=force)
        place = Place.given_by(data_url, data_options, self.store)
        if place is not None:
            place.require()
        by = maintainers_name(writer)
        opened = self._existing(database)
        return orphans(opened.look, namer_of(place, opened.files, opened.look()), grace, None if dry_run else by)

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
        clock: Callable[[], int] = clock.now_us,
        tell: Callable[[int], None] = lambda _: None,
    ) -> PruneResult:
        """Delete what is needed for nothing that stays: ``keep`` checkpoints, everything younger than ``older_than``, and all tags.

        What may go is published first, by a maintainer, and deleted by a run after the ``grace`` period. ``InvalidOption`` for ages that
        writers or readers under way may need, unless forced. ``tell`` is called with the number of files deleted so far.
        """
        policy = Retention(age_micros(older_than), keep, age_micros(grace))
        # What stays must be there, and be whole: what this process has read of it before says nothing.
        opened = Database(self.store, self._existing(database).name, self._registered)
        maintainer = maintainers_name(writer)
        if dry_run:
            return Pruning(opened, policy, None).run(force=force)
        with Writer(opened, maintainer, clock, DEFAULT_LIMITS) as held:
            return Pruning(opened, policy, held, tell).run(force=force)

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
        joined, voided = several(join, "writers", "join=['node-a']"), several(void, "commits", "void=['node-a@7']")
        name = self.resolve_database(database)
        if name not in (there := self.databases()):
            self._require(name, there)
        repairer = Repairer(self.store, self._registered, maintainers_name(writer), clock, DEFAULT_LIMITS)
        return repairer.repair(name, join=joined, void=voided, deep=deep, dry_run=dry_run, tell=tell)

    def _maintainer(self, database: str | None, writer: str | None, now: Callable[[], int] = clock.now_us) -> Writer:
        """A writer of what is about the catalog itself, in a database that is there."""
        name = self._existing(database).name
        return self.writer(host_writer(MAINTAINER_PREFIX) if writer is None else writer, database=name, clock=now)


def maintainers_name(writer: str | None) -> str:
    """The maintainer that was asked for, by default this machine's; ``InvalidOption`` for a name that is none's."""
    name = writer_id(host_writer(MAINTAINER_PREFIX) if writer is None else writer)
    if not is_maintainer(name):
        raise InvalidOption(f"{name!r} is no maintainer, and nobody else deletes.", next_step=f"Call it {MAINTAINER_PREFIX}NAME.")
    return name
