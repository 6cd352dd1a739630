"""Data tables in Spark: DataFrames appended as Parquet files in one commit, and read back, by Spark itself where every row counts."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import pyspark_bucketcatalog as bcs
from bucketcatalog import Catalog, InvalidOption, between
from bucketcatalog.errors import BucketCatalogError

NEW_YEAR = datetime.datetime(2024, 1, 1)  # noqa: DTZ001 - a column without a zone has such
NAIVE = datetime.datetime(1900, 1, 1, 12, 0, 0, 1)  # noqa: DTZ001


def save(frame: DataFrame, path: Path, **options: Any) -> None:
    frame.write.format("bucketcatalog").options(**{"table": "data.cpu", **options}).mode("append").save(str(path))


def load(spark: SparkSession, path: Path, **options: Any) -> DataFrame:
    return spark.read.format("bucketcatalog").options(table="data.cpu", **options).load(str(path))


def rows_of(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, frame.collect()), key=repr)


def both_ways(spark: SparkSession, path: Path, **options: Any) -> list[tuple[Any, ...]]:
    """The rows, which the data source and Spark's own reader give alike."""
    through = rows_of(load(spark, path, **options))
    assert rows_of(bcs.read(spark, path, table="data.cpu", **options)) == through
    return through


def numbered(spark: SparkSession, count: int, tasks: int = 2) -> DataFrame:
    return spark.range(0, count, 1, tasks).selectExpr(
        "concat('h', id % 7) AS host", "id AS v", "concat('p', id % 3) AS _partition"
    )


def log(path: Path) -> list[dict[str, Any]]:
    return sorted(Catalog(path).snapshot().scan("log").to_arrow().to_pylist(), key=lambda each: each["commit_timestamp"])


def test_a_dataframe_is_appended_as_files_in_one_commit_and_read_back(spark: SparkSession, tmp_path: Path) -> None:
    save(numbered(spark, 1_000), tmp_path, writer="etl")
    assert [(each["writer"], each["operation"]) for each in log(tmp_path)] == [("etl", "spark write")]
    files = Catalog(tmp_path).data("cpu").files()
    assert len(files) == 6  # of two tasks, in three partitions each
    assert sorted(files["partition"].unique().to_pylist()) == ["p0", "p1", "p2"]
    assert len(files["write"].unique()) == 1
    assert both_ways(spark, tmp_path) == sorted([(f"h{n % 7}", n) for n in range(1_000)], key=repr)
    assert load(spark, tmp_path, columns="_partition,v").where("v = 4").collect()[0][0] == "p1"


def test_spark_reads_the_files_itself_but_for_those_with_rows_that_do_not_count(spark: SparkSession, tmp_path: Path) -> None:
    save(numbered(spark, 300), tmp_path)
    table = Catalog(tmp_path).data("cpu")
    frame = bcs.read(spark, tmp_path, table="data.cpu", native=True)
    assert "Scan parquet" in frame._jdf.queryExecution().executedPlan().toString()
    table.delete_where({"v": between(0, 9)})
    assert both_ways(spark, tmp_path) == sorted([(f"h{n % 7}", n) for n in range(10, 300)], key=repr)
    assert rows_of(frame) == sorted([(f"h{n % 7}", n) for n in range(300)], key=repr)  # a frame shows one cut
    assert bcs.jobs.compact_data(spark, tmp_path, "cpu").made == 3
    assert both_ways(spark, tmp_path) == sorted([(f"h{n % 7}", n) for n in range(10, 300)], key=repr)


def test_conditions_narrow_what_is_read(spark: SparkSession, tmp_path: Path) -> None:
    with Catalog(tmp_path).data("cpu") as table:
        for day in range(3):
            table.append({"host": "a", "v": day, "time": NEW_YEAR + datetime.timedelta(days=day)})
    where = {"time": between("2024-01-02", None), "host": ["a", "b"]}
    frame = bcs.read(spark, tmp_path, table="data.cpu", where=where)
    assert sorted(row.v for row in frame.collect()) == [1, 2]
    assert len(frame.inputFiles()) == 2
    text = '{"time": {">=": "2024-01-02"}, "host": ["a", "b"]}'
    assert sorted(row.v for row in load(spark, tmp_path, where=text).collect()) == [1, 2]
    assert load(spark, tmp_path, where='{"host": {"prefix": "b"}}').count() == 0
    with pytest.raises((PySparkException, BucketCatalogError), match=r"INVALID_OPTION.*condition"):
        load(spark, tmp_path, where="host = a'").collect()
    assert sorted(row.v for row in load(spark, tmp_path, where="host = 'a' and v > 0").collect()) == [1, 2]


