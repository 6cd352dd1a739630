"""Pruning: what goes, what stays, who waits for what, and what readers and writers see afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from bucketcatalog import (
    Catalog,
    CatalogWarning,
    CheckpointTooLate,
    CorruptionError,
    HistoryPruned,
    InvalidOption,
    MissingObject,
    TagExists,
)
from bucketcatalog.checkpoint.merge import Merged, MergeTask, run_task
from bucketcatalog.maintain.clone import clone
from bucketcatalog.maintain.prune import PruneResult
from bucketcatalog.maintain.verify.findings import SORTS, Finding
from bucketcatalog.store.faults import Counting
from bucketcatalog.store.memory import MemoryStore
from bucketcatalog.write.writer import Writer

from ...kit.world import MINUTE, World, bucket, names, obj, rows

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


def test_a_tag_of_the_version_of_a_maintainers_first_checkpoint_keeps_that_without_its_marker(world: World) -> None:
    """It lies where the checkpoints of tags lie, and is none of these, for it was written to become the horizon."""
    writer = world.writer("a")
    put(world, writer, "x")
    assert (
        prune(world).horizon is None
    )  # nothing is old enough; it writes a checkpoint of everyone, the first that this maintainer does
    (first,) = stored(world, ".ckpt")
    with world.writer("maintainer-1") as tagger:
        tagged = tagger.tag("first").version
    world.clock.tick(HOUR)
    put(world, writer, "y")
    checkpoint(world)
    world.clock.tick(2 * DAY)
    assert prune(world).tags == (), "there is one of its version"
    for _ in range(3):
        world.clock.tick(GRACE)
        prune(world)
        assert names(world.snapshot(version="first")) == names(world.snapshot(version=tagged)) == ["x"]
    assert first in stored(world) and not stored(world, first[-41:-5]), "readers of other versions do not meet it"
    assert list(world.catalog().verify(deep=True)) == []
    with world.writer("maintainer-1") as tagger:
        tagger.drop_tag("first")
    world.clock.tick(GRACE + 7 * DAY)
    assert first in [file.name for file in prune(world).files]


def test_a_checkpoint_of_a_tags_version_that_lies_after_the_horizon_keeps_its_marker(world: World) -> None:
    writer = world.writer("a")
    put(world, writer, "x")
    horizon = checkpoint(world)
    world.clock.tick(2 * DAY)
    put(world, writer, "y")
    with world.writer("maintainer-2") as maintainer:
        assert maintainer.checkpoint(scope="all") is not None
        maintainer.tag("second")
    (name,) = (name for name in stored(world, ".ckpt") if name.startswith("maintainer-2"))
    prune(world)
    world.clock.tick(GRACE)
    assert prune(world).horizon == horizon
    assert stored(world, name[-41:-5]), "it is the newest"
    assert names(world.snapshot(version="second")) == ["x", "y"]


@pytest.mark.parametrize("tags", [1, 12])
def test_the_checkpoints_of_all_tags_are_listed_at_once(monkeypatch: pytest.MonkeyPatch, tags: int) -> None:
    world = World.counting()
    monkeypatch.setattr("bucketcatalog.clock.now_us", world.clock)
    monkeypatch.setitem(Catalog.prune.__kwdefaults__ or {}, "clock", world.clock)
    store = world.store
    assert isinstance(store, Counting)
    with world.writer("a") as writer, world.writer("maintainer-2") as tagger:
        for number in range(tags):
            put(world, writer, f"x{number}")
            tagger.tag(f"t{number}")
        world.clock.tick(HOUR)
        put(world, writer, "y")
    checkpoint(world)
    world.clock.tick(2 * DAY)
    assert len(prune(world).tags) == tags
    world.clock.tick(GRACE)
    store.reset()
    assert prune(world).tags == ()
    first = f"maintainer-2/default/transactions/{0:020}/"
    assert store.names["list", first] == 1, "however many tags there are"


def keepers(result: PruneResult) -> dict[str, int]:
    return {each.keeper.value: each.files for each in result.kept}


def test_a_forced_prune_of_a_young_catalog_says_what_keeps_its_files(world: World) -> None:
    with world.writer("a") as writer, world.writer("maintainer-2") as tagger:
        for name in "xyz":
            put(world, writer, name)
            tagger.tag(name)
    done = prune(world, "0s", grace="0s", force=True)
    assert (done.files, done.waiting) == ((), ()) and done.needs_checkpoint
    found = keepers(done)
    assert found == {"newer": 1, "horizon": 3, "tag": 6, "head": 2, "listed": 5}, "the newest of all is the boundary"
    assert sum(found.values()) == len(stored(world))
    assert sum(each.bytes for each in done.kept) == sum(info.size for info in world.store.list(""))


@pytest.mark.parametrize(("options", "keeper"), [({"keep": 3}, "keep"), ({"older_than": "30d"}, "age")])
def test_the_policy_keeps_everything_where_it_lets_no_checkpoint_be_the_horizon(
    world: World, options: dict[str, Any], keeper: str
) -> None:
    old_history(world)
    checkpoint(world)
    for dry_run in (True, False):
        told = prune(world, **options, dry_run=dry_run)
        assert (told.waiting, told.horizon) == ((), None) and keepers(told) == {keeper: len(stored(world))}


def test_what_nobody_has_put_into_a_checkpoint_is_kept_for_that(world: World) -> None:
    with world.writer("a") as writer:
        put(world, writer, "x")
    told = prune(world, dry_run=True)
    assert told.needs_checkpoint and keepers(told) == {"checkpoint": 1}


def test_what_came_after_a_horizon_is_kept_by_the_policy_and_the_rest_by_what_it_is(world: World) -> None:
    old_history(world)
    stays = {"horizon": 3, "head": 1, "listed": 2}
    assert keepers(prune(world)) == {"newer": 7} | stays, "a commit of each writer, the next checkpoint, and what is about them"
    world.clock.tick(GRACE)
    done = prune(world)
    assert done.files and keepers(done) == {"age": 7} | stays and sum(keepers(done).values()) == len(stored(world))


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


def test_a_process_that_has_read_what_was_pruned_of_a_timeline_opens_and_continues_it(world: World) -> None:
    lasting = world.catalog()
    with world.writer("a") as writer:
        put(world, writer, "x")
        lasting.snapshot()
        put(world, writer, "y")
    world.clock.tick(HOUR)
    checkpoint(world, "maintainer-1")
    world.clock.tick(2 * DAY)
    with world.writer("a") as writer:
        put(world, writer, "z")
    prune(world)
    world.clock.tick(GRACE)
    assert "a/default/transactions/" + "0" * 20 in {file.name[:43] for file in prune(world).files}
    with world.writer("a", catalog=lasting) as writer:
        assert world.commit(writer, ("put", "objects", obj("later"))).revision == 3
    assert names(world.snapshot()) == ["later", "x", "y", "z"]


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


def test_a_damaged_checkpoint_of_a_maintainer_that_no_tag_has_stops_no_prune(world: World) -> None:
    kept = pruned_with_a_tag(world)
    checkpoint(world, "maintainer-3")
    (beside,) = [name for name in stored(world, ".ckpt") if name.startswith("maintainer-3/")]
    damage(world, beside)
    world.clock.tick(HOUR)
    world.catalog().repair(dry_run=False, writer="maintainer-1", clock=world.clock)
    with world.writer("a") as writer:
        put(world, writer, "z")
    world.clock.tick(HOUR)
    assert prune(world, "0s", grace="0s", force=True).done and {kept, beside} <= {*stored(world)}
    assert names(world.snapshot(version="early")) == ["x"]


def test_a_damaged_checkpoint_of_a_tag_stops_who_reads_that_tag_and_prunes_and_nobody_else(world: World) -> None:
    kept = pruned_with_a_tag(world)
    with world.writer("maintainer-2") as tagger:
        tagger.tag("late")
    world.clock.tick(HOUR)
    with world.writer("a") as writer:
        put(world, writer, "z")
    checkpoint(world)
    world.clock.tick(2 * DAY)
    prune(world)
    world.clock.tick(GRACE)
    assert prune(world).files
    (of_late,) = [name for name in stored(world, ".ckpt") if name.startswith("maintainer-1/") and name != kept]
    damage(world, of_late)
    assert names(world.snapshot(version="early")) == ["x"]
    with pytest.raises(CorruptionError, match=of_late):
        names(world.snapshot(version="late"))
    with world.writer("a") as writer:
        put(world, writer, "more")
    there = stored(world, ".seg")
    with pytest.raises(CorruptionError, match=of_late):
        prune(world, "0s", grace="0s", force=True)
    assert {*there} <= {*stored(world, ".seg")}
    with world.writer("maintainer-2") as tagger:
        tagger.drop_tag("late")
    assert prune(world, "0s", grace="0s", force=True).done
    assert names(world.snapshot(version="early")) == ["x"]


@pytest.mark.parametrize("held", ["rows", "changes", "log"])
def test_what_is_held_while_its_history_is_pruned_says_so_when_it_is_read(world: World, held: str) -> None:
    old_history(world)
    start, writer = world.snapshot().version, world.writer("a")
    with writer.transaction() as tx:  # so many that their blocks are read only when they are wanted
        tx.put("objects", pa.Table.from_pylist([obj(f"{number:05}") for number in range(20_000)]))
    snapshot, changes = world.snapshot(), world.catalog().changes(start=start)
    put(world, writer, "newest")
    world.clock.tick(HOUR)
    checkpoint(world)
    world.clock.tick(2 * DAY)
    put(world, writer, "last")
    prune(world)
    world.clock.tick(GRACE)
    assert prune(world).files
    with pytest.raises(HistoryPruned, match=r"\[PRUNED\] .*which is gone, lies before .*Next: "):
        (changes if held == "changes" else snapshot.scan("objects" if held == "rows" else held)).to_arrow()


def test_who_reads_on_is_warned_of_a_segment_that_is_gone(world: World) -> None:
    pruned_with_a_tag(world)
    own = [name for name in stored(world, ".seg") if name.startswith("compactor-1/")]
    for name in own:
        world.store.delete(name)
    snapshot = world.catalog().snapshot(ignore_corruption=True)
    with pytest.warns(CatalogWarning) as warned:
        assert names(snapshot) == []
    assert [str(w.message) for w in warned if own[0] in str(w.message) and "Left out: 2 rows of objects" in str(w.message)] != []


def test_a_tag_whose_transactions_were_pruned_is_not_cloned_and_nothing_is_written(world: World) -> None:
    pruned_with_a_tag(world)
    target, source = MemoryStore(clock=world.clock), world.catalog().database("default")
    there = stored(world)
    with world.writer("maintainer-2") as held:
        with pytest.raises(HistoryPruned, match="kept for a tag"):
            clone(source, held, target, None, "early", now=world.clock)
        assert (stored(world), list(target.list(""))) == (there, [])
        clone(source, held, target, None, None, now=world.clock)
    assert names(Catalog(target).snapshot()) == ["x", "y"]


def test_a_tag_whose_transactions_were_pruned_is_not_cloned_by_who_had_read_them_before(world: World) -> None:
    had_read = world.catalog()
    pruned_with_a_tag(world, had_read)
    target, there = MemoryStore(clock=world.clock), stored(world)
    with world.writer("maintainer-2", catalog=had_read) as held, pytest.raises(HistoryPruned, match="kept for a tag"):
        clone(had_read.database("default"), held, target, None, "early", now=world.clock)
    assert (stored(world), list(target.list(""))) == (there, [])


@pytest.mark.parametrize("lost", [False, True])
def test_who_had_read_the_horizons_checkpoint_deletes_nothing_by_it_once_it_is_gone(world: World, lost: bool) -> None:
    old_history(world)
    had_read = world.catalog()
    options: dict[str, Any] = {"dry_run": False, "writer": "maintainer-1"}
    assert had_read.prune("36h", **options).waiting != ()
    own, _ = own_checkpoint(world)
    world.clock.tick(GRACE)
    there = stored(world, ".txn")
    if lost:
        world.store.delete(own)
    else:
        damage(world, own)
    with pytest.raises(CorruptionError, match=own):
        had_read.prune("36h", **options)
    assert set(there) <= set(stored(world, ".txn"))


def test_who_had_read_a_checkpoint_that_was_damaged_since_makes_no_horizon_of_it(world: World) -> None:
    old_history(world)
    had_read = world.catalog()
    assert names(had_read.snapshot()) == EVERYTHING
    (own,) = stored(world, ".ckpt")
    damage(world, own)
    with pytest.raises(CorruptionError, match=own):
        had_read.prune("36h", dry_run=False, writer="maintainer-1")
    assert world.snapshot(version="a@0").view.horizon is None


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


def pruned_with_a_tag(world: World, had_read: Catalog | None = None) -> str:
    """A pruned catalog with a tag behind its horizon; returns the name of the checkpoint that is kept for the tag.

    It ``had_read`` the tag before.
    """
    with world.writer("a") as writer, world.writer("maintainer-2") as tagger:
        put(world, writer, "x")
        tagger.tag("early")
        if had_read is not None:
            names(had_read.snapshot(version="early"))
        world.clock.tick(HOUR)
        put(world, writer, "y")
    world.clock.tick(HOUR)
    checkpoint(world)
    world.clock.tick(2 * DAY)
    prune(world)
    world.clock.tick(GRACE)
    assert prune(world).files
    (kept,) = [name for name in stored(world, ".ckpt") if name.startswith("maintainer-1/")]
    return kept


def verified(world: World) -> list[Finding]:
    return list(world.catalog().verify(deep=True))


def damage(world: World, name: str) -> None:
    data = bytearray(world.store.get(name))
    data[len(data) // 3] ^= 4
    world.store.put(name, bytes(data))


def test_verify_says_nothing_of_a_pruned_catalog_with_a_tag_that_is_whole(world: World) -> None:
    pruned_with_a_tag(world)
    assert verified(world) == []


def test_verify_finds_a_damaged_checkpoint_of_a_tag_and_repair_names_it_as_lost(world: World) -> None:
    kept = pruned_with_a_tag(world)
    damage(world, kept)
    with pytest.raises(CorruptionError, match=kept):
        names(world.snapshot(version="early"))
    errors = [f for f in verified(world) if f.severity.value == "error"]
    assert [(f.code, f.file, f.held) for f in errors] == [("DAMAGED_CHECKPOINT", kept, ())]
    made = world.catalog().repair(dry_run=False, writer="maintainer-1", clock=world.clock)
    assert made.actions == () and [f.file for f in made.lost] == [kept]


def kept_for_a_tag(world: World, ending: str) -> str:
    """The one file that a prune has written for the tag ``early``, whose transactions are still there."""
    with world.writer("a") as writer, world.writer("maintainer-2") as tagger:
        put(world, writer, "x")
        tagger.tag("early")
        world.clock.tick(HOUR)
        put(world, writer, "y")
    world.clock.tick(HOUR)
    checkpoint(world)
    world.clock.tick(2 * DAY)
    assert prune(world).tags != ()
    (kept,) = [name for name in stored(world, ending) if name.startswith("maintainer-1/")]
    return kept


def test_a_damaged_checkpoint_of_a_tag_is_needed_by_nobody_while_its_transactions_are_there(world: World) -> None:
    kept = kept_for_a_tag(world, ".ckpt")
    damage(world, kept)
    assert names(world.snapshot(version="early")) == ["x"]
    assert {f.severity.value for f in verified(world)} == {"info"}
    assert world.catalog().repair(writer="maintainer-1", clock=world.clock).lost == ()
    world.clock.tick(GRACE)
    assert prune(world).files != () and names(world.snapshot(version="early")) == ["x"]
    assert {f.severity.value for f in verified(world)} == {"info"}


def test_a_tags_checkpoint_whose_segments_are_lost_is_taken_only_where_nothing_else_can_be_read(world: World) -> None:
    lost = kept_for_a_tag(world, ".seg")
    world.store.delete(lost)
    assert names(world.snapshot(version="early")) == ["x"]
    world.clock.tick(GRACE)
    assert prune(world).files != () and names(world.snapshot(version="early")) == ["x"]
    for name in stored(world, ".seg"):
        if name.startswith("maintainer-1/"):
            world.store.delete(name)
    with pytest.raises(MissingObject, match="maintainer-1/default/segments/"):
        names(world.snapshot(version="early"))


def test_a_tag_after_the_horizon_is_read_and_kept_without_the_horizons_checkpoint_while_its_transactions_are_there(
    world: World,
) -> None:
    with world.writer("a") as writer:
        put(world, writer, "x")
        world.clock.tick(HOUR)
        checkpoint(world)
        world.clock.tick(2 * DAY)
        prune(world)
        put(world, writer, "y")
        with world.writer("maintainer-2") as tagger:
            tagger.tag("between")
        put(world, writer, "z")
    own = own_checkpoint(world)
    checkpoint(world, "compactor-2")
    for name in own:
        world.store.delete(name)
    assert names(world.snapshot(version="between")) == ["x", "y"]
    world.clock.tick(2 * DAY)
    for _ in range(2):
        prune(world)
        world.clock.tick(GRACE)
    assert prune(world).published is not None
    assert names(world.snapshot(version="between")) == ["x", "y"] and names(world.snapshot()) == ["x", "y", "z"]
    assert "a/default/transactions/" + "0" * 20 not in {name.rpartition("/")[0] for name in stored(world, ".txn")}


def test_without_the_horizons_checkpoint_tags_are_read_and_what_lies_behind_is_refused(world: World) -> None:
    with world.writer("a") as writer:
        put(world, writer, "w")
    early = world.snapshot().version
    pruned_with_a_tag(world)
    with world.writer("a") as writer:
        put(world, writer, "z")
    checkpoint(world)
    for name in own_checkpoint(world):
        world.store.delete(name)
    assert names(world.snapshot(version="early")) == ["w", "x"]
    for options in ({"version": early}, {"version": "a@0"}, {"timestamp": "2023-11-15"}):
        with pytest.raises(HistoryPruned):
            world.snapshot(**options)
    assert names(world.snapshot()) == ["w", "x", "y", "z"]


def test_a_tags_checkpoint_that_is_gone_is_named_by_its_place_by_readers_and_verify(world: World) -> None:
    world.store.delete(pruned_with_a_tag(world))
    place = "maintainer-1/default/transactions/" + "0" * 20
    with pytest.raises(MissingObject, match=f"{place} .*'early'") as missed:
        names(world.snapshot(version="early"))
    assert "copy of the store" in missed.value.next_step and "early --drop" in missed.value.message
    assert [(f.code, f.file) for f in verified(world) if f.severity.value == "error"] == [("MISSING_CHECKPOINT", place)]
    made = world.catalog().repair(writer="maintainer-1", clock=world.clock)
    assert made.actions == () and [f.file for f in made.lost] == [place]
    with world.writer("maintainer-2") as tagger:
        tagger.drop_tag("early")
    assert "error" not in {f.severity.value for f in verified(world)}


def test_a_tag_without_a_checkpoint_of_its_own_is_no_finding_while_its_transactions_are_there(world: World) -> None:
    old_history(world)
    prune(world)
    with world.writer("maintainer-2") as tagger:
        tagger.tag("late")
    with world.writer("a") as writer:
        put(world, writer, "more")
    assert verified(world) == []


def test_what_was_pruned_names_a_tag_to_read_where_that_helps(world: World) -> None:
    pruned_with_a_tag(world)
    for read in (lambda: world.snapshot(version="a@0"), lambda: world.catalog().diff(start="a@0")):
        with pytest.raises(HistoryPruned) as error:
            read()
        assert "'early'" in error.value.next_step
    for options in ({"start": "a@0"}, {"start": "early"}, {}):
        with pytest.raises(HistoryPruned) as error:
            world.catalog().changes(**options)
        assert "tag" not in error.value.next_step
    with world.writer("maintainer-2") as tagger:
        tagger.drop_tag("early")
    with pytest.raises(HistoryPruned) as error:
        world.snapshot(version="a@0")
    assert "tag" not in error.value.next_step


def test_verify_finds_damaged_segments_of_a_tags_checkpoint(world: World) -> None:
    pruned_with_a_tag(world)
    (segment,) = [name for name in stored(world, ".seg") if name.startswith("maintainer-1/")]
    damage(world, segment)
    assert {(f.code, f.file, f.severity.value) for f in verified(world)} == {("DAMAGED_BLOCK", segment, "error")}


def test_verify_calls_the_checkpoint_of_a_dropped_tag_unmarked(world: World) -> None:
    kept = pruned_with_a_tag(world)
    with world.writer("maintainer-2") as tagger:
        tagger.drop_tag("early")
    for _ in range(2):
        assert ("UNMARKED_CHECKPOINT", kept) in {(f.code, f.file) for f in verified(world)}
        assert {f.severity.value for f in verified(world)} == {"info"}
        damage(world, kept)  # which nobody meets any more


def own_checkpoint(world: World) -> list[str]:
    """The names of the horizon's own checkpoint and of its marker."""
    horizon = world.snapshot().view.horizon
    assert horizon is not None and horizon.boundary.checkpoint is not None
    uuid = horizon.boundary.checkpoint.uuid.hex()
    return sorted((name for name in stored(world) if uuid in name.replace("-", "")), key=lambda name: "newest" in name)


