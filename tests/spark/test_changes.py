"""Events and differences in Spark: those of the engine, of chosen buckets, owners and prefixes, divided among tasks."""

from __future__ import annotations

import pickle
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import pyspark_bucketcatalog as bcs
from bucketcatalog import Catalog, CatalogWarning, InvalidOption, NotFound, prefix
from bucketcatalog.store import open_store
from bucketcatalog.store.faults import Counting
from bucketcatalog.store.local import LocalStore
from pyspark_bucketcatalog.reading.relation import open_relation

from ..kit.chance import searching
from ..kit.machine.columns import DATABASE
from ..kit.machine.driver import quiet
from ..kit.machine.histories import histories
from ..kit.machine.running import narrated, run
from ..kit.machine.steps import History
from ..kit.machine.world import Time
from .sample import OTHER, OWNER, PER_BUCKET, Sample, objects, read, reader, rows

KINDS = {"readChangeFeed": "changes", "readDifference": "diff"}


@pytest.fixture(params=sorted(KINDS))
def kind(request: pytest.FixtureRequest) -> str:
    """What is read of what lies between."""
    return str(request.param)


def engine(catalog: Catalog, kind: str, **options: Any) -> list[dict[str, Any]]:
    return rows(getattr(catalog, KINDS[kind])(**options).to_arrow())


def test_what_lies_between_two_versions_is_what_the_engine_says(spark: SparkSession, sample: Sample, kind: str) -> None:
    expected = engine(sample.catalog, kind, start=sample.before)
    made = {"readChangeFeed": bcs.changes, "readDifference": bcs.diff}[kind]

    assert rows(read(spark, sample.path, **{kind: True}, startingVersion=sample.before)) == expected != []
    assert rows(read(spark, sample.path, **{kind: True}, startingTimestamp=sample.before_time)) == expected
    assert rows(made(spark, sample.path, "photos", start=sample.before)) == expected
    few = made(spark, sample.path, start=sample.before, columns=["name", "_change_type"], table="buckets")
    assert [tuple(row) for row in few.collect()] == [("empty", "delete" if kind == "readChangeFeed" else "deleted")]


@pytest.mark.once
def test_a_difference_back_is_the_other_way_round(spark: SparkSession, sample: Sample) -> None:
    now = sample.catalog.snapshot().version
    frame = bcs.diff(spark, sample.path, start=now, end=sample.before)

    assert rows(frame) == engine(sample.catalog, "readDifference", start=now, end=sample.before)
    assert {row["_change_type"] for row in rows(frame)} == {"created", "deleted"}


@pytest.mark.once
def test_from_the_beginning_everything_is_new(spark: SparkSession, sample: Sample, kind: str) -> None:
    frame = read(spark, sample.path, **{kind: True}, endingVersion=sample.before, maxPartitionRows=20_000)

    assert frame.rdd.getNumPartitions() == (2 if kind == "readChangeFeed" else 1)
    expected = [(row["name"], row["_version"]) for row in engine(sample.catalog, kind, end=sample.before)]
    assert sorted(map(tuple, frame.select("name", "_version").collect())) == sorted(expected)


# What was before


def test_what_was_before_is_a_struct_of_the_earlier_row(spark: SparkSession, sample: Sample, kind: str) -> None:
    made = {"readChangeFeed": bcs.changes, "readDifference": bcs.diff}[kind]
    method = {"readChangeFeed": sample.catalog.changes, "readDifference": sample.catalog.diff}[kind]
    expected = method(
        start=sample.before, pre_images=["content_length", "etag"], columns=["name", "bucket", "_change_type", "_before"]
    )
    frame = made(
        spark,
        sample.path,
        start=sample.before,
        preImages=["content_length", "etag"],
        columns=["name", "bucket", "_change_type", "_before"],
    )

    found = sorted((row.asDict(recursive=True) for row in frame.collect()), key=repr)
    assert found == sorted(expected.to_arrow().to_pylist(), key=repr)
    assert frame.where("_before IS NOT NULL").count() > 0
    total = frame.selectExpr("sum(_before.content_length)").first()
    assert total is not None and total[0] == sum(row["_before"]["content_length"] or 0 for row in found if row["_before"])
    every = read(spark, sample.path, **{kind: True}, startingVersion=sample.before, preImages="true")
    assert every.schema["_before"].dataType.fieldNames()[:3] == ["owner", "bucket_id", "name"]  # type: ignore[attr-defined]


