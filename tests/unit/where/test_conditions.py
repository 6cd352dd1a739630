"""Ranges as conditions: on keys of every type, on any other column that has an order, and what has none."""

from __future__ import annotations

import datetime
import math
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bucketcatalog import Catalog, CatalogWarning, InvalidOption, InvalidRows, between, prefix
from bucketcatalog.model.keys import encode_key
from bucketcatalog.model.tables import TIMESTAMP, Shape, Table
from bucketcatalog.query.snapshot import Snapshot
from bucketcatalog.where.conditions import Where, check, key_ranges

from ...kit.world import BEYOND, BUCKET, OWNER, START, World, messages, obj, time_at

TABLE = """
syntax = "proto3";
import "bucketcatalog/v1/options.proto";
message Reading {
  option (bucketcatalog.v1.table) = {
    name: "lab.readings" key: "number" key: "text" key: "id" key: "large" key: "raw"
  };
  int32 number = 1;
  string text = 2;
  bytes id = 3 [(bucketcatalog.v1.column) = {type: LOGICAL_TYPE_UUID}];
  uint64 large = 4;
  bytes raw = 5;
  optional double share = 6;
  optional int64 at = 7 [(bucketcatalog.v1.column) = {type: LOGICAL_TYPE_TIMESTAMP_MICROS}];
}
"""
VALUES: dict[str, list[Any]] = {
    "number": [-(1 << 31), -1, 0, 1, (1 << 31) - 1],
    "text": ["", "\x00", "\x00\x01", "a", "a\x00b", "b", "\U0010ffff"],
    "id": [str(UUID(int=n)) for n in (0, 1, 255, 256, (1 << 128) - 1)],
    "large": [0, 1, 255, (1 << 64) - 1],
    "raw": [b"", b"\x00", b"\x00\xff", b"a", b"\xff", b"\xff\xff"],
}
INCLUSIVE = ["both", "left", "right", "neither"]


@pytest.fixture(scope="module")
def table() -> Table:
    world = World()
    catalog = Catalog(world.store)
    catalog.register(messages(TABLE)["Reading"])
    with world.writer(catalog=catalog) as writer:
        world.commit(writer, ("put", "lab.readings", {name: values[0] for name, values in VALUES.items()}))
    return world.snapshot().table("lab.readings")


def allows(condition: Any, value: Any) -> bool:
    if isinstance(condition, list):
        return value in condition
    value, low, high = rank(value), rank(condition.low), rank(condition.high)
    above = condition.low is None or (value > low if condition.above else value >= low)
    return bool(above and (condition.high is None or (value < high if condition.below else value <= high)))


def rank(value: Any) -> Any:
    """What a number is ordered by: whatever is no number comes after all that are."""
    return (math.isnan(value), 0.0 if math.isnan(value) else value) if isinstance(value, float) else value


@st.composite
def conditions(draw: st.DrawFn) -> Where:
    """Values for the first columns of the key, and a range of the next."""
    count = draw(st.integers(0, len(VALUES) - 1))
    found: dict[str, Any] = {}
    for at, (name, values) in enumerate(VALUES.items()):
        if at < count:
            found[name] = draw(st.lists(st.sampled_from(values), min_size=1, max_size=2))
        elif at == count:
            ends = st.none() | st.sampled_from(values)
            found[name] = between(draw(ends), draw(ends), inclusive=draw(st.sampled_from(INCLUSIVE)))
    return found


@settings(max_examples=300, deadline=None)
@given(where=conditions(), row=st.fixed_dictionaries({name: st.sampled_from(values) for name, values in VALUES.items()}))
def test_a_key_lies_in_the_ranges_that_conditions_make_if_they_allow_it(table: Table, where: Where, row: dict[str, Any]) -> None:
    stored = check(table, where, table.surface_schema)
    ranges = key_ranges(table, where, stored)
    key = encode_key(table, row)
    within = [keys for keys in ranges if keys.covers(key, key)]
    assert len(within) == all(allows(condition, row[name]) for name, condition in where.items())
    assert all(keys.stop is None or keys.start < keys.stop for keys in ranges)


