"""Writers of pruned catalogs go on where they were, and what arrives from before the horizon is seen."""

from __future__ import annotations

import pytest

from bucketcatalog import MissingObject

from ....kit.pruning import EVERYTHING, GRACE, checkpoint, old_history, prune, pruned_with_a_tag, put
from ....kit.world import DAY, HOUR, World, names, obj, stored

pytestmark = pytest.mark.usefixtures("one_clock")


def test_writers_go_on_after_a_prune_and_never_use_a_revision_again(world: World) -> None:
    old_history(world)
    prune(world)
    world.clock.tick(GRACE)
    assert prune(world).files
    with world.writer("a") as writer:
        assert world.commit(writer, ("put", "objects", obj("later"))).revision == 6
        assert writer.checkpoint() is not None
    with world.writer("b") as writer:
        assert writer.checkpoint() is not None
        put(world, writer, "b-later")
        assert writer.checkpoint() is not None
    expected = sorted([*EVERYTHING, "later", "b-later"])
    assert names(world.snapshot()) == expected
    checkpoint(world, "compactor-2")
    assert names(world.snapshot()) == expected
    world.clock.tick(3 * DAY)
    prune(world)
    world.clock.tick(GRACE)
    assert prune(world).files
    assert names(world.snapshot()) == expected
    world.writer("a").close()


def test_a_process_that_has_read_what_was_pruned_of_a_timeline_opens_and_continues_it(world: World) -> None:
    lasting = world.catalog()
    with world.writer("a") as writer:
        put(world, writer, "x")
        lasting.snapshot()
        put(world, writer, "y")
    world.clock.tick(HOUR)
    checkpoint(world, "maintainer-1")
    world.clock.tick(2 * DAY)
    with world.writer("a") as writer:
        put(world, writer, "z")
    prune(world)
    world.clock.tick(GRACE)
    assert "a/default/transactions/" + "0" * 20 in {file.name[:43] for file in prune(world).files}
    with world.writer("a", catalog=lasting) as writer:
        assert world.commit(writer, ("put", "objects", obj("later"))).revision == 3
    assert names(world.snapshot()) == ["later", "x", "y", "z"]


def test_a_writer_whose_last_transaction_is_gone_gives_no_revision_a_second_time(world: World) -> None:
    pruned_with_a_tag(world)
    (last,) = [name for name in stored(world, ".txn") if name.startswith("a/")]
    data = world.store.get(last)
    world.store.delete(last)
    before = stored(world)
    with pytest.raises(MissingObject, match=last):
        world.writer("a")
    assert stored(world) == before
    world.store.put(last, data)
    with world.writer("a") as writer:
        put(world, writer, "z")
    assert names(world.snapshot()) == ["x", "y", "z"]


def test_a_stray_that_arrives_at_a_pruned_revision_is_seen(world: World) -> None:
    old = world.writer("a")
    put(world, old, "one")
    stray = world.writer("a")
    put(world, old, "two")
    put(world, stray, "stray")  # a fork of revision 1, which arrives only much later
    (name,) = [n for n in stored(world, ".txn") if "/00000000000000000001/" in n and b"stray" in world.store.get(n)]
    data = world.store.get(name)
    world.store.delete(name)
    for number in range(3):
        put(world, old, f"more{number}")
    world.clock.tick(HOUR)
    checkpoint(world)
    world.clock.tick(2 * DAY)
    put(world, old, "last")
    prune(world)
    world.clock.tick(GRACE)
    assert prune(world).files
    world.store.put(name, data)
    expected = ["last", "more0", "more1", "more2", "one", "stray", "two"]
    checkpoint(world, "compactor-2")
    assert names(world.snapshot()) == expected
    checkpoint(world)
    assert names(world.snapshot()) == expected
    world.clock.tick(3 * DAY)
    for _ in range(3):
        prune(world)
        world.clock.tick(GRACE)
    assert name in stored(world), "a head is never deleted"
    assert names(world.snapshot()) == expected


def test_a_stray_behind_the_horizon_is_told_from_what_a_tagged_checkpoint_lists_from_the_same_revision_on(world: World) -> None:
    elsewhere = World()
    with elsewhere.writer("a") as crashed:
        put(elsewhere, crashed, "stray")
    (stray,) = stored(elsewhere, ".txn")
    world.clock.tick()
    with world.writer("a") as writer:
        for number in range(3):
            put(world, writer, f"a{number}")
    tagged = checkpoint(world)  # so soon that it lists the timeline from its beginning
    with world.writer("maintainer-1") as maintainer:
        maintainer.tag("x", version=tagged)
    world.clock.tick(HOUR)
    checkpoint(world)
    for _ in range(2):
        world.clock.tick(HOUR)
        prune(world, "0s", grace="0s", force=True)
    assert [int(name.split("/")[3]) for name in stored(world, ".txn") if name.startswith("a/")] == [2]
    world.store.put(stray, elsewhere.store.get(stray))
    assert names(world.snapshot(version="x")) == ["a0", "a1", "a2"]
    checkpoint(world, "compactor-2")
    assert names(world.snapshot()) == ["a0", "a1", "a2", "stray"]


@pytest.mark.filterwarnings("ignore:The timeline of writer 'a' is forked")
@pytest.mark.parametrize("beside", ["one revision", "revisions below the newest"])
def test_a_branch_that_the_horizon_has_not_seen_is_read_beside_a_checkpoint_of_another_writer_that_starts_from_it(
    world: World, beside: str
) -> None:
    """Two processes hold one id; one commits after the horizon's checkpoint was made, where that covers the other's transaction."""
    other = world.writer("b")
    put(world, other, "b")
    second, first = world.writer("a"), world.writer("a")
    put(world, first, "x")
    if beside != "one revision":
        put(world, first, "later")
    world.catalog().prune(0, grace=0, force=True, dry_run=False, writer="maintainer-1", clock=world.clock)
    put(world, second, "y")
    put(world, other, "z")
    world.clock.tick(DAY)
    before = names(world.snapshot())
    assert {"x", "y"} < set(before)
    assert other.checkpoint() is not None

    assert names(world.snapshot()) == before
    assert [(fork.writer, fork.revision, fork.open) for fork in world.snapshot().view.forks] == [("a", 0, True)]