@pytest.mark.parametrize("all_of_its_maker", [False, True])
def test_verify_finds_that_the_horizons_own_checkpoint_is_gone_with_its_marker(world: World, all_of_its_maker: bool) -> None:
    pruned_with_a_tag(world)
    own, marker = own_checkpoint(world)
    for name in stored(world) if all_of_its_maker else (own, marker):
        if name in (own, marker) or name.startswith("compactor-1/"):
            world.store.delete(name)
    with pytest.raises(CorruptionError):
        names(world.snapshot())
    assert ("MISSING_CHECKPOINT", own, "error") in {(f.code, f.file, f.severity.value) for f in verified(world)}
    made = world.catalog().repair(writer="maintainer-1", clock=world.clock)
    assert own in [f.file for f in made.lost] or "rebuild" in [action.what for action in made.actions]


def test_verify_looks_at_the_horizons_own_checkpoint_without_its_marker(world: World) -> None:
    pruned_with_a_tag(world)
    own, marker = own_checkpoint(world)
    world.store.delete(marker)
    assert names(world.snapshot()) == ["x", "y"]
    assert [(f.code, f.file) for f in verified(world)] == [("UNMARKED_CHECKPOINT", own)]
    damage(world, own)
    assert ("DAMAGED_CHECKPOINT", own, "error") in {(f.code, f.file, f.severity.value) for f in verified(world)}


