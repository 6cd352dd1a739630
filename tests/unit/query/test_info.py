"""``info`` says what is there: rows by table and level, files and what they cost, the age of things, and what needs doing."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from bucketcatalog import DatabaseNotFound
from bucketcatalog.catalog import Catalog
from bucketcatalog.format.records import Boundary, CheckpointLink
from bucketcatalog.limits import LATENESS_BOUND, SECOND
from bucketcatalog.log.horizon import floors_of
from bucketcatalog.query.info import Information
from bucketcatalog.store.faults import Counting
from bucketcatalog.store.memory import MemoryStore

from ...kit.world import World, bucket, messages, obj, proto, rows, time_at


def info(world: World) -> Information:
    return world.catalog().info()


def many(start: int, stop: int) -> pa.Table:
    return pa.Table.from_pylist([obj(f"{n:06}", content_length=1) for n in range(start, stop)])


def sizes(world: World, ending: str) -> int:
    return sum(found.size for found in world.store.list("") if found.name.endswith(ending))


def test_a_database_without_checkpoints_is_its_transactions(world: World) -> None:
    with world.writer() as w:
        world.commit(
            w, ("put", "objects", [obj("a", content_length=3), obj("b", content_length=4)]), ("put", "buckets", bucket("x"))
        )
        world.commit(w, ("delete", "objects", obj("a")))
    found = info(world)
    snapshot = world.snapshot()
    assert (found.database, found.version, found.writers) == ("default", snapshot.version, 1)
    assert found.newest_commit == time_at(world.clock.now) and found.watermark == snapshot.watermark
    assert (found.table("objects").live, found.table("objects").tombstones, found.table("objects").sums) == (1, 1, {"bytes": 4})
    assert [table.table for table in found.tables] == ["buckets", "objects"] and found.table("buckets").live == 1
    assert (found.uncovered_transactions, found.uncovered_events) == (2, 4)
    assert found.uncovered_bytes == found.files.changes == found.files.bytes == sizes(world, ".txn")
    assert (found.checkpoints, found.stored_checkpoints, found.newest_checkpoint) == (0, 0, None)
    assert found.files.checkpoints == 0 and found.write_amplification == 0
    assert found.table("objects").levels == () and found.table("objects").stored == 3
    assert (found.horizon, found.tags, found.conflicts, found.forked, found.to_do) == (None, 0, 0, (), ())


@pytest.mark.parametrize("moment", [1_795_000_000_123_457, 32_503_680_000_000_003, 253_402_300_799_999_999])
def test_times_are_exact_to_the_last_that_there_is(world: World, moment: int) -> None:
    world.clock.now = moment - SECOND
    world.commit(world.writer(), ("put", "objects", obj("a")))
    found, snapshot = info(world), world.snapshot()
    assert snapshot.view.newest_commit_time == world.clock.now == moment
    assert found.newest_commit == time_at(moment)
    assert found.watermark == snapshot.watermark == time_at(moment - LATENESS_BOUND)


def test_levels_tell_their_rows_blocks_and_bytes(world: World) -> None:
    with world.writer() as w:
        for start in (0, 10_000):
            world.commit(w, ("put", "objects", many(start, start + 10_000)))
        w.checkpoint()
        world.commit(w, ("put", "objects", many(10_000, 12_000)))
        w.checkpoint()
        world.commit(w, ("delete", "objects", obj("000001")))
    found = info(world)
    table = found.table("objects")
    assert [(level.level, level.rows, level.blocks) for level in table.levels] == [(0, 20_000, 2), (1, 2_000, 1)]
    (used,) = world.snapshot().view.checkpoints
    assert [level.bytes for level in table.levels] == [
        sum(part.size for part in used.parts if part.run.level == level and part.run.is_of_rows) for level in (0, 1)
    ]
    assert (table.live, table.tombstones, table.stored, table.uncovered_events) == (19_999, 2_001, 22_001, 1)
    assert table.space_amplification == pytest.approx(22_001 / 19_999)
    assert found.files.checkpoints == sizes(world, ".ckpt") + sizes(world, ".parquet")
    assert found.files.changes == sizes(world, ".txn")
    assert found.write_amplification == pytest.approx(found.files.checkpoints / found.files.changes)
    assert (found.checkpoints, found.stored_checkpoints, found.uncovered_transactions) == (1, 2, 1)


@pytest.mark.parametrize("late", [False, True])
def test_counts_are_those_of_scans_whatever_covers_what(world: World, late: bool) -> None:
    """From indexes where one fold holds everything, from the rows where something lies over it."""
    with world.writer() as w, world.writer("v") as v:
        world.commit(w, ("put", "objects", [obj(str(n)) for n in range(9)]), ("put", "buckets", [bucket("a"), bucket("b")]))
        world.commit(w, ("delete", "objects", [obj("1"), obj("z")]), ("delete", "buckets", bucket("a")))
        w.checkpoint()
        if late:
            world.commit(v, ("put", "objects", [obj("1"), obj("2")]), ("put", "buckets", bucket("b")))
            v.checkpoint()
    found, snapshot = info(world), world.snapshot()
    for name in ("objects", "buckets"):
        assert found.table(name).live == len(rows(snapshot, name))
        assert found.table(name).tombstones == len(rows(snapshot, f"deleted_{name}"))


def test_segments_that_transactions_refer_to_are_changes(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bucketcatalog.write.staging.INLINE_ROWS", 0)
    catalog = Catalog(MemoryStore())
    with catalog.writer("w") as w, w.transaction() as tx:
        tx.put("objects", obj("a"))
    catalog.restore("objects", version=":", dry_run=False)
    found = catalog.info()
    every = sum(info.size for info in catalog.store.list(""))
    segments = sum(info.size for info in catalog.store.list("") if info.name.endswith(".parquet"))
    assert segments and found.files.changes == found.uncovered_bytes == every and found.files.checkpoints == 0


def test_segments_of_checkpoints_that_are_kept_for_tags_are_no_changes(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bucketcatalog.clock.now_us", world.clock)
    with world.writer() as w, world.writer("maintainer-1") as held, world.writer("compactor-1") as compactor:
        world.commit(w, ("put", "objects", many(0, 3_000)))
        held.tag("early")
        world.clock.tick(3_600_000_000)
        world.commit(w, ("put", "objects", many(0, 3_000)))
        world.clock.tick(3_600_000_000)
        compactor.checkpoint(scope="all")
    for _ in range(2):
        world.clock.tick(2 * 86_400_000_000)
        pruned = world.catalog().prune("24h", dry_run=False, writer="maintainer-1", clock=world.clock)
    assert pruned.files and any(info.name.startswith("maintainer-1/default/segments/") for info in world.store.list(""))
    found = info(world)
    assert found.files.changes == sizes(world, ".txn")
    assert found.files.checkpoints == sizes(world, ".ckpt") + sizes(world, ".parquet")
    (kept,) = [i.name for i in world.store.list(f"maintainer-1/default/transactions/{0:020}/") if i.name.endswith(".ckpt")]
    world.store.put(kept, b"damaged")
    assert info(world).files.changes > sizes(world, ".txn"), "what a damaged one names nobody can tell"


@pytest.mark.parametrize("late", [False, True])
def test_bytes_of_objects_are_told_by_kept_sums_without_reading_their_rows(late: bool) -> None:
    world = World.counting()
    store = world.store
    assert isinstance(store, Counting)
    with world.writer() as w:
        etags = pa.array([f"{n * 2_654_435_761 % (1 << 32):08x}" for n in range(60_000)])
        world.commit(w, ("put", "objects", many(0, 60_000).append_column("etag", etags)))
        w.checkpoint()
        if late:
            world.commit(w, ("put", "objects", [obj("000001", content_length=5)]), ("delete", "objects", obj("000002")))
    store.reset()
    found = info(world)
    read = store.bytes_read
    table = found.table("objects")
    assert (table.live, table.sums) == ((59_999, {"bytes": 60_003}) if late else (60_000, {"bytes": 60_000}))
    store.reset()
    assert sum(row["content_length"] for row in rows(world.snapshot())) == table.sums["bytes"]
    assert late or read < store.bytes_read / 3


OWN = """message Row {
  option (table) = {
    name: "my.rows" key: "team" key: "name"
    sums: {name: "points" field: "points" group: "team"}
    sums: {name: "rows" group: "team"}
    sums: {name: "fouls" field: "fouls" group: "team"}
    sums: {name: "by_place" field: "points" group: "place"}
    sums: {name: "all" field: "points"}
  };
  string team = 1;
  string name = 2;
  optional int32 points = 3;
  optional uint64 fouls = 4;
  optional string place = 5;
}"""


@pytest.mark.parametrize("checkpoints", [0, 1, 2])
def test_sums_of_any_table_are_told_that_a_checkpoint_can_keep(world: World, checkpoints: int) -> None:
    catalog = world.catalog()
    catalog.register(messages(proto(OWN))["Row"])
    with world.writer(catalog=catalog) as w:
        world.commit(
            w, ("put", "my.rows", [{"team": t, "name": str(n), "points": n, "fouls": 2**63} for t in "ab" for n in range(4)])
        )
        if checkpoints:
            w.checkpoint()
        world.commit(w, ("delete", "my.rows", {"team": "a", "name": "3"}), ("put", "my.rows", {"team": "c", "name": "x"}))
        if checkpoints > 1:
            w.checkpoint()
    table = info(world).table("my.rows")
    assert (table.live, table.tombstones) == (8, 1)
    assert table.sums == {"points": 9, "fouls": 7 * 2**63} and list(table.sums) == ["points", "fouls"]
    assert info(world).table("objects").sums == {}


def test_tags_and_the_horizon_of_the_history_are_told(world: World) -> None:
    with world.writer() as w, world.writer("compactor-1") as compactor, world.writer("maintainer-1") as held:
        world.commit(w, ("put", "objects", obj("a")))
        compactor.checkpoint(scope="all")
        (horizon,) = world.snapshot().view.checkpoints
        for name in ("one", "two"):
            world.clock.tick()
            held.tag(name)
        held.drop_tag("two")
        link = CheckpointLink(horizon.writer, horizon.revision, horizon.uuid, horizon.digest)
        held.bound("prune", Boundary(horizon=horizon.cut, checkpoint=link, floors=floors_of(horizon, {})))
    found = info(world)
    assert (found.tags, found.horizon, found.horizon_time) == (1, str(horizon.cut), time_at(horizon.cut.newest_commit_time))


def advice(world: World) -> list[str]:
    return [f"{each.why}: {each.command}" for each in info(world).to_do]


def test_what_needs_doing_comes_with_the_command(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = f"{world.store.url} --database default"
    with world.writer() as w:
        world.commit(w, ("put", "objects", obj("a")))
        assert advice(world) == []
        world.commit(w, ("put", "objects", obj("a"), {"expect": "absent"}))
        world.commit(w, ("put", "objects", obj("b")))
        assert advice(world) == [f"1 conflict: bucketcatalog conflicts {chosen}"]
        for limit in ("MANY_EVENTS", "MANY_TRANSACTIONS", "MANY_BYTES"):
            with monkeypatch.context() as patch:
                patch.setattr(f"bucketcatalog.query.info.{limit}", 3)
                assert advice(world)[0] == f"readers replay 3 transactions: bucketcatalog checkpoint {chosen} --all-writers"
        w.checkpoint()
    monkeypatch.setattr("bucketcatalog.query.info.MANY_TRANSACTIONS", 3)
    assert not any("replay" in line for line in advice(world))


def test_a_fork_is_told(world: World, recwarn: Any) -> None:
    first, second = world.writer(), world.writer()
    world.commit(first, ("put", "objects", obj("a")))
    world.commit(second, ("put", "objects", obj("b")))
    assert (info(world).forked, info(world).open_forks) == (("w",), 1)
    assert advice(world)[0] == f"two processes wrote as w: bucketcatalog repair {world.store.url} --database default --join w"


def test_many_tombstones_are_worth_collecting(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bucketcatalog.query.info.MANY_TOMBSTONES", 3)
    with world.writer() as w:
        world.commit(w, ("put", "objects", [obj(str(n)) for n in range(6)]))
        world.commit(w, ("delete", "objects", [obj(str(n)) for n in range(3)]))
        assert advice(world) == []
        world.commit(w, ("delete", "objects", obj("3")))
    (line,) = advice(world)
    assert line == f"4 tombstones of objects, more than live rows: bucketcatalog gc {world.store.url} --database default --data"


def test_a_long_history_is_worth_pruning_once_it_is_old(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bucketcatalog.query.info.MUCH_HISTORY", 1_000)
    with world.writer() as w:
        for _ in range(12):
            world.commit(w, ("put", "objects", many(0, 300)))
            w.checkpoint()
        assert advice(world) == []
        world.clock.tick(31 * 86_400 * 1_000_000)
        (line,) = advice(world)
        monkeypatch.setattr("bucketcatalog.query.info.MANY_TIMES", 1_000)
        assert advice(world) == []
    assert line.endswith(f": bucketcatalog prune {world.store.url} --database default --older-than 30d")


def test_a_place_with_a_space_is_quoted_and_progress_is_told(world: World, tmp_path: Any) -> None:
    catalog = Catalog(tmp_path / "a b")
    with catalog.writer("w") as w:
        for expect in (None, "absent"):
            with w.transaction() as tx:
                tx.put("buckets", bucket("a"), expect=expect)
    told: list[int] = []
    (line,) = catalog.info(progress=told.append).to_do
    assert "/a b' --database default" in line.command and told == [1, 2]


def test_a_database_that_is_not_there_is_said(world: World) -> None:
    with world.writer() as w:
        world.commit(w, ("put", "objects", obj("a")))
    with pytest.raises(DatabaseNotFound):
        world.catalog().info(database="none")
