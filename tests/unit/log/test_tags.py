"""Tags name cuts: whoever sees a tag can read what it names, and of several entries of a name the one with the latest stamp counts."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from bucketcatalog import (
    Catalog,
    CatalogNotFound,
    CatalogWarning,
    ClockSkew,
    DatabaseNotFound,
    InvalidName,
    InvalidOption,
    InvalidTime,
    InvalidVersion,
    NotFound,
    TagExists,
)
from bucketcatalog.model.cuts import Cut
from bucketcatalog.store import Store
from bucketcatalog.write.writer import Writer

from ...kit.world import MINUTE, SECOND, START, World, names, obj, rows, time_at

HOSTILE = ["", ".", "..", "-a", "_a", "1a", "a/b", "a b", "a\n", "a\0", "a@1", "a:b", "a,b", "é", "\uff41", "a" * 129, "../x"]
ODD = ["a", "Z", "a" * 128, "a..b", "null", "now", "HEAD", "T", "a-_.", "v1.0.0", "inf", "E5", "x-" * 64]


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def writer(world: World) -> Writer:
    return world.writer()


@pytest.fixture
def maintainer(world: World) -> Writer:
    return world.writer("maintainer-1")


def put(world: World, writer: Writer, name: str) -> str:
    """Commit an object; the version that shows it."""
    world.commit(writer, ("put", "objects", obj(name)))
    return world.snapshot().version


def tags(world: World, **options: Any) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in rows(world.snapshot(**options), "tags")}


def transactions(store: Store) -> list[str]:
    return [info.name for info in store.list("") if info.name.endswith(".txn")]


def copied(*sources: World) -> World:
    """A world of its own with every file of these, at the same time."""
    joined = World()
    joined.clock.now = max(source.clock.now for source in sources)
    for source in sources:
        for info in source.store.list(""):
            joined.store.put(info.name, source.store.get(info.name))
    return joined


class TestGiving:
    def test_a_tag_can_be_given_wherever_a_version_can(self, world: World, writer: Writer, maintainer: Writer) -> None:
        version = put(world, writer, "a")
        made = maintainer.tag("first")
        assert (made.name, made.version, made.dropped, made.writer, made.revision) == ("first", version, False, "maintainer-1", 0)
        assert made.created == made.commit_time > START
        put(world, writer, "b")
        catalog = world.catalog()
        assert catalog.snapshot(version="first").version == version and names(catalog.snapshot(version="first")) == ["a"]
        assert catalog.changes(start="first").to_arrow()["name"].to_pylist() == ["b"]
        assert catalog.changes(end="first").to_arrow()["name"].to_pylist() == ["a"]
        assert catalog.diff(start=":", end="first").to_arrow()["name"].to_pylist() == ["a"]

    def test_a_time_a_version_and_a_tag_are_what_they_name(self, world: World, writer: Writer, maintainer: Writer) -> None:
        first = put(world, writer, "a")
        then = world.clock.now
        second = put(world, writer, "b")
        put(world, writer, "c")
        assert maintainer.tag("of-time", timestamp=f"@{then}").version == first
        assert maintainer.tag("of-version", version=second).version == second
        assert maintainer.tag("of-revision", version=1).version == second
        assert maintainer.tag("of-commit", version="w@0").version == first
        assert maintainer.tag("of-tag", version="of-version").version == second
        assert maintainer.tag("of-nothing", version=":").version == ":"
        assert names(world.snapshot(version="of-nothing")) == []
        for name, expected in (("of-time", "a"), ("of-version", "ab"), ("of-tag", "ab")):
            assert names(world.snapshot(version=name)) == list(expected)

    def test_a_tag_stays_where_it_is_when_the_tag_that_it_was_given_by_moves(
        self, world: World, writer: Writer, maintainer: Writer
    ) -> None:
        put(world, writer, "a")
        maintainer.tag("one")
        maintainer.tag("two", version="one")
        put(world, writer, "b")
        maintainer.tag("one", replace=True)
        assert names(world.snapshot(version="two")) == ["a"] and names(world.snapshot(version="one")) == ["a", "b"]

    @pytest.mark.parametrize("name", ODD)
    def test_every_name_within_the_limits_is_taken(self, world: World, writer: Writer, maintainer: Writer, name: str) -> None:
        put(world, writer, "a")
        maintainer.tag(name)
        put(world, writer, "b")
        assert names(world.snapshot(version=name)) == ["a"] and list(tags(world)) == [name]

    @pytest.mark.parametrize("name", [*HOSTILE, None, 5, b"a"])
    def test_any_other_name_is_refused_and_writes_nothing(
        self, world: World, writer: Writer, maintainer: Writer, name: Any
    ) -> None:
        put(world, writer, "a")
        for call in (maintainer.tag, maintainer.drop_tag, world.catalog().tag, world.catalog().drop_tag):
            with pytest.raises(InvalidName):
                call(name)
        assert len(transactions(world.store)) == 1

    @pytest.mark.parametrize("name", HOSTILE)
    def test_what_can_be_no_tag_is_no_version(self, world: World, writer: Writer, name: str) -> None:
        put(world, writer, "a")
        with pytest.raises(InvalidVersion):
            world.snapshot(version=name)

    @pytest.mark.parametrize(
        ("target", "error"),
        [
            ({"version": "w@1"}, InvalidVersion),
            ({"version": "no-tag"}, InvalidVersion),
            ({"version": f"w@0:{'0' * 32}"}, InvalidVersion),
            ({"timestamp": "2999-01-01"}, InvalidTime),
            ({"timestamp": "x"}, InvalidTime),
            ({"timestamp": f"@{START}", "version": ":"}, InvalidOption),
        ],
    )
    def test_what_cannot_be_read_gets_no_name(
        self, world: World, writer: Writer, maintainer: Writer, target: dict[str, Any], error: type[Exception]
    ) -> None:
        put(world, writer, "a")
        with pytest.raises(error):
            maintainer.tag("x", **target)
        assert len(transactions(world.store)) == 1

    def test_a_tag_is_a_transaction_without_events(self, world: World, writer: Writer, maintainer: Writer) -> None:
        put(world, writer, "a")
        maintainer.tag("x")
        maintainer.drop_tag("x")
        log = [(row["writer"], row["operation"], row["metadata"], row["events"]) for row in rows(world.snapshot(), "log")]
        assert log[1:] == [("maintainer-1", "tag", [("tag", "x")], 0), ("maintainer-1", "drop tag", [("tag", "x")], 0)]
        assert names(world.snapshot(version=0)) == ["a"], "a plain revision still has one writer to mean"

    def test_tags_belong_to_a_database(self, world: World, writer: Writer, maintainer: Writer) -> None:
        put(world, writer, "a")
        maintainer.tag("x")
        world.commit(world.writer(database="other"))
        with pytest.raises(InvalidVersion):
            world.snapshot(database="other", version="x")
        assert rows(world.snapshot(database="other"), "tags") == []


class TestOnceMore:
    @pytest.fixture(autouse=True)
    def named(self, world: World, writer: Writer, maintainer: Writer) -> None:
        self.version = put(world, writer, "a")
        self.made = maintainer.tag("x")

    def test_the_same_cut_again_commits_nothing(self, world: World, writer: Writer, maintainer: Writer) -> None:
        put(world, writer, "b")
        before = transactions(world.store)
        assert maintainer.tag("x", version=self.version) == self.made
        assert world.writer("maintainer-2").tag("x", version="x", replace=True) == self.made
        assert maintainer.tag("x", version="w@0") == self.made
        assert transactions(world.store) == before

    @pytest.mark.parametrize("replace", [False, True])
    def test_now_again_commits_nothing_while_nothing_happens_but_tags_and_checkpoints(
        self, world: World, writer: Writer, maintainer: Writer, replace: bool
    ) -> None:
        maintainer.tag("y")
        maintainer.drop_tag("y")
        world.writer("compactor-1").checkpoint(scope="all")
        before = transactions(world.store)
        assert world.writer("maintainer-2").tag("x", replace=replace) == self.made
        assert transactions(world.store) == before
        put(world, writer, "b")
        with pytest.raises(TagExists):
            maintainer.tag("x")

    def test_a_version_that_names_itself_twice_over_is_the_same_cut(
        self, world: World, writer: Writer, maintainer: Writer
    ) -> None:
        second = put(world, writer, "b")
        made = maintainer.tag("y", version="w@1")
        assert made.version == "w@1:" + second.rpartition(":")[2]
        assert maintainer.tag("y", version=f"{self.version},{made.version}") == made

    def test_another_cut_is_refused_with_what_the_name_is_given_to(
        self, world: World, writer: Writer, maintainer: Writer
    ) -> None:
        put(world, writer, "b")
        before = transactions(world.store)
        for target in ({}, {"version": "w@1"}, {"version": ":"}):
            with pytest.raises(TagExists) as caught:
                maintainer.tag("x", **target)
            assert "'x'" in caught.value.message and self.version in caught.value.message
            assert "replace=True" in caught.value.next_step and caught.value.code == "TAG_EXISTS"
            assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
        assert transactions(world.store) == before and names(world.snapshot(version="x")) == ["a"]

    def test_replacing_says_so_and_shows_what_was_replaced(self, world: World, writer: Writer, maintainer: Writer) -> None:
        put(world, writer, "b")
        other = world.writer("maintainer-2")
        made = other.tag("x", replace=True)
        assert names(world.snapshot(version="x")) == ["a", "b"]
        assert tags(world) == {
            "x": {
                "name": "x",
                "version": made.version,
                "created": time_at(made.commit_time),
                "dropped": False,
                "commit_timestamp": time_at(made.commit_time),
                "writer": "maintainer-2",
                "revision": 0,
                "replaced_version": self.version,
                "replaced_commit_timestamp": time_at(self.made.commit_time),
                "replaced_writer": "maintainer-1",
            }
        }

    def test_a_dropped_tag_names_nothing_but_is_remembered(self, world: World, writer: Writer, maintainer: Writer) -> None:
        other = world.writer("maintainer-2")
        world.clock.tick()
        dropped = other.drop_tag("x")
        assert (dropped.name, dropped.version, dropped.dropped) == ("x", self.version, True)
        assert (dropped.created, dropped.writer) == (self.made.created, "maintainer-2") and dropped.commit_time > dropped.created
        with pytest.raises(InvalidVersion, match="dropped by 'maintainer-2'") as caught:
            world.snapshot(version="x")
        assert self.version in caught.value.message
        (row,) = tags(world).values()
        assert (row["dropped"], row["version"], row["writer"]) == (True, self.version, "maintainer-2")
        assert (row["created"], row["commit_timestamp"]) == (time_at(dropped.created), time_at(dropped.commit_time))
        assert row["replaced_version"] is None

    def test_a_dropped_name_is_given_to_another_cut_only_when_told_to(
        self, world: World, writer: Writer, maintainer: Writer
    ) -> None:
        maintainer.drop_tag("x")
        put(world, writer, "b")
        with pytest.raises(TagExists, match="was dropped") as caught:
            maintainer.tag("x")
        assert self.version in caught.value.message
        maintainer.tag("x", replace=True)
        assert names(world.snapshot(version="x")) == ["a", "b"] and tags(world)["x"]["replaced_version"] == self.version

    @pytest.mark.parametrize("target", [{}, {"version": "w@0"}])
    def test_a_dropped_name_is_given_back_to_its_own_cut_at_once(
        self, world: World, writer: Writer, maintainer: Writer, target: dict[str, Any]
    ) -> None:
        maintainer.drop_tag("x")
        made = maintainer.tag("x", **target)
        assert (made.version, made.dropped, made.revision) == (self.version, False, 2)
        assert made.created == made.commit_time > self.made.created
        assert tags(world)["x"]["replaced_version"] is None and names(world.snapshot(version="x")) == ["a"]

    @pytest.mark.parametrize("name", ["y", "X", "x1"])
    def test_dropping_what_is_not_there_is_an_error(self, world: World, maintainer: Writer, name: str) -> None:
        with pytest.raises(NotFound, match=f"no tag '{name}'"):
            maintainer.drop_tag(name)
        maintainer.drop_tag("x")
        with pytest.raises(NotFound, match="was dropped by 'maintainer-1'"):
            maintainer.drop_tag("x")

    def test_an_older_snapshot_shows_the_tags_as_they_were_and_a_version_is_what_it_is_now(
        self, world: World, writer: Writer, maintainer: Writer
    ) -> None:
        between = put(world, writer, "b")
        maintainer.tag("y")
        maintainer.drop_tag("x")
        assert list(tags(world, version=between)) == ["x"] and not tags(world, version=between)["x"]["dropped"]
        assert tags(world, version=self.version) == {} and list(tags(world, version="y")) == ["x"]
        with pytest.raises(InvalidVersion):
            world.snapshot(version="x")


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
                has_committed = any(name.startswith(f"{held.id}/") for name in transactions(world.store))
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


class TestCatalog:
    @pytest.fixture
    def catalog(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Catalog:
        monkeypatch.setattr("bucketcatalog.clock.host_name", lambda: "Some host.example/é")
        catalog = Catalog(tmp_path)
        with catalog.writer("w") as writer, writer.transaction() as tx:
            tx.put("objects", obj("a"))
        return catalog

    def test_this_machines_maintainer_writes_where_nobody_is_named(self, catalog: Catalog) -> None:
        assert catalog.tag("x").writer == "maintainer-Some-host.example--"
        assert catalog.drop_tag("x", writer="maintainer-me").writer == "maintainer-me"
        assert catalog.tag("x", database="default", timestamp="2001-01-01", replace=True).version == ":"
        assert sorted(name for name in catalog.store.list_prefixes("")) == [
            "maintainer-Some-host.example--",
            "maintainer-me",
            "w",
        ]

    def test_a_database_that_is_not_there_is_not_made(self, catalog: Catalog, tmp_path: Path) -> None:
        for call in (catalog.tag, catalog.drop_tag):
            with pytest.raises(DatabaseNotFound):
                call("x", database="other")
            with pytest.raises(InvalidName):
                call("x", writer="../w")
        assert catalog.databases() == ["default"] and catalog.store.list_prefixes("") == ["w"]
        with pytest.raises(CatalogNotFound):
            Catalog(tmp_path / "nothing").tag("x")
        with catalog.writer("v", database="second") as writer, writer.transaction():
            pass
        with pytest.raises(DatabaseNotFound, match="default, second"):
            catalog.tag("x")

    def test_tags_are_the_same_to_who_has_been_looking_all_the_time(self, catalog: Catalog) -> None:
        follower = Catalog(catalog.store)
        follower.snapshot()
        catalog.tag("x")
        with catalog.writer("w") as writer, writer.transaction() as tx:
            tx.put("objects", obj("b"))
        assert names(follower.snapshot(version="x")) == ["a"]
        catalog.tag("x", replace=True)
        assert names(follower.snapshot(version="x")) == ["a", "b"]
        catalog.drop_tag("x")
        with pytest.raises(InvalidVersion):
            follower.snapshot(version="x")


def test_a_tag_costs_one_put(world: World, writer: Writer) -> None:
    put(world, writer, "a")
    before = {info.name for info in world.store.list("")}
    world.writer("maintainer-1").tag("x")
    (new,) = {info.name for info in world.store.list("")} - before
    assert new.startswith("maintainer-1/default/transactions/") and new.endswith(".txn")
