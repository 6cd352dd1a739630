"""The model's writers and cuts against examples worked out by hand."""

from __future__ import annotations

import pytest

from ..kit.reference.model import Op
from ..kit.reference.timelines import Draft, Process, Timelines


class World:
    """Timelines in which transactions are called by short names and commit at the time of a counter."""

    def __init__(self) -> None:
        self.timelines = Timelines()
        self.time = 0

    def open(self, writer: str = "w") -> Process:
        process = self.timelines.open(writer)
        assert process is not None
        return process

    def commit(self, process: Process, uuid: str, *drafts: Draft, arrived: bool = True) -> None:
        self.time += 10
        self.timelines.commit(process, drafts, uuid=uuid, commit_time=self.time, arrived=arrived)

    def read(self, process: Process) -> None:
        self.timelines.read(process, self.timelines.visible())


@pytest.fixture
def world() -> World:
    return World()


def put(name: str) -> Draft:
    return Draft(op=Op.PUT, table="objects", key=(name,), row={"value": name})


def names(*uuids: str) -> frozenset[str]:
    return frozenset(uuids)


class TestOneWriter:
    def test_first_transaction_has_revision_zero_and_no_parent(self, world: World) -> None:
        process = world.open()
        world.commit(process, "a")
        assert (world.timelines.transactions["a"].revision, world.timelines.transactions["a"].parents) == (0, names())

    def test_next_one_follows_it(self, world: World) -> None:
        process = world.open()
        world.commit(process, "a")
        world.commit(process, "b")
        assert (world.timelines.transactions["b"].revision, world.timelines.transactions["b"].parents) == (1, names("a"))

    def test_next_process_follows_the_last(self, world: World) -> None:
        world.commit(world.open(), "a")
        process = world.open()
        assert (process.parents, process.next_revision, process.last_commit_time) == (names("a"), 1, 10)

    def test_events_carry_the_stamp_and_their_place(self, world: World) -> None:
        world.commit(world.open(), "a", put("x"), put("y"))
        assert [event.stamp for event in world.timelines.transactions["a"].events] == [(10, "w", 0, "a", 0), (10, "w", 0, "a", 1)]

    def test_repeated_bytes_are_one_transaction(self, world: World) -> None:
        world.commit(world.open(), "a", put("x"))
        before = world.timelines.state(world.timelines.visible())
        world.timelines.add(world.timelines.transactions["a"])
        assert world.timelines.state(world.timelines.visible()) == before

    @pytest.mark.parametrize(("now", "reads", "expected"), [(5, [], 11), (50, [], 50), (5, [30, 20], 31), (50, [30], 50)])
    def test_commit_time_comes_after_the_clock_the_last_and_the_read(
        self, world: World, now: int, reads: list[int], expected: int
    ) -> None:
        process = world.open()
        world.commit(process, "a")
        assert process.earliest_commit_time(now=now, read_times=reads) == expected


class TestCuts:
    def test_a_timestamp_is_every_arrived_transaction_up_to_it(self, world: World) -> None:
        one, two = world.open("one"), world.open("two")
        world.commit(one, "a")
        world.commit(two, "b", arrived=False)
        world.commit(one, "c")
        assert [world.timelines.at(time) for time in (9, 10, 29, 30)] == [names(), names("a"), names("a"), names("a", "c")]
        world.timelines.arrive("b")
        assert world.timelines.at(20) == names("a", "b")

    def test_a_commits_cut_holds_its_ancestors_and_what_it_had_read(self, world: World) -> None:
        one, two = world.open("one"), world.open("two")
        world.commit(one, "a")
        world.commit(two, "b")
        world.read(two)
        world.commit(two, "c")
        world.commit(one, "d")
        assert world.timelines.causal("c") == names("a", "b", "c")
        assert world.timelines.causal("d") == names("a", "d")

    def test_what_was_read_counts_from_then_on(self, world: World) -> None:
        one, two = world.open("one"), world.open("two")
        world.commit(one, "a")
        world.read(two)
        world.commit(two, "b")
        world.commit(two, "c")
        world.commit(world.open("two"), "d")
        assert world.timelines.transactions["c"].reads == names("a")
        assert world.timelines.transactions["d"].reads == names()
        assert world.timelines.causal("d") == names("a", "b", "c", "d")

    def test_is_closed_under_parents_and_reads(self, world: World) -> None:
        one, two = world.open("one"), world.open("two")
        world.commit(one, "a")
        world.read(two)
        world.commit(two, "b")
        closed = [names(), names("a"), names("a", "b")]
        assert [world.timelines.is_cut(cut) for cut in [*closed, names("b")]] == [True, True, True, False]

    def test_timestamps_are_closed(self, world: World) -> None:
        one, two = world.open("one"), world.open("two")
        for uuid in "abcdef":
            process = one if uuid in "ace" else two
            world.read(process)
            world.commit(process, uuid)
        assert all(world.timelines.is_cut(world.timelines.at(time)) for time in range(70))

    def test_state_at_a_cut_is_that_of_its_events(self, world: World) -> None:
        one, two = world.open("one"), world.open("two")
        world.commit(one, "a", put("x"))
        world.commit(two, "b", put("y"))
        world.commit(one, "c", Draft(op=Op.DELETE, table="objects", key=("x",)))
        assert set(world.timelines.state(world.timelines.visible()).live("objects")) == {("y",)}
        assert set(world.timelines.state(world.timelines.at(20)).live("objects")) == {("x",), ("y",)}
        assert set(world.timelines.state(world.timelines.causal("c")).live("objects")) == set()


