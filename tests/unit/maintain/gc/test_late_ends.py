"""What arrives after a boundary frees nothing by it, whatever commit time it has: neither data, nor the rows of a parent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from bucketcatalog.format.definitions import core_tables
from bucketcatalog.maintain.gc.boundaries import KnownBoundaries, grace_of
from bucketcatalog.write.writer import Writer

from ....kit import collecting
from ....kit.collecting import Yard, an_id, dead, thing
from ....kit.world import BUCKET, DAY, HOUR, MINUTE, OWNER, World, bucket, names, obj


def held_back(world: World, writer: Writer, *calls: tuple[Any, ...]) -> Callable[[], None]:
    """A commit that only arrives when it is called for: as if it had been stamped then with a time of now."""
    there = {info.name for info in world.store.list("")}
    world.commit(writer, *calls)
    (name,) = {info.name for info in world.store.list("")} - there
    data = world.store.get(name)
    world.store.delete(name)
    return lambda: world.store.put(name, data)


def checkpointed(world: World) -> None:
    with world.writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all")


@pytest.mark.parametrize("is_checkpointed", [False, True])
def test_a_delete_from_before_the_boundary_that_arrives_after_it_frees_nothing_until_the_next_one(
    yard: Yard, is_checkpointed: bool
) -> None:
    writer = yard.world.writer()
    yard.put(writer, thing("live"))
    arrives = held_back(yard.world, yard.world.writer("mallory"), ("delete", "objects", obj("live")))
    dead(yard, "a")
    first = yard.collect()
    arrives()
    if is_checkpointed:
        checkpointed(yard.world)
    yard.world.clock.tick(7 * HOUR)
    done = yard.collect()
    assert (done.boundary, done.purged, done.waiting) == (first.published, 1, 2) and yard.has("live") and not yard.has("a")
    assert done.published, "the next boundary has seen it"
    yard.world.clock.tick(7 * HOUR)
    assert yard.collect().purged == 1 and not yard.has("live")


def test_a_put_from_before_the_boundary_that_arrives_after_it_frees_nothing_though_it_was_replaced_long_ago(yard: Yard) -> None:
    arrives = held_back(yard.world, yard.world.writer("mallory"), ("put", "objects", thing("a", data="new")))
    yard.put(yard.world.writer(), thing("a"))
    yard.data.add((OWNER, BUCKET, an_id("new")))  # somebody is about to name it
    dead(yard, "other")
    yard.collect()
    yard.world.clock.tick(7 * HOUR)
    arrives()
    done = yard.collect()
    assert done.purged == 1 and yard.has("new") and yard.has("a")


def test_an_end_that_an_earlier_one_overtakes_waits_for_the_next_boundary(yard: Yard) -> None:
    yard.put(yard.world.writer(), thing("a"))
    arrives = held_back(yard.world, yard.world.writer("mallory"), ("delete", "objects", obj("a")))
    yard.world.commit(yard.world.writer(), ("delete", "objects", obj("a")))
    yard.world.clock.tick(25 * HOUR)
    yard.collect()
    arrives()
    yard.world.clock.tick(7 * HOUR)
    assert yard.collect().purged == 0 and yard.has("a")
    yard.world.clock.tick(7 * HOUR)
    assert yard.collect().purged == 1


@pytest.mark.filterwarnings("ignore::bucketcatalog.errors.CatalogWarning")
def test_of_a_fork_the_branch_that_was_there_counts_and_the_one_that_arrived_later_does_not(yard: Yard) -> None:
    world = yard.world
    yard.put(world.writer(), thing("a"), thing("b"))
    one, other = world.writer(), world.writer()
    arrives = held_back(world, other, ("delete", "objects", obj("b")))
    world.commit(one, ("delete", "objects", obj("a")))
    world.commit(one, ("put", "buckets", bucket("later")))
    world.clock.tick(25 * HOUR)
    yard.collect()
    arrives()
    world.clock.tick(7 * HOUR)
    assert yard.collect().purged == 1 and yard.has("b") and not yard.has("a")
    world.clock.tick(7 * HOUR)
    assert yard.collect().purged == 1 and not yard.has("b")


def test_a_boundary_whose_transaction_is_gone_is_used_no_more_and_the_next_one_is_published(yard: Yard) -> None:
    dead(yard, "a")
    first = yard.collect()
    (boundary,) = KnownBoundaries.of(yard.world.snapshot().view).entries
    with yard.world.writer("maintainer-1") as held:
        held.tag("more")  # nobody is to miss the last transaction of a timeline
    checkpointed(yard.world)
    (name,) = [
        info.name for info in yard.world.store.list("maintainer-1/") if boundary.stamp[3].hex() in info.name.replace("-", "")
    ]
    yard.world.store.delete(name)
    yard.world.clock.tick(7 * HOUR)
    done = yard.collect()
    assert (done.boundary, done.purged) == (0, 0) and done.published > first.published and yard.has("a")
    yard.world.clock.tick(7 * HOUR)
    assert yard.collect().purged == 1


def test_what_has_been_waited_out_is_gone_by_while_the_next_boundary_waits(yard: Yard) -> None:
    writer = dead(yard, "a")
    yard.collect()
    yard.put(writer, thing("b"))
    yard.world.commit(writer, ("delete", "objects", obj("b")))
    yard.world.clock.tick(25 * HOUR)
    yard.refuses = {an_id("a")}
    assert yard.collect().published and yard.has("a")
    yard.refuses = set()
    done = yard.collect()
    assert (done.purged, done.published) == (1, 0) and not yard.has("a") and yard.has("b")


def test_a_bucket_whose_end_arrives_after_the_boundary_is_not_reaped_by_it(world: World) -> None:
    writer = world.writer()
    world.commit(writer, ("put", "buckets", [bucket("cats", id=BUCKET), bucket("dogs", id=an_id("dogs"))]))
    world.commit(writer, ("put", "objects", [obj("a"), obj("dog", bucket_id=an_id("dogs"))]))
    arrives = held_back(world, world.writer("mallory"), ("delete", "buckets", bucket("cats")))
    world.commit(writer, ("delete", "buckets", bucket("dogs")))
    world.clock.tick(25 * HOUR)
    assert collecting.reap(world).published
    arrives()
    world.clock.tick(7 * HOUR)
    done = collecting.reap(world)
    assert (done.rows["objects"], done.parents) == (1, 1) and names(world.snapshot()) == ["a"] and done.published
    world.clock.tick(7 * HOUR)
    assert collecting.reap(world).rows["objects"] == 1 and names(world.snapshot()) == []


def test_reaping_publishes_nothing_while_a_boundary_waits_or_no_parent_has_ended(world: World) -> None:
    writer = world.writer()
    world.commit(writer, ("put", "buckets", bucket("cats", id=BUCKET)), ("put", "objects", obj("a")))
    assert collecting.reap(world).published == 0
    world.commit(writer, ("delete", "buckets", bucket("cats")))
    world.clock.tick(25 * HOUR)
    first = collecting.reap(world)
    again = collecting.reap(world)
    assert first.published and (again.published, again.usable_from) == (0, first.usable_from)
    world.clock.tick(7 * HOUR)
    done = collecting.reap(world)
    assert (done.boundary, done.rows["objects"], done.published) == (first.published, 1, 0)


def test_a_forced_reaping_waits_for_nobody(world: World) -> None:
    writer = world.writer()
    world.commit(writer, ("put", "buckets", bucket("cats", id=BUCKET)), ("put", "objects", obj("a")))
    world.commit(writer, ("delete", "buckets", bucket("cats")))
    world.clock.tick(7 * MINUTE)
    assert collecting.reap(world, older_than="0s", force=True).rows["objects"] == 1


@pytest.mark.parametrize(("given", "grace"), [(0, DAY), (60, DAY), (2 * 86_400, 2 * DAY)])
def test_a_tables_own_retention_counts_only_where_it_is_longer(given: int, grace: int) -> None:
    assert grace_of(replace(core_tables()["objects"], tombstone_retention_seconds=given), DAY) == grace


def test_a_plain_writers_checkpoint_tells_a_collection_nothing(yard: Yard) -> None:
    dead(yard, "a").checkpoint()
    assert yard.world.snapshot().view.checkpoints
    (name,) = [info.name for info in yard.world.store.list("") if info.name.endswith(".ckpt")]
    yard.world.store.put(name, b"anything")
    assert yard.collected().purged == 1 and not yard.has("a")
