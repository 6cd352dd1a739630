"""Restoring a table: its live rows are again what they were, each by the one event that says so."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from bucketcatalog import Catalog, DatabaseNotFound, InvalidOption, InvalidVersion, UnknownTable
from bucketcatalog.store.faults import Failing, SimulatedCrash
from bucketcatalog.store.memory import MemoryStore
from bucketcatalog.store.wrappers import Wrapped
from bucketcatalog.write.commit import Committed

from ....kit.restoring import ID, MAINTAINER, full, restore
from ....kit.world import BUCKET, World, bucket, names, obj, rows, version


def test_every_row_is_what_it_was_then_with_its_times_and_ids(world: World, past: Committed) -> None:
    then = rows(world.snapshot(version=past.version))
    done = restore(world, past.version)
    assert (done.put, done.updated, done.deleted, done.skipped) == (3, 1, 1, 0)
    assert rows(world.snapshot()) == then
    assert done.committed == f"{MAINTAINER}@0" and done.version == world.snapshot(version=past.version).version
    assert names(world.snapshot(), "deleted_objects").count("fresh") == 1
    assert world.snapshot().scan("conflicts").to_arrow().num_rows == 0


def test_each_event_says_what_it_found(world: World, past: Committed) -> None:
    before = world.snapshot()
    restore(world, past.version)
    found = world.catalog().changes(start=before.version).to_arrow().to_pylist()
    assert [(e["name"], e["_change_type"]) for e in found] == [
        ("again", "put"),
        ("fresh", "delete"),
        ("gone", "put"),
        ("new row", "update"),
        ("over", "put"),
    ]
    named = {e["name"]: e["_version"] for e in found}
    assert named["fresh"] == version(obj("fresh"), before) and named["new row"] == version(obj("new row"), before)
    assert version(obj("new row"), world.snapshot()) == named["new row"]
    assert version(obj("kept"), world.snapshot()) == version(obj("kept"), before)


def test_the_log_says_what_was_restored_to_when_and_by_whom(world: World, past: Committed) -> None:
    done = restore(world, past.version)
    entry = world.snapshot().scan("log", where={"operation": "restore"}).to_arrow().to_pylist()
    assert [(e["writer"], e["events"], dict(e["metadata"])) for e in entry] == [
        (MAINTAINER, 5, {"table": "objects", "version": done.version})
    ]


def test_a_restore_to_what_is_already_so_commits_nothing(world: World, past: Committed) -> None:
    assert restore(world, world.snapshot().version).committed is None
    assert restore(world, past.version).committed is not None
    files = [info.name for info in world.store.list("")]
    again = restore(world, past.version)
    assert (again.put, again.updated, again.deleted, again.committed) == (0, 0, 0, None)
    assert [info.name for info in world.store.list("")] == files


def test_what_would_happen_is_told_by_the_names_of_buckets_live_or_ended_where_any_has_had_one(world: World) -> None:
    with world.writer() as w:
        world.commit(w, ("put", "buckets", [bucket("live", id=BUCKET), bucket("ended", id=ID.format(0))]))
        three = [obj("x"), obj("x", bucket_id=ID.format(0)), obj("x", bucket_id=ID.format(1))]
        past = world.commit(w, ("put", "objects", three))
        world.commit(w, ("delete", "objects", three), ("delete", "buckets", bucket("ended")))
    told = {row["bucket_id"]: row["bucket"] for row in restore(world, past.version, dry_run=True).sample}
    assert told == {BUCKET: "live", ID.format(0): "ended", ID.format(1): None}


def test_a_dry_run_counts_and_shows_keys_and_writes_nothing(world: World, past: Committed) -> None:
    files = [info.name for info in world.store.list("")]
    planned = restore(world, past.version, dry_run=True)
    assert [info.name for info in world.store.list("")] == files
    done = restore(world, past.version)
    assert (planned.put, planned.updated, planned.deleted, planned.sample) == (done.put, done.updated, done.deleted, done.sample)
    assert planned.committed is None
    assert {(row["action"], row["name"]) for row in planned.sample} == {
        ("put", "again"),
        ("put", "gone"),
        ("put", "over"),
        ("update", "new row"),
        ("delete", "fresh"),
    }


def test_a_time_or_a_tag_can_be_restored_to_and_a_restore_be_undone(world: World, past: Committed) -> None:
    then, now = rows(world.snapshot(version=past.version)), rows(world.snapshot())
    with world.writer(MAINTAINER) as held:
        held.tag("as-it-is")
    restore(world, past.commit_time)
    assert rows(world.snapshot()) == then
    restore(world, "as-it-is")
    assert rows(world.snapshot()) == now


def test_the_state_before_there_was_anything_is_an_empty_table(world: World, past: Committed) -> None:
    assert restore(world, ":").deleted == 5
    assert names(world.snapshot()) == []


def test_other_tables_and_other_databases_stay_as_they_are(world: World, past: Committed) -> None:
    with world.writer() as w, world.writer("v", database="other") as v:
        world.commit(w, ("put", "buckets", bucket("b")))
        world.commit(v, ("put", "objects", obj("x")))
    restore(world, past.version)
    assert names(world.snapshot(database="default"), "buckets") == ["b"]
    assert names(world.snapshot(database="other")) == ["x"]


@pytest.mark.parametrize("scope", ["own", "all"])
def test_checkpoints_before_between_and_after_change_nothing(world: World, scope: Any) -> None:
    with world.writer() as w, world.writer("v") as v, world.writer("compactor-1") as compactor:
        world.commit(w, ("put", "objects", [full(f"{n:03}", n % 10) for n in range(100)]))
        (w if scope == "own" else compactor).checkpoint(scope=scope)
        past = world.commit(v, ("delete", "objects", [obj(f"{n:03}") for n in range(0, 100, 7)]))
        (v if scope == "own" else compactor).checkpoint(scope=scope)
        world.commit(w, ("put", "objects", [full(f"{n:03}", n % 9) for n in range(0, 120, 5)]))
        (w if scope == "own" else compactor).checkpoint(scope=scope)
    then = rows(world.snapshot(version=past.version))
    restore(world, past.version)
    assert rows(world.snapshot()) == then
    with world.writer(MAINTAINER) as held:
        held.checkpoint(scope=scope)
    assert rows(world.snapshot()) == then


def test_equal_blocks_are_not_read(world: World) -> None:
    with world.writer() as w:
        world.commit(w, ("put", "objects", pa.Table.from_pylist([full(f"{n:06}", n % 10) for n in range(3_000)])))
        w.checkpoint()
        past = world.commit(w, ("put", "buckets", bucket("b")))
        world.commit(w, ("put", "buckets", bucket("c")))
    read: list[str] = []

    class Watched(Wrapped):
        def get_range(self, name: str, offset: int, length: int) -> bytes:
            read.append(name)
            return super().get_range(name, offset, length)

    watched = World(Watched(world.store))
    watched.clock.now = world.clock.now
    assert restore(watched, past.version).committed is None
    assert len(read) == 2  # an index for each of the two states, and no block


@pytest.mark.parametrize("as_columns", [False, True])
def test_a_bucket_created_after_one_was_restored_has_an_id_that_none_of_its_name_had(world: World, as_columns: bool) -> None:
    ids = set()
    with world.writer() as w:
        past = world.commit(w, ("put", "buckets", bucket("b")))
        for _ in range(3):
            ids.add(rows(world.snapshot(), "buckets")[0]["id"])
            world.commit(w, ("delete", "buckets", bucket("b")))
            world.commit(w, ("put", "buckets", bucket("b")))
        ids.add(rows(world.snapshot(), "buckets")[0]["id"])
    assert len(ids) == 4
    restore(world, past.version, table="buckets")
    assert rows(world.snapshot(), "buckets")[0]["id"] in ids
    with world.writer() as w:
        world.commit(w, ("delete", "buckets", bucket("b")))
        world.commit(w, ("put", "buckets", pa.Table.from_pylist([bucket("b")]) if as_columns else bucket("b")))
    assert rows(world.snapshot(), "buckets")[0]["id"] not in ids


def test_a_purged_row_without_data_is_put_again(world: World) -> None:
    with world.writer() as w:
        past = world.commit(w, ("put", "buckets", bucket("b", region="r")))
        name = version(bucket("b"), world.snapshot(), "buckets")
        world.commit(w, ("delete", "buckets", bucket("b")))
        world.commit(w, ("purge", "buckets", bucket("b", _version=name)))
    restore(world, past.version, table="buckets")
    assert [row["region"] for row in rows(world.snapshot(), "buckets")] == ["r"]


def test_a_table_without_tombstones_is_restored_as_time_travel_shows_it(world: World) -> None:
    error = {"source": "s", "path": "p", "code": "c", "message": "m"}
    with world.writer() as w:
        past = world.commit(w, ("put", "harvest_errors", [error, {**error, "path": "q"}]))
        world.commit(w, ("delete", "harvest_errors", {"source": "s", "path": "p"}))
        w.checkpoint()
    then = rows(world.snapshot(version=past.version), "harvest_errors")
    assert restore(world, past.version, table="harvest_errors").put == 1
    assert rows(world.snapshot(), "harvest_errors") == then


@pytest.fixture
def small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bucketcatalog.write.staging.INLINE_ROWS", 0)
    monkeypatch.setattr("bucketcatalog.log.segments.TARGET_SEGMENT_BYTES", 20_000)
    monkeypatch.setattr("bucketcatalog.log.segments.ROW_GROUP_ROWS", 4_000)


def large(world: World) -> Committed:
    with world.writer() as w:
        past = world.commit(w, ("put", "objects", pa.Table.from_pylist([full(f"{n:06}", n % 10) for n in range(40_000)])))
        world.commit(w, ("delete", "objects", pa.Table.from_pylist([obj(f"{n:06}") for n in range(0, 40_000, 2)])))
        world.commit(w, ("put", "objects", pa.Table.from_pylist([full(f"{n:06}x", 1) for n in range(0, 40_000, 5)])))
    return past


@pytest.mark.usefixtures("small_files")
def test_a_large_restore_is_one_transaction_that_refers_to_segments(world: World) -> None:
    past = large(world)
    then = world.snapshot(version=past.version).scan("objects").to_arrow()
    before = world.snapshot().version
    done = restore(world, past.version)
    assert (done.put, done.deleted) == (20_000, 8_000) and len(done.sample) == 10
    files = [info.name.split("/")[2] for info in world.store.list(f"{MAINTAINER}/")]
    assert files.count("transactions") == 1 and files.count("segments") > 2
    assert world.snapshot().scan("objects").to_arrow().equals(then)
    assert restore(world, past.version).committed is None
    events = world.catalog().changes(start=before).to_arrow()
    assert Counter(events["_change_type"].to_pylist()) == {"put": 20_000, "delete": 8_000}
    assert len(set(events["_stamp"].to_pylist())) == 28_000
    with world.writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all")
    assert world.snapshot().scan("objects").to_arrow().equals(then)


@pytest.mark.usefixtures("small_files")
def test_a_crash_anywhere_leaves_all_as_it_was_or_all_restored(world: World) -> None:
    past = large(world)
    content = {info.name: world.store.get(info.name) for info in world.store.list("")}
    then, now = (names(world.snapshot(version=v)) for v in (past.version, None))
    counting = Failing(world.store)
    probe = World(counting)
    probe.clock.now = world.clock.now
    restore(probe, past.version)
    puts = [at for at, (call, _) in enumerate(counting.calls) if call == "put"]
    assert len(puts) > 3
    for at in (puts[0], puts[1], puts[-1]):
        for late in (False, True):
            store = MemoryStore(clock=world.clock)
            for name, data in content.items():
                store.put(name, data)
            dying = World(Failing(store, at=at, after=late))
            dying.clock.now = world.clock.now
            with pytest.raises(SimulatedCrash):
                restore(dying, past.version)
            after = World(store)
            after.clock.now = world.clock.now
            assert names(after.snapshot()) == (then if at == puts[-1] and late else now)
            restore(after, past.version)
            assert names(after.snapshot()) == then


@pytest.mark.parametrize(
    ("table", "how", "error"),
    [
        ("nothing", {"version": ":"}, UnknownTable),
        ("deleted_objects", {"version": ":"}, InvalidOption),
        ("log", {"version": ":"}, InvalidOption),
        ("objects", {}, InvalidOption),
        ("objects", {"version": ":", "timestamp": "@0"}, InvalidOption),
        ("objects", {"version": "never"}, InvalidVersion),
        ("objects", {"version": ":", "database": "none"}, DatabaseNotFound),
    ],
)
@pytest.mark.parametrize("dry_run", [False, True])
def test_what_cannot_be_restored_is_said_and_nothing_is_written(
    table: str, how: dict[str, Any], error: type[Exception], dry_run: bool
) -> None:
    catalog = Catalog(MemoryStore())
    with catalog.writer("w") as w, w.transaction() as tx:
        tx.put("objects", obj("x"))
    files = [info.name for info in catalog.store.list("")]
    with pytest.raises(error):
        catalog.restore(table, writer=MAINTAINER, dry_run=dry_run, **how)
    assert [info.name for info in catalog.store.list("")] == files


def test_a_catalog_restores_by_a_maintainer_of_this_machine() -> None:
    catalog = Catalog(MemoryStore())
    with catalog.writer("w") as w, w.transaction() as tx:
        tx.put("objects", obj("x"))
    assert catalog.restore("objects", version=":", dry_run=True).committed is None
    done = catalog.restore("objects", version=":", dry_run=False)
    assert done.deleted == 1 and done.committed is not None and done.committed.startswith("maintainer-")
    assert names(Catalog(catalog.store).snapshot()) == []
