"""What a process has read of a database, in whatever order its threads' looks end."""

from __future__ import annotations

import pytest

from bucketcatalog.limits import LATENESS_BOUND, MAX_CLOCK_SKEW
from bucketcatalog.log.discovery import look
from bucketcatalog.log.files import LogFiles
from bucketcatalog.model.cuts import Cut
from bucketcatalog.query.seen import Seen

from ...kit.world import HOUR, SECOND, World, obj


@pytest.fixture
def world() -> World:
    return World()


def put(world: World, name: str, writer: str = "w") -> None:
    with world.writer(writer) as opened:
        world.commit(opened, ("put", "objects", obj(name)))


def revisions(cut: Cut) -> dict[str, list[int]]:
    return {writer: [head.revision for head in heads] for writer, heads in cut.heads.items()}


def test_a_look_replaces_what_it_began_with(world: World) -> None:
    files = LogFiles(world.store, "default")
    put(world, "a")
    began = Seen()
    first = began.after_look(began, *look(files, began.known), files)
    put(world, "b")
    second = first.after_look(first, *look(files, first.known), files)
    assert (revisions(first.cut), revisions(second.cut)) == ({"w": [0]}, {"w": [1]})
    assert second.known.newest == {"w": 1}


def test_what_was_read_while_a_look_was_under_way_is_not_forgotten(world: World) -> None:
    files = LogFiles(world.store, "default")
    put(world, "a")
    began = Seen()
    early = look(files, began.known)
    put(world, "b")
    seen = began.after_look(began, *look(files, began.known), files).after_look(began, *early, files)
    assert revisions(seen.cut) == {"w": [0, 1]}, "one that ends later has listed less"
    named = began.after_reading(seen.cut, files).after_look(began, *early, files)
    assert revisions(named.cut) == {"w": [0, 1]}, "what was read by its name"


def test_of_looks_that_began_with_the_same_the_first_to_end_tells_where_the_next_starts(world: World) -> None:
    files = LogFiles(world.store, "default")
    put(world, "a")
    began = Seen()
    early = look(files, began.known)
    put(world, "b")
    late = look(files, began.known)
    for first, second in ((early, late), (late, early)):
        seen = began.after_look(began, *first, files).after_look(began, *second, files)
        assert seen.known is first[1]
        view, _ = look(files, seen.known)
        assert revisions(view.cut) == {"w": [1]}, "whatever it starts from it finds all"


def test_the_time_up_to_which_everything_is_listed_never_falls(world: World) -> None:
    files = LogFiles(world.store, "default")
    put(world, "a")
    began = Seen()
    early, time = look(files, began.known), world.clock.now
    world.clock.tick(HOUR)
    seen = began.after_look(began, *look(files, began.known), files).after_look(began, *early, files)
    assert seen.observed == time + HOUR
    assert seen.has_all_of(seen.observed - LATENESS_BOUND - 1) and not seen.has_all_of(seen.observed - LATENESS_BOUND)


def test_a_head_of_the_future_is_not_followed_but_what_it_follows_is(world: World) -> None:
    files = LogFiles(world.store, "default")
    put(world, "a")
    world.clock.tick(2 * MAX_CLOCK_SKEW)
    put(world, "b")
    began = Seen()
    found = look(files, began.known)
    world.clock.now -= MAX_CLOCK_SKEW + SECOND
    assert revisions(began.after_look(began, *found, files).cut) == {"w": [0]}


def test_what_lies_in_the_future_counts_as_read_for_nobody(world: World) -> None:
    """Not even where a version in it is named: whoever does so has to look again, and to come after it."""
    files = LogFiles(world.store, "default")
    put(world, "a", "w")
    world.clock.tick(MAX_CLOCK_SKEW + 30 * SECOND)
    put(world, "b", "ahead")
    world.clock.tick(-MAX_CLOCK_SKEW - 30 * SECOND)
    began = Seen()
    view, known = look(files, began.known)
    seen = began.after_look(began, view, known, files)
    assert revisions(seen.cut) == {"w": [0]}
    told = {transaction.writer: seen.has(transaction.uuid) for transaction in view.tail}
    assert told == {"w": True, "ahead": False}
