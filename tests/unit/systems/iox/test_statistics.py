"""What statistics say of files, and that whoever prunes by them loses no row: a pruned read is compared with a filter of all rows."""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bucketcatalog import between, prefix
from bucketcatalog.systems.iox import files
from bucketcatalog.systems.iox.statistics import TABLE, kind_of

from ....kit.data_tables import Lake, of

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC).replace(tzinfo=None)
Draw = Callable[[random.Random], Any]


def whole(low: int, high: int) -> Draw:
    """Whole numbers between two, often at the ends or near zero."""
    return lambda chance: chance.choice(
        [low, low + 1, high - 1, high, chance.randint(low, high), chance.randint(-9, 9) % (high + 1)]
    )


def decimal(digits: int, scale: int) -> Draw:
    return lambda chance: Decimal(chance.choice([-1, 1]) * chance.randrange(10 ** chance.randint(1, digits))).scaleb(-scale)


def moment(chance: random.Random) -> datetime.datetime:
    """Around the epoch, to the microsecond or to the second."""
    return EPOCH + datetime.timedelta(microseconds=chance.choice([1, 10**6]) * chance.randint(-2_000_000, 2_000_000))


def fraction(chance: random.Random) -> float:
    return chance.choice([-0.0, 0.0, math.inf, -math.inf, 5e-324, chance.uniform(-9, 9), chance.randint(-3, 3)])


def text(chance: random.Random) -> str:
    return "".join(chance.choices("ab\x00é\uffff🦆", k=chance.randint(0, 3)))


DRAWN: dict[pa.DataType, Draw] = {
    **{getattr(pa, f"int{bits}")(): whole(-(1 << bits - 1), (1 << bits - 1) - 1) for bits in (8, 16, 32, 64)},
    **{getattr(pa, f"uint{bits}")(): whole(0, (1 << bits) - 1) for bits in (8, 16, 32, 64)},
    pa.float16(): lambda chance: np.float16(chance.choice([0.5, -0.0, chance.uniform(-9, 9)])),
    pa.float32(): lambda chance: float(np.float32(fraction(chance))),
    pa.float64(): fraction,
    pa.decimal128(5, 2): decimal(5, 2),
    pa.decimal128(38, 10): decimal(38, 10),
    pa.decimal256(76, 40): decimal(76, 40),
    pa.bool_(): lambda chance: chance.random() < 0.5,
    pa.string(): text,
    pa.binary(): lambda chance: chance.randbytes(chance.randint(0, 3)),
    pa.binary(3): lambda chance: chance.randbytes(3),
    pa.date32(): lambda chance: moment(chance).date(),
    pa.date64(): lambda chance: moment(chance).date(),
    pa.timestamp("s"): lambda chance: moment(chance).replace(microsecond=0),
    pa.timestamp("ms"): lambda chance: moment(chance).replace(microsecond=5_000),
    pa.timestamp("us"): moment,
    pa.timestamp("us", "Europe/Amsterdam"): moment,
    pa.timestamp("ns"): lambda chance: chance.choice([1, 1_000]) * chance.randint(-3_000, 3_000),
    pa.time32("s"): lambda chance: moment(chance).time().replace(microsecond=0),
    pa.time32("ms"): lambda chance: moment(chance).time().replace(microsecond=7_000),
    pa.time64("us"): lambda chance: moment(chance).time(),
    pa.time64("ns"): lambda chance: chance.randint(0, 5_000),
    pa.duration("us"): lambda chance: datetime.timedelta(microseconds=chance.randint(-5, 5)),
}


@pytest.fixture
def small_row_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "ROW_GROUP_ROWS", 3)


def column(lake: Lake, name: str = "v") -> list[dict[str, Any]]:
    """What is said of a column, file by file as they were added."""
    found: list[dict[str, Any]] = lake.look().scan(TABLE, where={"table": "t", "column": name}).to_arrow().to_pylist()
    return sorted(found, key=lambda row: row["chunk"])


def ends(lake: Lake) -> list[tuple[Any, Any]]:
    """The least and the greatest value of each file, as they stand there."""
    kinds = ("int", "double", "bytes")

    def end(row: dict[str, Any], which: str) -> Any:
        return next((row[f"{which}_{kind}"] for kind in kinds if row[f"{which}_{kind}"] is not None), None)

    return [(end(row, "min"), end(row, "max")) for row in column(lake)]