def test_what_the_option_cannot_say_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    Catalog(tmp_path).data("cpu").append({"raw": b"x", "day": datetime.date(2024, 1, 1), "price": Decimal("1.5")})
    with pytest.raises(InvalidOption, match=r"b'x' is of the type bytes, which JSON has not"):
        bcs.read(spark, tmp_path, table="data.cpu", where={"raw": b"x"})
    where = {"day": datetime.date(2024, 1, 1), "price": between(Decimal("1.5"), None)}
    assert bcs.read(spark, tmp_path, table="data.cpu", where=where).count() == 1


def test_files_of_other_columns_are_merged_as_the_option_says(spark: SparkSession, tmp_path: Path) -> None:
    table = Catalog(tmp_path).data("cpu")
    table.append(pa.table({"host": ["a"], "v": pa.array([1], pa.int32())}))
    table.append(pa.table({"host": ["b"], "v": pa.array([1 << 40], pa.int64()), "extra": [Decimal("1.50")]}))
    assert both_ways(spark, tmp_path) == [("a", 1, None), ("b", 1 << 40, Decimal("1.50"))]
    with pytest.raises((PySparkException, BucketCatalogError), match="SCHEMA_CONFLICT"):
        load(spark, tmp_path, onSchemaConflict="error").collect()
    table.append(pa.table({"host": ["c"], "v": ["text"]}))
    with pytest.raises((PySparkException, BucketCatalogError), match="SCHEMA_CONFLICT"):
        load(spark, tmp_path).collect()
    assert both_ways(spark, tmp_path, onSchemaConflict="skip") == [("a", 1, None), ("b", 1 << 40, Decimal("1.50"))]
    with pytest.raises((PySparkException, BucketCatalogError), match="takes no option 'on_schema_conflict'"):
        spark.read.format("bucketcatalog").options(table="iox.schemas", onSchemaConflict="skip").load(str(tmp_path)).collect()


def test_values_of_every_type_arrive_as_they_are(spark: SparkSession, tmp_path: Path) -> None:
    utc = datetime.UTC
    given = pa.table(
        {
            "flag": [True, None],
            "u64": pa.array([2**64 - 1, 0], pa.uint64()),
            "day": pa.array([datetime.date(1960, 2, 29), None]),
            "naive": pa.array([NAIVE, None], pa.timestamp("us")),
            "moment": pa.array([datetime.datetime(2024, 1, 1, tzinfo=utc), None], pa.timestamp("ms", "UTC")),
            "price": pa.array([Decimal("12.345"), None], pa.decimal128(20, 3)),
            "raw": [b"\x00\xff", None],
            "ratio": [float("nan"), -0.0],
            "tags": pa.array([[("k", "v")], None], pa.map_(pa.string(), pa.string())),
            "parts": [[1, None], []],
            "place": [{"lat": 1.5, "name": "ü"}, None],
            "Ünï cödé.`x`": ["é", "e\u0301"],
        }
    )
    Catalog(tmp_path).data("cpu").append(given)
    found = load(spark, tmp_path)
    assert found.columns == given.column_names
    kinds = dict(found.dtypes)
    assert (kinds["naive"], kinds["moment"], kinds["u64"]) == ("timestamp_ntz", "timestamp", "decimal(20,0)")
    through, natively = found.collect(), bcs.read(spark, tmp_path, table="data.cpu").collect()
    assert [repr(row) for row in through] == [repr(row) for row in natively]
    assert through[0]["u64"] == 2**64 - 1 and through[0]["naive"] == NAIVE
    assert through[0]["place"]["name"] == "ü" and [row[-1] for row in through] == ["é", "e\u0301"]
    assert bcs.read(spark, tmp_path, table="data.cpu").where("isnan(ratio)").count() == 1
    assert bcs.read(spark, tmp_path, table="data.cpu").where("ratio > 5").count() == 1  # what is no number is larger than any


def test_columns_that_differ_in_case_alone_are_refused_by_name_or_chosen(spark: SparkSession, tmp_path: Path) -> None:
    Catalog(tmp_path).data("cpu").append([{"Host": "A", "host": "a", "v": 1}])
    assert [tuple(row) for row in load(spark, tmp_path, columns="host,v").collect()] == [("a", 1)]
    assert [tuple(row) for row in bcs.read(spark, tmp_path, table="data.cpu", columns=["Host", "v"]).collect()] == [("A", 1)]


