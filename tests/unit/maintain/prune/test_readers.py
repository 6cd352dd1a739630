"""What readers are told of what was pruned, also while they hold it, and what they go on to read."""

from __future__ import annotations

import pyarrow as pa
import pytest

from bucketcatalog import CatalogWarning, HistoryPruned, MissingObject
from bucketcatalog.maintain.restore import restore

from ....kit.pruning import EVERYTHING, GRACE, checkpoint, old_history, own_checkpoint, prune, pruned_with_a_tag, put
from ....kit.repairing import repair
from ....kit.world import DAY, HOUR, MINUTE, World, names, obj, stored

pytestmark = pytest.mark.usefixtures("one_clock")


def test_what_lies_before_the_horizon_is_refused_by_its_name_and_what_contains_it_is_read(world: World) -> None:
    writer = world.writer("a")
    put(world, writer, "x")
    early, early_time = world.snapshot().version, world.clock.now
    world.clock.tick(HOUR)
    put(world, writer, "y")
    world.clock.tick(HOUR)  # nobody can come beside what lies before the last any more
    horizon = checkpoint(world)
    horizon_time = world.snapshot().cut.newest_commit_time
    world.clock.tick(2 * DAY)
    put(world, writer, "z")
    for deleted in (False, True):
        prune(world)
        for options in (
            {"version": early},
            {"version": "a@0"},
            {"timestamp": f"@{early_time}"},
            {"timestamp": f"@{horizon_time - 1}"},
        ):
            with pytest.raises(HistoryPruned) as error:
                world.snapshot(**options)
            assert horizon in str(error.value) and error.value.code == "PRUNED"
        with pytest.raises(HistoryPruned):
            world.catalog().changes(start=early)
        with pytest.raises(HistoryPruned):
            world.catalog().diff(start=early)
        with pytest.raises(HistoryPruned):
            world.catalog().changes()
        assert names(world.snapshot(timestamp=f"@{horizon_time}")) == ["x", "y"]
        assert [row["name"] for row in world.catalog().changes(start=horizon).to_arrow().to_pylist()] == ["z"]
        assert len(world.catalog().diff().to_arrow()) == 3
        found = {(row["writer"], row["revision"]) for row in world.snapshot().scan("log").to_arrow().to_pylist()}
        assert (("a", 0) in found) != deleted and ("a", 2) in found
        world.clock.tick(GRACE)


def test_a_version_is_read_that_follows_the_horizon_by_way_of_a_voided_transaction(world: World) -> None:
    """Whoever made the horizon's checkpoint had committed from the future before."""
    with world.writer("a") as writer:
        put(world, writer, "before")
    checkpoint(world)
    with world.writer("compactor-1") as compactor:
        world.clock.tick(30 * DAY)
        put(world, compactor, "future")
        world.clock.tick(-30 * DAY)
    repair(world, void=["compactor-1@1"], dry_run=False)
    checkpoint(world)
    world.clock.tick(2 * DAY)
    put(world, world.writer("a"), "after")
    checkpoint(world)
    for _ in ("published", "deleted"):
        assert prune(world).horizon is not None
        assert names(world.snapshot(version="compactor-1@3")) == ["after", "before"]
        world.clock.tick(GRACE)


def test_what_was_pruned_names_a_tag_to_read_where_that_helps(world: World) -> None:
    pruned_with_a_tag(world)
    for read in (lambda: world.snapshot(version="a@0"), lambda: world.catalog().diff(start="a@0")):
        with pytest.raises(HistoryPruned) as error:
            read()
        assert "'early'" in error.value.next_step
    for options in ({"start": "a@0"}, {"start": "early"}, {}):
        with pytest.raises(HistoryPruned) as error:
            world.catalog().changes(**options)
        assert "tag" not in error.value.next_step
    with world.writer("maintainer-2") as tagger:
        tagger.drop_tag("early")
    with pytest.raises(HistoryPruned) as error:
        world.snapshot(version="a@0")
    assert "tag" not in error.value.next_step


@pytest.mark.parametrize("held", ["rows", "changes", "log"])
def test_what_is_held_while_its_history_is_pruned_says_so_when_it_is_read(world: World, held: str) -> None:
    old_history(world)
    start, writer = world.snapshot().version, world.writer("a")
    with writer.transaction() as tx:  # so many that their blocks are read only when they are wanted
        tx.put("objects", pa.Table.from_pylist([obj(f"{number:05}") for number in range(20_000)]))
    snapshot, changes = world.snapshot(), world.catalog().changes(start=start)
    put(world, writer, "newest")
    world.clock.tick(HOUR)
    checkpoint(world)
    world.clock.tick(2 * DAY)
    put(world, writer, "last")
    prune(world)
    world.clock.tick(GRACE)
    assert prune(world).files
    with pytest.raises(HistoryPruned, match=r"\[PRUNED\] .*which is gone, lies before .*Next: "):
        (changes if held == "changes" else snapshot.scan("objects" if held == "rows" else held)).to_arrow()


