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
        assert (action.what, action.subject, action.done) == ("join", "w", False) and "--join w" in action.obstacle
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
        assert (action.what, action.subject, action.done) == ("void", "w@1", False) and "--void w@1" in action.obstacle
        assert names(world.snapshot()) == ["base", "future"]
        assert not repair(world, void=["w@1"]).actions[0].done
        assert done(repair(world, void=["w@1"], dry_run=False)) == [("void", "w@1")]
        assert names(world.snapshot()) == ["base"]
        with world.writer("w") as writer:
            world.commit(writer, ("put", "objects", obj("now")))
        assert names(world.snapshot()) == ["base", "now"] and errors(world) == []
        assert repair(world, dry_run=False).actions == ()

    @pytest.mark.parametrize("name", ["w@0", "v@1", "w", "w@9"])
    def test_nothing_else_can_be_voided(self, world: World, name: str) -> None:
        with pytest.raises(InvalidOption, match="future"):
            repair(world, void=[name])


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
