"""A catalog in a real S3 store, read and planned by Spark; credentials reach the tasks and nothing that outlives them."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSourceReader

import pyspark_bucketcatalog as bcs
from bucketcatalog import Catalog
from minio.process import Server
from pyspark_bucketcatalog import attach
from pyspark_bucketcatalog.reading import frames
from pyspark_bucketcatalog.source import DefaultSource

from ..kit.roles import credentials
from ..kit.world import without_aws
from .sample import OWNER, objects, rows

pytestmark = pytest.mark.skipif(os.environ.get("BUCKETCATALOG_SKIP_S3") == "1", reason="BUCKETCATALOG_SKIP_S3 is 1")

OBJECTS = 20_000


class Place:
    """A catalog with a checkpoint and a tail in a bucket, and how each role reaches it."""

    def __init__(self, server: Server, bucket: str) -> None:
        self.server = server
        self.bucket = bucket
        self.url = f"s3://{bucket}/lake/inventory"
        self.storage = self.options("writer", "w1")
        with Catalog(self.url, storage_options=self.storage).writer("w1", database="photos") as writer:
            with writer.transaction() as tx:
                tx.put("buckets", {"owner": OWNER, "name": "cats"})
            (cats,) = Catalog(self.url, storage_options=self.storage).snapshot().scan("buckets").to_arrow().to_pylist()
            self.cats = cats["id"]
            with writer.transaction() as tx:
                tx.put("objects", objects(self.cats, [f"{number:05}" for number in range(OBJECTS)], content_type="image/jpeg"))
            writer.checkpoint()
            with writer.transaction() as tx:
                tx.delete("objects", objects(self.cats, ["00007"]).select(["owner", "bucket_id", "name"]))

    def options(self, role: str, writer: str | None = None) -> dict[str, str]:
        return credentials(self.server, role, self.bucket, "lake/inventory", writer)

    def read(self, spark: SparkSession, storage: dict[str, str], **options: Any) -> DataFrame:
        reading = spark.read.format("bucketcatalog").options(**{key: str(value) for key, value in options.items()})
        return reading.options(**{f"storage.{key}": value for key, value in storage.items()}).load(self.url)


@pytest.fixture
def place(server: Server, bucket: str) -> Place:
    return Place(server, bucket)


@pytest.fixture(autouse=True)
def no_credentials_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What the tests reach the store with comes from options alone."""
    without_aws(monkeypatch, tmp_path)


def test_tasks_read_the_catalog_with_a_readers_rights(spark: SparkSession, place: Place) -> None:
    found = place.read(spark, place.options("reader"), maxPartitionRows=65_536)

    assert found.count() == OBJECTS - 1
    assert found.filter("name = '00006'").select("content_type").first()["content_type"] == "image/jpeg"
    assert [row["name"] for row in rows(place.read(spark, place.options("reader"), table="deleted_objects"))] == ["00007"]
    changes = place.read(spark, place.options("reader"), readChangeFeed=True, startingVersion="w1@1")
    assert [row["_change_type"] for row in rows(changes)] == ["delete"]


@pytest.mark.once
def test_a_view_of_every_table_reaches_the_store(own: SparkSession, place: Place) -> None:
    attach(own, place.url, database="photos", storage_options=place.options("reader"))

    assert own.sql("SELECT count(*) AS n FROM objects").first()["n"] == OBJECTS - 1


def test_credentials_are_in_no_plan_partition_event_log_or_error(spark: SparkSession, place: Place) -> None:
    storage = place.options("reader")
    secrets = [storage["key"], storage["secret"], storage["token"]]
    found = place.read(spark, storage).filter("content_length > 3")
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        for mode in ("simple", "extended", "codegen", "cost", "formatted"):
            found.explain(mode=mode)
    source = DefaultSource({"path": place.url, **{f"storage.{key}": value for key, value in storage.items()}})
    reading: DataSourceReader = source.reader(source.schema())
    partitions = cloudpickle.dumps(reading.partitions()).decode("latin-1")
    wrong = {**storage, "secret": "not-the-secret-at-all"}
    with pytest.raises(AnalysisException, match="ACCESS_DENIED") as error:
        place.read(spark, wrong)

    assert "BatchScan bucketcatalog" in shown.getvalue()
    for secret in [*secrets, "not-the-secret-at-all"]:
        assert secret not in shown.getvalue()
        assert secret not in partitions
        assert secret not in repr(source) + repr(reading) + str(vars(found))
        assert secret not in str(error.value)


