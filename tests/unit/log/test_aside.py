"""Files that are set aside: in every cut, past ones too, they count as transactions without events, until they are taken in again."""

from __future__ import annotations

import pytest

from bucketcatalog import BucketCatalogError, InvalidOption
from bucketcatalog.format.records import SetAside
from bucketcatalog.log.files import LogFiles
from bucketcatalog.write.commit import Commit

from ...kit.aside import errors, set_aside, take_in
from ...kit.spoiling import SPOILT, newest, restore, spoil
from ...kit.world import World, names, obj

KINDS = list(SPOILT)


@pytest.fixture
def world() -> World:
    """``v`` has committed ``one`` and, having read ``w``'s two, ``other``; ``w`` ``base`` and ``bad``."""
    world = World()
    with world.writer("v") as v:
        world.commit(v, ("put", "objects", obj("one")))
    with world.writer("w") as w:
        world.commit(w, ("put", "objects", [obj("base"), obj("kept")]))
        w._database.look()
        world.commit(w, ("put", "objects", obj("bad")), ("delete", "objects", obj("base")))
    return world


@pytest.mark.parametrize("kind", KINDS)
def test_a_bad_file_stops_readers_by_name_until_it_is_set_aside(world: World, kind: str) -> None:
    name = newest(world, "w")
    whole = world.snapshot()
    data = spoil(world, name, kind)
    before = name if kind != "another parent's digest" else newest(world, "w", 1)
    with pytest.raises(BucketCatalogError) as caught:
        names(world.snapshot())
    assert before in str(caught.value)
    set_aside(world, name)
    snapshot = world.snapshot(strict=True)
    assert names(snapshot) == ["base", "kept", "one"]
    assert snapshot.cut.of_writer("w") == whole.cut.of_writer("w")
    assert names(world.snapshot(version=whole.version)) == ["base", "kept", "one"]
    assert names(world.snapshot(timestamp=f"@{world.clock.now}")) == ["base", "kept", "one"]
    assert errors(world) == []
    restore(world, name, data)
    assert names(world.snapshot()) == ["base", "kept", "one"]  # nobody looks at it
    take_in(world, name)
    assert names(world.snapshot()) == names(world.snapshot(version=whole.version)) == ["bad", "kept", "one"]
    assert errors(world) == []


@pytest.mark.parametrize("kind", ["a byte", "reads of nothing", "an unknown event"])
@pytest.mark.parametrize("by", ["compactor-1", "w"])
def test_checkpoints_count_that_name_what_is_set_aside_and_no_others(world: World, kind: str, by: str) -> None:
    def checkpoint() -> None:
        with world.writer(by) as maker:
            assert maker.checkpoint(scope="own" if by == "w" else "all") is not None

    checkpoint()
    name = newest(world, "w")
    data = spoil(world, name, kind)
    assert names(world.snapshot()) == ["bad", "kept", "one"]  # which it holds
    set_aside(world, name)
    follower = world.catalog()
    assert names(world.snapshot()) == names(follower.snapshot()) == ["base", "kept", "one"]
    checkpoint()
    (used,) = world.snapshot().view.checkpoints[:1]
    assert used.writer == by and [(e.writer, e.revision) for e in used.asides] == [("w", 1)]
    assert names(world.snapshot()) == ["base", "kept", "one"] and errors(world) == []
    restore(world, name, data)
    take_in(world, name)
    assert names(world.snapshot()) == names(follower.snapshot()) == ["bad", "kept", "one"]
    checkpoint()
    assert used.ref not in {c.ref for c in world.snapshot().view.checkpoints}
    assert names(world.snapshot()) == ["bad", "kept", "one"] and errors(world) == []


