"""What becomes of files with different columns: which types hold both without loss, and what a reader is told where none does."""

from __future__ import annotations

import datetime
from decimal import Decimal
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bucketcatalog.errors import InvalidOption
from bucketcatalog.model.widening import cast, widened
from bucketcatalog.systems.iox.errors import SchemaConflict
from bucketcatalog.systems.iox.schemas import on_conflict

from ....kit.data_tables import Lake, of

MOMENT = datetime.datetime(1969, 12, 31, 23, 59, 58, tzinfo=datetime.UTC)
VALUES: dict[pa.DataType, list[Any]] = {
    **{kind: [int(np.iinfo(name).min), int(np.iinfo(name).max), None] for name, kind in (
        (f"{sign}int{bits}", getattr(pa, f"{sign}int{bits}")()) for sign in ("", "u") for bits in (8, 16, 32, 64)
    )},
    pa.float16(): [np.float16(-0.5), np.float16(65504), None],
    pa.float32(): [-0.5, float(np.finfo("float32").max), None],
    pa.float64(): [-0.1, 1e300, None],
    pa.decimal128(5, 2): [Decimal("-999.99"), None],
    pa.decimal128(20, 0): [Decimal(10**19), None],
    pa.decimal256(60, 10): [Decimal(10) ** 49, None],
    pa.bool_(): [True, None],
    pa.string(): ["a", "", None],
    pa.binary(): [b"\xff", None],
    pa.binary(2): [b"ab", None],
    pa.date32(): [MOMENT.date(), None],
    pa.date64(): [MOMENT.date(), None],
    **{pa.timestamp(unit, zone): [MOMENT, None] for unit in ("s", "ms", "us", "ns") for zone in (None, "UTC")},
    pa.timestamp("us", "Europe/Amsterdam"): [MOMENT, None],
    pa.time32("s"): [datetime.time(1, 2, 3), None],
    pa.time32("ms"): [datetime.time(1, 2, 3, 4_000), None],
    pa.time64("us"): [datetime.time(1, 2, 3, 4), None],
    pa.time64("ns"): [datetime.time(1, 2, 3, 4), None],
    **{pa.duration(unit): [datetime.timedelta(seconds=-5), None] for unit in ("s", "ms", "us", "ns")},
    pa.null(): [None],
    pa.list_(pa.int8()): [[1, None], [], None],
    pa.list_(pa.int32()): [[1 << 30], None],
    pa.map_(pa.string(), pa.int8()): [[("a", 1)], None],
    pa.map_(pa.string(), pa.int16()): [[("a", 999)], None],
    pa.struct([("a", pa.int8())]): [{"a": 1}, None],
    pa.struct([("a", pa.int16()), ("b", pa.string())]): [{"a": 300, "b": "x"}, None],
}  # fmt: skip
"""Values at the ends of what types hold."""
PAIRS = [*combinations(VALUES, 2)]
WIDER = [
    (pa.int8(), pa.int64(), pa.int64()),
    (pa.uint8(), pa.int8(), pa.int16()),
    (pa.uint32(), pa.int8(), pa.int64()),
    (pa.uint8(), pa.uint64(), pa.uint64()),
    (pa.int16(), pa.float32(), pa.float32()),
    (pa.int32(), pa.float32(), pa.float64()),
    (pa.uint32(), pa.float64(), pa.float64()),
    (pa.float32(), pa.float64(), pa.float64()),
    (pa.decimal128(5, 2), pa.decimal128(20, 0), pa.decimal128(22, 2)),
    (pa.decimal128(38, 0), pa.decimal128(38, 38), pa.decimal256(76, 38)),
    (pa.timestamp("s"), pa.timestamp("ms"), pa.timestamp("ms")),
    (pa.time32("s"), pa.time64("us"), pa.time64("us")),
    (pa.binary(2), pa.binary(3), pa.binary()),
    (pa.null(), pa.string(), pa.string()),
    (pa.list_(pa.int8()), pa.list_(pa.float64()), pa.list_(pa.float64())),
]
APART = [
    (pa.uint64(), pa.int8()),
    (pa.int64(), pa.float64()),
    (pa.uint64(), pa.float32()),
    (pa.string(), pa.int64()),
    (pa.string(), pa.binary()),
    (pa.bool_(), pa.int8()),
    (pa.timestamp("us"), pa.timestamp("us", "UTC")),
    (pa.timestamp("us", "UTC"), pa.timestamp("us", "Europe/Amsterdam")),
    (pa.date32(), pa.timestamp("us")),
    (pa.int64(), pa.decimal128(20, 0)),
    (pa.decimal256(76, 0), pa.decimal256(76, 76)),
    (pa.list_(pa.int8()), pa.int8()),
    (pa.map_(pa.string(), pa.int8()), pa.map_(pa.int8(), pa.int8())),
    (pa.struct([("a", pa.int8())]), pa.struct([("a", pa.string())])),
]


@pytest.mark.parametrize(("one", "other"), PAIRS, ids=str)
def test_a_wider_type_holds_every_value_of_both_and_does_not_depend_on_their_order(one: pa.DataType, other: pa.DataType) -> None:
    both = widened(one, other)
    back = widened(other, one)
    assert (both is None) is (back is None)
    if both is None:
        return
    assert pa.types.is_struct(both) or both == back
    for kind in (one, other):
        values = pa.chunked_array([pa.array(VALUES[kind], kind)])
        found = cast(values, both)
        assert found.type == both
        if not pa.types.is_struct(kind) and not pa.types.is_null(kind):
            assert found.cast(kind).equals(values)
        assert widened(both, kind) == both


