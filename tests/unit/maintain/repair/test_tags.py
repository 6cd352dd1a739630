"""Damaged and lost checkpoints beside tags: what these name is kept, or said to be lost."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from bucketcatalog import CorruptionError, HistoryPruned
from bucketcatalog.format.checkpoints import Checkpoint, decode_checkpoint
from bucketcatalog.log.entries import tags_of
from bucketcatalog.maintain.verify.findings import Severity
from bucketcatalog.model import paths

from ....kit.corrupting import DAMAGES, Specimen
from ....kit.repairing import done, errors, listed, repair
from ....kit.world import HOUR, World, names, obj
from .histories import damage_segments, prune, published, tagged_at_its_first_checkpoint

pytestmark = pytest.mark.filterwarnings("ignore::bucketcatalog.errors.CatalogWarning")


def kept_for(world: World, tag: str) -> tuple[str, Checkpoint]:
    """The checkpoint that was made last of what a tag names, and its name."""
    every = {name: decode_checkpoint(data, name) for name, data in listed(world.store).items() if name.endswith(".ckpt")}
    cut = tags_of(world.snapshot().view)[tag].latest.cut
    return max(((name, c) for name, c in every.items() if c.cut == cut), key=lambda found: found[1].created)


@pytest.mark.parametrize("damage", ["missing", "truncated", "index flipped", "flipped"])
def test_one_of_exactly_a_tags_cut_whose_segments_are_lost_is_not_taken_for_what_is_kept_of_the_tag(damage: str) -> None:
    world = tagged_at_its_first_checkpoint()
    for name in [name for name in listed(world.store) if name.startswith("maintainer-1/") and name.endswith(".parquet")]:
        DAMAGES[damage](Specimen(world, {}), name)
    assert [action.what for action in repair(world, dry_run=False).actions] == ["drop", "checkpoint"]
    assert errors(world) == [] and repair(world).actions == ()
    world.commit(world.writer("w"), ("put", "objects", obj("c")))
    for _ in range(4):
        world.clock.tick(8 * 24 * HOUR)
        world.commit(world.writer("w"), ("put", "objects", obj("d")))
        world.catalog().prune("1h", grace="1h", writer="maintainer-1", dry_run=False, force=True, clock=world.clock)
    assert names(world.snapshot(version="x")) == ["a", "b"] and errors(world) == []
    assert not [name for name in listed(world.store) if name.startswith("w/default/transactions/" + "0" * 20)]


def test_a_version_behind_the_horizon_is_read_while_a_checkpoint_of_it_has_its_marker_or_a_tag_had_it() -> None:
    world = tagged_at_its_first_checkpoint()
    with world.writer("maintainer-3") as maintainer:
        maintainer.checkpoint(scope="all")
    tagged = str(world.snapshot(version="x").version)
    version = str(world.snapshot().version)
    world.commit(world.writer("w"), ("put", "objects", obj("c")))
    world.clock.tick(HOUR // 2)
    prune(world, grace="0s")
    assert names(world.snapshot(version=version)) == ["a", "b"]
    for _ in range(2):
        world.commit(world.writer("w"), ("put", "objects", obj("c")))
        world.clock.tick(8 * 24 * HOUR)
        prune(world, grace="1h")
    assert not any("newest/" + "9" * 20 in name for name in listed(world.store))
    with world.writer("maintainer-2") as tagger:
        tagger.drop_tag("x")
        assert names(world.snapshot(version=tagged)) == ["a", "b"]
        tagger.tag("x", version=tagged)
    with pytest.raises(HistoryPruned):
        world.snapshot(version=version)


@pytest.mark.parametrize("damage", ["missing", "truncated", "index flipped", "flipped"])
@pytest.mark.parametrize("rows", [2, 3_000])
def test_that_of_the_horizon_that_was_dropped_is_not_what_is_kept_for_tags(rows: int, damage: str) -> None:
    world = World()
    world.commit(world.writer("w"), ("put", "objects", [obj(f"a{number:05}") for number in range(rows)]))
    world.commit(world.writer("w"), ("put", "objects", obj("b")))
    world.clock.tick(HOUR)
    with world.writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all")
    prune(world, grace="1h")
    world.commit(world.writer("w"), ("put", "objects", obj("c")))
    with world.writer("maintainer-2") as tagger:
        tagger.tag("x")
    world.commit(world.writer("w"), ("put", "objects", obj("d")))
    with world.writer("compactor-2") as compactor:
        compactor.checkpoint(scope="all", full=True)
    damage_segments(world, "compactor-1", damage)
    repair(world, dry_run=False)
    world.clock.tick(HOUR // 2)
    prune(world, grace="0s")
    assert len(names(world.snapshot(version="x"))) == rows + 2 and errors(world) == []


@pytest.mark.parametrize("damage", ["missing", "truncated", "index flipped", "flipped"])
@pytest.mark.parametrize("ending", [".ckpt", ".parquet"])
def test_what_a_tag_alone_needs_of_one_that_is_dropped_is_lost_and_said_to_be(ending: str, damage: str) -> None:
    world = tagged_at_its_first_checkpoint()
    world.commit(world.writer("w"), ("put", "objects", obj("c")))
    world.clock.tick(HOUR // 2)
    world.catalog().prune("0s", grace="0s", writer="maintainer-2", dry_run=False, force=True, clock=world.clock)
    for name in [name for name in listed(world.store) if name.startswith("maintainer-1/") and name.endswith(ending)]:
        DAMAGES[damage](Specimen(world, {}), name)
    made = repair(world, dry_run=False)
    assert "drop" in {action.what for action in made.actions if action.done}
    assert [finding.severity for finding in made.lost] == [Severity.ERROR] and "tag 'x'" in made.lost[0].message
    assert len(errors(world)) == 1 and names(world.snapshot()) == ["a", "b", "c"]


@pytest.mark.parametrize("damage", ["missing", "truncated", "index flipped", "flipped"])
@pytest.mark.parametrize("ending", [".ckpt", ".parquet"])
def test_one_that_was_made_for_a_tag_is_done_without_while_its_transactions_are_there(ending: str, damage: str) -> None:
    world = World()
    world.commit(world.writer("w"), ("put", "objects", [obj(f"a{number:05}") for number in range(3_000)]))
    with world.writer("maintainer-2") as tagger:
        tagger.tag("x")
    world.commit(world.writer("w"), ("put", "objects", obj("b")))
    world.clock.tick(2 * HOUR)
    world.catalog().prune("0s", grace="1h", writer="maintainer-3", dry_run=False, force=True, clock=world.clock)
    name, kept = kept_for(world, "x")
    (segment,) = (paths.segment(of.writer, "default", of.uuid) for of in kept.segments)
    DAMAGES[damage](Specimen(world, {}), name if ending == ".ckpt" else segment)
    is_block = (ending, damage) == (".parquet", "flipped")
    with pytest.raises(CorruptionError) if is_block else nullcontext():
        assert len(names(world.snapshot(version="x"))) == 3_000
    made = repair(world, dry_run=False)
    assert done(made) == ([("checkpoint", "x")] if is_block else []) and made.lost == ()
    assert len(names(world.snapshot(version="x"))) == 3_000
    assert errors(world) == [] and repair(world).actions == ()
    world.clock.tick(2 * HOUR)
    prune(world, grace="1h")
    assert "w/" not in "".join(name for name in listed(world.store) if name.endswith(f"{0:020}.txn"))
    assert len(names(world.snapshot(version="x"))) == 3_000 and errors(world) == []


@pytest.mark.parametrize("damage", ["missing", "truncated", "flipped"])
def test_one_that_was_made_for_a_tag_is_made_again_from_an_earlier_horizons_while_that_is_there(damage: str) -> None:
    world = published(grace="0s")
    world.commit(world.writer("w"), ("put", "objects", obj("c")))
    with world.writer("maintainer-2") as tagger:
        tagger.tag("x")
    world.commit(world.writer("w"), ("put", "objects", obj("d")))
    world.clock.tick(2 * HOUR)
    prune(world, grace="1h")
    of_x = kept_for(world, "x")[1].segments[0]
    segment = paths.segment(of_x.writer, "default", of_x.uuid)
    DAMAGES[damage](Specimen(world, {}), segment)
    (error,) = errors(world)
    assert error.split()[2] == f"{segment}:"
    made = repair(world, dry_run=False)
    assert (done(made), made.lost) == ([("checkpoint", "x")], ())
    assert names(world.snapshot(version="x")) == ["a", "b", "c"] and errors(world) == []


def test_one_that_replaces_another_is_the_last_whatever_the_clock_of_its_maker_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bucketcatalog.clock.now_us", lambda: 2_000_000)
    world = published(grace="1h", tag="x")
    for made_at, created in ((2_000_000, 2_000_001), (1_000_000, 2_000_002)):
        monkeypatch.setattr("bucketcatalog.clock.now_us", lambda made_at=made_at: made_at)
        _, kept = kept_for(world, "x")
        DAMAGES["flipped"](Specimen(world, {}), paths.segment(kept.writer, "default", kept.segments[0].uuid))
        assert done(repair(world, dry_run=False)) == [("checkpoint", "x")] and errors(world) == []
        assert kept_for(world, "x")[1].created == created and names(world.snapshot(version="x")) == ["a"]


@pytest.mark.parametrize("damage", ["truncated", "flipped"])
def test_one_at_a_maintainers_first_revision_is_dropped_for_good_beside_tags(damage: str) -> None:
    world = tagged_at_its_first_checkpoint()
    name = next(name for name in listed(world.store) if name.startswith("maintainer-1/") and name.endswith(".ckpt"))
    DAMAGES[damage](Specimen(world, {}), name)
    assert ("drop", name) in done(repair(world, dry_run=False))
    assert errors(world) == [] and repair(world).actions == ()
    assert names(world.snapshot(version="x")) == ["a", "b"]
