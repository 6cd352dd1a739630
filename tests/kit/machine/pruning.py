"""Histories in which maintainers prune, tag and pin at any moment: answers never change, except behind the horizon.

What may be deleted is said here once more, independently: only what lies in the cut that was published, and no head of a timeline. What can
be read is what contains that cut, and what a tag names. Everything else must be refused, never answered with something missing. Every cut
that a pin stands at contains the one that was published.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bucketcatalog import Catalog, CorruptionError, HistoryPruned
from bucketcatalog.store.base import Store
from bucketcatalog.store.faults import SimulatedCrash, Wrapped

from ..reference.timelines import EMPTY, Cut, Draft, Process, Uuid
from .columns import DATABASE
from .comparing import check
from .horizons import DataBoundary, Horizon, PruningComparer
from .machine import Machine, Running
from .onlooker import heads_of
from .steps import History
from .stores import View, data_boundary_of, parents_of, published, reads_of, voids_of
from .world import START, Remembered, Time, World

MAINTAINERS = ("maintainer-1", "maintainer-2")
ANEW = 1
"""The maintainer whose process is a new one each time; the other's goes on, with all that it has read."""


@dataclass(frozen=True, slots=True)
class Prune:
    """A maintainer prunes; ``dies_at`` is the delete, counted from 0, at which its process dies, ``after`` it or before."""

    who: int
    older_than: int
    grace: int
    keep: int = 1
    dies_at: int | None = None
    after: bool = False


@dataclass(frozen=True, slots=True)
class Tag:
    """A maintainer gives a name to a version that was noted down, by any number, or takes it back."""

    name: str
    number: int
    drop: bool = False
    who: int = ANEW


@dataclass(frozen=True, slots=True)
class Pin:
    """A maintainer has its pin stand at a version that was noted down, by any number, or drops it."""

    number: int
    drop: bool = False
    who: int = ANEW


@dataclass(frozen=True, slots=True)
class LongWait:
    """All that is under way arrives, and then more time passes than anything may be late."""

    microseconds: int = 800_000_000


class DiesAtDelete(Wrapped):
    """Deletes until its process dies."""

    def __init__(self, inner: Store, at: int | None, *, after: bool) -> None:
        super().__init__(inner)
        self.deleted: list[str] = []
        self._at = at
        self._after = after

    def delete(self, name: str) -> None:
        """As the inner store, until it is over."""
        dies = self._at is not None and len(self.deleted) == self._at
        if not dies or self._after:
            self.inner.delete(name)
            self.deleted.append(name)
        if dies:
            raise SimulatedCrash(name)


class Passing(Wrapped):
    """The store of a process that goes on from step to step; each step gives it another ``inner``."""


class Processes:
    """The maintainers' processes: the first one's keeps its catalog, and what that has read, until it dies."""

    def __init__(self) -> None:
        self._lasting: tuple[Passing, Catalog] | None = None

    def catalog(self, who: int, store: Store) -> Catalog:
        """The catalog of a maintainer for one step on this store."""
        if who == ANEW:
            return Catalog(store)
        if self._lasting is None:
            passing = Passing(store)
            self._lasting = passing, Catalog(passing)
        passing, catalog = self._lasting
        passing.inner = store
        return catalog

    def dies(self, who: int) -> None:
        """What a maintainer does next is done by a process that has read nothing."""
        if who != ANEW:
            self._lasting = None