@pytest.mark.parametrize("kind", DRAWN, ids=str)
def test_no_type_loses_a_row_to_pruning(kind: pa.DataType, small_row_groups: None) -> None:
    chance = random.Random(str(kind))
    lake, every = Lake(), []
    for _ in range(6):
        drawn = [None if chance.random() < 0.1 else DRAWN[kind](chance) for _ in range(chance.randint(1, 8))]
        if chance.random() < 0.5:
            drawn = [value for value in drawn if value is not None] or [None]
        rows = of(drawn, kind)
        every.append(rows)
        lake.append_table(rows)
    values = pa.concat_tables(every)["v"]
    known = [value for value in values.cast(pa.int64()).to_pylist() if value is not None] if is_of_nanoseconds(kind) else None
    known = known or [value for value in values.to_pylist() if value is not None]
    orders = [True, False] if not pa.types.is_boolean(kind) else [False]
    pruned = 0
    for _ in range(12):
        one, other = sorted(chance.choices([*known, *(plainly(DRAWN[kind](chance), kind) for _ in range(3))], k=2))
        condition: Any = [one, other][: chance.randint(1, 2)] + [None] * (chance.random() < 0.2)
        if chance.choice(orders):
            low, high = chance.choice([(one, other), (one, None), (None, other)])
            condition = between(low, high, inclusive=chance.choice(["both", "left", "right", "neither"]))
        elif chance.random() < 0.1:
            condition = None
        read = lake.scan(where={"v": condition})
        expected = read.plan.asked.test.met_by(pa.concat_tables(every))
        assert sorted(map(str, read.to_arrow()["v"])) == sorted(map(str, expected["v"])), condition
        pruned += read.plan.row_groups - read.plan.read_groups
    assert pruned > 0 or kind_of(kind) is None


def is_of_nanoseconds(kind: pa.DataType) -> bool:
    return bool((pa.types.is_timestamp(kind) or pa.types.is_time(kind)) and kind.unit == "ns")


def plainly(value: Any, kind: pa.DataType) -> Any:
    """A drawn value as the column shows it, to be compared with others that it has."""
    return value if is_of_nanoseconds(kind) else pa.array([value], kind)[0].as_py()


@pytest.mark.parametrize("seed", range(8))
def test_files_of_different_types_lose_no_row_to_pruning(seed: int, small_row_groups: None) -> None:
    chance = random.Random(seed)
    kinds: Sequence[pa.DataType] = chance.choice(
        [
            [pa.int8(), pa.uint16(), pa.int64()],
            [pa.int16(), pa.float32(), pa.float64()],
            [pa.decimal128(4, 1), pa.decimal128(9, 4)],
            [pa.timestamp("s"), pa.timestamp("ms"), pa.timestamp("us")],
            [pa.binary(2), pa.binary(3), pa.binary()],
            [pa.null(), pa.int32(), pa.float64()],
        ]
    )
    lake = Lake()
    for kind in [*kinds, *kinds]:
        drawn = [None] if pa.types.is_null(kind) else [DRAWN.get(kind, decimal(4, 1))(chance) for _ in range(5)]
        drawn = [abs(value) % 5 if isinstance(value, float) and math.isfinite(value) else value for value in drawn]
        lake.append_table(
            of([None if pa.types.is_null(kind) else value for value in drawn] if kind != pa.binary(2) else [b"ab"], kind)
        )
    whole_table = lake.scan().to_arrow()
    known = sorted(value for value in whole_table["v"].to_pylist() if value is not None)
    for _ in range(10):
        one, other = sorted(chance.choices(known, k=2))
        condition = chance.choice([one, [one, other], between(one, other), between(one, None, inclusive="neither"), None])
        read = lake.scan(where={"v": condition})
        assert sorted(map(str, read.to_arrow()["v"])) == sorted(map(str, read.plan.asked.test.met_by(whole_table)["v"]))


def test_what_begins_so_is_found_and_what_does_not_is_not_read() -> None:
    lake = Lake()
    for values in (["a", "ab"], ["b", "\uffff"], ["ab\U0010ffff", "ac"], [None]):
        lake.append_table(of(values, pa.string()))
    read = lake.scan(where={"v": prefix("ab")})
    assert read.to_arrow()["v"].to_pylist() == ["ab", "ab\U0010ffff"]
    assert len(read.plan.parts) == 2


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        (pa.timestamp("ns"), [-1_500, -1_200], (-2, -1)),
        (pa.timestamp("ns"), [1_200, 1_500], (1, 2)),
        (pa.timestamp("s"), [-1], (-1_000_000, -1_000_000)),
        (pa.timestamp("ms"), [-1, 1], (-1_000, 1_000)),
        (pa.time64("ns"), [1_001], (1, 2)),
        (pa.time32("s"), [1], (1_000_000, 1_000_000)),
        (pa.date32(), [-1, 1], (-1, 1)),
        (pa.uint8(), [200, 255], (200, 255)),
        (pa.uint32(), [(1 << 32) - 1], ((1 << 32) - 1,) * 2),
        (pa.uint64(), [1 << 63], (None, None)),
        (pa.uint64(), [(1 << 63) - 1], ((1 << 63) - 1,) * 2),
        (pa.bool_(), [False, True], (0, 1)),
        (pa.float32(), [0.1], (float(np.float32(0.1)),) * 2),
        (pa.string(), ["é", "z"], (b"z", "é".encode())),
        (pa.duration("s"), [1], (None, None)),
        (pa.float64(), [1.0, math.nan], (None, None)),
        (pa.int64(), [None], (None, None)),
    ],
)
def test_ends_stand_as_they_are_or_outwards(kind: pa.DataType, values: list[Any], expected: tuple[Any, Any]) -> None:
    lake = Lake()
    lake.append_table(of(values, kind))
    assert ends(lake) == [expected]


