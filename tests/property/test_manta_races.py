"""Nodes of the service that race on one key, one bucket or one batch, in every order of what they look at, begin and commit.

What has to come of a race is computed from two things: what each operation had seen, which is what had arrived when it looked, and the
order of the commits by their stamps. Beside that nothing that was acknowledged may be lost, whatever the model says.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest

from bucketcatalog import Catalog
from bucketcatalog.query.snapshot import Snapshot
from bucketcatalog.systems.manta.errors import MantaError
from bucketcatalog.systems.manta.operations import Manta
from bucketcatalog.write.derived_ids import ids_of

from ..kit.manta.nodes import PATIENCE, Gate
from ..kit.manta.schedules import Schedule, begun_of_three, of_three, of_two
from ..kit.world import OWNER, SECOND, World, rows

ABSENT = "absent"
HOUR = 3600.0
SHARED = 24
NODES = ("node-1", "node-2", "node-3")
Stamp = tuple[Any, ...]


@dataclass(frozen=True)
class Op:
    """An operation on the object or the bucket of a case; ``if_match`` and the like are its conditions, and ``v0`` stands for an id."""

    name: str
    conditions: str = ""
    only_empty: bool = True

    def __str__(self) -> str:
        return f"{self.name} {self.conditions}".strip() + ("" if self.only_empty else " full")


CREATE, CREATE_NEW = Op("createobject"), Op("createobject", "if-none-match=*")
CREATE_OVER, UPDATE = Op("createobject", "if-match=v0"), Op("updateobject")
UPDATE_V0, DELETE = Op("updateobject", "if-match=v0"), Op("deleteobject")
DELETE_V0, DELETE_ANY = Op("deleteobject", "if-match=v0"), Op("deleteobject", "if-match=*")
MAKE, END, END_FULL = Op("createbucket"), Op("deletebucket"), Op("deletebucket", only_empty=False)
COLLECT = Op("deletegcbatch")
OPS = (CREATE, CREATE_NEW, CREATE_OVER, UPDATE, UPDATE_V0, DELETE, DELETE_V0, DELETE_ANY, MAKE, END, END_FULL)
BEFORE = {
    "nothing": (),
    "an empty bucket": (MAKE,),
    "an object": (MAKE, CREATE, CREATE),
    "an object that is gone": (MAKE, CREATE, CREATE, DELETE),
    "a deleted bucket": (MAKE, CREATE, CREATE, END_FULL),
}
"""What has happened in a case before the race; the last version of the object is ``v0``."""


@dataclass
class Done:
    """An operation of a case: what of the case had arrived when it looked, and what it has come to."""

    op: Op
    id: str
    seen: list[Done] = field(default_factory=list)
    answer: Any = None
    txn: str | None = None
    """The uuid of its transaction, or None where it has committed nothing."""
    events: list[Event] = field(default_factory=list)
    is_made_anew: bool = False
    """Whether it has found after its commit that its bucket's id had been a deleted one's."""


@dataclass(frozen=True)
class Event:
    """An event on a key as the model has it: versions are called by who began them."""

    kind: str
    table: str
    by: str
    names: str = ""
    expects: str | None = None


@dataclass
class State:
    """What events make of one key."""

    live: str | None = None
    ended: list[str] = field(default_factory=list)
    purged: set[str] = field(default_factory=set)
    described: dict[str, str] = field(default_factory=dict)
    unmet: set[tuple[str, str]] = field(default_factory=set)
    late: dict[str, str] = field(default_factory=dict)

    def add(self, event: Event) -> None:
        """The next event by its stamp."""
        if event.expects is not None and event.expects != (self.live or ABSENT):
            self.unmet.add(("expectation", event.by))
        if event.kind == "purge":
            self.purged.add(event.names)
        elif event.kind == "update":
            self.described[event.names] = event.by
            if self.live != event.names:
                self.late[event.names] = event.by
        elif not event.names or event.names == self.live:
            self.ended += [self.live] if self.live else []
            self.live = event.by if event.kind == "put" else None

    @property
    def conflicts(self) -> set[tuple[str, str]]:
        return self.unmet | {("late_update", by) for by in self.late.values()}


def folded(done: Iterable[Done], table: str, stamps: dict[str, Stamp]) -> State:
    state = State()
    for each in sorted((each for each in done if each.events), key=lambda each: stamps[each.txn or ""]):
        for event in each.events:
            if event.table == table:
                state.add(event)
    return state


@dataclass
class Case:
    """One race: a bucket of its own with an object of its own."""

    number: int
    before: str
    done: list[Done] = field(default_factory=list)
    bucket_id: str = ""
    batch: str = ""
    garbage: list[str] = field(default_factory=list)

    @property
    def bucket(self) -> dict[str, str]:
        return {"owner": OWNER, "name": f"bucket-{self.number}"}

    @property
    def key(self) -> dict[str, str]:
        return {"owner": OWNER, "bucket_id": self.bucket_id, "name": "a"}

    @property
    def v0(self) -> str:
        """The id of the object's last version before the race, or one that nothing has."""
        ids = [each.id for each in self.done[: len(BEFORE[self.before])] if each.op.name == "createobject"]
        return ids[-1] if ids else self.new_id(99)

    def new_id(self, at: int) -> str:
        return f"aaaaaaaa-0000-4000-8000-{self.number:08}{at:04}"

    def call(self, node: Manta, done: Done) -> Any:
        """What a node answers, or refuses with."""
        op = done.op
        conditions = dict([op.conditions.replace("v0", self.v0).split("=")]) if op.conditions else None
        more: dict[str, Any] = {"conditions": conditions}
        if op.name.endswith("bucket"):
            more = {"only_empty": op.only_empty} if op.name == "deletebucket" else {}
        elif op.name == "createobject":
            more |= {"id": done.id, "content_type": done.id}
        elif op.name == "updateobject":
            more |= {"content_type": done.id, "headers": {}}
        elif op.name == "deletegcbatch":
            return node.deletegcbatch(batch_id=self.batch)
        try:
            return getattr(node, op.name)(**(self.bucket if op.name.endswith("bucket") else self.key), **more)
        except MantaError as error:
            return error

    def decided(self, done: Done, stamps: dict[str, Stamp]) -> str | list[Event]:
        """What the operation has to come to by what it had seen: the name of an error, or its events."""
        op, by = done.op, done.id
        found, bucket = (folded(done.seen, table, stamps) for table in ("objects", "buckets"))
        if op.name == "createbucket":
            return "BucketAlreadyExists" if bucket.live else [Event("put", "buckets", by, expects=ABSENT)]
        if op.name == "deletebucket":
            if bucket.live is None:
                return "BucketNotFound"
            (made,) = [each for each in done.seen if each.id == bucket.live]
            if op.only_empty and found.live and made.answer["id"] == self.bucket_id:
                return "BucketNotEmpty"
            return [Event("delete", "buckets", by, names=bucket.live)]
        if op.name == "deletegcbatch":
            is_there = not any(each.op.name == "deletegcbatch" and each.events for each in done.seen)
            return [Event("purge", "objects", by, names=id_) for id_ in self.garbage] if is_there else []
        error = _refusal(op, found.live, self.v0)
        if error is not None:
            return error
        if op.name == "createobject":
            return [Event("put", "objects", by, expects=(found.live or ABSENT) if op.conditions else None)]
        assert found.live is not None
        if op.name == "updateobject":
            return [Event("update", "objects", by, names=found.live)]
        is_named = {"names": found.live} if op.conditions else {"expects": found.live}
        return [Event("delete", "objects", by, **is_named)]