def test_verify_remarks_on_a_horizons_checkpoint_that_is_gone_where_another_reaches_it(world: World) -> None:
    pruned_with_a_tag(world)
    with world.writer("a") as writer:
        put(world, writer, "z")
    checkpoint(world)
    own, marker = own_checkpoint(world)
    for name in (own, marker):
        world.store.delete(name)
    assert names(world.snapshot()) == ["x", "y", "z"]
    assert {(f.code, f.severity.value) for f in verified(world) if f.file == own} == {("UNREADABLE_HISTORY", "info")}
    assert {f.severity.value for f in verified(world)} == {"info"}


@pytest.mark.parametrize("late", [False, True])
def test_verify_finds_what_is_gone_from_the_floor_on_and_heads_before_it(world: World, late: bool) -> None:
    writers = [world.writer("a"), world.writer("b")]
    for number in range(3):
        for writer in writers:
            put(world, writer, f"{writer.id}{number}")
    world.clock.tick(HOUR)
    if late:
        checkpoint(world, "compactor-2")  # so that the horizon's checkpoint knows that the heads are old
        world.clock.tick(HOUR)
        put(world, world.writer("c"), "c0")
    checkpoint(world)
    world.clock.tick(2 * DAY)
    put(world, writers[1], "b3")
    prune(world)
    world.clock.tick(GRACE)
    assert prune(world).files
    horizon = world.snapshot().view.horizon
    assert horizon is not None and horizon.floor("a") == horizon.floor("b") == (3 if late else 2)
    assert verified(world) == []
    last = [name for name in stored(world, ".txn") if name.startswith("a/")][-1]
    data = world.store.get(last)
    world.store.delete(last)
    assert [(f.code, f.file, str(f.held[0])) for f in verified(world)] == [("MISSING_TRANSACTION", last, "revision 2 of a")]
    world.store.put(last, data)
    assert [f for f in verified(world) if f.severity.value == "error"] == []