@pytest.mark.once
def test_what_was_before_is_asked_of_changes_alone(sample: Sample, kind: str) -> None:
    with pytest.raises(InvalidOption, match="preImages is about events and differences"):
        reader(sample.path, preImages="true")
    with pytest.raises(InvalidOption, match="no column 'size'"):
        reader(sample.path, **{kind: True}, preImages="size")


# Key ranges


def test_a_bucket_and_a_prefix_narrow_it(spark: SparkSession, sample: Sample, kind: str) -> None:
    cats = {"bucket_id": sample.buckets["cats"]}
    frame = read(spark, sample.path, **{kind: True}, startingVersion="node-1@0", bucket="cats", prefix="2021/")

    assert rows(frame) == engine(sample.catalog, kind, start="node-1@0", where={**cats, "name": prefix("2021/")}) != []
    with pytest.raises(InvalidOption, match="2 owners have a bucket 'shared'"):
        reader(sample.path, **{kind: True}, bucket="shared")
    of_other = reader(sample.path, **{kind: True}, bucket="shared", owner=OTHER)
    assert counted(of_other, sample.path)[0] == PER_BUCKET


def counted(reading: Any, path: str) -> tuple[int, int, int]:
    """Rows, range reads and bytes of reading all that a reader plans, each part by a copy."""
    partitions = reading.partitions()
    task = pickle.loads(pickle.dumps(reading))
    store = Counting(open_store(path))
    task._relation.catalog = Catalog(store)
    found = sum(batch.num_rows for part in pickle.loads(pickle.dumps(partitions)) for batch in task.read(part))
    return found, store.requests["get_range"], store.bytes_read


@pytest.mark.once
def test_other_key_ranges_are_not_fetched(sample: Sample, kind: str) -> None:
    everything, most, most_bytes = counted(reader(sample.path, **{kind: True}, endingVersion="node-1@1"), sample.path)
    of_bucket, some, some_bytes = counted(
        reader(sample.path, **{kind: True}, endingVersion="node-1@1", bucket="dogs"), sample.path
    )

    assert (everything, of_bucket) == (4 * PER_BUCKET, PER_BUCKET)
    assert some < most and some_bytes < most_bytes


@pytest.mark.once
def test_buckets_themselves_are_narrowed_by_name_and_owner(sample: Sample, kind: str) -> None:
    assert counted(reader(sample.path, **{kind: True}, table="buckets", bucket="shared"), sample.path)[0] == 2
    assert counted(reader(sample.path, **{kind: True}, table="buckets", prefix="sha", owner=OWNER), sample.path)[0] == 1


# Buckets that come and go


@pytest.fixture
def moving(tmp_path: Path) -> tuple[str, list[str]]:
    """A catalog with a bucket that is deleted, forgotten, and made again, and the versions in between."""
    path, versions = str(tmp_path / "lake"), []
    catalog = Catalog(path)

    def steps() -> Iterator[None]:
        with catalog.writer("w") as writer:
            key = {"owner": OWNER, "name": "b"}
            for number in range(2):
                with writer.transaction() as tx:
                    tx.put("buckets", key)
                id_ = catalog.snapshot().get("buckets", **key)["id"]  # type: ignore[index]
                with writer.transaction() as tx:
                    tx.put("objects", objects(id_, [f"{number}/{at}" for at in range(3)]))
                yield
                with writer.transaction() as tx:
                    tx.delete(
                        "objects", objects(id_, [f"{number}/{at}" for at in range(3)]).select(["owner", "bucket_id", "name"])
                    )
                    tx.delete("buckets", key)
                yield
                ended = catalog.snapshot().scan("deleted_buckets", columns=["owner", "name", "_version"]).to_arrow()
                with writer.transaction() as tx:
                    tx.purge("buckets", ended.to_pylist())
                yield

    for _ in steps():
        versions.append(catalog.snapshot().version)
    return path, versions