class TestForks:
    def test_two_processes_of_one_writer_make_two_heads(self, world: World) -> None:
        world.commit(world.open(), "a")
        one, two = world.open(), world.open()
        world.commit(one, "b")
        world.commit(two, "c")
        assert world.timelines.heads("w") == names("b", "c")
        assert world.timelines.branches("w") == {1: names("b", "c")}
        assert world.timelines.foreign(one) == names("c") and world.timelines.foreign(two) == names("b")

    def test_both_branches_are_visible(self, world: World) -> None:
        one, two = world.open(), world.open()
        world.commit(one, "a", put("x"))
        world.commit(two, "b", put("y"))
        assert set(world.timelines.state(world.timelines.visible()).live("objects")) == {("x",), ("y",)}
        assert world.timelines.causal("b") == names("b")

    def test_a_stray_is_joined_by_naming_both_parents(self, world: World) -> None:
        world.commit(world.open(), "a")
        crashed = world.open()
        world.commit(crashed, "stray", arrived=False)
        survivor = world.open()
        world.commit(survivor, "b")
        world.commit(survivor, "c")
        world.timelines.arrive("stray")
        joiner = world.open()
        assert (joiner.parents, joiner.next_revision) == (names("stray", "c"), 3)
        world.commit(joiner, "d")
        assert world.timelines.heads("w") == names("d") and not world.timelines.foreign(joiner)
        assert world.timelines.causal("d") == names("a", "b", "c", "d", "stray")

    def test_a_fork_is_joined_once_one_transaction_follows_all_of_it(self, world: World) -> None:
        one, two = world.open(), world.open()
        world.commit(one, "a")
        world.commit(two, "b")
        fork = names("a", "b")
        assert world.timelines.forks(world.timelines.visible()) == {("w", 0): fork}
        assert not world.timelines.is_joined(fork, world.timelines.visible())
        world.commit(world.open(), "c")
        assert world.timelines.forks(world.timelines.visible()) == {("w", 0): fork}
        assert world.timelines.is_joined(fork, world.timelines.visible())
        assert world.timelines.forks(names("a")) == {}

    def test_a_stray_that_arrives_before_the_next_process_opens_is_just_the_last(self, world: World) -> None:
        world.commit(world.open(), "a")
        process = world.open()
        assert process.parents == names("a") and not world.timelines.branches("w")

    def test_a_stray_first_transaction_is_joined(self, world: World) -> None:
        one, two = world.open(), world.open()
        world.commit(one, "a")
        world.commit(two, "b")
        assert world.open().parents == names("a", "b")

    def test_two_long_branches_need_repair(self, world: World) -> None:
        one, two = world.open(), world.open()
        for uuid in "ab":
            world.commit(one, uuid)
        for uuid in "cd":
            world.commit(two, uuid)
        assert world.timelines.open("w") is None

    def test_three_branches_need_repair(self, world: World) -> None:
        for process, uuid in zip([world.open(), world.open(), world.open()], "abc", strict=True):
            world.commit(process, uuid)
        assert world.timelines.open("w") is None

    def test_other_writers_do_not_care(self, world: World) -> None:
        for process, uuid in zip([world.open(), world.open(), world.open()], "abc", strict=True):
            world.commit(process, uuid)
        other = world.open("other")
        world.read(other)
        world.commit(other, "d")
        assert world.timelines.causal("d") == names("a", "b", "c", "d")


class TestLateArrivals:
    def test_a_late_transaction_is_invisible_until_it_arrives(self, world: World) -> None:
        world.commit(world.open(), "a", put("x"), arrived=False)
        assert world.timelines.visible() == names()
        world.timelines.arrive("a")
        assert world.timelines.visible() == names("a")

    def test_it_changes_the_past(self, world: World) -> None:
        one, two = world.open("one"), world.open("two")
        world.commit(one, "a", put("x"))
        world.commit(two, "late", put("x"), arrived=False)
        world.commit(one, "b", Draft(op=Op.DELETE, table="objects", key=("x",)))
        before = world.timelines.state(world.timelines.visible())
        assert {it.name: it.deleted_at for it in before.tombstones("objects").values()} == {"a:0": 30}
        world.timelines.arrive("late")
        after = world.timelines.state(world.timelines.visible())
        assert {it.name: it.deleted_at for it in after.tombstones("objects").values()} == {"a:0": 20, "late:0": 30}

    def test_nobody_can_follow_what_has_not_arrived(self, world: World) -> None:
        process = world.open()
        world.commit(process, "a", arrived=False)
        with pytest.raises(AssertionError, match="nobody follows"):
            world.commit(process, "b")
