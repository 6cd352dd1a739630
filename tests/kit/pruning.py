"""Catalogs whose history is pruned: how they come to be so, and what of them is looked at and damaged."""

from __future__ import annotations

from typing import Any

import pytest

from bucketcatalog import Catalog
from bucketcatalog.maintain.prune import PruneResult
from bucketcatalog.maintain.verify.findings import Finding
from bucketcatalog.write.writer import Writer

from .world import DAY, HOUR, MINUTE, SECOND, World, names, obj, stored

GRACE = DAY + MINUTE
"""A little more than the grace period, for commit times may lie ahead of the clock by microseconds."""


def keep_time(world: World, patch: pytest.MonkeyPatch) -> None:
    """Whatever asks for the time is told the world's."""
    patch.setattr("bucketcatalog.clock.now_us", world.clock)
    patch.setattr("bucketcatalog.clock.monotonic", lambda: world.clock() / SECOND)
    patch.setitem(Catalog.prune.__kwdefaults__ or {}, "clock", world.clock)


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


def own_checkpoint(world: World) -> list[str]:
    """The names of the horizon's own checkpoint and of its marker."""
    horizon = world.snapshot().view.horizon
    assert horizon is not None and horizon.boundary.checkpoint is not None
    uuid = horizon.boundary.checkpoint.uuid.hex()
    return sorted((name for name in stored(world) if uuid in name.replace("-", "")), key=lambda name: "newest" in name)


def verified(world: World) -> list[Finding]:
    return list(world.catalog().verify(deep=True))


def damage(world: World, name: str) -> None:
    data = bytearray(world.store.get(name))
    data[60] ^= 4  # in a segment a bit of its first block
    world.store.put(name, bytes(data))
