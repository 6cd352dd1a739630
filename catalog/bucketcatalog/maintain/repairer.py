"""Doing what was planned: first what is written, then what is no longer referred to.

Each step leaves a catalog whose answers are right, and a repair that is broken off is taken up by the next.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from ..log.files import LogFiles
from ..log.timeline import Limits
from ..model import paths
from ..model.tables import Table
from ..query.database import Database
from ..store.base import Store
from ..write.writer import Writer
from .repair import Action, FilesWithout, Plan, decide
from .verify.deep import differences
from .verify.findings import Finding
from .verify.walk import Tell, Walk


@dataclass(frozen=True, slots=True)
class Repair:
    """What was done about a database, or would be, and what is lost whatever is done."""

    database: str
    actions: tuple[Action, ...]
    lost: tuple[Finding, ...]


@dataclass(frozen=True)
class Repairer:
    """Repairs databases of a catalog as the maintainer ``writer``; ``registered`` are the tables that its user has made known."""

    store: Store
    registered: Mapping[str, Table]
    writer: str
    clock: Callable[[], int]
    limits: Limits

    def repair(self, name: str, *, join: Collection[str], void: Collection[str], deep: bool, dry_run: bool, tell: Tell) -> Repair:
        """Look at everything of a database, decide, and unless it is a ``dry_run`` do it."""
        walk = Walk(LogFiles(self.store, name), tell)
        findings = list(walk.findings())
        if deep:
            findings += differences(walk.files, walk.checkpoints)
        now = self.store.now_us() if dry_run else walk.files.time_for(self.writer)  # who writes is told no other clock's
        plan = decide(walk, findings, now, join=join, void=void)
        if not dry_run:
            self._do(plan, tell)
        done = tuple(replace(action, done=not dry_run and not action.obstacle) for action in plan.actions)
        return Repair(name, done, plan.lost)

    def _do(self, plan: Plan, tell: Tell) -> None:
        if plan.voids:
            tell("voiding")
            with self._open(plan, self.writer) as maintainer:
                maintainer.void(plan.voids)
        for writer in plan.joins:
            tell(f"joining the branches of {writer}")
            with self._open(plan, writer, joins=True) as forked:
                forked.join()
        if plan.dropped or plan.instead:
            tell("writing a checkpoint")
            with self._open(plan, self.writer) as maintainer:
                maintainer.checkpoint(scope="all", instead=plan.instead)
        for writer, head in plan.dropped:
            self.store.delete(paths.newest_marker(writer, plan.database, head.revision, head.uuid))

    def _open(self, plan: Plan, writer: str, *, joins: bool = False) -> Writer:
        """A writer in the database that meets none of the broken checkpoints."""
        database = Database(self.store, plan.database, dict(self.registered))
        database.files = FilesWithout(self.store, plan.database, plan.broken)
        return Writer(database, writer, self.clock, self.limits, joins=joins)
