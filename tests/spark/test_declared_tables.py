"""Tables at random in Spark: filters of a DataFrame keep the rows that plain Python does, whoever checks them, Spark or the catalog."""

from __future__ import annotations

from decimal import Decimal
from functools import reduce
from operator import and_
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import pytest
from pyspark.sql import Column as Expression
from pyspark.sql import SparkSession, functions

from bucketcatalog import Catalog
from bucketcatalog.where.conditions import Between, Prefix

from ..kit.machine.conditions import allows, condition
from ..kit.machine.declaring import EPOCH, MICROSECOND, NAME, Column, declared
from .sample import read

SEEDS = (11, *(pytest.param(seed, marks=pytest.mark.once) for seed in (42, 77)))
QUESTIONS = 12
"""So many for each table in one query, and the first of them as a filter too."""


@pytest.mark.parametrize("seed", SEEDS)
def test_filters_of_any_table_keep_the_rows_that_plain_python_does(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    table, random = declared(seed), Random(seed)
    catalog = Catalog(tmp_path)
    catalog.register(table.descriptors)
    given = [table.row(random, key, serial) for serial, key in enumerate(table.keys(random, 60))]
    with catalog.writer("w") as writer:
        with writer.transaction() as tx:
            tx.put(NAME, given)
        writer.checkpoint()
    rows = [table.shown(row) for row in given]
    asked_of = [column for column in table.columns if column.is_single and not column.default]
    questions = []
    for _ in range(QUESTIONS):
        chosen = random.sample(asked_of, min(2, len(asked_of)))
        questions.append({column: condition(column, random, [row[column.name] for row in rows]) for column in chosen})
    frame = read(spark, str(tmp_path), table=NAME)
    serial = functions.col(table.serial.name)
    counted = [
        functions.collect_list(functions.when(meaning(where), serial)).alias(f"q{at}") for at, where in enumerate(questions)
    ]
    (together,) = frame.agg(*counted).collect()
    for at, where in enumerate(questions):
        kept = [row[table.serial.name] for row in rows if all(allows(asked, row[c.name]) for c, asked in where.items())]
        assert sorted(together[f"q{at}"]) == kept, where
        if not at:
            assert sorted(row[0] for row in frame.where(meaning(where)).select(serial).collect()) == kept, where


def meaning(where: dict[Column, Any]) -> Expression:
    """The conditions as Spark says them; a value that is not there meets none but that of being absent."""
    return reduce(and_, [functions.coalesce(_one(column, asked), functions.lit(False)) for column, asked in where.items()])


def _one(column: Column, asked: Any) -> Expression:
    values = functions.col(column.name)
    if isinstance(asked, Prefix):
        return values.startswith(functions.lit(asked.text))
    if isinstance(asked, list):
        return reduce(
            lambda one, other: one | other,
            [functions.coalesce(_one(column, value), functions.lit(False)) for value in asked],
            functions.lit(False),
        )
    if not isinstance(asked, Between):
        return values.isNull() if asked is None else values == _literal(column, asked)
    found = values.isNotNull()
    if asked.low is not None:
        found &= values > _literal(column, asked.low) if asked.above else values >= _literal(column, asked.low)
    if asked.high is not None:
        found &= values < _literal(column, asked.high) if asked.below else values <= _literal(column, asked.high)
    return found


def _literal(column: Column, value: Any) -> Expression:
    """A value as Spark has the column's."""
    if column.kind == "time":
        return functions.timestamp_micros(functions.lit((value - EPOCH) // MICROSECOND))
    if column.kind in ("uint64", "fixed64"):
        return functions.lit(Decimal(value)).cast("decimal(20,0)")
    if column.kind == "float":
        return functions.lit(value).cast("float")
    if isinstance(value, bytes):
        return functions.lit(bytearray(value))
    return functions.lit(str(value) if column.kind == "enum" else value)


def test_a_sum_beyond_64_bits_is_exact_in_spark(spark: SparkSession, tmp_path: Path) -> None:
    key = {"owner": str(UUID(int=1)), "bucket_id": str(UUID(int=2))}
    with Catalog(tmp_path).writer("w") as writer, writer.transaction() as tx:
        tx.put("objects", [{**key, "name": f"n{n}", "content_length": (1 << 63) - 1} for n in range(3)])
    frame = read(spark, str(tmp_path), table="sums")
    assert dict(frame.dtypes)["value"] == "decimal(38,0)"
    found = {row["name"]: row["value"] for row in frame.where(functions.col("value") > 0).collect()}
    assert found == {"objects": Decimal(3), "bytes": Decimal(3 * ((1 << 63) - 1))}