@pytest.mark.parametrize("inclusive", INCLUSIVE)
def test_rows_in_a_range_of_any_column_are_found(inclusive: str) -> None:
    world = World()
    catalog = Catalog(world.store)
    catalog.register(messages(TABLE)["Reading"])
    share = [-1.5, 0.0, 0.5, float("nan"), float("inf"), None]
    rows = [
        {
            **{name: values[n % len(values)] for name, values in VALUES.items()},
            "share": share[n % 6],
            "at": START + n if n % 5 else None,
        }
        for n in range(60)
    ]
    with world.writer(catalog=catalog) as writer:
        world.commit(writer, ("put", "lab.readings", rows))
        for _ in range(2):
            everything = world.snapshot().scan("lab.readings").to_arrow().to_pylist()
            ends: dict[str, list[Any]] = {
                **VALUES,
                "share": [-1.5, 0.25, 0.5, math.nan],
                "at": [time_at(START + n) for n in (3, 7, 40)],
            }
            for name, values in ends.items():
                for low in [None, values[1], values[2]]:
                    for high in [None, values[1], values[-1]]:
                        condition = between(low, high, inclusive=inclusive)
                        found = world.snapshot().scan("lab.readings", where={name: condition}).to_arrow().to_pylist()
                        expected = [row for row in everything if row[name] is not None and allows(condition, row[name])]
                        assert list(map(repr, found)) == list(map(repr, expected))
            writer.checkpoint()


def test_columns_that_every_table_has_on_request_have_ranges_too() -> None:
    world = World()
    with world.writer() as writer:
        times = [world.commit(writer, ("put", "objects", obj(f"n{n}"))).commit_time for n in range(5)]
    snapshot = world.snapshot()
    for where, expected in (
        ({"_revision": between(1, 3, inclusive="left")}, ["n1", "n2"]),
        ({"_commit_timestamp": between(time_at(times[3]))}, ["n3", "n4"]),
        ({"_writer": between("v", "x"), "name": between(high="n1")}, ["n0", "n1"]),
        ({"_writer": between("x")}, []),
    ):
        assert snapshot.scan("objects", where=where).to_arrow()["name"].to_pylist() == expected
    assert snapshot.scan("log", where={"revision": between(2, 3)}).to_arrow().num_rows == 2


@pytest.mark.parametrize(
    ("name", "condition", "said"),
    [
        ("legal_hold", between(False, True), "no order"),
        ("tags", between("a", "b"), "cannot be compared with a value"),
        ("properties", between("a", "b"), "no order"),
        ("content_length", between("a"), "does not fit"),
        ("content_length", between(None, 1.5), "does not fit"),
        ("owner", between("x"), "does not fit"),
        ("_revision", between("x"), "does not fit"),
        ("deleted_at", between("tomorrow"), "does not fit"),
        *(
            (name, condition, "outside of the years 1 to 9999")
            for name in ("created", "deleted_at", "_commit_timestamp")
            for time in BEYOND
            for condition in (time, [time], between(time))
        ),
        ("deleted_at", between(None, object()), "does not fit"),
    ],
)
def test_a_range_that_does_not_fit_is_refused_by_name(name: str, condition: Any, said: str) -> None:
    world = World()
    with world.writer() as writer:
        world.commit(writer, ("put", "objects", obj("a")))
    with pytest.raises(InvalidOption, match=f"{name}.*{said}"):
        world.snapshot().scan("deleted_objects", where={name: condition})


@pytest.mark.parametrize(
    ("where", "next_step"),
    [
        ({"content_length": "x"}, "Compare it with a value of its type, int64, a list of these or between(...)."),
        ({"name": prefix(b"x")}, "Give a value of its type, string."),
        ({"_revision": "x"}, "Compare it with a value of its type, int64."),
    ],
)
def test_the_next_step_names_the_type_without_an_article(where: dict[str, Any], next_step: str) -> None:
    world = World()
    with world.writer() as writer:
        world.commit(writer, ("put", "objects", obj("a")))
    with pytest.raises(InvalidOption) as error:
        world.snapshot().scan("objects", where=where)
    assert error.value.next_step == next_step


