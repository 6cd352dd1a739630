"""Reading in Spark shows what the engine shows: every table, the past, key ranges, chosen columns, and clear errors."""

from __future__ import annotations

import datetime
import pickle
import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from bucketcatalog import Catalog, InvalidOption, NotFound
from bucketcatalog.state.shares import grouped, share_count
from bucketcatalog.store import open_store
from bucketcatalog.store.faults import Counting

from .sample import HOSTILE_NAMES, OTHER, OWNER, PER_BUCKET, Sample, read, reader, rows


def engine(sample: Sample, table: str, **scan: Any) -> list[dict[str, Any]]:
    return rows(sample.catalog.snapshot().scan(table, **scan).to_arrow())


def engine_at(sample: Sample, table: str) -> list[dict[str, Any]]:
    return rows(sample.catalog.snapshot(version=sample.before).scan(table).to_arrow())


# Tables


@pytest.mark.parametrize(
    "table",
    [
        "deleted_objects",
        "log",
        *(pytest.param(name, marks=pytest.mark.once) for name in ("buckets", "deleted_buckets", "writers", "segments", "tables")),
    ],
)
def test_spark_shows_a_table_as_the_engine_does(spark: SparkSession, sample: Sample, table: str) -> None:
    assert rows(read(spark, sample.path, table=table)) == engine(sample, table) != []


@pytest.mark.once
@pytest.mark.parametrize("table", ["checkpoints", "conflicts", "forks", "object_versions", "harvest_errors"])
def test_the_other_tables_can_be_read_too(spark: SparkSession, sample: Sample, table: str) -> None:
    assert read(spark, sample.path, table=table).count() == len(engine(sample, table))


def test_every_live_object_is_shown_with_every_column(spark: SparkSession, sample: Sample) -> None:
    assert rows(read(spark, sample.path)) == engine(sample, "objects")


def test_names_are_byte_equal_however_hostile(spark: SparkSession, sample: Sample) -> None:
    frame = read(spark, sample.path, bucket="weird")
    collected = {row["name"].encode() for row in frame.select("name").collect()}
    lengths = {row[0] for row in frame.selectExpr("hex(cast(name as binary))").collect()}

    assert collected == {name.encode() for name in HOSTILE_NAMES}
    assert {bytes.fromhex(text) for text in lengths} == collected
    assert {row["headers"]["x-b"] for row in rows_with_maps(frame.toArrow())} == set(HOSTILE_NAMES)


def rows_with_maps(table: pa.Table) -> list[dict[str, Any]]:
    return [{**row, "headers": dict(row["headers"])} for row in table.to_pylist()]


# The past


def test_versions_and_times_show_the_past(spark: SparkSession, sample: Sample) -> None:
    before = engine_at(sample, "buckets")
    frames = [
        read(spark, sample.path, table="buckets", versionAsOf=sample.before),
        read(spark, sample.path, table="buckets", timestampAsOf=sample.before_time),
        read(spark, sample.path, table="buckets", versionAsOf="node-1@3"),
    ]

    assert "empty" in {row["name"] for row in before}
    assert [rows(frame) for frame in frames] == [before] * 3


@pytest.mark.once
def test_a_tag_is_a_version_and_tags_are_a_table(spark: SparkSession, sample: Sample, tmp_path: Path) -> None:
    path = str(shutil.copytree(sample.path, tmp_path / "catalog"))
    Catalog(path).tag("v1", version=sample.before)
    expected = rows(sample.catalog.changes(start=sample.before).to_arrow())

    assert rows(read(spark, path, table="buckets", versionAsOf="v1")) == engine_at(sample, "buckets")
    assert rows(read(spark, path, readChangeFeed=True, startingVersion="v1")) == expected
    assert rows(read(spark, path, table="tags")) == rows(Catalog(path).snapshot().scan("tags").to_arrow()) != []


