"""What tags keep from a collection: whatever was live in the cut of one, across forks, strays and horizons."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bucketcatalog.maintain.gc.judge import Pins
from bucketcatalog.write.writer import Writer

from ....kit.collecting import Yard, thing
from ....kit.world import DAY, HOUR, MINUTE, bucket, names, obj


def test_a_tag_keeps_tombstones_and_data_until_it_is_dropped(yard: Yard) -> None:
    writer = yard.world.writer()
    yard.put(writer, thing("a"), thing("b"))
    with yard.world.writer("maintainer-1") as held:
        held.tag("release")
    yard.world.commit(writer, ("put", "objects", thing("b", data="b2")))
    yard.world.commit(writer, ("delete", "objects", obj("a")))
    yard.world.commit(writer, ("put", "objects", thing("c", data="a")), ("delete", "objects", obj("c")))
    yard.world.clock.tick(25 * HOUR)
    done = yard.collected()
    assert (done.tagged, done.garbage) == (2, 0) and yard.has("a") and yard.has("b")
    with yard.world.writer("maintainer-1") as held:
        held.drop_tag("release")
    yard.collected()
    assert not yard.has("a") and not yard.has("b")


def test_a_tag_given_before_a_version_was_put_or_after_it_ended_keeps_nothing(yard: Yard) -> None:
    writer = yard.world.writer()
    with yard.world.writer("maintainer-1") as held:
        yard.world.commit(writer, ("put", "buckets", bucket("b")))
        held.tag("before")
        yard.put(writer, thing("a"))
        yard.world.commit(writer, ("delete", "objects", obj("a")))
        held.tag("after")
    yard.world.clock.tick(25 * HOUR)
    assert (yard.collected().deleted, yard.has("a")) == (1, False)


def prune(yard: Yard, writer: Writer) -> None:
    """All that there is so far lies behind the horizon then, and its transactions are gone."""
    world = yard.world
    world.clock.tick(HOUR)
    with world.writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all")
    world.clock.tick(2 * DAY)
    yard.put(writer, thing("later"))
    world.catalog().prune("36h", dry_run=False, writer="maintainer-1", clock=world.clock)
    world.clock.tick(DAY + MINUTE)
    assert world.catalog().prune("36h", dry_run=False, writer="maintainer-1", clock=world.clock).files


def test_a_tag_on_one_branch_keeps_what_the_other_ended_when_the_fork_lies_behind_the_horizon(yard: Yard) -> None:
    yard.put(yard.world.writer(), thing("a"))
    one, other = yard.world.writer(), yard.world.writer()
    yard.put(one, thing("b"))
    with yard.world.writer("maintainer-1") as held:
        held.tag("release")
    yard.world.commit(other, ("delete", "objects", obj("a")))
    yard.put(yard.world.writer(), thing("c"))  # joins the branches
    prune(yard, yard.world.writer())
    snapshot = yard.world.snapshot()
    assert snapshot.view.forks == () and names(snapshot) == ["b", "c", "later"]
    assert (yard.collected().tagged, yard.has("a")) == (1, True)
    assert names(yard.world.snapshot(version="release")) == ["a", "b"]


def test_a_tag_keeps_what_a_stray_ended_that_arrived_when_its_siblings_were_pruned(yard: Yard) -> None:
    world = yard.world
    yard.put(world.writer(), thing("a"))
    one, other = world.writer(), world.writer()
    yard.put(one, thing("b"))
    there = {info.name for info in world.store.list("")}
    world.commit(other, ("delete", "objects", obj("a")))
    (stray,) = {info.name for info in world.store.list("")} - there
    data = world.store.get(stray)
    world.store.delete(stray)  # it arrives only much later
    yard.put(one, thing("c"))
    prune(yard, one)
    with world.writer("maintainer-1") as held:
        held.tag("release")
    world.store.put(stray, data)
    with world.writer("compactor-2") as compactor:
        compactor.checkpoint(scope="all")  # which finds it
    assert names(world.snapshot()) == ["b", "c", "later"] and world.snapshot().view.forks == ()
    assert (yard.collected().tagged, yard.has("a")) == (1, True)
    assert names(world.snapshot(version="release")) == ["a", "b", "c", "later"]


@pytest.mark.filterwarnings("ignore::bucketcatalog.errors.CatalogWarning")
def test_a_tag_keeps_what_a_branch_ended_that_arrived_beside_covered_transactions_that_nobody_names(yard: Yard) -> None:
    world = yard.world
    yard.put(world.writer(), thing("a"))
    one, other = world.writer(), world.writer()
    there = {info.name for info in world.store.list("")}
    world.commit(other, ("delete", "objects", obj("a")))
    yard.put(other, thing("x"))
    yard.put(other, thing("y"))
    branch = {info.name: world.store.get(info.name) for info in world.store.list("") if info.name not in there}
    for name in branch:
        world.store.delete(name)  # they arrive only later
    yard.put(one, thing("b"))
    yard.put(one, thing("c"))
    for compactor in ("compactor-1", "compactor-2"):
        world.clock.tick(HOUR)
        with world.writer(compactor) as held:
            held.checkpoint(scope="all")
    with world.writer("maintainer-1") as held:
        held.tag("release")
    for name, data in branch.items():
        world.store.put(name, data)
    snapshot = world.snapshot()
    assert names(snapshot) == ["b", "c", "x", "y"] and 1 not in {fork.revision for fork in snapshot.view.forks}
    world.clock.tick(25 * HOUR)
    assert (yard.collected().tagged, yard.has("a")) == (1, True)
    assert names(world.snapshot(version="release")) == ["a", "b", "c"]


def test_of_what_a_checkpoint_names_as_a_branch_no_tag_is_certain(yard: Yard) -> None:
    world = yard.world
    yard.put(world.writer(), thing("a"))
    one, other = world.writer(), world.writer()
    yard.put(one, thing("b"))
    yard.put(other, thing("c"))
    yard.put(world.writer(), thing("d"))  # joins the branches
    for _ in range(2):
        world.clock.tick(HOUR)
        with world.writer("compactor-1") as compactor:
            compactor.checkpoint(scope="all")
            yard.put(world.writer(), thing("e"))
    view = world.snapshot().view
    (checkpoint,) = view.checkpoints
    coverage = checkpoint.coverage["w"]
    assert len(coverage.branches) == 2
    alone = replace(coverage, branches=frozenset([min(coverage.branches)]))
    found = replace(view, checkpoints=(replace(checkpoint, coverage={"w": alone}),))
    assert Pins.of(found).forked.places == {("w", 1)}, "another checkpoint may cover its sibling without a name"


def test_a_plain_writers_tag_keeps_data_for_a_while(yard: Yard) -> None:
    writer = yard.world.writer()
    yard.put(writer, thing("a"))
    writer.tag("mine")
    yard.world.commit(writer, ("delete", "objects", obj("a")))
    yard.world.clock.tick(25 * HOUR)
    assert yard.collected().tagged == 1 and yard.collected(pin_age="2d").tagged == 1
    yard.world.clock.tick(6 * DAY)
    assert yard.collect(pin_age="30d").tagged == 1 and yard.has("a")
    assert yard.collect().purged == 1 and not yard.has("a")


def test_of_a_plain_writers_tags_only_the_latest_keep_data(yard: Yard) -> None:
    writer = yard.world.writer()
    yard.put(writer, thing("a"))
    writer.tag("first")
    yard.world.commit(writer, ("delete", "objects", obj("a")))
    for number in range(16):
        yard.world.clock.tick()
        writer.tag(f"t{number}")
    yard.world.clock.tick(25 * HOUR)
    assert yard.collected().purged == 1 and not yard.has("a")
