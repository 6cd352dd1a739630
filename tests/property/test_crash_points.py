"""Every store call of a commit and of a checkpoint is a crash point, before and after the call.

After each crash a new process opens the catalog: it finds all that was acknowledged, the interrupted commit whole or not at all, and
goes on. Nothing is lost and nothing doubled. The same with every answer to a put lost. All points are enumerated, none sampled.

Which transactions are in the store is told by their names, and what each of them did is known here; what a reader must be shown, live
rows, tombstones, conflicts and forks, follows from that by the model.
"""

from __future__ import annotations

import itertools
import shutil
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from bucketcatalog import Catalog, CommitUnknown, OutcomeUnknown, clock
from bucketcatalog.limits import Limits
from bucketcatalog.maintain.restore import restore as restore_table
from bucketcatalog.store import Store
from bucketcatalog.store.faults import Failing, LostResponses, SimulatedCrash
from bucketcatalog.store.local import LocalStore
from bucketcatalog.store.memory import MemoryStore
from bucketcatalog.write.writer import Writer

from .machine.columns import DATABASE
from .machine.comparing import Comparer
from .machine.driver import Addressed, transact
from .machine.onlooker import EngineReader
from .machine.restores import restoring
from .machine.steps import Part
from .machine.stores import Published, parents_of, published
from .machine.world import BUCKETS, OWNER, Time, World
from .reference.model import ABSENT, Op
from .reference.timelines import Application, Draft, Transaction

pytestmark = pytest.mark.filterwarnings("ignore::bucketcatalog.errors.CatalogWarning")

Drafts = list[Addressed]


def put(name: str, length: int, *, expect: str | None = None) -> Addressed:
    key = OWNER, BUCKETS[0], name
    row = {
        "owner": OWNER,
        "bucket_id": BUCKETS[0],
        "name": name,
        "id": str(uuid.uuid5(uuid.NAMESPACE_OID, f"{name} {length}")),
        "content_length": length,
    }
    return Addressed(Draft(op=Op.PUT, table="objects", key=key, row=row, expect=expect))


def put_bucket(name: str) -> Addressed:
    row = {"owner": OWNER, "name": name, "id": str(uuid.uuid5(uuid.NAMESPACE_OID, name)), "region": "here"}
    return Addressed(Draft(op=Op.PUT, table="buckets", key=(OWNER, name), row=row))


def delete(name: str) -> Addressed:
    return Addressed(Draft(op=Op.DELETE, table="objects", key=(OWNER, BUCKETS[0], name)))


def of_live(world: World, op: Op, name: str, **more: int) -> Addressed:
    """An UPDATE or DELETE of the live version, called by its id."""
    live = world.newest().get("objects", (OWNER, BUCKETS[0], name))
    assert live is not None
    row = {**live.row, **more} if op is Op.UPDATE else None
    return Addressed(Draft(op=op, table="objects", key=live.key, version=live.name, row=row), str(live.row["id"]))


@dataclass(slots=True)
class Ledger:
    """What every transaction did, by uuid: first those that were acknowledged, the others as soon as they are found."""

    done: dict[str, Drafts] = field(default_factory=dict)

    def commit(self, writer: Writer, drafts: Drafts, application: Application | None = None) -> None:
        """Commit and note down."""
        told = transact(writer, drafts, application)
        assert told is not None
        self.done[told[1]] = drafts

    def admit(self, store: Store, drafts: Drafts) -> int:
        """What is in the store and not known yet has done this; returns how many transactions that are."""
        new = [it.uuid for it in transactions(store) if it.uuid not in self.done]
        self.done |= dict.fromkeys(new, drafts)
        return len(new)

    def world(self, store: Store) -> World:
        """The model's world with what is in the store, which is exactly what is known."""
        found = list(transactions(store))
        assert sorted(it.uuid for it in found) == sorted(self.done), "nothing is lost, nothing doubled"
        world = World(Time(), names=0)
        for it in sorted(found, key=lambda it: it.revision):
            bare = Transaction(
                writer=it.writer, revision=it.revision, uuid=it.uuid, commit_time=it.commit_time, parents=parents_of(it.data)
            )
            events = (addressed.draft.stamped(bare.stamp(seq)) for seq, addressed in enumerate(self.done[it.uuid]))
            world.timelines.add(replace(bare, events=tuple(events)))
        return world


def transactions(store: Store) -> Iterator[Published]:
    for info in store.list(""):
        if info.name.endswith(".txn"):
            found = published(info.name, store.get(info.name))
            assert found is not None
            yield found


def compare(store: Store, ledger: Ledger) -> None:
    """What a new reader is shown is what the model says."""
    world = ledger.world(store)
    comparer, cut = Comparer(world, store), world.timelines.visible()
    snapshot = EngineReader(store, now=clock.now_us).snapshot()
    comparer.forks(snapshot, cut)
    for part in Part:
        comparer.part("now", part, snapshot, cut)


def without_checkpoints(store: Store) -> Store:
    """The transactions alone."""
    plain = MemoryStore()
    for info in store.list(""):
        if info.name.endswith(".txn"):
            plain.put(info.name, store.get(info.name))
    return plain


