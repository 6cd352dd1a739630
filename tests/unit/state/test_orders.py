"""Tombstones by when they ended: whatever lies over an order, what is read by it is what a full read gives, for a share of the blocks."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from bucketcatalog import Catalog, CorruptionError, between
from bucketcatalog.format.headers import Purpose
from bucketcatalog.query.snapshot import Snapshot
from bucketcatalog.state.orders import order_runs, plan_ended
from bucketcatalog.store.faults import Counting
from bucketcatalog.store.memory import MemoryStore

from ...kit.world import BUCKET, HOUR, OWNER, SECOND, START, Clock, World, messages, obj, time_at, version

TABLE = """
syntax = "proto3";
import "bucketcatalog/v1/options.proto";
message Reading {
  option (bucketcatalog.v1.table) = {
    name: "lab.readings" key: "room" key: "at"
    orders: {name: "by room" fields: "room" fields: "deleted_at" of_tombstones: true}
    orders: {name: "when" fields: "deleted_at" of_tombstones: true}
    orders: {name: "by kind" fields: "kind" fields: "deleted_at" of_tombstones: true}
    orders: {name: "of rows" fields: "kind"}
  };
  bytes room = 1;
  uint32 at = 2;
  string kind = 3;
}
"""
COLUMNS = ["name", "content_length", "deleted_at", "_version"]


@pytest.fixture
def world() -> World:
    return World.counting()


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Orders are used however little they save."""
    monkeypatch.setattr("bucketcatalog.state.orders.SHARE", 1e-6)


def tombstones(snapshot: Snapshot, table: str = "objects", **where: Any) -> list[dict[str, Any]]:
    columns = COLUMNS if table == "objects" else None
    return snapshot.scan(f"deleted_{table}", columns=columns, where=where).to_arrow().to_pylist()


def uses(snapshot: Snapshot, table: str = "objects", **where: Any) -> str | None:
    """The name of the order that a read of tombstones goes by."""
    lines = snapshot.scan(f"deleted_{table}", where=where).explain().splitlines()
    used = (line.split(":")[0].removeprefix("order ") for line in lines if line.startswith("order ") and line.endswith(" keys"))
    return next(used, None)


def ranges(times: list[int]) -> Iterator[tuple[Any, int, int]]:
    """Conditions on times, also such as nothing meets, and the first and last time that each allows."""
    for low, first in [(None, 0), *((time_at(time), time) for time in times)]:
        for high, last in [(None, START + 10**12), *((time_at(time), time) for time in times)]:
            yield between(low, high), first, last
            yield between(low, high, inclusive="neither"), first + (low is not None), last - (high is not None)


def check_all_ranges(snapshot: Snapshot, times: list[int]) -> None:
    everything = tombstones(snapshot)
    ended = [round(row["deleted_at"].timestamp() * 1e6) for row in everything]
    for condition, first, last in ranges(times):
        expected = [row for row, time in zip(everything, ended, strict=True) if first <= time <= last]
        assert tombstones(snapshot, deleted_at=condition) == expected, condition


def commit_some(world: World, writer: Any, chance: random.Random) -> int:
    """One transaction of events of any sort, some of which name versions; its commit time."""
    snapshot = world.snapshot()
    ended, live = tombstones(snapshot), snapshot.scan("objects", columns=["name", "_version"]).to_arrow().to_pylist()
    world.clock.tick()
    with writer.transaction() as tx:
        for _ in range(chance.randrange(1, 6)):
            row, one = obj(f"n{chance.randrange(300):03}"), chance.choice(ended)
            named = {**obj(one["name"]), "_version": one["_version"]}
            match chance.randrange(9):
                case 0 | 1:
                    tx.put("objects", {**row, "content_length": chance.randrange(100)})
                case 2 | 3:
                    tx.delete("objects", row)
                case 4:
                    tx.purge("objects", named)
                case 5:
                    tx.update("objects", {**named, "content_length": 1_000})
                case 6:
                    tx.put("objects", [obj(one["name"])])
                case 7 | 8:
                    other = chance.choice(live)
                    tx.delete("objects", {**obj(other["name"]), "_version": other["_version"]})
    assert tx.committed is not None
    return int(tx.committed.commit_time)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("seed", range(2))
