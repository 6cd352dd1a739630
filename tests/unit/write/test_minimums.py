"""Minimums that tables declare: refused of rows and of columns alike, before anything is written; what is there is read and deleted."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from bucketcatalog import Catalog, InvalidRows, between
from bucketcatalog.maintain.restore import restore

from ...kit.world import World, messages, names, obj, proto, rows

LIST = pa.list_(pa.struct([("m", pa.int32()), ("n", pa.list_(pa.int64()))]))
SOURCE = """
message Row {
  option (table) = { name: "lab.rows" key: "k" };
  int32 k = 1 [(column) = {MINIMUM}];
  optional int64 one = 2 [(column) = {MINIMUM}];
  repeated sint32 several = 3 [(column) = {MINIMUM}];
  message Part { int32 m = 1 [(column) = {MINIMUM}]; repeated int64 n = 2 [(column) = {MINIMUM}]; }
  Part part = 4;
  repeated Part parts = 5;
  map<string, Part> by_name = 6;
  uint64 large = 7 [(column) = {MINIMUM}];
}
"""
SCHEMA = {
    "k": pa.int32(),
    "one": pa.int64(),
    "several": pa.list_(pa.int32()),
    "part": LIST.value_type,
    "parts": LIST,
    "by_name": pa.map_(pa.string(), LIST.value_type),
    "large": pa.uint64(),
}
GOOD: dict[str, Any] = {
    "k": -5,
    "one": -5,
    "several": [0, -5],
    "part": {"m": -5, "n": [-5, 9]},
    "parts": [{"m": -4}, {"n": [-5]}],
    "by_name": [("a", {"m": -5}), ("b", {"n": [7]})],
    "large": (1 << 64) - 1,
}
BELOW = [
    ("k", -6),
    ("one", -(1 << 63)),
    ("several", [0, 1, -6]),
    ("part", {"m": -6}),
    ("part", {"m": 1, "n": [0, -6]}),
    ("parts", [{"m": 0}, {"m": -6}]),
    ("parts", [{"m": 0}, {"n": [5, -7]}]),
    ("by_name", [("a", {"m": 0}), ("b", {"m": -6})]),
]


def catalog(world: World, minimum: str = "minimum: -5") -> Catalog:
    made = Catalog(world.store)
    made.register(messages(proto(SOURCE.replace("MINIMUM", minimum)))["Row"])
    return made


def as_arrow(given: list[dict[str, Any]]) -> pa.Table:
    return pa.table({name: pa.array([row.get(name) for row in given], kind) for name, kind in SCHEMA.items()})


@pytest.mark.parametrize("as_columns", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize(("name", "value"), BELOW)
def test_a_value_below_the_minimum_is_refused_by_row_and_column(name: str, value: Any, as_columns: bool) -> None:
    world = World()
    given = [{"k": 1}, GOOD, {"k": 2, name: value}, {"k": 3, name: value}]
    with world.writer(catalog=catalog(world)) as writer, writer.transaction() as tx:
        for event in (tx.put, tx.update):
            with pytest.raises(InvalidRows, match=rf"Row 2 for table 'lab.rows', column '{name}'.* below the minimum"):
                event("lab.rows", as_arrow(given) if as_columns else given)
        tx.put("lab.rows", as_arrow(given[:2]) if as_columns else given[:2])
    assert [row["k"] for row in rows(world.snapshot(), "lab.rows")] == [-5, 1]


EMPTY: list[dict[str, Any]] = [
    {"k": 1, "several": [], "parts": [], "by_name": [], "part": {"n": []}},
    {"k": 2, "parts": [{"n": []}, {}], "by_name": [("a", {"n": []})]},
    {"k": 3, "several": None, "part": None},
]


@pytest.mark.parametrize("as_columns", [False, True], ids=["rows", "columns"])
def test_where_there_is_nothing_nothing_is_below_the_minimum(as_columns: bool) -> None:
    world = World()
    with world.writer(catalog=catalog(world)) as writer:
        world.commit(writer, ("put", "lab.rows", as_arrow(EMPTY) if as_columns else EMPTY))
    assert [row["k"] for row in rows(world.snapshot(), "lab.rows")] == [1, 2, 3]


@pytest.mark.parametrize("as_columns", [False, True], ids=["rows", "columns"])
def test_rows_from_before_the_minimum_are_read_found_deleted_and_restored(as_columns: bool) -> None:
    world = World()
    old = [{"k": -9, "one": -9}, {"k": 1, "one": -8, "several": [-7]}]
    with world.writer(catalog=catalog(world, "")) as writer:
        before = world.commit(writer, ("put", "lab.rows", old))
        writer.checkpoint()
    keys: Any = [{"k": -9}, {"k": 1}]
    with world.writer("maintainer-1", catalog=catalog(world)) as writer:
        world.commit(writer, ("put", "lab.rows", {"k": 7}))
        snapshot = world.snapshot()
        assert snapshot.table("lab.rows").by_name["one"].minimum == -5
        assert [row["one"] for row in rows(snapshot, "lab.rows")] == [-9, -8, None]
        for where in ({"one": -9}, {"k": -9}, {"one": between(None, -9)}, {"k": [-9, -7]}):
            assert snapshot.scan("lab.rows", where=where).to_arrow()["k"].to_pylist() == [-9]
        found = snapshot.get("lab.rows", k=-9)
        assert found is not None and found["one"] == -9
        world.commit(writer, ("delete", "lab.rows", pa.table({"k": pa.array([-9, 1], pa.int32())}) if as_columns else keys))
        assert [row["k"] for row in rows(world.snapshot(), "lab.rows")] == [7]
        writer.checkpoint()
        world.clock.tick()
        restore(world.catalog().database("default"), writer, "lab.rows", None, before.version, skip_collected=False)
    assert rows(world.snapshot(), "lab.rows") == rows(world.snapshot(version=before.version), "lab.rows") != []


@pytest.mark.parametrize("table", ["objects", "object_versions"])
def test_no_object_is_smaller_than_nothing(table: str) -> None:
    world = World()
    more = {"version_id": "v"} if table == "object_versions" else {}
    with world.writer() as writer, writer.transaction() as tx:
        for given in ([obj("a", content_length=-1, **more)], pa.Table.from_pylist([obj("a", content_length=-1, **more)])):
            with pytest.raises(InvalidRows, match=r"Row 0 .*'content_length'.* below the minimum 0"):
                tx.put(table, given)
        tx.put(table, obj("b", content_length=0, **more))
    assert names(world.snapshot(), table) == ["b"]