# What the catalog holds to begin with.


def two_writers(store: Store, ledger: Ledger) -> None:
    """Two writers, a checkpoint, a tail beyond it."""
    catalog = Catalog(store)
    with catalog.writer("w", database=DATABASE) as w, catalog.writer("v", database=DATABASE) as v:
        ledger.commit(w, [put("a", 0), put("b", 2)], ("job", 1))
        w.checkpoint()
        ledger.commit(v, [put("a", 1)])
        ledger.commit(w, [put("c", 3)])


def forks(store: Store, ledger: Ledger) -> None:
    """Also a stray of w and a fork of u that only ``repair`` can join, both before and after a checkpoint of all."""
    two_writers(store, ledger)
    for writer, lengths in (("w", ((10, 11), (20,))), ("u", ((30, 31), (40, 41)))):
        processes = [Catalog(store).writer(writer, database=DATABASE) for _ in lengths]
        for process, its_lengths in zip(processes, lengths, strict=True):
            for length in its_lengths:
                ledger.commit(process, [put("a", length), put(f"{writer}{length}", length)])
        if writer == "w":
            with Catalog(store).writer("compactor-1", database=DATABASE) as compactor:
                compactor.checkpoint(scope="all")
            ledger.admit(store, [])


# The steps that crash.


def inline(world: World) -> Drafts:
    return [
        put("a", 100, expect=ABSENT),
        put_bucket("bucket"),
        of_live(world, Op.UPDATE, "b", content_length=20),
        of_live(world, Op.DELETE, "c"),
    ]


def columnar(_: World) -> Drafts:
    return [*(put(f"n{n:03}", n) for n in range(100)), delete("a")]


def back_to_the_first_commit(world: World) -> Drafts:
    (first,) = [uuid for uuid, it in world.timelines.transactions.items() if (it.writer, it.revision) == ("w", 0)]
    then = world.state(world.timelines.causal(first))
    return [Addressed(draft) for draft in restoring(then, world.newest(), "objects")]


def nothing(_: World) -> Drafts:
    return []


def own_checkpoint(writer: Writer, _: Drafts) -> None:
    writer.checkpoint()


def checkpoint_of_all(writer: Writer, _: Drafts) -> None:
    writer.checkpoint(scope="all")


def restore(writer: Writer, _: Drafts) -> None:
    restore_table(writer._database, writer, "objects", None, "w@0", skip_collected=False)


def commit(writer: Writer, drafts: Drafts) -> None:
    transact(writer, drafts, ("job", 2))


@dataclass(frozen=True, slots=True)
class Step:
    """What a process does: its events in the world that it finds, how, and how many transactions come of it."""

    drafts: Callable[[World], Drafts]
    act: Callable[[Writer, Drafts], None]
    transactions: int
    repeatable: bool = False


STEPS = {
    "inline commit": Step(inline, commit, 1, repeatable=True),
    "columnar commit": Step(columnar, commit, 1, repeatable=True),
    "restore": Step(back_to_the_first_commit, restore, 1, repeatable=True),
    "own checkpoint": Step(nothing, own_checkpoint, 0),
    "checkpoint of all": Step(nothing, checkpoint_of_all, 1),
}


class Bench:
    """Stores that ``fresh`` makes, each with the same catalog in it, which ``fill`` has made once."""

    def __init__(self, fresh: Callable[[], Store], fill: Callable[[Store, Ledger], None]) -> None:
        self.fresh = fresh
        self.ledger = Ledger()
        self.origin = fresh()
        fill(self.origin, self.ledger)
        self.world = self.ledger.world(self.origin)
        self.content = {info.name: self.origin.get(info.name) for info in self.origin.list("")}

    def copy(self) -> tuple[Store, Ledger]:
        """A store, and the ledger of what is in it."""
        store = self.fresh()
        self.fill(store)
        return store, Ledger(dict(self.ledger.done))

    def fill(self, store: Store) -> None:
        """Put everything into a fresh store."""
        for name, data in self.content.items():
            store.put(name, data)


class LocalBench(Bench):
    """On disk, where copying files is much faster than putting objects."""

    def __init__(self, folder: Path) -> None:
        numbers = itertools.count()
        super().__init__(lambda: LocalStore(folder / str(next(numbers))), two_writers)
        self.folder = folder

    def fill(self, store: Store) -> None:
        """Copy the first store's folder."""
        shutil.copytree(self.folder / "0", store.url)