def test_decimals_are_rounded_outwards() -> None:
    lake = Lake()
    number = Decimal("12345678901234567890.1234567891")
    lake.append_table(of([number], pa.decimal128(38, 10)))
    ((low, high),) = ends(lake)
    assert Decimal(low) < number < Decimal(high)


def test_what_is_no_number_hides_no_row() -> None:
    lake = Lake()
    lake.append_table(of([1.0, math.nan], pa.float64()))
    lake.append_table(of([2.0], pa.float64()))
    assert lake.values(where={"v": between(5, None)})[0] != 2.0
    assert len(lake.rows(where={"v": math.nan})) == 1
    (row, _) = column(lake)
    assert (row["rows"], row["nulls"]) == (2, None)


def test_nulls_are_counted_in_files_and_row_groups(small_row_groups: None) -> None:
    lake = Lake()
    lake.append_table(of([None, 1, 2, 3, None, None, None, None], pa.int8()))
    (row,) = column(lake)
    assert (row["rows"], row["nulls"], row["min_int"], row["max_int"]) == (8, 5, 1, 3)
    assert [(group["rows"], group["nulls"], group["min_int"]) for group in row["row_groups"]] == [
        (3, 1, 1),
        (3, 2, 3),
        (2, 2, None),
    ]
    assert lake.scan(where={"v": None}).plan.read_groups == 3
    assert lake.scan(where={"v": 2}).plan.read_groups == 1
    assert lake.values(where={"v": [3, None]}) == [3, *[None] * 5]


def test_columns_within_others_are_called_with_a_dot_and_none_within_lists(small_row_groups: None) -> None:
    lake = Lake()
    struct = [{"a": 1, "b": {"c": "x"}}, None, {"a": None, "b": None}]
    lake.append_table(
        pa.table({"s": struct, "l": [[1], [2], []], "m": pa.array([[("k", 1)]] * 3, pa.map_(pa.string(), pa.int8()))})
    )
    said = lake.look().scan(TABLE, where={"table": "t"}).to_arrow().to_pylist()
    assert {row["column"]: (row["nulls"], row["min_int"], row["min_bytes"]) for row in said} == {
        "s.a": (2, 1, None),
        "s.b.c": (2, None, b"x"),
    }


@pytest.mark.parametrize("other", ["l.list.element", "m.key_value.key", "s.a"])
def test_a_column_is_not_taken_for_one_within_another_that_is_called_so(other: str, small_row_groups: None) -> None:
    lake = Lake()
    rows = pa.table(
        {
            "l": [[100]] * 6,
            "m": pa.array([[(100, 1)]] * 6, pa.map_(pa.int64(), pa.int8())),
            "s": [{"a": 100}] * 6,
            other: range(6),
        }
    )
    lake.append_table(rows)
    for value in range(6):
        assert [row[other] for row in lake.rows(columns=[other], where={other: value})] == [value]
    assert lake.rows(columns=[other], where={other: 100}) == []


def test_a_file_without_the_column_is_found_by_null_whatever_it_has_within_another() -> None:
    lake = Lake()
    lake.append_table(pa.table({"s": [{"a": 1}]}))
    lake.append_table(pa.table({"s.a": [1, None]}))
    assert len(lake.rows(where={"s.a": None})) == 2
    assert len(lake.rows(where={"s.a": 1})) == 1
    assert lake.table().delete_where([("s.a", "is null", None)]) is not None
    assert [row["s.a"] for row in lake.rows()] == [1]


@pytest.mark.parametrize("ended", ["remove", "compact"])
def test_nothing_is_said_of_files_that_have_ended(ended: str) -> None:
    lake = Lake()
    for value in (1, 2):
        lake.append_table(pa.table({"v": [value], "s": [{"a": value}], "l": [[value]]}))
    if ended == "remove":
        lake.table().remove(partition="default")
    else:
        lake.compact()
    left = lake.look().scan(TABLE, where={"table": "t"}).to_arrow().to_pylist()
    assert {row["chunk"] for row in left} == {*lake.chunks()}
    assert len(left) == 2 * len(lake.chunks())


def test_a_table_of_lists_alone_can_be_removed_and_compacted() -> None:
    lake = Lake()
    lake.append_table(pa.table({"l": [[1]]}))
    lake.append_table(pa.table({"l": [[2]]}))
    assert lake.compact().made == 1
    lake.table().remove(partition="default")
    assert lake.rows() == []
