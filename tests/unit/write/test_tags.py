"""Giving and dropping tags: which names and versions can be given, what is refused, and what is done only when told to."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from bucketcatalog import (
    Catalog,
    CatalogNotFound,
    DatabaseNotFound,
    InvalidName,
    InvalidOption,
    InvalidTime,
    InvalidVersion,
    NotFound,
    TagExists,
)
from bucketcatalog.write.writer import Writer

from ...kit.tagging import put, tags
from ...kit.world import START, World, names, obj, rows, stored, time_at

HOSTILE = ["", ".", "..", "-a", "_a", "1a", "a/b", "a b", "a\n", "a\0", "a@1", "a:b", "a,b", "é", "\uff41", "a" * 129, "../x"]
ODD = ["a", "Z", "a" * 128, "a..b", "null", "HEAD", "T", "a-_.", "v1.0.0", "inf", "E5", "x-" * 64]


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
        assert len(stored(world, ".txn")) == 1

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
        assert len(stored(world, ".txn")) == 1

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
        world.commit(world.writer(database="other"), ("put", "objects", obj("b")))
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
        before = stored(world, ".txn")
        assert maintainer.tag("x", version=self.version) == self.made
        assert world.writer("maintainer-2").tag("x", version="x", replace=True) == self.made
        assert maintainer.tag("x", version="w@0") == self.made
        assert stored(world, ".txn") == before

    @pytest.mark.parametrize("replace", [False, True])
    def test_now_again_commits_nothing_while_nothing_happens_but_tags_and_checkpoints(
        self, world: World, writer: Writer, maintainer: Writer, replace: bool
    ) -> None:
        maintainer.tag("y")
        maintainer.drop_tag("y")
        world.writer("compactor-1").checkpoint(scope="all")
        before = stored(world, ".txn")
        assert world.writer("maintainer-2").tag("x", replace=replace) == self.made
        assert stored(world, ".txn") == before
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
        before = stored(world, ".txn")
        for target in ({}, {"version": "w@1"}, {"version": ":"}):
            with pytest.raises(TagExists) as caught:
                maintainer.tag("x", **target)
            assert "'x'" in caught.value.message and self.version in caught.value.message
            assert "replace=True" in caught.value.next_step and caught.value.code == "TAG_EXISTS"
            assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
        assert stored(world, ".txn") == before and names(world.snapshot(version="x")) == ["a"]

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
        with catalog.writer("v", database="second") as writer, writer.transaction() as tx:
            tx.put("objects", obj("a"))
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
