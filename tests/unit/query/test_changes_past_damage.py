"""Changes and differences past damage: what cannot be read is left out of both sides and named, and nothing that is there looks new."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from bucketcatalog import BucketCatalogError, Catalog, CatalogWarning, CorruptionError
from bucketcatalog.query.difference import Diff
from bucketcatalog.store.local import LocalStore

from ...kit.spoiling import SPOILT, in_turns, newest, spoil
from ...kit.world import World, names, obj, stored


@pytest.fixture
def world() -> World:
    return in_turns()


def changed(world: World, **options: Any) -> list[str]:
    return world.catalog().changes(**options).to_arrow()["name"].to_pylist()


def differing(world: World, **options: Any) -> list[tuple[str, str]]:
    found = world.catalog().diff(**options).to_arrow().to_pylist()
    return [(row["_change_type"], row["name"]) for row in found]


@pytest.mark.parametrize("kind", SPOILT)
def test_events_that_cannot_be_read_are_left_out_and_named(world: World, kind: str) -> None:
    name = newest(world, "mallory")
    lost = newest(world, "mallory", 1) if kind == "another parent's digest" else name
    spoil(world, name, kind)
    with pytest.raises(BucketCatalogError, match=lost):
        changed(world)
    is_alone = kind not in ("parents that are not there", "another parent's digest", "reads of nothing")
    with pytest.warns(CatalogWarning, match=lost if is_alone else "mallory|nobody"):
        found = changed(world, ignore_corruption=True)
    assert {"a0", "a1", "a2", "m0"} <= set(found) and (not is_alone or "m2" not in found)
    with pytest.warns(CatalogWarning):
        assert {("created", n) for n in found} == set(differing(world, ignore_corruption=True))


def test_a_transaction_that_a_checkpoint_covers_is_told_when_its_events_are_asked_for(world: World) -> None:
    with world.writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all")
    name = newest(world, "mallory", 1)
    spoil(world, name)
    assert len(names(world.snapshot())) == 6
    with pytest.raises(CorruptionError, match=name):
        changed(world)
    with pytest.warns(CatalogWarning, match=name):
        assert changed(world, ignore_corruption=True) == ["a0", "m0", "a1", "a2", "m2"]
    with pytest.warns(CatalogWarning, match=name):
        assert changed(world, start="mallory@0", ignore_corruption=True) == ["a0", "a1", "a2", "m2"]


def test_blocks_and_segments_of_events_are_left_out_one_by_one(world: World) -> None:
    start = world.snapshot().version
    with world.writer("alice") as alice:
        world.commit(alice, ("put", "objects", [obj(f"block {n:03}") for n in range(100)]))
        world.commit(alice, ("put", "objects", [obj(f"segment {n:05}") for n in range(20_000)]))
    (segment,) = (name for name in stored(world) if name.endswith(".parquet"))
    world.store.delete(segment)
    with pytest.raises(CorruptionError, match=segment):
        changed(world, start=start)
    with pytest.warns(CatalogWarning, match=segment):
        assert changed(world, start=start, ignore_corruption=True) == [f"block {n:03}" for n in range(100)]


def test_parts_that_other_processes_read_leave_out_the_same(world: World) -> None:
    name = newest(world, "mallory")
    spoil(world, name, "an unknown event")
    found = world.catalog().changes(ignore_corruption=True)
    tasks = pickle.loads(pickle.dumps(found.tasks(2)))
    with pytest.warns(CatalogWarning, match=name):
        read = [table for task in tasks for table in task.read(world.store)]
    assert sorted(name for table in read for name in table["name"].to_pylist()) == ["a0", "a1", "a2", "m0", "m1"]


@pytest.mark.parametrize(("ending", "events"), [(".txn", 10_000), (".parquet", 40_000)])
def test_parts_that_other_processes_read_leave_out_what_may_not_be_read_there(tmp_path: Path, ending: str, events: int) -> None:
    place = tmp_path / "lake"
    for name, count in (("alice", 10), ("mallory", events)):
        with Catalog(place).writer(name) as writer, writer.transaction() as tx:
            tx.put("objects", [obj(f"{name} {n:05}") for n in range(count)])
    tasks = pickle.loads(pickle.dumps(Catalog(place).changes(ignore_corruption=True).tasks(2)))
    (file,) = place.glob(f"mallory/**/*{ending}")
    file.unlink()
    file.symlink_to(file.name)
    with pytest.warns(CatalogWarning, match=file.name):
        read = [table for task in tasks for table in task.read(LocalStore(place))]
    assert sorted(name for table in read for name in table["name"].to_pylist()) == [f"alice {n:05}" for n in range(10)]


def test_keys_of_which_one_side_lacks_rows_are_in_no_difference(world: World) -> None:
    """The start is read from a checkpoint with a damaged block: what it cannot show must not look new at the end."""
    with world.writer("compactor-1") as compactor:
        world.commit(compactor, ("put", "objects", [obj(f"k {n:05}") for n in range(20_000)]))
        compactor.checkpoint(scope="all")
        start = world.snapshot().version
        world.commit(
            compactor, ("delete", "objects", [obj("k 00001"), obj("m1")]), ("put", "objects", [obj("k 00002"), obj("z")])
        )
        compactor.checkpoint(scope="all", full=True)
    whole = differing(world, start=start)
    assert whole == [("deleted", "k 00001"), ("overwritten", "k 00002"), ("deleted", "m1"), ("created", "z")]
    used = {s.uuid for c in world.snapshot(version=start).view.checkpoints for s in c.segments}
    now = {s.uuid for c in world.snapshot().view.checkpoints for s in c.segments}
    lost = [name for name in stored(world) if name.endswith(".parquet") and _uuid(name) in used - now]
    assert lost
    for name in lost:
        data = bytearray(world.store.get(name))
        data[len(data) // 4] ^= 1
        world.store.delete(name)
        world.store.put(name, bytes(data))
    with pytest.raises(CorruptionError):
        differing(world, start=start)
    with pytest.warns(CatalogWarning, match="compactor-1/default/segments"):
        assert set(differing(world, start=start, ignore_corruption=True)) < set(whole)


def _uuid(name: str) -> bytes:
    return bytes.fromhex(name.rpartition("/")[2].removesuffix(".parquet").replace("-", ""))


def test_nothing_changes_where_nothing_is_damaged(world: World) -> None:
    assert changed(world, ignore_corruption=True) == changed(world)
    found = world.catalog().diff(start="alice@1", ignore_corruption=True)
    assert isinstance(found, Diff) and found.to_arrow() == world.catalog().diff(start="alice@1").to_arrow()
