"""Pins keep what was committed after their cuts: no horizon is published that the cut of a pin which holds does not contain."""

from __future__ import annotations

from typing import Any

import pytest

from bucketcatalog import HistoryPruned
from bucketcatalog.maintain.prune import PruneResult
from bucketcatalog.maintain.verdict import Keeper
from bucketcatalog.write.writer import Writer

from ....kit.mallory import Mallory
from ....kit.pruning import GRACE, checkpoint, prune, put, verified
from ....kit.world import DAY, HOUR, World, names, obj, stored

pytestmark = pytest.mark.usefixtures("one_clock")


def days(world: World, writer: Writer, *wanted: str) -> list[str]:
    """A commit and a checkpoint of everyone, a day each; returns the versions of the checkpoints."""
    versions = []
    for name in wanted:
        put(world, writer, name)
        world.clock.tick(HOUR)
        versions.append(checkpoint(world))
        world.clock.tick(DAY)
    return versions


def finish(world: World, **options: Any) -> PruneResult:
    """Prune until what is published is deleted."""
    prune(world, **options)
    world.clock.tick(GRACE)
    return prune(world, **options)


def since(world: World, version: str) -> list[str]:
    """What was put after a version, by the changes since then."""
    return [str(row["name"]) for row in world.catalog().changes(start=version).to_arrow().to_pylist()]


@pytest.mark.parametrize("who", ["stream", "maintainer-2"])
def test_the_newest_checkpoint_within_a_pin_is_the_horizon_and_what_comes_after_the_pin_can_be_read(
    world: World, who: str
) -> None:
    writer, follower = world.writer("a"), world.writer(who)
    first, *_ = days(world, writer, "v", "w")
    put(world, writer, "x")
    pinned = follower.pin("p").version
    days(world, writer, "y", "z")
    told = prune(world, dry_run=True)
    assert [(pin.name, pin.writer, pin.version) for pin in told.pins] == [("p", who, pinned)]
    assert Keeper.PIN not in {staying.keeper for staying in told.kept}, "something goes"
    done = finish(world)
    assert done.files and [pin.version for pin in done.pins] == [pinned]
    for _ in range(2):
        assert since(world, pinned) == ["y", "z"] and names(world.snapshot(version=pinned)) == ["v", "w", "x"]
        with pytest.raises(HistoryPruned):
            since(world, first)
        finish(world)
    assert done.horizon != first and verified(world) == []
    assert follower.pin("p").version != pinned
    world.clock.tick(DAY)
    assert finish(world).pins == ()
    with pytest.raises(HistoryPruned):
        since(world, pinned)


def test_a_pin_before_every_checkpoint_keeps_all_and_is_told_for_it(world: World) -> None:
    writer = world.writer("a")
    put(world, writer, "x")
    pinned = writer.pin("p", version=":").version
    days(world, writer, "y", "z")
    before = set(stored(world))
    for _ in range(2):
        done = finish(world)
        assert (done.files, done.waiting, done.horizon) == ((), (), None)
        assert [staying.keeper for staying in done.kept] == [Keeper.PIN] and done.kept[0].files == len(before)
        assert [(pin.name, pin.writer) for pin in done.pins] == [("p", "a")]
        assert set(stored(world)) == before, "nothing is published, and no checkpoint that could not be the horizon either"
    assert since(world, pinned) == ["x", "y", "z"]


def test_what_is_told_after_a_horizon_names_the_pin_that_keeps_the_next_one_away(world: World) -> None:
    writer = world.writer("a")
    days(world, writer, "v", "w")
    writer.pin("p")
    days(world, writer, "x", "y", "z")
    horizon = finish(world).horizon
    done = prune(world)
    assert done.horizon == horizon and [pin.name for pin in done.pins] == ["p"]
    kept = {staying.keeper: staying.files for staying in done.kept}
    assert kept[Keeper.PIN] and Keeper.NEWER not in kept


