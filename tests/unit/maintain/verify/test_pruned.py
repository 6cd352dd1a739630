"""What ``verify`` says of pruned catalogs, of their horizons and of what tags keep there, and ``repair`` does."""

from __future__ import annotations

import pytest

from bucketcatalog import CorruptionError, MissingObject
from bucketcatalog.maintain.verify.findings import sorts

from ....kit.corrupting import DAMAGES, Specimen
from ....kit.pruning import GRACE, checkpoint, damage, old_history, own_checkpoint, prune, pruned_with_a_tag, put, verified
from ....kit.world import DAY, HOUR, World, names, stored

pytestmark = pytest.mark.usefixtures("one_clock")


def test_verify_says_nothing_of_a_pruned_catalog_with_a_tag_that_is_whole(world: World) -> None:
    pruned_with_a_tag(world)
    assert verified(world) == []


def test_verify_finds_a_damaged_checkpoint_of_a_tag_and_repair_names_it_as_lost(world: World) -> None:
    kept = pruned_with_a_tag(world)
    damage(world, kept)
    with pytest.raises(CorruptionError, match=kept):
        names(world.snapshot(version="early"))
    errors = [f for f in verified(world) if f.severity.value == "error"]
    assert [(f.code, f.file, f.held) for f in errors] == [("DAMAGED_CHECKPOINT", kept, ())]
    made = world.catalog().repair(dry_run=False, writer="maintainer-1", clock=world.clock)
    assert made.actions == () and [f.file for f in made.lost] == [kept]


def test_a_tags_checkpoint_that_is_gone_is_named_by_its_place_by_readers_and_verify(world: World) -> None:
    world.store.delete(pruned_with_a_tag(world))
    place = "maintainer-1/default/transactions/" + "0" * 20
    with pytest.raises(MissingObject, match=f"{place} .*'early'") as missed:
        names(world.snapshot(version="early"))
    assert "copy of the store" in missed.value.next_step and "drop_tag('early')" in missed.value.message
    assert [(f.code, f.file) for f in verified(world) if f.severity.value == "error"] == [("MISSING_CHECKPOINT", place)]
    made = world.catalog().repair(writer="maintainer-1", clock=world.clock)
    assert made.actions == () and [f.file for f in made.lost] == [place]
    with world.writer("maintainer-2") as tagger:
        tagger.drop_tag("early")
    assert "error" not in {f.severity.value for f in verified(world)}


def test_a_tag_without_a_checkpoint_of_its_own_is_no_finding_while_its_transactions_are_there(world: World) -> None:
    old_history(world)
    prune(world)
    with world.writer("maintainer-2") as tagger:
        tagger.tag("late")
    with world.writer("a") as writer:
        put(world, writer, "more")
    assert verified(world) == []


def test_verify_finds_damaged_segments_of_a_tags_checkpoint(world: World) -> None:
    pruned_with_a_tag(world)
    (segment,) = [name for name in stored(world, ".parquet") if name.startswith("maintainer-1/")]
    damage(world, segment)
    assert {(f.code, f.file, f.severity.value) for f in verified(world)} == {("DAMAGED_BLOCK", segment, "error")}


@pytest.mark.parametrize(("how", "code"), [("missing", "MISSING_SEGMENT"), ("truncated", "DAMAGED_SEGMENT")])
def test_verify_names_the_segment_of_a_tags_checkpoint_that_is_gone_or_cut_short(world: World, how: str, code: str) -> None:
    pruned_with_a_tag(world)
    (segment,) = [name for name in stored(world, ".parquet") if name.startswith("maintainer-1/")]
    DAMAGES[how](Specimen(world, {}), segment)
    assert [(f.code, f.file, f.severity.value, bool(f.held)) for f in verified(world)] == [(code, segment, "error", True)]
    made = world.catalog().repair(dry_run=False, writer="maintainer-1", clock=world.clock)
    assert made.actions == () and [(f.code, f.file) for f in made.lost] == [(code, segment)]


def test_verify_calls_the_checkpoint_of_a_dropped_tag_unmarked(world: World) -> None:
    kept = pruned_with_a_tag(world)
    with world.writer("maintainer-2") as tagger:
        tagger.drop_tag("early")
    for _ in range(2):
        assert ("UNMARKED_CHECKPOINT", kept) in {(f.code, f.file) for f in verified(world)}
        assert {f.severity.value for f in verified(world)} == {"info"}
        damage(world, kept)  # which nobody meets any more


