"""Following a database from cut to cut: every transaction once, in portions that are cuts, whatever arrives when."""

from __future__ import annotations

import gc
import random
from collections.abc import Iterator
from typing import Any

import pytest

from bucketcatalog import HistoryPruned, IncompatibleTable, SetAsideError
from bucketcatalog.format.records import Link, Void
from bucketcatalog.format.transactions import Transaction
from bucketcatalog.log import files as log_files
from bucketcatalog.log.files import LogFiles
from bucketcatalog.model.cuts import Cut, Ref
from bucketcatalog.model.events import EventKind
from bucketcatalog.query import following
from bucketcatalog.query.database import Database
from bucketcatalog.query.following import ALL, Follower, Portion, state_tasks
from bucketcatalog.store.faults import Counting
from bucketcatalog.store.memory import MemoryStore
from bucketcatalog.store.wrappers import Wrapped
from bucketcatalog.write.shares import share_task

from ...kit.aside import set_aside
from ...kit.pruning import GRACE, checkpoint, keep_time, old_history, prune
from ...kit.world import DAY, HOUR, Clock, World, as_arrow, bucket, messages, names, obj, proto

pytestmark = pytest.mark.filterwarnings("ignore::bucketcatalog.errors.CatalogWarning")
ONE = Portion(transactions=1)


def follower(world: World) -> Follower:
    """One that knows nothing yet, as another process would have it."""
    database = Database(world.store, "default")
    return Follower(database, database.look().table("objects"))


def batches(
    world: World, start: Cut, portion: Portion, by: Follower | None = None
) -> Iterator[tuple[Cut, Cut, list[Transaction]]]:
    by = follower(world) if by is None else by
    while (end := by.end_of(start, portion)) != start:
        yield start, end, list(by.transactions(start, end))
        start = end


def reached(world: World, start: Cut, portion: Portion, seen: list[Ref], by: Follower | None = None) -> Cut:
    """Follow to the end, and note what was met, of which a follower that begins anew in each batch has to meet the same."""
    for before, after, found in batches(world, start, portion, by):
        refs = [t.ref for t in found]
        assert [t.ref for t in follower(world).transactions(before, after)] == refs
        assert names(world.snapshot(version=str(after)))  # a cut that anybody can read
        lacks_events = {ref for t in found for ref in t.built_on if is_voided(world, ref)}
        assert all(set(t.built_on) <= {*seen, *refs, *lacks_events} for t in found)
        seen += refs
        start = after
    return start


def is_voided(world: World, ref: Ref) -> bool:
    return ref in world.catalog().database("default").view().voids


def every(world: World) -> set[Ref]:
    files = LogFiles(world.store, "default")
    return {Ref(w, head) for w in files.writers() for head in files.transactions(w)}


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "PAUSE", 0.0)


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.parametrize("portion", [ONE, Portion(transactions=3), Portion(bytes=1), Portion(bytes=2_000), ALL])
def test_every_transaction_comes_once_in_portions_that_are_cuts(world: World, portion: Portion) -> None:
    catalogs = [world.catalog() for _ in range(3)]
    writers = [world.writer(f"w{number}", catalog=catalogs[number]) for number in range(3)]
    chance = random.Random(5)
    for number in range(20):
        who = chance.randrange(3)
        catalogs[who].snapshot() if number and chance.random() < 0.4 else None
        world.commit(writers[who], ("put", "objects", obj(f"n{number}")))
    seen: list[Ref] = []
    end = reached(world, Cut(), portion, seen)
    assert len(seen) == 20 and set(seen) == every(world)
    assert end == follower(world).newest().cut
    if portion is ONE:
        assert [count for *_, found in batches(world, Cut(), ONE) for count in [len(found)]] == [1] * 20


def test_what_arrives_late_and_who_is_new_comes_with_the_next_portion(world: World) -> None:
    one, late = world.writer("one"), world.writer("late")
    world.commit(late, ("put", "objects", obj("before")))
    name, data = world.under_way(late, obj("late"))
    world.commit(one, ("put", "objects", obj("n0")))
    by, seen = follower(world), list[Ref]()
    end = reached(world, Cut(), ALL, seen, by)
    assert len(seen) == 2

    world.store.put(name, data)
    world.commit(world.writer("new"), ("put", "objects", obj("n1")))
    end = reached(world, end, ONE, seen, by)
    assert len(seen) == 4 and set(seen) == every(world) and end == by.newest().cut
    assert by.end_of(end) == end and not list(by.transactions(end, end))