def test_tombstones_of_any_time_are_those_of_a_full_read(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bucketcatalog.checkpoint.plan.SMALL_ROWS", 0)
    world, chance = World(), random.Random(seed)
    levels = set()
    with world.writer("compactor-a") as writer, world.writer("b") as slow:
        world.commit(writer, ("put", "objects", [obj(f"n{n:03}") for n in range(300)]))
        done = world.commit(writer, ("delete", "objects", [obj(f"n{n:03}") for n in range(0, 300, 3)]))
        times = [done.commit_time]
        for step in range(12):
            # What b commits no checkpoint of a's covers: to it these are late events, between those that it holds.
            times.append(commit_some(world, chance.choice((writer, writer, slow)), chance))
            if chance.randrange(2):
                writer.checkpoint(scope="all" if step == 11 else "own")
            snapshot = world.snapshot()
            levels.add(len(snapshot.state("objects").level_rows))
            check_all_ranges(snapshot, chance.sample(times, min(len(times), 2 if step < 11 else 6)))
        assert uses(world.snapshot(), deleted_at=between(None, time_at(times[0]))) == "deleted_at"
    assert max(levels) > 1


HOURS, AN_HOUR = 200, 1_000


@pytest.fixture(scope="module")
def many() -> World:
    """200,000 tombstones in a checkpoint: every hour a folder of a thousand objects was deleted. Beside them 1,000 live objects."""
    clock = Clock()
    world = World(Counting(MemoryStore(clock=clock)))
    world.clock = clock
    with world.writer() as writer:
        world.commit(writer, ("put", "objects", folder("live")))
        world.commit(writer, ("put", "objects", pa.concat_tables([folder(f"h{n:03}") for n in range(HOURS)])))
        for n in range(HOURS):
            world.clock.tick(HOUR)
            world.commit(writer, ("delete", "objects", folder(f"h{n:03}")))
        writer.checkpoint()
    return world


def folder(name: str) -> pa.Table:
    return pa.table(
        {
            "owner": pa.repeat(OWNER, AN_HOUR),
            "bucket_id": pa.repeat(BUCKET, AN_HOUR),
            "name": [f"{name}/{n:04}" for n in range(AN_HOUR)],
        }
    )


FEW = 100


@pytest.fixture(scope="module")
def mixed() -> tuple[World, list[int]]:
    """Blocks whose statistics say nothing: every hour a folder was deleted, but for an object before all hours, and one after them."""
    world, times = World.counting(), []
    folders = [folder(f"h{n:03}").slice(0, FEW) for n in range(60)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bucketcatalog.checkpoint.plan.INLINE_BYTES", 0)
        for module in ("format", "log"):
            patch.setattr(f"bucketcatalog.{module}.segments.ROW_GROUP_ROWS", FEW)
        with world.writer() as writer:
            world.commit(writer, ("put", "objects", pa.concat_tables(folders)))
            world.commit(writer, ("delete", "objects", pa.concat_tables([each.slice(0, 1) for each in folders])))
            for each in folders:
                world.clock.tick(HOUR)
                times.append(world.commit(writer, ("delete", "objects", each.slice(1, FEW - 2))).commit_time)
            world.commit(writer, ("delete", "objects", pa.concat_tables([each.slice(FEW - 1, 1) for each in folders])))
            writer.checkpoint()
    return world, times


def reads(world: World, call: Any) -> tuple[int, int, Any]:
    """The requests for ranges, the bytes of these, and what was found."""
    store = world.store
    assert isinstance(store, Counting)
    store.reset()
    found = call()
    return store.requests["get_range"], store.bytes_read, found


def test_tombstones_of_an_hour_cost_a_share_of_all(many: World) -> None:
    since = between(time_at(many.clock.now - HOUR // 2), None)
    all_requests, all_bytes, everything = reads(many, lambda: many.snapshot().scan("deleted_objects").to_arrow())
    requests, received, found = reads(
        many, lambda: many.snapshot().scan("deleted_objects", where={"deleted_at": since}).to_arrow()
    )

    assert (len(everything), len(found)) == (HOURS * AN_HOUR, AN_HOUR)
    assert found.equals(everything.slice((HOURS - 1) * AN_HOUR))
    assert [row["name"] for row in tombstones(many.snapshot(), name=["h199/0001", "h000/0001"], deleted_at=since)] == [
        "h199/0001"
    ]
    assert all_requests == 14  # an index and 13 blocks
    assert requests <= 4  # the index, a block of the order and the one or two that hold the keys
    _, all_indexes, _ = reads(many, lambda: many.snapshot().scan("deleted_objects").explain())
    _, indexes, _ = reads(many, lambda: many.snapshot().scan("deleted_objects", where={"deleted_at": since}).explain())
    assert (received - indexes) * 4 < all_bytes - all_indexes


def test_no_order_is_asked_where_statistics_tell_as_much(many: World) -> None:
    where = {"deleted_at": between(time_at(many.clock.now - HOUR // 2), None)}
    requests, _, found = reads(many, lambda: many.snapshot().scan("deleted_objects", where=where).to_arrow())
    assert len(found) == AN_HOUR and requests == 2  # the index, and the block that holds them
    assert uses(many.snapshot(), **where) is uses(many.snapshot(), name="h000/0000", **where) is None


def test_tombstones_that_lie_over_the_order_are_found_with_those_in_it(many: World) -> None:
    now = many.clock.now
    with many.writer() as writer:
        many.commit(writer, ("delete", "objects", folder("live").slice(0, 10)))
        try:
            since = {"deleted_at": between(time_at(now - HOUR // 2), None)}
            requests, _, found = reads(many, lambda: many.snapshot().scan("deleted_objects", where=since).to_arrow())
            assert len(found) == AN_HOUR + 10
            assert requests <= 6  # the new events, twice, and the block of the live rows that they deleted, too
            before = {"deleted_at": between(None, time_at(START + HOUR + 10 * SECOND))}
            requests, _, found = reads(many, lambda: many.snapshot().scan("deleted_objects", where=before).to_arrow())
            assert len(found) == AN_HOUR
            assert requests <= 5  # what was deleted since is looked at, and not looked up
        finally:
            many.commit(writer, ("put", "objects", folder("live").slice(0, 10)))


def test_a_question_about_most_of_the_tombstones_reads_them_as_ever(mixed: tuple[World, list[int]]) -> None:
    world, times = mixed
    snapshot, hour = world.snapshot(), between(time_at(times[7]), time_at(times[7] + HOUR // 2))
    assert uses(snapshot, deleted_at=between(time_at(START), None)) is None
    assert uses(snapshot, deleted_at=hour) == "deleted_at"
    assert uses(snapshot, content_type=None) is None
    assert uses(snapshot, content_type=None, deleted_at=hour) == "deleted_at"
    assert len(snapshot.scan("deleted_objects", where={"deleted_at": hour}).to_arrow()) == FEW - 2


def test_deletions_that_are_spread_over_all_keys_are_read_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("format", "log"):
        monkeypatch.setattr(f"bucketcatalog.{module}.segments.ROW_GROUP_ROWS", 4_000)
    world = World(Counting(MemoryStore(clock=(clock := Clock()))))
    world.clock = clock
    with world.writer() as writer:
        names = [f"n{n:06}" for n in range(40_000)]
        random.Random(3).shuffle(names)
        keys = pa.table({"owner": pa.repeat(OWNER, 40_000), "bucket_id": pa.repeat(BUCKET, 40_000), "name": names})
        world.commit(writer, ("put", "objects", keys))
        times = [world.commit(writer, ("delete", "objects", keys.slice(at, 200))).commit_time for at in range(0, 40_000, 200)]
        writer.checkpoint()
    where = {"deleted_at": between(time_at(times[-1]))}
    told = world.snapshot().scan("deleted_objects", where=where).explain().splitlines()
    requests, _, found = reads(world, lambda: world.snapshot().scan("deleted_objects", where=where).to_arrow())
    assert len(found) == 200
    assert [line.rpartition(", ")[2] for line in told if line.startswith("order ")] == ["in too many blocks"]
    # ten of tombstones, one of the order; each lies in a segment of its own
    assert requests == 13 and told[-1].startswith("requests: 13 (11 blocks, 2 indexes")


def test_explain_tells_what_reading_by_an_order_asks_for(mixed: tuple[World, list[int]]) -> None:
    world, times = mixed
    where = {"deleted_at": between(time_at(times[7]), time_at(times[7] + HOUR // 2))}
    told = world.snapshot().scan("deleted_objects", where=where).explain().splitlines()
    requests, _, _ = reads(world, lambda: world.snapshot().scan("deleted_objects", where=where).to_arrow())
    assert [line for line in told if line.startswith("order deleted_at: 2 of 60 blocks, ")] != []
    (line,) = (line for line in told if line.startswith("requests: "))
    assert line.startswith(f"requests: {requests} ({requests - 2} blocks, 2 indexes, each once), ")


def test_collection_looks_for_what_has_ended_long_ago_by_the_order(many: World) -> None:
    with many.writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all")

    def run(days: int) -> Any:
        return many.catalog().collect(older_than=f"{days}d")

    nothing, received, done = reads(many, lambda: run(30))
    assert done.waiting == 0
    some, _, _ = reads(many, lambda: run(1))
    assert nothing <= 4 and some > 13 and received < 1 << 19

    snapshot = many.snapshot()
    state = snapshot.state("objects")
    first = START + HOUR + 10 * SECOND
    requests, _, plan = reads(many, lambda: plan_ended(state, first))
    assert requests <= 5  # two indexes, a block of the order, and what the test above left over it
    assert sum(len(slice_.wanted) for slice_ in plan if slice_.wanted is not None) == AN_HOUR
    assert sum(len(slice_.places) for slice_ in plan) <= 2


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("most", ["RUN_ROWS", "RUN_BYTES"])
def test_an_order_may_be_several_sorted_runs(world: World, monkeypatch: pytest.MonkeyPatch, most: str) -> None:
    chance = random.Random(5)
    with world.writer() as writer:
        names = [f"n{n:04}" for n in range(2_500)]
        world.commit(writer, ("put", "objects", [obj(name) for name in names]))
        chance.shuffle(names)
        times = [
            world.commit(writer, ("delete", "objects", [obj(n) for n in names[at : at + 100]])).commit_time
            for at in range(0, 2_500, 100)
        ]
        with monkeypatch.context() as patch:
            patch.setattr(f"bucketcatalog.state.orders.{most}", {"RUN_ROWS": 1_000, "RUN_BYTES": 100_000}[most])
            patch.setattr("bucketcatalog.checkpoint.merge.MERGE_SLICE_ROWS", 500)
            writer.checkpoint()
    segments = world.snapshot().view.checkpoints[0].segments
    ordered = [run for run in world.snapshot().view.checkpoints[0].runs if run.purpose is Purpose.ORDER]
    assert len(ordered) >= 2 and sum(run.rows for run in ordered) == 2_500
    assert list(world.catalog().verify(deep=True)) == []
    check_all_ranges(world.snapshot(), chance.sample(times, 3))
    where = {"deleted_at": between(time_at(times[-1]))}
    told = world.snapshot().scan("deleted_objects", where=where).explain().splitlines()
    requests, _, _ = reads(world, lambda: world.snapshot().scan("deleted_objects", where=where).to_arrow())
    assert told[-1].startswith(f"requests: {requests} ({requests - len(segments)} blocks, {len(segments)} indexes")
    assert uses(world.snapshot(), deleted_at=between(time_at(times[-1]), None)) == "deleted_at"


@pytest.mark.usefixtures("always")
def test_orders_of_users_tables_begin_with_what_they_say(world: World) -> None:
    catalog = Catalog(world.store)
    catalog.register(messages(TABLE)["Reading"])
    keys = [{"room": room, "at": n} for room in (b"a", b"b\x00c") for n in range(50)]
    with world.writer(catalog=catalog) as writer:
        world.commit(writer, ("put", "lab.readings", keys))
        times = [world.commit(writer, ("delete", "lab.readings", [key])).commit_time for key in keys]
        writer.checkpoint()
    snapshot = world.snapshot()
    runs = {run.name for run in snapshot.view.checkpoints[0].runs if run.purpose is Purpose.ORDER}
    assert runs == {"when(deleted_at)", "by room(1,deleted_at)"}  # the others are by what a row says, or of live rows
    late = between(time_at(times[90]), None)
    assert uses(snapshot, "lab.readings", deleted_at=late) == "when"
    assert uses(snapshot, "lab.readings", room=b"b\x00c", deleted_at=late) is not None
    found = tombstones(snapshot, "lab.readings", room=b"b\x00c", deleted_at=late)
    assert [row["at"] for row in found] == list(range(40, 50))
    assert tombstones(snapshot, "lab.readings", room=b"a", deleted_at=late) == []
    some = [time_at(times[3]), time_at(times[55])]
    assert [(row["room"], row["at"]) for row in tombstones(snapshot, "lab.readings", deleted_at=some)] == [
        (b"a", 3),
        (b"b\x00c", 5),
    ]


@pytest.mark.usefixtures("always")
def test_an_order_is_not_used_where_it_is_not_of_all_tombstones(world: World) -> None:
    catalog = Catalog(world.store)
    catalog.register(messages(TABLE)["Reading"])
    with world.writer(catalog=catalog) as writer:
        world.commit(writer, ("put", "lab.readings", [{"room": b"a", "at": n} for n in range(9)]))
        times = [world.commit(writer, ("delete", "lab.readings", {"room": b"a", "at": n})).commit_time for n in range(9)]
        writer.checkpoint()
    late = between(time_at(times[7]), None)
    assert uses(world.snapshot(), "lab.readings", deleted_at=late) == "when"
    assert uses(world.snapshot(ignore_corruption=True), "lab.readings", deleted_at=late) is None
    other = Catalog(world.store)
    other.register(messages(TABLE.replace('fields: "deleted_at" of', 'fields: "deleted_at" fields: "at" of'))["Reading"])
    with world.writer("maintainer-1", catalog=other) as writer:
        world.commit(writer, ("put", "lab.readings", {"room": b"b", "at": 9}))
        assert uses(world.snapshot(), "lab.readings", deleted_at=late) is None  # declared anew: kept is another one
        assert len(tombstones(world.snapshot(), "lab.readings", deleted_at=late)) == 2
        writer.checkpoint()
    assert uses(world.snapshot(), "lab.readings", deleted_at=late) is None  # two checkpoints
    assert len(tombstones(world.snapshot(), "lab.readings", deleted_at=late)) == 2


@pytest.mark.usefixtures("always")
def test_damage_to_an_order_is_named_and_concerns_nobody_else(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with world.writer() as writer:
        world.commit(writer, ("put", "objects", [obj(f"n{n}") for n in range(9)]))
        times = [world.commit(writer, ("delete", "objects", obj(f"n{n}"))).commit_time for n in range(9)]
        monkeypatch.setattr("bucketcatalog.checkpoint.plan.INLINE_BYTES", 0)
        writer.checkpoint()
    state = world.snapshot().state("objects")
    ((run,),) = (order.kept(state) for order in order_runs(state.table))
    (place,) = run.places
    data = bytearray(world.store.get(place.name))
    assert place.row_group is not None
    data[place.offset + place.row_group.lengths[0] // 2] ^= 1  # within the times
    world.store.put(place.name, bytes(data))
    late = {"deleted_at": between(time_at(times[7]))}
    with pytest.raises(CorruptionError, match=place.name):
        world.snapshot().scan("deleted_objects", where=late).to_arrow()
    assert len(tombstones(world.snapshot())) == 9
    past_damage = world.snapshot(ignore_corruption=True)
    assert [row["name"] for row in tombstones(past_damage, **late)] == ["n7", "n8"] and past_damage.missing == ()
    assert {finding.code for finding in world.catalog().verify()} == {"DAMAGED_BLOCK"}


def test_what_lies_over_an_order_may_have_no_stamps_at_all(world: World, always: None) -> None:
    with world.writer("w") as writer:
        world.commit(writer, ("put", "objects", [obj(f"{n:05}") for n in range(3_000)]))
        named = version(obj("00007"), world.snapshot())
        ended = world.commit(writer, ("delete", "objects", [obj("00007"), obj("00008")]))
        writer.checkpoint()
        world.commit(writer, ("purge", "objects", obj("00007", _version=named)))
        writer.checkpoint()
    assert len(world.snapshot().state("objects").level_rows) == 2
    (left,) = tombstones(world.snapshot(), deleted_at=between(None, time_at(ended.commit_time)))
    assert left["name"] == "00008"
