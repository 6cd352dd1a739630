"""Tags behind the horizon: what they name stays readable for as long as they are there, and is not cloned."""

from __future__ import annotations

import pytest

from bucketcatalog import Catalog, HistoryPruned, TagExists
from bucketcatalog.maintain.clone import clone
from bucketcatalog.store.faults import Counting
from bucketcatalog.store.memory import MemoryStore

from ....kit.pruning import GRACE, checkpoint, keep_time, own_checkpoint, prune, pruned_with_a_tag, put
from ....kit.world import DAY, HOUR, World, names, stored

pytestmark = pytest.mark.usefixtures("one_clock")


def test_a_tag_keeps_its_version_readable_and_is_freed_when_it_is_dropped(world: World) -> None:
    writer = world.writer("a")
    put(world, writer, "x")
    with world.writer("maintainer-2") as tagger:
        tagged = tagger.tag("first").version
    world.clock.tick(HOUR)
    put(world, writer, "y")
    world.clock.tick(HOUR)  # nobody can come beside what lies before the last any more
    checkpoint(world)
    world.clock.tick(2 * DAY)
    put(world, writer, "z")
    assert prune(world).tags == (tagged,)
    for _ in range(2):
        assert names(world.snapshot(version="first")) == names(world.snapshot(version=tagged)) == ["x"]
        changed = world.catalog().diff(start="first").to_arrow().to_pylist()
        assert [row["name"] for row in changed] == ["y", "z"]
        world.clock.tick(GRACE)
        assert prune(world).tags == ()
    assert [int(name.split("/")[3]) for name in stored(world, ".txn") if name.startswith("a/")] == [1, 2]
    first = "maintainer-1/default/transactions/" + "0" * 20
    kept = [name for name in stored(world, ".ckpt") if name.startswith(first) and not stored(world, name[-41:-5])]
    assert len(kept) == 1
    with world.writer("maintainer-2") as tagger:
        tagger.drop_tag("first")
    world.clock.tick(GRACE + 7 * DAY)
    assert kept[0] in [file.name for file in prune(world).files]
    with pytest.raises(HistoryPruned):
        world.snapshot(version=tagged)


def test_a_tag_of_the_version_of_a_maintainers_first_checkpoint_keeps_that_without_its_marker(world: World) -> None:
    """It lies where the checkpoints of tags lie, and is none of these, for it was written to become the horizon."""
    writer = world.writer("a")
    put(world, writer, "x")
    assert (
        prune(world).horizon is None
    )  # nothing is old enough; it writes a checkpoint of everyone, the first that this maintainer does
    (first,) = stored(world, ".ckpt")
    with world.writer("maintainer-1") as tagger:
        tagged = tagger.tag("first").version
    world.clock.tick(HOUR)
    put(world, writer, "y")
    checkpoint(world)
    world.clock.tick(2 * DAY)
    assert prune(world).tags == (), "there is one of its version"
    for _ in range(3):
        world.clock.tick(GRACE)
        prune(world)
        assert names(world.snapshot(version="first")) == names(world.snapshot(version=tagged)) == ["x"]
    assert first in stored(world) and not stored(world, first[-41:-5]), "readers of other versions do not meet it"
    assert list(world.catalog().verify(deep=True)) == []
    with world.writer("maintainer-1") as tagger:
        tagger.drop_tag("first")
    world.clock.tick(GRACE + 7 * DAY)
    assert first in [file.name for file in prune(world).files]


def test_a_checkpoint_of_a_tags_version_that_lies_after_the_horizon_keeps_its_marker(world: World) -> None:
    writer = world.writer("a")
    put(world, writer, "x")
    horizon = checkpoint(world)
    world.clock.tick(2 * DAY)
    put(world, writer, "y")
    with world.writer("maintainer-2") as maintainer:
        assert maintainer.checkpoint(scope="all") is not None
        maintainer.tag("second")
    (name,) = (name for name in stored(world, ".ckpt") if name.startswith("maintainer-2"))
    prune(world)
    world.clock.tick(GRACE)
    assert prune(world).horizon == horizon
    assert stored(world, name[-41:-5]), "it is the newest"
    assert names(world.snapshot(version="second")) == ["x", "y"]


@pytest.mark.parametrize("tags", [1, 12])
def test_the_checkpoints_of_all_tags_are_listed_at_once(monkeypatch: pytest.MonkeyPatch, tags: int) -> None:
    world = World.counting()
    keep_time(world, monkeypatch)
    store = world.store
    assert isinstance(store, Counting)
    with world.writer("a") as writer, world.writer("maintainer-2") as tagger:
        for number in range(tags):
            put(world, writer, f"x{number}")
            tagger.tag(f"t{number}")
        world.clock.tick(HOUR)
        put(world, writer, "y")
    checkpoint(world)
    world.clock.tick(2 * DAY)
    assert len(prune(world).tags) == tags
    world.clock.tick(GRACE)
    store.reset()
    assert prune(world).tags == ()
    first = f"maintainer-2/default/transactions/{0:020}/"
    assert store.names["list", first] == 1, "however many tags there are"


