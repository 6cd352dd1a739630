"""Pruning: what goes, what stays, who waits for what, and what readers and writers see afterwards."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from bucketcatalog import Catalog, CorruptionError, HistoryPruned, InvalidOption
from bucketcatalog.pruning import PruneResult
from bucketcatalog.writer import Writer

from .helpers import MINUTE, World, bucket, names, obj, rows

HOUR = 60 * MINUTE
DAY = 24 * HOUR
GRACE = DAY + MINUTE
"""A little more than the grace period, for commit times may lie ahead of the clock by microseconds."""


@pytest.fixture(autouse=True)
def one_clock(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bucketcatalog.clock.now_us", world.clock)
    monkeypatch.setitem(Catalog.prune.__kwdefaults__ or {}, "clock", world.clock)


@pytest.fixture
def world() -> World:
    return World()


def put(world: World, writer: Writer, *wanted: str) -> None:
    world.commit(writer, *(("put", "objects", obj(name)) for name in wanted))


def checkpoint(world: World, writer: str = "compactor-1") -> str:
    """A checkpoint of everyone; returns its version."""
    with world.writer(writer) as compactor:
        done = compactor.checkpoint(scope="all")
    assert done is not None
    return done.version


def prune(world: World, older_than: str = "36h", **options: Any) -> PruneResult:
    return world.catalog().prune(older_than, **{"dry_run": False, "writer": "maintainer-1"} | options)


def stored(world: World, ending: str = "") -> list[str]:
    return [info.name for info in world.store.list("") if info.name.endswith(ending)]


def old_history(world: World) -> str:
    """Two writers with five commits each, a checkpoint of all, two days, one more commit of each; returns the checkpoint's version."""
    writers = [world.writer("a"), world.writer("b")]
    for number in range(5):
        for writer in writers:
            put(world, writer, f"{writer.id}{number}")
    world.clock.tick(HOUR)
    horizon = checkpoint(world)
    world.clock.tick(2 * DAY)
    for writer in writers:
        put(world, writer, f"{writer.id}-new")
        writer.close()
    return horizon


EVERYTHING = sorted([*(f"{w}{n}" for w in "ab" for n in range(5)), "a-new", "b-new"])


def test_history_behind_the_horizon_goes_after_the_grace_period_and_not_before(world: World) -> None:
    horizon = old_history(world)
    before = stored(world)
    first = prune(world)
    assert (first.done, first.horizon, first.files) == (True, horizon, ())
    assert set(before) <= set(stored(world)), "nothing is deleted before the grace period is over"
    assert first.due is not None and first.published is not None and first.due == first.published + DAY
    world.clock.tick(DAY - MINUTE)
    assert prune(world).files == ()
    world.clock.tick(2 * MINUTE)
    done = prune(world)
    assert {file.name for file in done.files} == set(before) - set(stored(world))
    assert {file.name for file in done.files} == {file.name for file in first.waiting}
    kept = {name.split("/")[3] for name in stored(world, ".txn") if name.startswith("a/")}
    assert sorted(int(revision) for revision in kept) == [4, 5]
    assert names(world.snapshot()) == EVERYTHING
    assert names(world.snapshot(version=horizon)) == [name for name in EVERYTHING if "new" not in name]


def test_a_dry_run_writes_and_deletes_nothing_and_tells_the_same(world: World) -> None:
    old_history(world)
    before = stored(world)
    told = world.catalog().prune("36h", writer="maintainer-1")
    assert stored(world) == before and not told.done and told.published is None
    assert [file.name for file in told.waiting] == [file.name for file in prune(world).waiting]
    assert {file.kind.value for file in told.waiting} == {"transaction"}
    assert all(file.bytes > 0 and file.why for file in told.waiting)


def test_what_lies_before_the_horizon_is_refused_by_its_name_and_what_contains_it_is_read(world: World) -> None:
    writer = world.writer("a")
    put(world, writer, "x")
    early, early_time = world.snapshot().version, world.clock.now
    world.clock.tick(HOUR)
    put(world, writer, "y")
    horizon = checkpoint(world)
    horizon_time = world.snapshot().cut.newest_commit_time
    world.clock.tick(2 * DAY)
    put(world, writer, "z")
    for deleted in (False, True):
        prune(world)
        for options in (
            {"version": early},
            {"version": "a@0"},
            {"timestamp": f"@{early_time}"},
            {"timestamp": f"@{horizon_time - 1}"},
        ):
            with pytest.raises(HistoryPruned) as error:
                world.snapshot(**options)
            assert horizon in str(error.value) and error.value.code == "PRUNED"
        with pytest.raises(HistoryPruned):
            world.catalog().changes(start=early)
        with pytest.raises(HistoryPruned):
            world.catalog().diff(start=early)
        with pytest.raises(HistoryPruned):
            world.catalog().changes()
        assert names(world.snapshot(timestamp=f"@{horizon_time}")) == ["x", "y"]
        assert [row["name"] for row in world.catalog().changes(start=horizon).to_arrow().to_pylist()] == ["z"]
        assert len(world.catalog().diff().to_arrow()) == 3
        found = {(row["writer"], row["revision"]) for row in world.snapshot().scan("log").to_arrow().to_pylist()}
        assert (("a", 0) in found) != deleted and ("a", 2) in found
        world.clock.tick(GRACE)