def _refusal(op: Op, live: str | None, v0: str) -> str | None:
    if op.conditions == "if-none-match=*" and live is not None:
        return "PreconditionFailedError"
    if op.conditions.startswith("if-match"):
        if live is None:
            return "PreconditionFailedError" if op.conditions.endswith("*") else "ObjectNotFound"
        if op.conditions.endswith("v0") and live != v0:
            return "PreconditionFailedError"
    return "ObjectNotFound" if live is None and op.name != "createobject" else None


class Noting(Gate):
    """A gate that notes what is put."""

    last = ""
    puts = 0

    def put(self, name: str, data: bytes) -> None:
        self.last = name
        self.puts += 1
        super().put(name, data)


class Racer:
    """A node on a thread of its own, which can be stopped right before its commit; or one that has looked and begins later."""

    def __init__(self, world: World, name: str, *, skew: int = 0) -> None:
        self.gate = Noting(world.store)
        self.catalog = Catalog(self.gate)
        self.node = Manta(self.catalog, writer=name, clock=lambda: world.clock.now + skew, grace="0s")
        self.node.createobject(owner=OWNER, bucket_id=OWNER, name=name, id=OWNER)
        self._pool = ThreadPoolExecutor(1)
        self._future: Future[Any] | None = None

    def look(self) -> None:
        """It knows what has arrived by now, and for an hour asks no more."""
        known = self.node._known
        known._fresh = 0.0
        known.snapshot()
        known._fresh = HOUR

    def begin(self, case: Case, done: Done) -> None:
        """Up to its commit, or to the end where it commits nothing."""
        self.gate.last, self.gate.puts = "", 0
        self.gate.reached.clear()
        self.gate.open.clear()
        self._future = self._pool.submit(case.call, self.node, done)
        self._future.add_done_callback(lambda _: self.gate.reached.set())
        assert self.gate.reached.wait(PATIENCE)

    def finish(self, done: Done) -> None:
        assert self._future is not None
        self.gate.open.set()
        done.answer = self._future.result(PATIENCE)
        done.txn = self.gate.last.rpartition("/")[2].removesuffix(".txn") or None
        done.is_made_anew = self.gate.puts > 1
        self.node._known._fresh = 0.0

    def close(self) -> None:
        self._pool.shutdown()
        self.node.close()