@pytest.mark.once
def test_a_bucket_is_found_by_its_name_at_either_end_or_among_what_has_ended(moving: tuple[str, list[str]]) -> None:
    path, (lives, gone, forgotten, again, *_) = moving

    def found(kind: str, start: str | None, end: str) -> list[tuple[str, str]]:
        ends = ({} if start is None else {"startingVersion": start}) | {"endingVersion": end}
        relation = open_relation({"path": path, kind: "true", "bucket": "b", **ends})
        read = [rows for task in relation.tasks(["_change_type", "name"]) for rows in task.read(LocalStore(path))]
        return [(row["_change_type"], row["name"]) for each in read for row in each.to_pylist()]

    put, deleted = ([(kind, f"0/{at}") for at in range(3)] for kind in ("put", "delete"))
    assert found("readChangeFeed", lives, gone) == deleted
    assert found("readChangeFeed", lives, forgotten) == deleted
    assert found("readChangeFeed", None, gone) == put + deleted
    assert found("readDifference", lives, forgotten) == [("deleted", f"0/{at}") for at in range(3)]
    both = found("readDifference", lives, again)
    assert sorted(both) == [("created", f"1/{at}") for at in range(3)] + [("deleted", f"0/{at}") for at in range(3)]
    with pytest.raises(NotFound, match="at either version"):
        found("readChangeFeed", forgotten, forgotten)


# Large, damaged, at random


@pytest.mark.once
def test_one_large_transaction_is_read_by_several_tasks(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "lake")
    bucket = "33333333-3333-4333-8333-333333333333"
    with Catalog(path).writer("w") as writer, writer.transaction() as tx:
        tx.put("objects", objects(bucket, [f"{number:07d}" for number in range(400_000)]))
    frame = bcs.changes(spark, path, maxPartitionRows=100_000, columns=["name", "content_length"])

    assert frame.rdd.getNumPartitions() >= 4
    assert frame.selectExpr("sum(content_length)", "count(distinct name)").first() == (400_000 * 399_999 // 2, 400_000)


@pytest.mark.once
def test_what_is_damaged_is_an_error_or_left_out(tmp_path: Path, kind: str) -> None:
    path = str(tmp_path / "lake")
    bucket = "33333333-3333-4333-8333-333333333333"
    with Catalog(path).writer("w") as writer:
        for first, count in ((0, 10), (10, 30_000)):
            with writer.transaction() as tx:
                tx.put("objects", objects(bucket, [f"{number:07d}" for number in range(first, first + count)]))
    (segment,) = Path(path).glob("**/*.parquet")
    data = bytearray(segment.read_bytes())
    data[1_000] ^= 1
    segment.write_bytes(data)

    with pytest.raises(Exception, match=segment.name):
        counted(reader(path, **{kind: True}), path)
    with pytest.warns(CatalogWarning, match=segment.name):
        found = counted(reader(path, **{kind: True}, ignoreCorruption=True), path)[0]
    assert found == 10 + 30_000 - 16_384


@pytest.mark.once
def test_of_random_histories_spark_shows_what_the_engine_does(spark: SparkSession) -> None:
    @searching("changes in Spark", phases=[Phase.explicit, Phase.generate])
    @given(histories(), st.integers(0, 1 << 30))
    def search(history: History, number: int) -> None:
        chance = random.Random(number)
        with tempfile.TemporaryDirectory() as folder, quiet():
            machine = run(history, LocalStore(folder), Time())
            start, kind = chance.choice(machine.moments), chance.choice(sorted(KINDS))
            table = chance.choice(("objects", "buckets"))
            made = {"readChangeFeed": bcs.changes, "readDifference": bcs.diff}[kind]
            with narrated([*machine.trace, f"{kind} of {table} from {start}"]):
                shown = made(spark, folder, DATABASE, table, start=start, maxPartitionRows=2)
                assert rows(shown) == engine(Catalog(folder), kind, database=DATABASE, table=table, start=start)

    search()