def test_its_writer_opens_again_and_others_follow(world: World) -> None:
    name = newest(world, "w")
    data = spoil(world, name)
    with pytest.raises(BucketCatalogError, match="set_aside="):
        world.writer("w")
    set_aside(world, name)
    with world.writer("w") as w:
        assert world.commit(w, ("put", "objects", obj("again"))).revision == 2
    assert names(world.snapshot(strict=True)) == ["again", "base", "kept", "one"] and errors(world) == []
    with world.writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all")
    restore(world, name, data)
    take_in(world, name)
    assert names(world.snapshot(strict=True)) == ["again", "bad", "kept", "one"] and errors(world) == []


def test_blind_commits_of_others_go_on_beside_a_bad_file(world: World) -> None:
    follower = world.writer("v")
    spoil(world, newest(world, "w"))
    world.commit(follower, ("put", "objects", obj("two")))
    with world.writer("v") as again:
        world.commit(again, ("put", "objects", obj("three")), ("delete", "objects", obj("one")))
    set_aside(world, newest(world, "w"))
    assert names(world.snapshot()) == ["base", "kept", "three", "two"]


def test_what_it_had_read_stays_in_cuts_that_contain_it_where_that_is_known(world: World) -> None:
    name = newest(world, "w")
    spoil(world, name, "an unknown event")
    set_aside(world, name)
    assert names(world.snapshot(version="w@1")) == ["base", "kept", "one"]


def test_a_file_of_which_nothing_is_known_holds_its_own_timeline_before_it(world: World) -> None:
    name = newest(world, "w")
    spoil(world, name)
    set_aside(world, name)
    assert names(world.snapshot(version="w@1")) == ["base", "kept"]


def test_a_lost_transaction_in_the_middle_is_stood_in_for(world: World) -> None:
    with world.writer("w") as w:
        world.commit(w, ("put", "objects", obj("end")))
    name = newest(world, "w", 1)
    data = world.store.get(name)
    world.store.delete(name)
    set_aside(world, name)
    assert names(world.snapshot(strict=True)) == ["base", "end", "kept", "one"] and errors(world) == []
    with world.writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all")
    snapshot = world.snapshot(strict=True)
    assert names(snapshot) == ["base", "end", "kept", "one"] and snapshot.cut.of_writer("w")[0].revision == 2
    world.store.put(name, data)
    take_in(world, name)
    assert names(world.snapshot(strict=True)) == ["bad", "end", "kept", "one"] and errors(world) == []


def test_a_plain_writers_word_counts_for_nothing(world: World) -> None:
    head = LogFiles(world.store, "default").at_revision("v", 0)[0]
    with world.writer("u") as u:
        with pytest.raises(InvalidOption, match="maintainer-"):
            u.set_aside([SetAside("v", head.revision, head.uuid)])
        u.commit(Commit(asides=(SetAside("v", head.revision, head.uuid),)))
        u.checkpoint()
    assert "one" in names(world.snapshot()) and world.snapshot().view.asides == {}


def test_a_later_entry_counts_whoever_says_it_and_whichever_way_they_arrive(world: World) -> None:
    name = newest(world, "w")
    data = spoil(world, name)
    set_aside(world, name)
    restore(world, name, data)
    world.clock.tick(-5_000_000)  # another machine's clock
    world.catalog().repair(writer="maintainer-2", clock=world.clock, take_in=["w@1"], dry_run=False)
    assert names(world.snapshot()) == ["bad", "kept", "one"]
    spoil(world, name)
    world.catalog().repair(writer="maintainer-1", clock=world.clock, set_aside=["w@1"], dry_run=False)
    assert names(world.snapshot()) == ["base", "kept", "one"]


def test_a_checkpoint_that_had_read_what_is_not_there_stops_nobody_once_that_is_set_aside(world: World) -> None:
    name = newest(world, "w")
    spoil(world, name, "reads of nothing")
    with world.writer("w") as w:
        w.checkpoint()
    with pytest.raises(BucketCatalogError, match=f"{name} builds on it"):  # and not the checkpoint, which is passed over
        world.snapshot()
    set_aside(world, name)
    assert names(world.snapshot()) == ["base", "kept", "one"] and errors(world) == []
