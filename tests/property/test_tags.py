"""Tags are a function of the transactions in a cut: whoever gives and drops them, however late that arrives, through any checkpoints.

The model knows every entry that was committed and which of them have arrived, and takes the largest stamp: of maintainers' where there
are any.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from bucketcatalog import Catalog, InvalidVersion, NotFound, TagExists
from bucketcatalog.query.snapshot import Snapshot
from bucketcatalog.store.memory import MemoryStore
from bucketcatalog.write.tags import Tag
from bucketcatalog.write.writer import Writer

from ..kit.chance import searching
from ..kit.machine.driver import quiet
from ..kit.machine.running import still_clocks
from ..kit.machine.steps import Fault
from ..kit.machine.stores import View
from ..kit.machine.world import BUCKETS, OWNER, Time

_MINUTE = 60_000_000
_LATEST_ARRIVAL = 4 * _MINUTE
_MAINTAINERS = ("maintainer-1", "maintainer-2", "maintainer-3")
_EVERYBODY = (*_MAINTAINERS, "node-1", "compactor-1")
_NAMES = ("x", "y")


@dataclass(frozen=True, slots=True)
class Give:
    """Somebody gives a name to the version that was noted down, by any number, or to now."""

    who: str
    name: str
    version: int | None
    replace: bool
    late: bool


@dataclass(frozen=True, slots=True)
class Drop:
    """Somebody drops a name."""

    who: str
    name: str
    late: bool


@dataclass(frozen=True, slots=True)
class Put:
    """An object is put."""

    late: bool


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint, of the compactor of all."""

    who: str


@dataclass(frozen=True, slots=True)
class Reopen:
    """A process ends, and begins anew."""

    who: str


@dataclass(frozen=True, slots=True)
class Deliver:
    """What is under way of a process arrives."""

    who: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Time passes."""

    microseconds: int


@dataclass(frozen=True, slots=True)
class Compare:
    """Everything is compared, and the newest version noted down."""


Step = Give | Drop | Put | Checkpoint | Reopen | Deliver | Wait | Compare
_WHO = st.sampled_from((*_MAINTAINERS * 2, "node-1"))
_NAME = st.sampled_from(_NAMES)
_LATE = st.sampled_from((False, False, True))
_STEPS: tuple[st.SearchStrategy[Step], ...] = (
    *(st.builds(Give, _WHO, _NAME, st.none() | st.integers(0, 9), st.booleans(), _LATE),) * 6,
    *(st.builds(Drop, _WHO, _NAME, _LATE),) * 2,
    *(st.builds(Put, _LATE),) * 2,
    *(st.builds(Checkpoint, st.sampled_from(_EVERYBODY)),) * 3,
    st.builds(Reopen, st.sampled_from(_EVERYBODY)),
    *(st.builds(Deliver, st.sampled_from(_EVERYBODY)),) * 2,
    *(st.builds(Wait, st.sampled_from((1, 1_000_000, _MINUTE, 13 * _MINUTE))),) * 2,
    *(st.builds(Compare),) * 3,
)
_STEP = st.integers(0, len(_STEPS) - 1).flatmap(lambda number: _STEPS[number])


@dataclass(frozen=True, slots=True)
class Seen:
    """What somebody saw: the version, the objects in it, and the entries of tags."""

    version: str
    objects: frozenset[str]
    entries: frozenset[Tag]


@dataclass(slots=True)
class Process:
    """A process with its view of the store, and what it has put that is under way, as the model has it."""

    view: View
    catalog: Catalog
    clock: int
    writer: Writer | None = None
    objects: set[str] = field(default_factory=set)
    entries: set[Tag] = field(default_factory=set)


def _stamp(tag: Tag) -> tuple[int, str, int]:
    return tag.commit_time, tag.writer, tag.revision


def is_maintained(who: str, before: dict[str, Any] | None) -> bool:
    """Whether the name is a maintainer's, and whoever speaks now is none."""
    return before is not None and before["stamp"][1] in _MAINTAINERS and who not in _MAINTAINERS


