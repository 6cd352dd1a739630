"""Largest values and lists of allowed ones that tables declare: refused of rows and columns alike; what contradicts itself."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from bucketcatalog import Catalog, IncompatibleTable, InvalidRows
from bucketcatalog.format.definitions import table_of
from bucketcatalog.format.evolution import merge
from bucketcatalog.model.tables import Table

from ...kit.world import World, messages, proto, rows

STATES = '{allowed: ["new", "done", ""]}'
SOURCE = f"""
message Row {{
  option (table) = {{ name: "lab.rows" key: "k" }};
  string k = 1 [(column) = {{allowed: ["a", "b", "c"]}}];
  string state = 2 [(column) = {STATES}];
  repeated string states = 3 [(column) = {STATES}];
  optional sint64 level = 4 [(column) = {{allowed: ["-1", "0", "12"] maximum: 20}}];
  optional uint64 most = 5 [(column) = {{minimum: 1 maximum: 9223372036854775807}}];
  repeated int32 few = 6 [(column) = {{maximum: 3}}];
  message Part {{ optional string state = 1 [(column) = {STATES}]; repeated uint32 n = 2 [(column) = {{allowed: "7"}}]; }}
  Part part = 7;
  repeated Part parts = 8;
  map<string, Part> by_name = 9;
  optional string hidden = 10 [(column) = {{allowed: "x" sensitive: true}}];
}}
"""
PART = pa.struct([("state", pa.string()), ("n", pa.list_(pa.uint32()))])
SCHEMA = {
    "k": pa.string(),
    "state": pa.string(),
    "states": pa.list_(pa.string()),
    "level": pa.int64(),
    "most": pa.uint64(),
    "few": pa.list_(pa.int32()),
    "part": PART,
    "parts": pa.list_(PART),
    "by_name": pa.map_(pa.string(), PART),
    "hidden": pa.string(),
}
GOOD: dict[str, Any] = {
    "k": "a",
    "state": "new",
    "states": ["done", "", "new"],
    "level": -1,
    "most": (1 << 63) - 1,
    "few": [3, -9],
    "part": {"state": "new", "n": [7, 7]},
    "parts": [{"state": "done"}, {"n": [7]}, {}],
    "by_name": [("a", {"state": "new"}), ("b", {})],
    "hidden": "x",
}
NONE = "is none of those that are allowed"
ONE_OF = "Give one of 'new', 'done', '', or none."
REFUSED = [
    ("k", "d", f"the value 'd' {NONE}", "Give one of 'a', 'b', 'c'."),
    ("state", "New", f"the value 'New' {NONE}", ONE_OF),
    ("states", ["new", "odd"], f"the value 'odd' {NONE}", ONE_OF),
    ("level", 1, f"the value 1 {NONE}", "Give one of -1, 0, 12, or none."),
    ("level", 21, "the value 21 is above the maximum 20", "Give one of -1, 0, 12, or none."),
    (
        "most",
        1 << 63,
        f"the value {1 << 63} is above the maximum {(1 << 63) - 1}",
        f"Give a value from 1 to {(1 << 63) - 1}, or none.",
    ),
    ("most", 0, "the value 0 is below the minimum 1", f"Give a value from 1 to {(1 << 63) - 1}, or none."),
    ("few", [3, 4], "the value 4 is above the maximum 3", "Give a value of at most 3, or none."),
    ("part", {"state": "x"}, f"the value 'x' in its field 'state' {NONE}", ONE_OF),
    ("part", {"state": "new", "n": [7, 8]}, f"the value 8 in its field 'n' {NONE}", "Give one of 7, or none."),
    ("parts", [{"state": "new"}, {"state": "x"}], f"the value 'x' in its field 'state' {NONE}", ONE_OF),
    ("parts", [{}, {"n": [7, 6]}], f"the value 6 in its field 'n' {NONE}", "Give one of 7, or none."),
    ("by_name", [("a", {}), ("b", {"state": "x"})], f"the value 'x' in its field 'state' {NONE}", ONE_OF),
    ("hidden", "secret", f"the value {NONE}", "Give one of 'x', or none."),
]


def catalog(world: World, source: str = SOURCE) -> Catalog:
    made = Catalog(world.store)
    made.register(messages(proto(source))["Row"])
    return made


def as_arrow(given: list[dict[str, Any]]) -> pa.Table:
    return pa.table({name: pa.array([row.get(name) for row in given], kind) for name, kind in SCHEMA.items()})


@pytest.mark.parametrize("as_columns", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize(("name", "value", "says", "next_step"), REFUSED, ids=[f"{each[0]}-{each[1]}" for each in REFUSED])
def test_what_is_not_allowed_is_refused_by_row_column_and_value(
    name: str, value: Any, says: str, next_step: str, as_columns: bool
) -> None:
    world = World()
    given = [{"k": "b"}, GOOD, {"k": "c", name: value}, {"k": "a", name: value}]
    with world.writer(catalog=catalog(world)) as writer, writer.transaction() as tx:
        for event in (tx.put, tx.update) if name != "k" else (tx.put,):
            with pytest.raises(InvalidRows) as caught:
                event("lab.rows", as_arrow(given) if as_columns else given)
            assert caught.value.message == f"Row 2 for table 'lab.rows', column {name!r}: {says}."
            assert caught.value.next_step == next_step
        tx.put("lab.rows", as_arrow(given[:2]) if as_columns else given[:2])
    assert [row["k"] for row in rows(world.snapshot(), "lab.rows")] == ["a", "b"]


@pytest.mark.parametrize("as_columns", [False, True], ids=["rows", "columns"])
def test_rows_from_before_are_read_found_and_deleted(as_columns: bool) -> None:
    world = World()
    anything = """message Row { option (table) = { name: "lab.rows" key: "k" }; string k = 1; string state = 2; }"""
    with world.writer(catalog=catalog(world, anything)) as writer:
        world.commit(writer, ("put", "lab.rows", [{"k": "z", "state": "odd"}, {"k": "a", "state": "new"}]))
        writer.checkpoint()
    with world.writer("maintainer-1", catalog=catalog(world)) as writer:
        world.commit(writer, ("put", "lab.rows", {"k": "b"}))
        snapshot = world.snapshot()
        assert snapshot.table("lab.rows").by_name["state"].allowed == ("new", "done", "")
        assert snapshot.scan("lab.rows", where={"state": "odd"}).to_arrow()["k"].to_pylist() == ["z"]
        assert snapshot.get("lab.rows", k="z") is not None
        world.commit(writer, ("delete", "lab.rows", pa.table({"k": ["z"]}) if as_columns else {"k": "z"}))
    assert [row["k"] for row in rows(world.snapshot(), "lab.rows")] == ["a", "b"]


CONTRADICTIONS = {
    "optional string v = 2 [(column) = {maximum: 0}]": "the maximum of its field 'v' is for an integer",
    "map<string, int32> v = 2 [(column) = {maximum: 0}]": "the maximum of its field 'v' is for an integer",
    "optional uint32 v = 2 [(column) = {maximum: -1}]": "no uint32 reaches the maximum of its field 'v'",
    "int32 v = 2 [(column) = {maximum: -1}]": "reads as 0 where it is unset, which is above its maximum: make it optional",
    "optional int32 v = 2 [(column) = {minimum: 2 maximum: 1}]": "the minimum of its field 'v' is above its maximum",
    "optional bool v = 2 [(column) = {allowed: 'true'}]": "its field 'v' allows values, which is for a text or an integer",
    "optional double v = 2 [(column) = {allowed: '1'}]": "its field 'v' allows values, which is for a text or an integer",
    "optional bytes v = 2 [(column) = {allowed: 'x'}]": "its field 'v' allows values, which is for a text or an integer",
    "map<string, string> v = 2 [(column) = {allowed: 'x'}]": "its field 'v' allows values, which is for a text or an integer",
    "optional int64 v = 2 [(column) = {type: LOGICAL_TYPE_TIMESTAMP_MICROS allowed: '1'}]": "which is for a text or an integer",
    "optional string v = 2 [(column) = {type: LOGICAL_TYPE_JSON allowed: '1'}]": "which is for a text or an integer",
    "optional string v = 2 [(column) = {allowed: 'x' allowed: 'x'}]": "its field 'v' allows a value twice",
    "optional int32 v = 2 [(column) = {allowed: 'x'}]": "its field 'v' allows 'x', which is no integer as -1, 0 and 12 are",
    "optional int32 v = 2 [(column) = {allowed: '01'}]": "its field 'v' allows '01', which is no integer as -1, 0 and 12 are",
    "optional int32 v = 2 [(column) = {allowed: '-0'}]": "its field 'v' allows '-0', which is no integer",
    "optional int32 v = 2 [(column) = {allowed: '2147483648'}]": "its field 'v' allows '2147483648', which does not fit int32",
    "optional uint64 v = 2 [(column) = {allowed: '-1'}]": "its field 'v' allows '-1', which does not fit uint64",
    "optional int32 v = 2 [(column) = {allowed: '1' minimum: 2}]": "its field 'v' allows '1', which is below its minimum",
    "optional int32 v = 2 [(column) = {allowed: '3' maximum: 2}]": "its field 'v' allows '3', which is above its maximum",
    "optional string v = 2 [(column) = {allowed: 'éé' max_bytes: 3}]": "its field 'v' allows 'éé', which has more than its 3 bytes",
    "string v = 2 [(column) = {allowed: 'x'}]": "its field 'v' reads as '' where it is unset, which it does not allow: make it optional",
    "int32 v = 2 [(column) = {allowed: '1'}]": "its field 'v' reads as 0 where it is unset, which it does not allow: make it optional",
    "message M { optional bool x = 1 [(column) = {allowed: '1'}]; } repeated M v = 2": "its field 'x' allows values",
}


def declared(field: str) -> Table:
    source = f'message Row {{ option (table) = {{ name: "x.y" key: "k" }}; string k = 1; {field}; }}'
    return table_of(messages(proto(source))["Row"])


@pytest.mark.parametrize(("field", "why"), CONTRADICTIONS.items())
def test_a_declaration_that_contradicts_itself_is_refused(field: str, why: str) -> None:
    with pytest.raises(IncompatibleTable) as caught:
        declared(field)
    assert why in caught.value.message


@pytest.mark.parametrize(
    "field", ["uint64 v = 2 [(column) = {allowed: ['0', '18446744073709551615']}]", "string v = 2 [(column) = {allowed: ''}]"]
)
def test_the_ends_of_a_type_and_what_is_unset_may_be_allowed(field: str) -> None:
    assert declared(field).by_name["v"].allowed


def test_of_two_definitions_the_later_says_what_is_allowed_also_of_a_wider_type() -> None:
    plain, narrow, wide = (
        declared(f"optional {kind} v = 2{options}")
        for kind, options in (
            ("int32", ""),
            ("int32", " [(column) = {allowed: ['1', '2'] maximum: 2}]"),
            ("int64", " [(column) = {allowed: '4294967296'}]"),
        )
    )
    other = declared("optional int32 w = 3 [(column) = {maximum: 1}]")
    assert merge(narrow, plain).by_name["v"].allowed == () and merge(narrow, plain).by_name["v"].maximum is None
    assert merge(plain, narrow).by_name["v"].allowed == ("1", "2")
    assert merge(narrow, wide).by_name["v"].allowed_set == {1 << 32}
    assert merge(wide, narrow).by_name["v"].type_name == "int64" and merge(wide, narrow).by_name["v"].allowed_set == {1, 2}
    both = merge(other, narrow).by_name
    assert (both["v"].maximum, both["w"].maximum) == (2, 1)