class Maintenance:
    """What maintainers do in a world, and what the model makes of it."""

    def __init__(
        self, world: World, store: Store, say: Callable[[str], None], optional: Callable[[], Cut] = lambda: EMPTY
    ) -> None:
        """``optional`` says what a maintainer may have overlooked: what arrived too late for every checkpoint that there is."""
        self.horizon = Horizon()
        self.processes = Processes()
        self._world = world
        self._timelines = world.timelines
        self._store = store
        self._say = say
        self._optional = optional

    def prune(self, step: Prune) -> None:
        """Prune, perhaps not to the end."""
        if not self._timelines.arrived:
            return
        dying = DiesAtDelete(self._store, step.dies_at, after=step.after)
        view = View(dying, self._world.time.now)
        try:
            self.processes.catalog(step.who, view).prune(
                f"{step.older_than}s",
                keep=step.keep,
                grace=f"{step.grace}s",
                database=DATABASE,
                writer=MAINTAINERS[step.who],
                dry_run=False,
                force=True,
                clock=self._world.time.now,
            )
        except SimulatedCrash:
            self._say("    dies")
            self.processes.dies(step.who)
        except CorruptionError as error:  # of a checkpoint that a tag may have, or else nobody
            check(f"{error.message} names a damaged file", True, any(name in error.message for name in self.horizon.damaged))
        self.note(view)
        horizon = self._published()
        if horizon is not None:
            self.horizon.cut = cut = self._timelines.ancestors(heads_of(horizon))
            binding = cut - self._timelines.voided(cut)
            self.horizon.time = max(self._timelines.transactions[uuid].commit_time for uuid in binding)
        self._say(f"    horizon {horizon}, {len(dying.deleted)} files deleted")
        for name in dying.deleted:
            self._say(f"      {name}")
        self._check_deleted(dying.deleted)
        behind = {who: version for who, (version, cut) in self.horizon.pins.items() if not self.horizon.cut <= cut}
        check("pins that do not contain the horizon", {}, behind)

    def _published(self) -> str | None:
        """The horizon that was published last, as a dry run tells it."""
        told = Catalog(View(self._store, self._world.time.now)).prune("999999s", database=DATABASE, force=True)
        return told.horizon if told.published is not None else None

    def note(self, view: View, events: Mapping[Uuid, list[Draft]] | None = None) -> list[Uuid]:
        """What a maintainer has committed, in its order, with these events: it had read what was there, as far as anybody could.

        What it has committed as another writer, to join a fork, or to void something, had read nothing for certain.
        """
        surely = self._timelines.causal(*(self._timelines.visible() - self._optional()))
        noted = []
        for found in view.disarm():
            process, voids = Process(found.writer, parents_of(found.data), found.revision, 0), voids_of(found.data)
            if found.writer in MAINTAINERS and not voids:
                self._timelines.read(process, frozenset(surely - self._timelines.of_writer(found.writer)))
            transaction = self._timelines.commit(
                process,
                (events or {}).get(found.uuid, ()),
                uuid=found.uuid,
                commit_time=found.commit_time,
                voids=voids,
            )
            self._world.note(transaction)
            if data := data_boundary_of(found.data):
                held = self._timelines.ancestors({*reads_of(found.data), found.uuid})
                self.horizon.data.append(DataBoundary(data, found.commit_time, held))
            self._say(f"    {found.writer}@{found.revision} {found.uuid} at {found.commit_time - START:+}")
            for event in transaction.events:
                self._say(f"      {event.op.value} of {event.table} {event.key[-1][:20]!r} version {event.version}")
            noted.append(found.uuid)
        return noted

    def _check_deleted(self, deleted: list[str]) -> None:
        """Of transactions only those go that the published cut holds, and no head."""
        gone = {found.uuid for name in deleted if (found := published(name, b"")) is not None}
        check("transactions that are deleted and were not covered", set(), gone - self.horizon.cut)
        heads = {uuid for it in self._timelines.transactions.values() for uuid in self._timelines.heads(it.writer)}
        check("heads that are deleted", set(), gone & heads)

    def tag(self, step: Tag) -> None:
        """Give a name to what can be read, or take one back."""
        past = self._world.past(step.number)
        view = View(self._store, self._world.time.now)
        catalog = self.processes.catalog(step.who, view)
        if step.drop and step.name in self.horizon.tags:
            with catalog.writer(MAINTAINERS[step.who], database=DATABASE, clock=self._world.time.now) as held:
                held.drop_tag(step.name)
            del self.horizon.tags[step.name]
        elif not step.drop and past.version is not None and self.horizon.may_read(past.version, past.cut):
            with catalog.writer(MAINTAINERS[step.who], database=DATABASE, clock=self._world.time.now) as held:
                tag = held.tag(step.name, version=past.version, replace=True)
            self.horizon.tags[step.name] = tag.version
            if tag.version != past.version:
                self._world.remembered.append(Remembered(tag.version, past.cut, None))
        self.note(view)

    def pin(self, step: Pin) -> None:
        """Have a pin stand where what comes after can be read, see that it is refused elsewhere, or drop it."""
        past, pins = self._world.past(step.number), self.horizon.pins
        view = View(self._store, self._world.time.now)
        catalog = self.processes.catalog(step.who, view)
        if past.version is None or (step.drop and step.who not in pins):
            return
        with catalog.writer(MAINTAINERS[step.who], database=DATABASE, clock=self._world.time.now) as held:
            if step.drop:
                held.unpin("p")
                del pins[step.who]
            elif self.horizon.cut <= past.cut:
                version = held.pin("p", version=past.version).version
                if step.who not in pins or version != pins[step.who][0]:  # it stays where no event lies between
                    pins[step.who] = version, past.cut
            else:
                try:
                    held.pin("p", version=past.version)
                except HistoryPruned:
                    pass
                else:
                    raise AssertionError(f"{past.version} lies behind the horizon and was pinned")
        self.note(view)


class Pruning(Machine):
    """A history in which maintainers prune, tag and pin."""

    def __init__(self, history: History, store: Store, time: Time) -> None:
        super().__init__(history, store, time)
        self._maintenance = Maintenance(self._world, store, self._say)
        self._comparer = PruningComparer(self._world, store, self._maintenance.horizon)

    def _take(self, step: Any) -> None:
        match step:
            case Prune():
                self._maintenance.prune(step)
            case Tag():
                self._maintenance.tag(step)
            case Pin():
                self._maintenance.pin(step)
            case LongWait():
                self._wait_long(step.microseconds)
            case _:
                super()._take(step)

    def _wait_long(self, microseconds: int) -> None:
        """All that is under way arrives, and then time passes."""
        for view in list(self._under_way):
            self._deliver(view)
        self._world.time.pass_by(microseconds)

    def _process(self, name: str) -> Running | None:
        """A timeline whose fork lies before the horizon can be opened: what lies there concerns no writer."""
        try:
            return super()._process(name)
        except AssertionError as error:
            if self._maintenance.horizon.cut and "needs repair" in str(error):
                return None
            raise

    def _read(self, running: Running, past: int | None = None) -> None:
        remembered = self._world.past(past or 0)
        if remembered.version is None or self._may_read(remembered):
            super()._read(running, past)

    def _may_read(self, past: Remembered) -> bool:
        return self._maintenance.horizon.may_read(past.version, past.cut)
