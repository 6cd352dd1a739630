"""Damaged and lost checkpoints: done without where their transactions are there, or made again from what is left."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bucketcatalog import CorruptionError, UnsupportedFormat
from bucketcatalog.format.checkpoints import encode_checkpoint
from bucketcatalog.log.entries import tags_of
from bucketcatalog.log.pins import pins_in
from bucketcatalog.maintain.verify.findings import Severity
from bucketcatalog.model import paths

from ....kit.corrupting import DAMAGES, EVERYTHING, Specimen, filled, last_checkpoint, specimen
from ....kit.repairing import done, errors, listed, repair
from ....kit.world import HOUR, World, names, obj, rows

pytestmark = pytest.mark.filterwarnings("ignore::bucketcatalog.errors.CatalogWarning")


def pruned() -> Specimen:
    """A specimen without the transactions that its checkpoint covers."""
    one = specimen()
    for kind in ("covered transaction", "columnar transaction"):
        one.store.delete(one.files[kind])
    return one


def lose_what_is_covered(world: World) -> None:
    """Delete every checkpoint, and every transaction of ``a`` and the first of ``b``, which they cover."""
    first_of_b = next(name for name in listed(world.store) if name.startswith("b/") and name.endswith(".txn"))
    for name in listed(world.store):
        if name.endswith(".ckpt") or (name.startswith("a/") and name.endswith(".txn")) or name == first_of_b:
            world.store.delete(name)


@pytest.mark.parametrize("damage", ["missing", "truncated", "flipped", "swapped", "foreign"])
@pytest.mark.parametrize("kind", ["checkpoint", "segment"])
def test_a_damaged_one_is_done_without_where_its_transactions_are_there(kind: str, damage: str) -> None:
    one = specimen()
    DAMAGES[damage](one, one.files[kind])
    before = listed(one.store)
    told = repair(one.world)
    assert [(a.what, a.done, a.obstacle) for a in told.actions] == [("drop", False, ""), ("checkpoint", False, "")]
    assert listed(one.store) == before and told.lost == ()
    assert one.files[kind] in f"{told.actions[0].subject} {told.actions[0].why}"
    made = repair(one.world, dry_run=False)
    assert done(made) == [("drop", one.files["checkpoint"]), ("checkpoint", "default")] and made.lost == ()
    assert one.read()[0] == EVERYTHING and errors(one.world) == []
    after = listed(one.store)
    assert before.keys() - after.keys() == {one.files["marker"]}
    assert {name: after[name] for name in before if name != one.files["marker"]} == {
        name: data for name, data in before.items() if name != one.files["marker"]
    }
    assert all(name.startswith("maintainer-1/") for name in after.keys() - before.keys())
    checkpoints = one.read()[1].view.checkpoints
    assert [c.writer for c in checkpoints] == ["maintainer-1"]
    assert repair(one.world, dry_run=False).actions == ()


def test_an_old_one_that_is_damaged_is_dropped_though_nobody_reads_it_now() -> None:
    one = specimen()
    one.world.clock.tick()
    with one.world.writer("w") as writer:
        writer.checkpoint()
    DAMAGES["flipped"](one, one.files["checkpoint"])
    assert one.read()[0] == EVERYTHING
    with pytest.raises(CorruptionError):
        one.world.snapshot(version="w@1")
    assert ("drop", one.files["checkpoint"]) in done(repair(one.world, dry_run=False))
    assert names(one.world.snapshot(version="w@1")) == EVERYTHING[:73] and errors(one.world) == []


def test_one_that_alone_covers_something_stays_where_its_segments_are_damaged_too() -> None:
    one = pruned()
    DAMAGES["flipped"](one, one.files["segment"])
    before = listed(one.store)
    made = repair(one.world, dry_run=False)
    (action,) = made.actions
    assert (action.what, action.subject, action.done) == ("drop", one.files["checkpoint"], False)
    assert "not all there" in action.obstacle and listed(one.store) == before
    held = [str(held) for finding in made.lost for held in finding.held]
    assert one.files["segment"] in {finding.file for finding in made.lost}
    assert any("73 rows of objects" in text for text in held)


@pytest.mark.parametrize("marked", [True, False])
@pytest.mark.parametrize("damage", ["missing", "truncated", "flipped", "foreign"])
def test_one_whose_transactions_are_gone_is_made_again_from_its_segments(damage: str, marked: bool) -> None:
    one = pruned()
    DAMAGES[damage](one, one.files["checkpoint"])
    if not marked:
        one.store.delete(one.files["marker"])
    with pytest.raises(CorruptionError):
        one.read()
    before = listed(one.store)
    made = repair(one.world)
    assert [action.what for action in made.actions] == [*(["drop"] if marked else []), "rebuild"]
    assert listed(one.store) == before
    made = repair(one.world, dry_run=False)
    assert all(action.done for action in made.actions)
    assert one.read()[0] == EVERYTHING
    assert {f.code for f in one.world.catalog().verify() if f.severity is Severity.ERROR} == {"MISSING_TRANSACTION"}
    assert all("its rows are there" in finding.message for finding in made.lost)
    with one.world.writer("w") as writer:
        one.world.commit(writer, ("put", "objects", obj("after")), ("delete", "objects", obj("a0")))
    assert one.read()[0] == sorted([*EVERYTHING[1:], "after"])


def test_a_stack_of_levels_is_made_again_as_one() -> None:
    world = filled(World())
    expected = {table: rows(world.snapshot(), table) for table in ("objects", "deleted_objects", "buckets")}
    assert len({run.level for run in last_checkpoint(world)[1].runs}) > 1
    lose_what_is_covered(world)
    with pytest.raises(CorruptionError):
        world.snapshot()
    made = repair(world, dry_run=False)
    assert "rebuild" in {action.what for action in made.actions if action.done}
    assert {table: rows(world.snapshot(), table) for table in expected} == expected


def test_beside_what_one_that_is_made_again_covers_somebody_may_yet_publish(monkeypatch: pytest.MonkeyPatch) -> None:
    """It had been made a moment ago, of a transaction that had just arrived, and another process of that writer has not seen this."""
    world = World()
    monkeypatch.setattr("bucketcatalog.clock.now_us", world.clock)

    with world.writer("another") as another:
        for name in ("gone", "there"):
            world.commit(another, ("put", "objects", obj(name)))
    stray = world.under_way(world.writer(), obj("stray"))
    world.clock.tick(HOUR)
    slow = world.writer()
    world.store.put(*stray)
    world.writer("compactor-1").checkpoint(scope="all")
    second = world.under_way(slow, obj("second"))
    for name in listed(world.store):
        if name.endswith(".ckpt") or name.startswith("another/default/transactions/00000000000000000000/"):
            world.store.delete(name)
    assert "rebuild" in {action.what for action in repair(world, dry_run=False).actions if action.done}
    world.store.put(*second)
    assert names(world.snapshot()) == ["gone", "second", "stray", "there"]


def test_one_that_is_made_again_knows_what_the_log_and_earlier_ones_tell_of_voids_tags_pins_and_applications() -> None:
    world = World()
    world.commit(world.writer("w"), ("put", "objects", [obj("a"), obj("b")]), app_id="job", app_version=7)
    world.clock.tick(24 * HOUR)
    world.commit(world.writer("v"), ("delete", "objects", obj("a")))
    world.clock.tick(-23 * HOUR)
    repair(world, void=["v@0"], dry_run=False)
    with world.writer("maintainer-2") as tagger:
        tagger.tag("x")
    with world.writer("w") as follower:
        follower.pin("before")
    with world.writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all")
    world.commit(world.writer("w"), ("put", "objects", obj("c")))
    with world.writer("w") as follower:
        pinned = [follower.pin("after").name, "before"]
    with world.writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all", full=True)
    name, lost = last_checkpoint(world)
    kept = {paths.segment(segment.writer, "default", segment.uuid) for segment in lost.segments}
    first = next(name for name in listed(world.store) if name.startswith("w/") and name.endswith(".txn"))
    for gone in [name, first, *(name for name in listed(world.store) if name.endswith(".parquet") and name not in kept)]:
        world.store.delete(gone)
    made = repair(world, dry_run=False)
    assert "rebuild" in {action.what for action in made.actions if action.done}
    assert {finding.file for finding in made.lost} == {first}
    assert names(world.snapshot()) == ["a", "b", "c"]
    assert list(tags_of(world.snapshot().view)) == ["x"]
    assert [name for _, name in pins_in(world.snapshot().view)] == pinned
    with world.writer("w") as writer:
        assert world.commit(writer, ("put", "objects", obj("again")), app_id="job", app_version=7).revision == 0


def test_what_only_a_lost_one_knew_is_lost_when_it_is_made_again() -> None:
    one = pruned()
    DAMAGES["flipped"](one, one.files["checkpoint"])
    made = repair(one.world, dry_run=False)
    (why,) = (action.why for action in made.actions if action.what == "rebuild")
    assert "revisions 0 to 1 of w" in why
    (lost,) = (finding for finding in made.lost if finding.file == one.files["checkpoint"])
    assert "its rows are there" in lost.message and [str(held) for held in lost.held] == ["revisions 0 to 1 of w"]


@pytest.mark.parametrize("number", range(2))
def test_with_a_segment_missing_it_is_not_made_again(number: int) -> None:
    world = filled(World())
    gone = last_checkpoint(world)[1].segments[-1 - number]
    world.store.delete(paths.segment(gone.writer, "default", gone.uuid))
    lose_what_is_covered(world)
    before = listed(world.store)
    made = repair(world, dry_run=False)
    assert not any(action.done for action in made.actions) and made.lost
    assert listed(world.store) == before


def test_one_of_everybody_that_a_newer_release_has_written_stays() -> None:
    one = specimen()
    with one.world.writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all")
    DAMAGES["newer"](one, last_checkpoint(one.world)[0])
    before = listed(one.store)
    (action,) = repair(one.world, dry_run=False).actions
    assert "newer release" in action.obstacle and not action.done and listed(one.store) == before


def test_one_of_a_plain_writer_that_says_that_a_newer_release_has_written_it_is_dropped() -> None:
    one = specimen()
    DAMAGES["newer"](one, one.files["checkpoint"])
    with pytest.raises(UnsupportedFormat):
        one.world.snapshot()
    assert ("drop", one.files["checkpoint"]) in done(repair(one.world, dry_run=False))
    assert names(one.world.snapshot()) == EVERYTHING and errors(one.world) == []


def test_one_that_says_something_else_than_its_transactions_is_dropped_after_a_deep_look() -> None:
    world = filled(World())
    expected = names(world.snapshot())
    name, checkpoint = last_checkpoint(world)
    segments = checkpoint.segments[:-1]
    rows = checkpoint.segments[-1].run.rows
    totals = {t: replace(n, live=n.live - rows) if t == "objects" else n for t, n in checkpoint.totals.items()}
    world.store.put(name, encode_checkpoint(replace(checkpoint, segments=segments, totals=totals)))
    assert names(world.snapshot()) != expected
    assert repair(world, dry_run=False).actions == ()
    assert ("drop", name) in done(repair(world, deep=True, dry_run=False))
    assert names(world.snapshot()) == expected and errors(world) == []
