"""Runs a history through the engine and through the model, step by step.

The model decides what must happen; the engine decides only what it alone can know, namely the uuid and the time of each commit, and
when it looks for foreign branches of its timeline. What it decides is checked against what it may.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any

from bucketcatalog.store.base import Store

from ..reference.model import Event, Op
from ..reference.timelines import Cut, Draft, Process
from .comparing import Comparer, check
from .drafting import Drafter
from .driver import Addressed, EngineProcess, NeedsRepair, Outcome
from .lowest import LowestLevels
from .steps import (
    PAUSE,
    PROCESSES,
    Application,
    Checkpoint,
    Commit,
    Compare,
    DeleteLive,
    Deliver,
    Fault,
    History,
    Leave,
    Read,
    Remember,
    UpdateLive,
    Wait,
)
from .stores import Published, View
from .world import START, Remembered, Time, World

LATEST_ARRIVAL = 240_000_000
"""Microseconds after which whatever is under way arrives with the end of the step. No step takes more than five minutes, so everything
arrives within twice the lateness bound (of six minutes), as the promise about checkpoints asks; ``latecomers.py`` is about the rest."""

INLINE_ACTIONS = 64
NEVER_LANDS = frozenset({Fault.CRASH_BEFORE, Fault.SILENCE_BEFORE, Fault.REFUSED})


@dataclass(slots=True)
class Running:
    """A process as the model and as the engine have it."""

    name: str
    model: Process
    engine: EngineProcess


class Machine:
    """One history under way. ``trace`` tells in words what has happened so far."""

    def __init__(self, history: History, store: Store, time: Time) -> None:
        self.trace: list[str] = []
        self._history = history
        self._store = store
        self._world = World(time, names=history.names)
        self._timelines = self._world.timelines
        self._drafter = Drafter(self._world)
        self._comparer = Comparer(self._world, store)
        self._lowest = LowestLevels(self._world, store)
        self._running: dict[str, Running] = {}
        self._under_way: list[View] = []
        self._step_began = START

    @property
    def moments(self) -> list[str]:
        """The versions that the engine has shown at some moments."""
        return [past.version for past in self._world.remembered if past.version is not None]

    def run(self) -> None:
        """Take every step, let everything arrive, and compare."""
        for step in self._history.steps:
            if step != PAUSE:
                self._say(f"{step}")
            self._step_began = self._world.time.now()
            self._take(step)
            self._deliver_what_is_due()
            self._lowest.look()
        for view in list(self._under_way):
            self._deliver(view)
        self._say(f"{self._history.end}")
        self._comparer.compare(self._history.end)

    def _take(self, step: Any) -> None:
        match step:
            case Commit():
                self._commit(step)
            case Checkpoint():
                self._checkpoint(step)
            case Read(process, past):
                if running := self._process(process):
                    self._read(running, past)
            case Leave():
                self._leave(step)
            case Deliver(which):
                if self._under_way:
                    self._deliver(self._under_way[which % len(self._under_way)])
            case Wait(microseconds):
                self._world.time.pass_by(microseconds)
            case Remember():
                self._comparer.remember()
            case Compare():
                self._comparer.compare(step)

    # Processes come and go, and what they put arrives.

    def _process(self, name: str) -> Running | None:
        """The process, opened if need be; what was under way for it has arrived. None where only ``repair`` could open it."""
        running = self._running.get(name)
        if running is not None:
            if running.engine.view.under_way:
                self._deliver(running.engine.view)
            return running
        writer = PROCESSES[name]
        model = self._timelines.open(writer)
        time, offset = self._world.time, self._history.clocks[name]
        try:
            engine = EngineProcess(self._store, writer, now=time.now, clock=lambda: time.now() + offset)
        except NeedsRepair:
            check(f"{name} cannot be opened", None, model)
            return None
        assert model is not None, f"{name} was opened although its timeline needs repair"
        self._running[name] = Running(name, model, engine)
        return self._running[name]

    def _leave(self, step: Leave) -> None:
        running = self._running.pop(step.process, None)
        if running is not None and not step.crash:
            if running.engine.view.under_way:
                self._deliver(running.engine.view)
            running.engine.close()

    def _deliver_what_is_due(self) -> None:
        for view in list(self._under_way):
            if self._world.time.now() - view.under_way_since > LATEST_ARRIVAL:
                self._deliver(view)

    def _deliver(self, view: View) -> None:
        for arrived in view.deliver():
            self._say(f"    {arrived} arrives")
            self._timelines.arrive(arrived)
        self._under_way.remove(view)

    def _may_read(self, past: Remembered) -> bool:
        """Whether the state of something remembered has to be readable."""
        return True

    def _data_boundary(self) -> int:
        """Data of versions that ended by this time may be gone, as everybody can see; 0 where none may."""
        return 0

    # What processes do.

    def _read(self, running: Running, past: int | None = None) -> None:
        remembered = self._world.past(past or 0)
        cut = self._timelines.visible() if remembered.version is None else remembered.cut
        if cut:  # or there is no database to read yet
            running.engine.read(version=remembered.version)
            self._timelines.read(running.model, cut)

    def _commit(self, step: Commit) -> None:
        running = self._process(step.process)
        if running is None:
            return
        if any(isinstance(action, UpdateLive | DeleteLive) for action in step.actions):
            self._read(running)
        count = INLINE_ACTIONS + 1 if step.bulk else len(step.actions)
        addressed = self._drafter.drafts(islice(cycle(step.actions), count))
        if not addressed:
            return
        if any(it.derived for it in addressed):
            self._timelines.read(running.model, self._timelines.visible())  # the engine looks by itself
        application = self._application(running.model, step.application)
        answer = None if application is None else self._timelines.answer(running.model, application)
        outcome = running.engine.commit(addressed, step.fault, application)
        if answer is None:
            self._settle(running, outcome, addressed, application, must_commit=step.fault not in NEVER_LANDS)
        else:
            self._check_answer(application, answer, outcome)

    def _application(self, process: Process, application: Application | None) -> tuple[str, int] | None:
        """The application's id and version: counted from the last that any process of this writer has committed, arrived or not."""
        if application is None:
            return None
        name = f"application {application.number}"
        own = [uuid for uuid, it in self._timelines.transactions.items() if it.writer == process.writer]
        last, _ = self._timelines.applications(own).get(name, (0, None))
        return name, last + application.ahead

    def _check_answer(self, application: tuple[str, int] | None, answer: Cut, outcome: Outcome) -> None:
        """A version that is there already is answered from the log, an older one does nothing; neither touches the store."""
        self._say(f"    {application} is {'answered from the log' if answer else 'old'}")
        assert not (outcome.published or outcome.stopped or outcome.lost or outcome.refused), (
            f"{application} is not committed again"
        )
        known = [self._timelines.transactions[uuid] for uuid in sorted(answer)]
        told = [(it.revision, it.uuid, it.commit_time) for it in known] or [None]
        assert outcome.told in told, f"what the writer tells of {application}: expected one of {told}, found {outcome.told}"

    def _checkpoint(self, step: Checkpoint) -> None:
        running = self._process(step.process)
        if running is None:
            return
        seen = self._timelines.visible()
        outcome = running.engine.checkpoint(everyone=step.everyone, fault=step.fault, after=step.after)
        if step.everyone and outcome.published:
            self._timelines.read(running.model, seen)
        if self._timelines.foreign(running.model) and not (outcome.lost or outcome.refused):
            assert outcome.stopped, f"{step.process} looks before a checkpoint, and must stop at a foreign branch"
        self._settle(running, outcome, [], None, must_commit=False)
        if step.everyone and not outcome.published and step.process in self._running:
            self._read(running)  # it may have read everything or not; now it has

    def _settle(
        self,
        running: Running,
        outcome: Outcome,
        addressed: list[Addressed],
        application: tuple[str, int] | None,
        *,
        must_commit: bool,
    ) -> None:
        """Bring the model to where the engine is after a commit or checkpoint, and check that it may be there."""
        if outcome.stopped:
            assert self._timelines.foreign(running.model), f"{running.name} stopped, but nothing foreign is on its timeline"
            assert not outcome.published, f"{running.name} stopped, but committed"
        elif must_commit:
            assert len(outcome.published) == 1, f"a commit is one transaction, not {len(outcome.published)}"
        if outcome.told is not None:
            check("what the writer tells", [outcome.told], [(it.revision, it.uuid, it.commit_time) for it in outcome.published])
        for found in outcome.published:
            self._publish(running, found, [it.draft for it in addressed], application)
        if running.engine.view.under_way:
            self._under_way.append(running.engine.view)
        if outcome.refused:
            self._say("    the store refuses")
        if outcome.stopped or outcome.lost:
            self._say(f"    {running.name} {'stops at a foreign branch' if outcome.stopped else 'is lost'}")
            del self._running[running.name]

    def _publish(self, running: Running, found: Published, drafts: list[Draft], application: tuple[str, int] | None) -> None:
        model = running.model
        check("writer and revision", (model.writer, model.next_revision), (found.writer, found.revision))
        self._check_time(running, found.commit_time, drafts)
        time, arrived = found.commit_time, found.arrived
        transaction = self._timelines.commit(
            model, drafts, uuid=found.uuid, commit_time=time, arrived=arrived, application=application
        )
        self._world.note(transaction)
        late = "" if found.arrived else ", under way"
        self._say(f"    {found.writer}@{found.revision} {found.uuid} at {found.commit_time - START:+}{late}")
        for event in transaction.events:
            self._say(f"      {_tell(event)}")

    def _check_time(self, running: Running, time: int, drafts: list[Draft]) -> None:
        """A commit comes after all that its process has committed, read or named, and its clock runs no further than it must."""
        offset = self._history.clocks[running.name]
        named = {draft.version for draft in drafts} | {draft.expect for draft in drafts}
        binding = running.model.read - self._timelines.voided(self._timelines.visible())
        read = [self._timelines.transactions[uuid].commit_time for uuid in binding]
        read += [event.stamp.commit_time for event in self._world.puts if event.stamp.name in named]
        earliest = running.model.earliest_commit_time(now=self._step_began + offset, read_times=read)
        known = [transaction.commit_time + 1 for transaction in self._timelines.transactions.values()]
        latest = max([earliest, self._world.time.now() + offset, *known])
        assert earliest <= time <= latest, f"the commit time is {time - START}, not from {earliest - START} to {latest - START}"

    def _say(self, line: str) -> None:
        self.trace.append(line)


def _tell(event: Event) -> str:
    """An event in one line, its row by what is different in every row."""
    words = [f"{event.stamp.seq}: {event.op.value} of {event.table} {event.key[-1][:20]!r}"]
    if event.op is not Op.PUT:
        words.append(f"version {event.version}" if event.version else "blind")
    if event.row is not None:
        told = (event.row[column] for column in ("content_length", "region", "code") if column in event.row)
        words.append(f"row {next(told)}, id {event.row.get('id')}")
    words += [f"expects {event.expect}"] if event.expect else []
    words += ["moved"] if event.moved else []
    return ", ".join(words)