def test_a_tag_after_the_horizon_is_read_and_kept_without_the_horizons_checkpoint_while_its_transactions_are_there(
    world: World,
) -> None:
    with world.writer("a") as writer:
        put(world, writer, "x")
        world.clock.tick(HOUR)
        checkpoint(world)
        world.clock.tick(2 * DAY)
        prune(world)
        put(world, writer, "y")
        with world.writer("maintainer-2") as tagger:
            tagger.tag("between")
        put(world, writer, "z")
    own = own_checkpoint(world)
    checkpoint(world, "compactor-2")
    for name in own:
        world.store.delete(name)
    assert names(world.snapshot(version="between")) == ["x", "y"]
    world.clock.tick(2 * DAY)
    for _ in range(2):
        prune(world)
        world.clock.tick(GRACE)
    assert prune(world).published is not None
    assert names(world.snapshot(version="between")) == ["x", "y"] and names(world.snapshot()) == ["x", "y", "z"]
    assert "a/default/transactions/" + "0" * 20 not in {name.rpartition("/")[0] for name in stored(world, ".txn")}


def test_a_tag_that_is_given_again_after_a_prune_is_moved_only_where_that_is_wished(world: World) -> None:
    with world.writer("a") as writer, world.writer("maintainer-2") as maintainer:
        put(world, writer, "x")
        for number in range(5):
            world.clock.tick(HOUR)
            maintainer.tag(f"v{number}")
    checkpoint(world)
    world.clock.tick(2 * DAY)
    prune(world)
    world.clock.tick(GRACE)
    assert [file for file in prune(world).files if file.name.startswith("maintainer-2/") and file.kind.value == "transaction"]
    named = world.snapshot(version="v0").cut
    with world.writer("maintainer-2") as maintainer:
        with pytest.raises(TagExists):
            maintainer.tag("v0")
        assert maintainer.tag("v0", version=str(named)).version == str(named)
        assert maintainer.tag("v0", replace=True).version == maintainer.tag("v0").version != str(named)
    assert names(world.snapshot(version="v0")) == ["x"]


def test_a_tag_whose_transactions_were_pruned_is_not_cloned_and_nothing_is_written(world: World) -> None:
    pruned_with_a_tag(world)
    target, source = MemoryStore(clock=world.clock), world.catalog().database("default")
    there = stored(world)
    with world.writer("maintainer-2") as held:
        with pytest.raises(HistoryPruned, match="kept for a tag"):
            clone(source, held, target, None, "early", now=world.clock)
        assert (stored(world), list(target.list(""))) == (there, [])
        clone(source, held, target, None, None, now=world.clock)
    assert names(Catalog(target).snapshot()) == ["x", "y"]


def test_a_tag_whose_transactions_were_pruned_is_not_cloned_by_who_had_read_them_before(world: World) -> None:
    had_read = world.catalog()
    pruned_with_a_tag(world, had_read)
    target, there = MemoryStore(clock=world.clock), stored(world)
    with world.writer("maintainer-2", catalog=had_read) as held, pytest.raises(HistoryPruned, match="kept for a tag"):
        clone(had_read.database("default"), held, target, None, "early", now=world.clock)
    assert (stored(world), list(target.list(""))) == (there, [])


def tagged_by(world: World, who: str, **options: str) -> None:
    """A tag behind a horizon that is published."""
    with world.writer("a") as writer:
        put(world, writer, "x")
        with world.writer(who) as tagger:
            tagger.tag("early")
        world.clock.tick(HOUR)
        put(world, writer, "y")
        world.clock.tick(HOUR)
        put(world, writer, "z")
    world.clock.tick(HOUR)
    checkpoint(world)
    world.clock.tick(2 * DAY)
    prune(world, **options)
    world.clock.tick(GRACE)


def test_a_plain_writers_tag_keeps_its_version_for_a_while_and_then_says_why_it_cannot_be_read(world: World) -> None:
    tagged_by(world, "b")
    assert prune(world).files and names(world.snapshot(version="early")) == ["x"]
    world.clock.tick(4 * DAY)
    assert prune(world).files == ()
    assert names(world.snapshot(version="early")) == ["x"], "what is freed by a tag is left for the grace period"
    world.clock.tick(4 * DAY)  # no marker of it can be under way any more
    assert [file.why for file in prune(world).files if file.name.endswith(".ckpt")] == ["no tag names its version any more"]
    with pytest.raises(HistoryPruned, match=r"The tag 'early' held it for a while only: 'b'.* is no maintainer"):
        world.snapshot(version="early")


@pytest.mark.parametrize(("who", "is_kept"), [("b", False), ("maintainer-2", True)])
def test_how_long_a_plain_writers_tag_holds_is_up_to_who_prunes(world: World, who: str, is_kept: bool) -> None:
    tagged_by(world, who, pin_age="1d")
    done = prune(world, pin_age="1d")
    assert done.files and done.unreadable == ()
    if is_kept:
        assert names(world.snapshot(version="early")) == ["x"]
    else:
        with pytest.raises(HistoryPruned, match="held it for a while only"):
            world.snapshot(version="early")
