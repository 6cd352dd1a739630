"""Rows of older and newer definitions of a table are read together, wherever they lie; contradictions are errors."""

from __future__ import annotations

from functools import reduce
from itertools import permutations
from typing import Any

import pytest

from bucketcatalog import Catalog, IncompatibleTable, InvalidRows
from bucketcatalog.format import evolution
from bucketcatalog.format.definitions import table_of
from bucketcatalog.format.evolution import merge
from bucketcatalog.model.tables import Parent, Table
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
    with world.writer("v" if checkpoints == "one each" else "w", catalog=knowing(world, NEW)) as writer:
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
    with world.writer("v", catalog=knowing(world, NEW)) as writer:
        world.commit(writer, ("update", "my.rows", [{"k": f"old{n:02}", **NEW_ROW} for n in range(count)]))
        for _ in range(2):
            found = rows(world.snapshot(), "my.rows")
            assert len(found) == count and all({**row, "k": 0} == NEW_SHOWN | {"k": 0} for row in found)
            writer.checkpoint(scope="all")


def test_whoever_writes_without_a_definition_uses_what_the_catalog_has() -> None:
    world = World()
    for name, source, row in (("w", NEW, NEW_ROW), ("v", OLD, OLD_ROW)):
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
    """The latest definition names the columns, whichever checkpoints are read."""

    @pytest.mark.parametrize("made_by", ["cb", "bc", "c", "b", "all", ""])
    def test_checkpoints_change_no_names(self, made_by: str) -> None:
        world = World()
        first, second = knowing(world, OLD), knowing(world, NEW)
        writers = {"c": first.writer("c", clock=world.clock), "b": second.writer("b", clock=world.clock)}
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
            writer = knowing(world, source).writer(f"w{first}", clock=world.clock)
            put(world, writer, first, 1, row)
        before = rows(world.snapshot(), "my.rows")
        assert [row["a"] for row in before] == ["a", "r", "b"]
        world.writer("compactor-1").checkpoint(scope="all")
        assert rows(world.snapshot(), "my.rows") == before
        world.writer("compactor-2").checkpoint(scope="all")
        assert rows(world.snapshot(), "my.rows") == before


class TestContradictions:
    """Two writers that define one table in two ways at the same moment make that table unreadable, and nothing else."""

    @pytest.fixture
    def world(self) -> World:
        world = World()
        world.commit(world.writer("other"), ("put", "buckets", {"owner": OWNER, "name": "b"}))
        one = knowing(world, OLD).writer("one", clock=world.clock)
        two = knowing(world, OLD.replace("optional int32 n = 3", "optional string n = 3")).writer("two", clock=world.clock)
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
            lambda: world.catalog().changes(table="my.rows"),
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


KEPT = 'name: "lab.r" key: "k"'
RELIED_ON = {
    "tombstones": f"{KEPT} tombstones: TOMBSTONES_DROPPED",
    "id": f'{KEPT} id: "v"',
    "data reference": f'{KEPT} data_reference: "v"',
}
"""What a checkpoint's rows were folded by: which of them are forgotten, and which of their columns an UPDATE leaves alone."""


def lab(world: World, options: str) -> Catalog:
    """A catalog that knows the table with these options."""
    catalog = world.catalog()
    catalog.register(
        messages(proto(f"message R {{ option (table) = {{ {options} }}; string k = 1; optional string v = 2; }}"))["R"]
    )
    return catalog


