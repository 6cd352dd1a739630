"""What a prune deletes and when, which checkpoint becomes its horizon, and by whose word the rest is kept."""

from __future__ import annotations

from typing import Any

import pytest

from bucketcatalog import InvalidOption
from bucketcatalog.maintain.prune import PruneResult

from ....kit.pruning import EVERYTHING, GRACE, checkpoint, old_history, prune, put
from ....kit.world import DAY, HOUR, MINUTE, World, bucket, names, rows, stored

pytestmark = pytest.mark.usefixtures("one_clock")


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


def test_a_dry_run_without_a_grace_period_tells_what_the_run_deletes_at_once(world: World) -> None:
    old_history(world)
    options: dict[str, Any] = {"grace": "0s", "force": True}
    told, done = prune(world, **options, dry_run=True), prune(world, **options)
    assert told.files == done.files != () and told.waiting == done.waiting == ()
    world.clock.tick(2 * DAY)
    checkpoint(world)
    told, done = prune(world, "0s", **options, dry_run=True), prune(world, "0s", **options)
    assert set(told.files) == set(done.files) != set() and told.waiting == done.waiting == ()


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
    world.clock.tick(HOUR)  # nobody can come beside what lies before the last any more
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


def test_what_repair_has_dropped_becomes_no_horizon(world: World) -> None:
    with world.writer("a") as writer:
        put(world, writer, "x")
        checkpoint(world)
        for name in stored(world, ".parquet"):
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
