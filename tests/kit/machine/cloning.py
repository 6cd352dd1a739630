"""Histories in which a maintainer clones at any moment: what a clone shows, or that it is refused before anything is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bucketcatalog import Catalog, CorruptionError, HistoryPruned
from bucketcatalog.maintain.clone import Cloned, clone
from bucketcatalog.maintain.verify.findings import Severity
from bucketcatalog.store.base import Store
from bucketcatalog.store.memory import MemoryStore

from ..reference.timelines import Cut
from .columns import DATABASE
from .comparing import Comparer, check
from .onlooker import EngineReader
from .pruning import MAINTAINERS, Pruning
from .steps import PROCESSES, Part
from .stores import View, published


@dataclass(frozen=True, slots=True)
class Clone:
    """A maintainer clones the version that was noted down under that number; that of now where it is the first, before anything."""

    who: int
    number: int


class Cloning(Pruning):
    """Takes clones, each to a place of its own."""

    def _take(self, step: Any) -> None:
        if isinstance(step, Clone):
            self._clone(step)
        else:
            super()._take(step)

    def _clone(self, step: Clone) -> None:
        past, visible = self._world.past(step.number), self._timelines.visible()
        if not visible or not (past.version is None or self._may_read(past)):
            return
        cut = visible if past.version is None else past.cut
        target, before = MemoryStore(clock=self._world.time.now), _names(self._store)
        view = View(self._store, self._world.time.now)
        try:
            made = self._made(step.who, view, target, past.version)
        except HistoryPruned:
            assert not self._has_ends(cut), "what a clone goes on from is there"
            check("what a clone that was refused has written", (before, set()), (_names(self._store), _names(target)))
            self._say("    refused: it was pruned")
            return
        except CorruptionError as error:
            check(
                "the message names a damaged file", True, any(name in error.message for name in self._maintenance.horizon.damaged)
            )
            self._maintenance.note(view)
            return
        assert self._has_ends(cut), "what a clone goes on from was pruned"
        self._maintenance.note(view)
        self._maintenance.horizon.tags[made.tag] = made.version
        self._check_clone(target, made, cut)

    def _made(self, who: int, view: View, target: Store, version: str | None) -> Cloned:
        now = self._world.time.now
        catalog = self._maintenance.processes.catalog(who, view)
        with catalog.writer(MAINTAINERS[who], database=DATABASE, clock=now) as held:
            return clone(catalog.database(DATABASE), held, target, None, version, now=now)

    def _has_ends(self, cut: Cut) -> bool:
        """Whether the last transactions in the cut are in the store."""
        there = {found.uuid for name in _names(self._store) if (found := published(name, b"")) is not None}
        return all(self._ends(writer, cut) <= there for writer in {self._timelines.transactions[uuid].writer for uuid in cut})

    def _ends(self, writer: str, cut: Cut) -> Cut:
        """The writer's transactions in the cut that no other one in it follows."""
        own = {uuid for uuid in cut if self._timelines.transactions[uuid].writer == writer}
        return frozenset(own - {parent for uuid in own for parent in self._timelines.transactions[uuid].parents})

    def _check_clone(self, target: Store, made: Cloned, cut: Cut) -> None:
        """The clone is whole, shows what the version shows, also after a checkpoint, and each writer goes on in it."""
        self._say(f"    cloned {made.version}")
        now = self._world.time.now
        findings = [it for it in Catalog(target).verify(database=DATABASE, deep=True) if it.severity is not Severity.INFO]
        check("findings in the clone", [], [str(it) for it in findings if it.code != "OPEN_FORK"])
        for scope in (None, "all"):
            if scope is not None:
                with Catalog(target).writer("compactor-2", database=DATABASE, clock=now) as compactor:
                    compactor.checkpoint(scope=scope)
            snapshot = EngineReader(target, now=now).snapshot()
            for part in Part:
                Comparer(self._world, target).part(f"in the clone, checkpoint {scope}", part, snapshot, cut)
        for writer in sorted({*PROCESSES.values()}):
            self._go_on(writer, target, cut)

    def _go_on(self, writer: str, target: Store, cut: Cut) -> None:
        """The writer's next commit has the next revision, wherever its timeline has one end."""
        heads = [self._timelines.transactions[uuid] for uuid in self._ends(writer, cut)]
        if len(heads) == 1:
            with Catalog(target).writer(writer, database=DATABASE, clock=self._world.time.now) as held:
                with held.transaction(app_id=f"{writer} in {target.url}", app_version=1) as tx:
                    pass  # which is said although nothing comes of it
                assert tx.committed is not None
                check(f"the next revision of {writer} in the clone", heads[0].revision + 1, tx.committed.revision)


def _names(store: Store) -> set[str]:
    return {info.name for info in store.list("")}
