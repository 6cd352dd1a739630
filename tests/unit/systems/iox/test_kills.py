"""Every call by which a change of a data table changes the store is a point at which its process dies, before it took effect and after.

Whoever reads then sees the rows before or the rows after and nothing else, by whether the commit is there; no commit names a file that is
not; the same done again comes to what it comes to undisturbed; and what was written for nothing is told, and taken in as far as files can
tell what they were for. That is looked at once for all deaths that have left as many files of each kind, on which what comes next depends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest

from bucketcatalog import Catalog, HistoryPruned
from bucketcatalog.store import Store
from bucketcatalog.store.faults import Failing, LostResponses, SimulatedCrash
from bucketcatalog.store.wrappers import Wrapped
from bucketcatalog.systems.iox import predicates
from bucketcatalog.systems.iox.errors import DataMissing
from bucketcatalog.systems.iox.files import FILES
from bucketcatalog.systems.iox.named import LIVE_AND_ENDED
from bucketcatalog.systems.iox.predicates import PREDICATES
from bucketcatalog.systems.iox.table import DataTable
from bucketcatalog.systems.iox.verify import verify

from ....kit.pruning import checkpoint
from ....kit.world import DAY, HOUR, World
from .lost import (
    compacted,
    copy_of,
    deleted,
    keyed,
    keyed_and_compacted,
    made,
    named,
    plain,
    racing,
    rebuilt,
    removed,
    rows,
)

MORE = [*rows(71, 72, note="new"), *rows(73, 74, host="c", _partition="p/1")]
"""Rows of two partitions, with a column that is new."""
Rows = dict[str, Counter[str]]
"""The rows that count, by table."""


def nothing(_: Catalog) -> None:
    """There is no catalog."""


def append(catalog: Catalog) -> None:
    catalog.data("cpu", writer="alice").append(MORE)


def append_numbered(catalog: Catalog) -> None:
    catalog.data("cpu", writer="alice").append(MORE, app_id="job", app_version=7)


def append_to_a_new_table(catalog: Catalog) -> None:
    catalog.data("new/..", database="default", writer="carol").append(MORE, key=["v"], app_id="job", app_version=7)


def append_in_a_transaction(catalog: Catalog) -> None:
    with catalog.writer("alice") as writer, writer.transaction(app_id="job", app_version=7) as tx:
        tx.put("data.cpu", MORE)
        tx.put("data.loads", [{"job": 7}])


def append_newer_rows(catalog: Catalog) -> None:
    catalog.data("cpu", writer="bob").append(rows(1, 2, load=8.0), clock=9, app_id="job", app_version=7)


def remove(catalog: Catalog) -> None:
    catalog.data("cpu", writer="alice").remove(partition="default")


def delete(catalog: Catalog) -> None:
    catalog.data("cpu", writer="bob").delete_where({"v": [1, 7]})


def compact(catalog: Catalog) -> None:
    catalog.run_job("iox.compact", table="cpu", least=1)


def restore(catalog: Catalog) -> None:
    catalog.data("cpu", writer="alice").restore(version="alice@0", dry_run=False)


def several(catalog: Catalog) -> None:
    """Four commits of one writer, which is open all the time."""
    with catalog.data("cpu", writer="alice") as table:
        table.append(MORE, app_id="job", app_version=7)
        table.delete_where([("v", ">=", 72), ("v", "<", 74)])
        table.append(rows(1, 75, note="later"), app_id="job", app_version=8)
        table.remove(partition="p/1")


@dataclass(frozen=True)
class Step:
    """What a process does to a catalog with a past, in so many ``commits``; ``codes`` are what rebuilding says of what it has only put.

    Done again it changes nothing, unless it is not numbered.
    """

    past: Callable[[Catalog], None]
    act: Callable[[Catalog], None]
    codes: tuple[str, ...] = ()
    commits: int = 1
    is_numbered: bool = True


UNCOMMITTED, NOT_DELETED, REMOVED, UNDONE = (
    "PERHAPS_UNCOMMITTED",
    "PERHAPS_NOT_DELETED",
    "PERHAPS_REMOVED",
    "UNDONE_COMPACTION",
)
CHANGES = ("put", "delete")
"""What a process does to a store: between two of these it can die where it likes, for nothing else of it is left."""
NOT_TAKEN_IN = {REMOVED, UNDONE}
STEPS = {
    "append": Step(deleted, append, (UNCOMMITTED,), is_numbered=False),
    "append, numbered": Step(plain, append_numbered, (UNCOMMITTED,)),
    "append in a transaction": Step(removed, append_in_a_transaction, (UNCOMMITTED,)),
    "append to a new table": Step(plain, append_to_a_new_table, (UNCOMMITTED,)),
    "append where nothing is": Step(nothing, append_to_a_new_table),
    "append newer rows": Step(keyed, append_newer_rows, (UNCOMMITTED,)),
    "remove what was compacted": Step(compacted, remove, (REMOVED,)),
    "delete of what was compacted": Step(racing, delete, (NOT_DELETED,)),
    "delete by key": Step(keyed_and_compacted, delete, (NOT_DELETED,)),
    "compact what was compacted": Step(racing, compact, (UNDONE,)),
    "compact by key": Step(keyed, compact, (UNDONE,)),
    "restore": Step(removed, restore, (REMOVED,)),
    "several": Step(plain, several, (NOT_DELETED, REMOVED, UNCOMMITTED), commits=4),
}


def counted(catalog: Catalog, version: str | None = None) -> Rows:
    """The rows that count, whatever files they lie in."""
    if not catalog.databases():
        return {}
    snapshot, found = catalog.snapshot(version=version), dict[str, Counter[str]]()
    for name in snapshot.tables:
        if name.startswith("data."):
            scan = snapshot.scan(name)
            given = snapshot.scan(name, columns=[*scan.schema.names, "_partition"]).to_arrow().to_pylist()
            found[name] = Counter(repr([each for each in sorted(row.items()) if each[1] is not None]) for row in given)
    return found


def wrong(catalog: Catalog) -> list[str]:
    """What verifying says is wrong with a catalog, footers and markers among it."""
    if not catalog.databases():
        return []
    return [str(each) for each in verify(catalog, deep=True) if each.severity.value != "info"]


def in_log(catalog: Catalog) -> set[str]:
    """The files and markers that the catalog names, be it as ones that have ended."""
    if not catalog.databases():
        return set()
    snapshot = catalog.snapshot()
    tables = [f"{of}{table}" for table in (FILES, PREDICATES) if table in snapshot.definitions for of in LIVE_AND_ENDED]
    return {row["path"] for table in tables for row in snapshot.scan(table, columns=["path"]).to_arrow().to_pylist()} - {None}


def strays(catalog: Catalog) -> set[str]:
    """The files and markers that nothing names; all that are named are there."""
    there, told = {*named(catalog.store)}, in_log(catalog)
    assert told <= there
    return there - told


class Later(Wrapped):
    """A store in which two days have passed since."""

    def now_us(self, below: str | None = None) -> int:
        return super().now_us(below) + 2 * DAY


class Keeping(Wrapped):
    """A store that keeps which rows count after each commit."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.states = [counted(Catalog(inner))]

    def put(self, name: str, data: bytes) -> None:
        super().put(name, data)
        if name.endswith(".txn"):
            self.states.append(counted(Catalog(self.inner)))


