"""Conditions as text and as expressions on data tables: the rows, and the files that are not opened for them."""

from __future__ import annotations

import datetime
import pickle
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from bucketcatalog import Catalog, InvalidOption
from bucketcatalog.query.filtered import Filtered
from bucketcatalog.systems.iox.read import DataRead

from ....kit.data_tables import TABLE, Lake

field = pc.field
DAY = datetime.datetime(2024, 5, 1)  # noqa: DTZ001


@pytest.fixture(scope="module")
def lake() -> Lake:
    """Two files, of which the second has a column more, with values of many types."""
    found = Lake()
    kinds = {
        "v": pa.int32(),
        "host": pa.dictionary(pa.int32(), pa.string()),
        "at": pa.timestamp("ns"),
        "ms": pa.timestamp("ms", "UTC"),
        "day": pa.date32(),
        "price": pa.decimal128(9, 2),
        "ratio": pa.float64(),
        "large": pa.large_string(),
        "deep": pa.struct([("x", pa.int64())]),
    }
    for start in (0, 10):
        moments = [DAY + datetime.timedelta(days=start + n) for n in range(5)]
        columns: dict[str, Any] = {
            "v": [start + n for n in range(5)],
            "host": ["a", "b", None, "a", "b"],
            "at": moments,
            "ms": [each.replace(tzinfo=datetime.UTC) for each in moments],
            "day": [each.date() for each in moments],
            "price": [Decimal(n) / 4 for n in range(start, start + 5)],
            "ratio": [float("nan"), 0.0, -0.0, 1.5, None],
            "large": ["x", "y", "z", None, "xy"],
            "deep": [{"x": n} for n in range(5)],
        }
        table = pa.table([pa.array(columns[name], kind) for name, kind in kinds.items()], names=list(kinds))
        found.append_table(table if not start else table.append_column("more", pa.array(range(5))))
    return found


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("v > 3 and v < 11.5", [4, 10, 11]),
        ("host = 'a'", [0, 3, 10, 13]),
        ("host in ('a', 'c') and v < 10", [0, 3]),
        ("host like 'b%' or v = 0", [0, 1, 4, 11, 14]),
        ("at >= '2024-05-12'", [11, 12, 13, 14]),
        ("ms = '2024-05-02'", [1]),
        ("ms > '2024-05-14T23:59:59.999999Z'", [14]),
        ("day between '2024-05-02' and '2024-05-03'", [1, 2]),
        ("price = 0.25 or price > 3.25", [1, 14]),
        ("ratio = 0", [1, 2, 11, 12]),
        ("ratio > 1", [0, 3, 10, 13]),
        ("large like 'x%'", [0, 4, 10, 14]),
        ("deep.x = 3", [3, 13]),
        ("more >= 3", [13, 14]),
        ("more is null and v > 2", [3, 4]),
        ("_partition = 'default' and v = 1", [1]),
        (field("v") > 12, [13, 14]),
        (field("at") >= pa.scalar(datetime.datetime(2024, 5, 14), pa.timestamp("ns")), [13, 14]),  # noqa: DTZ001
        (field("ratio") > 1, [3, 13]),
        ((field("v") > 10) & (field("deep", "x") < 2), [11]),
        (field("day") == datetime.date(2024, 5, 2), [1]),
        (field("price") == Decimal("0.25"), [1]),
        (field("large").isin(["x"]), [0, 10]),
        (field("more").is_null(), [0, 1, 2, 3, 4]),
    ],
    ids=str,
)
def test_rows_are_those_of_which_it_is_true(lake: Lake, where: Any, expected: list[int]) -> None:
    table = lake.catalog().data(TABLE)
    for read in (table.scan(columns=["v"], where=where), lake.look().scan(f"data.{TABLE}", columns=["v"], where=where)):
        assert sorted(read.to_arrow()["v"].to_pylist()) == expected
        assert read.count() == len(expected)
        tasks = pickle.loads(pickle.dumps(read.tasks(3)))  # type: ignore[union-attr]
        assert sorted(v for task in tasks for rows in task.read(lake.store) for v in rows["v"].to_pylist()) == expected
    assert table.scan(where=where).schema == table.scan().schema


@pytest.mark.parametrize(
    "where", ["v >= 10", "v >= 10 and deep.x < 3", field("v") >= 10, (field("v") >= 10) & (field("deep", "x") < 3)]
)
def test_files_are_left_out_as_by_a_mapping(lake: Lake, where: Any) -> None:
    read = lake.catalog().data(TABLE).scan(where=where)
    plain = read.source if isinstance(read, Filtered) else read
    assert isinstance(plain, DataRead) and len(plain.plan.parts) == 1 and plain.plan.total == 2


def test_rows_with_keys_are_tested_once_the_newest_are_known() -> None:
    lake = Lake()
    for v in (1, 5):
        lake.table().append([{"k": "a", "v": v}, {"k": "b", "v": 2}], key=["k"])
    for where in ("v < 3 and length(k) = 1", "v < 3"):
        assert lake.rows(where=where) == [{"k": "b", "v": 2}]


def test_what_does_not_fit_is_refused(lake: Lake) -> None:
    table = lake.catalog().data(TABLE)
    for where, message in (
        ("none = 1", "has no column 'none' to filter by"),
        ("v = 'x'", "its values are whole numbers"),
        ("day = 'x'", "'x' is none of its values. Next: Compare it with text that is a date"),
        ("v >", "is not understood at character 4"),
        (field("none") == 1, "has no column 'none'"),
    ):
        with pytest.raises(InvalidOption, match=message):
            table.scan(where=where)


def test_data_tables_of_several_catalogs_take_them_too(lake: Lake) -> None:
    other = Lake()
    other.append({"v": 100})
    both: Any = Catalog({"one": lake.store, "other": other.store})
    found = both.data(TABLE).scan(columns=["v"], where="v > 12 and length(_catalog) > 2").to_arrow()
    assert sorted(found["v"].to_pylist()) == [13, 14, 100]