def test_a_writer_whose_last_transaction_is_gone_gives_no_revision_a_second_time(world: World) -> None:
    pruned_with_a_tag(world)
    (last,) = [name for name in stored(world, ".txn") if name.startswith("a/")]
    data = world.store.get(last)
    world.store.delete(last)
    before = stored(world)
    with pytest.raises(MissingObject, match=last):
        world.writer("a")
    assert stored(world) == before
    world.store.put(last, data)
    with world.writer("a") as writer:
        put(world, writer, "z")
    assert names(world.snapshot()) == ["x", "y", "z"]


def test_segments_of_a_lost_checkpoint_are_left_for_repair_which_makes_it_again(world: World) -> None:
    pruned_with_a_tag(world)
    for name in own_checkpoint(world):
        world.store.delete(name)
    (left,) = [f for f in verified(world) if f.code == "UNREFERENCED_SEGMENT"]
    assert left.remedy.startswith("Leave it to prune") and "made again from it" in left.remedy
    with pytest.raises(CorruptionError):
        prune(world)
    made = world.catalog().repair(dry_run=False, writer="maintainer-1", clock=world.clock)
    assert [action.what for action in made.actions if action.done] == ["rebuild"]
    assert names(world.snapshot()) == ["x", "y"]


def test_the_remedies_for_files_that_something_may_rest_on_invite_nobody_to_delete_them() -> None:
    for code in ("UNMARKED_CHECKPOINT", "UNREFERENCED_SEGMENT"):
        assert SORTS[code].remedy.startswith("Leave it to prune:")


