"""A prune dies before its first put and after each of its puts and deletes, between which nothing in the store changes.

After each crash what is retained reads as before: now, as of times and versions that contain the horizon, and as of tags; what lies behind
the horizon is shown as it was or refused; and a second prune, somebody else's, finishes what the first began. All points are enumerated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bucketcatalog import Catalog, HistoryPruned
from bucketcatalog.maintain.prune import PruneResult
from bucketcatalog.store.base import Store
from bucketcatalog.store.faults import Failing, SimulatedCrash
from bucketcatalog.store.memory import MemoryStore

from ..kit.machine.world import BUCKETS, OWNER, START

SECOND = 1_000_000
HOUR = 3_600 * SECOND
pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore::bucketcatalog.errors.CatalogWarning")]


class Clock:
    """A time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    time = Clock()
    monkeypatch.setattr("bucketcatalog.clock.now_us", time)
    monkeypatch.setitem(Catalog.writer.__kwdefaults__ or {}, "clock", time)
    monkeypatch.setitem(Catalog.prune.__kwdefaults__ or {}, "clock", time)
    return time


def put(store: Store, clock: Clock, writer: str, *names: str) -> None:
    clock.now += SECOND
    with Catalog(store).writer(writer) as held, held.transaction() as tx:
        for name in names:
            tx.put("objects", {"owner": OWNER, "bucket_id": BUCKETS[0], "name": name})
        tx.delete("objects", {"owner": OWNER, "bucket_id": BUCKETS[0], "name": "shared"})
        tx.put("objects", {"owner": OWNER, "bucket_id": BUCKETS[0], "name": "shared", "content_length": clock.now - START})


def checkpoint(store: Store, clock: Clock, writer: str, *, everyone: bool = True) -> None:
    clock.now += HOUR
    with Catalog(store).writer(writer) as held:
        held.checkpoint(scope="all" if everyone else "own")


def tag(store: Store, name: str, version: str) -> None:
    with Catalog(store).writer("maintainer-2") as held:
        held.tag(name, version=version)


Rows = list[tuple[Any, ...]]


def rows(catalog: Catalog, **options: Any) -> Rows:
    """Live rows and tombstones."""
    snapshot, columns = catalog.snapshot(**options), ["name", "content_length", "created"]
    tables = (snapshot.scan(table, columns=columns).to_arrow() for table in ("objects", "deleted_objects"))
    return [tuple(row.values()) for table in tables for row in table.to_pylist()]


class Filled:
    """A catalog with history: two writers, one of them forked by a stray, checkpoints of all kinds, two tags, and all that it showed."""

    def __init__(self, clock: Clock) -> None:
        self.store: Store = MemoryStore(clock=clock)
        self.versions: list[tuple[str, Rows]] = []
        self.times: list[tuple[int, Rows]] = []
        for number in range(3):
            put(self.store, clock, "a", f"a{number}")
            put(self.store, clock, "b", f"b{number}")
            self.note(clock)
        clock.now += SECOND
        processes = [Catalog(self.store).writer("a") for _ in range(2)]
        for number, process in enumerate(processes):
            with process.transaction() as tx:
                tx.put("objects", {"owner": OWNER, "bucket_id": BUCKETS[0], "name": f"fork{number}"})
        self.note(clock)
        tag(self.store, "first", self.versions[0][0])
        checkpoint(self.store, clock, "b", everyone=False)
        put(self.store, clock, "b", "b3")
        checkpoint(self.store, clock, "compactor-1")
        self.note(clock)
        put(self.store, clock, "a", *(f"many{n:03}" for n in range(80)))
        put(self.store, clock, "b", "b4")
        self.note(clock)
        tag(self.store, "second", self.versions[-1][0])
        checkpoint(self.store, clock, "compactor-1")
        self.note(clock)
        clock.now += HOUR
        self.horizon = clock.now
        checkpoint(self.store, clock, "compactor-2")
        put(self.store, clock, "b", "b5")
        self.note(clock)
        clock.now += HOUR

    def note(self, clock: Clock) -> None:
        """Remember what is shown now."""
        clock.now += SECOND
        catalog = Catalog(self.store)
        self.versions.append((catalog.snapshot().version, rows(catalog)))
        self.times.append((clock.now, self.versions[-1][1]))

    def copy(self, clock: Clock) -> Store:
        """A store of its own with all of it, with the times of its files."""
        store, now = MemoryStore(clock=clock), clock.now
        for info in sorted(self.store.list(""), key=lambda info: info.modified_us):
            clock.now = info.modified_us
            store.put(info.name, self.store.get(info.name))
        clock.now = now
        return store


def prune(store: Store, writer: str = "maintainer-1") -> PruneResult:
    options: dict[str, Any] = {"grace": "0s", "force": True, "dry_run": False, "writer": writer}
    return Catalog(store).prune("90m", **options)


def compare(filled: Filled, store: Store) -> int:
    """What is retained reads as before; returns how many past versions and times are refused."""
    assert rows(Catalog(store)) == filled.versions[-1][1]
    assert rows(Catalog(store), version="first") == filled.versions[0][1]
    assert rows(Catalog(store), version="second") == rows(Catalog(store), version=named(filled, "second"))
    refused = 0
    for version, expected in filled.versions:
        refused += shows(expected, lambda version=version: rows(Catalog(store), version=version))
    for time, expected in filled.times:
        refused += shows(expected, lambda time=time: rows(Catalog(store), timestamp=f"@{time}"))
    assert not shows(filled.versions[-1][1], lambda: rows(Catalog(store), version=filled.versions[-1][0]))
    return refused


def named(filled: Filled, tag: str) -> str:
    return str(Catalog(filled.store).snapshot(version=tag).version)


def shows(expected: Rows, ask: Callable[[], Rows]) -> bool:
    """Whether it is refused; else it is as expected."""
    try:
        assert ask() == expected
    except HistoryPruned:
        return True
    return False


def test_a_crash_at_any_put_or_delete_changes_nothing_that_is_retained_and_the_next_prune_finishes(clock: Clock) -> None:
    filled = Filled(clock)
    counting = Failing(filled.copy(clock), methods=("put", "delete"))
    whole = prune(counting)
    remaining = {info.name for info in counting.inner.list("")}
    kinds = {file.kind.value for file in whole.files}
    assert kinds == {"marker", "checkpoint", "transaction", "segment"} and len(whole.tags) == 2
    refused_in_the_end = compare(filled, counting.inner)
    assert refused_in_the_end >= 6
    assert compare(filled, filled.copy(clock)) == 0
    for at, late in [(0, False), *((at, True) for at in range(len(counting.calls)))]:
        store = filled.copy(clock)
        with pytest.raises(SimulatedCrash):
            prune(Failing(store, at=at, after=late, methods=("put", "delete")))
        assert compare(filled, store) <= refused_in_the_end, (at, late, counting.calls[at])
        with Catalog(store).writer("b") as writer:
            writer.checkpoint()
        checkpoint_of_all(store)
        compare(filled, store)
        prune(store, "maintainer-3")
        assert compare(filled, store) == refused_in_the_end, (at, late, counting.calls[at])
        kept = {name for name in remaining if name.startswith(("a/", "b/"))}
        left = {info.name for info in store.list("") if info.name.startswith(("a/", "b/")) and info.name.endswith(".txn")}
        assert left == {name for name in kept if name.endswith(".txn")}, (at, late, counting.calls[at])


def checkpoint_of_all(store: Store) -> None:
    """Another compactor's first, from whatever is there."""
    with Catalog(store).writer("compactor-3") as held:
        held.checkpoint(scope="all")