@pytest.mark.parametrize("all_of_its_maker", [False, True])
def test_verify_finds_that_the_horizons_own_checkpoint_is_gone_with_its_marker(world: World, all_of_its_maker: bool) -> None:
    pruned_with_a_tag(world)
    own, marker = own_checkpoint(world)
    for name in stored(world) if all_of_its_maker else (own, marker):
        if name in (own, marker) or name.startswith("compactor-1/"):
            world.store.delete(name)
    with pytest.raises(CorruptionError):
        names(world.snapshot())
    assert ("MISSING_CHECKPOINT", own, "error") in {(f.code, f.file, f.severity.value) for f in verified(world)}
    made = world.catalog().repair(writer="maintainer-1", clock=world.clock)
    assert own in [f.file for f in made.lost] or "rebuild" in [action.what for action in made.actions]


def test_verify_looks_at_the_horizons_own_checkpoint_without_its_marker(world: World) -> None:
    pruned_with_a_tag(world)
    own, marker = own_checkpoint(world)
    world.store.delete(marker)
    assert names(world.snapshot()) == ["x", "y"]
    assert [(f.code, f.file) for f in verified(world)] == [("UNMARKED_CHECKPOINT", own)]
    damage(world, own)
    assert ("DAMAGED_CHECKPOINT", own, "error") in {(f.code, f.file, f.severity.value) for f in verified(world)}


def test_verify_remarks_on_a_horizons_checkpoint_that_is_gone_where_another_reaches_it(world: World) -> None:
    pruned_with_a_tag(world)
    with world.writer("a") as writer:
        put(world, writer, "z")
    checkpoint(world)
    own, marker = own_checkpoint(world)
    for name in (own, marker):
        world.store.delete(name)
    assert names(world.snapshot()) == ["x", "y", "z"]
    assert {(f.code, f.severity.value) for f in verified(world) if f.file == own} == {("UNREADABLE_HISTORY", "info")}
    assert {f.severity.value for f in verified(world)} == {"info"}


@pytest.mark.parametrize("late", [False, True])
def test_verify_finds_what_is_gone_from_the_floor_on_and_heads_before_it(world: World, late: bool) -> None:
    writers = [world.writer("a"), world.writer("b")]
    for number in range(3):
        for writer in writers:
            put(world, writer, f"{writer.id}{number}")
    world.clock.tick(HOUR)
    if late:
        checkpoint(world, "compactor-2")  # so that the horizon's checkpoint knows that the heads are old
        world.clock.tick(HOUR)
        put(world, world.writer("c"), "c0")
    checkpoint(world)
    world.clock.tick(2 * DAY)
    put(world, writers[1], "b3")
    prune(world)
    world.clock.tick(GRACE)
    assert prune(world).files
    horizon = world.snapshot().view.horizon
    assert horizon is not None and horizon.floor("a") == horizon.floor("b") == (3 if late else 2)
    assert verified(world) == []
    last = [name for name in stored(world, ".txn") if name.startswith("a/")][-1]
    data = world.store.get(last)
    world.store.delete(last)
    assert [(f.code, f.file, str(f.held[0])) for f in verified(world)] == [("MISSING_TRANSACTION", last, "revision 2 of a")]
    world.store.put(last, data)
    assert [f for f in verified(world) if f.severity.value == "error"] == []


def test_segments_of_a_lost_checkpoint_are_left_for_repair_which_makes_it_again(world: World) -> None:
    pruned_with_a_tag(world)
    for name in own_checkpoint(world):
        world.store.delete(name)
    (left,) = [f for f in verified(world) if f.code == "UNREFERENCED_SEGMENT"]
    assert left.remedy.startswith("Leave it to prune") and "made again from it" in left.remedy
    with pytest.raises(CorruptionError):
        prune(world)
    made = world.catalog().repair(dry_run=False, writer="maintainer-1", clock=world.clock)
    assert [action.what for action in made.actions if action.done] == ["rebuild"]
    assert names(world.snapshot()) == ["x", "y"]


def test_the_remedies_for_files_that_something_may_rest_on_invite_nobody_to_delete_them() -> None:
    for code in ("UNMARKED_CHECKPOINT", "UNREFERENCED_SEGMENT"):
        assert sorts()[code].remedy.startswith("Leave it to prune:")
