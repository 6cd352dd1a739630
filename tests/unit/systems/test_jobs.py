"""A system's job and the clock: what its tasks have written is committed while it is certain to be there, however long which part took."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import pytest

from bucketcatalog import StaleRead
from bucketcatalog.limits import LATENESS_BOUND, MAX_SNAPSHOT_AGE, MINUTE, SECOND
from bucketcatalog.registry import JobTask, in_turn
from bucketcatalog.store import Store

from ...kit.world import HOUR, Intervening, World, rows

pytestmark = pytest.mark.usefixtures("with_boxes")

LONGEST = MAX_SNAPSHOT_AGE - LATENESS_BOUND


@pytest.fixture
def world() -> World:
    """A box with two parts, which could be taken for orphans if nothing named them."""
    world = World()
    writer = world.writer()
    world.commit(writer, ("put", "packed.a", {"size": 1}))
    world.commit(writer, ("put", "packed.a", {"size": 2}))
    world.clock.tick(48 * HOUR)
    return world


def repacked(world: World, *, before: int = 0, after: int = 0) -> Any:
    """The job, whose tasks wait so long before and after they write."""

    def slowly(tasks: Sequence[JobTask], store: Store) -> list[Any]:
        world.clock.tick(before)
        done = in_turn(tasks, store)
        world.clock.tick(after)
        return done

    return world.catalog().run_job("boxes.repack", writer="compactor-x", clock=world.clock, run=slowly)


def nothing_was_committed(world: World) -> bool:
    """Whether both parts are named still, and can be read."""
    paths = [row["path"] for row in rows(world.snapshot(), "boxes.parts")]
    sizes = sorted(row["size"] for row in rows(world.snapshot(), "packed.a"))
    return len(paths) == 2 and not any(path.startswith("compactor-x/") for path in paths) and sizes == [1, 2]


@pytest.mark.parametrize(("before", "after"), [(7 * HOUR, 0), (0, 7 * HOUR), (0, MAX_SNAPSHOT_AGE - SECOND), (LONGEST, 1)])
def test_a_job_that_takes_too_long_commits_nothing(world: World, before: int, after: int) -> None:
    with pytest.raises(StaleRead, match=r" ago, and may be gone\..* within 354m"):
        repacked(world, before=before, after=after)
    assert nothing_was_committed(world)


def test_a_job_that_takes_as_long_as_it_may_is_committed(world: World) -> None:
    assert repacked(world, before=HOUR, after=LONGEST - HOUR) == 1
    (part,) = rows(world.snapshot(), "boxes.parts")
    assert part["path"].startswith("compactor-x/")


@pytest.mark.parametrize("is_late", [True, False])
def test_no_part_is_committed_that_was_deleted_as_an_orphan_during_the_commit(world: World, is_late: bool) -> None:
    deleted: list[str] = []

    def meanwhile() -> None:
        world.clock.tick(4 * MINUTE)
        found = world.catalog().orphans(older_than="6h", dry_run=False, writer="maintainer-m")
        deleted.extend(orphan.name for orphan in found)

    slow = World(Intervening(world.store, "compactor-x/default/transactions/", meanwhile))
    slow.clock = world.clock
    if is_late:
        with pytest.raises(StaleRead):
            repacked(slow, after=MAX_SNAPSHOT_AGE - SECOND)
    else:
        assert repacked(slow, after=LONGEST) == 1
    assert not deleted
    assert sorted(row["size"] for row in rows(world.snapshot(), "packed.a")) == [1, 2]


@pytest.mark.parametrize("part", ["__init__", "finish"])
def test_a_plan_or_a_finish_that_takes_too_long_commits_nothing(world: World, monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    repacking = import_module("boxes.repack").Repacking
    does = getattr(repacking, part)

    def slowly(*given: Any, **options: Any) -> Any:
        world.clock.tick(20 * HOUR)
        return does(*given, **options)

    monkeypatch.setattr(repacking, part, slowly)
    with pytest.raises(StaleRead, match="20h ago"):
        repacked(world)
    assert nothing_was_committed(world)