@dataclass(frozen=True)
class Death:
    """What a death has left, how many of the step's commits are there, and what has been put for the next one."""

    left: Store
    landed: int
    strays: frozenset[str]

    def copy(self) -> Store:
        """The same, to go on with."""
        return copy_of(self.left)


class Bench:
    """A step, where it begins, what it comes to undisturbed, and what every death leaves of it.

    ``states`` are the rows before it and after each of its commits, ``again`` those when it is done twice.
    """

    def __init__(self, step: Step) -> None:
        self.step, self.origin = step, made(step.past)
        done = Keeping(copy_of(self.origin))
        self.act(done)
        self.states = done.states
        self.act(done.inner)
        self.again = counted(Catalog(done.inner))
        self.deaths = [*self._deaths()]

    def act(self, store: Store) -> None:
        """Take the step, and say a deletion file by file."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(predicates, "MOST_CHUNKS", 1)
            self.step.act(Catalog(store))

    def _deaths(self) -> Iterator[Death]:
        counting = Failing(copy_of(self.origin), methods=CHANGES)
        self.act(counting)
        seen = set()
        for at in range(len(counting.calls)):
            for late in (False, True):
                found = copy_of(self.origin)
                with pytest.raises(SimulatedCrash):
                    self.act(Failing(found, at=at, after=late, methods=CHANGES))
                there = frozenset(Counter(info.name.rsplit("/", 1)[0] for info in found.list("")).items())
                if there not in seen:
                    seen.add(there)
                    landed = len(named(found, data=False, ending=".txn")) - len(named(self.origin, data=False, ending=".txn"))
                    yield Death(found, landed, frozenset(strays(Catalog(found)) - strays(Catalog(self.origin))))


bench_of = cache(Bench)


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
class TestKilledAtAnyStep:
    def test_a_reader_sees_the_rows_before_or_after_and_every_file_is_there(self, step: Step) -> None:
        bench = bench_of(step)
        assert len(bench.states) == step.commits + 1
        assert (bench.states[0] == bench.states[-1]) is (step.act is compact)
        assert (bench.again == bench.states[-1]) is step.is_numbered
        version = Catalog(bench.origin).snapshot().version if bench.states[0] else None
        for death in bench.deaths:
            catalog = Catalog(death.left)
            assert counted(catalog) == bench.states[death.landed]
            assert wrong(catalog) == []
            if version is not None:
                assert counted(catalog, version) == bench.states[0]
        assert {death.landed for death in bench.deaths} == {*range(step.commits + 1)}
        assert {death.landed for death in bench.deaths if death.strays} == {*range(step.commits)}

    def test_the_same_done_again_comes_to_the_same_and_work_goes_on(self, step: Step) -> None:
        bench = bench_of(step)
        for death in bench.deaths:
            found = death.copy()
            bench.act(found)
            catalog, expected = Catalog(found), bench.again if death.landed == step.commits else bench.states[-1]
            assert counted(catalog) == expected
            for table in expected:
                catalog.run_job("iox.compact", table=table.removeprefix("data."), least=1)
            catalog.data("more", database="default", writer="alice").append(rows(99))
            after = counted(Catalog(found))
            assert after.pop("data.more").total() == 1
            assert (after, wrong(catalog)) == (expected, [])

    def test_what_nothing_names_is_told_once_it_is_old_enough_and_can_go(self, step: Step) -> None:
        bench = bench_of(step)
        now: dict[str, Any] = {"older_than": "0s", "force": True, "dry_run": False}
        for death in [each for each in bench.deaths if Catalog(each.left).databases()]:
            catalog = Catalog(death.copy())
            assert [*catalog.orphans()] == []
            lost = strays(catalog)
            assert lost >= death.strays
            assert {each.name for each in Catalog(Later(catalog.store)).orphans()} == lost
            assert {each.name for each in catalog.orphans(**now)} == lost
            assert (strays(catalog), wrong(catalog), counted(catalog)) == (set(), [], bench.states[death.landed])

    def test_what_nothing_names_is_taken_in_as_far_as_files_tell(self, step: Step) -> None:
        bench, said = bench_of(step), set[str]()
        for death in [each for each in bench.deaths if each.strays]:
            all_of_it = max((each.strays for each in bench.deaths if each.landed == death.landed), key=len)
            before, after = bench.states[death.landed : death.landed + 2]
            found = death.copy()
            new = {finding.code for finding in rebuilt(found, adopt=True).findings if finding.file in death.strays}
            said |= new
            catalog = Catalog(found)
            if new & NOT_TAKEN_IN:
                assert counted(catalog) == before
            elif len(death.strays) == len(all_of_it):
                assert counted(catalog) == after
            else:
                assert is_between(before, counted(catalog), after)
            assert wrong(catalog) == []
        assert said == {*step.codes}

    @pytest.mark.parametrize("landed", [True, False], ids=["landed", "lost"])
    def test_what_is_not_answered_is_put_again_and_nothing_is_done_twice(self, step: Step, *, landed: bool) -> None:
        bench = bench_of(step)
        found = copy_of(bench.origin)
        deaf = LostResponses(found, landed=landed, puts=range(0, 100, 2))  # each put is answered when it is done again
        bench.act(deaf)
        assert deaf.puts > 2 and deaf.puts % 2 == 0
        assert counted(Catalog(found)) == bench.states[-1]
        assert strays(Catalog(found)) == strays(Catalog(bench.origin))


def is_between(one: Rows, found: Rows, other: Rows) -> bool:
    """Whether there is nothing that neither of the two has, and all that both have."""
    names = sorted({*one, *found, *other})
    rows = [tuple(each.get(name, Counter[str]()) for each in (one, found, other)) for name in names]
    return all(a & b <= some <= a | b for a, some, b in rows)


class Yard:
    """A world in which files of a data table were removed, compacted and deleted from, with checkpoints; ``then`` are old versions."""

    def __init__(self) -> None:
        self.world, self.then = World(), list[tuple[str, Rows]]()
        with self.table("a") as table:
            for number in range(3):
                self.world.clock.tick()
                table.append([{"v": number}, {"v": 10 + number}])
                table.append([{"v": 100 + number}], partition="gone")
            self.note()
            table.delete_where({"v": 11})
            table.remove(partition="gone")
            self.note()
        self.checkpoint()
        self.compact()
        self.note()
        self.world.clock.tick(2 * DAY)
        self.table("b").append([{"v": 20}])
        self.checkpoint()

    def table(self, writer: str) -> DataTable:
        found: DataTable = self.world.catalog().data("cpu", database="default", writer=writer, clock=self.world.clock)
        return found

    def note(self) -> None:
        catalog = self.world.catalog()
        self.then.append((catalog.snapshot().version, counted(catalog)))

    def checkpoint(self) -> None:
        self.world.clock.tick(HOUR)
        checkpoint(self.world)

    def compact(self) -> None:
        self.table("a").compact(writer="compactor-1", least=1)

    def copy(self) -> Yard:
        """The same, to go on with."""
        found, world = copy(self), World()
        found.world = world
        world.clock.now = self.world.clock.now
        for info in self.world.store.list(""):
            world.store.put(info.name, self.world.store.get(info.name))
        return found

    def there(self) -> list[str]:
        return named(self.world.store)


def published(yard: Yard, store: Store) -> None:
    Catalog(store).collect(dry_run=False, writer="maintainer-1", clock=yard.world.clock)


def pruned(yard: Yard, store: Store) -> None:
    Catalog(store).prune("36h", dry_run=False, writer="maintainer-1", clock=yard.world.clock)


def ready_to_collect(yard: Yard) -> None:
    """A boundary was published, and waited out."""
    published(yard, yard.world.store)
    yard.world.clock.tick(7 * HOUR)


def without_predicates(yard: Yard) -> None:
    """Nothing is known of the first files any more, and the predicates about them have ended, long ago."""
    ready_to_collect(yard)
    published(yard, yard.world.store)
    yard.compact()
    yard.world.clock.tick(2 * DAY)
    ready_to_collect(yard)


def ready_to_prune(yard: Yard) -> None:
    """A horizon was published, and waited out."""
    pruned(yard, yard.world.store)
    yard.world.clock.tick(2 * DAY)


ROUNDS: dict[str, tuple[Callable[[Yard], None], Callable[[Yard, Store], None], int]] = {
    "publishing a boundary": (lambda _: None, published, 0),
    "collecting files": (ready_to_collect, published, 6),
    "collecting markers": (without_predicates, published, 4),
    "publishing a horizon": (lambda _: None, pruned, 0),
    "pruning": (ready_to_prune, pruned, 0),
}
"""What comes before, what is killed, and how many files and markers it deletes undisturbed."""


@pytest.mark.parametrize("name", ROUNDS)
class TestKilledCollectionAndPruning:
    def test_rows_of_now_stay_and_old_cuts_are_right_or_refused(self, name: str) -> None:
        prepare, act, deletes = ROUNDS[name]
        origin = Yard()
        prepare(origin)
        now = counted(origin.world.catalog())
        done = origin.copy()
        counting = Failing(done.world.store, methods=CHANGES)
        act(done, counting)
        assert len(origin.there()) - len(done.there()) == deletes
        assert counting.calls
        read = Counter[bool]()
        for at in range(len(counting.calls)):
            for late in (False, True):
                yard = origin.copy()
                with pytest.raises(SimulatedCrash):
                    act(yard, Failing(yard.world.store, at=at, after=late, methods=CHANGES))
                catalog = yard.world.catalog()
                assert counted(catalog) == now
                assert wrong(catalog) == []
                assert {*yard.there()} <= in_log(catalog), "nothing is forgotten whose data is there"
                for version, expected in yard.then:
                    read[is_right(catalog, version, expected)] += 1
                act(yard, yard.world.store)
                assert yard.there() == done.there()
                assert counted(yard.world.catalog()) == now
        assert read[True]
        assert bool(read[False]) is (name != "publishing a boundary")


def is_right(catalog: Catalog, version: str, expected: Rows) -> bool:
    """Whether a version reads as it did; else it is refused as one that is past, and not read in part."""
    try:
        found = counted(catalog, version)
    except (DataMissing, HistoryPruned):
        return False
    assert found == expected
    return True
