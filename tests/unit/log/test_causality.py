"""What a commit had read is in its cut, whatever was forked, checkpointed or compacted meanwhile; and what finding it costs."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from typing import Any

import pytest

from bucketcatalog import Catalog
from bucketcatalog.format.checkpoints import decode_checkpoint
from bucketcatalog.log.files import LogFiles
from bucketcatalog.model.cuts import Cut
from bucketcatalog.store.base import Store
from bucketcatalog.store.faults import Counting
from bucketcatalog.store.memory import MemoryStore

from ...kit.world import MINUTE, SECOND, World, names, obj

pytestmark = pytest.mark.filterwarnings("ignore::bucketcatalog.CatalogWarning")


def copied(source: Store, target: Store, containing: str = "") -> None:
    there = {info.name for info in target.list("")}
    for info in list(source.list("")):
        if containing in info.name and info.name not in there:
            target.put(info.name, source.get(info.name))


@pytest.mark.parametrize("name", ["x", "compactor-1"])
@pytest.mark.parametrize("checkpoint", [None, "own", "all"])
def test_a_commit_holds_the_branch_that_its_ancestors_read(checkpoint: str | None, name: str) -> None:
    world = World()
    other = MemoryStore(clock=world.clock)
    world.commit(one := world.writer("w"), ("put", "objects", obj("base")))
    copied(world.store, other)
    world.commit(one, ("put", "objects", obj("branch a")))
    catalog = world.catalog()
    catalog.snapshot()
    reader = catalog.writer(name, clock=world.clock)
    world.commit(reader, ("put", "objects", obj("x0")))
    if checkpoint is not None:
        with world.writer("compactor-1") if checkpoint == "all" and name == "x" else nullcontext(reader) as maker:
            maker.checkpoint(scope=checkpoint)  # type: ignore[arg-type]
    two = Catalog(other).writer("w", clock=world.clock)
    for number in range(2):
        world.commit(two, ("put", "objects", obj(f"branch b{number}")))
    version = Catalog(other).snapshot(database="default").version
    copied(other, world.store)

    again = world.catalog()
    again.snapshot(version=version)
    committed = world.commit(again.writer(name, clock=world.clock), ("put", "objects", obj("x1")))
    wanted = ["base", "branch a", "branch b0", "branch b1", "x0", "x1"]
    assert names(world.snapshot(version=committed.version)) == wanted
    assert names(world.snapshot(version=f"{name}@0")) == ["base", "branch a", "x0"]


def test_what_a_checkpoint_of_everyone_lies_beside_names_all_of_its_cut_as_read() -> None:
    """Also what the compactor has named before: whoever meets the checkpoint can tell from that alone that its cut had been read."""
    world = World()
    with world.writer("a") as a, world.writer("idle") as idle, world.writer("compactor-1") as compactor:
        world.commit(idle, ("put", "objects", obj("idle")))
        for number in range(3):
            world.commit(a, ("put", "objects", obj(f"{number}")))
            done = compactor.checkpoint(scope="all")
            assert done is not None
            cut = Cut.parse(done.version)
            read = LogFiles(world.store, "default").transaction("compactor-1", cut.of_writer("compactor-1")[0]).reads
            assert {ref for ref in cut.refs() if ref.writer != "compactor-1"} <= set(read.refs())


@pytest.mark.parametrize(("name", "scope"), [("w", "own"), ("compactor-1", "all")])
def test_a_version_names_the_same_rows_with_and_without_the_checkpoint_that_found_a_stray(name: str, scope: Any) -> None:
    world = World()
    writer = world.writer(name)
    world.commit(writer, ("put", "objects", obj("first")))
    other = MemoryStore(clock=world.clock)
    copied(world.store, other)
    world.commit(Catalog(other).writer(name, clock=world.clock), ("put", "objects", obj("stray")))
    for number in range(3):
        world.clock.tick(10 * MINUTE)
        world.commit(writer, ("put", "objects", obj(f"later {number}")))
    writer.checkpoint()
    world.clock.tick(20 * MINUTE)
    world.commit(writer, ("put", "objects", obj("last")))
    copied(other, world.store, "/00000000000000000001/")
    writer.checkpoint(scope=scope)

    snapshot = world.snapshot()
    bare = World(MemoryStore(clock=world.clock))
    copied(world.store, bare.store, ".txn")
    assert "stray" in names(snapshot)
    assert names(world.snapshot(version=snapshot.version)) == names(snapshot) == names(bare.snapshot(version=snapshot.version))
    assert snapshot.version == bare.snapshot().version
    assert [fork.open for fork in snapshot.view.forks] == [True]


def test_a_checkpoint_keeps_the_newest_result_of_an_application() -> None:
    world = World()
    writer = world.writer()
    for number in range(40):
        world.commit(writer, ("put", "objects", obj(f"{number}")), app_id="job", app_version=number)
        if number == 2:
            world.writer("compactor-1").checkpoint(scope="all")
    writer.checkpoint()
    result = world.writer("compactor-2").checkpoint(scope="all")
    assert result is not None
    found = decode_checkpoint(world.store.get(result.name), result.name).applications
    assert [(one.writer, one.id, one.version) for one in found] == [("w", "job", 39)]


def test_a_compactor_relieves_the_writers() -> None:
    world = World()
    writer = world.writer()
    for number in range(200):
        world.commit(writer, ("put", "objects", obj(f"{number}")), app_id="job", app_version=number)
    world.clock.tick(60 * MINUTE)
    world.writer("compactor-1").checkpoint(scope="all")

    store = Counting(world.store)
    again = Catalog(store).writer("w", clock=world.clock)
    repeated = world.commit(again, ("put", "objects", obj("x")), app_id="job", app_version=200)
    assert repeated.revision == 200
    assert store.requests["get"] <= 4


class AtOnce(Counting):
    """A store that pays for many requests at once."""

    concurrency = 16  # type: ignore[assignment]


@pytest.mark.parametrize("counting", [Counting, AtOnce])
@pytest.mark.parametrize(("name", "scope"), [("w", "own"), ("compactor-1", "all")])
def test_the_cut_of_a_commit_costs_no_more_than_what_came_after_a_checkpoint(
    name: str, scope: Any, counting: type[Counting]
) -> None:
    world = World()
    writer = world.writer(name)
    for number in range(200):
        world.commit(writer, ("put", "objects", obj(f"{number}")))
    writer.checkpoint(scope=scope)
    for number in range(4):
        committed = world.commit(writer, ("put", "objects", obj(f"last-{number}")))
    store = counting(world.store)
    assert len(names(Catalog(store).snapshot(database="default", version=committed.version))) == 204
    assert store.requests["get"] <= 7


def test_a_damaged_transaction_that_a_checkpoint_covers_is_not_needed_for_a_version() -> None:
    world = World()
    writer = world.writer()
    for number in range(20):
        world.commit(writer, ("put", "objects", obj(f"{number}")))
    writer.checkpoint()
    for _ in range(4):
        committed = world.commit(writer, ("put", "objects", obj("last")))
    damaged = [info.name for info in world.store.list("w/default/transactions/") if info.name.endswith(".txn")][10]
    world.store.delete(damaged)
    world.store.put(damaged, b"damaged")
    assert len(names(Catalog(AtOnce(world.store)).snapshot(database="default", version=committed.version))) == 21


def test_two_checkpoints_together_cost_no_listing_a_commit() -> None:
    world = World()
    writer = world.writer()
    for number in range(20):
        world.commit(writer, ("put", "objects", obj(f"a{number}")))
    world.commit(world.writer("z"), ("put", "objects", [obj(f"z{number}") for number in range(30)]))
    world.writer("compactor-1").checkpoint(scope="all")
    for number in range(100):
        world.clock.tick(10 * SECOND)
        world.commit(writer, ("put", "objects", obj(f"b{number}")))
    writer.checkpoint()
    store = Counting(world.store)
    snapshot = Catalog(store).snapshot(database="default")
    assert len(snapshot.view.checkpoints) == 2
    assert store.requests["list"] + store.requests["list_prefixes"] <= 1 + 2 * 3


def test_what_is_read_by_name_during_a_look_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look that began before lists less than what somebody has read by its version meanwhile."""
    from bucketcatalog.query import database as module

    world = World()
    with world.writer("other") as other, world.writer("mine") as mine:
        world.commit(other, ("put", "objects", obj("a")))
        reader = mine._database
        look = module.look

        def slow_look(*arguments: Any) -> Any:
            found = look(*arguments)
            world.commit(other, ("put", "objects", obj("b")))
            reader.snapshot(None, "other@1", strict=False)
            return found

        monkeypatch.setattr(module, "look", slow_look)
        reader.look()
        monkeypatch.undo()
        committed = world.commit(mine, ("put", "objects", obj("c")))
    assert names(world.snapshot(version=committed.version)) == ["a", "b", "c"]