def test_a_plain_writers_pin_holds_for_a_week_after_it_was_last_given_and_then_the_reader_is_told(world: World) -> None:
    writer, follower = world.writer("a"), world.writer("stream")
    put(world, writer, "v")
    pinned = follower.pin("p").version
    for number in range(4):  # far behind, and given again and again
        days(world, writer, f"x{number}", f"y{number}")
        assert follower.pin("p", version=pinned).version == pinned
        finish(world)
        assert since(world, pinned)[:2] == ["x0", "y0"]
    world.clock.tick(5 * DAY)
    assert prune(world).pins, "it is not over yet"
    world.clock.tick(2 * DAY)
    done = finish(world)
    assert done.pins == () and done.files
    with pytest.raises(HistoryPruned, match="pruned by 'maintainer-1'") as error:
        since(world, pinned)
    assert error.value.next_step.startswith("Begin anew from a time or a version from then on, with its state")
    with pytest.raises(HistoryPruned) as error:
        follower.pin("p", version=pinned)
    assert error.value.next_step.startswith("Begin anew")
    again = follower.pin("p")
    put(world, writer, "new")
    assert since(world, again.version) == ["new"]


@pytest.mark.parametrize(("who", "is_kept"), [("stream", False), ("maintainer-2", True)])
def test_how_long_a_plain_writers_pin_holds_is_up_to_who_prunes(world: World, who: str, is_kept: bool) -> None:
    writer = world.writer("a")
    put(world, writer, "v")
    pinned = world.writer(who).pin("p").version
    days(world, writer, "x", "y", "z")
    assert bool(finish(world, pin_age="1d").files) is not is_kept
    assert bool(prune(world, pin_age="1d").pins) is is_kept
    if is_kept:
        assert since(world, pinned) == ["x", "y", "z"]
    else:
        with pytest.raises(HistoryPruned):
            since(world, pinned)


def test_a_pin_that_was_dropped_holds_nothing_whether_or_not_a_checkpoint_lies_between(world: World) -> None:
    writer, follower = world.writer("a"), world.writer("maintainer-2")
    put(world, writer, "v")
    follower.pin("p")
    days(world, writer, "x", "y")
    assert prune(world).pins
    follower.unpin("p")
    assert prune(world, dry_run=True).pins == ()
    days(world, writer, "z")
    assert prune(world).pins == () and prune(world).horizon is not None


def test_of_several_pins_the_one_that_is_furthest_behind_decides(world: World) -> None:
    writer = world.writer("a")
    (first,) = days(world, writer, "v")
    early = world.writer("slow").pin("p")
    days(world, writer, "w", "x")
    late = world.writer("fast").pin("p")
    days(world, writer, "y", "z")
    done = finish(world)
    assert {pin.writer for pin in done.pins} == {"slow", "fast"}, "without them the horizon would be later"
    assert since(world, early.version) == ["w", "x", "y", "z"] and since(world, late.version) == ["y", "z"]
    assert done.horizon == first


def test_a_pin_that_is_given_once_a_boundary_is_published_changes_nothing_of_that_one(world: World) -> None:
    """Who had not seen the boundary gives it all the same: it is too late, and it keeps no later horizon away."""
    writer = world.writer("a")
    follower = world.writer("stream")
    put(world, writer, "v")
    pinned = follower.pin("p").version
    follower.unpin("p")
    days(world, writer, "w", "x", "y")
    before = {info.name: world.store.get(info.name) for info in world.store.list("")}
    follower.pin("p", version=pinned)  # as who had looked before the boundary would
    late = {info.name: world.store.get(info.name) for info in world.store.list("") if info.name not in before}
    for name in late:
        world.store.delete(name)
    published = prune(world)
    assert published.horizon is not None and published.waiting and published.pins == ()
    for name, data in late.items():
        world.store.put(name, data)
    with pytest.raises(HistoryPruned):
        since(world, pinned)
    world.clock.tick(GRACE)
    assert prune(world).files
    days(world, writer, "z", "zz")
    done = prune(world)
    assert done.pins == () and done.horizon != published.horizon
    assert names(world.snapshot()) == ["v", "w", "x", "y", "z", "zz"]


