"""Transactions of any size: what is more than a few thousand events, or a few megabytes, goes into segments that the transaction names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from bucketcatalog import ClockSkew, ForeignBranch, InvalidRows, StaleRead
from bucketcatalog.clock import uuid7_time
from bucketcatalog.errors import StoreUnreachable
from bucketcatalog.format.transactions import Transaction
from bucketcatalog.model.paths import uuid_bytes
from bucketcatalog.query.snapshot import Snapshot
from bucketcatalog.store import Store
from bucketcatalog.store.faults import LostResponses, SimulatedCrash, Wrapped
from bucketcatalog.store.memory import MemoryStore
from bucketcatalog.write.transaction import WriteTransaction

from ...kit.world import (
    BUCKET,
    HOUR,
    ID_1,
    ID_2,
    OWNER,
    SECOND,
    Clock,
    Intervening,
    World,
    bucket,
    counted,
    names,
    obj,
    stored,
    version,
)

SMALL = 8_192
"""Bytes of a transaction's file: more than what names a few segments takes, and less than a thousand rows do."""


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def few_inline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bucketcatalog.write.staging.INLINE_ROWS", 10)


def objects(start: int, stop: int, **more: Any) -> pa.Table:
    """Objects whose names are not in the order of their numbers, and no two alike."""
    numbers = range(start, stop)
    texts = {"owner": [OWNER] * len(numbers), "bucket_id": [BUCKET] * len(numbers)}
    lengths = {"content_length": list(numbers), "created": pa.array([1_000_000] * len(numbers), pa.timestamp("us", tz="UTC"))}
    given = {name: [value] * len(numbers) for name, value in more.items()}
    return pa.table({**texts, "name": [f"{n * 7_919 % 100_003:06}" for n in numbers], **lengths, **given})


def keys(start: int, stop: int) -> pa.Table:
    return objects(start, stop).select(["owner", "bucket_id", "name"])


def last(world: World) -> Transaction:
    """The newest transaction, as its file says."""
    return max(world.snapshot().view.tail, key=lambda transaction: transaction.revision)


def shown(snapshot: Snapshot, table: str = "objects") -> list[dict[str, Any]]:
    """All rows with the number of the event that began each, and without what depends on the time of the commit."""
    columns = [name for name in snapshot.scan(table).schema.names if name not in ("id", "modified", "created", "deleted_at")]
    found = snapshot.scan(table, columns=[*columns, "_version"]).to_arrow().to_pylist()
    return [{**row, "_version": row["_version"].partition(":")[2]} for row in found]


def test_a_put_of_many_rows_is_a_small_transaction_that_refers_to_a_segment(world: World) -> None:
    with world.writer() as writer:
        world.commit(writer, ("put", "objects", objects(0, 50_000)))
    (segment,) = stored(world, ".parquet")
    (transaction,) = stored(world, ".txn")
    assert len(world.store.get(transaction)) < SMALL < 50_000 < len(world.store.get(segment))
    assert (last(world).blocks, [reference.run.rows for reference in last(world).segments]) == ((), [50_000])

    parts = World()
    with parts.writer() as writer:
        for start in range(0, 50_000, 10_000):
            parts.commit(writer, ("put", "objects", objects(start, start + 10_000)))
    assert stored(parts, ".parquet") == []
    columns = ["name", "content_length", "created"]
    assert (
        world.snapshot()
        .scan("objects", columns=columns)
        .to_arrow()
        .equals(parts.snapshot().scan("objects", columns=columns).to_arrow())
    )
    numbers = [int(row["_version"]) for row in shown(world.snapshot())]
    assert numbers == world.snapshot().scan("objects").to_arrow()["content_length"].to_pylist()  # in the order of the call
    with world.writer() as writer:
        writer.checkpoint()
    assert numbers == [int(row["_version"]) for row in shown(world.snapshot())]


def test_so_many_events_are_carried_and_of_one_more_none(world: World) -> None:
    with world.writer() as writer:
        world.commit(writer, ("put", "objects", objects(0, 16_384)))
        assert (len(last(world).blocks) > 1, last(world).segments) == (True, ())
        world.commit(writer, ("put", "objects", objects(0, 16_385)))
        assert (last(world).blocks, len(last(world).segments)) == ((), 1)


def test_rows_with_much_in_them_go_into_a_segment_however_few_they_are(world: World) -> None:
    wide = [obj(f"{number:02}", etag=f"{number:03}" * 100_000) for number in range(40)]
    with world.writer() as writer:
        for rows in (wide, pa.Table.from_pylist(wide)):
            world.commit(writer, ("put", "objects", rows))
            assert (last(world).actions, last(world).blocks, len(last(world).segments)) == ((), (), 1)
            assert last(world).size < SMALL
            assert world.snapshot().scan("objects", columns=["name", "etag"]).to_arrow().to_pylist() == [
                {"name": row["name"], "etag": row["etag"]} for row in wide
            ]