@pytest.mark.parametrize(("one", "other", "both"), WIDER)
def test_the_wider_type_is_the_narrowest(one: pa.DataType, other: pa.DataType, both: pa.DataType) -> None:
    assert widened(one, other) == both


@pytest.mark.parametrize(("one", "other"), APART)
def test_nothing_holds_both_without_loss(one: pa.DataType, other: pa.DataType) -> None:
    assert widened(one, other) is None
    assert widened(other, one) is None


def test_structs_have_the_fields_of_both_and_nulls_where_one_lacks_them() -> None:
    one, other = pa.struct([("a", pa.int8())]), pa.struct([("b", pa.string()), ("a", pa.float32())])
    both = widened(one, other)
    assert both == pa.struct([("a", pa.float32()), ("b", pa.string())])
    values = pa.chunked_array(
        [pa.array([{"a": 1}, None, {"a": None}], one).slice(0, 3), pa.array([{"a": 7}, {"a": 2}], one).slice(1)]
    )
    assert cast(values, both).to_pylist() == [{"a": 1.0, "b": None}, None, {"a": None, "b": None}, {"a": 2.0, "b": None}]


def test_nested_structs_are_shown_as_their_table_has_them() -> None:
    lake = Lake()
    lake.append_table(of([[{"a": 1}], None, []], pa.list_(pa.struct([("a", pa.int8())]))))
    lake.append_table(of([[{"b": "x", "a": 300}]], pa.list_(pa.struct([("b", pa.string()), ("a", pa.int16())]))))
    expected = [[{"a": 1, "b": None}], None, [], [{"a": 300, "b": "x"}]]
    assert [row["v"] for row in lake.rows()] == expected
    lake.append_table(of([[{"a": 1}]], pa.list_(pa.struct([("a", pa.int8())]))))
    assert lake.compact().made == 1
    found = [row["v"] for row in lake.rows()]
    assert len(found) == 5
    assert all(value in found for value in expected)


@pytest.fixture
def lake() -> Lake:
    """Files with ``v`` as whole numbers, then as text, then with another column, each of one row."""
    lake = Lake()
    lake.append_table(of([1], pa.int32()))
    lake.append_table(of(["a"], pa.string()))
    lake.append_table(pa.table({"v": pa.array([2], pa.int8()), "x": [5]}))
    return lake


def test_cast_names_the_column_and_both_files_that_do_not_go_together(lake: Lake) -> None:
    with pytest.raises(SchemaConflict) as caught:
        lake.scan()
    one, other = (row["path"] for row in sorted(lake.files(), key=lambda row: row["chunk"])[:2])
    assert "'v'" in caught.value.message and "int32 in " + one in caught.value.message
    assert "string in " + other in caught.value.message


def test_skip_leaves_out_what_does_not_go_with_older_files_and_says_how_many(lake: Lake) -> None:
    read = lake.scan(on_schema_conflict="skip")
    assert read.to_arrow().to_pylist() == [{"v": 1, "x": None}, {"v": 2, "x": 5}]
    assert read.plan.skipped == 1
    assert "left out: 1 whose columns do not go together with those of others" in read.explain()


def test_error_takes_no_difference_and_names_both_files() -> None:
    lake = Lake()
    lake.append(1)
    lake.append({"v": 1, "x": None})
    one, other = sorted(lake.files(), key=lambda row: row["chunk"])
    with pytest.raises(SchemaConflict) as caught:
        lake.scan(on_schema_conflict="error")
    assert one["path"] in caught.value.message and other["path"] in caught.value.message


def test_error_takes_files_whose_columns_are_the_same() -> None:
    lake = Lake()
    lake.append(1)
    lake.append(2)
    assert lake.values(on_schema_conflict="error") == [1, 2]


def test_cast_shows_missing_columns_as_nulls_and_values_in_the_wider_type(lake: Lake) -> None:
    lake.table().remove([sorted(lake.chunks())[1]])
    found = lake.scan().to_arrow()
    assert found.schema == pa.schema([("v", pa.int32()), ("x", pa.int64())])
    assert found.to_pylist() == [{"v": 1, "x": None}, {"v": 2, "x": 5}]


def test_conditions_are_on_the_wider_type(lake: Lake) -> None:
    lake.table().remove([sorted(lake.chunks())[1]])
    lake.append_table(of([1.5], pa.float64()))
    assert lake.values(where={"v": [1.5, 2]}) == [1.5, 2]
    assert lake.values(where={"x": None}) == [1, 1.5]


def test_a_removed_file_says_nothing_of_the_columns(lake: Lake) -> None:
    late = lake.plan(least=1)
    lake.table().remove(partition="default")
    late.finish()
    assert len(lake.files()) == 3, "of which no row counts"
    lake.append_table(of([b"x"], pa.binary()))
    assert lake.values() == [b"x"]


@pytest.mark.parametrize("value", ["", "Cast", "ignore", None, 1])
def test_any_other_answer_to_a_conflict_is_refused(value: str) -> None:
    with pytest.raises(InvalidOption, match="cast, error or skip"):
        on_conflict(value)


def test_moments_that_the_finest_unit_cannot_hold_are_no_damage() -> None:
    lake = Lake()
    far = lake.append_table(of([datetime.datetime(9999, 12, 31, tzinfo=datetime.UTC)], pa.timestamp("us")))
    lake.append_table(of([0], pa.timestamp("ns")))
    with pytest.raises(SchemaConflict, match=far):
        lake.rows()
    assert lake.rows(columns=["_chunk"], where={"_chunk": far}) == [{"_chunk": far}]
