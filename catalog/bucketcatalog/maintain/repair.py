"""Repair: what is to be done about a database, looked for, decided and done.

Each step leaves a catalog whose answers are right, and a repair that is broken off is taken up by the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from ..checkpoint.merge import run_task
from ..checkpoint.plan import prepare_kept
from ..checkpoint.publish import publish
from ..format.records import SetAside
from ..limits import Limits
from ..log.files import LogFiles
from ..model import paths
from ..query.database import Beside, Database
from ..store.base import Store
from ..store.obstacles import Obstacles
from ..write.writer import Writer
from .remedies import Action, Named, Plan, decide, left_to_do
from .verify.deep import differences
from .verify.findings import Finding
from .verify.walk import Tell, Walk

_LINKS = 50_000
"""So many links, about, are said in one transaction, which is far smaller with them than any may be."""


@dataclass(frozen=True, slots=True)
class Repair:
    """What was done about a database, or would be, and what is lost whatever is done.

    After a dry run it may be ``undecided`` what else is to be done, for that is known once something is set aside or taken in.
    """

    database: str
    actions: tuple[Action, ...]
    lost: tuple[Finding, ...]
    undecided: bool = False


@dataclass(frozen=True)
class Repairer:
    """Repairs databases of a catalog as the maintainer ``writer``; ``beside`` is what its catalog knows of tables.

    What the store goes past in listings it tells the ``obstacles``.
    """

    store: Store
    beside: Beside
    writer: str
    clock: Callable[[], int]
    limits: Limits
    obstacles: Obstacles

    def repair(self, name: str, named: Named, *, deep: bool, dry_run: bool, tell: Tell) -> Repair:
        """Look at everything of a database, decide, and unless it is a ``dry_run`` do it.

        Where something is set aside or taken in that comes first, and what else is to be done is decided by another look.
        """
        plan = self._decided(name, named, deep=deep, dry_run=dry_run, tell=tell)
        actions = [*plan.actions, *plan.later]
        if not dry_run:
            self._do(plan, tell)
            if plan.asides:
                actions = [*plan.actions]
                self.obstacles.tell_again()
                plan = self._decided(name, named, deep=deep, tell=tell, again=True)
                self._do(plan, tell)
                actions += plan.actions
        done = tuple(replace(action, done=not dry_run and not action.obstacle) for action in actions)
        undecided = dry_run and bool(plan.asides)
        return Repair(name, done, tuple(finding.as_lost() for finding in plan.lost), undecided)

    def _decided(self, name: str, named: Named, *, deep: bool, tell: Tell, dry_run: bool = False, again: bool = False) -> Plan:
        """What is to be done, by a look at everything; where that is taken ``again``, of what was named what is left to do."""
        walk = Walk(LogFiles(self.store, name), tell, self.obstacles)
        findings = list(walk.findings())
        if deep:
            findings += differences(walk.files, walk.checkpoints, walk.definitions, walk.voided)
        now = self.store.now_us() if dry_run else walk.files.time_for(self.writer)  # who writes goes by no other clock
        if again:
            named = left_to_do(named, walk, findings, now)
        return decide(walk, findings, now, by=self.writer, named=named)

    def _do(self, plan: Plan, tell: Tell) -> None:
        """The maintainer's own timeline first, for it commits what follows: what is set aside, which others may not get past; and voids.

        These before the joins of others, whose branches may end in the future.
        """
        self._join(plan, [writer for writer in plan.joins if writer == self.writer], tell)
        if plan.asides:
            tell("setting aside")
            with self._open(plan, self.writer) as maintainer:
                for entries in _portions(plan.asides):
                    maintainer.set_aside(entries, after=plan.after)
        if plan.voids:
            tell("voiding")
            with self._open(plan, self.writer) as maintainer:
                maintainer.void(plan.voids)
        self._join(plan, [writer for writer in plan.joins if writer != self.writer], tell)
        for cut in plan.kept:
            tell("writing the checkpoint of a tag")
            prepared = prepare_kept(plan.files, self.writer, cut, None, reuses=False)
            publish(plan.files, prepared, [run_task(self.store, task) for task in prepared.tasks])
        if plan.dropped or plan.instead is not None:
            tell("writing a checkpoint")
            with self._open(plan, self.writer) as maintainer:
                maintainer.checkpoint(scope="all", instead=plan.instead or ())
        for writer, head in plan.dropped:
            self.store.delete(paths.newest_marker(writer, plan.database, head))

    def _join(self, plan: Plan, writers: Iterable[str], tell: Tell) -> None:
        for writer in writers:
            tell(f"joining the branches of {writer}")
            with self._open(plan, writer, joins=True) as forked:
                forked.join()

    def _open(self, plan: Plan, writer: str, *, joins: bool = False) -> Writer:
        """A writer in the database that meets none of the broken checkpoints."""
        database = Database(self.store, plan.database, self.beside)
        database.files = plan.files
        return Writer(database, writer, self.clock, self.limits, joins=joins)


def _portions(asides: Iterable[SetAside]) -> Iterator[list[SetAside]]:
    """The entries, in their order, as many at a time as one transaction can hold."""
    portion: list[SetAside] = []
    links = 0
    for entry in asides:
        if links >= _LINKS:
            yield portion
            portion, links = [], 0
        portion.append(entry)
        links += 1 + len(entry.parents) + sum(map(len, entry.reads.heads.values()))
    yield portion