def test_a_tag_keeps_its_version_readable_and_is_freed_when_it_is_dropped(world: World) -> None:
    writer = world.writer("a")
    put(world, writer, "x")
    with world.writer("maintainer-2") as tagger:
        tagged = tagger.tag("first").version
    world.clock.tick(HOUR)
    put(world, writer, "y")
    checkpoint(world)
    world.clock.tick(2 * DAY)
    put(world, writer, "z")
    assert prune(world).tags == (tagged,)
    for _ in range(2):
        assert names(world.snapshot(version="first")) == names(world.snapshot(version=tagged)) == ["x"]
        changed = world.catalog().diff(start="first").to_arrow().to_pylist()
        assert [row["name"] for row in changed] == ["y", "z"]
        world.clock.tick(GRACE)
        assert prune(world).tags == ()
    assert [int(name.split("/")[3]) for name in stored(world, ".txn") if name.startswith("a/")] == [1, 2]
    first = "maintainer-1/default/transactions/" + "0" * 20
    kept = [name for name in stored(world, ".ckpt") if name.startswith(first) and not stored(world, name[-41:-5])]
    assert len(kept) == 1
    with world.writer("maintainer-2") as tagger:
        tagger.drop_tag("first")
    world.clock.tick(GRACE + 7 * DAY)
    assert kept[0] in [file.name for file in prune(world).files]
    with pytest.raises(HistoryPruned):
        world.snapshot(version=tagged)


def test_writers_go_on_after_a_prune_and_never_use_a_revision_again(world: World) -> None:
    old_history(world)
    prune(world)
    world.clock.tick(GRACE)
    assert prune(world).files
    with world.writer("a") as writer:
        assert world.commit(writer, ("put", "objects", obj("later"))).revision == 6
        assert writer.checkpoint() is not None
    with world.writer("b") as writer:
        assert writer.checkpoint() is not None
        put(world, writer, "b-later")
        assert writer.checkpoint() is not None
    expected = sorted([*EVERYTHING, "later", "b-later"])
    assert names(world.snapshot()) == expected
    checkpoint(world, "compactor-2")
    assert names(world.snapshot()) == expected
    world.clock.tick(3 * DAY)
    prune(world)
    world.clock.tick(GRACE)
    assert prune(world).files
    assert names(world.snapshot()) == expected
    world.writer("a").close()


def test_a_stray_that_arrives_at_a_pruned_revision_is_seen(world: World) -> None:
    old = world.writer("a")
    put(world, old, "one")
    stray = world.writer("a")
    put(world, old, "two")
    put(world, stray, "stray")  # a fork of revision 1, which arrives only much later
    (name,) = [n for n in stored(world, ".txn") if "/00000000000000000001/" in n and b"stray" in world.store.get(n)]
    data = world.store.get(name)
    world.store.delete(name)
    for number in range(3):
        put(world, old, f"more{number}")
    world.clock.tick(HOUR)
    checkpoint(world)
    world.clock.tick(2 * DAY)
    put(world, old, "last")
    prune(world)
    world.clock.tick(GRACE)
    assert prune(world).files
    world.store.put(name, data)
    expected = ["last", "more0", "more1", "more2", "one", "stray", "two"]
    checkpoint(world, "compactor-2")
    assert names(world.snapshot()) == expected
    checkpoint(world)
    assert names(world.snapshot()) == expected
    world.clock.tick(3 * DAY)
    for _ in range(3):
        prune(world)
        world.clock.tick(GRACE)
    assert name in stored(world), "a head is never deleted"
    assert names(world.snapshot()) == expected


def test_ages_that_somebody_may_need_are_refused_without_force(world: World) -> None:
    old_history(world)
    for options in ({"older_than": "1m"}, {"grace": "5h"}):
        with pytest.raises(InvalidOption):
            prune(world, **options)
        assert prune(world, **options, dry_run=True, force=True)
    with pytest.raises(InvalidOption, match="maintainer"):
        prune(world, writer="a")
    with pytest.raises(InvalidOption):
        prune(world, keep=0)


def test_with_force_and_no_grace_period_one_run_does_it_all(world: World) -> None:
    with world.writer("a") as writer:
        for number in range(4):
            put(world, writer, f"{number}")
    world.clock.tick(HOUR)
    with world.writer("a") as writer:
        put(world, writer, "new")
    done = prune(world, "0s", grace="0s", force=True)
    assert done.needs_checkpoint and len([file for file in done.files if file.name.startswith("a/")]) == 4
    assert names(world.snapshot()) == ["0", "1", "2", "3", "new"]


