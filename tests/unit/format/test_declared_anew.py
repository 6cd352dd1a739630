"""What cannot be declared anew: what checkpoints' rows were folded by, a row's id, where its data lies, and its parent."""

from __future__ import annotations

from functools import reduce
from itertools import permutations

import pytest

from bucketcatalog import Catalog, IncompatibleTable
from bucketcatalog.format import evolution
from bucketcatalog.format.definitions import table_of
from bucketcatalog.format.evolution import merge
from bucketcatalog.model.tables import Parent, Table

from ...kit.world import OWNER, World, messages, proto, rows, time_at

KEPT = 'name: "lab.r" key: "k"'
AT = "type: LOGICAL_TYPE_TIMESTAMP_MICROS"
MORE = "message In { optional int64 n = 1; } In m = 4; optional int64 more = 5;"
PLAIN = (KEPT, AT, MORE)
RELIED_ON = {
    "tombstones": (f"{KEPT} tombstones: TOMBSTONES_DROPPED", AT, MORE),
    "id": (f'{KEPT} id: "v"', AT, MORE),
    "data reference": (f'{KEPT} data_reference: "v"', AT, MORE),
    "created": (KEPT, f"{AT} default: COLUMN_DEFAULT_CREATED", MORE),
    "modified": (KEPT, f"{AT} default: COLUMN_DEFAULT_MODIFIED", MORE),
    "presence": (KEPT, AT, MORE.replace("optional int64 more", "int64 more")),
    "presence in a message": (KEPT, AT, MORE.replace("optional int64 n", "int64 n")),
}
"""What a checkpoint's rows were folded by: which are forgotten, which columns an UPDATE leaves alone, and what is filled in.

Options of the table, and of its column of a time, and further columns.
"""
Declared = tuple[str, str, str]


def lab(world: World, declared: Declared) -> Catalog:
    """A catalog that knows the table with these options."""
    table, at, more = declared
    fields = f"string k = 1; optional string v = 2; optional int64 at = 3 [(column) = {{ {at} }}]; {more}"
    catalog = world.catalog()
    catalog.register(messages(proto(f"message R {{ option (table) = {{ {table} }}; {fields} }}"))["R"])
    return catalog