class Race:
    """A world in which cases are played one after the other, each on keys of its own."""

    def __init__(self, before: str, clocks: str = "ticking") -> None:
        self.world = World()
        self.before = before
        self.is_still = clocks == "still"
        skewed = "node-2" if clocks == "skewed" else ""
        self.racers = [Racer(self.world, name, skew=-5 * SECOND if name == skewed else 0) for name in NODES]
        self.empty = self.world.snapshot()
        self.cases: list[Case] = []
        self.collected: set[str] = set()

    def play(self, races: Sequence[tuple[tuple[Op, ...], Schedule]]) -> None:
        """What happened before, and then the operations of each case, each by a node of its own."""
        first = len(self.cases)
        for number in range(first, first + len(races)):
            self.cases.append(case := Case(number, self.before))
            case.bucket_id = ids_of(self.empty, "buckets", [case.bucket])[0]
        for at, op in enumerate(BEFORE[self.before]):
            self._prepare(self.cases[first:], at, op)
        for case, (ops, schedule) in zip(self.cases[first:], races, strict=True):
            self._race(case, ops, schedule)

    def _prepare(self, cases: Sequence[Case], at: int, op: Op) -> None:
        """One commit that does it for all cases, as somebody who races with nobody."""
        table = "objects" if op in (CREATE, DELETE) else "buckets"
        given = [case.key if table == "objects" else case.bucket for case in cases]
        ids = [{MAKE: case.bucket_id, CREATE: case.new_id(at)}.get(op) or case.v0 for case in cases]
        if op in (MAKE, CREATE):
            more = [{"content_type": id_} if op == CREATE else {} for id_ in ids]
            given = [{**row, "id": id_, **also} for row, id_, also in zip(given, ids, more, strict=True)]
        with self.world.writer("node-0") as writer:
            txn = self.world.commit(writer, ("put" if op in (MAKE, CREATE) else "delete", table, given)).uuid
        for case, id_ in zip(cases, ids, strict=True):
            answer = [{"id": id_}] if op == DELETE else {"id": id_}
            case.done.append(Done(op, case.new_id(at), seen=case.done[:], answer=answer, txn=str(txn)))

    def _race(self, case: Case, ops: tuple[Op, ...], schedule: Schedule) -> None:
        self.world.clock.tick()
        if COLLECT in ops:
            batch = self.racers[-1].node.getgcbatch()
            case.batch, case.garbage = batch["batch_id"], [row["id"] for row in batch["garbage"]]
            self.collected |= {*case.garbage}
        racing = [Done(op, case.new_id(10 + at)) for at, op in enumerate(ops)]
        arrived = case.done[:]
        for step, at in schedule:
            self.world.clock.tick(0 if self.is_still else SECOND)
            racer, done = self.racers[at], racing[at]
            if step == "finish":
                racer.finish(done)
                arrived.append(done)
            elif step == "look":
                racer.look()
                done.seen = arrived[:]
            else:
                if racer.node._known._fresh == 0.0:
                    done.seen = arrived[:]
                racer.begin(case, done)
        case.done = arrived

    def check(self) -> None:
        """Everything is as the model says, nothing is lost, and all readers agree."""
        found = shown(self.world.snapshot())
        log = {str(row["uuid"]): row for row in rows(self.world.snapshot(), "log")}
        stamps = {uuid: (row["commit_timestamp"], row["writer"], row["revision"]) for uuid, row in log.items()}
        for case in self.cases:
            try:
                self._check(case, found, stamps)
            except AssertionError as error:
                told = [
                    (str(each.op), each.answer, [case.done.index(seen) for seen in each.seen], stamps.get(each.txn or ""))
                    for each in case.done
                ]
                raise AssertionError(f"{case.before}, then {told}") from error
        assert shown(self.racers[1].catalog.snapshot()) == found
        self.racers[0].look()
        self._agrees(self.racers[0].node, found)
        with self.world.writer("compactor-1") as compactor:
            compactor.checkpoint(scope="all")
        for racer in self.racers:
            racer.close()
        assert shown(self.world.snapshot()) == found

    def _check(self, case: Case, found: dict[str, dict[str, list[Any]]], stamps: dict[str, Stamp]) -> None:
        if any(done.is_made_anew for done in case.done):
            _check_made_anew(case, found)
            return
        for done in case.done:
            decided = case.decided(done, stamps)
            if isinstance(decided, str):
                assert type(done.answer).__name__ == decided and done.txn is None, (done.op, decided)
            else:
                assert not isinstance(done.answer, Exception) and (done.txn is not None) == bool(decided), (done.op, decided)
                done.events = decided
        objects, buckets = (folded(case.done, table, stamps) for table in ("objects", "buckets"))
        made = {each.id: each for each in case.done}

        def begun(row: dict[str, Any]) -> str:
            """Whose version a row is."""
            (by,) = [each.id for each in case.done if each.txn == row["_version"].partition(":")[0]]
            return by

        live, ended = (found[table].get(case.bucket_id, []) for table in ("objects", "deleted_objects"))
        assert [row["id"] for row in live] == ([objects.live] if objects.live else [])
        assert sorted(row["id"] for row in ended) == sorted({*objects.ended} - objects.purged - self.collected)
        for row in (*live, *ended):
            assert begun(row) == row["id"] and row["content_type"] == objects.described.get(row["id"], row["id"])
        shown, gone = (found[table].get(case.bucket["name"], []) for table in ("buckets", "deleted_buckets"))
        assert [begun(row) for row in shown] == ([buckets.live] if buckets.live else [])
        assert sorted(begun(row) for row in gone) == sorted(buckets.ended)
        assert all(row["id"] == made[begun(row)].answer["id"] for row in (*shown, *gone))
        told = {(kind, each.id) for each in case.done for kind in found["conflicts"].get(each.txn or "", ())}
        assert told == objects.conflicts | buckets.conflicts
        _nothing_is_lost(case, live, ended, {row["id"] for row in shown}, {row["id"] for row in gone}, self.collected)

    def _agrees(self, node: Manta, found: dict[str, dict[str, list[Any]]]) -> None:
        """The operations of a node that has raced tell what is there: each object is read, and listed below the bucket's id."""
        buckets = {row["name"]: row["id"] for row in node.listbuckets(owner=OWNER, limit=1024).rows}
        assert buckets == {name: row["id"] for name, (row, *_) in ((n, r) for n, r in found["buckets"].items() if r)}
        for case in self.cases:
            listed = node.listobjects(owner=OWNER, bucket_id=case.bucket_id).rows
            assert [(row["id"], row["content_type"]) for row in listed] == [
                (row["id"], row["content_type"]) for row in found["objects"].get(case.bucket_id, [])
            ]
            assert not listed or node.getobject(**case.key) == listed[0]


