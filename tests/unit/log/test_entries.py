"""Boundaries: what a transaction allows to be deleted is read again as it was published, and checkpoints carry what counts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bucketcatalog import UnsupportedFormat
from bucketcatalog.clock import uuid7
from bucketcatalog.format import sealing
from bucketcatalog.format.records import Boundary, CheckpointLink
from bucketcatalog.log.entries import Boundaries, boundaries_of, newest_of
from bucketcatalog.model.cuts import Cut, Head

from ...kit.world import START, World, obj

FIRST = sorted(uuid7(START).bytes for _ in range(2))


def horizon(world: World) -> Boundary:
    """A boundary with the horizon of a checkpoint that is there."""
    world.commit(world.writer(), ("put", "objects", obj("a")))
    with world.writer("compactor-2") as compactor:
        compactor.checkpoint(scope="all")
    (made,) = [c for c in world.snapshot().view.checkpoints if c.writer == "compactor-2"]
    link = CheckpointLink(made.writer, made.revision, made.uuid, made.digest)
    first = Cut({"w": (Head(0, FIRST[0]), Head(0, FIRST[1]))})
    return Boundary(made.cut, link, settled=3, first=first, floors={"w": 1, "v": 7})


def published(world: World, *boundaries: Boundary, writer: str = "maintainer-1") -> list[Boundary]:
    with world.writer(writer) as held:
        return [held.bound("prune", boundary) for boundary in boundaries if world.clock.tick()]


def counting(world: World) -> Boundaries:
    return boundaries_of(world.snapshot().view)


def test_a_boundary_is_read_as_it_was_published(world: World) -> None:
    full = replace(horizon(world), data=17)
    (told,) = published(world, full)
    assert counting(world) == Boundaries(told, told)
    assert replace(told, stamp=full.stamp) == full and told.stamp[1] == "maintainer-1"


def test_the_newest_boundary_of_the_history_and_the_newest_of_data_count_also_through_checkpoints(world: World) -> None:
    both, again = replace(horizon(world), data=1), horizon(world)
    _, of_data, of_history, _ = published(world, both, Boundary(data=2, settled=5), again, Boundary(settled=7))
    expected = Boundaries(of_history, of_data)
    assert counting(world) == expected
    for _ in range(2):  # the second one carries on what only the first one holds
        with world.writer("compactor-1") as compactor:
            compactor.checkpoint(scope="all")
        assert counting(world) == expected
        assert any(checkpoint.boundaries == expected.entries for checkpoint in world.snapshot().view.checkpoints)
        world.commit(world.writer(), ("put", "objects", obj("b")))


def test_no_boundary_counts_where_there_is_none(world: World) -> None:
    world.commit(world.writer(), ("put", "objects", obj("a")))
    assert counting(world) == Boundaries() == newest_of([])


def test_a_reader_that_does_not_know_boundaries_refuses(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    published(world, Boundary(data=1))
    monkeypatch.setattr(sealing, "KNOWN_FEATURES", frozenset({"runs"}))
    with pytest.raises(UnsupportedFormat, match="boundary"):
        world.snapshot()


def test_of_data_boundaries_the_one_that_reaches_farthest_counts(world: World) -> None:
    farthest, *_ = published(world, Boundary(data=100), Boundary(data=90))
    published(world, Boundary(data=95), writer="maintainer-2")
    assert counting(world).data == farthest
    with world.writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all")
    assert counting(world).data == farthest