class Pruned:
    """Merges here, once somebody has pruned."""

    most = 1

    def __init__(self, world: World, **options: Any) -> None:
        self.world = world
        self.options = options
        self.deleted: list[str] = []

    def run(self, tasks: Sequence[MergeTask]) -> list[Merged]:
        merged = [run_task(self.world.store, task) for task in tasks]
        self.deleted = [file.name for file in prune(self.world, **self.options).files]
        return merged


def before_a_checkpoint(world: World, scope: Any) -> tuple[Writer, list[str]]:
    """A writer whose own checkpoint, or one of all, lies within a later one of all, and that has committed since; the names there are."""
    writer = world.writer("a")
    old = [f"{number:05}" for number in range(3000)]
    put(world, writer, *old)
    with world.writer("b") as other:
        put(world, other, "b1")
        assert writer.checkpoint(scope=scope) is not None
        world.clock.tick(HOUR)
        put(world, other, "b2")
    checkpoint(world)
    world.clock.tick(2 * DAY)
    return writer, [*old, "b1", "b2"]


@pytest.mark.parametrize("scope", ["own", "all"])
def test_a_checkpoint_does_not_build_on_one_that_is_about_to_be_deleted(world: World, scope: Any) -> None:
    writer, expected = before_a_checkpoint(world, scope)
    prune(world)
    world.clock.tick(GRACE)
    put(world, writer, "new")
    workers = Pruned(world)
    made = writer.checkpoint(scope=scope, workers=workers)
    assert made is not None and made.reused_bytes
    assert {name.rpartition(".")[2] for name in workers.deleted} >= {"seg", "ckpt"}, "what it would have started from is gone"
    assert sorted(names(world.snapshot())) == sorted([*expected, "new"])
    put(world, writer, "newer")
    assert writer.checkpoint(full=True) is not None
    assert sorted(names(world.snapshot())) == sorted([*expected, "new", "newer"])
    assert [finding for finding in world.catalog().verify() if finding.severity.value == "error"] == []