def shown(snapshot: Snapshot) -> dict[str, dict[str, list[Any]]]:
    """Rows by the id of their bucket or its name, and the kinds of conflicts by transaction."""
    found: dict[str, dict[str, list[Any]]] = {}
    for table in ("objects", "deleted_objects", "buckets", "deleted_buckets"):
        by, more = ("bucket_id", ["content_type"]) if "objects" in table else ("name", [])
        found[table] = defaultdict(list)
        for row in rows(snapshot, table, [by, "id", "_version", *more]):
            found[table][row[by]].append(row)
    found["conflicts"] = defaultdict(list)
    for row in rows(snapshot, "conflicts"):
        found["conflicts"][row["event"].partition(":")[0]].append(row["kind"])
    return found


def _check_made_anew(case: Case, found: dict[str, dict[str, list[Any]]]) -> None:
    """No bucket that was deleted has come back, whoever created one late; and every object is there that was acknowledged."""
    shown, gone = (found[table].get(case.bucket["name"], []) for table in ("buckets", "deleted_buckets"))
    assert len(shown) <= 1 and {row["id"] for row in shown}.isdisjoint(row["id"] for row in gone)
    objects = {row["id"] for table in ("objects", "deleted_objects") for row in found[table].get(case.bucket_id, [])}
    created = (each for each in case.done if each.op.name == "createobject" and not isinstance(each.answer, Exception))
    assert {each.id for each in created} <= objects