@pytest.mark.once
def test_what_spark_does_not_reach_is_read_through_python_and_no_credentials_are_shown(
    spark: SparkSession, place: Place, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    compactor = place.options("compactor", "compactor-1")
    with Catalog(place.url, storage_options=compactor).writer("compactor-1", database="photos") as writer:
        writer.checkpoint(scope="all", full=True)
    monkeypatch.setattr(frames, "LOCAL_ROWS", 0)
    storage = place.options("reader")
    found = bcs.read(spark, place.url, storage_options=storage)
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        for mode in ("simple", "extended", "codegen", "cost", "formatted"):
            found.explain(mode=mode)

    assert f"is read through Python: Spark does not read s3a://{place.bucket}/lake/inventory: " in caplog.text
    assert rows(found) == rows(place.read(spark, storage)) and found.count() == OBJECTS - 1
    assert "MapInArrow" in shown.getvalue()
    for secret in (storage["key"], storage["secret"], storage["token"]):
        assert secret not in shown.getvalue() + caplog.text + repr(vars(found))


EVENT_LOG = """
import sys
import pyspark_bucketcatalog as bcs
from pyspark.sql import SparkSession
url, folder, *storage = sys.argv[1:]
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.driver.bindAddress", "127.0.0.1")
builder = builder.config("spark.eventLog.enabled", "true").config("spark.eventLog.compress", "false")
spark = builder.config("spark.eventLog.dir", "file://" + folder).getOrCreate()
found = spark.read.format("bucketcatalog").options(**dict(pair.split("=", 1) for pair in storage)).load(url)
assert found.count() > 0
given = {name.removeprefix("storage."): value for name, value in (pair.split("=", 1) for pair in storage)}
assert bcs.read(spark, url, storage_options=given).count() > 0
spark.stop()
"""


@pytest.mark.once
def test_credentials_are_in_no_event_log(place: Place, tmp_path: Path) -> None:
    storage = place.options("reader")
    pairs = [f"storage.{key}={value}" for key, value in storage.items()]
    subprocess.run([sys.executable, "-c", EVENT_LOG, place.url, str(tmp_path), *pairs], check=True, capture_output=True)
    logged = "".join(path.read_text() for path in tmp_path.rglob("*") if path.is_file() and "events" in path.name)

    assert "SparkListenerSQLExecutionStart" in logged
    assert not [name for name in ("key", "secret", "token") if storage[name] in logged]


def test_a_sql_table_keeps_where_the_store_is_and_no_credentials(own: SparkSession, place: Place) -> None:
    storage = place.options("reader")
    where = (
        f"path '{place.url}', database 'photos', 'storage.endpoint_url' '{storage['endpoint_url']}', 'storage.region' 'us-east-1'"
    )
    with pytest.raises(AnalysisException, match=r"storage\.key would be stored with the table"):
        own.sql(f"CREATE TABLE of_s3 USING bucketcatalog OPTIONS ({where}, 'storage.key' 'k', 'storage.secret' 's')")
    given = ", ".join(f"'storage.{name}' '{storage[name]}'" for name in ("key", "secret", "token"))
    own.sql(f"CREATE TEMPORARY VIEW of_s3 USING bucketcatalog OPTIONS ({where}, {given})")

    assert own.sql("SELECT count(*) AS n FROM of_s3").first()["n"] == OBJECTS - 1
    described = "".join(str(row) for row in own.sql("DESCRIBE EXTENDED of_s3").collect())
    assert not [name for name in ("key", "secret", "token") if storage[name] in described]


@pytest.mark.once
def test_parquet_beside_the_catalog_is_read_with_the_same_options(place: Place) -> None:
    import pyarrow.parquet as pq
    import s3fs

    from bucketcatalog.store.s3.options import S3Options

    storage = S3Options.parse(place.server.storage_options)
    files = s3fs.S3FileSystem(**storage.for_s3fs())
    with files.open(f"{place.bucket}/data.parquet", "wb") as file:
        pq.write_table(pa.table({"a": [1, 2]}), file)

    assert pq.read_table(f"{place.bucket}/data.parquet", filesystem=files).to_pydict() == {"a": [1, 2]}