def test_a_condition_that_does_not_fit_is_answered_with_those_that_the_column_takes() -> None:
    world = World()
    catalog = Catalog(world.store)
    catalog.register(messages(TABLE)["Reading"])
    with world.writer(catalog=catalog) as writer:
        world.commit(writer, ("put", "objects", obj("a")))
        world.commit(writer, ("put", "lab.readings", {name: values[0] for name, values in VALUES.items()}))
    seen = set()
    for table in map(world.snapshot().table, ("objects", "lab.readings")):
        for column in (column for column in table.columns if column.shape is Shape.ONE):
            with pytest.raises(InvalidOption) as error:
                world.snapshot().scan(table.name, where={column.name: object()})
            for word, condition in (("prefix(...)", prefix("a")), ("between(...)", between())):
                takes = True
                try:
                    world.snapshot().scan(table.name, where={column.name: condition})
                except InvalidOption:
                    takes = False
                assert (word in error.value.next_step) == takes, (column, error.value.next_step)
                seen.add((word, takes))
    assert len(seen) == 4


@pytest.mark.parametrize("owner", ["x", ["x"], None, object()])
def test_a_listing_is_told_the_one_value_that_it_needs(owner: Any) -> None:
    world = World()
    with world.writer() as writer:
        world.commit(writer, ("put", "objects", obj("a")))
    with pytest.raises(InvalidOption, match=r"'owner'.* Next: Give .* uuid\.$"):
        world.snapshot().list("objects", owner=owner, bucket_id=BUCKET)


def test_a_range_says_which_ends_belong_to_it() -> None:
    with pytest.raises(InvalidOption, match="inclusive='all'"):
        between(1, 2, inclusive="all")


def test_lists_in_tables_about_the_catalog_have_no_order() -> None:
    world = World()
    with world.writer() as writer:
        world.commit(writer, ("put", "objects", obj("a")))
    with pytest.raises(InvalidOption, match=r"'key'.*no order"):
        world.snapshot().scan("tables", where={"key": between(["a"], None)})


UNSAID = """
syntax = "proto3";
import "bucketcatalog/v1/options.proto";
message Plain {
  option (bucketcatalog.v1.table) = { name: "lab.plain" key: "k" };
  int32 k = 1;
  int32 number = 2;
  string text = 3;
  bytes raw = 4;
  double share = 5;
  int64 at = 6 [(bucketcatalog.v1.column) = {type: LOGICAL_TYPE_TIMESTAMP_MICROS}];
  bytes id = 7 [(bucketcatalog.v1.column) = {type: LOGICAL_TYPE_UUID}];
}
"""
SAID: dict[str, list[Any]] = {
    "number": [-10, -9, 7],
    "text": ["a", "x", "z"],
    "raw": [b"\x00", b"a", b"b"],
    "share": [-2.5, -0.5, 3.5],
    "at": [time_at(-5), time_at(-1), time_at(5)],
    "id": [str(UUID(int=n)) for n in (1, 2, 3)],
}
ZEROS = {"number": 0, "text": "", "raw": b"", "share": 0.0, "at": time_at(0), "id": str(UUID(int=0))}


@pytest.fixture(scope="module")
def plain() -> Snapshot:
    """A table whose columns have no presence: a row that says nothing of them, and three that do."""
    world = World()
    catalog = Catalog(world.store)
    catalog.register(messages(UNSAID)["Plain"])
    rows = [{"k": 0}, *({"k": n + 1, **{name: values[n] for name, values in SAID.items()}} for n in range(3))]
    with world.writer(catalog=catalog) as writer:
        world.commit(writer, ("put", "lab.plain", rows))
    return world.snapshot()


def keys_found(snapshot: Snapshot, where: Where, table: str = "lab.plain") -> list[int]:
    return snapshot.scan(table, columns=["k"], where=where).to_arrow()["k"].to_pylist()


@pytest.mark.parametrize("name", SAID)
@pytest.mark.parametrize("inclusive", INCLUSIVE)
def test_an_open_end_is_open_on_a_column_without_presence_too(plain: Snapshot, name: str, inclusive: str) -> None:
    values = [ZEROS[name], *SAID[name]]
    for end in values:
        for condition in (
            between(end, None, inclusive=inclusive),
            between(None, end, inclusive=inclusive),
            between(inclusive=inclusive),
        ):
            expected = [k for k, value in enumerate(values) if allows(condition, value)]
            assert keys_found(plain, {name: condition}) == expected, condition


