"""``repair`` mends what what is left allows, only says so in a dry run, deletes nothing that it could not read, and lists what is lost."""

from __future__ import annotations

import pytest

from bucketcatalog import CorruptionError, DatabaseNotFound, ForeignBranch, InvalidOption
from bucketcatalog.maintain.repair import Repair
from bucketcatalog.store import Store
from bucketcatalog.store.wrappers import Wrapped

from ....kit.corrupting import DAMAGES, EVERYTHING, Specimen, specimen
from ....kit.repairing import done, errors, listed, repair
from ....kit.world import HOUR, MINUTE, World, names, obj

pytestmark = pytest.mark.filterwarnings("ignore::bucketcatalog.errors.CatalogWarning")


def test_a_whole_catalog_needs_nothing() -> None:
    one = specimen()
    before = listed(one.store)
    assert repair(one.world, dry_run=False) == Repair("default", (), ())
    assert listed(one.store) == before


def test_only_a_maintainer_repairs_and_only_what_is_there() -> None:
    one = specimen()
    with pytest.raises(InvalidOption, match="maintainer-"):
        one.world.catalog().repair(writer="w")
    with pytest.raises(DatabaseNotFound):
        repair(one.world, database="other")


class TestTransactions:
    @pytest.mark.parametrize("damage", ["missing", "flipped"])
    def test_what_a_checkpoint_covers_is_lost_to_history_alone(self, damage: str) -> None:
        one = specimen()
        DAMAGES[damage](one, one.files["covered transaction"])
        made = repair(one.world, dry_run=False)
        (finding,) = made.lost
        assert made.actions == () and finding.file == one.files["covered transaction"]
        assert "its rows are there" in finding.message and [str(held) for held in finding.held] == ["revision 0 of w"]

    def test_what_nothing_covers_is_lost(self) -> None:
        one = specimen()
        DAMAGES["flipped"](one, one.files["transaction"])
        (finding,) = repair(one.world, dry_run=False).lost
        assert finding.file == one.files["transaction"] and "its rows are there" not in finding.message


class TestForks:
    @pytest.fixture
    def world(self) -> World:
        world = World()
        world.commit(world.writer("w"), ("put", "objects", obj("base")))
        writers = [world.writer("w") for _ in range(3)]
        for number, writer in enumerate(writers):
            for n in range(2):
                world.commit(writer, ("put", "objects", obj(f"{number}{n}")))
        world.clock.tick(HOUR)
        return world

    def test_a_fork_is_joined_where_its_writer_is_named(self, world: World) -> None:
        expected = names(world.snapshot())
        (action,) = repair(world, dry_run=False).actions
        assert (action.what, action.subject, action.done) == ("join", "w", False) and "join=['w']" in action.obstacle
        with pytest.raises(ForeignBranch):
            world.writer("w")
        assert not repair(world, join=["w"]).actions[0].done
        before = listed(world.store)
        assert done(repair(world, join=["w"], dry_run=False)) == [("join", "w")]
        added = listed(world.store).keys() - before.keys()
        assert len(added) == 1 and all(name.startswith("w/") for name in added)
        assert names(world.snapshot(strict=True)) == expected
        with world.writer("w") as writer:
            world.commit(writer, ("put", "objects", obj("after")))
        assert names(world.snapshot(strict=True)) == sorted([*expected, "after"]) and errors(world) == []
        assert repair(world, dry_run=False).actions == ()

    def test_a_fork_whose_commits_are_young_waits(self, world: World) -> None:
        world.clock.tick(-HOUR)
        (action,) = repair(world, join=["w"], dry_run=False).actions
        assert "Wait for" in action.obstacle and not action.done
        world.clock.tick(7 * MINUTE)
        assert done(repair(world, join=["w"], dry_run=False)) == [("join", "w")]

    def test_what_is_not_forked_cannot_be_joined(self, world: World) -> None:
        with pytest.raises(InvalidOption, match="not forked"):
            repair(world, join=["v"])


