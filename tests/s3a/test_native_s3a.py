"""A catalog on S3, read natively: Spark's own file system reads the files, this package whatever lies over them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import pyspark_bucketcatalog as bcs
from bucketcatalog import Catalog, InvalidOption
from minio.process import Server
from pyspark_bucketcatalog.reading import frames

OWNER, CATS = "8f1a1c3e-52f3-4f0e-9d8b-0a4c5b6d7e8f", "0b6a2a0e-9d0f-5a53-8a4e-3f1e0c7d9b22"
NAMES = [f"2024/{number:05}.jpg" for number in range(20_000)]


class Lake:
    """20,000 objects in a bucket, merged."""

    def __init__(self, server: Server, bucket: str) -> None:
        self.storage = server.storage_options
        self.url = f"s3://{bucket}/lakes/date=2024/an inventory"
        with self.writer("compactor-1") as writer:
            with writer.transaction() as tx:
                tx.put("objects", objects(NAMES, 1))
            writer.checkpoint(scope="all", full=True)

    def writer(self, name: str) -> Any:
        return Catalog(self.url, storage_options=self.storage).writer(name, database="photos")

    def change(self, every: int) -> None:
        with self.writer("node-1") as writer, writer.transaction() as tx:
            tx.put("objects", objects(NAMES[::every], 2))
            tx.delete("objects", objects(NAMES[1::every], 0).select(["owner", "bucket_id", "name"]))

    def read(self, spark: SparkSession, **options: Any) -> DataFrame:
        return bcs.read(spark, self.url, storage_options=self.storage, columns=["name", "content_length", "_version"], **options)


def objects(names: list[str], length: int) -> pa.Table:
    columns = {"owner": OWNER, "bucket_id": CATS, "content_length": length}
    return pa.table({"name": names} | {name: pa.repeat(pa.scalar(value), len(names)) for name, value in columns.items()})


@pytest.fixture
def lake(server: Server, bucket: str) -> Lake:
    return Lake(server, bucket)


def rows(frame: DataFrame) -> list[str]:
    return sorted(map(repr, frame.collect()))


@contextmanager
def credentials(spark: SparkSession, **given: str) -> Iterator[None]:
    """Other ones for a while."""
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    before = {name: hadoop.get(f"fs.s3a.{name}.key") for name in given}
    for name, value in given.items():
        hadoop.set(f"fs.s3a.{name}.key", value)
    try:
        yield
    finally:
        for name, value in before.items():
            hadoop.set(f"fs.s3a.{name}.key", value)


@pytest.mark.parametrize("every", [0, 2_000, 3])
def test_rows_are_those_that_come_through_python(spark: SparkSession, lake: Lake, every: int) -> None:
    if every:
        lake.change(every)
    frame = lake.read(spark, native=True)

    assert all(name.startswith("s3a://") for name in frame.inputFiles()) and frame.inputFiles()
    assert rows(frame) == rows(lake.read(spark, native=False))
    some = lake.read(spark, native=True, owner=OWNER, prefix="2024/0001")
    assert rows(some) == [row for row in rows(lake.read(spark, native=False)) if "name='2024/0001" in row] != []


def test_a_merge_and_a_file_that_is_gone_while_a_frame_is_open(spark: SparkSession, lake: Lake, s3: Any, bucket: str) -> None:
    frame = lake.read(spark, native=True)
    before = rows(frame)
    lake.change(3)
    with lake.writer("compactor-1") as writer:
        writer.checkpoint(scope="all", full=True)
    assert rows(frame) == before != rows(lake.read(spark, native=True))

    for name in {name.partition(f"{bucket}/")[2] for name in frame.inputFiles()}:
        s3.delete_object(Bucket=bucket, Key=name.replace("%20", " ").replace("%3D", "="))
    with pytest.raises((PySparkException, Py4JJavaError), match=r"(?s)FILE_NOT_EXIST|does not exist|No such file"):
        rows(frame)


def test_credentials_that_end_are_an_error_and_never_fewer_rows(spark: SparkSession, lake: Lake) -> None:
    frame = lake.read(spark, native=True)
    assert frame.count() == len(NAMES)
    with (
        credentials(spark, secret="another-secret"),
        pytest.raises((PySparkException, Py4JJavaError), match=r"(?s)Forbidden|403|Access"),
    ):
        rows(frame)
    assert frame.count() == len(NAMES)


def test_without_spark_having_credentials_everything_comes_through_python(
    spark: SparkSession, lake: Lake, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "LOCAL_ROWS", 0)
    with credentials(spark, secret="another-secret"):
        assert lake.read(spark).count() == len(NAMES)
        assert "is read through Python: Spark does not read s3a://" in caplog.text
        with pytest.raises(InvalidOption, match="cannot be read natively: Spark does not read s3a://"):
            lake.read(spark, native=True)


def test_every_table_is_attached(spark: SparkSession, lake: Lake) -> None:
    lake.change(3)
    bcs.attach(spark, lake.url, storage_options=lake.storage)

    assert (
        spark.sql("SELECT count(*), sum(content_length) FROM objects").first()[:]
        == lake.read(spark, native=False).selectExpr("count(*)", "sum(content_length)").first()[:]
    )
    assert spark.table("deleted_objects").count() > 0