def test_a_snapshot_that_is_first_read_when_its_transactions_segments_are_pruned_says_so(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bucketcatalog.write.staging.INLINE_ROWS", 0)
    writer = world.writer("a")
    put(world, writer, "x")
    version = world.snapshot().version
    world.commit(writer, ("delete", "objects", obj("x")))
    restore(world.catalog().database("default"), writer, "objects", None, version, skip_collected=False)
    snapshot = world.snapshot()
    put(world, writer, "y")
    world.clock.tick(2 * DAY)
    prune(world, "0s", grace="0s", force=True)
    with pytest.raises(HistoryPruned, match=r"a/default/segments/.* which is gone, lies before "):
        snapshot.scan("objects")


@pytest.mark.parametrize("names_it", ["transaction", "checkpoint"])
def test_a_lost_segment_that_something_names_is_missing_and_not_pruned_however_old_it_is(
    world: World, monkeypatch: pytest.MonkeyPatch, names_it: str
) -> None:
    ahead = world.catalog().writer("b", clock=lambda: world.clock() + MINUTE * 5 // 6)
    put(world, ahead, "x", "y")
    horizon = checkpoint(world)
    assert prune(world, "0s", force=True).horizon == horizon
    world.clock.tick(MINUTE // 3)
    if names_it == "checkpoint":
        put(world, world.writer("a"), "z")
        checkpoint(world, "compactor-2")
    else:
        world.commit(ahead, ("delete", "objects", obj("x")))
        monkeypatch.setattr("bucketcatalog.write.staging.INLINE_ROWS", 0)
        with world.writer("maintainer-2") as held:
            restore(world.catalog().database("default"), held, "objects", None, horizon, skip_collected=False)
    (lost,) = [name for name in stored(world, ".parquet") if name.startswith(("compactor-2/", "maintainer-2/"))]
    world.store.delete(lost)
    with pytest.raises(MissingObject, match=lost):
        world.catalog().snapshot().scan("objects").to_arrow()


@pytest.mark.parametrize("given_again", [False, True])
def test_a_lost_segment_of_what_is_kept_for_a_tag_is_missing_and_not_pruned_however_far_the_horizon_has_moved_on(
    world: World, given_again: bool
) -> None:
    pruned_with_a_tag(world)
    (lost,) = [name for name in stored(world, ".parquet") if name.startswith("maintainer-1/")]
    version = str(world.snapshot(version="early").version)
    put(world, world.writer("a"), "z")
    checkpoint(world)
    if given_again:
        with world.writer("maintainer-2") as tagger:
            tagger.drop_tag("early")
    world.clock.tick(2 * DAY)
    for _ in ("published", "deleted"):
        prune(world)
        world.clock.tick(GRACE)
    if given_again:
        with world.writer("maintainer-2") as tagger:
            tagger.tag("again", version=version)
    world.store.delete(lost)
    with pytest.raises(MissingObject, match=lost):
        names(world.catalog().snapshot(version="again" if given_again else "early"))


def test_who_reads_on_is_warned_of_a_segment_that_is_gone(world: World) -> None:
    pruned_with_a_tag(world)
    own = [name for name in stored(world, ".parquet") if name.startswith("compactor-1/")]
    for name in own:
        world.store.delete(name)
    snapshot = world.catalog().snapshot(ignore_corruption=True)
    with pytest.warns(CatalogWarning) as warned:
        assert names(snapshot) == []
    assert [str(w.message) for w in warned if own[0] in str(w.message) and "Left out: 2 rows of objects" in str(w.message)] != []


def test_without_the_horizons_checkpoint_tags_are_read_and_what_lies_behind_is_refused(world: World) -> None:
    with world.writer("a") as writer:
        put(world, writer, "w")
    early = world.snapshot().version
    pruned_with_a_tag(world)
    with world.writer("a") as writer:
        put(world, writer, "z")
    checkpoint(world)
    for name in own_checkpoint(world):
        world.store.delete(name)
    assert names(world.snapshot(version="early")) == ["w", "x"]
    for options in ({"version": early}, {"version": "a@0"}, {"timestamp": "2023-11-15"}):
        with pytest.raises(HistoryPruned):
            world.snapshot(**options)
    assert names(world.snapshot()) == ["w", "x", "y", "z"]


@pytest.mark.parametrize("deleted", [False, True])
def test_a_commit_is_refused_that_had_not_read_the_horizon_though_its_writers_own_checkpoint_is_read_beside_that(
    world: World, deleted: bool
) -> None:
    old_history(world)
    prune(world)
    world.clock.tick(GRACE)
    if deleted:
        assert prune(world).files
    with world.writer("a") as writer:
        versions = [world.commit(writer, ("put", "objects", obj("unaware"))).version]
        done = writer.checkpoint()
        versions.append(world.commit(writer, ("put", "objects", obj("later"))).version)
    assert done is not None and done.version.startswith("a@6:") and "," not in done.version
    for version in versions:
        with pytest.raises(HistoryPruned, match=version):
            world.snapshot(version=version)


def test_a_commit_that_had_read_the_horizon_is_read_whatever_checkpoints_lie_beside_it(world: World) -> None:
    old_history(world)
    prune(world)
    world.clock.tick(GRACE)
    assert prune(world).files
    catalog = world.catalog()
    catalog.snapshot()
    expected = sorted([*EVERYTHING, "aware"])
    with world.writer("a", catalog=catalog) as writer:
        aware = world.commit(writer, ("put", "objects", obj("aware"))).version
        for is_own in (True, True, False):
            assert names(world.snapshot(version=aware)) == expected
            later = world.commit(writer, ("put", "objects", obj("later"))).version
            assert writer.checkpoint() if is_own else checkpoint(world, "compactor-2")
            assert names(world.snapshot(version=later)) == sorted([*expected, "later"])
    assert names(world.snapshot(version=aware)) == expected


def test_a_compactors_commit_is_read_though_what_it_had_read_long_ago_is_gone(world: World) -> None:
    """The compactor goes on for days; what is idle has been news to it only once, in a transaction that is deleted."""
    writers = [world.writer("a"), world.writer("b")]
    for writer in writers:
        put(world, writer, writer.id)
    with world.writer("compactor-1") as compactor:
        for number in range(3):
            put(world, writers[0], f"{number}")
            world.clock.tick(HOUR)
            assert compactor.checkpoint(scope="all") is not None
        world.clock.tick(2 * DAY)
        prune(world)
        world.clock.tick(GRACE)
        gone = {file.name.rpartition("/transactions/")[0] for file in prune(world).files if file.name.endswith(".txn")}
        assert "compactor-1/default" in gone
        horizon = world.snapshot().view.horizon
        assert horizon is not None and horizon.cut.newest_revision("compactor-1") == 2
        put(world, writers[0], "new")
        assert compactor.checkpoint(scope="all") is not None
    assert names(world.snapshot(version="compactor-1@2")) == ["0", "1", "2", "a", "b"]
    assert names(world.snapshot(version="compactor-1@3")) == ["0", "1", "2", "a", "b", "new"]


@pytest.mark.parametrize("own", [False, True])
def test_a_commit_that_had_read_the_horizon_is_read_though_what_its_process_had_read_before_is_gone(
    world: World, own: bool
) -> None:
    """The process goes on for days; what is idle has been news to it only once, in a transaction that is deleted."""
    with world.writer("idle") as idle:
        put(world, idle, "idle")
    catalog = world.catalog()
    with world.writer("a", catalog=catalog) as writer:
        for number in range(3):
            catalog.snapshot()
            put(world, writer, f"{number}")
        world.clock.tick(HOUR)
        checkpoint(world)
        world.clock.tick(2 * DAY)
        unaware = world.commit(writer, ("put", "objects", obj("3"))).version
        prune(world)
        world.clock.tick(GRACE)
        assert {name for name in prune(world).files if name.name.startswith("a/default/transactions/")}
        catalog.snapshot(timestamp=f"@{world.clock.now - DAY}")
        aware = world.commit(writer, ("put", "objects", obj("4"))).version
        if own:
            assert writer.checkpoint() is not None
        later = world.commit(writer, ("put", "objects", obj("5"))).version
    with pytest.raises(HistoryPruned):
        world.snapshot(version=unaware)
    assert names(world.snapshot(version=aware)) == ["0", "1", "2", "3", "4", "idle"]
    assert names(world.snapshot(version=later)) == ["0", "1", "2", "3", "4", "5", "idle"]