@pytest.mark.once
def test_checkpoints_and_their_segments_are_tables_also_after_several_of_them(
    spark: SparkSession, sample: Sample, tmp_path: Path
) -> None:
    path = str(shutil.copytree(sample.path, tmp_path / "catalog"))
    with Catalog(path).writer("node-1", database="photos") as w:
        for number in range(3):
            with w.transaction() as tx:
                tx.put("objects", {"owner": OWNER, "bucket_id": sample.buckets["cats"], "name": f"more/{number}"})
            w.checkpoint()
    for table in ("checkpoints", "segments"):
        found = rows(read(spark, path, table=table))
        assert found == rows(Catalog(path).snapshot().scan(table).to_arrow()) and len(found) > 3
    shown = read(spark, path, table="checkpoints").where("bytes_reused > bytes_written AND bytes = bytes_written + bytes_reused")
    assert shown.count() == 3


def test_a_datetime_is_a_time(spark: SparkSession, sample: Sample) -> None:
    moment = datetime.datetime.fromtimestamp(int(sample.before_time[1:]) / 1e6, datetime.UTC)

    assert read(spark, sample.path, table="buckets", timestampAsOf=moment).count() == 6


@pytest.mark.once
def test_before_the_first_commit_everything_is_empty(spark: SparkSession, sample: Sample) -> None:
    assert read(spark, sample.path, timestampAsOf="2001-01-01").count() == 0


def test_events_between_two_versions_are_those_of_the_engine(spark: SparkSession, sample: Sample) -> None:
    frame = read(spark, sample.path, readChangeFeed=True, startingVersion=sample.before)
    by_time = read(spark, sample.path, readChangeFeed=True, startingTimestamp=sample.before_time, columns="name, _change_type")

    assert rows(frame) == rows(sample.catalog.changes(start=sample.before).to_arrow())
    assert {row["_change_type"] for row in rows(by_time)} == {"put", "delete"}
    assert by_time.count() == 105


@pytest.mark.once
def test_events_from_the_beginning_to_a_version(spark: SparkSession, sample: Sample) -> None:
    frame = read(spark, sample.path, readChangeFeed=True, endingVersion=sample.before, maxPartitionRows=20_000)

    assert frame.rdd.getNumPartitions() == 2
    assert frame.count() == 4 * PER_BUCKET + len(HOSTILE_NAMES) + 10


# Key ranges


def requests(path: str, **options: Any) -> tuple[int, int]:
    """Rows and range reads of reading everything, counted below the engine."""
    reading = reader(path, **options)
    partitions = reading.partitions()
    task = pickle.loads(pickle.dumps(reading))
    store = Counting(open_store(path))
    task._relation.catalog = Catalog(store)
    found = sum(batch.num_rows for part in pickle.loads(pickle.dumps(partitions)) for batch in task.read(part))
    return found, store.requests["get_range"]


@pytest.mark.once
def test_bucket_and_prefix_read_only_their_key_ranges(sample: Sample) -> None:
    everything, most = requests(sample.path)
    of_bucket, some = requests(sample.path, bucket="dogs")
    of_prefix, few = requests(sample.path, bucket="dogs", prefix="2021/0000")

    assert everything > of_bucket == PER_BUCKET + 100
    assert of_prefix == 2
    assert most > some > few >= 1
    assert most >= 6
    assert few <= 2


def test_a_bucket_of_several_owners_needs_one(spark: SparkSession, sample: Sample) -> None:
    frame = read(spark, sample.path, bucket="shared", owner=OTHER)

    assert {(row["owner"], row["bucket_id"]) for row in rows(frame.select("owner", "bucket_id"))} == {
        (OTHER, sample.buckets["other shared"])
    }
    with pytest.raises(InvalidOption, match=f"2 owners have a bucket 'shared': .*{OWNER}.*Say whose it is: owner"):
        reader(sample.path, bucket="shared")