def test_branches_of_a_fork_and_what_joins_them_come_once(world: World) -> None:
    world.commit(world.writer(), ("put", "objects", obj("base")))
    one, two = world.writer(), world.writer()
    by, seen = follower(world), list[Ref]()
    world.commit(one, ("put", "objects", obj("one")))
    end = reached(world, Cut(), ONE, seen, by)
    world.commit(two, ("put", "objects", obj("two")))
    end = reached(world, end, ONE, seen, by)
    assert [len(heads) for heads in end.heads.values()] == [2]

    world.clock.tick(HOUR)
    world.commit(world.writer(), ("put", "objects", obj("joined")))
    end = reached(world, end, ONE, seen, by)
    assert [len(heads) for heads in end.heads.values()] == [1]
    assert len(seen) == 4 and set(seen) == every(world)


def test_a_checkpoint_changes_nothing(world: World) -> None:
    writer = world.writer()
    for number in range(6):
        world.commit(writer, ("put", "objects", obj(f"n{number}")))
        if number == 3:
            checkpoint(world)
    seen: list[Ref] = []
    reached(world, Cut(), Portion(transactions=2), seen)
    assert len(seen) == 6 + 1  # the compactor's own says what it had read
    assert {r.writer for r in seen} == {"w", "compactor-1"}


def test_what_is_voided_within_a_portion_has_no_events(world: World) -> None:
    writer = world.writer()
    world.commit(writer, ("put", "objects", obj("good")))
    bad = world.commit(writer, ("put", "objects", obj("bad")))
    head = max(LogFiles(world.store, "default").transactions("w"))
    t = LogFiles(world.store, "default").transaction("w", head)
    world.clock.tick()
    with world.writer("maintainer-1") as maintainer:
        maintainer.void([Void("w", Link(t.revision, t.uuid, t.digest))])
    assert bad.revision == t.revision

    whole = follower(world)
    end = whole.end_of(Cut())
    assert t.ref not in [found.ref for found in whole.transactions(Cut(), end)]
    assert t.ref not in [found.ref for found in follower(world).transactions(Cut(), end)]
    # Who had got it before it was voided has got it, also where the batch is done again.
    first = Cut.of([(t.writer, t.head)])
    assert [found.ref for found in follower(world).transactions(Cut(), first)][-1] == t.ref


def test_what_follows_a_voided_time_of_the_future_comes_after_it(world: World) -> None:
    writer = world.writer()
    world.commit(writer, ("put", "objects", obj("base")))
    world.clock.tick(24 * HOUR)
    world.commit(writer, ("put", "objects", obj("future")))
    world.clock.tick(-24 * HOUR)
    files = LogFiles(world.store, "default")
    future = files.transaction("w", max(files.transactions("w")))
    with world.writer("maintainer-1") as maintainer:
        maintainer.void([Void("w", Link(future.revision, future.uuid, future.digest))])
    world.commit(world.writer(), ("put", "objects", obj("after")))

    found = [t for *_, some in batches(world, Cut(), ONE) for t in some]
    assert [t.ref for t in found if t.writer == "w"] == sorted(
        ref for ref in every(world) if ref.writer == "w" and ref != future.ref
    )
    seen: list[Ref] = []
    assert reached(world, Cut(), ONE, seen) == follower(world).newest().cut


def test_one_goes_no_further_than_told(world: World) -> None:
    writer = world.writer()
    world.commit(writer, ("put", "objects", obj("a")))
    world.commit(writer, ("put", "objects", obj("b")))
    by = follower(world)
    last = by.newest()
    by.stop_at(last)
    world.commit(writer, ("put", "objects", obj("c")))
    first = by.end_of(Cut(), ONE)
    assert by.end_of(first) == last.cut == by.end_of(last.cut)
    assert follower(world).end_of(last.cut) == follower(world).newest().cut != last.cut


