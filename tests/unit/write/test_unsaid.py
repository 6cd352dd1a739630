"""Ids and fields of parents that cannot be unset: not declared so any more, and where they are, refused of rows that leave them out.

Else all such rows would have one id, or one parent, which is a zero that nobody has said.
"""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pytest

from bucketcatalog import Catalog, IncompatibleTable, InvalidRows
from bucketcatalog.maintain.restore import restore

from ...kit.world import BUCKET, World, messages, proto, rows, stored

SOURCE = """
message Holder {
  option (table) = { name: "own.holder" key: "name" id: "id" };
  string name = 1; PRESENCE bytes id = 2 [(column) = {type: LOGICAL_TYPE_UUID}];
}
message Piece {
  option (table) = { name: "own.piece" key: "name" id: "number" parent: { table: "own.holder" field: "holder" } };
  string name = 1; PRESENCE int64 number = 2; PRESENCE bytes holder = 3 [(column) = {type: LOGICAL_TYPE_UUID}];
  optional string note = 4; int64 rest = 5;
}
"""
ZERO = "00000000-0000-0000-0000-000000000000"
PIECE: dict[str, Any] = {"name": "a", "number": 0, "holder": ZERO}
SCHEMA = pa.schema([("name", pa.string()), ("number", pa.int64()), ("holder", pa.string()), ("note", pa.string())])


def source(presence: str = "") -> str:
    return proto(SOURCE.replace("PRESENCE", presence))


def catalog(world: World, presence: str = "") -> Catalog:
    made = world.catalog()
    made.register(messages(source(presence)).values())
    return made


@pytest.fixture
def world() -> World:
    """One that has both tables, as they were declared by an older release."""
    world = World()
    with world.writer("old") as writer:
        first = {"name": "first", "number": 1, "holder": BUCKET}
        world.commit_unasked(
            writer, messages(source()).values(), ("put", "own.piece", first), ("put", "own.holder", {"name": "h", "id": BUCKET})
        )
    return world


@pytest.mark.parametrize(
    ("table", "row", "why"),
    [
        ("own.holder", {"name": "h", "id": BUCKET}, "Table 'own.holder' cannot have 'id' as its id"),
        ("own.piece", {**PIECE, "holder": BUCKET}, "Table 'own.piece' cannot have 'number' as its id"),
    ],
)
def test_an_id_that_cannot_be_unset_is_not_declared_any_more(table: str, row: dict[str, Any], why: str) -> None:
    world = World()
    why = f"{why}: the field cannot be unset, so nobody could tell whether a row says it."
    with (
        pytest.raises(IncompatibleTable, match=re.escape(why)) as caught,
        world.writer(catalog=catalog(world)).transaction() as tx,
    ):
        tx.put(table, row)
    assert caught.value.next_step == "Make the field optional, or one of the key." and stored(world) == []
    world.commit(world.writer(catalog=catalog(world, "optional")), ("put", table, row))


def test_a_field_of_a_parent_that_cannot_be_unset_is_not_declared_any_more() -> None:
    world, later = World(), SOURCE.replace("PRESENCE int64", "optional int64").replace("PRESENCE bytes id", "optional bytes id")
    made = world.catalog()
    made.register(messages(proto(later.replace("PRESENCE", ""))).values())
    why = r"Table 'own\.piece' cannot have 'holder' as the field of its parent: the field cannot be unset"
    with pytest.raises(IncompatibleTable, match=why), world.writer(catalog=made).transaction() as tx:
        tx.put("own.piece", PIECE)
    assert stored(world) == []


@pytest.mark.parametrize(("column", "what"), [("number", "id"), ("holder", "parent")])
@pytest.mark.parametrize("form", ["rows", "nulls", "columns", "no column"])
@pytest.mark.parametrize("registers", [False, True])
def test_a_row_that_leaves_it_out_is_refused(world: World, column: str, what: str, form: str, registers: bool) -> None:
    given: Any = [
        PIECE,
        {**PIECE, "name": "b"},
        {name: value for name, value in {**PIECE, "name": "c"}.items() if name != column},
    ]
    if form == "nulls":
        given[2][column] = None
    if form == "columns":
        given = pa.Table.from_pylist(given, SCHEMA)
    if form == "no column":
        given = pa.Table.from_pylist(given[2:], SCHEMA).drop_columns([column])
    number = 0 if form == "no column" else 2
    why = f"Row {number} for table 'own.piece' lacks the column '{column}', which cannot be unset: it would have the {what} of every"
    known = catalog(world) if registers else world.catalog()
    with world.writer(catalog=known) as writer, writer.transaction() as tx:
        with pytest.raises(InvalidRows, match=re.escape(why)) as caught:
            tx.put("own.piece", given)
        assert caught.value.next_step == "Give it, or declare a field of another number that is optional."
        tx.put("own.piece", PIECE)
    assert [row["name"] for row in rows(world.snapshot(), "own.piece")] == ["a", "first"]


