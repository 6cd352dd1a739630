"""A plain writer's own checkpoints in a pruned catalog: they hold what the horizon's does not, and are read beside that one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bucketcatalog.format.checkpoints import Checkpoint, decode_checkpoint
from bucketcatalog.format.sealing import PARTIAL
from bucketcatalog.maintain.verify.findings import Severity
from bucketcatalog.model.cuts import Cut
from bucketcatalog.write.writer import Writer

from ...kit.pruning import EVERYTHING, GRACE, checkpoint, keep_time, old_history, prune, put, verified
from ...kit.world import DAY, HOUR, World, names, obj, version
from .conftest import answers

BASE = "maintainer-1"
"""Who has made the checkpoint that holds what the horizon's does, and that readers of now use: the prune, of all that it found."""
FORKED = pytest.mark.filterwarnings("ignore::bucketcatalog.errors.CatalogWarning")


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """A catalog in which all that the horizon's checkpoint holds of two writers, five commits of each, has been deleted."""
    world = World()
    keep_time(world, monkeypatch)
    old_history(world)
    prune(world)
    world.clock.tick(GRACE)
    assert {file.name.split("/")[0] for file in prune(world).files} >= {"a", "b"}
    return world


def without_own(world: World) -> World:
    """The same store without the checkpoints of plain writers: their transactions say the same."""
    return without(world, lambda writer: not writer.startswith(("compactor-", "maintainer-")))


def without(world: World, is_one: Callable[[str], bool]) -> World:
    """The same store without the checkpoints of some writers."""
    bare = World()
    bare.clock.now = world.clock.now
    for info in world.store.list(""):
        if not (is_one(info.name.split("/")[0]) and (info.name.endswith(".ckpt") or "/newest/" in info.name)):
            bare.store.put(info.name, world.store.get(info.name))
    return bare


def check(world: World, *times: dict[str, str]) -> None:
    """With the writers' own checkpoints all is answered as without them, now and then, and nothing is wrong with them."""
    bare = without_own(world)
    for options in ({}, *times):
        assert answers(world, **options) == answers(bare, **options), options
    assert [str(finding) for finding in verified(world) if finding.severity is Severity.ERROR] == []


def in_use(world: World, **options: str) -> dict[str, Checkpoint]:
    """By writer the checkpoints that are read from."""
    return {checkpoint.writer: checkpoint for checkpoint in world.snapshot(**options).view.checkpoints}


def change(world: World, writer: Writer, number: int) -> None:
    """Events about rows of the horizon's checkpoint and of later ones: some end them, some stand beside them."""
    now = world.snapshot()
    live = names(now)
    world.commit(
        writer,
        ("put", "objects", [obj(f"{writer.id}-{number}"), obj("shared", content_length=number)]),
        ("delete", "objects", obj(live[number % len(live)])),
        ("update", "objects", {**obj(live[-1]), "content_length": number, "_version": version(obj(live[-1]), now)}),
    )


def test_an_own_checkpoint_behind_a_horizon_holds_what_that_does_not(world: World) -> None:
    with world.writer("a") as writer:
        put(world, writer, "x", "y")
        done = writer.checkpoint()
    assert done is not None and done.rows == 3, "a-new, x and y"
    written = decode_checkpoint(world.store.get(done.name), done.name)
    assert set(written.cut.heads) == set(written.coverage) == {"a"} and PARTIAL in written.features
    assert (written.coverage["a"].first_revision, written.cut.newest_revision("a")) == (5, 6)
    assert {segment.writer for segment in written.segments} <= {"a"}

    used = in_use(world)
    assert set(used) == {BASE, "a"} and used["a"].ignored == ()
    assert {t.writer for t in world.snapshot().view.tail} == {"maintainer-1"}
    assert names(world.snapshot()) == sorted([*EVERYTHING, "x", "y"])
    check(world)


@pytest.mark.parametrize("writers", ["a", "ab"])
def test_it_is_read_beside_the_horizons_now_and_then_by_version_and_tag(world: World, writers: str) -> None:
    held, moments = [world.writer(name) for name in writers], []
    for number in range(8):
        for writer in held:
            change(world, writer, number)
            if number % 3 == 1:
                assert writer.checkpoint() is not None
        moments.append((world.clock.now, world.snapshot().version))
    with world.writer("maintainer-2") as maintainer:
        maintainer.tag("then", version=moments[5][1])
    used = in_use(world)
    assert set(used) == {BASE, *writers}
    assert all(used[name].coverage[name].first_revision == 5 for name in writers)
    then = [{"timestamp": f"@{time}"} for time, _ in moments] + [{"version": text} for _, text in moments]
    check(world, {"version": "then"}, *then)
    assert PARTIAL in in_use(world, version="then")["a"].features
    assert len({str(answers(world, version=text)["objects"]) for _, text in moments}) == len(moments)


