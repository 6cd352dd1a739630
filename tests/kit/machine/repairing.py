"""Histories in which files are damaged and timelines forked or ahead of their time, and a maintainer repairs: then all is as it was.

What is damaged are checkpoints and segments, which the transactions make again; where these have been pruned, and something is lost for
good, the repair is tried on a copy, and the files come back as if from a backup.
"""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from bucketcatalog import BucketCatalogError, Catalog, CorruptionError
from bucketcatalog.maintain.repair import Repair as Repaired
from bucketcatalog.maintain.verify.findings import Severity
from bucketcatalog.store.base import Store
from bucketcatalog.store.memory import MemoryStore

from ..reference.model import VersionName
from ..reference.model import state as state_of
from .columns import DATABASE, DROPPING, PINNED
from .comparing import Comparer, check
from .driver import EngineProcess, NeedsRepair
from .onlooker import EngineReader
from .pruning import MAINTAINERS, Pruning
from .steps import PROCESSES, TABLES, Action, Fault, Leave, Part
from .stores import View, published, segments_of, segments_of_transaction
from .world import START

HOUR = 3_600_000_000


@dataclass(frozen=True, slots=True)
class Repair:
    """So many files are damaged, as chance has it, and a maintainer repairs; after an hour, if it ``waits``, forks are joined too."""

    who: int
    chance: int
    files: int
    waits: bool


@dataclass(frozen=True, slots=True)
class FromTheFuture:
    """A process whose clock, and whose store's, are hours ahead commits; it ends, and a maintainer voids what it has committed."""

    who: int
    process: str
    actions: tuple[Action, ...]


def damage(store: Store, file: str, chance: random.Random) -> None:
    """Lose a file, cut it or flip a bit of it."""
    data = bytearray(store.get(file))
    match chance.choice(["lose", "cut", "flip"]):
        case "lose":
            store.delete(file)
        case "cut":
            store.put(file, bytes(data[: chance.randrange(len(data))]))
        case _:
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            store.put(file, bytes(data))


