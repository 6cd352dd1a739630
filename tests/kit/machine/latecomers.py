"""Histories in which transactions arrive later than anybody counts on: after more than twice the lateness bound.

Checkpoints change no answer as long as everything arrives in time (docs/spec/reading.md, "What arrives late"); what comes later appears
from the next checkpoint on. Until then a reader may see it or not, so here the model does not say what is seen: the reader's own version
does, and the model says from what it may choose. Whatever it chose, everything that it shows must follow from that.

What arrives late is the stray of a crashed process, as nobody else's successors can be there before it. Whether a writer that is opened
follows a stray depends on whether it has seen it, so here the store tells what a transaction follows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from hypothesis import strategies as st

from bucketcatalog.store.base import Store

from ..reference.timelines import Cut, Process, Uuid
from .comparing import Comparer, check
from .drafting import Drafter
from .driver import Addressed, EngineProcess, NeedsRepair, Outcome
from .histories import AT_TIME, AT_VERSION, BETWEEN, KEPT, STATED_ACTION
from .onlooker import EngineReader, heads_of
from .steps import (
    TABLES,
    AtTime,
    AtVersion,
    Between,
    Checkpoint,
    Commit,
    Compare,
    Deliver,
    Fault,
    Kept,
    Leave,
    Part,
    Read,
    Step,
    Wait,
)
from .stores import View, parents_of
from .world import START, Remembered, Time, World

IN_TIME = 2 * 360_000_000
"""Twice the lateness bound, in microseconds."""

WRITERS = {"alpha": "alpha", "beta": "beta", "gamma": "gamma", "compactor": "compactor-1", "last": "compactor-2"}


@dataclass(slots=True)
class Covering:
    """A checkpoint of every writer's cut: when it began, counted in steps, its newest commit time, and whether it is in the store."""

    began: int
    newest: int | None
    view: View

    @property
    def landed(self) -> bool:
        """Whether all of it has arrived."""
        return not self.view.under_way