@pytest.mark.parametrize("name", SAID)
def test_no_row_is_without_a_value_of_a_column_without_presence(plain: Snapshot, name: str) -> None:
    assert keys_found(plain, {name: None}) == []
    assert keys_found(plain, {name: [None]}) == []
    assert keys_found(plain, {name: [None, SAID[name][1]]}) == [2]
    assert keys_found(plain, {name: ZEROS[name]}) == [0]


def test_none_in_a_list_means_the_rows_without_a_value() -> None:
    world = World()
    with world.writer() as writer:
        rows = [obj("a", content_length=1), obj("b"), obj("c", content_length=3)]
        world.commit(writer, ("put", "objects", rows), ("delete", "objects", obj("c")))
        first = world.commit(writer, ("put", "objects", obj("c", content_length=3)))
        snapshot = world.snapshot()
        for where, expected in (
            ({"content_length": [None, 3]}, ["b", "c"]),
            ({"content_length": [None]}, ["b"]),
            ({"content_length": []}, []),
            ({"name": [None, "a"]}, ["a"]),
            ({"name": [None]}, []),
            ({"owner": OWNER, "bucket_id": [BUCKET, None], "name": ["b", None]}, ["b"]),
            ({"_revision": [None, 1]}, ["c"]),
        ):
            assert snapshot.scan("objects", columns=["name"], where=where).to_arrow()["name"].to_pylist() == expected, where
        assert snapshot.scan("log", where={"revision": [None, first.revision]}).to_arrow().num_rows == 1
        assert snapshot.scan("deleted_objects", where={"deleted_at": [None]}).to_arrow().num_rows == 0


FLOATS = """
syntax = "proto3";
import "bucketcatalog/v1/options.proto";
message Number {
  option (bucketcatalog.v1.table) = { name: "lab.numbers" key: "k" };
  int32 k = 1;
  optional KIND said = 2;
  KIND unsaid = 3;
}
"""
LARGEST = (2 - 2**-23) * 2.0**127
NUMBERS = [-math.inf, -LARGEST, -1.5, -(2.0**-149), -0.0, 0.0, 2.0**-149, 1.0, LARGEST, math.inf, math.nan, -math.nan]


@pytest.mark.parametrize("kind", ["float", "double"])
@pytest.mark.parametrize("name", ["said", "unsaid"])
def test_zeros_are_equal_and_what_is_no_number_equals_itself_and_comes_last_however_one_asks(kind: str, name: str) -> None:
    world = World()
    catalog = Catalog(world.store)
    catalog.register(messages(FLOATS.replace("KIND", kind))["Number"])
    with world.writer(catalog=catalog) as writer:
        world.commit(writer, ("put", "lab.numbers", [{"k": n, "said": v, "unsaid": v} for n, v in enumerate(NUMBERS)]))
        for _ in range(2):
            snapshot = world.snapshot()
            for one in NUMBERS:
                equal = [k for k, value in enumerate(NUMBERS) if rank(value) == rank(one)]
                assert keys_found(snapshot, {name: one}, "lab.numbers") == equal, one
                assert keys_found(snapshot, {name: [one, one]}, "lab.numbers") == equal, one
                for other in [None, *NUMBERS]:
                    for inclusive in INCLUSIVE:
                        condition = between(one, other, inclusive=inclusive)
                        expected = [k for k, value in enumerate(NUMBERS) if allows(condition, value)]
                        assert keys_found(snapshot, {name: condition}, "lab.numbers") == expected, condition
            writer.checkpoint()


@pytest.mark.parametrize("condition", [10**400, [0.5, 10**400], between(10**400), between(None, -(10**400))])
def test_a_number_too_large_to_compare_with_is_refused_by_name(condition: Any) -> None:
    world = World()
    catalog = Catalog(world.store)
    catalog.register(messages(FLOATS.replace("KIND", "double"))["Number"])
    with world.writer(catalog=catalog) as writer:
        world.commit(writer, ("put", "lab.numbers", {"k": 1}))
    with pytest.raises(InvalidOption, match=r"'said'.*does not fit"):
        world.snapshot().scan("lab.numbers", where={"said": condition})


