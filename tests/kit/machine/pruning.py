"""Histories in which maintainers prune, tag and pin at any moment: answers never change, except behind the horizon.

What may be deleted is said here once more, independently: only what lies in the cut that was published, and no head of a timeline. What can
be read is what contains that cut, and what a tag names. Everything else must be refused, never answered with something missing. Every cut
that a pin stands at contains the one that was published.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bucketcatalog import Catalog, CorruptionError, HistoryPruned
from bucketcatalog.store.base import Store
from bucketcatalog.store.faults import SimulatedCrash, Wrapped

from ..reference.differences import diff
from ..reference.timelines import EMPTY, Cut, Draft, Process, Uuid
from .columns import DATABASE
from .comparing import Comparer, check
from .machine import Machine, Running
from .onlooker import EngineReader, EngineSnapshot, heads_of
from .steps import TABLES, AtCommit, AtTime, AtVersion, Between, History, Part
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


@dataclass(frozen=True, slots=True)
class DataBoundary:
    """A data boundary: up to when data must have ended, when that was published, and what its transaction had read."""

    data: int
    published: int
    held: Cut


@dataclass(slots=True)
class Horizon:
    """What the model knows of deleting: the cut that was published last, its newest commit time, the tags' versions, and the pins' too.

    Of a maintainer's pin it is the version and the cut. ``data`` are the data boundaries. ``damaged`` are files that were, and that
    nothing but a snapshot that is still open needs.
    """

    cut: Cut = EMPTY
    time: int = 0
    tags: dict[str, str] = field(default_factory=dict)
    pins: dict[int, tuple[str, Cut]] = field(default_factory=dict)
    data: list[DataBoundary] = field(default_factory=list)
    damaged: set[str] = field(default_factory=set)

    def may_read(self, version: str | None, cut: Cut) -> bool:
        """Whether a version has to be readable."""
        return self.cut <= cut or version in self.tags.values()


class PruningComparer(Comparer):
    """Compares what can be read, and checks that the rest is refused."""

    def __init__(self, world: World, store: Store, horizon: Horizon) -> None:
        super().__init__(world, store)
        self._horizon = horizon

    def _refused(self, what: str, ask: Callable[[], object]) -> None:
        try:
            found = ask()
        except HistoryPruned:
            return
        raise AssertionError(f"{what} lies behind the horizon and was shown: {found}")

    def _at_time(self, reader: EngineReader, look: AtTime) -> None:
        times = self._world.times()
        time = times[look.number % len(times)] - look.just_before
        if time < self._horizon.time:
            self._refused(f"time {time}", lambda: reader.snapshot(timestamp=time).version)
        else:
            super()._at_time(reader, look)

    def at_version(self, reader: EngineReader, look: AtVersion) -> None:
        """Compare; what has to be readable is not refused."""
        past = self._world.past(look.number)
        try:
            super().at_version(reader, look)
        except HistoryPruned:
            assert not self._horizon.may_read(past.version, past.cut)

    def _at_commit(self, reader: EngineReader, look: AtCommit) -> None:
        """Compare; a commit that had certainly read all that the horizon holds is not refused."""
        try:
            super()._at_commit(reader, look)
        except HistoryPruned:
            assert self._horizon.cut, "nothing was pruned"
            commit = self.commit_of(look)
            had_read = self._horizon.cut <= self._world.timelines.causal(commit.uuid)
            assert not had_read, f"{commit.writer}@{commit.revision} had read all that the horizon holds, and is refused"

    def kept(self, number: int, part: Part) -> None:
        """What an old snapshot shows is right, or it says that it was pruned."""
        try:
            super().kept(number, part)
        except HistoryPruned:
            assert self._horizon.cut, "nothing was pruned"
        except CorruptionError as error:
            check("the message names a damaged file", True, any(name in error.message for name in self._horizon.damaged))

    def forks(self, snapshot: EngineSnapshot, cut: Cut) -> None:
        """Forks in what may have been deleted need not be shown; all others are, and each as it is.

        Of one with a voided branch it may not be known whether it was joined.
        """
        timelines = self._world.timelines
        forks = timelines.forks(cut).items()
        expected = {(writer, revision, uuids, not timelines.is_joined(uuids, cut)) for (writer, revision), uuids in forks}
        found, voided = snapshot.forks(), timelines.voided(cut)
        of_voided = {
            (writer, at, uuids, is_open) for writer, at, uuids, _ in expected if uuids & voided for is_open in (True, False)
        }
        check("forks now, none beside those that there are", set(), found - expected - of_voided)
        needed = {fork for fork in expected - of_voided if not fork[2] <= self._horizon.cut}
        check("forks now, all that are needed", set(), needed - found)

    def between(self, reader: EngineReader, look: Between) -> None:
        """Compare where both ends can be read, and see that events from behind the horizon are refused.

        An end behind it may be read all the same, where the checkpoint of exactly that version is still there; then it is right.
        """
        start, end = self._world.past(look.start), self._world.past(look.end)
        end = self._world.remembered[-1] if end.version is None else end
        if self._horizon.cut <= start.cut:
            try:
                super().between(reader, look)
            except HistoryPruned:
                assert not self._horizon.may_read(end.version, end.cut)
            return
        assert end.version is not None
        self._refused(f"events from {start.version}", lambda: reader.changes("objects", start.version, end.version or ""))
        table = TABLES[look.table]
        try:
            net = reader.diff(table, start.version, end.version)
        except HistoryPruned:
            assert not (self._can_differ(start) and self._can_differ(end))
            return
        check("difference", diff(self._world.state(start.cut), self._world.state(end.cut), table), net)

    def _can_differ(self, past: Remembered) -> bool:
        return past.version is None or self._horizon.may_read(past.version, past.cut)


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
