"""Checkpoints in random histories, our own and those of a compactor that knows docs/spec alone: each is what its transactions say.

The transactions too are written from docs/spec: they name versions that nobody has seen yet, change columns that no update changes,
arrive late and out of order. Checkpoints are made in between, of the writers' own timelines and of everyone's, with few levels and many.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bucketcatalog.maintain.verify.findings import Severity

from ..kit.chance import searching
from ..kit.machine.driver import quiet
from ..kit.spec_reader import SpecReader, Style, compact, new_transaction, put_transaction, table_of
from ..kit.spec_reading import compare
from ..kit.world import World, messages, proto

TABLES = proto(
    """
    message Row {
      option (table) = { name: "test.rows" key: "k" id: "i" data_reference: "k" data_reference: "at" };
      int32 k = 1;
      optional string i = 2;
      optional string at = 3;
      optional int64 n = 4;
      int32 plain = 5;
      repeated string some = 6;
      optional int64 made = 7 [(column) = {type: LOGICAL_TYPE_TIMESTAMP_MICROS default: COLUMN_DEFAULT_CREATED}];
      optional int64 seen = 8 [(column) = {type: LOGICAL_TYPE_TIMESTAMP_MICROS default: COLUMN_DEFAULT_MODIFIED}];
    }
    message Brief {
      option (table) = { name: "test.brief" key: "k" id: "i" tombstones: TOMBSTONES_DROPPED };
      int32 k = 1;
      optional string i = 2;
      optional string at = 3;
      optional int64 n = 4;
    }
    """
)
NAMES = ("test.rows", "test.brief")
PUT, UPDATE, DELETE, PURGE = 1, 2, 3, 4


@dataclass(frozen=True)
class Said:
    """One event: what ``about`` counts are the versions put so far, of which it may be about one, or expect it."""

    kind: int
    table: int
    key: int
    about: int
    values: tuple[str | None, str | None, int | None]
    expects: int | None


@dataclass(frozen=True)
class Commit:
    """A transaction of writer ``who`` some microseconds after the last of all; a late one is alone on a timeline of its own."""

    who: int
    after: int
    events: tuple[Said, ...]
    late: bool


@dataclass(frozen=True)
class Deliver:
    """The oldest late transaction arrives."""


@dataclass(frozen=True)
class Own:
    """The engine writes a checkpoint of a writer's own timeline."""

    who: int


@dataclass(frozen=True)
class Everyones:
    """The engine writes a checkpoint of everyone's."""

    full: bool


@dataclass(frozen=True)
class Foreign:
    """The compactor of the specification writes one."""

    style: Style


_TEXT = st.sampled_from((None, "a", "b"))
_SAID = st.builds(
    Said,
    kind=st.sampled_from((PUT, PUT, PUT, UPDATE, UPDATE, DELETE, DELETE, PURGE)),
    table=st.sampled_from((0, 0, 0, 1)),
    key=st.integers(0, 1),
    about=st.integers(0, 9),
    values=st.tuples(_TEXT, _TEXT, st.none() | st.integers(0, 2)),
    expects=st.sampled_from((None, None, None, -1, 0, 1)),
)
_COMMIT = st.builds(
    Commit,
    who=st.integers(0, 2),
    after=st.sampled_from((0, 0, 1, 1_000, 1_000_000)),
    events=st.lists(_SAID, min_size=1, max_size=4).map(tuple),
    late=st.sampled_from((False, False, True)),
)
_STYLE = st.builds(Style, st.integers(1, 3), *[st.booleans()] * 6, st.sampled_from((1, 3, 16_384)))
_STEPS = (
    *(_COMMIT,) * 6,
    *(st.just(Deliver()),) * 2,
    *(st.builds(Own, st.integers(0, 2)),) * 2,
    *(st.builds(Everyones, st.sampled_from((False, False, True))),) * 2,
    *(st.builds(Foreign, _STYLE),) * 2,
)
STEP: st.SearchStrategy[Any] = st.integers(0, len(_STEPS) - 1).flatmap(lambda number: _STEPS[number])