def test_a_look_that_began_earlier_and_saw_more_is_not_forgotten_for_one_that_ends_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """One look begins first, lists late and ends first; another begins later, lists early and ends last."""
    from bucketcatalog.query import database as module

    world = World()
    with world.writer("other") as other, world.writer("mine") as mine:
        world.commit(other, ("put", "objects", obj("a")))
        reader, look = mine._database, module.look
        begun, listed, ended = (threading.Event() for _ in range(3))

        def first_look(*arguments: Any) -> Any:
            begun.set()
            assert listed.wait(20)
            world.commit(other, ("put", "objects", obj("b")))
            return look(*arguments)

        def second_look(*arguments: Any) -> Any:
            found = look(*arguments)
            listed.set()
            assert ended.wait(20)
            return found

        looks = iter([first_look, second_look])
        monkeypatch.setattr(module, "look", lambda *arguments: next(looks)(*arguments))

        def first() -> None:
            assert names(reader.look()) == ["a", "b"]
            ended.set()

        earlier = threading.Thread(target=first)
        earlier.start()
        assert begun.wait(20)
        assert names(reader.look()) == ["a"]
        earlier.join()
        monkeypatch.undo()
        committed = world.commit(mine, ("put", "objects", obj("c")))
    assert names(world.snapshot(version=committed.version)) == ["a", "b", "c"]
