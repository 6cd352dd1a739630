"""Damaged and lost checkpoints: done without where their transactions are there, or made again from what is left."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import pytest

from bucketcatalog import CorruptionError, HistoryPruned
from bucketcatalog.format.checkpoints import Checkpoint, decode_checkpoint, encode_checkpoint
from bucketcatalog.log.entries import tags_of
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


def kept_for(world: World, tag: str) -> tuple[str, Checkpoint]:
    """The checkpoint that was made last of what a tag names, and its name."""
    every = {name: decode_checkpoint(data, name) for name, data in listed(world.store).items() if name.endswith(".ckpt")}
    cut = tags_of(world.snapshot().view)[tag].latest.cut
    return max(((name, c) for name, c in every.items() if c.cut == cut), key=lambda found: found[1].created)


def damage_segments(world: World, writer: str, damage: str) -> None:
    """Damage every segment of a writer."""
    for name in [name for name in listed(world.store) if name.startswith(f"{writer}/") and name.endswith(".seg")]:
        DAMAGES[damage](Specimen(world, {}), name)


def lose(world: World, *endings: str) -> None:
    """Delete all files whose names end so."""
    for name in [name for name in listed(world.store) if name.endswith(endings)]:
        world.store.delete(name)


class TestCheckpoints:
    @pytest.mark.parametrize("damage", ["missing", "truncated", "flipped", "swapped", "foreign"])
    @pytest.mark.parametrize("kind", ["checkpoint", "segment"])
    def test_a_damaged_one_is_done_without_where_its_transactions_are_there(self, kind: str, damage: str) -> None:
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

    def test_an_old_one_that_is_damaged_is_dropped_though_nobody_reads_it_now(self) -> None:
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

    def test_one_that_alone_covers_something_stays_where_its_segments_are_damaged_too(self) -> None:
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
    def test_one_whose_transactions_are_gone_is_made_again_from_its_segments(self, damage: str, marked: bool) -> None:
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

    def test_a_stack_of_levels_is_made_again_as_one(self) -> None:
        world = filled(World())
        expected = {table: rows(world.snapshot(), table) for table in ("objects", "deleted_objects", "buckets")}
        assert len({run.level for s in last_checkpoint(world)[1].segments for run in s.runs}) > 1
        lose_what_is_covered(world)
        with pytest.raises(CorruptionError):
            world.snapshot()
        made = repair(world, dry_run=False)
        assert "rebuild" in {action.what for action in made.actions if action.done}
        assert {table: rows(world.snapshot(), table) for table in expected} == expected

    def test_that_of_the_horizon_is_made_again(self) -> None:
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

    def test_that_of_the_horizon_is_not_needed_where_another_reaches_it(self) -> None:
        world = reached_by_another()
        name = next(name for name in listed(world.store) if name.startswith("compactor-1/") and name.endswith(".ckpt"))
        world.store.put(name, world.store.get(name)[:-1])
        assert ("drop", name) in done(repair(world, dry_run=False)) and errors(world) == []
        assert names(world.snapshot()) == ["a", "b"]

    def test_one_that_was_dropped_before_is_not_used_again(self) -> None:
        world = reached_by_another(full=True)
        for name in [name for name in listed(world.store) if name.startswith("compactor-1/") and name.endswith(".seg")]:
            world.store.delete(name)
        repair(world, dry_run=False)
        assert errors(world) == [] and names(world.snapshot()) == ["a", "b"]
        for name in [
            name for name in listed(world.store) if name.endswith(".seg") or (name.startswith("w/") and "/data/" not in name)
        ]:
            world.store.delete(name)
        before = listed(world.store)
        assert repair(world, dry_run=False).lost and listed(world.store) == before

    def test_that_of_the_horizon_may_go_once_another_reaches_it(self) -> None:
        world = reached_by_another()
        name = next(name for name in listed(world.store) if name.startswith("compactor-1/") and name.endswith(".ckpt"))
        world.store.put(name, world.store.get(name)[:-1])
        repair(world, dry_run=False)
        with pytest.raises(HistoryPruned):
            world.snapshot(timestamp=f"@{world.clock.now - 3 * HOUR}")
        assert world.catalog().prune("0s", grace="0s", writer="maintainer-1", dry_run=False, force=True, clock=world.clock).done

    @pytest.mark.parametrize("damage", ["missing", "truncated", "flipped"])
    def test_versions_after_another_that_reaches_the_horizon_are_read_once_its_own_is_lost(self, damage: str) -> None:
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
    def test_without_that_of_the_horizon_the_history_up_to_the_next_one_is_said_to_be_lost(self, damage: str) -> None:
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
    def test_one_of_exactly_a_tags_cut_whose_segments_are_lost_is_not_taken_for_what_is_kept_of_the_tag(
        self, damage: str
    ) -> None:
        world = tagged_at_its_first_checkpoint()
        for name in [name for name in listed(world.store) if name.startswith("maintainer-1/") and name.endswith(".seg")]:
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

    @pytest.mark.parametrize("damage", ["missing", "truncated", "index flipped", "flipped"])
    def test_a_version_behind_the_horizon_of_which_one_that_was_dropped_is_all_that_is_left_is_pruned(self, damage: str) -> None:
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

    def test_a_version_behind_the_horizon_is_read_while_a_checkpoint_of_it_has_its_marker_or_a_tag_had_it(self) -> None:
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
    @pytest.mark.parametrize("by", ["compactor-3", "w"])
    def test_that_of_the_horizon_that_was_dropped_is_not_what_the_next_ones_start_from(self, by: str, damage: str) -> None:
        world = reached_by_another(full=True)
        damage_segments(world, "compactor-1", damage)
        repair(world, dry_run=False)
        world.commit(world.writer("w"), ("put", "objects", obj("c")))
        with world.writer(by) as writer:
            assert writer.checkpoint(scope="own" if by == "w" else "all") is not None
        assert names(world.snapshot()) == ["a", "b", "c"] and errors(world) == []

    @pytest.mark.parametrize("damage", ["missing", "truncated", "index flipped", "flipped"])
    @pytest.mark.parametrize("rows", [2, 3_000])
    def test_that_of_the_horizon_that_was_dropped_is_not_what_is_kept_for_tags(self, rows: int, damage: str) -> None:
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
    @pytest.mark.parametrize("ending", [".ckpt", ".seg"])
    def test_what_a_tag_alone_needs_of_one_that_is_dropped_is_lost_and_said_to_be(self, ending: str, damage: str) -> None:
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
    @pytest.mark.parametrize("ending", [".ckpt", ".seg"])
    def test_one_that_was_made_for_a_tag_is_done_without_while_its_transactions_are_there(self, ending: str, damage: str) -> None:
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
        is_block = (ending, damage) == (".seg", "flipped")
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

    def test_one_that_replaces_another_is_the_last_whatever_the_clock_of_its_maker_says(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("bucketcatalog.clock.now_us", lambda: 2_000_000)
        world = published(grace="1h", tag="x")
        for made_at, created in ((2_000_000, 2_000_001), (1_000_000, 2_000_002)):
            monkeypatch.setattr("bucketcatalog.clock.now_us", lambda made_at=made_at: made_at)
            _, kept = kept_for(world, "x")
            DAMAGES["flipped"](Specimen(world, {}), paths.segment(kept.writer, "default", kept.segments[0].uuid))
            assert done(repair(world, dry_run=False)) == [("checkpoint", "x")] and errors(world) == []
            assert kept_for(world, "x")[1].created == created and names(world.snapshot(version="x")) == ["a"]

    @pytest.mark.parametrize("damage", ["truncated", "flipped"])
    def test_one_at_a_maintainers_first_revision_is_dropped_for_good_beside_tags(self, damage: str) -> None:
        world = tagged_at_its_first_checkpoint()
        name = next(name for name in listed(world.store) if name.startswith("maintainer-1/") and name.endswith(".ckpt"))
        DAMAGES[damage](Specimen(world, {}), name)
        assert ("drop", name) in done(repair(world, dry_run=False))
        assert errors(world) == [] and repair(world).actions == ()
        assert names(world.snapshot(version="x")) == ["a", "b"]

    def test_that_of_the_horizon_is_not_made_of_what_is_damaged(self) -> None:
        world = published(grace="0s")
        name = next(name for name in listed(world.store) if name.startswith("maintainer-1/") and name.endswith(".seg"))
        world.store.put(name, world.store.get(name)[:-100])
        before = listed(world.store)
        made = repair(world, dry_run=False)
        assert made.lost and not any(action.done for action in made.actions) and listed(world.store) == before

    @pytest.mark.parametrize("endings", [(".ckpt",), (".seg",), (".ckpt", ".seg")])
    def test_that_of_the_horizon_is_made_of_the_transactions_while_these_are_there(self, endings: tuple[str, ...]) -> None:
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

    @pytest.mark.parametrize("endings", [(".ckpt",), (".seg",), (".ckpt", ".seg")])
    def test_that_of_a_new_horizon_is_made_of_the_one_before_while_that_is_there(self, endings: tuple[str, ...]) -> None:
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

    def test_one_that_is_made_again_knows_what_the_log_and_earlier_ones_tell_of_voids_tags_and_applications(self) -> None:
        world = World()
        world.commit(world.writer("w"), ("put", "objects", [obj("a"), obj("b")]), app_id="job", app_version=7)
        world.clock.tick(24 * HOUR)
        world.commit(world.writer("v"), ("delete", "objects", obj("a")))
        world.clock.tick(-23 * HOUR)
        repair(world, void=["v@0"], dry_run=False)
        with world.writer("maintainer-2") as tagger:
            tagger.tag("x")
        with world.writer("compactor-1") as compactor:
            compactor.checkpoint(scope="all")
        world.commit(world.writer("w"), ("put", "objects", obj("c")))
        with world.writer("compactor-1") as compactor:
            compactor.checkpoint(scope="all", full=True)
        name, lost = last_checkpoint(world)
        kept = {paths.segment(segment.writer, "default", segment.uuid) for segment in lost.segments}
        first = next(name for name in listed(world.store) if name.startswith("w/") and name.endswith(".txn"))
        for gone in [name, first, *(name for name in listed(world.store) if name.endswith(".seg") and name not in kept)]:
            world.store.delete(gone)
        made = repair(world, dry_run=False)
        assert "rebuild" in {action.what for action in made.actions if action.done}
        assert {finding.file for finding in made.lost} == {first}
        assert names(world.snapshot()) == ["a", "b", "c"]
        assert list(tags_of(world.snapshot().view)) == ["x"]
        with world.writer("w") as writer:
            assert world.commit(writer, ("put", "objects", obj("again")), app_id="job", app_version=7).revision == 0

    def test_what_only_a_lost_one_knew_is_lost_when_it_is_made_again(self) -> None:
        one = pruned()
        DAMAGES["flipped"](one, one.files["checkpoint"])
        made = repair(one.world, dry_run=False)
        (why,) = (action.why for action in made.actions if action.what == "rebuild")
        assert "revisions 0 to 1 of w" in why
        (lost,) = (finding for finding in made.lost if finding.file == one.files["checkpoint"])
        assert "its rows are there" in lost.message and [str(held) for held in lost.held] == ["revisions 0 to 1 of w"]

    @pytest.mark.parametrize("number", range(2))
    def test_with_a_segment_missing_it_is_not_made_again(self, number: int) -> None:
        world = filled(World())
        gone = last_checkpoint(world)[1].segments[-1 - number]
        world.store.delete(paths.segment(gone.writer, "default", gone.uuid))
        lose_what_is_covered(world)
        before = listed(world.store)
        made = repair(world, dry_run=False)
        assert not any(action.done for action in made.actions) and made.lost
        assert listed(world.store) == before

    def test_one_that_a_newer_release_has_written_stays(self) -> None:
        one = specimen()
        DAMAGES["newer"](one, one.files["checkpoint"])
        before = listed(one.store)
        (action,) = repair(one.world, dry_run=False).actions
        assert "newer release" in action.obstacle and not action.done and listed(one.store) == before

    def test_one_that_says_something_else_than_its_transactions_is_dropped_after_a_deep_look(self) -> None:
        world = filled(World())
        expected = names(world.snapshot())
        name, checkpoint = last_checkpoint(world)
        segments = checkpoint.segments[:-1]
        rows = sum(run.rows for run in checkpoint.segments[-1].runs)
        totals = {t: replace(n, live=n.live - rows) if t == "objects" else n for t, n in checkpoint.totals.items()}
        world.store.put(name, encode_checkpoint(replace(checkpoint, segments=segments, totals=totals)))
        assert names(world.snapshot()) != expected
        assert repair(world, dry_run=False).actions == ()
        assert ("drop", name) in done(repair(world, deep=True, dry_run=False))
        assert names(world.snapshot()) == expected and errors(world) == []
