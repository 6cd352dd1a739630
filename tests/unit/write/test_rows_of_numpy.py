"""Numbers of numpy's and times of pandas' mean in rows and conditions what Python's do, and are refused where those are."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from bucketcatalog import InvalidOption, InvalidRows, InvalidTime

from ...kit.world import World, messages, obj, proto, rows

TABLE = "test.numbers"
ROW = """
message Row {
  option (table) = { name: "test.numbers" key: "k" };
  int32 k = 1;
  optional uint64 large = 2;
  optional float near = 3;
  optional double exact = 4;
  optional bool sure = 5;
  optional Color color = 6;
  optional int64 at = 7 [(column) = {type: LOGICAL_TYPE_TIMESTAMP_MICROS}];
  repeated int32 many = 8;
}
"""
TAKEN: list[tuple[str, Any, Any]] = [
    ("large", np.uint64(2**64 - 1), 2**64 - 1),
    ("large", np.int8(5), 5),
    ("near", np.float32(0.1), float(np.float32(0.1))),
    ("near", np.float16(0.5), 0.5),
    ("near", np.float32("inf"), math.inf),
    ("exact", np.float32(0.1), float(np.float32(0.1))),
    ("exact", np.int16(-3), -3.0),
    ("sure", np.bool_(True), True),
    ("color", np.int64(1), "BLUE"),
    ("at", np.int64(5), pd.Timestamp(5, unit="us", tz="UTC")),
    ("at", pd.Timestamp(5, unit="us"), pd.Timestamp(5, unit="us", tz="UTC")),
]
REFUSED: list[tuple[str, Any]] = [
    ("large", np.int8(-1)),
    ("large", np.bool_(True)),
    ("large", np.float64(5)),
    ("large", np.timedelta64(5, "us")),
    ("large", np.timedelta64(5, "ns")),
    ("near", np.float64(1e300)),
    ("exact", np.bool_(True)),
    ("exact", np.longdouble("1e400")),
    ("sure", np.int8(1)),
    ("color", np.int64(2**31)),
    ("color", np.bool_(True)),
    ("color", np.timedelta64(1, "ns")),
    ("at", np.float64(5)),
    ("at", np.int64(2**62)),
    ("at", pd.Timestamp(5, unit="ns", tz="UTC")),
    ("at", pd.NaT),
]


@pytest.fixture
def world() -> World:
    world = World()
    catalog = world.catalog()
    catalog.register(messages(proto("enum Color { RED = 0; BLUE = 1; }", ROW))["Row"])
    with world.writer("node-1", catalog=catalog) as writer:
        world.commit(writer, ("put", TABLE, {"k": 0}))
    return world


@pytest.mark.parametrize(("name", "given", "meant"), TAKEN)
def test_numbers_of_numpy_are_taken(world: World, name: str, given: Any, meant: Any) -> None:
    with world.writer("node-1") as writer:
        world.commit(writer, ("put", TABLE, {"k": np.int64(1), name: given}))
    found = world.snapshot().get(TABLE, k=np.int8(1))
    assert found is not None and found[name] == meant
    for condition in (given, [given]):
        assert world.snapshot().scan(TABLE, where={name: condition}).to_arrow()["k"].to_pylist() == [1]


def test_an_array_of_numpy_is_a_list(world: World) -> None:
    with world.writer("node-1") as writer:
        world.commit(writer, ("put", TABLE, {"k": 1, "many": np.array([1, 2])}))
    assert rows(world.snapshot(), TABLE)[1]["many"] == [1, 2]


@pytest.mark.parametrize(("name", "given"), REFUSED, ids=lambda value: repr(value))
def test_what_of_python_would_be_refused_is_refused_of_numpy_and_pandas(world: World, name: str, given: Any) -> None:
    with world.writer("node-1") as writer, pytest.raises(InvalidRows, match=name):
        world.commit(writer, ("put", TABLE, {"k": 1, name: given}))
    with pytest.raises(InvalidOption, match=name):
        world.snapshot().scan(TABLE, where={name: given})


def test_nanoseconds_are_refused_however_a_time_is_given(world: World) -> None:
    time = pd.Timestamp(1_700_000_000_000_000_001, unit="ns", tz="UTC")
    with world.writer("node-1") as writer:
        for given in ({"k": 1, "at": time}, pa.table({"k": [1], "at": pa.array([time], pa.timestamp("ns", "UTC"))})):
            with pytest.raises(InvalidRows, match="at"):
                world.commit(writer, ("put", TABLE, given))
        world.commit(writer, ("put", "objects", obj("a")))
    with pytest.raises(InvalidOption, match="finer than microseconds"):
        world.snapshot().scan("objects", where={"_commit_timestamp": time})
    with pytest.raises(InvalidTime, match="finer than microseconds"):
        world.snapshot(timestamp=time)
