"""Every store call of a commit and of a checkpoint is a crash point, before and after the call.

After each crash a new process opens the catalog: it finds all that was acknowledged, the interrupted commit whole or not at all, and
goes on. Nothing is lost and nothing doubled. The same with every answer to a put lost. All points are enumerated, none sampled.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bucketcatalog import Catalog, CommitUnknown, OutcomeUnknown
from bucketcatalog.log.owner import Limits
from bucketcatalog.store import Store
from bucketcatalog.store.faults import Failing, LostResponses, SimulatedCrash
from bucketcatalog.store.local import LocalStore
from bucketcatalog.store.memory import MemoryStore
from bucketcatalog.writer import Writer

OWNER, BUCKET = "11111111-1111-4111-8111-111111111111", "33333333-3333-4333-8333-333333333333"
IDS = [f"aaaaaaaa-0000-4000-8000-{n:012}" for n in range(4)]
State = tuple[dict[str, int | None], list[tuple[str, int | None]]]
Steps = Callable[[Writer], None]

# What lies in the catalog before the step that crashes, and after it: live objects and tombstones by name and length.
BEFORE: State = ({"a": 1, "b": 2, "c": 3}, [("a", 0)])


def obj(name: str, **more: Any) -> dict[str, Any]:
    return {"owner": OWNER, "bucket_id": BUCKET, "name": name, **more}


def prepare(store: Store) -> None:
    """Two writers, a checkpoint by each, a tail beyond both."""
    catalog = Catalog(store)
    with catalog.writer("w") as w, catalog.writer("v") as v:
        with w.transaction(app_id="job", app_version=1) as tx:
            tx.put("objects", [obj("a", id=IDS[0], content_length=0), obj("b", id=IDS[1], content_length=2)])
        v.checkpoint()
        w.checkpoint()
        with v.transaction() as tx:
            tx.put("objects", obj("a", id=IDS[2], content_length=1))
        with w.transaction() as tx:
            tx.put("objects", obj("c", id=IDS[3], content_length=3))


def inline(writer: Writer) -> None:
    with writer.transaction(app_id="job", app_version=2) as tx:
        tx.put("objects", obj("a", content_length=10))
        tx.put("buckets", {"owner": OWNER, "name": "bucket"})
        tx.update("objects", obj("b", id=IDS[1], content_length=20))
        tx.delete("objects", obj("c", id=IDS[3]))


AFTER_INLINE: State = ({"a": 10, "b": 20}, [("a", 0), ("a", 1), ("c", 3)])


def columnar(writer: Writer) -> None:
    with writer.transaction(app_id="job", app_version=2) as tx:
        tx.put("objects", [obj(f"n{n:03}", content_length=n) for n in range(100)])
        tx.delete("objects", obj("a"))


AFTER_COLUMNAR: State = (
    {"b": 2, "c": 3} | {f"n{n:03}": n for n in range(100)},
    [("a", 0), ("a", 1)],
)


def own_checkpoint(writer: Writer) -> None:
    writer.checkpoint()


def checkpoint_of_all(writer: Writer) -> None:
    writer.checkpoint(scope="all")


STEPS: dict[str, tuple[Steps, State]] = {
    "inline commit": (inline, AFTER_INLINE),
    "columnar commit": (columnar, AFTER_COLUMNAR),
    "own checkpoint": (own_checkpoint, BEFORE),
    "checkpoint of all": (checkpoint_of_all, BEFORE),
}


def state(store: Store) -> State:
    snapshot = Catalog(store).snapshot()
    live = snapshot.scan("objects", columns=["name", "content_length"]).to_arrow().to_pylist()
    ended = snapshot.scan("deleted_objects", columns=["name", "content_length"]).to_arrow().to_pylist()
    assert snapshot.scan("forks").to_arrow().num_rows == 0
    assert len(live) == len({row["name"] for row in live})
    return {row["name"]: row["content_length"] for row in live}, sorted((row["name"], row["content_length"]) for row in ended)


class Bench:
    """Fresh stores of one kind with the prepared catalog in them."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self.folder = folder
        self.numbers = itertools.count()
        self.origin: Store = MemoryStore() if kind == "memory" else LocalStore(folder / "origin")
        prepare(self.origin)

    def copy(self) -> Store:
        if self.kind == "local":
            target = self.folder / str(next(self.numbers))
            shutil.copytree(self.folder / "origin", target)
            return LocalStore(target)
        store = MemoryStore()
        for info in self.origin.list(""):
            store.put(info.name, self.origin.get(info.name))
        return store