@pytest.mark.parametrize("scope", ["own", "all"])
@pytest.mark.parametrize("options", [{}, {"grace": "0s", "force": True}])
def test_a_checkpoint_is_not_published_where_what_it_builds_on_may_go_since_its_look(
    world: World, scope: Any, options: dict[str, Any]
) -> None:
    writer, expected = before_a_checkpoint(world, scope)
    put(world, writer, "new")
    with pytest.raises(CheckpointTooLate, match="horizon"):
        writer.checkpoint(scope=scope, workers=Pruned(world, **options))
    assert sorted(names(world.snapshot())) == sorted([*expected, "new"])
    assert writer.checkpoint(scope=scope) is not None
    world.clock.tick(GRACE)
    prune(world)
    assert sorted(names(world.snapshot())) == sorted([*expected, "new"])
    assert [finding for finding in world.catalog().verify() if finding.severity.value == "error"] == []


def test_a_horizon_that_is_published_meanwhile_keeps_no_checkpoint_back_that_stays(world: World) -> None:
    writer, expected = before_a_checkpoint(world, "own")
    put(world, writer, "new")
    assert writer.checkpoint() is not None
    put(world, writer, "newer")
    made = writer.checkpoint(workers=Pruned(world))
    assert made is not None and made.reused_bytes
    assert sorted(names(world.snapshot())) == sorted([*expected, "new", "newer"])


def test_a_tag_that_is_given_again_after_a_prune_is_moved_only_where_that_is_wished(world: World) -> None:
    with world.writer("a") as writer, world.writer("maintainer-2") as maintainer:
        put(world, writer, "x")
        for number in range(5):
            world.clock.tick(HOUR)
            maintainer.tag(f"v{number}")
    checkpoint(world)
    world.clock.tick(2 * DAY)
    prune(world)
    world.clock.tick(GRACE)
    assert [file for file in prune(world).files if file.name.startswith("maintainer-2/") and file.kind.value == "transaction"]
    named = world.snapshot(version="v0").cut
    with world.writer("maintainer-2") as maintainer:
        with pytest.raises(TagExists):
            maintainer.tag("v0")
        assert maintainer.tag("v0", version=str(named)).version == str(named)
        assert maintainer.tag("v0", replace=True).version == maintainer.tag("v0").version != str(named)
    assert names(world.snapshot(version="v0")) == ["x"]
