"""What columns may hold, and whose rows they are, of a table that is made of a schema: declared, kept, changed, and in its ``.proto``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bucketcatalog import Catalog, IncompatibleTable, InvalidOption, InvalidRows
from bucketcatalog.format.compiled import tables_in
from bucketcatalog.format.definitions import table_of
from bucketcatalog.model.tables import Column, Parent

from ...kit.world import compiled, messages, proto, rows

RUNS = pa.schema([("id", pa.string()), ("n", pa.int32()), ("state", pa.string()), ("tags", pa.list_(pa.string()))])
STEPS = pa.schema([("step", pa.int64()), ("run", pa.string())])
NAME = "jobs.runs"
CHECKS: dict[str, Any] = {
    "minimum": {"n": 0},
    "maximum": {"n": 100},
    "allowed": {"state": ["new", "done"], "tags": ("a", "b")},
}


def column(catalog: Catalog, name: str, table: str = NAME) -> Column:
    return Catalog(catalog.store).database("default").look().table(table).by_name[name]


def put(catalog: Catalog, table: str, *given: dict[str, Any]) -> None:
    with catalog.writer("w") as writer, writer.transaction() as tx:
        for row in given:
            tx.put(table, row)


def test_what_is_not_allowed_is_refused_of_whoever_writes(tmp_path: Path) -> None:
    Catalog(tmp_path).create_table(NAME, RUNS, key=["id"], **CHECKS)
    elsewhere = Catalog(tmp_path)
    for row, says in (
        ({"n": -1}, "'n': the value -1 is below the minimum 0"),
        ({"n": 101}, "'n': the value 101 is above the maximum 100"),
        ({"state": "odd"}, "'state': the value 'odd' is none of those that are allowed"),
        ({"tags": ["a", "c"]}, "'tags': the value 'c' is none of those that are allowed"),
    ):
        with pytest.raises(InvalidRows, match=says):
            put(elsewhere, NAME, {"id": "x", **row})
    put(elsewhere, NAME, {"id": "x", "n": 100, "state": "done", "tags": ["b"]}, {"id": "y"})
    assert len(rows(elsewhere.snapshot(), NAME)) == 2


def test_checks_stay_until_others_are_given_and_follow_columns_that_are_renamed(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    assert catalog.create_table(NAME, RUNS, key=["id"], **CHECKS).committed is not None
    assert catalog.create_table(NAME, RUNS, key=["id"]).committed is None
    assert catalog.create_table(NAME, RUNS, key=["id"], **CHECKS).committed is None
    renamed = RUNS.set(1, pa.field("count", pa.int64()))
    catalog.create_table(NAME, renamed, key=["id"], rename={"n": "count"}, maximum={"count": 1 << 40}, allowed={"tags": None})
    count = column(catalog, "count")
    assert (count.minimum, count.maximum, count.type_name) == (0, 1 << 40, "int64")
    assert column(catalog, "tags").allowed == () and column(catalog, "state").allowed == ("new", "done")
    made = catalog.create_table(
        NAME, renamed, key=["id"], minimum={"count": None}, maximum={"count": None}, allowed={"count": [1, -2]}
    )
    assert column(catalog, "count").allowed == ("1", "-2") and not column(catalog, "tags").is_limited
    assert 'optional int64 count = 2 [(bucketcatalog.v1.column) = {allowed: "1" allowed: "-2"}];' in made.proto
    assert "repeated string tags = 4;" in made.proto


def test_the_proto_compiles_to_the_same_definition(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    runs = catalog.create_table(NAME, RUNS, key=["id"], id="id", **CHECKS)
    steps = catalog.create_table("jobs.steps", STEPS, key=["step"], parent=(NAME, "run"), parent_must_exist=True)
    for made in (runs, steps):
        held = catalog.registry.table(made.name)
        (descriptor,) = tables_in(compiled(made.proto, made.file), "compiled")
        assert held is not None and table_of(descriptor) == held and table_of(descriptor).definition == held.definition
    assert 'parent { table: "jobs.runs" field: "run" must_exist: true }' in steps.proto


def test_limits_of_a_proto_stay_also_in_what_lies_within(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    body = """message R { option (table) = { name: "jobs.runs" key: "id" parent: {table: "jobs.owners" field: "owner" must_exist: true} };
      string id = 1 [(column) = {max_bytes: 3}]; optional string owner = 2;
      message Part { optional int32 n = 1 [(column) = {minimum: 1}]; } repeated Part parts = 3; map<string, Part> by_name = 4; }"""
    owner = 'message O { option (table) = { name: "jobs.owners" key: "id" id: "id" }; string id = 1; }'
    catalog.register(list(messages(proto(owner, body)).values())[:2])
    catalog.declare(["jobs.owners", NAME])
    before = catalog.registry.table(NAME)
    made = catalog.create_table(NAME, catalog.snapshot().scan(NAME).schema.append(pa.field("more", pa.bool_())), key=["id"])
    assert made.added == ("more",) and before is not None
    after = Catalog(tmp_path).database("default").look().table(NAME)
    assert after.columns[:4] == before.columns and after.parent == Parent("jobs.owners", "owner", True)


def test_a_parent_that_must_exist_does_and_can_be_let_off(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    catalog.create_table(NAME, RUNS, key=["id"], id="id")
    catalog.create_table("jobs.steps", STEPS, key=["step"], parent=(NAME, "run"), parent_must_exist=True)
    with pytest.raises(InvalidRows, match=r"Row 0 .*column 'run': no row of 'jobs\.runs' that is live has the id 'x'"):
        put(Catalog(tmp_path), "jobs.steps", {"step": 1, "run": "x"})
    put(Catalog(tmp_path), NAME, {"id": "x"})
    put(Catalog(tmp_path), "jobs.steps", {"step": 1, "run": "x"}, {"step": 2})
    renamed = pa.schema([("step", pa.int64()), ("of", pa.string())])
    catalog.create_table("jobs.steps", renamed, key=["step"], rename={"run": "of"})
    with pytest.raises(InvalidRows, match="column 'of': no row"):
        put(Catalog(tmp_path), "jobs.steps", {"step": 3, "of": "y"})
    catalog.create_table("jobs.steps", renamed, key=["step"], parent_must_exist=False)
    put(Catalog(tmp_path), "jobs.steps", {"step": 3, "of": "y"})
    assert len(rows(catalog.snapshot(), "jobs.steps")) == 3


def test_a_column_that_is_removed_takes_its_limits_along_and_back(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    catalog.create_table(NAME, RUNS, key=["id"], **CHECKS)
    assert catalog.create_table(NAME, RUNS.remove(2), key=["id"], remove=["state"]).removed == ("state",)
    catalog.create_table(NAME, RUNS, key=["id"])
    assert column(catalog, "state").allowed == ("new", "done")


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"minimum": 3}, InvalidOption, "limits no column"),
        ({"minimum": {"n": "0"}}, InvalidOption, "'0' is no integer"),
        ({"minimum": {"n": True}}, InvalidOption, "True is no integer"),
        ({"maximum": {"n": 1 << 63}}, InvalidOption, "more than 64 bits"),
        ({"allowed": {"state": "new"}}, InvalidOption, "'new' is no list of values"),
        ({"allowed": {"state": []}}, InvalidOption, "[] is no list of values"),
        ({"allowed": {"state": [1.5]}}, InvalidOption, "1.5 is no text and no integer"),
        ({"minimum": {"m": 0}}, IncompatibleTable, "no column 'm' for its minimum"),
        ({"allowed": {"m": ["x"]}}, IncompatibleTable, "no column 'm' for its allowed values"),
        ({"minimum": {"state": 0}}, IncompatibleTable, "is for an integer"),
        ({"minimum": {"n": 2}, "maximum": {"n": 1}}, IncompatibleTable, "is above its maximum"),
        ({"allowed": {"n": ["x"]}}, IncompatibleTable, "allows 'x'"),
        ({"parent": "jobs.owners"}, InvalidOption, "is no parent"),
        ({"parent": ("jobs.owners", "owner")}, IncompatibleTable, "no column 'owner' for its parent"),
        ({"parent": ("jobs.owners", "state")}, IncompatibleTable, "cannot have the parent 'jobs.owners'"),
        ({"parent_must_exist": True}, IncompatibleTable, "has no parent"),
    ],
    ids=str,
)
def test_what_cannot_be_checked_is_refused_and_nothing_is_written(
    tmp_path: Path, options: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error) as caught:
        Catalog(tmp_path).create_table(NAME, RUNS, key=["id"], **options)
    assert says in str(caught.value) and not list(tmp_path.iterdir())