class TestTheFuture:
    @pytest.fixture
    def world(self) -> World:
        world = World()
        with world.writer("w") as writer:
            world.commit(writer, ("put", "objects", obj("base")))
            world.clock.tick(24 * HOUR)
            world.commit(writer, ("put", "objects", obj("future")))
            world.clock.tick(-24 * HOUR)
        return world

    def test_a_commit_from_the_future_is_voided_where_it_is_named(self, world: World) -> None:
        (action,) = repair(world, dry_run=False).actions
        assert (action.what, action.subject, action.done) == ("void", "w@1", False) and "void=['w@1']" in action.obstacle
        assert names(world.snapshot()) == ["base", "future"]
        assert not repair(world, void=["w@1"]).actions[0].done
        assert done(repair(world, void=["w@1"], dry_run=False)) == [("void", "w@1")]
        assert names(world.snapshot()) == ["base"]
        with world.writer("w") as writer:
            world.commit(writer, ("put", "objects", obj("now")))
        assert names(world.snapshot()) == ["base", "now"] and errors(world) == []
        assert repair(world, dry_run=False).actions == ()

    @pytest.mark.parametrize("is_covered", [False, True])
    def test_a_maintainers_own_is_voided_by_another_and_everybody_commits_again(self, world: World, is_covered: bool) -> None:
        with world.writer("maintainer-1") as writer:
            world.commit(writer, ("put", "objects", obj("mine")))
            world.clock.tick(24 * HOUR)
            world.commit(writer, ("put", "objects", obj("mine, future")))
            world.clock.tick(-24 * HOUR)
        world.clock.tick()
        made = world.catalog().repair(writer="maintainer-2", clock=world.clock, void=["w@1", "maintainer-1@1"], dry_run=False)
        assert done(made) == [("void", "maintainer-1@1"), ("void", "w@1")]
        if is_covered:
            with world.writer("compactor-1") as compactor:
                compactor.checkpoint(scope="all")
        for name in ("w", "maintainer-1"):
            with world.writer(name) as writer:
                world.commit(writer, ("put", "objects", obj(f"{name}, now")))
        assert names(world.snapshot(strict=True)) == ["base", "maintainer-1, now", "mine", "w, now"] and errors(world) == []

    @pytest.mark.parametrize("name", ["w@0", "v@1", "w", "w@9"])
    def test_nothing_else_can_be_voided(self, world: World, name: str) -> None:
        with pytest.raises(InvalidOption, match="future"):
            repair(world, void=[name])