def several(tx: WriteTransaction) -> None:
    """Events of all kinds in two tables, several of one key, in an order of their own."""
    tx.put("buckets", bucket("b", id=ID_1))
    tx.put("objects", objects(0, 30, etag="first"))
    tx.put("objects", objects(20, 60, etag="second"), expect="absent")
    tx.delete("objects", keys(10, 15))
    tx.put("objects", [obj("x", id=ID_1), obj("x", id=ID_2), obj("y", id=ID_1)])
    tx.delete("objects", obj("x"))
    tx.put("objects", objects(0, 5, etag="third"))
    tx.put("buckets", bucket("c", id=ID_2))


def test_events_of_several_calls_and_tables_mean_in_segments_what_they_mean_inside(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Order and numbers of the events stay, and what they expected; a table with few stays in the transaction."""
    inside = World()
    for each in (inside, world):
        with each.writer() as writer:
            each.commit(writer, ("put", "objects", objects(40, 45)))
            live = [version(row, each.snapshot()) for row in objects(40, 43).to_pylist()]
            if each is world:
                monkeypatch.setattr("bucketcatalog.write.staging.INLINE_ROWS", 10)
            each.clock.tick()
            with writer.transaction() as tx:
                several(tx)
                tx.update("objects", objects(40, 43).append_column("_version", pa.array(live)))
                tx.purge("objects", keys(41, 43).append_column("_version", pa.array(live[1:])))
            assert tx.committed is not None
    assert (len(last(inside).segments), len(last(inside).blocks)) == (0, 2)
    carried = [place.header.table for place in last(world).blocks]
    assert (carried, [reference.run.table for reference in last(world).segments]) == (["buckets"], ["objects"])

    for table in ("objects", "deleted_objects", "buckets"):
        assert shown(world.snapshot(), table) == shown(inside.snapshot(), table)
    found, expected = (each.snapshot().scan("conflicts").to_arrow().to_pylist() for each in (world, inside))
    told = ("table", "key", "reason", "kind")
    assert [{name: row[name] for name in row if name in told} for row in found] == [
        {name: row[name] for name in row if name in told} for row in expected
    ]
    assert len(found) > 10


@pytest.mark.usefixtures("few_inline")
def test_an_expectation_that_was_not_met_is_told_of_its_row_alone(world: World) -> None:
    with world.writer() as writer:
        world.commit(writer, ("put", "objects", objects(30, 33)))
        world.commit(writer, ("put", "objects", objects(0, 100), {"expect": "absent"}))
    assert len(last(world).segments) == 1
    conflicts = world.snapshot().scan("conflicts").to_arrow()
    assert len(conflicts) == 3
    keys_told = str(conflicts.to_pylist())
    assert all(name in keys_told for name in objects(30, 33)["name"].to_pylist())


@pytest.mark.usefixtures("few_inline")
def test_a_transaction_that_is_given_up_puts_nothing(world: World) -> None:
    with world.writer() as writer:
        with pytest.raises(InvalidRows):
            world.commit(writer, ("put", "objects", objects(0, 100)), ("put", "objects", {"no": 1}))
        world.commit(writer, ("put", "objects", obj("x")))
    assert stored(world, ".parquet") == []


@pytest.mark.usefixtures("few_inline")
def test_nothing_is_put_for_what_would_be_refused(world: World) -> None:
    with world.writer() as writer:
        world.commit(writer, ("put", "objects", obj("x", id=ID_1)))
    other = World(world.store)
    other.clock = Clock(world.clock.now + HOUR)
    with other.writer("other") as writer, pytest.raises(ClockSkew), writer.transaction() as tx:
        tx.put("objects", objects(0, 100))
    with world.writer() as writer:
        transaction = writer.transaction()
        tx = transaction.__enter__()
        tx.delete("objects", {**obj("x"), "id": ID_1})  # which is looked up
        tx.put("objects", objects(0, 100))
        world.clock.tick(6 * HOUR)
        with pytest.raises(StaleRead):
            transaction.__exit__(None, None, None)
    assert (stored(world, ".parquet"), names(world.snapshot())) == ([], ["x"])


@pytest.mark.usefixtures("few_inline")
def test_a_commit_that_is_repeated_puts_nothing_again(world: World) -> None:
    for _ in range(2):
        with world.writer() as writer, writer.transaction(app_id="job", app_version=1) as tx:
            tx.put("objects", objects(0, 100))
        assert tx.committed is not None
        assert (len(stored(world, ".parquet")), len(stored(world, ".txn"))) == (1, 1)


@pytest.mark.usefixtures("few_inline")
def test_a_lost_answer_puts_the_same_segment_again_and_no_other() -> None:
    clock = Clock()
    losing = LostResponses(MemoryStore(clock=clock), landed=True, puts={0})
    world = World(losing)
    world.clock = clock
    with world.writer() as writer:
        world.commit(writer, ("put", "objects", objects(0, 100)))
    assert (len(stored(world, ".parquet")), len(stored(world, ".txn")), len(names(world.snapshot()))) == (1, 1, 100)
    assert losing.puts == 3


def slowly(act: Callable[[World], None]) -> World:
    """A world in which something happens while the first segment is put."""
    clock = Clock()
    world = World()
    world.clock = clock
    world.store = Intervening(MemoryStore(clock=clock), "w/default/segments/", lambda: act(world))
    return world


@pytest.mark.usefixtures("few_inline")
def test_segments_may_take_longer_than_a_commit_may() -> None:
    world = slowly(lambda world: world.clock.tick(HOUR) and None)
    with world.writer() as writer:
        committed = world.commit(writer, ("put", "objects", objects(0, 100)))
    assert committed.commit_time == world.clock.now
    assert len(names(world.snapshot())) == 100
    assert list(world.catalog().verify()) == []


class Absent(Wrapped):
    """A store that is away for once when it is asked for its time, once it has been put into."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self._away = False
        self._was_away = False

    def put(self, name: str, data: bytes) -> None:
        super().put(name, data)
        self._away = not self._was_away

    def now_us(self, below: str | None = None) -> int:
        if self._away:
            self._away, self._was_away = False, True
            raise StoreUnreachable("The store is away.", next_step="-")
        return super().now_us(below)


@pytest.mark.usefixtures("few_inline")
def test_a_store_that_is_away_after_the_segments_is_asked_again_however_long_these_took(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = [0.0]
    monkeypatch.setattr("bucketcatalog.clock.monotonic", lambda: seconds[0])
    monkeypatch.setattr("bucketcatalog.clock.sleep", lambda _: None)
    world = slowly(lambda world: seconds.__setitem__(0, 3_600.0))
    world.store = Absent(world.store)
    with world.writer() as writer:
        world.commit(writer, ("put", "objects", objects(0, 100)))
    assert len(names(world.snapshot())) == 100


@pytest.mark.usefixtures("few_inline")
def test_segments_that_took_so_long_that_they_may_be_gone_are_not_referred_to() -> None:
    world = slowly(lambda world: world.clock.tick(6 * HOUR) and None)
    with world.writer() as writer, pytest.raises(StaleRead), writer.transaction() as tx:
        tx.put("objects", objects(0, 100))
    assert (len(stored(world, ".parquet")), stored(world, ".txn")) == (1, [])


@pytest.mark.usefixtures("few_inline")
def test_another_process_that_commits_while_segments_are_put_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit looks at its own timeline when its last look is older than 30 s, also where it was the segments that took so long."""
    seconds = [0.0]
    monkeypatch.setattr("bucketcatalog.clock.monotonic", lambda: seconds[0])

    def meanwhile(world: World) -> None:
        with world.writer() as stray:
            world.commit(stray, ("put", "objects", obj("stray")))
        seconds[0] += 31
        world.clock.tick(31 * SECOND)

    world = slowly(meanwhile)
    with world.writer() as writer, pytest.raises(ForeignBranch), writer.transaction() as tx:
        tx.put("objects", objects(0, 100))
    assert names(world.snapshot()) == ["stray"]


@pytest.mark.usefixtures("few_inline")
def test_segments_of_a_commit_that_died_are_part_of_nothing(world: World) -> None:
    with world.writer() as writer:
        world.commit(writer, ("put", "objects", obj("x")))

    def die() -> None:
        raise SimulatedCrash

    dying = World(Intervening(world.store, "w/default/transactions/", die))
    dying.clock = world.clock
    with dying.writer() as writer, pytest.raises(SimulatedCrash), writer.transaction() as tx:
        tx.put("objects", objects(0, 100))
    (left,) = stored(world, ".parquet")
    assert uuid7_time(uuid_bytes(left.rpartition("/")[2].removesuffix(".parquet"))) == world.clock.now
    assert [(finding.code, finding.file) for finding in world.catalog().verify()] == [("UNREFERENCED_SEGMENT", left)]
    assert names(world.snapshot()) == ["x"]
    with world.writer() as writer:
        world.commit(writer, ("put", "objects", objects(0, 100)))
        writer.checkpoint()
    assert len(names(world.snapshot())) == 101


def test_a_look_up_in_a_large_transaction_that_no_checkpoint_covers_reads_one_block(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World.counting()
    with world.writer() as writer:
        world.commit(writer, ("put", "objects", objects(0, 40_000)))
    snapshot = world.snapshot()
    row = objects(777, 778).to_pylist()[0]
    requests, found = counted(
        world, lambda: snapshot.get("objects", **{name: row[name] for name in ("owner", "bucket_id", "name")})
    )
    assert found is not None and found["content_length"] == 777
    assert requests == 2  # the index of the segment, and a block
