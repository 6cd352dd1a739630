"""What Spark's own reader of Parquet reads of segments is the table, but for what the guide says."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession, functions
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import DecimalType, StringType, StructField, StructType

import pyspark_bucketcatalog as bcs
from bucketcatalog.query.files import Files
from bucketcatalog.query.snapshot import Snapshot

from ..kit.engines import CONDITIONS, FEW, LEFT_OUT, TIMES, VIEWS, Condition, Lake, differences
from ..kit.world import time_at
from .sample import rows

REBASED = "spark.sql.parquet.datetimeRebaseModeInRead"
LITERALS = {"seen": "timestamp_micros(?)", "big": "CAST(? AS decimal(20,0))", "share": "CAST(? AS float)"}


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return Lake(tmp_path_factory.mktemp("lake"))


def chosen(spark: SparkSession, files: list[str], conditions: list[Condition]) -> dict[str, list[str]]:
    """What conditions choose of files."""
    spark.read.parquet(*files).createOrReplaceTempView("readings")
    return asked(spark, conditions)


def asked(spark: SparkSession, conditions: list[Condition]) -> dict[str, list[str]]:
    """What conditions choose, each of which Spark pushes down into a scan of its own, in one query: one each would take seconds."""
    one = "SELECT name, {} AS asked FROM readings WHERE {} {} {}"
    parts = [one.format(at, c.column, c.operator, LITERALS.get(c.column, "?")) for at, c in enumerate(conditions)]
    found: dict[str, list[str]] = {str(condition): [] for condition in conditions}
    for row in spark.sql(" UNION ALL ".join(parts), args=[value(condition) for condition in conditions]).collect():
        found[str(conditions[row.asked])].append(row.name)
    return found


def value(condition: Condition) -> object:
    """The value of a condition as SQL is given it, such that no calendar of Python's or Java's comes in between."""
    if isinstance(condition.value, datetime):
        return (condition.value - time_at(0)) // timedelta(microseconds=1)
    if isinstance(condition.value, bytes):
        return bytearray(condition.value)
    return str(condition.value) if condition.column == "big" else condition.value


def rebased(spark: SparkSession, lake: Lake, mode: str) -> str:
    """What becomes of times in this mode."""
    session = spark.newSession()
    session.conf.set(REBASED, mode)
    frame = session.read.parquet(*lake.files(FEW)).select(functions.unix_micros("seen").alias("seen"))
    try:
        seen = {row.seen for row in frame.collect()} - {None}
    except PySparkException:
        return "an error"
    return "the same" if seen == set(TIMES) else "another day"


@pytest.mark.once
def test_the_files_are_the_table_and_its_tombstones_but_for_what_the_guide_says(own: SparkSession, lake: Lake) -> None:
    names = chosen(own, lake.files(FEW), CONDITIONS)
    found = lake.chosen_otherwise(lambda condition: names[str(condition)])
    for view in VIEWS:
        read = own.read.parquet(*lake.files(view)).toArrow()
        found |= lake.shown_otherwise(view, read, lambda kind: from_arrow_type(kind).simpleString())
    modes = {mode: rebased(own, lake, mode) for mode in ("CORRECTED", "LEGACY", "EXCEPTION")}
    found |= {(f"a time before 1582, read as `{mode}`", shown) for mode, shown in modes.items() if shown != "the same"}
    found |= lake.named_otherwise(lambda files: own.read.parquet(*files).columns, (PySparkException,))
    assert found == differences("Spark")

    own.conf.set("spark.sql.datetime.java8API.enabled", "true")
    own.conf.set("spark.sql.caseSensitive", "true")
    assert lake.named_otherwise(lambda files: own.read.parquet(*files).columns) == set()
    names |= chosen(own, lake.files(FEW), [condition for condition in CONDITIONS if condition.what == LEFT_OUT])
    assert lake.chosen_otherwise(lambda condition: names[str(condition)]) == set()


def test_a_column_is_found_by_its_number_whatever_it_is_called(own: SparkSession, lake: Lake) -> None:
    own.conf.set("spark.sql.parquet.fieldId.read.enabled", "true")
    schema = StructType(
        [
            StructField("called", StringType(), metadata={"parquet.field.id": 1}),
            StructField("large", DecimalType(20, 0), metadata={"parquet.field.id": 4}),
            StructField("_uuid", StringType()),
        ]
    )
    found = own.read.schema(schema).parquet(*lake.files(FEW)).toArrow()
    plain = own.read.parquet(*lake.files(FEW)).select("name", "big", "_uuid").toArrow()
    assert found.rename_columns(plain.column_names).to_pylist() == plain.to_pylist()
    assert {row["big"] for row in plain.to_pylist()} > {None, 2**64 - 1}


@pytest.mark.parametrize("view", VIEWS)
def test_what_is_read_natively_is_the_table_and_its_tombstones(own: SparkSession, lake: Lake, view: str) -> None:
    """All columns but those that have to be converted, which say so."""
    path, snapshot = lake.catalog(view)
    every = [*snapshot.scan(view).schema.names, "_version", "_commit_timestamp", "_writer", "_revision"]
    columns = [name for name in every if files(snapshot, view, [name]).native]
    left = {files(snapshot, view, [name]).why.split(", in ")[0].split(" is stored")[0] for name in every if name not in columns}  # type: ignore[union-attr]
    assert all(why.startswith("the column '") for why in left) and len(columns) > len(left)
    options = {"table": view, "columns": ",".join(columns)}

    native = bcs.read(own, path, native=True, **options)
    by_python = own.read.format("bucketcatalog").options(**options).load(path)
    assert list(map(repr, rows(native))) == list(map(repr, rows(by_python)))  # NaN equals nothing
    assert "FileScan parquet" in native._jdf.queryExecution().executedPlan().toString()


def test_conditions_choose_the_same_rows_of_what_is_read_natively(own: SparkSession, lake: Lake) -> None:
    path, _ = lake.catalog(FEW)
    bcs.read(own, path, table=FEW, native=True).createOrReplaceTempView("readings")
    names = asked(own, CONDITIONS)
    found = lake.chosen_otherwise(lambda condition: names[str(condition)])

    assert {what for what, _ in found} <= {LEFT_OUT}


def files(snapshot: Snapshot, view: str, columns: list[str]) -> Files:
    return snapshot.scan(view, columns=columns).files()  # type: ignore[union-attr]