@dataclass(slots=True)
class Latecomers:
    """One such history under way."""

    store: Store
    time: Time
    trace: list[str] = field(default_factory=list)
    world: World = field(init=False)
    _drafter: Drafter = field(init=False)
    _comparer: Comparer = field(init=False)
    _running: dict[str, tuple[Process, EngineProcess]] = field(default_factory=dict)
    _under_way: list[View] = field(default_factory=list)
    _too_late: dict[Uuid, int] = field(default_factory=dict)
    _coverings: list[Covering] = field(default_factory=list)
    _checkpoints: int = 0
    _now: int = 0

    def __post_init__(self) -> None:
        self.world = World(self.time, names=0)
        self._drafter = Drafter(self.world)
        self._comparer = Comparer(self.world, self.store)

    def run(self, steps: Iterable[Step]) -> None:
        """Take every step, let everything arrive, and compare: before, after a checkpoint of all, and after further ones."""
        for step in steps:
            self._take(step)
        for view in list(self._under_way):
            self._deliver(view)
        looks = Compare(True, (AtTime(7, False, Part.OBJECTS), AtVersion(1, Part.OBJECTS), Between(0, 1, 0)))
        self._take(looks)
        self._take(Checkpoint("last", everyone=True))
        self._take(looks)
        assert not self._optional(), "after a checkpoint of everyone's timeline nothing is optional"
        for process in ("alpha", "beta", "gamma"):
            self._take(Checkpoint(process))
        self._take(looks)

    def _take(self, step: Step) -> None:
        self._now += 1
        self.trace.append(f"{step}")
        match step:
            case Commit(process, actions, fault):
                if running := self._process(process):
                    addressed = self._drafter.drafts(actions)
                    if addressed:
                        self._settle(process, running[1].commit(addressed, fault), addressed)
            case Checkpoint():
                self._checkpoint(step)
            case Read(process):
                if running := self._process(process):
                    self._read(running)
            case Leave(process):
                self._running.pop(process, None)
            case Deliver(which):
                if self._under_way:
                    self._deliver(self._under_way[which % len(self._under_way)])
            case Wait(microseconds):
                self.time.pass_by(microseconds)
            case Compare():
                self._compare(step)

    # Processes.

    def _process(self, name: str) -> tuple[Process, EngineProcess] | None:
        if running := self._running.get(name):
            if running[1].view.under_way:
                self._deliver(running[1].view)
            return running
        writer = WRITERS[name]
        try:
            engine = EngineProcess(self.store, writer, now=self.time.now, clock=self.time.now)
        except NeedsRepair:
            assert len(self.world.timelines.heads(writer)) > 1, f"{writer} cannot be opened, but its timeline is not forked"
            return None
        self._running[name] = Process(writer, frozenset(), 0, 0), engine
        return self._running[name]

    def _read(self, running: tuple[Process, EngineProcess]) -> None:
        model, engine = running
        if self.world.timelines.arrived:
            cut = self.world.timelines.ancestors(heads_of(engine.read()))
            self._check_cut("what a process reads", cut, self.world.timelines.visible(), self._optional())
            self._note(model, cut)

    def _note(self, process: Process, cut: Cut) -> None:
        """The process commits after this cut from now on. Of its own timeline a transaction names only what it follows."""
        self.world.timelines.read(process, cut - self.world.timelines.of_writer(process.writer))

    def _checkpoint(self, step: Checkpoint) -> None:
        running = self._process(step.process)
        if running is None:
            return
        seen = self.world.timelines.visible()
        outcome = running[1].checkpoint(everyone=step.everyone, fault=step.fault, after=step.after)
        if step.everyone and outcome.published:
            self._note(running[0], seen)
        self._settle(step.process, outcome, [])
        if outcome.stopped or outcome.lost:
            return
        self._checkpoints += 1
        if step.everyone:
            newest = outcome.published[0].commit_time if outcome.published else None
            self._coverings.append(Covering(self._now, newest, running[1].view))
            self._read(running)

    def _settle(self, name: str, outcome: Outcome, addressed: list[Addressed]) -> None:
        model, engine = self._running[name]
        timelines = self.world.timelines
        if outcome.stopped:
            assert timelines.foreign(model), f"{name} stopped, but nothing foreign is on its timeline"
        for found in outcome.published:
            model.parents, model.next_revision = parents_of(found.data), found.revision
            drafts = [it.draft for it in addressed]
            made = timelines.commit(model, drafts, uuid=found.uuid, commit_time=found.commit_time, arrived=found.arrived)
            self.world.note(made)
            self.trace.append(f"    {found.writer}@{found.revision} {found.uuid} at {found.commit_time - START:+}")
            self.trace += [
                f"      {event.op.value} {event.table} {event.key[-1]!r} {event.version or ''}" for event in made.events
            ]
        if engine.view.under_way:
            self._under_way.append(engine.view)
        if outcome.stopped or outcome.lost:
            self.trace.append(f"    {name} {'stops' if outcome.stopped else 'is lost'}")
            del self._running[name]

    def _deliver(self, view: View) -> None:
        for uuid in view.deliver():
            self.world.timelines.arrive(uuid)
            late = self.time.now() - self.world.timelines.transactions[uuid].commit_time
            if self._checkpoints and late > IN_TIME:
                self._too_late[uuid] = self._now
            self.trace.append(f"    {uuid} arrives after {late / 1e6} s")
        self._under_way.remove(view)

    # What readers may see.

    def _optional(self, time: int | None = None) -> Cut:
        """What arrived too late and is on no checkpoint of everyone's that a reader of now, or of that time, can use."""
        coverings = [it for it in self._coverings if it.landed]
        if time is not None:
            coverings = [it for it in coverings if it.newest is not None and it.newest <= time]
        return frozenset(uuid for uuid, at in self._too_late.items() if not any(it.began > at for it in coverings))

    def _check_cut(self, what: str, cut: Cut, most: Cut, optional: Cut) -> None:
        timelines = self.world.timelines
        assert timelines.is_cut(cut), f"{what} lacks what its own transactions follow or had read"
        check(f"transactions that are not in {what}", set(), set(timelines.causal(*(most - optional)) - cut))
        check(f"transactions that cannot be in {what}", set(), set(cut - most))

    def _compare(self, step: Compare) -> None:
        if not self.world.timelines.arrived:
            return
        reader = EngineReader(self.store, now=self.time.now)
        newest = reader.snapshot()
        cut = self.world.timelines.ancestors(newest.heads)
        self._check_cut("the newest state", cut, self.world.timelines.visible(), self._optional())
        for part in Part:
            self._comparer.part("now", part, newest, cut)
        for number in range(len(self.world.places)):
            self._comparer.look_up(newest, cut, number)
        self.world.remembered.append(Remembered(newest.version, cut, newest))
        for look in step.looks:
            match look:
                case AtTime(number, just_before, part):
                    self._at_time(reader, number, just_before, part)
                case AtVersion():
                    self._comparer.at_version(reader, look)
                case Kept(number, part):
                    self._comparer.kept(number, part)
                case Between(start, end, table):
                    self._comparer.between(reader, Between(start, end, table % len(TABLES)))

    def _at_time(self, reader: EngineReader, number: int, just_before: bool, part: Part) -> None:
        timelines, times = self.world.timelines, self.world.times()
        time = times[number % len(times)] - just_before
        snapshot, what = reader.snapshot(timestamp=time), f"the state as of {time - START:+}"
        cut = timelines.ancestors(snapshot.heads)
        self._check_cut(what, cut, timelines.at(time), self._optional(time))
        self._comparer.part(what, part, snapshot, cut)


_MINUTE = 60_000_000
_WHO = st.sampled_from(("alpha",) * 3 + ("beta",) * 2 + ("gamma",))
_CHECKPOINTS = st.sampled_from(
    (*(("compactor", True),) * 4, *((name, False) for name in ("compactor", "alpha", "beta", "gamma")))
)
_ACTIONS = st.lists(STATED_ACTION, min_size=1, max_size=3).map(tuple)
_WAIT = st.sampled_from((_MINUTE, 11 * _MINUTE, 12 * _MINUTE + 1, 13 * _MINUTE, 13 * _MINUTE))
_CHECKPOINT = st.builds(
    lambda which, fault, after: Checkpoint(*which, fault=fault, after=after),
    _CHECKPOINTS,
    st.sampled_from((Fault.NONE,) * 4 + (Fault.LATE,)),
    st.integers(1, 3),
)
_STEPS: tuple[st.SearchStrategy[Step], ...] = (
    *(st.builds(Wait, _WAIT),) * 4,
    *(st.builds(Commit, _WHO, _ACTIONS),) * 4,
    *(st.builds(Commit, _WHO, _ACTIONS, st.just(Fault.CRASH_LATE)),) * 3,
    *(_CHECKPOINT,) * 4,
    *(st.builds(Deliver, st.integers(0, 3)),) * 3,
    st.builds(Read, _WHO),
    st.builds(Leave, _WHO),
    *(st.builds(Compare, st.just(True), st.tuples(AT_TIME, AT_VERSION, KEPT, BETWEEN)),) * 2,
)
LATE_STEP = st.integers(0, len(_STEPS) - 1).flatmap(lambda number: _STEPS[number])
