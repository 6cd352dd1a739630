"""What pyarrow, DuckDB and Polars read of segments by themselves is the table, but for what the guide says of each. Spark: tests/spark."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import duckdb
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from bucketcatalog.model.tables import DataType

from ...kit.engines import FEW, NAN, TIMES, UNSIGNED, VIEWS, Condition, Lake, differences
from ...kit.storing import VALUES, bits
from ...kit.world import time_at

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {"=": operator.eq, ">": operator.gt, "<": operator.lt}


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return Lake(tmp_path_factory.mktemp("lake"))


def by_pyarrow(files: list[str], condition: Condition | None = None) -> pa.Table:
    filters = OPERATORS[condition.operator](pc.field(condition.column), condition.value) if condition else None
    return pa.concat_tables([pq.read_table(file, filters=filters) for file in files])


def by_duckdb(files: list[str], condition: Condition | None = None) -> pa.Table:
    where, values = (f'WHERE "{condition.column}" {condition.operator} ?', [condition.value]) if condition else ("", [])
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        return connection.sql(f"SELECT * FROM read_parquet(?) {where}", params=[files, *values]).to_arrow_table()


def by_polars(files: list[str], condition: Condition | None = None) -> pa.Table:
    frame = polars.scan_parquet(files)
    if condition is not None:
        frame = frame.filter(OPERATORS[condition.operator](polars.col(condition.column), condition.value))
    return frame.collect().to_arrow()


ENGINES = {"pyarrow": by_pyarrow, "DuckDB": by_duckdb, "Polars": by_polars}
REFUSED = (pa.ArrowInvalid, OverflowError)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_files_are_the_table_and_its_tombstones_but_for_what_the_guide_says(lake: Lake, engine: str) -> None:
    read = ENGINES[engine]
    found = lake.chosen_otherwise(lambda condition: read(lake.files(FEW), condition)["name"].to_pylist(), REFUSED)
    for view in VIEWS:
        found |= lake.shown_otherwise(view, read(lake.files(view)))
    found |= lake.named_otherwise(lambda files: read(files).column_names)
    assert found == differences(engine)


def test_the_rows_have_every_value_and_the_row_groups_to_choose_from_few(lake: Lake) -> None:
    for view in VIEWS[:2]:
        rows = by_pyarrow(lake.files(view))
        for kind in VALUES:
            if kind not in (DataType.ENUM, DataType.TIMESTAMP):
                found = rows[f"a_{kind.value}"].to_pylist()
                assert {bits(value) for value in (*VALUES[kind], None)} <= {bits(value) for value in found}, (view, kind)
        assert {time_at(at) for at in TIMES} <= set(rows["a_time"].to_pylist())
    (file,) = lake.files(FEW)
    assert pq.read_metadata(file).num_row_groups > 10


def test_what_helps_pyarrow_helps(lake: Lake) -> None:
    (file,) = lake.files(FEW)

    def chosen(condition: Condition) -> list[str]:
        column, value = pc.field(condition.column), condition.value
        filters = OPERATORS[condition.operator](column, pa.scalar(value, pa.uint64()) if condition.what == UNSIGNED else value)
        return pq.read_table(file, filters=filters | column.is_nan() if condition.what == NAN else filters)["name"].to_pylist()

    assert lake.chosen_otherwise(chosen) == set()