class Repairing(Pruning):
    """Takes damage and repairs."""

    def _take(self, step: Any) -> None:
        match step:
            case Repair():
                self._wait_long(HOUR if step.waits else 0)
                if self._timelines.arrived:
                    self._damage_and_repair(step)
            case FromTheFuture():
                self._wait_long(0)
                self._commit_from_the_future(step)
            case _:
                super()._take(step)

    def _damage_and_repair(self, step: Repair) -> None:
        chance = random.Random(step.chance)
        files = [info.name for info in self._store.list("") if info.name.endswith((".ckpt", ".parquet"))]
        whole = {name: self._store.get(name) for name in chance.sample(files, min(len(files), step.files))}
        concerned = self._concerned({*whole, *self._maintenance.horizon.damaged})
        for name in sorted(whole):
            damage(self._store, name, chance)
            self._say(f"    {name} is damaged")
        self._check_answers(whole)
        planned = Catalog(self._store).repair(database=DATABASE)
        dropped = {action.subject for action in planned.actions if action.what == "drop"}
        check("checkpoints that are dropped and are sound", set(), dropped - concerned)
        if planned.lost or any(action.what == "rebuild" for action in planned.actions):
            self._say("    not all can be had without it")
            lost = [str(finding) for finding in planned.lost if finding.code != "UNREADABLE_HISTORY"]
            check("what is said to be lost though every event is there", [], lost if self._is_all_there(whole) else [])
            self._repair_a_copy(step, whole)
            for name, data in whole.items():
                self._store.put(name, data)
            return
        forked = [action.subject for action in planned.actions if action.what == "join"] if step.waits else []
        view = View(self._store, self._world.time.now)
        self._repair(self._maintenance.processes.catalog(step.who, view), step.who, join=forked)
        self._maintenance.note(view)
        self._maintenance.horizon.damaged |= set(whole)
        self._check_now(self._store, "after a repair")
        findings = [it for it in Catalog(self._store).verify(database=DATABASE, deep=True) if it.severity is not Severity.INFO]
        check("findings after a repair", [], [str(it) for it in findings if step.waits or it.code != "OPEN_FORK"])
        if step.waits:
            check("timelines that nobody joins", set(), {it.writer for it in self._transactions() if self._needs_join(it.writer)})

    def _is_all_there(self, damaged: Collection[str]) -> bool:
        """Whether every transaction that has arrived is in the store, with whole segments."""
        found = [it for info in self._store.list("") if (it := published(info.name, self._store.get(info.name))) is not None]
        segments = {name.rpartition("/")[2].removesuffix(".parquet") for name in (*damaged, *self._maintenance.horizon.damaged)}
        referred = {uuid for it in found for uuid in segments_of_transaction(it.data)}
        return self._timelines.arrived <= {it.uuid for it in found} and not segments & referred

    def _concerned(self, damaged: set[str]) -> set[str]:
        """The checkpoints that damage to these files makes unsound: those among them, and those that refer to segments among them."""
        segments = {name.rpartition("/")[2].removesuffix(".parquet") for name in damaged}
        names = {info.name for info in self._store.list("") if info.name.endswith(".ckpt")} - damaged
        return damaged | {name for name in names if segments_of(self._store.get(name)) & segments}

    def _repair(self, catalog: Catalog, who: int, **options: Any) -> Repaired:
        now = self._world.time.now
        return catalog.repair(database=DATABASE, writer=MAINTAINERS[who], dry_run=False, clock=now, **options)

    def _needs_join(self, writer: str) -> bool:
        """Whether a timeline has several ends, not all of which may have been deleted."""
        heads = self._timelines.heads(writer)
        return len(heads) > 1 and not heads <= self._maintenance.horizon.cut

    def _transactions(self) -> list[Any]:
        return [self._timelines.transactions[uuid] for uuid in self._timelines.arrived]

    def _check_answers(self, damaged: Collection[str]) -> None:
        """With damage an answer is right, or an error that names a file."""
        try:
            self._check_now(self._store, "beside damage")
        except CorruptionError as error:
            check(f"{error.message} names a damaged file", True, any(name in error.message for name in damaged))

    def _check_now(self, store: Store, when: str) -> None:
        snapshot = EngineReader(store, now=self._world.time.now).snapshot()
        for part in Part:
            Comparer(self._world, store).part(f"now, {when}", part, snapshot, self._timelines.visible())

    def _repair_a_copy(self, step: Repair, damaged: Collection[str]) -> None:
        """What a repair brings back is right, be it all or not; who reads on past the damage is shown nothing that is not there.

        Of a checkpoint that is made again the rows are right, but where a void may be lost with it.
        """
        copy = MemoryStore(clock=self._world.time.now)
        for info in self._store.list(""):
            copy.put(info.name, self._store.get(info.name))
        state = self._world.newest()
        try:
            snapshot = Catalog(copy).snapshot(database=DATABASE, ignore_corruption=True)
        except CorruptionError:
            snapshot = None
        for table in TABLES if snapshot is not None else ():
            live = {it.name for it in state.live(table).values()}
            found = snapshot.scan(table, columns=["_version"]).to_arrow()["_version"].to_pylist() if snapshot else []
            ended = {name for name in set(found) - live if not self._is_end_gone(table, name, damaged)}
            check(f"rows of {table} beside damage that are not there", set(), ended)
        try:
            made = self._repair(Catalog(copy), step.who)
        except BucketCatalogError as error:  # what no checkpoint can be made without
            check(f"{error.message} names a damaged file", True, any(name in error.message for name in damaged))
            return
        incomplete = [finding for finding in made.lost if finding.code != "UNREADABLE_HISTORY"]
        is_voided = bool(self._timelines.voided(self._timelines.visible()))
        if all("its rows are there" in finding.message and not is_voided for finding in incomplete):
            self._check_now(copy, "after a repair of a copy")
            version = EngineReader(copy, now=self._world.time.now).snapshot().version
            again = EngineReader(copy, now=self._world.time.now).snapshot(version=version)
            for part in Part:
                Comparer(self._world, copy).part(
                    "by the version of now, after a repair of a copy", part, again, self._timelines.visible()
                )

    def _is_end_gone(self, table: str, version: VersionName, damaged: Collection[str]) -> bool:
        """Whether everything that ended a version was pruned, or is in what is damaged: who reads on past that cannot know."""
        segments = {name.rpartition("/")[2].removesuffix(".parquet") for name in damaged}
        there = [it for info in self._store.list("") if (it := published(info.name, self._store.get(info.name))) is not None]
        broken = {it.uuid for it in there if segments_of_transaction(it.data) & segments}
        whole = {it.uuid for it in there} | {uuid for uuid in self._timelines.arrived if version.startswith(uuid)}
        events = self._timelines.events(self._timelines.visible())
        left = [it for it in events if it.stamp.uuid in whole - broken or it.stamp.name == version]
        return version in {it.name for it in state_of(left, PINNED, DROPPING).live(table).values()}

    # Commits from the future.

    def _commit_from_the_future(self, step: FromTheFuture) -> None:
        self._leave(Leave(step.process))
        writer, now = PROCESSES[step.process], self._world.time.now
        model, visible = self._timelines.open(writer), self._timelines.visible()
        addressed = self._drafter.drafts(step.actions)
        if model is None or not visible or not addressed:
            return
        try:
            engine = EngineProcess(self._store, writer, now=lambda: now() + 2 * HOUR, clock=lambda: now() + 2 * HOUR)
        except NeedsRepair:
            return
        (found,) = engine.commit(addressed, Fault.NONE).published
        engine.close()
        made = self._timelines.commit(model, [it.draft for it in addressed], uuid=found.uuid, commit_time=found.commit_time)
        self._world.note(made)
        self._world.puts[:] = [event for event in self._world.puts if event.stamp.uuid != made.uuid]  # which nobody names
        self._say(f"    {writer}@{found.revision} {found.uuid} at {found.commit_time - START:+}")
        self._check_now(self._store, "with a commit from the future")
        view = View(self._store, now)
        self._repair(self._maintenance.processes.catalog(step.who, view), step.who, void=[f"{writer}@{found.revision}"])
        self._maintenance.note(view)
        check("what is voided", frozenset({made.uuid}), self._timelines.voided(self._timelines.visible() - visible))
        self._check_now(self._store, "after it was voided")