@pytest.fixture(scope="module", params=["memory", "local"])
def bench(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(request.param, tmp_path_factory.mktemp("crash"))


def run(store: Store, steps: Steps, writer: str = "w") -> None:
    """One process: open, act, close."""
    with Catalog(store).writer(writer) as opened:
        steps(opened)


def go_on(store: Store, committed: State, *, again: Steps | None) -> None:
    """A new process does what the dead one did not, by its application's number, then more; and every file is read anew."""
    if again is not None:
        run(store, again)
        assert state(store) == committed
    rounds = (own_checkpoint, checkpoint_of_all, own_checkpoint) if isinstance(store, MemoryStore) else (checkpoint_of_all,)
    for number, steps in enumerate(rounds):
        with Catalog(store).writer("w") as writer:
            with writer.transaction() as tx:
                tx.put("objects", obj(f"more{number}", content_length=number))
            steps(writer)
        live, ended = committed
        committed = live | {f"more{number}": number}, ended
        assert state(store) == committed
    assert state_from_transactions(store) == committed


def state_from_transactions(store: Store) -> State:
    """The state without any checkpoint."""
    plain = MemoryStore()
    for info in store.list(""):
        if "/transactions/" in info.name and info.name.endswith(".txn"):
            plain.put(info.name, store.get(info.name))
    return state(plain)


def crashes(bench: Bench, steps: Steps) -> Iterator[tuple[int, bool]]:
    counting = Failing(bench.copy())
    run(counting, steps)
    yield from itertools.product(range(len(counting.calls)), (False, True))


@pytest.mark.parametrize("step", STEPS)
def test_a_crash_at_any_store_call_loses_and_doubles_nothing(bench: Bench, step: str) -> None:
    steps, after = STEPS[step]
    commits = after != BEFORE
    tried = committed = 0
    for at, late in crashes(bench, steps):
        store = bench.copy()
        dying = Failing(store, at=at, after=late)
        with pytest.raises(SimulatedCrash):
            run(dying, steps)
        found = state(store)
        landed = any(call == "put" for call, _ in dying.calls[: at + late])
        assert found == (after if commits and landed else BEFORE), (step, at, late, dying.calls[-1])
        go_on(store, after if commits else BEFORE, again=steps if commits else None)
        tried, committed = tried + 1, committed + (commits and landed)
    assert tried >= 10 and committed == (1 if commits else 0)


@pytest.mark.parametrize("step", STEPS)
def test_a_crash_while_a_reader_is_looking_shows_it_either_state(bench: Bench, step: str) -> None:
    """A snapshot that was taken before the crash goes on showing what it showed, also when it reads only afterwards."""
    steps, _ = STEPS[step]
    for at, late in crashes(bench, steps):
        store = bench.copy()
        snapshot = Catalog(store).snapshot()
        with pytest.raises(SimulatedCrash):
            run(Failing(store, at=at, after=late), steps)
        live = snapshot.scan("objects", columns=["name", "content_length"]).to_arrow().to_pylist()
        assert {row["name"]: row["content_length"] for row in live} == BEFORE[0]


@pytest.mark.parametrize("landed", [False, True], ids=["lost request", "lost answer"])
@pytest.mark.parametrize("step", STEPS)
def test_a_lost_response_to_any_put_is_met_with_the_same_bytes(
    bench: Bench, step: str, landed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bucketcatalog.clock.sleep", lambda _: None)
    steps, after = STEPS[step]
    counting = LostResponses(bench.copy(), landed=True, puts=[])
    run(counting, steps)
    for number in range(counting.puts):
        store = bench.copy()
        flaky = LostResponses(store, landed=landed, puts=[number])
        run(flaky, steps)
        assert flaky.puts == counting.puts + 1
        assert state(store) == after
        go_on(store, after, again=steps if after != BEFORE else None)


@pytest.mark.parametrize("landed", [False, True], ids=["lost requests", "lost answers"])
@pytest.mark.parametrize("step", STEPS)
def test_a_store_that_never_answers_ends_in_a_typed_error_and_reopening_resolves_it(
    bench: Bench, step: str, landed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bucketcatalog.clock.sleep", lambda _: None)
    steps, after = STEPS[step]
    store = bench.copy()
    writer = Catalog(LostResponses(store, landed=landed)).writer("w", limits=Limits(commit_delay=100_000))
    with pytest.raises((CommitUnknown, OutcomeUnknown)):
        steps(writer)
    assert state(store) == (after if landed else BEFORE)
    go_on(store, after, again=steps if after != BEFORE else None)