def test_files_of_a_dataframe_have_the_bloom_filters_that_the_option_names(spark: SparkSession, tmp_path: Path) -> None:
    save(numbered(spark, 70), tmp_path, bloomFilters="host, v")
    table = Catalog(tmp_path).data("cpu")
    assert {tuple(each) for each in table.files()["bloom_filters"].to_pylist()} == {("host", "v")}
    where = {"host": "h33"}  # between those that every file has
    assert table.scan(where=where).plan.parts == []
    assert rows_of(load(spark, tmp_path).where("host = 'h33' OR v = 3")) == [("h3", 3)]
    assert both_ways(spark, tmp_path, where='{"v": 3}') == [("h3", 3)]
    for options, message in (({"bloomFilters": "none"}, "no column 'none'"), ({"table": "objects"}, "are no data table's")):
        with pytest.raises((PySparkException, BucketCatalogError), match=message):
            save(numbered(spark, 10), tmp_path, **{"bloomFilters": "host", **options})


def test_rows_of_an_application_are_appended_once(spark: SparkSession, tmp_path: Path) -> None:
    for _ in range(2):
        save(numbered(spark, 10), tmp_path, txnAppId="job", txnVersion=1)
    save(numbered(spark, 5), tmp_path, txnAppId="job", txnVersion=2)
    assert load(spark, tmp_path).count() == 15
    assert [each["app_id"] for each in log(tmp_path)] == ["job:data.cpu"] * 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"operation": "delete"}, "are put, and cannot be deleted"),
        ({"writer": "no/name"}, "cannot be the name of a writer"),
        ({"txnAppId": "job"}, "txnAppId and txnVersion go together"),
    ],
)
def test_what_a_write_cannot_be_is_refused_by_name(
    spark: SparkSession, tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises((PySparkException, BucketCatalogError), match=message):
        save(numbered(spark, 10), tmp_path, **options)
    assert Catalog(tmp_path).databases() == []


def test_a_stream_of_rows_names_itself_and_is_appended_once_a_batch(spark: SparkSession, tmp_path: Path) -> None:
    source, lake = tmp_path / "source", tmp_path / "lake"
    numbered(spark, 20).write.parquet(str(source))

    def run(**options: Any) -> None:
        stream = spark.readStream.schema("host string, v long, _partition string").parquet(str(source))
        write = stream.writeStream.format("bucketcatalog").options(table="data.cpu", path=str(lake), **options)
        write.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start().awaitTermination()

    with pytest.raises(PySparkException, match="needs a name"):
        run()
    run(txnAppId="follow")
    run(txnAppId="follow")
    assert load(spark, lake).count() == 20


def test_a_table_of_sql_reads_and_takes_rows(own: SparkSession, tmp_path: Path) -> None:
    save(numbered(own, 10), tmp_path)
    own.sql(f"CREATE TABLE cpu_rows USING bucketcatalog OPTIONS (path '{tmp_path}', table 'data.cpu')")
    try:
        own.sql("INSERT INTO cpu_rows VALUES ('new', 100)")
        assert own.sql("SELECT max(v) FROM cpu_rows").collect()[0][0] == 100
    finally:
        own.sql("DROP TABLE cpu_rows")


def test_every_data_table_is_shown_by_attach(own: SparkSession, tmp_path: Path) -> None:
    save(numbered(own, 10), tmp_path)
    assert "data_cpu" in bcs.attach(own, tmp_path)
    assert own.sql("SELECT sum(v) FROM data_cpu").collect()[0][0] == 45


def test_a_table_with_a_key_shows_the_newest_rows(spark: SparkSession, tmp_path: Path) -> None:
    Catalog(tmp_path).data("cpu").append([{"host": "h0", "v": 0}], key=["host"])
    save(spark.createDataFrame([("h0", 1), ("h1", 1)], "host string, v long"), tmp_path)
    assert both_ways(spark, tmp_path) == [("h0", 1), ("h1", 1)]
    with pytest.raises((PySparkException, BucketCatalogError), match="lack the column 'host' of its key"):
        save(spark.createDataFrame([(1,)], "v long"), tmp_path)


def test_the_option_of_schemas_is_about_rows(spark: SparkSession, tmp_path: Path) -> None:
    save(numbered(spark, 10), tmp_path)
    for table in ("log", "data.cpu"):
        changes = {} if table == "log" else {"readChangeFeed": True}
        with pytest.raises((InvalidOption, PySparkException), match="onSchemaConflict"):
            spark.read.format("bucketcatalog").options(table=table, onSchemaConflict="skip", **changes).load(
                str(tmp_path)
            ).collect()