@pytest.mark.once
def test_owner_and_prefix_work_alone_and_on_buckets(sample: Sample) -> None:
    assert requests(sample.path, owner=OTHER)[0] == PER_BUCKET
    assert requests(sample.path, prefix="2023/")[0] == 4 * PER_BUCKET // 5 - 1
    assert requests(sample.path, table="buckets", bucket="shared")[0] == 2
    assert requests(sample.path, table="buckets", prefix="sha", owner=OWNER)[0] == 1


@pytest.mark.once
def test_tombstones_of_a_bucket_that_is_gone_can_be_read(sample: Sample) -> None:
    assert requests(sample.path, table="deleted_objects", bucket="cats")[0] == 15
    assert requests(sample.path, table="deleted_objects", bucket="empty")[0] == 0
    with pytest.raises(NotFound, match=r"no bucket 'empty'.*it has ended.*deleted_buckets"):
        reader(sample.path, bucket="empty")


@pytest.mark.once
def test_the_number_of_partitions_follows_the_rows_in_the_index() -> None:
    assert [share_count(rows, 1 << 20) for rows in (0, 1, 100_000)] == [1, 1, 1]
    assert share_count(10 << 20, 1 << 20) == 10
    assert share_count(1 << 17, 1 << 20) == 1


@pytest.mark.once
@pytest.mark.parametrize(("weights", "count"), [([], 3), ([5], 3), ([1] * 10, 3), ([0, 0, 9, 0, 1], 2), ([7, 1, 1, 1, 7], 4)])
def test_groups_are_neighbours_that_cover_everything(weights: list[int], count: int) -> None:
    groups = grouped(weights, count)

    assert [at for group in groups for at in group] == list(range(len(weights)))
    assert len(groups) <= count


# Columns


@pytest.mark.once
def test_frames_with_maps_are_compared_by_columns_since_spark_has_no_sets_of_maps(spark: SparkSession, sample: Sample) -> None:
    frame = read(spark, sample.path, bucket="weird")
    with pytest.raises(AnalysisException, match="SET_OPERATION_ON_MAP_TYPE"):
        frame.exceptAll(frame).count()

    flat = frame.select("name", "roles", "content_md5")
    assert flat.exceptAll(flat.where("name = '..'")).count() == 17


def test_the_users_schema_chooses_columns_and_may_ask_for_more(spark: SparkSession, sample: Sample) -> None:
    ddl = (
        "_revision bigint, name string, headers map<string,string>, _version string, _writer string, _commit_timestamp timestamp"
    )
    frame = spark.read.format("bucketcatalog").schema(ddl).option("bucket", "weird").load(sample.path)
    columns = [part.split()[0] for part in re.sub(r"<.*?>", "", ddl).split(", ")]

    assert frame.columns == columns
    where = {"bucket_id": sample.buckets["weird"]}
    assert rows(frame) == engine(sample, "objects", columns=columns, where=where)


def test_the_option_columns_does_the_same(spark: SparkSession, sample: Sample) -> None:
    frame = read(spark, sample.path, table="deleted_objects", columns="deleted_at,_version, name")

    assert rows(frame) == engine(sample, "deleted_objects", columns=["deleted_at", "_version", "name"])


@pytest.mark.parametrize(
    ("ddl", "message"),
    [
        ("name string, size bigint", "no column 'size'.*Its columns are owner, .*_revision"),
        pytest.param(
            "name string, content_length int", "'content_length' of table 'objects' is bigint, not int", marks=pytest.mark.once
        ),
        pytest.param(
            "name string, content_length bigint not null",
            "'content_length' of table 'objects' can be null",
            marks=pytest.mark.once,
        ),
    ],
)
def test_a_schema_that_does_not_fit_is_an_error(spark: SparkSession, sample: Sample, ddl: str, message: str) -> None:
    with pytest.raises(AnalysisException, match=rf"INVALID_OPTION\] .*{message}"):
        spark.read.format("bucketcatalog").schema(ddl).load(sample.path).count()