def _nothing_is_lost(case: Case, live: list[Any], ended: list[Any], shown: set[str], gone: set[str], batches: set[str]) -> None:
    """Whatever the model says of a race: what was acknowledged is there, what was deleted is not live, and each bucket is known."""
    acknowledged = [each for each in case.done if not isinstance(each.answer, Exception)]
    created = {each.answer["id"] for each in acknowledged if each.op.name == "createobject"}
    assert created == {row["id"] for row in (*live, *ended)} | (created & batches)
    for each in acknowledged:
        if each.op.name == "deleteobject":
            assert each.answer[0]["id"] not in {row["id"] for row in live}
        if each.op.name == "createbucket":
            assert each.answer["id"] in shown | gone
    was_made = any(each.op.name == "createbucket" for each in acknowledged)
    assert not live or not was_made or case.bucket_id in shown | gone


def played(before: str, races: Sequence[tuple[tuple[Op, ...], Schedule]], clocks: str = "ticking") -> None:
    """Each race comes out as it has to; a few share a world, where each look costs as much as there is."""
    for first in range(0, len(races), SHARED):
        race = Race(before, clocks)
        race.play(races[first : first + SHARED])
        race.check()


TWO = {
    "nothing": (CREATE, CREATE_NEW, UPDATE, DELETE, DELETE_ANY, MAKE, END, END_FULL),
    "an empty bucket": (CREATE, CREATE_NEW, DELETE, MAKE, END, END_FULL),
    "an object": OPS,
    "an object that is gone": (CREATE, CREATE_NEW, UPDATE, DELETE_ANY, MAKE, END),
    "a deleted bucket": (CREATE_NEW, CREATE_OVER, UPDATE, DELETE, MAKE, END),
}
"""What races after what. Where most are refused whatever comes first, fewer."""
CLOCKED = {
    "an object": (CREATE, CREATE_NEW, CREATE_OVER, UPDATE, DELETE, DELETE_V0),
    "an empty bucket": (CREATE, MAKE, END),
    "nothing": (CREATE_NEW, MAKE, END_FULL),
}
THREE = {
    "an object": (of_three, (CREATE_OVER, UPDATE, DELETE)),
    "an object, and all begin": (begun_of_three, (CREATE, UPDATE, DELETE_V0)),
    "nothing": (of_three, (CREATE_NEW, MAKE, END_FULL)),
    "an empty bucket": (of_three, (CREATE, MAKE, END)),
}


@pytest.mark.parametrize(("before", "first"), [(before, op) for before, ops in TWO.items() for op in ops], ids=str)
def test_of_two_that_race_nothing_is_lost_and_what_lost_is_told(before: str, first: Op) -> None:
    played(before, [((first, second), schedule) for second in TWO[before] for schedule in of_two()])


@pytest.mark.parametrize("clocks", ["still", "skewed"])
@pytest.mark.parametrize(("before", "first"), [(before, op) for before, ops in CLOCKED.items() for op in ops], ids=str)
def test_nor_where_clocks_stand_still_or_differ(before: str, first: Op, clocks: str) -> None:
    played(before, [((first, second), schedule) for second in CLOCKED[before] for schedule in of_two()], clocks)


@pytest.mark.parametrize("other", [*OPS, COLLECT], ids=str)
@pytest.mark.parametrize("before", ["an object", "an object that is gone"])
def test_nor_where_the_records_of_a_batch_are_removed_meanwhile(before: str, other: Op) -> None:
    race = Race(before)
    for ops in ((COLLECT, other), (other, COLLECT)):
        for schedule in of_two():
            race.play([(ops, schedule)])  # of which there is one batch at a time
    race.check()


@pytest.mark.parametrize(("case", "first"), [(case, op) for case, (_, ops) in THREE.items() for op in ops], ids=str)
def test_nor_of_three(case: str, first: Op) -> None:
    schedules, ops = THREE[case]
    others = itertools.product(ops, repeat=2)
    played(case.partition(",")[0], [((first, *more), schedule) for more in others for schedule in schedules()])
