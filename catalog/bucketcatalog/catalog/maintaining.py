"""What is done to a catalog to keep it: restored, cloned, collected, pruned, verified and repaired.

Whatever deletes is a dry run unless it is told otherwise.
"""

from __future__ import annotations

import os
import uuid
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from .. import clock, limits
from ..errors import CatalogWarning, InvalidOption
from ..limits import DEFAULT_LIMITS
from ..log.files import LogFiles
from ..log.versions import Version
from ..model.names import COMPACTOR_PREFIX, database_name, is_compactor, is_maintainer, maintainer_id, names_given, writer_id
from ..model.public import public
from ..model.times import Age, Time, age_micros
from ..query.database import Database, databases_in, require
from ..store import Store
from ..store.obstacles import Obstacles, PastObstacles
from ..store.open import store_at
from .opened import Opened

if TYPE_CHECKING:
    from ..maintain.clone import Cloned
    from ..maintain.gc.collect import Collected, GcWorkers
    from ..maintain.gc.data import Callback, Deleters
    from ..maintain.gc.orphans import Orphan
    from ..maintain.gc.reap import Find, Reaped
    from ..maintain.prune import PruneResult
    from ..maintain.repair import Repair
    from ..maintain.restore import Restored
    from ..maintain.retire import Retired
    from ..maintain.verify.findings import Finding
    from ..registry.jobs import RunTasks


@public("clone", "collect", "orphans", "prune", "reap", "repair", "restore", "retire", "run_job", "verify")
class Maintaining(Opened):
    """What whoever maintains a catalog asks of it."""

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
        from ..maintain.restore import plan_restore, restore
        from ..query.named import Place as Named

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
        from ..maintain.clone import clone

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
        from ..maintain.gc.boundaries import check_grace
        from ..maintain.gc.collect import InProcess, collect, dry_run_of
        from ..maintain.gc.data import DataPlace, deleters
        from ..maintain.gc.orphans import namer_of

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
        from ..maintain.gc.boundaries import check_grace
        from ..maintain.gc.reap import reap

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
        from ..maintain.gc.boundaries import check_grace
        from ..maintain.gc.data import DataPlace
        from ..maintain.gc.orphans import namer_of, orphans

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
        from ..maintain.prune import Pruning
        from ..maintain.retention import Retention

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
        from ..maintain.retire import retire

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
        from ..registry.jobs import in_turn

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
        from ..maintain.verify.report import verify

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
        from ..maintain.remedies import Named
        from ..maintain.repair import Repairer

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