def test_the_second_refers_again_to_what_has_not_changed(world: World) -> None:
    with world.writer("a") as writer:
        world.commit(writer, ("put", "objects", [obj(f"{n * 7919:09}", content_length=n**4) for n in range(8_000)]))
        first = writer.checkpoint()
        assert first is not None and first.bytes > 80_000
        for number in range(3):
            change(world, writer, number)
            second = writer.checkpoint()
            assert second is not None and second.reused_bytes > first.bytes // 2 > second.bytes
            assert writer.checkpoint() is None
        full = writer.checkpoint(full=True)
    assert full is not None and full.reused_bytes == 0
    assert in_use(world)["a"].coverage["a"].first_revision == 5
    snapshots = [at.snapshot() for at in (world, without_own(world))]
    for table in ("objects", "deleted_objects"):
        one, other = (snapshot.scan(table).to_arrow() for snapshot in snapshots)
        assert one.equals(other)


@pytest.mark.parametrize("is_ahead", [False, True])
def test_it_is_right_or_passed_over_once_a_newer_horizon_is_there(world: World, is_ahead: bool) -> None:
    """The horizon's checkpoint beside which it was made is gone then. One that goes further than the newer horizon stays."""
    with world.writer("a") as writer:
        change(world, writer, 1)
        assert writer.checkpoint() is not None
        world.clock.tick(HOUR)
        newer = checkpoint(world, "compactor-2")
        if is_ahead:
            change(world, writer, 2)
            assert writer.checkpoint() is not None
        else:
            change(world, writer, 2)
        world.clock.tick(2 * DAY)
        assert prune(world).horizon == newer
        check(world)
        world.clock.tick(GRACE)
        gone = {file.name.split("/")[0] for file in prune(world).files if file.name.endswith(".ckpt")}
        assert gone == {"a", "compactor-1", BASE}
        check(world, {"version": newer})
        older = without(world, lambda name: name == BASE)  # the prune's own covers all that there is
        assert set(in_use(older)) == ({"compactor-2", "a"} if is_ahead else {"compactor-2"})
        check(older, {"version": newer})
        change(world, writer, 3)
        assert writer.checkpoint() is not None
    used = in_use(world)
    assert set(used) == {BASE, "a"} and used["a"].coverage["a"].first_revision == (5 if is_ahead else 7)
    with world.writer("a") as again:
        change(world, again, 4)
        assert again.checkpoint() is not None
    check(world, {"version": newer})


@FORKED
def test_a_late_stray_before_it_is_named_in_its_branches(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    keep_time(world, monkeypatch)
    with world.writer("a") as first:
        put(world, first, "first")
        stray = world.under_way(world.writer("a"), obj("stray"))
    old_history(world)
    for _ in ("published", "deleted"):
        prune(world)
        world.clock.tick(GRACE)
    world.store.put(*stray)
    assert "stray" not in names(world.snapshot()), "nobody lists so far back until somebody makes a checkpoint"
    for name in ("x", "y"):
        with world.writer("a") as writer:
            put(world, writer, name)
            assert writer.checkpoint() is not None
        coverage = in_use(world)["a"].coverage["a"]
        assert coverage.first_revision > 1 and {head.revision for head in coverage.branches} == {1}
        assert all(t.writer != "a" for t in world.snapshot().view.tail)
    assert names(world.snapshot()) == sorted([*EVERYTHING, "first", "stray", "x", "y"])
    checkpoint(world)
    with world.writer("a") as writer:
        put(world, writer, "z")
        assert writer.checkpoint() is not None
    assert names(world.snapshot()) == sorted([*EVERYTHING, "first", "stray", "x", "y", "z"])
    check(world)


@FORKED
def test_both_branches_of_a_fork_are_in_it(world: World) -> None:
    processes = [world.writer("a") for _ in range(2)]
    for number, process in enumerate(processes):
        put(world, process, f"fork{number}")
    world.clock.tick(HOUR)
    for number in range(2):
        with world.writer("a") as writer:
            put(world, writer, f"more{number}")
            assert writer.checkpoint() is not None
        coverage = in_use(world)["a"].coverage["a"]
        assert coverage.first_revision == 5
        assert sum(head.revision == 6 for head in coverage.recent | coverage.branches) == 2
        check(world)
    assert names(world.snapshot()) == sorted([*EVERYTHING, "fork0", "fork1", "more0", "more1"])


def test_who_reads_what_lies_behind_the_horizon_does_not_use_it(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    keep_time(world, monkeypatch)
    with world.writer("a") as writer, world.writer("maintainer-2") as tagger:
        put(world, writer, "early")
        tagger.tag("early")
    world.clock.tick(HOUR)
    old_history(world)
    for _ in ("published", "deleted"):
        prune(world)
        world.clock.tick(GRACE)
    with world.writer("a") as writer:
        put(world, writer, "late")
        assert writer.checkpoint() is not None
    assert set(in_use(world)) == {BASE, "a"}
    assert set(in_use(world, version="early")) == {"maintainer-1"}
    assert names(world.snapshot(version="early")) == ["early"]
    check(world, {"version": "early"})


def test_a_compactor_reads_the_transactions_and_not_what_the_checkpoint_says_of_them(world: World) -> None:
    with world.writer("a") as writer:
        for number in range(3):
            change(world, writer, number)
            assert writer.checkpoint() is not None
    before = answers(world)
    done = checkpoint(world)
    after = answers(world)
    assert set(in_use(world)) == {"compactor-1"} and set(Cut.parse(done).heads) >= {"a", "b"}
    assert {name: after[name] for name in ("objects", "deleted", "conflicts")} == {
        name: before[name] for name in ("objects", "deleted", "conflicts")
    }
    check(world)