def expected(entries: frozenset[Tag]) -> dict[str, dict[str, Any]]:
    """The tags that entries make."""
    found = {}
    for name in sorted({entry.name for entry in entries}):
        about = [entry for entry in entries if entry.name == name]
        counted = [entry for entry in about if entry.writer in _MAINTAINERS] or about
        latest = max(counted, key=_stamp)
        others = [entry for entry in counted if entry.version != latest.version]
        replaced = max(others, key=_stamp, default=None)
        found[name] = {
            "version": latest.version,
            "dropped": latest.dropped,
            "created": latest.created,
            "stamp": _stamp(latest),
            "replaced": replaced and (replaced.version, replaced.commit_time, replaced.writer),
        }
    return found


def shown(snapshot: Snapshot) -> dict[str, dict[str, Any]]:
    """The same as the engine shows it."""
    found = {}
    times = ("created", "commit_timestamp", "replaced_commit_timestamp")
    table = snapshot.scan("tags").to_arrow()
    numbers = {name: table[name].cast("int64").to_pylist() for name in times}
    for at, row in enumerate(table.to_pylist()):
        replaced = (row["replaced_version"], numbers["replaced_commit_timestamp"][at], row["replaced_writer"])
        found[row["name"]] = {
            "version": row["version"],
            "dropped": row["dropped"],
            "created": numbers["created"][at],
            "stamp": (numbers["commit_timestamp"][at], row["writer"], row["revision"]),
            "replaced": None if replaced == (None, None, None) else replaced,
        }
    return found