@pytest.mark.parametrize("changed", RELIED_ON)
@pytest.mark.parametrize("back", [False, True], ids=["there", "back"])
class TestWhatFoldsHaveReliedOn:
    """It cannot be declared anew: no answer may depend on which checkpoints there are."""

    @pytest.fixture
    def both(self, changed: str, back: bool) -> tuple[Declared, Declared]:
        """The older definition and the newer one."""
        return (RELIED_ON[changed], PLAIN) if back else (PLAIN, RELIED_ON[changed])

    def test_it_is_refused_before_anything_is_written(self, both: tuple[Declared, Declared]) -> None:
        world = World()
        with world.writer(catalog=lab(world, both[0])) as writer:
            world.commit(writer, ("put", "lab.r", {"k": "a", "v": "b"}))
        with world.writer("v", catalog=lab(world, both[1])) as writer, pytest.raises(IncompatibleTable) as caught:
            world.commit(writer, ("put", "lab.r", {"k": "a", "v": "c"}))
        assert "lab.r" in str(caught.value) and caught.value.next_step
        assert rows(world.snapshot(), "lab.r", ["k", "v"]) == [{"k": "a", "v": "b"}]

    @pytest.mark.parametrize("covered", ["", "one", "two", "one two"])
    def test_of_writers_that_never_met_the_table_is_refused_whatever_is_covered(
        self, both: tuple[Declared, Declared], covered: str
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
        assert len(rows(world.snapshot(version="one@2"), "lab.r")) == 2, "what was read before is read as before"

    def test_without_the_refusal_a_checkpoint_would_change_the_answer(
        self, both: tuple[Declared, Declared], changed: str, back: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """But where presence is given up: what was unset reads as zero by then, and only the checkpoint's files say otherwise."""
        monkeypatch.setattr(evolution, "_check_fixed", lambda older, newer: None)
        monkeypatch.setattr(evolution, "_check_unset", lambda table, older, newer: None)
        shown = []
        for covered in ("", "one"):
            self.written(world := World(), both, covered)
            shown.append(rows(world.snapshot(), "deleted_lab.r" if changed == "tombstones" else "lab.r"))
        assert (shown[0] == shown[1]) == (changed.startswith("presence") and not back)

    def written(self, world: World, both: tuple[Declared, Declared], covered: str) -> None:
        """Two writers who have not seen each other; ``covered`` are those who write a checkpoint of their own.

        The second is a maintainer, whose word counts.
        """
        world.commit(world.writer("other"), ("put", "buckets", {"owner": OWNER, "name": "b"}))
        one = lab(world, both[0]).writer("one", clock=world.clock)
        two = lab(world, both[1]).writer("maintainer-two", clock=world.clock)
        with two.transaction() as first:  # begun, and its table looked up, before the other commits
            first.put("lab.r", {"k": "z", "v": "z"})
            said = {"k": "c", "at": time_at(5)}  # with it the column is there, and null means what the fold says
            world.commit(one, ("put", "lab.r", [{"k": "a", "v": "1", "m": {}}, {"k": "b", "v": "1"}, said]))
            version = rows(world.snapshot(), "lab.r", ["_version"])[0]["_version"]
            world.commit(one, ("update", "lab.r", {"k": "a", "v": "2", "m": {}, "_version": version}))
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
        catalog = world.catalog()
        catalog.register(list(messages(proto(source, BOXES)).values()))
        writer = world.writer(f"w{which}", catalog=catalog)
        world.commit(writer, ("put", "lab.pieces", {"k": str(turn), "box": "b"}))
        if checkpoint:
            writer.checkpoint()
    snapshot = world.snapshot()
    assert snapshot.table("lab.pieces").parent == Parent("lab.boxes", "box")
    assert [row["k"] for row in rows(snapshot, "lab.pieces")] == ["0", "1", "2"]


class TestATimeThatWasDeclaredLater:
    """It reads as the commit time of the row's stamps, whoever has folded the row before, and whatever else is read."""

    @pytest.mark.parametrize("covered", ["", "before", "before and after", "after"])
    @pytest.mark.parametrize("columns", [None, ["k", "since", "until"], ["since", "until"], ["until", "k"]], ids=str)
    def test_the_answer_does_not_depend_on_checkpoints(self, covered: str, columns: list[str] | None) -> None:
        world = World()
        fields = "string k = 1; optional string v = 2;"
        with world.writer("maintainer-1", catalog=declaring_catalog(world, fields)) as one:
            put = world.commit(one, ("put", "lab.r", [{"k": "a"}, {"k": "b"}, {"k": "gone"}]))
            updated = world.commit(one, ("update", "lab.r", {"k": "b", "v": "2", "_version": f"{put.uuid}:1"}))
            world.commit(one, ("delete", "lab.r", {"k": "gone"}))
            if "before" in covered:
                one.checkpoint(scope="all")
        later = f"{fields} optional int64 since = 3 [(column) = {{ {AT} default: COLUMN_DEFAULT_CREATED }}];"
        later += f"optional int64 until = 4 [(column) = {{ {AT} default: COLUMN_DEFAULT_MODIFIED }}];"
        with world.writer("maintainer-1", catalog=declaring_catalog(world, later)) as two:
            world.commit(two, ("put", "lab.r", {"k": "z"}))
            if "after" in covered:
                two.checkpoint(scope="all", full=True)
        snapshot = world.snapshot()
        first, last = time_at(put.commit_time), time_at(updated.commit_time)
        expected = [{"k": "a", "since": first, "until": first}, {"k": "b", "since": first, "until": last}]

        for row, found in zip(expected, rows(snapshot, "lab.r", columns), strict=False):
            assert {name: value for name, value in row.items() if columns is None or name in columns}.items() <= found.items()
        assert rows(snapshot, "deleted_lab.r", ["since", "until"]) == [{"since": first, "until": first}]
        found = snapshot.scan("lab.r", columns=["k"], where={"until": last}).to_arrow()
        assert found["k"].to_pylist() == ["b"]


def declaring_catalog(world: World, fields: str) -> Catalog:
    catalog = world.catalog()
    catalog.register(messages(proto(f'message R {{ option (table) = {{ name: "lab.r" key: "k" }}; {fields} }}'))["R"])
    return catalog
