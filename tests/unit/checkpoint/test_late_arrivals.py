"""Transactions that arrive beside and behind checkpoints: read at once or with the next one, and never hidden for good."""

from __future__ import annotations

from typing import Literal

import pytest

from bucketcatalog import Catalog
from bucketcatalog.model import paths
from bucketcatalog.model.cuts import Head
from bucketcatalog.model.uuids import uuid_bytes
from bucketcatalog.store.faults import SimulatedCrash
from bucketcatalog.store.memory import MemoryStore
from bucketcatalog.store.wrappers import Wrapped
from bucketcatalog.write.writer import Writer

from ...kit.pruning import keep_time
from ...kit.world import MINUTE, SECOND, World, names, obj, rows
from .conftest import answers, without_checkpoints

# Two processes of one writer fork its timeline.
FORKED = pytest.mark.filterwarnings("ignore::bucketcatalog.errors.CatalogWarning")


def test_late_transactions_below_a_checkpoint_are_read(world: World) -> None:
    slow, fast = world.writer("slow"), world.writer("fast")
    hidden = MemoryStore(clock=world.clock)
    late = Catalog(hidden).writer("late", clock=world.clock)
    world.commit(slow, ("put", "objects", obj("k", content_length=1)))
    world.clock.tick()
    with late.transaction() as tx:
        tx.put("objects", obj("k", content_length=2))
        tx.put("objects", obj("late"))
    world.commit(fast, ("put", "objects", obj("k", content_length=3)))
    world.commit(fast, ("delete", "objects", obj("k")))
    world.writer("compactor-1").checkpoint(scope="all")
    for info in hidden.list(""):
        world.store.put(info.name, hidden.get(info.name))
    for again in range(3):
        snapshot = world.snapshot()
        assert names(snapshot) == ["late"]
        ended = [row for row in rows(snapshot, "deleted_objects") if row["name"] == "k"]
        assert [row["content_length"] for row in ended] == [1, 2, 3]
        assert [row["deleted_at"] for row in ended] == sorted(row["deleted_at"] for row in ended)
        assert answers(world) == answers(without_checkpoints(world))
        world.commit(fast, ("put", "objects", obj(f"again{again}")))
        world.writer("compactor-1").checkpoint(scope="all")
        world.commit(fast, ("delete", "objects", obj(f"again{again}")))


def test_late_transactions_of_the_same_writer_are_found_after_its_checkpoint(world: World, writer: Writer) -> None:
    world.commit(writer, ("put", "objects", obj("a")))
    crashed = World(MemoryStore(clock=world.clock))
    crashed.clock = world.clock
    for info in world.store.list(""):
        crashed.store.put(info.name, world.store.get(info.name))
    crashed.commit(crashed.writer(), ("put", "objects", obj("stray")))
    world.commit(writer, ("put", "objects", obj("b")))
    writer.checkpoint()
    for info in crashed.store.list(""):
        if info.name.endswith(".txn"):
            world.store.put(info.name, crashed.store.get(info.name))
    with pytest.warns(match="forked"):
        assert names(world.snapshot()) == ["a", "b", "stray"]
    world.clock.tick(60 * MINUTE)
    with world.writer() as joining:
        world.commit(joining, ("put", "objects", obj("c")))
        joining.checkpoint()
    assert names(world.snapshot()) == ["a", "b", "c", "stray"]
    assert answers(world) == answers(without_checkpoints(world))


@FORKED
@pytest.mark.parametrize("attempt", range(8))
def test_of_two_checkpoints_at_one_revision_the_one_that_covers_more_is_read(attempt: int) -> None:
    """Their names differ in random bits only, so one attempt could be right by luck."""
    world = World()
    world.commit(world.writer(), ("put", "objects", obj("base")))
    one, two = world.writer(), world.writer()
    stray = world.commit(two, ("put", "objects", obj(f"stray{attempt}")))
    name = paths.transaction("w", "default", Head(stray.revision, uuid_bytes(stray.uuid)))
    under_way = world.store.get(name)
    world.store.delete(name)
    for number in range(2):
        world.commit(one, ("put", "objects", obj(f"one{number}")))
    world.clock.tick(60 * MINUTE)
    assert one.checkpoint() is not None
    world.store.put(name, under_way)
    assert names(world.snapshot()) == ["base", "one0", "one1"], "too late for the first checkpoint"
    assert world.writer().checkpoint() is not None
    assert names(world.snapshot()) == ["base", "one0", "one1", f"stray{attempt}"]


class NoCheckpoints(Wrapped):
    """A store for a process that dies before anything of its checkpoint is put beside its transactions."""

    def put(self, name: str, data: bytes) -> None:
        if not name.endswith(".txn"):
            raise SimulatedCrash(name)
        self.inner.put(name, data)


