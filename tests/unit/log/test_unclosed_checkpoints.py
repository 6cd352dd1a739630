"""A plain writer's checkpoint that says its writer had read what is nowhere: readers pass it over, verify names it and repair drops it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bucketcatalog import MissingObject
from bucketcatalog.format.checkpoints import Checkpoint, encode_checkpoint
from bucketcatalog.log.files import LogFiles
from bucketcatalog.maintain.verify.findings import Severity
from bucketcatalog.model import paths
from bucketcatalog.model.cuts import Cut, Head
from bucketcatalog.store.faults import Counting

from ...kit.repairing import done, repair
from ...kit.spoiling import NOWHERE, newest
from ...kit.world import HOUR, World, names, obj, rows

ROWS = ["a0", "a1", "m0", "m1"]


@pytest.fixture
def world() -> World:
    """Alice has committed ``a0`` and ``a1``; mallory, who had read the first, ``m0`` and ``m1``, and has a checkpoint of her own."""
    world = World()
    with world.writer("alice") as alice:
        world.commit(alice, ("put", "objects", obj("a0")))
    catalog = world.catalog()
    catalog.snapshot()
    with world.writer("mallory", catalog=catalog) as mallory:
        for n in range(2):
            world.commit(mallory, ("put", "objects", obj(f"m{n}")))
        mallory.checkpoint()
    with world.writer("alice") as alice:
        world.commit(alice, ("put", "objects", obj("a1")))
    return world


def own(world: World) -> Checkpoint:
    files = LogFiles(world.store, "default")
    return files.checkpoint("mallory", next(files.checkpoints("mallory")))


def forge(world: World, *writers: str) -> str:
    """Let mallory's checkpoint say that she had read of these writers what is nowhere, too; gives its name."""
    made = own(world)
    reads = made.reads.joined(Cut.of((writer, Head(7, NOWHERE)) for writer in writers))
    name = paths.checkpoint("mallory", "default", made.head)
    world.store.delete(name)
    world.store.put(name, encode_checkpoint(replace(made, reads=reads)))
    return name


def errors(world: World) -> list[tuple[str, str]]:
    return [(f.code, f.file) for f in world.catalog().verify() if f.severity is Severity.ERROR]


def uses(world: World) -> bool:
    return "mallory" in {checkpoint.writer for checkpoint in world.snapshot().view.checkpoints}


def test_one_that_says_what_is_so_is_used(world: World) -> None:
    assert own(world).reads.of_writer("alice") and uses(world) and names(world.snapshot()) == ROWS and errors(world) == []


@pytest.mark.parametrize("whose", ["alice", "nobody", "maintainer-1"])
def test_readers_of_now_and_of_any_version_pass_it_over(world: World, whose: str) -> None:
    whole = world.snapshot().version
    forge(world, whose)
    assert names(world.snapshot()) == names(world.snapshot(version=whole)) == ROWS and not uses(world)
    assert names(world.snapshot(version="alice@1")) == ["a0", "a1"]
    assert names(world.snapshot(version="mallory@1")) == ["a0", "m0", "m1"]
    assert len(world.catalog().changes().to_arrow()) == 4
    assert names(world.snapshot(ignore_corruption=True)) == ROWS
    catalog = world.catalog()
    assert [names(catalog.snapshot()) for _ in range(2)] == [ROWS, ROWS], "who looks again does so too"


def test_nobody_else_is_kept_from_anything(world: World) -> None:
    forge(world, "alice")
    with world.writer("alice") as alice:
        world.commit(alice, ("put", "objects", obj("a2")))
    with world.writer("compactor-1") as compactor:
        assert compactor.checkpoint(scope="all") is not None
    world.clock.tick(3 * HOUR)
    world.catalog().prune("1h", grace="1h", writer="maintainer-1", dry_run=False, force=True, clock=world.clock)
    assert names(world.snapshot()) == ["a0", "a1", "a2", "m0", "m1"]
    with world.writer("mallory") as mallory:
        world.commit(mallory, ("put", "objects", obj("m2")))
    assert "m2" in names(world.snapshot())


def test_verify_names_the_checkpoint_and_nobody_else_and_repair_drops_it(world: World) -> None:
    name = forge(world, "alice", "nobody")
    assert errors(world) == [("WRONG_CHECKPOINT", name)]
    made = repair(world, dry_run=False)
    assert ("drop", name) in done(made) and made.lost == ()
    assert errors(world) == [] and names(world.snapshot()) == ROWS


def test_where_what_it_had_read_is_really_lost_that_is_what_is_named(world: World) -> None:
    gone = newest(world, "alice", 1)
    world.store.delete(gone)
    with pytest.raises(MissingObject) as raised:
        names(world.snapshot())
    assert raised.value.message.startswith(gone) and ".ckpt" not in raised.value.message
    assert errors(world) == [("MISSING_TRANSACTION", gone)]


def test_one_that_names_what_was_pruned_is_no_error(world: World) -> None:
    assert own(world).reads.of_writer("alice")[0].revision == 0
    with world.writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all")
    world.clock.tick(3 * HOUR)
    with world.writer("alice") as alice:
        world.commit(alice, ("put", "objects", obj("a2")))
    world.catalog().prune("1h", grace="1h", writer="maintainer-1", dry_run=False, force=True, clock=world.clock)
    world.clock.tick(3 * HOUR)
    world.catalog().prune("1h", grace="1h", writer="maintainer-1", dry_run=False, force=True, clock=world.clock)
    assert errors(world) == [] and names(world.snapshot()) == ["a0", "a1", "a2", "m0", "m1"]
    assert rows(world.snapshot(), "damage") == []


@pytest.fixture
def losses() -> World:
    """Alice has committed ``a0``; mallory, who had read it, ``m0`` to ``m2`` and a checkpoint; ``a0`` and ``m1`` are lost."""
    world = World.counting()
    with world.writer("alice") as alice:
        world.commit(alice, ("put", "objects", obj("a0")))
    catalog = world.catalog()
    catalog.snapshot()
    with world.writer("mallory", catalog=catalog) as mallory:
        for n in range(3):
            world.commit(mallory, ("put", "objects", obj(f"m{n}")))
        mallory.checkpoint()
    world.store.delete(newest(world, "alice"))
    world.store.delete(newest(world, "mallory", 1))
    return world


@pytest.mark.filterwarnings("ignore::bucketcatalog.errors.CatalogWarning")
def test_past_damage_one_that_names_what_is_lost_saves_what_is_lost_beside(losses: World) -> None:
    assert names(losses.snapshot(ignore_corruption=True)) == ["m0", "m1", "m2"]
    (lost,) = rows(losses.snapshot(ignore_corruption=True), "damage", ["file"])
    assert lost["file"].startswith("alice/")


@pytest.mark.filterwarnings("ignore::bucketcatalog.errors.CatalogWarning")
def test_past_damage_one_that_names_thousands_besides_is_passed_over_before_all_are_asked_for(losses: World) -> None:
    made = own(losses)
    name = paths.checkpoint("mallory", "default", made.head)
    losses.store.delete(name)
    nowhere = Cut.of(("alice", Head(10**6 + n, NOWHERE)) for n in range(20_000))
    losses.store.put(name, encode_checkpoint(replace(made, reads=made.reads.joined(nowhere))))
    store = losses.store
    assert isinstance(store, Counting)
    store.reset()
    assert names(losses.snapshot(ignore_corruption=True)) == ["m0", "m2"]
    assert store.requests["get"] + store.requests["head"] < 150
