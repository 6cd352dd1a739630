"""Where a stream begins: looked up once, and kept in the offset that its first batch ends with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from bucketcatalog import Catalog, InvalidOption
from bucketcatalog.query import following
from bucketcatalog.write.writer import Writer
from pyspark_bucketcatalog.reading.streaming import ChangesStreamReader, open_stream
from pyspark_bucketcatalog.types import spark_schema

from .sample import OWNER

BUCKET = "0b6a2a0e-9d0f-5a53-8a4e-3f1e0c7d9b22"
LIMITED = pytest.mark.once
"""Of what PySpark 4.1 has not: it does not tell how a batch began when it asks where the batch ends."""
Offset = dict[str, Any]


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "PAUSE", 0.0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "catalog"


def put(writer: Writer, *names: str) -> None:
    with writer.transaction() as tx:
        tx.put("objects", [{"owner": OWNER, "bucket_id": BUCKET, "name": name} for name in names])


def opened(path: Path, **options: str) -> ChangesStreamReader:
    """A reader as Spark makes it for a run of a query."""
    stream = open_stream({"path": str(path), **options})
    return ChangesStreamReader(stream, spark_schema(stream.schema))


def next_end(reader: ChangesStreamReader, start: Offset) -> Offset:
    return reader.latestOffset(start, reader.getDefaultReadLimit())


def rows(reader: ChangesStreamReader, start: Offset, end: Offset) -> list[dict[str, Any]]:
    return [row for part in reader.partitions(start, end) for batch in reader.read(part) for row in batch.to_pylist()]


def names(reader: ChangesStreamReader, start: Offset, end: Offset) -> list[str]:
    return sorted(row["name"] for row in rows(reader, start, end))


@LIMITED
@pytest.mark.parametrize("with_state", [False, True])
def test_a_tag_that_is_moved_changes_nothing_of_a_stream_that_began_there(path: Path, with_state: bool) -> None:
    state = {"startingState": "true"} if with_state else {}
    one = Catalog(path).writer("one")
    put(one, "a")
    Catalog(path).tag("nightly")
    reader = opened(path, startingVersion="nightly", **state)
    start = reader.initialOffset()
    begun = next_end(reader, start)
    put(one, "b")
    Catalog(path).tag("nightly", replace=True)
    assert names(reader, start, begun) == (["a"] if with_state else [])
    again = opened(path, startingVersion="nightly", **state)
    assert names(again, again.initialOffset(), begun) == (["a"] if with_state else [])  # the first batch, after a failure
    end = next_end(again, begun)
    assert names(again, begun, end) == ["b"] and next_end(again, end) == end
    one.close()


def test_a_query_that_starts_at_a_tag_brings_what_came_after_it(spark: SparkSession, path: Path, tmp_path: Path) -> None:
    with Catalog(path).writer("one") as one:
        put(one, "a")
        Catalog(path).tag("nightly")
        put(one, "b")
        for newest in ("b", "c"):
            events = spark.readStream.format("bucketcatalog").option("startingVersion", "nightly").load(str(path))
            query = events.writeStream.format("parquet").options(
                checkpointLocation=str(tmp_path / "state"), path=str(tmp_path / "out")
            )
            query.trigger(availableNow=True).start().awaitTermination()
            Catalog(path).tag("nightly", replace=True)
            assert newest in {row.name for row in spark.read.parquet(str(tmp_path / "out")).collect()}
            put(one, "c")
    assert sorted(row.name for row in spark.read.parquet(str(tmp_path / "out")).collect()) == ["b", "c"]


FIRST = pa.schema([("id", pa.string()), ("n", pa.int32())])
SECOND = pa.schema([("id", pa.string()), ("count", pa.int64()), ("note", pa.string())])


@LIMITED
@pytest.mark.parametrize("is_covered", [False, True])
def test_the_state_of_before_a_table_was_changed_has_its_columns_of_now(path: Path, is_covered: bool) -> None:
    catalog = Catalog(path)
    catalog.create_table("jobs.runs", FIRST, key=["id"])
    with catalog.writer("one") as one:
        with one.transaction() as tx:
            tx.put("jobs.runs", [{"id": "a", "n": 1}, {"id": "b"}])
        if is_covered:
            one.checkpoint()
    planned = opened(path, startingState="true", table="jobs.runs")
    start = planned.initialOffset()
    end = next_end(planned, start)
    catalog.create_table("jobs.runs", SECOND, key=["id"], rename={"n": "count"})
    again = opened(path, startingState="true", table="jobs.runs")
    found = [(row["_change_type"], row["id"], row["count"], row["note"]) for row in rows(again, start, end)]
    assert found == [("put", "a", 1, None), ("put", "b", None, None)]
    assert next_end(again, end) == end


@LIMITED
def test_two_readers_that_give_one_pin_do_not_fork_its_writer(path: Path) -> None:
    with Catalog(path).writer("one") as one:
        put(one, "a")
    readers = [opened(path, readChangeFeed="true", pin="p") for _ in range(2)]
    ends = [next_end(reader, reader.initialOffset()) for reader in readers]
    assert ends[0] == ends[1]
    snapshot = Catalog(path).snapshot()
    assert len(snapshot.scan("forks").to_arrow()) == 0
    assert snapshot.cut.newest_revision("spark-pin-p") == 0


def test_a_checkpoint_of_another_tables_stream_is_refused(path: Path) -> None:
    with Catalog(path).writer("one") as one:
        put(one, "a")
    objects = opened(path, readChangeFeed="true")
    end = objects.latestOffset()
    buckets = opened(path, readChangeFeed="true", table="buckets")
    with pytest.raises(
        InvalidOption, match=r"is one of a stream of default/objects, and it reads default/buckets.*checkpointLocation"
    ):
        buckets.partitions(end, {**end, "one": "1:00"})
