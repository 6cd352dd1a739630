"""Whose word gets data in the catalog deleted: its own writer's, a compactor's and a maintainer's; anybody else's row goes without it."""

from __future__ import annotations

import pytest

from bucketcatalog.maintain.gc.collect import Collected
from bucketcatalog.write.writer import Writer

from ....kit.world import HOUR, World, rows, stored

FILES = "iox.parquet_files"
PATH = "w/default/data/p/t/chunk.parquet"


@pytest.fixture
def world() -> World:
    world = World()
    world.store.put(PATH, b"rows")
    return world


def named(writer: Writer, world: World, chunk: str = "c") -> None:
    world.commit(writer, ("put", FILES, {"table": "t", "partition": "p", "chunk": chunk, "path": PATH}))


def ended(writer: Writer, world: World, chunk: str = "c") -> None:
    world.commit(writer, ("delete", FILES, {"table": "t", "partition": "p", "chunk": chunk}))


def collected(world: World) -> Collected:
    world.clock.tick(25 * HOUR)
    for _ in range(2):
        done = world.catalog().collect(dry_run=False, writer="maintainer-1", clock=world.clock)
        world.clock.tick(7 * HOUR)
    return done


@pytest.mark.parametrize("by", ["w", "compactor-1", "maintainer-2"])
def test_data_goes_when_its_writer_or_whom_policies_guard_has_ended_its_row(world: World, by: str) -> None:
    named(world.writer("w"), world)
    ended(world.writer(by), world)
    done = collected(world)
    assert (done.purged, done.deleted) == (1, 1) and PATH not in stored(world)


@pytest.mark.parametrize("how", ["delete", "put"])
def test_data_stays_when_another_plain_writer_has_ended_its_row(world: World, how: str) -> None:
    named(world.writer("w"), world)
    other = world.writer("other")
    if how == "delete":
        ended(other, world)
    else:
        world.commit(other, ("put", FILES, {"table": "t", "partition": "p", "chunk": "c", "path": "other/default/data/p/t/x"}))
    done = collected(world)
    assert (done.purged, done.deleted, done.waiting) == (0, 0, 1) and PATH in stored(world)
    assert len(rows(world.snapshot(), f"deleted_{FILES}", ["chunk"])) == 1


def test_the_row_of_another_plain_writer_goes_without_the_data(world: World) -> None:
    other = world.writer("other")  # the file's own writer is about to commit it
    named(other, world)
    ended(other, world)
    done = collected(world)
    assert (done.purged, done.external, done.deleted) == (1, 1, 0) and PATH in stored(world)


def test_the_row_of_another_plain_writer_keeps_the_data_while_it_is_live(world: World) -> None:
    mine, other = world.writer("w"), world.writer("other")
    named(mine, world)
    named(other, world, "copy")
    ended(mine, world)
    assert (collected(world).deleted, PATH in stored(world)) == (0, True)
    ended(other, world, "copy")
    collected(world)
    named(mine, world)
    ended(mine, world)
    assert (collected(world).deleted, PATH in stored(world)) == (1, False)


def test_a_maintainer_can_say_what_another_had_no_say_in(world: World) -> None:
    named(world.writer("w"), world)
    ended(world.writer("other"), world)
    maintainer = world.writer("maintainer-2")
    named(maintainer, world, "again")
    ended(maintainer, world, "again")
    done = collected(world)
    assert (done.purged, done.deleted) == (1, 0) and PATH in stored(world), "the other's end still does not count"