def test_what_concerns_other_tables_is_stepped_over_in_time(world: World) -> None:
    writer = world.writer()
    world.commit(writer, ("put", "objects", obj("a")))
    start = follower(world).newest().cut
    world.commit(writer, ("put", "buckets", bucket("other")))
    by = follower(world)
    assert by.end_of(start) == start
    world.clock.tick(2 * HOUR)
    assert follower(world).end_of(start) == by.newest().cut
    world.commit(writer, ("put", "objects", obj("b")))
    end = by.end_of(start)
    assert [t.revision for t in by.transactions(start, end)] == [1, 2]


def test_the_store_is_looked_at_twice_a_second_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "PAUSE", 60.0)
    world = World.counting()
    writer = world.writer()
    world.commit(writer, ("put", "objects", obj("a")))
    by = follower(world)
    start = by.end_of(Cut())
    world.commit(writer, ("put", "objects", obj("b")))
    assert isinstance(world.store, Counting)
    world.store.reset()
    assert by.end_of(start) == start and world.store.requests.total() == 0
    monkeypatch.setattr(following, "PAUSE", 0.0)
    assert by.end_of(start) != start


def test_bounds_are_of_transactions_that_have_events_of_the_table(world: World) -> None:
    writer = world.writer()
    for number in range(9):
        world.commit(
            writer, ("put", "objects" if number % 3 == 1 else "buckets", (obj if number % 3 == 1 else bucket)(f"n{number}"))
        )
    found = [[t.revision for t in some] for *_, some in batches(world, Cut(), ONE)]
    assert found == [[0, 1, 2, 3], [4, 5, 6], [7, 8]]


def test_columns_that_are_added_stop_who_follows(world: World) -> None:
    catalog = world.catalog()
    catalog.register(messages(proto(RUNS.format(more="")))["Run"])
    with catalog.writer("w", clock=world.clock) as writer:
        world.commit(writer, ("put", "jobs.runs", {"id": "1"}))
    database = Database(world.store, "default")
    by = Follower(database, database.look().table("jobs.runs"))
    start = by.end_of(Cut())
    later = world.catalog()
    later.register(messages(proto(RUNS.format(more="optional string host = 2;")))["Run"])
    with later.writer("w", clock=world.clock) as writer:
        world.commit(writer, ("put", "jobs.runs", {"id": "2", "host": "h"}))
    end = by.end_of(start)
    with pytest.raises(IncompatibleTable, match=r"has got the columns host with w@1.*Start the query again"):
        list(by.transactions(start, end))
    database = Database(world.store, "default")
    assert len(list(Follower(database, database.look().table("jobs.runs")).transactions(start, end))) == 1


RUNS = """
message Run {{
  option (table) = {{name: "jobs.runs", key: "id"}};
  string id = 1;
  {more}
}}
"""


def test_nothing_but_new_files_is_read_again(world: World) -> None:
    world = World.counting()
    writer = world.writer()
    for number in range(30):
        world.commit(writer, ("put", "objects", obj(f"n{number}")))
    by = follower(world)
    first = by.end_of(Cut(), ONE)
    assert isinstance(world.store, Counting)
    world.store.reset()
    end = first
    while (after := by.end_of(end, ONE)) != end:
        assert len(list(by.transactions(end, after))) == 1
        end = after
    assert set(world.store.requests) <= {"list_prefixes", "list"} and world.store.requests.total() == 2


