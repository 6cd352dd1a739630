"""Checkpoints that are made of pruned catalogs, or while somebody prunes: they build on nothing that goes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest

from bucketcatalog import CheckpointTooLate
from bucketcatalog.checkpoint.merge import Merged, MergeTask, run_task
from bucketcatalog.write.writer import Writer

from ....kit.pruning import EVERYTHING, GRACE, checkpoint, old_history, prune, put
from ....kit.world import DAY, HOUR, World, names, stored

pytestmark = pytest.mark.usefixtures("one_clock")


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
    writer = world.writer("a" if scope == "own" else "compactor-2")
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
    assert made is not None and bool(made.reused_bytes) is (scope == "all")
    assert {name.rpartition(".")[2] for name in workers.deleted} >= {"parquet", "ckpt"}, "what it would have started from is gone"
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