@FORKED
def test_crash_in_a_checkpoint_after_a_very_late_arrival_leaves_the_catalog_readable() -> None:
    """The checkpoint's own transaction has read the stray, which lies below where the last checkpoint tells readers to list from.

    Every reader stops with ``MissingObject`` at a file that is there, until somebody takes a checkpoint of all again.
    """
    world = World()
    world.commit(world.writer("a"), ("put", "objects", obj("stray")))
    (stray,) = [(info.name, world.store.get(info.name)) for info in world.store.list("a/")]
    world.store.delete(stray[0])
    world.commit(world.writer("a"), ("put", "objects", obj("a")))
    world.clock.tick(13 * MINUTE)
    world.writer("compactor-1").checkpoint(scope="all")
    world.store.put(*stray)
    with pytest.raises(SimulatedCrash):
        Catalog(NoCheckpoints(world.store)).writer("compactor-1", clock=world.clock).checkpoint(scope="all")
    assert set(names(world.snapshot())) >= {"a"}


@FORKED
@pytest.mark.parametrize(("maker", "scope"), [("w", "own"), ("compactor-1", "own"), ("compactor-1", "all")])
def test_version_of_a_checkpoint_names_the_very_late_stray_of_its_own_timeline_or_leaves_it_out(
    maker: str, scope: Literal["own", "all"]
) -> None:
    """The checkpoint holds the stray's rows, and its cut does not name it: one version shows two states."""
    world = World()
    world.commit(world.writer(maker), ("put", "objects", obj("stray")))
    (stray,) = [(info.name, world.store.get(info.name)) for info in world.store.list(f"{maker}/")]
    world.store.delete(stray[0])
    world.commit(world.writer(maker), ("put", "objects", obj("a")))
    world.clock.tick(13 * MINUTE)
    world.writer(maker).checkpoint(scope=scope)
    world.store.put(*stray)
    world.writer(maker).checkpoint(scope=scope)
    version = world.snapshot().version
    assert names(without_checkpoints(world).snapshot(version=version)) == names(world.snapshot(version=version))


@FORKED
@pytest.mark.parametrize("taken", [370, 730])
@pytest.mark.parametrize("arrives", [355, 100_000])
@pytest.mark.parametrize("follower", [None, "a commit", "a checkpoint", "the next checkpoint"])
def test_transaction_in_time_is_seen_though_an_older_stray_has_its_revision(
    monkeypatch: pytest.MonkeyPatch, follower: str | None, arrives: int, taken: int
) -> None:
    """Both may arrive within the lateness bound of six minutes, and yet a checkpoint between the two hides the second.

    It tells readers to list from the revision after the first, which by then is older than twice the bound. How late the first was does not
    matter, nor who followed it or covered it as soon as it had arrived.
    """
    world = World()
    keep_time(world, monkeypatch)
    arrived = world.clock.now + arrives * SECOND
    whose = "compactor-1" if follower == "the next checkpoint" else "w"

    first = world.under_way(world.writer(whose), obj("first"))
    world.clock.now = arrived - 5 * SECOND
    slow = world.writer(whose)
    world.clock.now = arrived
    world.store.put(*first)
    if follower == "a checkpoint":
        world.writer("compactor-1").checkpoint(scope="all")
    elif follower == "a commit":
        world.commit(world.writer(whose), ("put", "objects", obj("follower")))
    world.clock.now = arrived + 20 * SECOND  # the slow process has looked less than 30 s ago
    second = world.under_way(slow, obj("second"))
    world.clock.now = arrived + taken * SECOND
    world.commit(world.writer("another"), ("put", "objects", obj("more")))
    world.writer("compactor-1").checkpoint(scope="all")
    world.store.put(*second)
    assert {"first", "second"} <= set(names(world.snapshot()))
    assert answers(world) == answers(without_checkpoints(world))


@pytest.mark.parametrize("is_covered", [False, True])
def test_timeline_is_listed_from_behind_what_was_there_long_ago(monkeypatch: pytest.MonkeyPatch, is_covered: bool) -> None:
    """Nobody can come beside that any more: of a transaction that something followed then, or that a checkpoint covered then."""
    world = World()
    keep_time(world, monkeypatch)
    with world.writer() as writer, world.writer("compactor-1") as compactor:
        for number in range(20):
            world.commit(writer, ("put", "objects", obj(f"{number}")))
        if is_covered:
            compactor.checkpoint(scope="all")
        world.clock.tick(20 * MINUTE)
        world.commit(writer, ("put", "objects", obj("new")))
        compactor.checkpoint(scope="all")
    (checkpoint,) = world.snapshot().view.checkpoints
    assert checkpoint.coverage["w"].list_from == (20 if is_covered else 19)
