"""Tables of one's own in Spark: made of DataFrames' schemas, changed between commits, read natively and through Python, attached."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, Row, SparkSession, functions

import pyspark_bucketcatalog as bcs
from bucketcatalog import Catalog, IncompatibleTable, InvalidOption

from .sample import OWNER

NAME = "jobs.runs"
NOON = datetime.datetime(2024, 5, 1, 12)  # noqa: DTZ001  as Spark has times
COUNT = 9_000
"""More rows than are read when a frame is made: the files are read natively."""


def runs(spark: SparkSession, count: int = COUNT, *, prefix: str = "old") -> DataFrame:
    """Rows of which Spark knows that most are never null."""
    return spark.range(count).select(
        functions.format_string(f"{prefix}%05d", "id").alias("id"),
        functions.col("id").cast("int").alias("n"),
        functions.lit("text").alias("note"),
        functions.lit(NOON).alias("at"),
        functions.array(functions.lit("a"), functions.lit("b")).alias("words"),
        functions.create_map(functions.lit("k"), functions.col("id")).alias("counts"),
        functions.struct(functions.col("id").alias("x"), functions.lit(0.5).alias("y")).alias("config"),
    )


def later(spark: SparkSession, count: int) -> DataFrame:
    """The same with a column renamed and wider, one removed and one added."""
    return (
        runs(spark, count, prefix="new")
        .withColumn("n", functions.col("n").cast("long") + (1 << 40))
        .withColumnRenamed("n", "count")
        .drop("note")
        .withColumn("ok", functions.lit(True))
    )


def save(frame: DataFrame, path: Path, **options: Any) -> None:
    frame.write.format("bucketcatalog").options(table=NAME, writer="etl", **options).mode("append").save(str(path))


def merged(path: Path) -> None:
    with Catalog(path).writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all", full=True)


@pytest.mark.parametrize("native", [True, False])
def test_rows_of_before_and_after_a_change_are_read_together(spark: SparkSession, tmp_path: Path, native: bool) -> None:
    made = bcs.create_table(tmp_path, NAME, runs(spark), key=["id"])
    assert made.committed is not None and "optional string note = 3;" in made.proto, "whatever Spark knows of nulls"
    assert bcs.read(spark, tmp_path, table=NAME).count() == 0, "known at once, while it is empty"
    save(runs(spark), tmp_path)
    with Catalog(tmp_path).writer("node-1") as writer, writer.transaction() as tx:
        tx.delete(NAME, {"id": "old00000"})
        tx.put("buckets", {"owner": OWNER, "name": "beside"})
    if native:
        merged(tmp_path)
    before = Catalog(tmp_path).snapshot().version
    schema = later(spark, 10).schema
    changed = bcs.create_table(tmp_path, NAME, schema, key=["id"], rename={"n": "count"}, remove=["note"])
    assert changed.committed is not None and changed.removed == ("note",)
    save(later(spark, 10), tmp_path)

    def read(table: str = NAME, **options: Any) -> DataFrame:
        if native:
            return bcs.read(spark, tmp_path, table=table, native=True, **options)
        return spark.read.format("bucketcatalog").options(table=table, **options).load(str(tmp_path))

    frame = read()
    assert frame.columns == ["id", "count", "at", "words", "counts", "config", "ok"]
    assert dict(frame.dtypes)["count"] == "bigint" and frame.count() == COUNT - 1 + 10
    old, new = frame.where("id IN ('old00001', 'new00001')").orderBy(functions.desc("id")).collect()
    shared = {"at": NOON, "words": ["a", "b"], "counts": {"k": 1}, "config": Row(x=1, y=0.5)}
    assert old.asDict() == {"id": "old00001", "count": 1, "ok": None, **shared}
    assert new.asDict() == {"id": "new00001", "count": (1 << 40) + 1, "ok": True, **shared}
    (ended,) = read(f"deleted_{NAME}").collect()
    assert (ended.id, ended["count"], ended.ok) == ("old00000", 0, None)

    past = read(versionAsOf=before)
    assert past.columns == ["id", "n", "note", "at", "words", "counts", "config"]
    assert past.where("note = 'text'").count() == COUNT - 1

    bcs.attach(spark, tmp_path, view_prefix=f"own_{native}_")
    (counted,) = spark.sql(
        f"SELECT count(*), count(ok), count(DISTINCT b.name) FROM own_{native}_jobs_runs JOIN own_{native}_buckets b"
    ).collect()
    assert tuple(counted) == (COUNT - 1 + 10, 10, 1)
    events = (
        spark.read.format("bucketcatalog").options(table=NAME, readChangeFeed=True, startingVersion=before).load(str(tmp_path))
    )
    assert {(row._change_type, row["count"], row.ok) for row in events.collect()} == {
        ("put", (1 << 40) + n, True) for n in range(10)
    }
    assert "note" not in events.columns


def test_the_table_as_spark_reads_it_is_the_table(spark: SparkSession, tmp_path: Path) -> None:
    """Types that Spark has not, and that it shows as others, stay what they are when its schema comes back."""
    schema = pa.schema(
        [
            ("id", pa.uuid()),
            ("wide", pa.uint32()),
            ("huge", pa.uint64()),
            ("said", pa.json_(pa.string())),
            pa.field("never", pa.int64(), nullable=False),
            ("parts", pa.list_(pa.struct([("n", pa.uint32())]))),
        ]
    )
    made = Catalog(tmp_path).create_table(NAME, schema, key=["id"])
    frame = bcs.read(spark, tmp_path, table=NAME)
    again = bcs.create_table(tmp_path, NAME, frame, key=["id"])
    assert (again.committed, again.proto) == (None, made.proto)
    wider = bcs.create_table(tmp_path, NAME, frame.withColumn("more", functions.lit(1.5)), key=["id"])
    assert "optional double more = 7;" in wider.proto and "optional uint64 huge = 3;" in wider.proto
    one = frame.sparkSession.createDataFrame(
        [("8f3f1d6e-6a53-4b0c-9d3c-0d9a8d2b7c11", 1 << 31, Decimal(1 << 63), "{}", 3, [(1,)], 0.5)],
        "id string, wide long, huge decimal(20,0), said string, never long, parts array<struct<n: long>>, more double",
    )
    save(one, tmp_path)
    assert bcs.read(spark, tmp_path, table=NAME).collect() == one.collect()


@pytest.mark.parametrize(
    ("expression", "kind", "instead"),
    [
        ("current_date()", r"date", "timestamp"),
        ("cast(1 AS decimal(10,2))", r"decimal", "string"),
        ("parse_json('1')", r"variant", "to_json"),
        ("make_interval(1)", r"interval", "string"),
        ("NULL", r"null|void", "type"),
        ("array(array(1))", r"list<.*list", "struct"),
    ],
)
def test_a_type_that_no_table_has_is_an_error_that_names_column_and_type(
    spark: SparkSession, tmp_path: Path, expression: str, kind: str, instead: str
) -> None:
    frame = spark.range(1).selectExpr("id", f"{expression} AS bad")
    with pytest.raises(IncompatibleTable, match=rf"Column 'bad' for table 'jobs\.runs' is of the type ({kind})") as caught:
        bcs.create_table(tmp_path, NAME, frame, key=["id"])
    assert instead in caught.value.next_step and not list(tmp_path.iterdir())


def test_the_name_of_a_data_table_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(IncompatibleTable, match=r"names that begin with 'data\.' are the system 'iox''s") as caught:
        bcs.create_table(tmp_path, "data.x", spark.range(1), key=["id"])
    assert caught.value.next_step and Catalog(tmp_path).databases() == []


def test_what_is_no_schema_of_sparks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match="is no schema of Spark's"):
        bcs.create_table(tmp_path, NAME, pa.schema([("id", pa.int64())]), key=["id"])  # type: ignore[arg-type]