@pytest.fixture(scope="module", params=["memory", "local", "forks"])
def bench(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    if request.param == "local":
        return LocalBench(tmp_path_factory.mktemp("crash"))
    return Bench(MemoryStore, forks if request.param == "forks" else two_writers)


def run(store: Store, step: Step, drafts: Drafts) -> None:
    """One process: open, act, close."""
    with Catalog(store).writer("w", database=DATABASE) as writer:
        step.act(writer, drafts)


def go_on(store: Store, ledger: Ledger, step: Step, drafts: Drafts, *, done: int) -> None:
    """A new process does what the dead one did not, by its application's number, then more; and every file is read anew."""
    if step.repeatable:
        run(store, step, drafts)
        assert done + ledger.admit(store, drafts) == step.transactions
        compare(store, ledger)
    rounds = (own_checkpoint, checkpoint_of_all, own_checkpoint) if isinstance(store, MemoryStore) else (checkpoint_of_all,)
    for number, checkpoint in enumerate(rounds):
        with Catalog(store).writer("w", database=DATABASE) as writer:
            ledger.commit(writer, [put(f"more{number}", number)])
            checkpoint(writer, [])
        assert ledger.admit(store, []) == (checkpoint is checkpoint_of_all)
        compare(store, ledger)
    compare(without_checkpoints(store), ledger)


def calls(bench: Bench, step: Step, drafts: Drafts) -> list[tuple[str, str]]:
    """Method and name of every store call that the step makes."""
    store, _ = bench.copy()
    counting = Failing(store)
    run(counting, step, drafts)
    return counting.calls


def crash(bench: Bench, step: Step, drafts: Drafts, at: int, *, late: bool, continued: set[int]) -> int:
    """A process dies at one store call; returns how many transactions it has put.

    ``continued`` holds the numbers of puts after which another process has gone on already: what comes next depends on nothing but what
    is in the store.
    """
    store, ledger = bench.copy()
    dying = Failing(store, at=at, after=late)
    with pytest.raises(SimulatedCrash):
        run(dying, step, drafts)
    puts = [name for call, name in dying.calls[: at + late] if call == "put"]
    landed = sum(name.endswith(".txn") for name in puts)
    assert ledger.admit(store, drafts) == landed <= step.transactions, (at, late, dying.calls[-1])
    compare(store, ledger)
    if len(puts) not in continued:
        continued.add(len(puts))
        go_on(store, ledger, step, drafts, done=landed)
    return landed


@pytest.mark.parametrize("name", STEPS)
def test_a_crash_at_any_store_call_loses_and_doubles_nothing(bench: Bench, name: str) -> None:
    step = STEPS[name]
    drafts = step.drafts(bench.world)
    continued: set[int] = set()
    points = [*itertools.product(range(len(calls(bench, step, drafts))), (False, True))]
    committed = sum(crash(bench, step, drafts, at, late=late, continued=continued) for at, late in points)
    assert len(points) >= 10 and len(continued) >= 2
    assert (committed > 0) == (step.transactions > 0)


@pytest.mark.parametrize("name", STEPS)
def test_a_crash_while_a_reader_is_looking_changes_nothing_for_it(bench: Bench, name: str) -> None:
    """A snapshot that was taken before the crash goes on showing what it showed, also when it reads only afterwards."""
    step = STEPS[name]
    drafts = step.drafts(bench.world)
    for at, late in itertools.product(range(len(calls(bench, step, drafts))), (False, True)):
        store, _ = bench.copy()
        snapshot = EngineReader(store, now=clock.now_us).snapshot()
        with pytest.raises(SimulatedCrash):
            run(Failing(store, at=at, after=late), step, drafts)
        Comparer(bench.world, store).part("before the crash", Part.OBJECTS, snapshot, bench.world.timelines.visible())


@pytest.mark.parametrize("landed", [False, True], ids=["lost request", "lost answer"])
@pytest.mark.parametrize("name", STEPS)
def test_a_lost_response_to_any_put_is_met_with_the_same_bytes(
    bench: Bench, name: str, landed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bucketcatalog.clock.sleep", lambda _: None)
    step = STEPS[name]
    drafts = step.drafts(bench.world)
    counting = LostResponses(bench.copy()[0], landed=True, puts=[])
    run(counting, step, drafts)
    for number in range(counting.puts):
        store, ledger = bench.copy()
        flaky = LostResponses(store, landed=landed, puts=[number])
        run(flaky, step, drafts)
        assert flaky.puts == counting.puts + 1
        assert ledger.admit(store, drafts) == step.transactions
        compare(store, ledger)
        if number == 0:  # what comes next depends on nothing but what is in the store, which is the same each time
            go_on(store, ledger, step, drafts, done=step.transactions)


@pytest.mark.parametrize("landed", [False, True], ids=["lost requests", "lost answers"])
@pytest.mark.parametrize("name", STEPS)
def test_a_store_that_never_answers_ends_in_a_typed_error_and_reopening_resolves_it(
    bench: Bench, name: str, landed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monotonic = clock.monotonic
    monkeypatch.setattr("bucketcatalog.clock.sleep", slept.append)
    monkeypatch.setattr("bucketcatalog.clock.monotonic", lambda: monotonic() + sum(slept))
    step = STEPS[name]
    drafts = step.drafts(bench.world)
    store, ledger = bench.copy()
    writer = Catalog(LostResponses(store, landed=landed)).writer("w", database=DATABASE, limits=Limits(commit_delay=100_000))
    with pytest.raises((CommitUnknown, OutcomeUnknown)):
        step.act(writer, drafts)
    done = ledger.admit(store, drafts)
    assert done == landed * step.transactions
    compare(store, ledger)
    go_on(store, ledger, step, drafts, done=done)