@dataclass
class History:
    """A catalog as the engine sees it, and as files for who knows the specification alone."""

    root: Path
    world: World = field(default_factory=World)
    trace: list[str] = field(default_factory=list)
    definitions: list[Any] = field(default_factory=list)
    put: dict[int, list[tuple[int, bytes, int]]] = field(default_factory=lambda: {0: [], 1: []})
    late: list[Any] = field(default_factory=list)
    last: dict[str, Any] = field(default_factory=dict)
    count: int = 0

    def __post_init__(self) -> None:
        catalog = self.world.catalog()
        for message in messages(TABLES).values():
            catalog.register(message)
        with self.world.writer("first", catalog=catalog) as writer:
            self.world.commit(writer, *(("put", name, {"k": 9}) for name in NAMES))
        self.copy_out()
        (first,) = SpecReader(self.root).transactions.values()
        self.definitions = list(first.tables)
        self.tables = {d.name: table_of(d) for d in self.definitions}

    def copy_out(self) -> None:
        for info in self.world.store.list(""):
            path = self.root / info.name
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(self.world.store.get(info.name))

    def copy_in(self) -> None:
        there = {info.name for info in self.world.store.list("")}
        for path in sorted(path for path in self.root.rglob("*") if path.is_file()):
            name = path.relative_to(self.root).as_posix()
            if name not in there:
                self.world.store.put(name, path.read_bytes())

    def run(self, steps: list[Any]) -> None:
        for step in steps:
            self.trace.append(repr(step))
            self.take(step)
        while self.late:
            self.take(Deliver())

    def take(self, step: Any) -> None:
        match step:
            case Commit():
                self.commit(step)
            case Deliver() if self.late:
                self.publish(self.late.pop(0))
            case Own() if f"w{step.who}" in self.last:
                with self.world.writer(f"w{step.who}") as writer:
                    writer.checkpoint()
            case Everyones():
                self.world.clock.tick()
                with self.world.writer("compactor-1") as writer:
                    writer.checkpoint(scope="all", full=step.full)
                self.copy_out()
            case Foreign():
                self.copy_out()
                self.world.clock.tick()
                compact(SpecReader(self.root), f"compactor-foreign-{self.count}", step.style)
                self.count += 1
                self.copy_in()

    def publish(self, transaction: Any) -> bytes:
        digest = put_transaction(self.root, transaction)
        self.copy_in()
        return digest

    def commit(self, step: Commit) -> None:
        self.world.clock.tick(step.after)
        self.count += 1
        writer = f"late-{self.count}" if step.late else f"w{step.who}"
        before = self.last.get(writer)
        time = max(self.world.clock.now, before[0].commit_time + 1 if before else 0)
        self.world.clock.now = time
        transaction = new_transaction(writer, before[0].revision + 1 if before else 0, time, self.count)
        if before:
            transaction.parents.add(writer=writer, revision=before[0].revision, uuid=before[0].uuid, digest=before[1])
        transaction.tables.extend(self.definitions)
        own = [(said.table, said.key, transaction.uuid, n) for n, said in enumerate(step.events) if said.kind == PUT]
        for table, key, uuid, number in own:
            self.put[table].append((key, uuid, number))
        for said in step.events:
            self.add(transaction, said)
        if step.late:
            self.late.append(transaction)
        else:
            self.last[writer] = (transaction, self.publish(transaction))

    def add(self, transaction: Any, said: Said) -> None:
        """Add an event. One that names a version has that one's key; a DELETE names one for every other number."""
        known = self.put[said.table]
        meant = known[-1 - said.about % len(known)] if known else None
        names = said.kind in (UPDATE, PURGE) or (said.kind == DELETE and said.about % 2)
        if names and meant is None:
            return
        table = self.tables[NAMES[said.table]]
        row = table.row(k=meant[0] if names and meant else said.key)
        if said.kind in (PUT, UPDATE):
            for name, value in zip(("i", "at", "n"), said.values, strict=True):
                if value is not None:
                    setattr(row, name, value)
        action = transaction.actions.add(table=table.name, kind=said.kind, row=row.SerializeToString())
        if names and meant is not None:
            action.version.uuid, action.version.sequence = meant[1:]
            action.moved = said.kind == DELETE and said.about % 3 == 0
        elif said.expects == -1:
            action.expects.absent = True
        elif said.expects is not None and meant is not None:
            action.expects.version.uuid, action.expects.version.sequence = meant[1:]


def check(history: History) -> None:
    """Every reader says the same with every checkpoint and without, and a deep look finds nothing."""
    history.copy_out()
    catalog = history.world.catalog()
    wrong = [str(finding) for finding in catalog.verify(deep=True) if finding.severity is Severity.ERROR]
    assert not wrong, "\n".join(wrong)
    reader, snapshot = SpecReader(history.root), catalog.snapshot()
    compare(reader.from_transactions(), snapshot)
    for ref in reader.checkpoints:
        compare(reader.from_checkpoints(ref), snapshot)


NOTHING = (None, None, None)
TWO_UPDATES_OF_A_VERSION_THAT_NOBODY_HAS_SEEN: list[Any] = [
    Commit(0, 1, (Said(PUT, 0, 0, 0, NOTHING, None),), late=True),
    Commit(1, 0, (Said(UPDATE, 0, 0, 0, (None, "a", None), None),), late=False),
    Commit(0, 0, (Said(PUT, 0, 0, 0, NOTHING, None), Said(UPDATE, 0, 0, 1, NOTHING, None)), late=False),
    Everyones(full=False),
    Own(1),
]
"""They have no effect, and differ in a column that is the put's: with the last checkpoint of a timeline the other one was folded first."""


def searched(steps: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder, quiet():
        history = History(Path(folder))
        history.run(steps)
        check(history)


def test_two_updates_of_a_version_that_nobody_has_seen_make_the_same_name_in_either_order() -> None:
    searched(TWO_UPDATES_OF_A_VERSION_THAT_NOBODY_HAS_SEEN)


@searching("foreign")
@given(st.lists(STEP, min_size=4, max_size=14))
def test_every_checkpoint_of_a_random_history_is_what_its_transactions_say(steps: list[Any]) -> None:
    searched([*steps, Foreign(Style())])