@pytest.mark.parametrize("changed", RELIED_ON)
@pytest.mark.parametrize("back", [False, True], ids=["there", "back"])
class TestWhatFoldsHaveReliedOn:
    """It cannot be declared anew: no answer may depend on which checkpoints there are."""

    @pytest.fixture
    def both(self, changed: str, back: bool) -> tuple[str, str]:
        """The older definition and the newer one."""
        return (RELIED_ON[changed], KEPT) if back else (KEPT, RELIED_ON[changed])

    def test_it_is_refused_before_anything_is_written(self, both: tuple[str, str]) -> None:
        world = World()
        with world.writer(catalog=lab(world, both[0])) as writer:
            world.commit(writer, ("put", "lab.r", {"k": "a", "v": "b"}))
        with world.writer("v", catalog=lab(world, both[1])) as writer, pytest.raises(IncompatibleTable) as caught:
            world.commit(writer, ("put", "lab.r", {"k": "a", "v": "c"}))
        assert "lab.r" in str(caught.value) and caught.value.next_step
        assert rows(world.snapshot(), "lab.r") == [{"k": "a", "v": "b"}]

    @pytest.mark.parametrize("covered", ["", "one", "two", "one two"])
    def test_of_writers_that_never_met_the_table_is_refused_whatever_is_covered(
        self, both: tuple[str, str], covered: str
    ) -> None:
        world = World()
        self.written(world, both, covered)
        snapshot = world.snapshot()
        for name in ("lab.r", "deleted_lab.r"):
            with pytest.raises(IncompatibleTable, match=r"lab\.r") as caught:
                snapshot.scan(name)
            assert caught.value.next_step
        assert [row["name"] for row in rows(snapshot, "buckets")] == ["b"]
        with pytest.raises(IncompatibleTable, match=r"lab\.r"):
            world.writer("compactor-1").checkpoint(scope="all")
        assert len(rows(world.snapshot(version="one@2"), "lab.r")) == 1, "what was read before is read as before"

    def test_without_the_refusal_a_checkpoint_would_change_the_answer(
        self, both: tuple[str, str], changed: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(evolution, "_check_fixed", lambda older, newer: None)
        shown = []
        for covered in ("", "one"):
            self.written(world := World(), both, covered)
            shown.append(rows(world.snapshot(), "deleted_lab.r" if changed == "tombstones" else "lab.r"))
        assert shown[0] != shown[1]

    def written(self, world: World, both: tuple[str, str], covered: str) -> None:
        """Two writers who have not seen each other; ``covered`` are those who write a checkpoint of their own."""
        world.commit(world.writer("other"), ("put", "buckets", {"owner": OWNER, "name": "b"}))
        one = lab(world, both[0]).writer("one", clock=world.clock)
        two = lab(world, both[1]).writer("two", clock=world.clock)
        with two.transaction() as first:  # begun, and its table looked up, before the other commits
            first.put("lab.r", {"k": "z", "v": "z"})
            world.commit(one, ("put", "lab.r", [{"k": "a", "v": "1"}, {"k": "b", "v": "1"}]))
            version = rows(world.snapshot(), "lab.r", ["_version"])[0]["_version"]
            world.commit(one, ("update", "lab.r", {"k": "a", "v": "2", "_version": version}))
            world.commit(one, ("delete", "lab.r", {"k": "b"}))
            if "one" in covered:
                one.checkpoint()
            world.clock.tick()
        if "two" in covered:
            two.checkpoint()


PARTS = 'name: "lab.parts" key: "crate" key: "path"'
TWO = f'{PARTS} data_reference: "crate" data_reference: "path"'
SAYS_OTHERWISE = {
    "none": (f'{PARTS} data_reference: "path"', PARTS, "data references: path and none"),
    "one of the two": (TWO, f'{PARTS} data_reference: "crate"', "data references: crate, path and crate"),
    "another column of the key": (f'{PARTS} data_reference: "path"', f'{PARTS} data_reference: "crate"', "data references"),
    "another order": (TWO, f'{PARTS} data_reference: "path" data_reference: "crate"', "crate, path and path, crate"),
    "another name": (
        f'{PARTS} data_reference: "path"',
        PARTS.replace("path", "file") + ' data_reference: "file"',
        "path and file",
    ),
    "another type": (f'{PARTS} data_reference: "n"', f'{PARTS} data_reference: "n"', "data references: n and n"),
    "another id in the key": (f'{PARTS} id: "path"', f'{PARTS} id: "crate"', "ids: path and crate"),
    "the id as the reference": (f'{PARTS} id: "n"', f'{PARTS} data_reference: "n"', "ids: n and none"),
    "no id": (f'{PARTS} id: "crate"', PARTS, "ids: crate and none"),
}
"""Definitions whose key, id and data reference are the same columns, taken together or at least by name, and which do not say the same."""


@pytest.mark.parametrize("back", [False, True], ids=["there", "back"])
@pytest.mark.parametrize("what", SAYS_OTHERWISE)
def test_what_is_a_rows_id_and_where_its_data_lies_cannot_be_declared_anew(what: str, back: bool) -> None:
    older, newer, why = SAYS_OTHERWISE[what]
    tables = []
    for options, kind in ((older, "int32"), (newer, "int64" if what == "another type" else "int32")):
        path = "file" if '"file"' in options else "path"
        fields = f"string crate = 1; string {path} = 2; optional {kind} n = 3;"
        tables.append(table_of(messages(proto(f"message R {{ option (table) = {{ {options} }}; {fields} }}"))["R"]))
    if back:
        tables.reverse()
    with pytest.raises(IncompatibleTable, match=r"'lab\.parts' is defined with two (ids|data references): ") as caught:
        merge(*tables)
    assert caught.value.next_step and (back or why in caught.value.message)


def test_the_column_of_an_id_may_be_called_otherwise() -> None:
    older, newer = (
        table_of(
            messages(proto(f'message R {{ option (table) = {{ {KEPT} id: "{name}" }}; string k = 1; string {name} = 2; }}'))["R"]
        )
        for name in ("v", "w")
    )
    assert merge(older, newer).id == "w"


PIECES = 'name: "lab.pieces" key: "k"'
PARENT = 'parent: { table: "lab.boxes" field: "box" }'
BOXES = 'message Box { option (table) = { name: "lab.boxes" key: "name" id: "name" }; string name = 1; }'
OTHER_PARENTS = {
    "another table": (PARENT.replace("lab.boxes", "lab.crates"), "'lab.boxes' by field 2 and 'lab.crates' by field 2"),
    "another column": (PARENT.replace('"box"', '"k"'), "'lab.boxes' by field 2 and 'lab.boxes' by field 1"),
    "the names changed places": (PARENT.replace('"box"', '"crate"'), "'lab.boxes' by field 2 and 'lab.boxes' by field 3"),
}


def pieces(parent: str, fields: str = "optional string box = 2; optional string crate = 3;") -> Table:
    source = f"message R {{ option (table) = {{ {PIECES} {parent} }}; string k = 1; {fields} }}"
    return table_of(messages(proto(source))["R"])


@pytest.mark.parametrize("back", [False, True], ids=["there", "back"])
@pytest.mark.parametrize("what", OTHER_PARENTS)
def test_rows_cannot_be_given_another_parent(what: str, back: bool) -> None:
    parent, why = OTHER_PARENTS[what]
    both = [pieces(PARENT), pieces(parent)]
    if back:
        both.reverse()
    with pytest.raises(IncompatibleTable, match=r"'lab\.pieces' is defined with two parents: ") as caught:
        merge(*both)
    assert caught.value.next_step and (back or why in caught.value.message)


def test_a_parent_stays_whatever_comes_before_and_after_it() -> None:
    given = [pieces(""), pieces(PARENT), pieces("", "optional string box = 2; optional string later = 4;")]
    for definitions in permutations(given):
        assert reduce(merge, definitions).parent == Parent("lab.boxes", "box")


def test_a_parent_stays_between_definitions_that_contradict_each_other() -> None:
    with pytest.raises(IncompatibleTable, match="two parents"):
        reduce(merge, [pieces(PARENT), pieces(""), pieces(PARENT.replace("lab.boxes", "lab.crates"))])


@pytest.mark.parametrize(
    ("fields", "column"),
    [
        ("optional string holder = 2;", "holder"),
        ("optional string crate = 3;", "box"),
        ("", "box"),
        ("optional int64 box = 4;", "box_2"),
    ],
    ids=["renamed", "dropped", "alone", "its name is another's"],
)
def test_a_parent_stays_with_the_number_of_its_column(fields: str, column: str) -> None:
    merged = merge(pieces(PARENT), pieces("", fields))
    assert merged.parent == Parent("lab.boxes", column) and merged.by_name[column].number == 2
    assert merge(pieces("", fields), merged).parent == merged.parent, "as one who reads it before it is declared anew"


def test_the_column_of_a_parent_may_be_called_otherwise() -> None:
    renamed = pieces(PARENT.replace('"box"', '"holder"'), "optional string holder = 2;")
    assert merge(pieces(PARENT), renamed).parent == Parent("lab.boxes", "holder")
    assert merge(renamed, pieces(PARENT)).parent == Parent("lab.boxes", "box")


@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
@pytest.mark.parametrize("checkpoint", [False, True])
def test_writers_from_before_a_parent_was_declared_write_on(order: tuple[int, ...], checkpoint: bool) -> None:
    world = World()
    given = ["", PARENT, ""]
    for turn, which in enumerate(order):
        source = f"message Row {{ option (table) = {{ {PIECES} {given[which]} }}; string k = 1; optional string box = 2; }}"
        catalog = knowing(world, source)
        catalog.register(messages(proto(BOXES))["Box"])
        writer = world.writer(f"w{which}", catalog=catalog)
        world.commit(writer, ("put", "lab.pieces", {"k": str(turn), "box": "b"}))
        if checkpoint:
            writer.checkpoint()
    snapshot = world.snapshot()
    assert snapshot.table("lab.pieces").parent == Parent("lab.boxes", "box")
    assert [row["k"] for row in rows(snapshot, "lab.pieces")] == ["0", "1", "2"]
