"""Damaged and lost checkpoints of horizons: what is made again of what is left, and what is said to be lost."""

from __future__ import annotations

import pytest

from bucketcatalog import CorruptionError, HistoryPruned

from ....kit.corrupting import DAMAGES, Specimen, filled
from ....kit.repairing import done, errors, listed, repair
from ....kit.world import HOUR, World, names, obj, rows
from .histories import damage_segments, prune, published, reached_by_another

pytestmark = pytest.mark.filterwarnings("ignore::bucketcatalog.errors.CatalogWarning")


def lose(world: World, *endings: str) -> None:
    """Delete all files whose names end so."""
    for name in [name for name in listed(world.store) if name.endswith(endings)]:
        world.store.delete(name)


def test_that_of_the_horizon_is_made_again() -> None:
    world = filled(World())
    expected = {table: rows(world.snapshot(), table) for table in ("objects", "deleted_objects", "buckets")}
    world.clock.tick(2 * HOUR)
    world.catalog().prune("0s", grace="0s", writer="maintainer-1", dry_run=False, force=True, clock=world.clock)
    for name in listed(world.store):
        if name.endswith(".ckpt"):
            world.store.delete(name)
    with pytest.raises(CorruptionError):
        world.snapshot()
    made = repair(world, dry_run=False)
    assert "rebuild" in {action.what for action in made.actions if action.done}
    assert {table: rows(world.snapshot(), table) for table in expected} == expected


def test_that_of_the_horizon_is_not_needed_where_another_reaches_it() -> None:
    world = reached_by_another()
    name = next(name for name in listed(world.store) if name.startswith("compactor-1/") and name.endswith(".ckpt"))
    world.store.put(name, world.store.get(name)[:-1])
    assert ("drop", name) in done(repair(world, dry_run=False)) and errors(world) == []
    assert names(world.snapshot()) == ["a", "b"]


def test_one_that_was_dropped_before_is_not_used_again() -> None:
    world = reached_by_another(full=True)
    for name in [name for name in listed(world.store) if name.startswith("compactor-1/") and name.endswith(".parquet")]:
        world.store.delete(name)
    repair(world, dry_run=False)
    assert errors(world) == [] and names(world.snapshot()) == ["a", "b"]
    for name in [
        name for name in listed(world.store) if name.endswith(".parquet") or (name.startswith("w/") and "/data/" not in name)
    ]:
        world.store.delete(name)
    before = listed(world.store)
    assert repair(world, dry_run=False).lost and listed(world.store) == before


def test_that_of_the_horizon_may_go_once_another_reaches_it() -> None:
    world = reached_by_another()
    name = next(name for name in listed(world.store) if name.startswith("compactor-1/") and name.endswith(".ckpt"))
    world.store.put(name, world.store.get(name)[:-1])
    repair(world, dry_run=False)
    with pytest.raises(HistoryPruned):
        world.snapshot(timestamp=f"@{world.clock.now - 3 * HOUR}")
    assert world.catalog().prune("0s", grace="0s", writer="maintainer-1", dry_run=False, force=True, clock=world.clock).done


@pytest.mark.parametrize("damage", ["missing", "truncated", "flipped"])
def test_versions_after_another_that_reaches_the_horizon_are_read_once_its_own_is_lost(damage: str) -> None:
    world = reached_by_another()
    version = str(world.snapshot().version)
    world.commit(world.writer("w"), ("put", "objects", obj("c")))
    later = str(world.snapshot().version)
    own = next(name for name in listed(world.store) if name.startswith("compactor-1/") and name.endswith(".ckpt"))
    DAMAGES[damage](Specimen(world, {}), own)
    assert done(repair(world, dry_run=False)) and errors(world) == []
    assert names(world.snapshot(version=version)) == ["a", "b"]
    assert names(world.snapshot(version=later)) == ["a", "b", "c"]
    assert world.catalog().diff(start=version, end=later).to_arrow()["name"].to_pylist() == ["c"]
    with pytest.raises(HistoryPruned):
        world.catalog().changes(end=later).to_arrow()


@pytest.mark.parametrize("damage", ["missing", "truncated", "flipped"])
def test_without_that_of_the_horizon_the_history_up_to_the_next_one_is_said_to_be_lost(damage: str) -> None:
    world = reached_by_another()
    before = world.snapshot().view.horizon
    assert before is not None and names(world.snapshot(version=str(before.cut))) == ["a", "b"]
    own = next(name for name in listed(world.store) if name.startswith("compactor-1/") and name.endswith(".ckpt"))
    DAMAGES[damage](Specimen(world, {}), own)
    for dry_run in (True, False):
        (lost,) = repair(world, dry_run=dry_run).lost
        assert (lost.code, lost.file) == (
            "UNREADABLE_HISTORY",
            own,
        ) and "Versions between the horizon and a later checkpoint are lost with it." in lost.message
    with pytest.raises(CorruptionError, match=own):
        world.snapshot(version=str(before.cut))
    assert repair(world).lost == () and errors(world) == [] and names(world.snapshot()) == ["a", "b"]


