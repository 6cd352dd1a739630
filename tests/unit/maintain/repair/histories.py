"""Histories with horizons and tags whose checkpoints tests lose or damage."""

from __future__ import annotations

from ....kit.corrupting import DAMAGES, Specimen
from ....kit.repairing import listed
from ....kit.world import HOUR, World, obj


def reached_by_another(*, full: bool = False) -> World:
    """A checkpoint of ``compactor-1`` is the horizon's, and one of ``compactor-2`` holds all that it does."""
    world = World()
    world.commit(world.writer("w"), ("put", "objects", [obj("a"), obj("b")]))
    with world.writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all")
    world.clock.tick(2 * HOUR)
    world.catalog().prune("0s", grace="1h", writer="maintainer-1", dry_run=False, force=True, clock=world.clock)
    with world.writer("compactor-2") as compactor:
        compactor.checkpoint(scope="all", full=full)
    return world


def tagged_at_its_first_checkpoint() -> World:
    """Two objects, a checkpoint of them at a maintainer's first revision, and then a tag."""
    world = World()
    world.commit(world.writer("w"), ("put", "objects", [obj("a"), obj("b")]))
    with world.writer("maintainer-1") as maintainer:
        maintainer.checkpoint(scope="all")
    with world.writer("maintainer-2") as tagger:
        tagger.tag("x")
    return world


def published(*, grace: str, tag: str = "") -> World:
    """A horizon after two commits of ``w``, of which the first may have a ``tag``; without a ``grace`` period it is deleted."""
    world = World()
    for name in ("a", "b"):
        world.commit(world.writer("w"), ("put", "objects", obj(name)))
        if name == "a" and tag:
            with world.writer("maintainer-2") as tagger:
                tagger.tag(tag)
    world.clock.tick(2 * HOUR)
    prune(world, grace=grace)
    assert len([name for name in listed(world.store) if name.startswith("w/")]) == (2 if grace != "0s" else 1)
    return world


def prune(world: World, *, grace: str) -> None:
    world.catalog().prune("0s", grace=grace, writer="maintainer-1", dry_run=False, force=True, clock=world.clock)


def damage_segments(world: World, writer: str, damage: str) -> None:
    """Damage every segment of a writer."""
    for name in [name for name in listed(world.store) if name.startswith(f"{writer}/") and name.endswith(".parquet")]:
        DAMAGES[damage](Specimen(world, {}), name)