LIMITED = """
syntax = "proto3";
import "bucketcatalog/v1/options.proto";
message Limited {
  option (bucketcatalog.v1.table) = { name: "lab.limited" key: "k" };
  int32 k = 1;
  string facts = 2 [(bucketcatalog.v1.column) = {type: LOGICAL_TYPE_JSON}];
  string text = 3 LIMIT;
  bytes raw = 4 LIMIT;
}
"""


def test_text_is_compared_as_it_is_whatever_writers_would_refuse() -> None:
    world = World()
    unlimited, limited = (Catalog(world.store), Catalog(world.store))
    unlimited.register(messages(LIMITED.replace("LIMIT", ""))["Limited"])
    limited.register(messages(LIMITED.replace("LIMIT", "[(bucketcatalog.v1.column) = {max_bytes: 2}]"))["Limited"])
    with world.writer(catalog=unlimited) as writer:
        world.commit(writer, ("put", "lab.limited", [{"k": 1, "text": "long", "raw": b"long"}, {"k": 2, "facts": "{}"}]))
    with world.writer("v", catalog=limited) as writer, pytest.warns(CatalogWarning, match=r"text, raw are for 'w'"):
        world.commit(writer, ("put", "lab.limited", {"k": 3, "facts": '{"a":1}'}))
    snapshot = world.snapshot()
    for where, expected in (
        ({"facts": ""}, [1]),
        ({"facts": "no JSON"}, []),
        ({"facts": ["{}", "{"]}, [2]),
        ({"facts": {"a": 1}}, [3]),
        ({"text": "long"}, [1]),
        ({"raw": [b"long", b"longer"]}, [1]),
        ({"text": between("lon", "long")}, [1]),
    ):
        assert keys_found(snapshot, where, "lab.limited") == expected, where


@pytest.mark.parametrize("large", [1e39, -1e300, LARGEST * (1 + 2**-24)])
def test_a_number_that_no_float_holds_is_refused_however_it_is_given(large: float) -> None:
    world = World()
    catalog = Catalog(world.store)
    catalog.register(messages(FLOATS.replace("KIND", "float"))["Number"])
    with world.writer(catalog=catalog) as writer, writer.transaction() as tx:
        for given in ({"k": 1, "said": large}, pa.table({"k": pa.array([1], pa.int32()), "said": [large]})):
            with pytest.raises(InvalidRows, match="'said'"):
                tx.put("lab.numbers", given)
        ends = [LARGEST, -LARGEST, math.inf, -math.inf, math.nan, None]
        tx.put("lab.numbers", pa.table({"k": pa.array(range(6), pa.int32()), "said": pa.array(ends, pa.float64())}))
        tx.put("lab.numbers", pa.table({"k": pa.array([7], pa.int32()), "said": pa.array([1.5], pa.float16())}))
    said = world.snapshot().scan("lab.numbers").to_arrow()["said"].to_pylist()
    assert repr(said) == repr([*ends, 1.5])


@pytest.mark.parametrize(
    ("kind", "condition", "other"),
    [
        (pa.string(), "x", 5),
        (pa.string(), between("a", "b"), between("a", 5)),
        (pa.int64(), [1, None], "x"),
        (pa.bool_(), True, "x"),
        (pa.date32(), datetime.date(2024, 1, 2), "x"),
        (pa.timestamp("s", "UTC"), time_at(START), "x"),
        (pa.list_(pa.string()), None, between(["a"], ["b"])),
    ],
    ids=str,
)
def test_a_column_that_is_called_like_the_end_of_tombstones_is_compared_as_what_it_is(
    kind: pa.DataType, condition: Any, other: Any
) -> None:
    view, schema = Table("view", (), ()), pa.schema([("deleted_at", kind)])
    assert check(view, {"deleted_at": condition}, schema) == {}
    with pytest.raises(InvalidOption, match="'deleted_at'"):
        check(view, {"deleted_at": other}, schema)


def test_a_condition_on_the_end_of_tombstones_is_in_microseconds() -> None:
    view, schema = Table("view", (), ()), pa.schema([("deleted_at", TIMESTAMP)])
    assert check(view, {"deleted_at": [time_at(START), None]}, schema) == {"deleted_at": [START]}
    assert check(view, {"deleted_at": between(time_at(START))}, schema) == {"deleted_at": between(START)}
