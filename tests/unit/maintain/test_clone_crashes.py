"""A clone that was interrupted is no database, and is finished by the next run."""

from __future__ import annotations

from typing import Any

import pytest

from bucketcatalog import HistoryPruned, MissingObject, TargetNotEmpty
from bucketcatalog.store.faults import Failing, SimulatedCrash
from bucketcatalog.store.memory import MemoryStore

from ...kit.cloning import at, clone, copied_world, shown
from ...kit.world import World, obj


@pytest.fixture
def world() -> World:
    return copied_world()


def crash(world: World, store: MemoryStore, at_call: int, *, late: bool) -> MemoryStore:
    """A target after a clone that died at one of its calls there."""
    with pytest.raises(SimulatedCrash):
        clone(world, Failing(store, at=at_call, after=late))
    return store


def calls(world: World) -> list[tuple[str, str]]:
    counting = Failing(MemoryStore(clock=world.clock))
    clone(world, counting)
    return counting.calls


def is_readable(world: World, store: MemoryStore, expected: dict[str, Any]) -> bool:
    """Whether there is a database, and if so that it is whole; if not, that whoever asks is told."""
    there = at(world, store)
    if "default" not in there.catalog().databases():
        return False
    times = [None, *(row.head.commit_time for row in world.snapshot().view.tail)]
    try:
        assert shown(there) == expected
    except MissingObject:
        for time in times[1:]:
            with pytest.raises((MissingObject, HistoryPruned)):
                there.snapshot(timestamp=f"@{time}")
        return False
    return True


@pytest.mark.parametrize("twice", [False, True])
def test_a_crash_leaves_no_database_or_a_whole_one_and_the_next_run_finishes(twice: bool) -> None:
    """Timelines of one transaction each, which need nothing before them to be read: half of these would look like a database."""
    world = World()
    for name in ("u", "v", "w"):
        with world.writer(name) as held:
            world.commit(held, ("put", "objects", obj(name)), ("delete", "objects", obj("nothing")))
    expected = shown(world)
    points = [(number, late) for number, _ in enumerate(calls(world)) for late in (False, True)]
    readable = []
    for number, late in points:
        store = crash(world, MemoryStore(clock=world.clock), number, late=late)
        readable.append(is_readable(world, store, expected))
        if twice and not readable[-1]:
            is_readable(world, crash(world, store, min(number, 9), late=not late), expected)
        made = clone(world, store)
        assert is_readable(world, store, expected) and shown(world, version=made.version) == expected
        there = at(world, store)
        with there.writer("u") as u:
            assert there.commit(u, ("put", "objects", obj("went on"))).version == "u@1"
    assert readable == sorted(readable) and True in readable and False in readable


def test_an_interrupted_clone_is_finished_as_of_the_version_that_it_was_of(world: World) -> None:
    expected = shown(world)
    number = next(number for number, (call, name) in enumerate(calls(world)) if call == "put" and name.endswith(".ckpt"))
    version = world.snapshot().version
    store = crash(world, MemoryStore(clock=world.clock), number, late=False)
    with world.writer() as w:
        world.commit(w, ("put", "objects", obj("later")))
    with pytest.raises(TargetNotEmpty):
        clone(world, store, "w@0")
    made = clone(world, store)
    assert made.version == version and made.bytes and shown(at(world, store)) == expected