def test_a_cut_behind_the_horizon_is_refused_also_where_it_was_reached_before(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_time(world, monkeypatch)
    begun = follower(world)
    old_history(world)
    files = LogFiles(world.store, "default")
    first = Cut.of([("a", next(iter(files.transactions("a"))))])
    assert begun.end_of(first, ONE) != first
    world.clock.tick(DAY)
    prune(world)
    world.clock.tick(GRACE)
    assert prune(world).files
    for by in (begun, follower(world)):
        with pytest.raises(HistoryPruned, match=r"Next: .*from then on"):
            by.end_of(first, ALL)


def test_a_transaction_that_was_set_aside_stops_who_is_not_told_to_go_on(world: World) -> None:
    writer = world.writer()
    world.commit(writer, ("put", "objects", obj("a")))
    name, _ = world.under_way(writer, obj("b"))
    world.store.put(name, b"nonsense")
    world.clock.tick(HOUR)
    set_aside(world, name)
    by = follower(world)
    end = by.end_of(Cut())
    with pytest.raises(SetAsideError, match=rf"{name} was set aside.*Next: .*ignoreCorruption"):
        list(by.transactions(Cut(), end))
    assert [t.events for t in by.transactions(Cut(), end, ignore_set_aside=True) if t.writer == "w"] == [1]


def test_the_state_of_a_cut_comes_as_puts(world: World) -> None:
    writer = world.writer()
    world.commit(writer, ("put", "objects", [obj("a"), obj("b"), obj("c")]))
    world.commit(writer, ("delete", "objects", obj("b")))
    snapshot = world.snapshot()
    table = snapshot.table("objects")
    found = [row for task in state_tasks(snapshot, table, 1_000) for some in task.read(world.store) for row in some.to_pylist()]
    puts = [row for row in rows_of_changes(world) if row["name"] != "b"]
    assert found == puts


def rows_of_changes(world: World) -> list[dict[str, object]]:
    return world.catalog().changes().to_arrow().to_pylist()


def test_bytes_of_segments_count(world: World) -> None:
    task = share_task(world.catalog().database("default"), "w", "objects", EventKind.PUT)
    writer = world.writer()
    for number in range(3):
        share = task.write(world.store, as_arrow([obj(f"n{number}-{n}") for n in range(500)]).to_batches())
        with writer.transaction() as tx:
            tx.adopt([share])
    sizes = [t.size + sum(s.size for s in t.segments) for *_, found in batches(world, Cut(), ALL) for t in found]
    assert len(list(batches(world, Cut(), Portion(bytes=sum(sizes[:2]))))) == 2
    assert len(list(batches(world, Cut(), Portion(bytes=max(sizes))))) == 3


@pytest.fixture
def nothing_held() -> Iterator[None]:
    """What is there before the test is not looked at: other tests may have left much."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("nothing_held")
@pytest.mark.parametrize("at_once", [1, 8])
def test_events_of_what_is_ahead_are_not_held(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr(log_files, "_KEPT_BYTES", 0)
    world = World(Watched(MemoryStore(clock=(clock := Clock()))))
    world.clock = clock
    writer = world.writer()
    for number in range(60):
        world.commit(writer, ("put", "objects", obj(f"n{number}")))
    checkpoint(world)  # what no checkpoint covers is held with its events by every snapshot
    by = follower(world)
    assert isinstance(world.store, Watched)
    world.store.most, world.store.concurrency = 0, at_once
    monkeypatch.setattr(LogFiles, "fetched", lambda files, refs: refs and pytest.fail(f"{len(refs)} at once"))
    end = by.end_of(Cut())
    assert held() == 0
    assert sum(task.rows for task in by.tasks(by.transactions(Cut(), end), ["name"], 1_000)) == 60
    assert at_once > 1 or 0 < world.store.most < 6


class Watched(Wrapped):
    """A store that notes with each read how many transactions are held in memory with their events, where one is read after the other."""

    most = 0
    concurrency = 1

    def get(self, name: str, **more: Any) -> bytes:
        if self.concurrency == 1:
            self.most = max(self.most, held())
        return super().get(name, **more)


def held() -> int:
    return sum(1 for one in gc.get_objects() if isinstance(one, Transaction) and one.actions)


def test_ten_thousand_transactions_of_a_thousand_writers_are_followed_in_batches() -> None:
    world = World.counting()
    catalog = world.catalog()
    writers = [world.writer(f"node-{number:04}.rack-17.example.com", catalog=catalog) for number in range(1_000)]
    for turn in range(10):
        for number, writer in enumerate(writers):
            world.clock.tick(1_000)
            with writer.transaction() as tx:
                tx.put("objects", obj(f"{turn}-{number}"))
    by = follower(world)
    assert isinstance(world.store, Counting)
    world.store.reset()
    seen: list[Ref] = []
    end = Cut()
    for before, end, found in batches(world, Cut(), Portion(transactions=100), by):
        seen += [t.ref for t in found]
        assert len(found) == 100 and before != end
    assert len(set(seen)) == len(seen) == 10_000
    assert world.store.requests["get"] <= 10_000 + 1  # each file once
    assert end == by.newest().cut and len(end.heads) == 1_000

    middle = Cut.of([(ref.writer, ref.head) for ref in seen[4_000:5_000]])
    again = follower(world)
    assert sorted(t.ref for t in again.transactions(middle, end)) == sorted(seen[5_000:])
