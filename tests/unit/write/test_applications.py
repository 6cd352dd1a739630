"""Applications that number their transactions: what was committed before is answered from the log."""

from __future__ import annotations

from typing import Any

import pytest

from bucketcatalog import StoreUnavailable
from bucketcatalog.store.faults import Failing
from bucketcatalog.write.writer import Writer

from ...kit.world import World, names, obj, rows


class TestApplications:
    def commit(self, world: World, writer: Writer, name: str, number: int, app: str = "job") -> Any:
        world.clock.tick()
        with writer.transaction(app_id=app, app_version=number) as tx:
            tx.put("objects", obj(name))
        return tx.committed

    def test_the_last_version_repeated_is_answered_from_the_log(self, world: World) -> None:
        first = self.commit(world, world.writer(), "a", 7)
        same = self.commit(world, world.writer(), "b", 7)
        with world.writer() as writer:
            again = self.commit(world, writer, "c", 7)

        assert first == same == again
        assert names(world.snapshot()) == ["a"] and len(rows(world.snapshot(), "log")) == 1

    def test_an_older_version_does_nothing(self, world: World, writer: Writer) -> None:
        self.commit(world, writer, "a", 7)
        assert self.commit(world, writer, "b", 6) is None
        assert self.commit(world, world.writer(), "b", 6) is None
        assert names(world.snapshot()) == ["a"]

    def test_newer_versions_and_other_applications_commit(self, world: World, writer: Writer) -> None:
        self.commit(world, writer, "a", 7)
        assert self.commit(world, writer, "b", 8).revision == 1
        assert self.commit(world, writer, "c", 7, "other").revision == 2
        assert self.commit(world, writer, "d", 7).__class__ is type(None)

    def test_results_survive_checkpoints(self, world: World, writer: Writer) -> None:
        first = self.commit(world, writer, "a", 7)
        writer.checkpoint()
        for _ in range(2):
            world.commit(writer, ("put", "objects", obj("x")))
            writer.checkpoint()
        compactor = world.writer("compactor-1")
        compactor.checkpoint(scope="all")
        writer.close()

        assert self.commit(world, world.writer(), "b", 7) == first
        assert self.commit(world, world.writer(), "b", 6) is None

    def test_versions_are_those_of_one_writer(self, world: World) -> None:
        self.commit(world, world.writer("one"), "a", 7)
        other = self.commit(world, world.writer("two"), "b", 7)

        assert other is not None and other.version == "two@0"

    def test_a_failed_commit_does_not_count(self, world: World) -> None:
        failing = Failing(world.store, at=0, error=StoreUnavailable("down"), methods=("put",))
        writer = World(failing).catalog().writer("w", clock=world.clock)
        with pytest.raises(StoreUnavailable):
            self.commit(world, writer, "a", 7)
        assert self.commit(world, writer, "b", 7).revision == 0
