"""Damaged checkpoints stop a prune where something may rest on them, and who reads through them, and nobody else."""

from __future__ import annotations

from typing import Any

import pytest

from bucketcatalog import CorruptionError, HistoryPruned, MissingObject

from ....kit.pruning import (
    EVERYTHING,
    GRACE,
    checkpoint,
    damage,
    old_history,
    own_checkpoint,
    prune,
    pruned_with_a_tag,
    put,
    verified,
)
from ....kit.world import DAY, HOUR, World, names, stored

pytestmark = pytest.mark.usefixtures("one_clock")


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
    there = stored(world, ".parquet")
    with pytest.raises(CorruptionError, match=of_late):
        prune(world, "0s", grace="0s", force=True)
    assert {*there} <= {*stored(world, ".parquet")}
    with world.writer("maintainer-2") as tagger:
        tagger.drop_tag("late")
    assert prune(world, "0s", grace="0s", force=True).done
    assert names(world.snapshot(version="early")) == ["x"]


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
    with pytest.raises(HistoryPruned):
        world.catalog().changes(start="early")
    assert {f.severity.value for f in verified(world)} == {"info"}
    assert world.catalog().repair(writer="maintainer-1", clock=world.clock).lost == ()
    world.clock.tick(GRACE)
    assert prune(world).files != () and names(world.snapshot(version="early")) == ["x"]
    assert {f.severity.value for f in verified(world)} == {"info"}


def test_a_tags_checkpoint_whose_segments_are_lost_is_taken_only_where_nothing_else_can_be_read(world: World) -> None:
    lost = kept_for_a_tag(world, ".parquet")
    world.store.delete(lost)
    assert names(world.snapshot(version="early")) == ["x"]
    world.clock.tick(GRACE)
    assert prune(world).files != () and names(world.snapshot(version="early")) == ["x"]
    for name in stored(world, ".parquet"):
        if name.startswith("maintainer-1/"):
            world.store.delete(name)
    with pytest.raises(MissingObject, match="maintainer-1/default/segments/"):
        names(world.snapshot(version="early"))


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