class Tagging:
    """One history under way."""

    def __init__(self, time: Time, clocks: list[int]) -> None:
        self.trace: list[str] = []
        self._time = time
        self._store = MemoryStore(clock=time.now)
        self._processes: dict[str, Process] = {}
        for who, offset in zip(_EVERYBODY, clocks, strict=True):
            view = View(self._store, time.now)
            self._processes[who] = Process(view, Catalog(view), offset)
        self._follower = Catalog(self._store)
        self._objects: set[str] = set()
        self._entries: set[Tag] = set()
        self._put = 0
        self._by_version: dict[str, frozenset[str]] = {":": frozenset()}
        self._seen: list[Seen] = [Seen(":", frozenset(), frozenset())]
        self._take(Put(late=False))

    def run(self, steps: list[Step]) -> None:
        """Take every step, let everything arrive, and compare."""
        for step in steps:
            self.trace.append(f"{step}")
            self._take(step)
            for process in self._processes.values():
                if process.view.under_way and self._time.now() - process.view.under_way_since > _LATEST_ARRIVAL:
                    self._deliver(process)
        for process in self._processes.values():
            self._deliver(process)
        self._compare()

    def _take(self, step: Step) -> None:
        match step:
            case Give():
                self._give(step)
            case Drop():
                self._drop(step)
            case Put(late):
                process = self._opened("node-1", late=late)
                assert process.writer is not None
                name = f"{self._put:03}"
                self._put += 1
                with process.writer.transaction() as tx:
                    tx.put("objects", {"owner": OWNER, "bucket_id": BUCKETS[0], "name": name})
                (process.objects if late else self._objects).add(name)
            case Checkpoint(who):
                process = self._opened(who, late=False)
                assert process.writer is not None
                if who == "compactor-1" or any(info.name.endswith(".txn") for info in self._store.list(f"{who}/")):
                    process.writer.checkpoint(scope="all" if who == "compactor-1" else "own")
            case Reopen(who):
                self._deliver(self._processes[who])
                self._processes[who].writer = None
                self._processes[who].catalog = Catalog(self._processes[who].view)
            case Deliver(who):
                self._deliver(self._processes[who])
            case Wait(microseconds):
                if microseconds > _LATEST_ARRIVAL:
                    for process in self._processes.values():
                        self._deliver(process)
                self._time.pass_by(microseconds)
            case Compare():
                self._compare()

    def _opened(self, who: str, *, late: bool) -> Process:
        """The process, ready for a commit; what was under way has arrived."""
        process = self._processes[who]
        self._deliver(process)
        if process.writer is None:
            process.writer = process.catalog.writer(who, clock=lambda: self._time.now() + process.clock)
        process.view.disarm()
        if late:
            process.view.arm(Fault.LATE)
        return process

    def _deliver(self, process: Process) -> None:
        process.view.disarm()
        process.view.deliver()
        self._objects |= process.objects
        self._entries |= process.entries
        process.objects, process.entries = set(), set()

    def _give(self, step: Give) -> None:
        process = self._opened(step.who, late=step.late)
        assert process.writer is not None
        before = expected(frozenset(self._entries)).get(step.name)
        target = None if step.version is None else self._seen[step.version % len(self._seen)]
        objects = frozenset(self._objects) if target is None else target.objects
        if target is None and before is not None and self._by_version[before["version"]] == objects:
            version: str | None = before["version"]  # nothing but tags and checkpoints since
        else:
            version = None if target is None else target.version
        outcome: Literal["refused", "nothing", "committed"] = "committed"
        if before is not None and before["version"] != version and not step.replace:
            outcome = "refused"
        elif before is not None and before["version"] == version and not before["dropped"]:
            outcome = "nothing"
        elif is_maintained(step.who, before):
            outcome = "refused"
        self.trace.append(f"    {outcome}")
        asked = None if target is None else target.version
        if outcome == "refused":
            with pytest.raises(TagExists) as caught:
                process.writer.tag(step.name, version=asked, replace=step.replace)
            assert before is not None
            assert str(before["stamp"][1] if "can neither" in caught.value.message else before["version"]) in caught.value.message
            return
        made = process.writer.tag(step.name, version=asked, replace=step.replace)
        if outcome == "nothing":
            assert before is not None and _stamp(made) == before["stamp"] and made.version == version
            return
        assert (made.name, made.dropped, made.created) == (step.name, False, made.commit_time)
        assert version in (None, made.version)
        self._by_version[made.version] = objects
        self._commit(process, made, before, late=step.late)

    def _drop(self, step: Drop) -> None:
        process = self._opened(step.who, late=step.late)
        assert process.writer is not None
        before = expected(frozenset(self._entries)).get(step.name)
        if before is None or before["dropped"]:
            with pytest.raises(NotFound):
                process.writer.drop_tag(step.name)
            return
        if is_maintained(step.who, before):
            with pytest.raises(TagExists, match="can neither move nor drop it"):
                process.writer.drop_tag(step.name)
            return
        made = process.writer.drop_tag(step.name)
        assert (made.name, made.dropped) == (step.name, True)
        assert (made.version, made.created) == (before["version"], before["created"])
        self._commit(process, made, before, late=step.late)

    def _commit(self, process: Process, made: Tag, before: dict[str, Any] | None, *, late: bool) -> None:
        assert process.writer is not None and made.writer == process.writer.id
        assert before is None or _stamp(made) > before["stamp"], "what replaces an entry comes after it"
        (process.entries if late else self._entries).add(made)

    def _compare(self) -> None:
        objects, entries = frozenset(self._objects), frozenset(self._entries)
        fresh = Catalog(self._store)
        now = fresh.snapshot()
        self._seen.append(Seen(now.version, objects, entries))
        self._by_version[now.version] = objects
        assert shown(now) == shown(self._follower.snapshot()) == expected(entries)
        for name, tag in expected(entries).items():
            if tag["dropped"]:
                with pytest.raises(InvalidVersion, match="was dropped"):
                    fresh.snapshot(version=name)
            else:
                self._check_named(fresh.snapshot(version=name), tag["version"])
        assert all(name in shown(now) for name in _NAMES if name in {entry.name for entry in entries})
        for seen in self._seen[-3:]:
            then = fresh.snapshot(version=seen.version)
            assert shown(then) == expected(seen.entries)
        for entry in entries:
            self._check_named(fresh.snapshot(version=entry.version), entry.version)

    def _check_named(self, snapshot: Snapshot, version: str) -> None:
        assert snapshot.version == version
        found = snapshot.scan("objects", columns=["name"]).to_arrow()["name"].to_pylist()
        assert found == sorted(self._by_version[version])


@searching("tags")
@given(st.lists(st.sampled_from((0, -30_000_000, 30_000_000)), min_size=5, max_size=5), st.lists(_STEP, min_size=10, max_size=30))
def test_tags_are_what_the_entries_that_have_arrived_make_them(clocks: list[int], steps: list[Step]) -> None:
    time = Time()
    history = None
    try:
        with still_clocks(time), quiet():
            history = Tagging(time, clocks)
            history.run(steps)
    except BaseException:
        note("\n".join(["What happened:", f"clocks {clocks}", *(history.trace if history else [])]))
        raise
