"""What the search in tests/property has found, as the smallest case that shows it."""

from __future__ import annotations

import pytest

from bucketcatalog import Catalog, clock
from bucketcatalog.store.base import Store
from bucketcatalog.store.faults import SimulatedCrash, Wrapped
from bucketcatalog.store.memory import MemoryStore

from ..kit.world import MINUTE, OWNER, SECOND, World, names, obj

pytestmark = pytest.mark.filterwarnings("ignore::bucketcatalog.errors.CatalogWarning")  # forks are what most of this is about


class NoCheckpoints(Wrapped):
    """A store for a process that dies before anything of its checkpoint is put beside its transactions."""

    def put(self, name: str, data: bytes) -> None:
        if not name.endswith(".txn"):
            raise SimulatedCrash(name)
        self.inner.put(name, data)


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


def without_checkpoints(store: Store) -> Store:
    """The transactions alone."""
    plain = MemoryStore()
    for info in store.list(""):
        if info.name.endswith(".txn"):
            plain.put(info.name, store.get(info.name))
    return plain


@pytest.mark.filterwarnings("ignore::bucketcatalog.CatalogWarning")
def test_version_of_a_checkpoint_names_the_very_late_stray_of_its_own_timeline_or_leaves_it_out() -> None:
    """The checkpoint holds the stray's rows, and its cut does not name it: one version shows two states."""
    world = World()
    world.commit(world.writer(), ("put", "objects", obj("stray")))
    (stray,) = [(info.name, world.store.get(info.name)) for info in world.store.list("w/")]
    world.store.delete(stray[0])
    world.commit(world.writer(), ("put", "objects", obj("a")))
    world.clock.tick(13 * MINUTE)
    world.writer().checkpoint(scope="all")
    world.store.put(*stray)
    world.writer().checkpoint(scope="all")
    version = world.snapshot().version
    assert names(Catalog(without_checkpoints(world.store)).snapshot(version=version)) == names(world.snapshot(version=version))


def test_purge_of_a_version_that_has_not_arrived_survives_two_checkpoints() -> None:
    """The first keeps a stub that has no stamp at all; the second cannot write it and raises ``ValueError``."""
    world = World()
    writer = world.writer()
    world.commit(writer, ("purge", "buckets", {"owner": OWNER, "name": "b", "_version": f"{clock.uuid7(world.clock.now)}:0"}))
    writer.checkpoint()
    world.commit(writer, ("put", "objects", obj("a")))
    writer.checkpoint()
    assert names(world.snapshot()) == ["a"]


def test_transaction_in_time_is_seen_though_an_older_stray_has_its_revision() -> None:
    """Both arrive within the lateness bound of six minutes, and yet a checkpoint between the two hides the second.

    It tells readers to list from the revision after the first, which by then is older than twice the bound.
    """
    world = World()
    start = world.clock.now

    def under_way() -> tuple[str, bytes]:
        """Takes out of the store what the writer has put."""
        (put,) = [(info.name, world.store.get(info.name)) for info in world.store.list("w/")]
        world.store.delete(put[0])
        return put

    world.commit(world.writer(), ("put", "objects", obj("first")))
    first = under_way()
    world.clock.now = start + 350 * SECOND
    slow = world.writer()
    world.clock.now = start + 375 * SECOND  # the first arrived at 355 s; this process has looked less than 30 s ago
    world.commit(slow, ("put", "objects", obj("second")))
    second = under_way()
    world.store.put(*first)
    world.clock.now = start + 725 * SECOND
    world.writer("compactor-1").checkpoint(scope="all")
    world.clock.now = start + 730 * SECOND
    world.store.put(*second)
    assert names(world.snapshot()) == ["first", "second"]