def test_a_zero_that_is_said_is_taken(world: World) -> None:
    arrow = pa.Table.from_pylist([{**PIECE, "name": "b"}], SCHEMA)
    with world.writer(catalog=catalog(world)) as writer:
        world.commit(writer, ("put", "own.piece", PIECE), ("put", "own.piece", arrow))
    found = rows(world.snapshot(), "own.piece", [*PIECE, "rest"])
    assert found[:2] == [{**PIECE, "rest": 0}, {**PIECE, "name": "b", "rest": 0}]


@pytest.mark.parametrize("form", [dict, lambda **row: pa.Table.from_pylist([row])])
def test_an_update_says_whose_the_row_is_and_need_not_say_its_id(world: World, form: Any) -> None:
    version = rows(world.snapshot(), "own.piece", ["_version"])[0]["_version"]
    with world.writer(catalog=catalog(world)) as writer:
        with pytest.raises(InvalidRows, match=r"'holder', which .* the parent of every such row"), writer.transaction() as tx:
            tx.update("own.piece", form(name="first", _version=version, note="x"))
        world.commit(writer, ("update", "own.piece", form(name="first", _version=version, note="x", holder=BUCKET)))
    (row,) = rows(world.snapshot(), "own.piece")
    assert (row["number"], row["holder"], row["note"]) == (1, BUCKET, "x")


def test_keys_name_rows_as_ever(world: World) -> None:
    version = rows(world.snapshot(), "own.piece", ["_version"])[0]["_version"]
    with world.writer(catalog=catalog(world)) as writer:
        world.commit(
            writer, ("delete", "own.piece", {"name": "first", "_version": version}), ("delete", "own.piece", {"name": "b"})
        )
        world.commit(writer, ("purge", "own.piece", {"name": "first", "_version": version}))
    assert rows(world.snapshot(), "own.piece") == []


@pytest.mark.parametrize("checkpoint", [False, True])
def test_rows_that_left_it_out_before_are_read_named_and_restored(
    world: World, monkeypatch: pytest.MonkeyPatch, checkpoint: bool
) -> None:
    old = [{"name": name, "note": name} for name in "abc"]
    with world.writer("v", catalog=catalog(world)) as writer:
        with monkeypatch.context() as older:  # a release that took such rows
            older.setattr("bucketcatalog.write.intake.never_unset", lambda table: ())
            then = world.commit(writer, ("put", "own.piece", old))
        if checkpoint:
            writer.checkpoint()
    with world.writer(catalog=catalog(world)) as writer:
        world.commit(writer, ("put", "own.piece", {**PIECE, "name": "d"}))
        found = rows(world.snapshot(), "own.piece", [*PIECE, "note"])
        assert found[:3] == [{**PIECE, **row} for row in old]
        world.commit(
            writer, ("update", "own.piece", {**found[0], "note": "new"}), ("delete", "own.piece", {"name": "b", "number": 0})
        )
        assert [row["note"] for row in rows(world.snapshot(), "own.piece")] == ["new", "c", None, None]
        world.clock.tick()
        restore(world.catalog().database("default"), writer, "own.piece", None, then.version, skip_collected=False)
    assert rows(world.snapshot(), "own.piece", ["name", "note"])[:3] == old


def test_the_field_cannot_be_declared_optional_later_for_rows_have_zeros_by_then(world: World) -> None:
    why = r"Column 'number' \(field 2\) of table 'own\.piece' is defined without presence and with presence"
    with (
        world.writer(catalog=catalog(world, "optional")) as writer,
        pytest.raises(IncompatibleTable, match=why) as caught,
        writer.transaction() as tx,
    ):
        tx.put("own.piece", {"name": "b"})
    assert caught.value.next_step == "Keep it optional or not as it is, or give the new column a field number of its own."