@pytest.mark.parametrize("damage", ["missing", "truncated", "index flipped", "flipped"])
def test_a_version_behind_the_horizon_of_which_one_that_was_dropped_is_all_that_is_left_is_pruned(damage: str) -> None:
    world = World()
    world.commit(world.writer("w"), ("put", "objects", [obj("a"), obj("b")]))
    with world.writer("maintainer-1") as maintainer:
        maintainer.checkpoint(scope="all")
    version = str(world.snapshot().version)
    damage_segments(world, "maintainer-1", damage)
    assert [action.what for action in repair(world, dry_run=False).actions] == ["drop", "checkpoint"]
    world.commit(world.writer("w"), ("put", "objects", obj("c")))
    world.clock.tick(2 * HOUR)
    prune(world, grace="0s")
    for behind in (version, "maintainer-1@0"):
        with pytest.raises(HistoryPruned):
            world.snapshot(version=behind)
    with world.writer("maintainer-2") as tagger, pytest.raises(HistoryPruned):
        tagger.tag("x", version=version)
    assert names(world.snapshot()) == ["a", "b", "c"] and errors(world) == []


@pytest.mark.parametrize("damage", ["missing", "truncated", "index flipped", "flipped"])
@pytest.mark.parametrize("by", ["compactor-3", "w"])
def test_that_of_the_horizon_that_was_dropped_is_not_what_the_next_ones_start_from(by: str, damage: str) -> None:
    world = reached_by_another(full=True)
    damage_segments(world, "compactor-1", damage)
    repair(world, dry_run=False)
    world.commit(world.writer("w"), ("put", "objects", obj("c")))
    with world.writer(by) as writer:
        assert writer.checkpoint(scope="own" if by == "w" else "all") is not None
    assert names(world.snapshot()) == ["a", "b", "c"] and errors(world) == []


def test_that_of_the_horizon_is_not_made_of_what_is_damaged() -> None:
    world = published(grace="0s")
    name = next(name for name in listed(world.store) if name.startswith("maintainer-1/") and name.endswith(".parquet"))
    world.store.put(name, world.store.get(name)[:-100])
    before = listed(world.store)
    made = repair(world, dry_run=False)
    assert made.lost and not any(action.done for action in made.actions) and listed(world.store) == before


@pytest.mark.parametrize("endings", [(".ckpt",), (".parquet",), (".ckpt", ".parquet")])
def test_that_of_the_horizon_is_made_of_the_transactions_while_these_are_there(endings: tuple[str, ...]) -> None:
    world = published(grace="1h")
    lose(world, *endings)
    with pytest.raises(CorruptionError):
        names(world.snapshot())
    made = repair(world, dry_run=False)
    assert [action.what for action in made.actions if action.done] == ["drop", "checkpoint"]
    assert {finding.code for finding in made.lost} == {"UNREADABLE_HISTORY"}
    assert names(world.snapshot()) == ["a", "b"] and errors(world) == [] and repair(world).actions == ()
    world.clock.tick(2 * HOUR)
    prune(world, grace="1h")
    assert names(world.snapshot()) == ["a", "b"] and errors(world) == []


@pytest.mark.parametrize("endings", [(".ckpt",), (".parquet",), (".ckpt", ".parquet")])
def test_that_of_a_new_horizon_is_made_of_the_one_before_while_that_is_there(endings: tuple[str, ...]) -> None:
    world = published(grace="0s")
    before = listed(world.store)
    for name in ("c", "d"):
        world.commit(world.writer("w"), ("put", "objects", obj(name)))
    world.clock.tick(2 * HOUR)
    prune(world, grace="1h")
    for name in [name for name in listed(world.store).keys() - before.keys() if name.endswith(endings)]:
        world.store.delete(name)
    with pytest.raises(CorruptionError):
        names(world.snapshot())
    made = repair(world, dry_run=False)
    assert [action.what for action in made.actions if action.done] == ["drop", "checkpoint"]
    assert {finding.code for finding in made.lost} == {"UNREADABLE_HISTORY"}
    assert names(world.snapshot()) == ["a", "b", "c", "d"] and errors(world) == [] and repair(world).actions == ()
