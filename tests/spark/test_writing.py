"""Writing a DataFrame: executors put segments, one commit names them, and the rows are those that the same put would have made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import pyspark_bucketcatalog as bcs
from bucketcatalog import Catalog

from ..kit.in_engines import KEYS, TABLE, merged, put, row
from ..kit.natively import in_some_order
from .sample import OWNER, rows

CATS = "0b6a2a0e-9d0f-5a53-8a4e-3f1e0c7d9b22"
OF_OBJECTS = "owner string, bucket_id string, name string, content_length long"


def save(frame: DataFrame, path: Path, **options: Any) -> None:
    frame.write.format("bucketcatalog").options(**options).mode("append").save(str(path))


def objects(spark: SparkSession, *given: tuple[str, int | None]) -> DataFrame:
    return spark.createDataFrame([(OWNER, CATS, *each) for each in given], OF_OBJECTS)


def lengths(path: Path) -> dict[str, int]:
    found = Catalog(path).snapshot().scan("objects", columns=["name", "content_length"]).to_arrow().to_pylist()
    return {each["name"]: each["content_length"] for each in found}


def log(path: Path) -> list[dict[str, Any]]:
    return sorted(Catalog(path).snapshot().scan("log").to_arrow().to_pylist(), key=lambda each: each["commit_timestamp"])


def test_rows_of_every_type_are_those_that_were_read(spark: SparkSession, tmp_path: Path) -> None:
    source = merged(tmp_path / "source")
    put(Catalog(tmp_path / "target"), [row(-1_000)])
    with Catalog(tmp_path / "target").writer("node-1") as writer, writer.transaction() as tx:
        tx.delete(TABLE, {"k": -1_000})
    frame = bcs.read(spark, tmp_path / "source", table=TABLE)
    save(frame.repartition(3), tmp_path / "target", table=TABLE, writer="etl")

    expected = source.snapshot().scan(TABLE).to_arrow()
    written = Catalog(tmp_path / "target").snapshot().scan(TABLE).to_arrow()
    assert len(written) > len(KEYS) // 2 and in_some_order(written) == in_some_order(expected)
    (last,) = log(tmp_path / "target")[2:]
    assert (last["writer"], last["operation"], last["events"]) == ("etl", "spark write", len(expected))


def test_a_new_catalog_is_made_by_the_first_write(spark: SparkSession, tmp_path: Path) -> None:
    many = spark.range(0, 100_000, 1, 4).selectExpr(
        f"'{OWNER}' AS owner", f"'{CATS}' AS bucket_id", "concat('n', id) AS name", "id AS content_length"
    )
    save(many, tmp_path / "lake", database="photos")

    assert rows(bcs.read(spark, tmp_path / "lake").agg({"content_length": "sum"})) == [
        {"sum(content_length)": sum(range(100_000))}
    ]
    (only,) = log(tmp_path / "lake")
    assert only["events"] == 100_000 and only["writer"].startswith("spark-")
    versions = Catalog(tmp_path / "lake").snapshot().scan("objects", columns=["_version"]).to_arrow()["_version"]
    assert len(versions.unique()) == 100_000


def test_a_column_says_what_each_row_is(spark: SparkSession, tmp_path: Path) -> None:
    save(objects(spark, ("a", 1), ("b", 2), ("c", 3)), tmp_path)
    read = (
        spark.read.format("bucketcatalog").option("columns", "owner,bucket_id,name,content_length,_version").load(str(tmp_path))
    )
    changes = read.where("name <> 'c'").selectExpr(
        "owner",
        "bucket_id",
        "name",
        "content_length + 10 AS content_length",
        "_version",
        "if(name = 'a', 'delete', 'UPDATE') AS operation",
    )
    added = objects(spark, ("d", 4)).selectExpr("*", "cast(NULL AS string) AS _version", "cast(NULL AS string) AS operation")
    save(changes.unionByName(added), tmp_path)

    assert lengths(tmp_path) == {"b": 12, "c": 3, "d": 4}
    kinds = Catalog(tmp_path).changes().to_arrow().to_pylist()[3:]
    assert sorted((each["name"], each["_change_type"]) for each in kinds) == [("a", "delete"), ("b", "update"), ("d", "put")]


def test_rows_go_by_the_names_of_their_buckets(spark: SparkSession, tmp_path: Path) -> None:
    with Catalog(tmp_path).writer("w") as writer, writer.transaction() as tx:
        tx.put("buckets", [{"owner": OWNER, "name": name} for name in ("cats", "dogs")])
    frame = spark.createDataFrame(
        [("cats", "a", 1), ("dogs", "b", 2), ("cats", "c", 3)], "bucket string, name string, content_length long"
    )
    save(frame.repartition(3), tmp_path)
    snapshot = Catalog(tmp_path).snapshot()
    assert snapshot.scan("objects", columns=["owner", "name"], bucket="cats").to_arrow().to_pylist() == [
        {"owner": OWNER, "name": "a"},
        {"owner": OWNER, "name": "c"},
    ]
    ended = spark.createDataFrame([("cats", "a", "delete"), ("dogs", "d", None)], "bucket string, name string, operation string")
    save(ended, tmp_path)
    save(spark.createDataFrame([("dogs", "b")], "bucket string, name string"), tmp_path, operation="delete")
    assert {*lengths(tmp_path)} == {"c", "d"}


def test_a_bucket_that_is_not_there_is_a_typed_error_and_nothing_is_committed(spark: SparkSession, tmp_path: Path) -> None:
    save(objects(spark, ("a", 1)), tmp_path)
    named = spark.createDataFrame([("mice", "b")], "bucket string, name string")
    with pytest.raises(PySparkException, match=r"(?s)NOT_FOUND.*no bucket 'mice'"):
        save(named, tmp_path)
    with pytest.raises(PySparkException, match=r"(?s)INVALID_ROWS.*'bucket'"):
        save(named.selectExpr("1 AS bucket", "name"), tmp_path)
    assert lengths(tmp_path) == {"a": 1}


def test_an_option_says_what_all_rows_are(spark: SparkSession, tmp_path: Path) -> None:
    save(objects(spark, ("a", 1), ("b", 2)), tmp_path)
    save(objects(spark, ("a", None)).drop("content_length"), tmp_path, operation="delete")

    assert lengths(tmp_path) == {"b": 2}


def test_a_write_that_an_application_numbers_counts_once(spark: SparkSession, tmp_path: Path) -> None:
    for number, name in ((7, "a"), (7, "b"), (6, "c"), (8, "d")):
        save(objects(spark, (name, number)), tmp_path, writer="etl", txnAppId="job", txnVersion=number)

    assert lengths(tmp_path) == {"a": 7, "d": 8} and len(log(tmp_path)) == 2


def test_no_rows_are_no_transaction(spark: SparkSession, tmp_path: Path) -> None:
    save(objects(spark, ("a", 1)), tmp_path)
    save(objects(spark, ("b", 1)).where("name = 'c'"), tmp_path)

    assert len(log(tmp_path)) == 1


@pytest.mark.parametrize(
    ("options", "columns", "mode", "why"),
    [
        ({}, "*", "overwrite", r"INVALID_OPTION.*cannot be overwritten as a whole.*Catalog\.restore"),
        ({"table": "nope"}, "*", "append", r"UNKNOWN_TABLE.*'nope'"),
        ({}, "*, 1 AS nope", "append", r"INVALID_ROWS.*the column 'nope', which it does not take"),
        ({}, "owner, name", "append", r"INVALID_ROWS.*lack the key column 'bucket_id'"),
        ({"operation": "merge"}, "*", "append", r"INVALID_OPTION.*no operation 'merge'.*put, update, delete, purge"),
        ({"operation": "delete"}, "*", "append", r"INVALID_ROWS.*'content_length', which it does not take"),
        ({"txnAppId": "job"}, "*", "append", r"INVALID_OPTION.*txnAppId and txnVersion go together"),
        ({"txnAppId": "job", "txnVersion": "x"}, "*", "append", r"INVALID_OPTION.*txnVersion is 'x'"),
        ({"versionAsOf": "3"}, "*", "append", r"INVALID_OPTION.*no option 'versionasof'"),
        ({"writer": "a/b"}, "*", "append", r"INVALID_NAME.*a/b"),
        ({}, "*, 1 AS operation", "append", r"INVALID_ROWS.*'operation' is of the type int32.*Next: Make it a string"),
        ({}, "*, 'dance' AS operation", "append", r"INVALID_ROWS.*'operation' holds 'dance'.*put, update, delete, purge"),
        ({}, "owner, bucket_id, cast(NULL AS string) AS name", "append", r"INVALID_ROWS.*name"),
    ],
)
def test_what_cannot_be_written_is_a_typed_error_and_nothing_is_committed(
    spark: SparkSession, tmp_path: Path, options: dict[str, str], columns: str, mode: str, why: str
) -> None:
    save(objects(spark, ("a", 1)), tmp_path)
    frame = objects(spark, ("b", 2)).selectExpr(*columns.split(", "))

    with pytest.raises(PySparkException, match=f"(?s){why}"):
        frame.write.format("bucketcatalog").options(**options).mode(mode).save(str(tmp_path))
    assert lengths(tmp_path) == {"a": 1}


def test_sql_inserts_into_a_table(own: SparkSession, tmp_path: Path) -> None:
    save(objects(own, ("a", 1)), tmp_path)
    own.sql(f"CREATE TABLE inventory USING bucketcatalog OPTIONS (path '{tmp_path}', table 'objects')")
    own.sql(f"INSERT INTO inventory (owner, bucket_id, name, content_length) VALUES ('{OWNER}', '{CATS}', 'b', 2)")

    assert lengths(tmp_path) == {"a": 1, "b": 2}
    with pytest.raises(PySparkException, match=r"(?s)INVALID_OPTION.*cannot be overwritten"):
        own.sql("INSERT OVERWRITE inventory SELECT * FROM inventory")
    assert own.sql("SELECT sum(content_length) FROM inventory").first()[0] == 3
