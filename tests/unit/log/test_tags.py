"""Tags name cuts: whoever sees a tag can read what it names, and of several entries of a name the one with the latest stamp counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations
from typing import Any

import pytest

from bucketcatalog import CatalogWarning, ClockSkew, TagExists
from bucketcatalog.model.cuts import Cut
from bucketcatalog.write.writer import Writer

from ...kit.tagging import put, tags
from ...kit.world import MINUTE, SECOND, World, names, rows, stored


def copied(*sources: World) -> World:
    """A world of its own with every file of these, at the same time."""
    joined = World()
    joined.clock.now = max(source.clock.now for source in sources)
    for source in sources:
        for info in source.store.list(""):
            joined.store.put(info.name, source.store.get(info.name))
    return joined


class TestCuts:
    def test_whoever_sees_a_tag_can_read_what_it_names(self, world: World, writer: Writer) -> None:
        """Also from a listing that shows the tag alone: its transaction had read all that it names."""
        other, maintainer = world.writer("v"), world.writer("maintainer-1")
        put(world, other, "a")
        named = put(world, writer, "b")
        maintainer.tag("x")
        put(world, writer, "c")
        maintainer.tag("y", version="w@1")
        for revision, seen in ((0, ["a", "b"]), (1, ["a", "b", "c"])):
            assert names(world.snapshot(version=f"maintainer-1@{revision}")) == seen
        assert world.snapshot(version="x").version == named

    def test_a_tag_comes_after_all_that_it_names_whatever_the_clocks_say(self, world: World, writer: Writer) -> None:
        put(world, writer, "a")
        slow = world.catalog().writer("maintainer-slow", clock=lambda: world.clock.now - 50 * SECOND)
        made = slow.tag("x")
        assert made.commit_time == world.clock.now + 1
        world.clock.tick(1)
        assert world.catalog().writer("maintainer-2", clock=lambda: world.clock.now - 50 * SECOND).drop_tag("x").dropped
        assert tags(world)["x"]["dropped"]

    def test_both_heads_of_a_fork_are_named(self, world: World, writer: Writer, maintainer: Writer) -> None:
        put(world, writer, "a")
        left, right = copied(world), copied(world)
        put(left, left.writer(), "left")
        put(right, right.writer(), "right")
        forked = copied(left, right)
        with pytest.warns(CatalogWarning, match="forked"):
            made = forked.writer("maintainer-1").tag("x")
        assert len(Cut.parse(made.version).of_writer("w")) == 2
        with pytest.warns(CatalogWarning, match="forked"):
            assert names(forked.snapshot(version="x")) == ["a", "left", "right"]

    def test_the_head_of_one_branch_can_be_named(self, world: World, writer: Writer) -> None:
        put(world, writer, "a")
        left, right = copied(world), copied(world)
        version = put(left, left.writer(), "left")
        put(right, right.writer(), "right")
        forked = copied(left, right)
        forked.writer("maintainer-1").tag("x", version=version)
        forked.writer("compactor-1").checkpoint(scope="all")
        assert names(forked.snapshot(version="x")) == ["a", "left"]

    @pytest.mark.parametrize("when", range(4))
    @pytest.mark.parametrize("scope", ["own", "all"])
    def test_a_tagged_cut_is_read_through_any_checkpoints(self, world: World, writer: Writer, when: int, scope: Any) -> None:
        maintainer, compactor = world.writer("maintainer-1"), world.writer("compactor-1")

        def checkpoint() -> None:
            for held in (writer, maintainer) if scope == "own" else (compactor,):
                has_committed = any(name.startswith(f"{held.id}/") for name in stored(world, ".txn"))
                if scope == "all" or has_committed:
                    held.checkpoint(scope=scope)

        steps: list[Callable[[], object]] = [
            lambda: put(world, writer, "a"),
            lambda: maintainer.tag("x"),
            lambda: put(world, writer, "b"),
            lambda: maintainer.tag("y"),
        ]
        for at, step in enumerate(steps):
            step()
            if at >= when:
                checkpoint()
        maintainer.drop_tag("x")
        shown = tags(world)
        for _ in range(2):
            checkpoint()
            assert tags(world) == shown and [shown["x"]["dropped"], shown["y"]["dropped"]] == [True, False]
            assert names(world.snapshot(version="y")) == ["a", "b"]
            assert names(world.snapshot(version=shown["x"]["version"])) == ["a"]
            put(world, writer, "z")

    def test_a_dropped_name_is_remembered_by_a_catalog_that_has_only_checkpoints(self, world: World, writer: Writer) -> None:
        version = put(world, writer, "a")
        maintainer = world.writer("maintainer-1")
        maintainer.tag("x")
        maintainer.drop_tag("x")
        world.writer("compactor-1").checkpoint(scope="all")
        world.clock.tick(60 * MINUTE)
        put(world, writer, "b")
        world.writer("compactor-1").checkpoint(scope="all")
        assert [row["version"] for row in rows(world.snapshot(), "tags")] == [version]
        assert not world.snapshot().view.tail
        with pytest.raises(TagExists):
            maintainer.tag("x")

    def test_catalogs_without_tags_have_none(self, world: World, writer: Writer) -> None:
        put(world, writer, "a")
        writer.checkpoint()
        assert rows(world.snapshot(), "tags") == [] and "tags" in world.snapshot().tables
        (checkpoint,) = world.snapshot().view.checkpoints
        assert checkpoint.tags == ()

    def test_a_name_from_the_future_is_not_moved_before_its_time(self, world: World, writer: Writer) -> None:
        """Such an entry would go on to count, whatever was committed now."""
        put(world, writer, "a")
        ahead = copied(world)
        ahead.clock.tick(10 * MINUTE)
        ahead.writer("maintainer-ahead").tag("x", version=":")
        ahead.clock.tick(-10 * MINUTE)
        maintainer = ahead.writer("maintainer-1")
        with pytest.warns(CatalogWarning, match="future"), pytest.raises(ClockSkew):
            maintainer.tag("x", replace=True)
        with pytest.raises(ClockSkew):
            maintainer.drop_tag("x")
        ahead.clock.tick(10 * MINUTE)
        maintainer.tag("x", replace=True)
        assert names(ahead.snapshot(version="x")) == ["a"]


class TestTwoAtOnce:
    """Two maintainers who do not see each other: each in a copy of the store, and then the copies are joined."""

    @staticmethod
    def in_copies(world: World, *acts: Callable[[Writer], object]) -> World:
        """What comes of acts at once, each by a maintainer of its own and a second later than the one before."""
        copies = []
        for number, act in enumerate(acts):
            copy = copied(world)
            copy.clock.tick((number + 1) * SECOND)
            act(copy.writer(f"maintainer-{number}"))
            copies.append(copy)
        return copied(*copies)

    @staticmethod
    def checkpointed(world: World) -> Iterator[World]:
        """The same after checkpoints of its own of each maintainer, of some and of all, in every order."""
        yield world
        makers = ["maintainer-0", "maintainer-1", "compactor-1"]
        for count in (1, 2, 3):
            for chosen in permutations(makers, count):
                copy = copied(world)
                for maker in chosen:
                    copy.writer(maker).checkpoint(scope="all" if maker == "compactor-1" else "own")
                yield copy

    def test_the_later_stamp_counts_and_the_other_is_shown_as_replaced(self, world: World, writer: Writer) -> None:
        first, second = put(world, writer, "a"), put(world, writer, "b")
        joined = self.in_copies(world, lambda m: m.tag("x", version="w@0"), lambda m: m.tag("x", version="w@1"))
        for seen in self.checkpointed(joined):
            (row,) = tags(seen).values()
            assert (row["version"], row["writer"], row["revision"]) == (second, "maintainer-1", 0)
            assert (row["replaced_version"], row["replaced_writer"]) == (first, "maintainer-0")
            assert names(seen.snapshot(version="x")) == ["a", "b"]

    def test_the_same_cut_twice_replaces_nothing(self, world: World, writer: Writer) -> None:
        version = put(world, writer, "a")
        joined = self.in_copies(world, lambda m: m.tag("x"), lambda m: m.tag("x"))
        for seen in self.checkpointed(joined):
            (row,) = tags(seen).values()
            assert (row["version"], row["writer"], row["replaced_version"]) == (version, "maintainer-1", None)

    def test_a_drop_that_did_not_see_the_name_move_drops_it_and_shows_the_move(self, world: World, writer: Writer) -> None:
        put(world, writer, "a")
        world.writer("maintainer-before").tag("x")
        put(world, writer, "b")
        moved = world.snapshot(version="w@1").version
        joined = self.in_copies(world, lambda m: m.tag("x", version="w@1", replace=True), lambda m: m.drop_tag("x"))
        for seen in self.checkpointed(joined):
            (row,) = tags(seen).values()
            assert row["dropped"] and (row["replaced_version"], row["replaced_writer"]) == (moved, "maintainer-0")

    def test_a_move_after_a_drop_that_it_did_not_see_counts(self, world: World, writer: Writer) -> None:
        first = put(world, writer, "a")
        world.writer("maintainer-before").tag("x")
        put(world, writer, "b")
        moved = world.snapshot(version="w@1").version
        joined = self.in_copies(world, lambda m: m.drop_tag("x"), lambda m: m.tag("x", version="w@1", replace=True))
        for seen in self.checkpointed(joined):
            (row,) = tags(seen).values()
            assert (row["dropped"], row["version"], row["replaced_version"]) == (False, moved, first)

    def test_an_older_entry_that_arrives_behind_a_checkpoint_changes_what_was_replaced_and_no_more(
        self, world: World, writer: Writer
    ) -> None:
        first, second = put(world, writer, "a"), put(world, writer, "b")
        late, newer = copied(world), copied(world)
        late.writer("maintainer-late").tag("x", version="w@0")
        newer.clock.tick()
        newer.writer("maintainer-1").tag("x", version="w@1")
        newer.writer("compactor-1").checkpoint(scope="all")
        assert tags(newer)["x"]["replaced_version"] is None
        joined = copied(newer, late)
        assert (tags(joined)["x"]["version"], tags(joined)["x"]["replaced_version"]) == (second, first)

    def test_one_maintainer_in_two_processes_forks_its_timeline_and_both_count(self, world: World, writer: Writer) -> None:
        put(world, writer, "a")
        left, right = copied(world), copied(world)
        left.writer("maintainer-1").tag("x")
        right.writer("maintainer-1").tag("y")
        forked = copied(left, right)
        with pytest.warns(CatalogWarning, match="forked"):
            assert list(tags(forked)) == ["x", "y"]
        assert names(forked.snapshot(version="x")) == names(forked.snapshot(version="y")) == ["a"]
