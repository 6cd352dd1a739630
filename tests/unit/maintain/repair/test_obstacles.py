"""What can be repaired beside a directory that cannot be listed: what rests on no listing that left something out."""

from __future__ import annotations

import builtins
from collections.abc import Iterator

import pytest

from bucketcatalog.errors import AccessDenied, StoreError
from bucketcatalog.store import Store
from bucketcatalog.store.base import ObjectInfo
from bucketcatalog.store.wrappers import Wrapped

from ....kit.repairing import done, listed, repair
from ....kit.world import DAY, HOUR, World, obj

pytestmark = pytest.mark.filterwarnings("ignore::bucketcatalog.errors.CatalogWarning")


class Hidden(Wrapped):
    """A store of which what lies below a directory cannot be listed."""

    def __init__(self, inner: Store, directory: str) -> None:
        super().__init__(inner)
        self.directory = directory

    def list(self, prefix: str, *, after: str = "", limit: int | None = None) -> Iterator[ObjectInfo]:
        for info in self.inner.list(prefix, after=after, limit=limit):
            if info.name.startswith(self.directory):
                raise self._denied()
            yield info

    def list_prefixes(self, prefix: str, *, begin: str = "") -> builtins.list[str]:
        if self.directory.startswith(prefix):
            raise self._denied()
        return self.inner.list_prefixes(prefix, begin=begin)

    def _denied(self) -> StoreError:
        error = AccessDenied(f"Cannot list {self.directory!r}.", next_step="Ask for the right to.")
        error.in_the_way = self.directory
        return error


@pytest.fixture
def world() -> World:
    """The timelines of w and v are forked, that of u is whole."""
    world = World()
    for name in ("u", "v", "w"):
        world.commit(world.writer(name), ("put", "objects", obj(f"{name} base")))
    for name in ("v", "w"):
        writers = [world.writer(name) for _ in range(2)]
        for number, writer in enumerate(writers):
            world.commit(writer, ("put", "objects", obj(f"{name} {number}")))
    world.clock.tick(HOUR)
    return world


def hide(world: World, writer: str) -> str:
    """What lies at one revision of a writer's timeline, so that it can be reached but not listed."""
    name = f"{writer}/default/transactions/{0:020}/"
    world.store = Hidden(world.store, name)
    return name[:-1]


@pytest.mark.parametrize(("hidden", "joined"), [("u", ["v", "w"]), ("v", ["w"]), ("w", ["v"]), ("maintainer-1", [])])
def test_timelines_are_joined_that_can_be_listed(world: World, hidden: str, joined: list[str]) -> None:
    with world.writer("maintainer-1") as maintainer:
        maintainer.tag("t")
    world.clock.tick(HOUR)
    name = hide(world, hidden)
    made = repair(world, join=["v", "w"], dry_run=False)
    assert done(made) == [("join", writer) for writer in joined]
    assert all(
        action.obstacle == f"Nobody sees what lies below {name}: let it be listed first."
        for action in made.actions
        if not action.done
    )
    assert [finding.file for finding in made.lost if finding.code == "NOT_LISTED"] == [name]


def test_commits_from_the_future_are_voided_beside_it(world: World) -> None:
    world.clock.tick(DAY)
    world.commit(world.writer("x"), ("put", "objects", obj("late")))
    world.clock.tick(-DAY)
    name = hide(world, "u")
    made = repair(world, void=["x@0"], dry_run=False)
    assert ("void", "x@0") in done(made) and name in {finding.file for finding in made.lost}


def test_a_checkpoint_waits_until_everything_can_be_listed(world: World) -> None:
    with world.writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all")
    (bad,) = (info.name for info in world.store.list("compactor-1/") if info.name.endswith(".ckpt"))
    world.store.put(bad, b"spoilt")
    whole = world.store
    name = hide(world, "u")
    before = listed(whole)
    made = repair(world, dry_run=False)
    waiting = {action.what: action.obstacle for action in made.actions if action.what != "join"}
    assert waiting.keys() == {"drop", "checkpoint"} and all(name in why for why in waiting.values())
    assert done(made) == [] and listed(whole) == before
    world.store = whole
    assert {what for what, _ in done(repair(world, dry_run=False))} == {"drop", "checkpoint"}