def test_checkpoints_are_counted(world: World) -> None:
    writer = world.writer("a")
    made = []
    for number in range(4):
        put(world, writer, f"{number}")
        made.append(checkpoint(world))
        world.clock.tick(GRACE)
    assert world.catalog().prune("1d", writer="maintainer-1").horizon == made[3]
    assert world.catalog().prune("1d", keep=3, writer="maintainer-1").horizon == made[1]
    assert world.catalog().prune("1d", keep=5, writer="maintainer-1").horizon is None
    assert world.catalog().prune("3d", writer="maintainer-1").horizon == made[1]


def test_old_checkpoints_go_with_their_markers_and_segments_and_shared_segments_stay(world: World) -> None:
    writer = world.writer("a")
    world.commit(writer, ("put", "buckets", bucket("b")))
    put(world, writer, *(f"{n:05}" for n in range(60)))
    for number in range(4):
        put(world, writer, f"x{number}")
        checkpoint(world)
        world.clock.tick(HOUR)
    world.clock.tick(2 * DAY)
    before = rows(world.snapshot())
    prune(world)
    world.clock.tick(GRACE)
    kinds = [file.kind.value for file in prune(world).files]
    assert kinds.count("marker") == kinds.count("checkpoint") == 3 and kinds.count("segment") >= 1
    assert len([name for name in stored(world) if name.startswith("compactor-1/default/newest/")]) == 1
    assert rows(world.snapshot()) == before


def test_what_repair_has_dropped_becomes_no_horizon(world: World) -> None:
    with world.writer("a") as writer:
        put(world, writer, "x")
        checkpoint(world)
        for name in stored(world, ".seg"):
            world.store.delete(name)
        world.clock.tick(HOUR)
        world.catalog().repair(dry_run=False, writer="maintainer-1", clock=world.clock)
        put(world, writer, "y")
    world.clock.tick(HOUR)
    assert prune(world, "0s", keep=2, grace="0s", force=True).horizon is None
    checkpoint(world, "compactor-2")
    world.clock.tick(HOUR)
    pruned = prune(world, "0s", keep=2, grace="0s", force=True).horizon
    assert pruned is not None and names(world.snapshot(version=pruned)) == ["x"] and names(world.snapshot()) == ["x", "y"]


def test_a_stray_behind_the_horizon_is_told_from_what_a_tagged_checkpoint_lists_from_the_same_revision_on(world: World) -> None:
    elsewhere = World()
    with elsewhere.writer("a") as crashed:
        put(elsewhere, crashed, "stray")
    (stray,) = stored(elsewhere, ".txn")
    world.clock.tick()
    with world.writer("a") as writer:
        for number in range(3):
            put(world, writer, f"a{number}")
    tagged = checkpoint(world)  # so soon that it lists the timeline from its beginning
    with world.writer("maintainer-1") as maintainer:
        maintainer.tag("x", version=tagged)
    world.clock.tick(HOUR)
    checkpoint(world)
    for _ in range(2):
        world.clock.tick(HOUR)
        prune(world, "0s", grace="0s", force=True)
    assert [int(name.split("/")[3]) for name in stored(world, ".txn") if name.startswith("a/")] == [2]
    world.store.put(stray, elsewhere.store.get(stray))
    assert names(world.snapshot(version="x")) == ["a0", "a1", "a2"]
    checkpoint(world, "compactor-2")
    assert names(world.snapshot()) == ["a0", "a1", "a2", "stray"]


def test_a_damaged_checkpoint_that_repair_has_dropped_stops_no_prune(world: World) -> None:
    with world.writer("a") as writer:
        put(world, writer, "x")
        writer.checkpoint()
    (name,) = stored(world, ".ckpt")
    world.store.put(name, world.store.get(name)[:-1])
    with pytest.raises(CorruptionError, match=name):
        prune(world, "0s", grace="0s", force=True)
    world.clock.tick(HOUR)
    world.catalog().repair(dry_run=False, writer="maintainer-1", clock=world.clock)
    put(world, world.writer("a"), "y")
    world.clock.tick(HOUR)
    assert prune(world, "0s", grace="0s", force=True).done and name in stored(world)
    assert names(world.snapshot()) == ["x", "y"]


def test_a_writers_own_checkpoint_starts_from_anybodys_that_reaches_the_horizon_where_the_horizons_own_is_lost(
    world: World,
) -> None:
    old_history(world)
    prune(world)
    world.clock.tick(GRACE)
    prune(world)
    horizon = world.snapshot().view.horizon
    assert horizon is not None
    lost = horizon.checkpoint
    checkpoint(world)
    world.store.delete(next(name for name in stored(world, ".ckpt") if name.endswith(f"{UUID(bytes=lost.uuid)}.ckpt")))
    with world.writer("a") as writer:
        put(world, writer, "later")
        done = writer.checkpoint()
    assert done is not None
    assert names(world.snapshot()) == sorted([*EVERYTHING, "later"])