class TestTheRepairersOwnFork:
    """Who repairs commits voids and checkpoints under its own id, so a fork of its own comes first."""

    @pytest.fixture
    def world(self) -> World:
        """The timelines of the repairing maintainer and of a writer are forked, and one of the writer's branches ends in the future."""
        world = World()
        world.commit(world.writer("w"), ("put", "objects", obj("base")))
        for name in ("maintainer-1", "w"):
            branches = [world.writer(name) for _ in range(2)]
            for number, writer in enumerate(branches * 2):
                world.clock.tick(24 * HOUR if (name, number) == ("w", 3) else 1)
                world.commit(writer, ("put", "objects", obj(f"{name}{number}")))
        world.clock.tick(-23 * HOUR)
        return world

    def test_it_is_joined_before_a_void_and_others_after(self, world: World) -> None:
        before = names(world.snapshot())
        options = {"join": ["w", "maintainer-1"], "void": ["w@2"]}
        assert [action.obstacle for action in repair(world, **options).actions] == ["", "", ""]
        made = repair(world, **options, dry_run=False)
        assert done(made) == [("join", "maintainer-1"), ("void", "w@2"), ("join", "w")]
        assert names(world.snapshot(strict=True)) == [name for name in before if name != "w3"] and errors(world) == []
        assert repair(world, dry_run=False).actions == ()

    @pytest.mark.parametrize(("join", "obstacle"), [([], "Give join=['maintainer-1']"), (["maintainer-1"], "Wait for")])
    def test_what_it_has_to_commit_waits_until_then(self, world: World, join: list[str], obstacle: str) -> None:
        if join:
            world.clock.tick(2 * MINUTE - HOUR)
        options = {"join": [*join, "w"], "void": ["w@2"]}
        before = listed(world.store)
        for dry_run in (True, False):
            made = repair(world, **options, dry_run=dry_run)
            assert done(made) == []
            (own,) = (action for action in made.actions if action.subject == "maintainer-1")
            others = [action for action in made.actions if action is not own]
            assert obstacle in own.obstacle and [(action.what, action.subject) for action in others] == [
                ("void", "w@2"),
                ("join", "w"),
            ]
            assert "maintainer-1" in others[0].obstacle and others[1].obstacle
        assert listed(world.store) == before

    def test_a_branch_that_ends_in_the_future_is_joined_once_that_is_voided(self, world: World) -> None:
        for dry_run in (True, False):
            void, join = (a for a in repair(world, join=["w"], dry_run=dry_run).actions if a.subject != "maintainer-1")
            assert (join.what, join.subject, join.done) == ("join", "w", False) and "void=['w@2']" in join.obstacle
            assert (void.what, void.subject, void.done) == ("void", "w@2", False) and "void=['w@2']" in void.obstacle

    @pytest.mark.parametrize("is_forked", [False, True])
    def test_its_own_commit_from_the_future_is_voided_by_another_maintainer(self, is_forked: bool) -> None:
        world = World()
        world.commit(world.writer("w"), ("put", "objects", obj("base")))
        branches = [world.writer("maintainer-1") for _ in range(2 if is_forked else 1)]
        for writer in branches:
            world.commit(writer, ("put", "objects", obj("now")))
        world.clock.tick(24 * HOUR)
        world.commit(branches[0], ("put", "objects", obj("future")))
        world.clock.tick(-23 * HOUR)
        options = {"void": ["maintainer-1@1"], "join": ["maintainer-1"] * is_forked}
        before = listed(world.store)
        for dry_run in (True, False):
            made = repair(world, **options, dry_run=dry_run)
            assert done(made) == [] and len(made.actions) == 1 + is_forked
            assert all("another maintainer" in action.obstacle for action in made.actions)
        assert listed(world.store) == before
        made = world.catalog().repair(writer="maintainer-2", clock=world.clock, **options, dry_run=False)
        assert done(made) == [("void", "maintainer-1@1"), *[("join", "maintainer-1")] * is_forked]
        assert names(world.snapshot(strict=True)) == ["base", "now"] and errors(world) == []

    def test_damaged_checkpoints_wait_too_and_nothing_is_lost_with_them(self) -> None:
        one = specimen()
        for writer in [one.world.writer("maintainer-1") for _ in range(2)] * 2:
            one.world.clock.tick()
            one.world.commit(writer, ("put", "objects", obj("same")))
        DAMAGES["flipped"](one, one.files["checkpoint"])
        one.world.clock.tick(HOUR)
        made = repair(one.world, dry_run=False)
        assert done(made) == [] and made.lost == () and {action.what for action in made.actions} >= {"drop", "checkpoint", "join"}
        made = repair(one.world, join=["maintainer-1"], dry_run=False)
        assert {what for what, _ in done(made)} >= {"drop", "checkpoint", "join"} and errors(one.world) == []


class Dying(Wrapped):
    """A store that fails at the n-th change."""

    def __init__(self, inner: Store, after: int) -> None:
        super().__init__(inner)
        self.left = after

    def _count(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt

    def put(self, name: str, data: bytes) -> None:
        self._count()
        self.inner.put(name, data)

    def delete(self, name: str) -> None:
        self._count()
        self.inner.delete(name)


def outcome(one: Specimen) -> list[str] | str:
    """What a reader gets: the rows, or the error about the checkpoint."""
    try:
        return one.read()[0]
    except CorruptionError as error:
        return "damaged" if one.files["checkpoint"] in error.message else str(error)


@pytest.mark.parametrize("after", range(6))
def test_a_repair_that_is_broken_off_can_be_repeated(after: int) -> None:
    one = specimen()
    DAMAGES["flipped"](one, one.files["checkpoint"])
    dying = World(Dying(one.store, after))
    dying.clock = one.world.clock
    try:
        repair(dying, dry_run=False)
    except KeyboardInterrupt:
        pass
    else:
        assert after >= 5
    assert outcome(one) in (EVERYTHING, "damaged")
    repair(one.world, dry_run=False)
    assert one.read()[0] == EVERYTHING and errors(one.world) == []
