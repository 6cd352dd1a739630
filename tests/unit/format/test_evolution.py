"""Rows of older and newer definitions of a table are read together, wherever they lie; contradictions are errors."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from bucketcatalog import Catalog, IncompatibleTable, InvalidRows
from bucketcatalog.format.definitions import table_of
from bucketcatalog.format.evolution import merge
from bucketcatalog.write.writer import Writer

from ...kit.world import OWNER, World, messages, proto, rows

OLD = """
message Row {
  option (table) = { name: "my.rows" key: "k" };
  string k = 1;
  optional string a = 2;
  optional int32 n = 3;
  optional string gone = 4;
  message Inner { optional string x = 1; message Deep { optional string d = 1; } optional Deep deep = 2; }
  optional Inner inner = 5;
  repeated Inner inners = 6;
  map<string, Inner> by_name = 7;
}
"""
NEW = """
message Row {
  option (table) = { name: "my.rows" key: "k" };
  string k = 1;
  optional string renamed = 2;
  optional int64 n = 3;
  message Inner {
    optional string x = 1;
    message Deep { optional string d = 1; optional string e = 2; }
    optional Deep deep = 2;
    optional int32 y = 3;
  }
  optional Inner inner = 5;
  repeated Inner inners = 6;
  map<string, Inner> by_name = 7;
  optional string added = 8;
  bool flag = 9;
}
"""
OLD_INNER = {"x": "x", "deep": {"d": "d"}}
NEW_INNER = {"x": "X", "deep": {"d": "D", "e": "E"}, "y": 1}
OLD_ROW = {"a": "a", "n": 1, "gone": "gone", "inner": OLD_INNER, "inners": [OLD_INNER], "by_name": {"i": OLD_INNER}}
NEW_ROW = {
    "renamed": "r",
    "n": 2**40,
    "inner": NEW_INNER,
    "inners": [NEW_INNER],
    "by_name": {"i": NEW_INNER},
    "added": "new",
    "flag": True,
}
OLD_INNER_SHOWN = {"x": "x", "deep": {"d": "d", "e": None}, "y": None}
COLUMNS = {"k", "renamed", "n", "gone", "inner", "inners", "by_name", "added", "flag"}
OLD_SHOWN = {
    "renamed": "a",
    "n": 1,
    "gone": "gone",
    "inner": OLD_INNER_SHOWN,
    "inners": [OLD_INNER_SHOWN],
    "by_name": [("i", OLD_INNER_SHOWN)],
    "added": None,
    "flag": False,
}
NEW_SHOWN = NEW_ROW | {"by_name": [("i", NEW_INNER)], "gone": None}
MAINTAINER = "maintainer-v"
COUNTS = {"inline": 2, "columnar": 70}


def knowing(world: World, source: str) -> Catalog:
    catalog = world.catalog()
    catalog.register(messages(proto(source))["Row"])
    return catalog


def put(world: World, writer: Writer, first: str, count: int, row: dict[str, Any]) -> None:
    world.commit(writer, ("put", "my.rows", [{"k": f"{first}{n:02}", **row} for n in range(count)]))


def check(world: World, old: int, new: int, *, newest: str = "new") -> None:
    found = rows(world.snapshot(), "my.rows")
    assert len(found) == old + new
    renamed = "renamed" if newest == "new" else "a"
    for row in found:
        key = row.pop("k")
        expected = dict(OLD_SHOWN if key.startswith("old") else NEW_SHOWN)
        expected[renamed] = expected.pop("renamed")
        assert row == expected, key


@pytest.mark.parametrize("before", COUNTS)
@pytest.mark.parametrize("after", COUNTS)
@pytest.mark.parametrize("checkpoints", ["none", "between", "after", "both", "one each"])
def test_rows_of_both_definitions_are_read_together(before: str, after: str, checkpoints: str) -> None:
    world = World()
    with world.writer("w", catalog=knowing(world, OLD)) as writer:
        put(world, writer, "old", COUNTS[before], OLD_ROW)
        if checkpoints in ("between", "both", "one each"):
            writer.checkpoint()
    with world.writer(MAINTAINER if checkpoints == "one each" else "w", catalog=knowing(world, NEW)) as writer:
        put(world, writer, "new", COUNTS[after], NEW_ROW)
        if checkpoints in ("after", "both", "one each"):
            writer.checkpoint()
    check(world, COUNTS[before], COUNTS[after])


@pytest.mark.parametrize("count", COUNTS.values(), ids=COUNTS)
@pytest.mark.parametrize("checkpoints", [0, 1, 2, 3])
def test_a_writer_of_an_older_definition_that_opens_later_loses_no_column(count: int, checkpoints: int) -> None:
    world = World()
    with world.writer("w", catalog=knowing(world, NEW)) as writer:
        put(world, writer, "new", count, NEW_ROW)
        if checkpoints & 1:
            writer.checkpoint()
    with world.writer("w", catalog=knowing(world, OLD)) as writer:
        put(world, writer, "old", count, OLD_ROW)
        check(world, count, count, newest="old")
        if checkpoints & 2:
            writer.checkpoint()
            check(world, count, count, newest="old")
            writer.checkpoint()
            put(world, writer, "old9", 1, OLD_ROW)
            writer.checkpoint()
            check(world, count + 1, count, newest="old")


@pytest.mark.parametrize("count", COUNTS.values(), ids=COUNTS)
def test_updates_reach_rows_across_definitions(count: int) -> None:
    world = World()
    with world.writer("w", catalog=knowing(world, OLD)) as writer:
        put(world, writer, "old", count, OLD_ROW)
        writer.checkpoint()
    with world.writer(MAINTAINER, catalog=knowing(world, NEW)) as writer:
        world.commit(writer, ("update", "my.rows", [{"k": f"old{n:02}", **NEW_ROW} for n in range(count)]))
        for _ in range(2):
            found = rows(world.snapshot(), "my.rows")
            assert len(found) == count and all({**row, "k": 0} == NEW_SHOWN | {"k": 0} for row in found)
            world.writer("compactor-1").checkpoint(scope="all")


def test_whoever_writes_without_a_definition_uses_what_the_catalog_has() -> None:
    world = World()
    for name, source, row in (("w", NEW, NEW_ROW), (MAINTAINER, OLD, OLD_ROW)):
        with world.writer(name, catalog=knowing(world, source)) as writer:
            put(world, writer, "new" if name == "w" else "old", 1, row)
    merged = {("a" if name == "renamed" else name): value for name, value in NEW_ROW.items()}
    for count in (1, 70):
        with world.writer("x") as writer:
            put(world, writer, f"x{count}", count, merged)
    found = [row for row in rows(world.snapshot(), "my.rows") if row["k"].startswith("x")]
    assert len(found) == 71
    assert all(row["added"] == "new" and row["a"] == "r" and row["n"] == 2**40 for row in found)


def test_older_readers_values_are_checked_against_their_own_definition() -> None:
    world = World()
    with world.writer("w", catalog=knowing(world, OLD)) as writer:
        for row in ({"n": 2**40}, {"added": "x"}, {"inner": {"y": 1}}):
            with pytest.raises(InvalidRows), writer.transaction() as tx:
                tx.put("my.rows", {"k": "x", **row})


@pytest.mark.parametrize("checkpoint", [False, True])
def test_changes_and_diffs_show_both_definitions(checkpoint: bool) -> None:
    world = World()
    with world.writer("w", catalog=knowing(world, OLD)) as writer:
        put(world, writer, "old", 2, OLD_ROW)
        start = world.snapshot().version
        if checkpoint:
            writer.checkpoint()
    with world.writer("w", catalog=knowing(world, NEW)) as writer:
        put(world, writer, "new", 2, NEW_ROW)
        if checkpoint:
            writer.checkpoint()
    changes = world.catalog().changes(table="my.rows").to_arrow().to_pylist()
    assert [(c["k"], c["renamed"], c["gone"], c["added"]) for c in changes] == [
        *[(f"old0{n}", "a", "gone", None) for n in range(2)],
        *[(f"new0{n}", "r", None, "new") for n in range(2)],
    ]
    diff = world.catalog().diff(table="my.rows", start=start).to_arrow().to_pylist()
    assert [(d["_change_type"], d["k"]) for d in diff] == [("created", "new00"), ("created", "new01")]


NUMBERS = (
    "int32",
    "sint32",
    "sfixed32",
    "int64",
    "sint64",
    "sfixed64",
    "uint32",
    "fixed32",
    "uint64",
    "fixed64",
    "float",
    "double",
)
WIDER = {frozenset(pair) for pair in (("int32", "int64"), ("sint32", "sint64"), ("uint32", "uint64"))}
"""The numbers that can be read together: docs/spec/tables.md, "Several definitions"."""


def test_numbers_that_are_encoded_alike_are_read_as_the_wider_and_no_others() -> None:
    bodies = (
        f'message Of_{kind} {{ option (table) = {{ name: "my.n" key: "k" }}; string k = 1; optional {kind} n = 2; }}'
        for kind in NUMBERS
    )
    declared = messages(proto(*bodies))
    tables = {kind: table_of(declared[f"Of_{kind}"]) for kind in NUMBERS}

    def together(older: str, newer: str) -> str | None:
        try:
            return merge(tables[older], tables[newer]).by_name["n"].type.value
        except IncompatibleTable:
            return None

    for older, newer in permutations(NUMBERS, 2):
        wider = max(older, newer, key=lambda kind: kind[-2:]).removeprefix("s") if {older, newer} in WIDER else None
        assert together(older, newer) == wider, (older, newer)


CONTRADICTIONS = {
    "another key field": OLD.replace('key: "k"', 'key: "a"'),
    "a further key field": OLD.replace('key: "k"', 'key: "k" key: "a"'),
    "another type": OLD.replace("optional string a = 2", "optional bytes a = 2"),
    "another shape": OLD.replace("optional string a = 2", "repeated string a = 2"),
    "another type within": OLD.replace("optional string x = 1;", "optional bool x = 1;"),
    "another type of key": OLD.replace("string k = 1", "bytes k = 1"),
    "signed and unsigned": OLD.replace("optional int32 n", "optional uint32 n"),
}


@pytest.mark.parametrize("what", CONTRADICTIONS)
def test_contradicting_definitions_are_refused_before_anything_is_written(what: str) -> None:
    world = World()
    with world.writer("w", catalog=knowing(world, OLD)) as writer:
        put(world, writer, "old", 1, OLD_ROW)
    before = [info.name for info in world.store.list("")]
    row = {"k": b"k" if what == "another type of key" else "k"}
    row |= {"another key field": {"a": "a"}, "a further key field": {"a": "a"}}.get(what, {})
    catalog = knowing(world, CONTRADICTIONS[what])
    with (
        world.writer("w", catalog=catalog) as writer,
        pytest.raises(IncompatibleTable, match=r"my\.rows"),
        writer.transaction() as tx,
    ):
        tx.put("my.rows", row)
    assert [info.name for info in world.store.list("")] == before


@pytest.mark.parametrize(
    ("before", "after"), [("int32", "sint32"), ("sint64", "int64"), ("float", "double"), ("fixed32", "uint32")]
)
def test_definition_that_reads_the_same_bytes_otherwise_is_refused(before: str, after: str) -> None:
    body = 'message Row { option (table) = {name: "t.rows" key: "k"}; string k = 1; optional %s n = 2; }'
    older, newer = (messages(proto(body % kind))["Row"] for kind in (before, after))
    catalog = World().catalog()
    catalog.register(older)
    with pytest.raises(IncompatibleTable, match="n"):
        catalog.register(newer)


def test_contradictions_between_writers_that_never_met_are_an_error_to_readers_that_names_the_table() -> None:
    world, other = World(), World()
    for at, source in ((world, OLD), (other, CONTRADICTIONS["another type"])):
        with at.writer("w" if at is world else "v", catalog=knowing(at, source)) as writer:
            at.commit(writer, ("put", "my.rows", {"k": "k"}))
    for info in other.store.list(""):
        world.store.put(info.name, other.store.get(info.name))
    with pytest.raises(IncompatibleTable, match=r"my\.rows"):
        world.snapshot().scan("my.rows").to_arrow()


class TestOrderOfDefinitions:
    """The latest definition of those who decide names the columns, whichever checkpoints are read."""

    @pytest.mark.parametrize("made_by", ["cb", "bc", "c", "b", "all", ""])
    def test_checkpoints_change_no_names(self, made_by: str) -> None:
        world = World()
        first, second = knowing(world, OLD), knowing(world, NEW)
        writers = {"c": first.writer("c", clock=world.clock), "b": second.writer(MAINTAINER, clock=world.clock)}
        put(world, writers["c"], "old", 2, {"a": "a"})
        put(world, writers["b"], "new", 2, {"renamed": "r"})
        for name in made_by if made_by != "all" else ():
            writers[name].checkpoint()
        if made_by == "all":
            world.writer("compactor-1").checkpoint(scope="all")
        found = rows(world.snapshot(), "my.rows", ["k", "renamed", "gone"])
        assert [row["renamed"] for row in found] == ["r", "r", "a", "a"]

    def test_a_definition_that_comes_back_decides_again_also_from_a_checkpoint(self) -> None:
        world = World()
        for source, first, row in ((OLD, "1", {"a": "a"}), (NEW, "2", {"renamed": "r"}), (OLD, "3", {"a": "b"})):
            writer = knowing(world, source).writer(f"maintainer-{first}", clock=world.clock)
            put(world, writer, first, 1, row)
        before = rows(world.snapshot(), "my.rows")
        assert [row["a"] for row in before] == ["a", "r", "b"]
        world.writer("compactor-1").checkpoint(scope="all")
        assert rows(world.snapshot(), "my.rows") == before
        world.writer("compactor-2").checkpoint(scope="all")
        assert rows(world.snapshot(), "my.rows") == before


class TestContradictions:
    """Two writers that define one table in two ways at the same moment make that table unreadable, and nothing else.

    Who decides contradicts itself, as two maintainers do; or a writer is left out by what another says, and has rows there.
    """

    @pytest.fixture(params=["", "maintainer-"], ids=["plain", "maintainers"])
    def world(self, request: pytest.FixtureRequest) -> World:
        world = World()
        world.commit(world.writer("other"), ("put", "buckets", {"owner": OWNER, "name": "b"}))
        one = knowing(world, OLD).writer(f"{request.param}one", clock=world.clock)
        two = knowing(world, OLD.replace("optional int32 n = 3", "optional string n = 3")).writer(
            f"{request.param}two", clock=world.clock
        )
        with one.transaction() as first, two.transaction() as second:
            first.put("my.rows", {"k": "1", "n": 1})
            second.put("my.rows", {"k": "2", "n": "2"})
        return world

    def test_the_table_alone_is_refused(self, world: World) -> None:
        snapshot = world.snapshot()
        for call in (
            lambda: snapshot.scan("my.rows"),
            lambda: snapshot.scan("deleted_my.rows"),
            lambda: snapshot.get("my.rows", k="1"),
            lambda: world.catalog().changes(table="my.rows").to_arrow(),
        ):
            with pytest.raises(IncompatibleTable, match=r"my\.rows"):
                call()
        assert [row["name"] for row in rows(snapshot, "buckets")] == ["b"]
        assert snapshot.scan("conflicts").to_arrow().num_rows == 0
        assert world.catalog().changes(table="buckets").to_arrow().num_rows == 1
        assert "my.rows" in snapshot.tables
        (shown,) = [row for row in snapshot.scan("tables").to_arrow().to_pylist() if row["table"] == "my.rows"]
        assert "two ways" in shown["contradiction"]

    def test_others_commit_as_before(self, world: World) -> None:
        world.commit(world.writer("other"), ("put", "buckets", {"owner": OWNER, "name": "c"}))
        assert [row["name"] for row in rows(world.snapshot(), "buckets")] == ["b", "c"]

    def test_no_checkpoint_is_made_that_would_lose_its_rows(self, world: World) -> None:
        with pytest.raises(IncompatibleTable, match=r"my\.rows"):
            world.writer("compactor-1").checkpoint(scope="all")
        assert not [info for info in world.store.list("") if info.name.endswith(".ckpt")]