class TestForks:
    """Of a forked timeline a pin has one branch, or both: which it is decides, and not the revisions."""

    def forked(self, world: World) -> tuple[str, str]:
        """A timeline of two branches of equal length; returns the versions of each."""
        put(world, world.writer("a"), "base")
        before = set(stored(world))
        put(world, world.writer("a"), "left")
        left = world.snapshot().version
        files = {name: world.store.get(name) for name in set(stored(world)) - before}
        for name in files:
            world.store.delete(name)
        world.clock.tick()
        put(world, world.writer("a"), "right")
        right = world.snapshot().version
        for name, data in files.items():
            world.store.put(name, data)
        return left, right

    @pytest.mark.filterwarnings("ignore::bucketcatalog.CatalogWarning")
    @pytest.mark.parametrize("joined", [False, True])
    @pytest.mark.parametrize("of", ["left", "right", "both"])
    def test_a_pin_holds_the_branch_that_it_has_not_seen(self, world: World, of: str, joined: bool) -> None:
        left, right = self.forked(world)
        follower = world.writer("maintainer-2")
        pin = follower.pin("p", version={"left": left, "right": right, "both": None}[of])
        if joined:
            world.catalog().repair(join=["a"], dry_run=False, writer="maintainer-1", clock=world.clock)
        world.clock.tick(HOUR)
        checkpoint(world)
        world.clock.tick(2 * DAY)
        if joined:
            put(world, world.writer("a"), "later")
        else:
            put(world, world.writer("b"), "later")
        finish(world)
        later = {"left": ["right", "later"], "right": ["left", "later"], "both": ["later"]}[of]
        assert since(world, pin.version) == later
        assert [found.name for found in prune(world).pins] == ["p"]

    @pytest.mark.filterwarnings("ignore::bucketcatalog.CatalogWarning")
    @pytest.mark.parametrize("is_pinned", [False, True])
    def test_a_checkpoint_of_a_branch_that_the_pin_has_not_is_not_within_it_though_its_revisions_are(
        self, world: World, is_pinned: bool
    ) -> None:
        writer = world.writer("a")
        put(world, writer, "v")
        world.clock.tick(HOUR)
        seen = checkpoint(world)
        branch = {name: world.store.get(name) for name in stored(world) if name.startswith("compactor-1/")}
        for name in branch:
            world.store.delete(name)
        put(world, writer, "w")
        unseen = checkpoint(world)  # by another process, at the same revision
        other = {name: world.store.get(name) for name in stored(world) if name.startswith("compactor-1/")}
        for name in other:
            world.store.delete(name)
        for name, data in branch.items():
            world.store.put(name, data)
        pin = world.writer("maintainer-2").pin("p")
        if not is_pinned:
            world.writer("maintainer-2").unpin("p")
        for name, data in other.items():
            world.store.put(name, data)
        world.clock.tick(2 * DAY)
        put(world, writer, "x")
        done = finish(world)
        assert done.horizon == (seen if is_pinned else unseen)
        if is_pinned:
            assert since(world, pin.version) == ["x"]
        else:
            with pytest.raises(HistoryPruned):
                since(world, pin.version)


class TestBelievesNobody:
    @pytest.mark.parametrize("change", ["gone", "behind"])
    def test_a_plain_writers_pin_of_what_is_not_there_keeps_nobody_from_pruning(self, world: World, change: str) -> None:
        writer = world.writer("a")
        put(world, writer, "v")
        put(world, world.writer("mallory"), "m")
        days(world, writer, "w", "x")
        if change == "behind":
            finish(world)
        mallory = Mallory(world.store)
        made = mallory.next()
        made.required_features.append("pins")
        made.pin.name = "p"
        if change == "gone":
            made.pin.cut.writers.add(writer="a").heads.add(revision=10**9, uuid=mallory.last("a").uuid)
        mallory.put(made)
        days(world, writer, "y", "z")
        done = prune(world)
        assert done.pins == () and done.horizon is not None and done.waiting

    def test_a_maintainers_pin_whose_cut_is_damaged_holds_until_it_is_dropped(self, world: World) -> None:
        writer = world.writer("a")
        put(world, writer, "v")
        days(world, writer, "w")
        put(world, writer, "x")
        world.writer("maintainer-2").pin("p")
        (lost,) = [name for name in stored(world, ".txn") if name.startswith(f"a/default/transactions/{2:020}/")]
        data = world.store.get(lost)
        days(world, writer, "y", "z")
        world.store.delete(lost)
        done = prune(world, dry_run=True)
        assert [pin.name for pin in done.pins] == ["p"] and done.horizon is None
        world.store.put(lost, data)
        assert prune(world).horizon is not None


def test_pins_hold_no_data_and_purges_are_among_the_changes_that_they_hold(world: World) -> None:
    writer = world.writer("a")
    put(world, writer, "v")
    version = world.snapshot().scan("objects", columns=["_version"]).to_arrow()["_version"][0].as_py()
    pinned = world.writer("stream").pin("p").version
    world.commit(writer, ("delete", "objects", obj("v")))
    world.commit(writer, ("purge", "objects", obj("v", _version=version)))
    days(world, writer, "x", "y")
    finish(world)
    changes = world.catalog().changes(start=pinned).to_arrow().to_pylist()
    assert [row["_change_type"] for row in changes] == ["delete", "purge", "put", "put"]
