"""Times that count from now in options and conditions: settled once, at ``load()``, whoever reads the rows and however often."""

from __future__ import annotations

import datetime
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import pyspark_bucketcatalog as bcs
from bucketcatalog import Catalog, InvalidName, InvalidOption, InvalidTime, InvalidVersion, between
from pyspark_bucketcatalog.options import StreamOptions
from pyspark_bucketcatalog.reading.relation import Relation, open_relation
from pyspark_bucketcatalog.reading.streaming import beginning, open_stream
from pyspark_bucketcatalog.source import DefaultSource

from ..kit.world import DAY, obj
from .sample import read

DAYS = [0, 1, 2, 3]
YESTERDAY = {"modified": between("1d12h", "12 hours ago")}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Objects that were modified so many days ago, of which half lie in a checkpoint, all committed now."""
    found = str(tmp_path_factory.mktemp("relative") / "lake")
    now = datetime.datetime.now(datetime.UTC)
    with Catalog(found).writer("compactor-c") as writer:
        for days in (DAYS[:2], DAYS[2:]):
            with writer.transaction() as tx:
                tx.put("objects", [obj(f"of {day}", modified=now - datetime.timedelta(days=day)) for day in days])
            if 0 in days:
                writer.checkpoint(scope="all")
    return found


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Lets thirty days pass for this process."""
    from bucketcatalog import clock

    now = clock.now_us()
    return lambda: monkeypatch.setattr("bucketcatalog.clock.now_us", lambda: now + 30 * DAY)


def found(relation: Relation) -> list[str]:
    """What the tasks of a relation read, planned now."""
    tasks = [pickle.loads(pickle.dumps(task)) for task in relation.tasks(["name"])]
    return sorted(name for task in tasks for rows in task.read(relation.catalog.store) for name in rows["name"].to_pylist())


@pytest.mark.parametrize("where", ['{"modified": {">=": "1d12h", "<": "12h ago"}}', json.dumps({"modified": {">": "36 hours"}})])
def test_a_relation_reads_the_same_wherever_and_whenever_it_is_planned(path: str, later: Any, where: str) -> None:
    relation = open_relation({"path": path, "where": where})
    expected, sent = found(relation), pickle.dumps(relation)
    later()
    assert found(relation) == found(pickle.loads(sent)) == found(relation.of_columns(["name"])) == expected != []


@pytest.mark.parametrize("kind", ["readChangeFeed", "readDifference"])
def test_events_and_differences_are_between_the_times_of_load(path: str, later: Any, kind: str) -> None:
    relation = open_relation({"path": path, kind: "true", "startingTimestamp": "1h", "endingTimestamp": "now"})
    sent = pickle.dumps(relation)
    later()
    assert found(relation) == found(pickle.loads(sent)) == found(relation.of_columns(["name"])) == [f"of {day}" for day in DAYS]


def test_a_source_opens_what_it_was_made_for_whenever_spark_asks_for_a_reader(path: str, later: Any) -> None:
    options = {"path": path, "readChangeFeed": "true", "startingTimestamp": "1h"}
    source = pickle.loads(pickle.dumps(DefaultSource(options)))
    schema = source.schema()
    later()
    assert sum(len(list(source.reader(schema).read(part))) for part in source.reader(schema).partitions()) > 0


def test_a_stream_starts_after_the_time_of_load(path: str, later: Any) -> None:
    stream = open_stream({"path": path, "startingTimestamp": "1h"})
    first = beginning(stream.options)
    later()
    assert beginning(pickle.loads(pickle.dumps(stream)).options) == first
    assert "1h" not in json.dumps(first)


def test_reversed_times_are_refused(path: str) -> None:
    for start, end in (("now", "yesterday"), ("1h", "2h"), ("now", "2024-05-01")):
        with pytest.raises(InvalidOption, match="The start lies after the end"):
            open_relation({"path": path, "readChangeFeed": "true", "startingTimestamp": start, "endingTimestamp": end})
        open_relation({"path": path, "readDifference": "true", "startingTimestamp": start, "endingTimestamp": end})
    for _ in range(20):
        open_relation({"path": path, "readChangeFeed": "true", "startingTimestamp": "0s", "endingTimestamp": "now"})


def test_what_is_no_time_or_no_version_is_told_apart(path: str) -> None:
    with pytest.raises(InvalidTime, match="2 days ago"):
        open_relation({"path": path, "timestampAsOf": "2 fortnights ago"})
    with pytest.raises(InvalidVersion, match="timestampAsOf"):
        open_relation({"path": path, "versionAsOf": "yesterday"})
    with pytest.raises(InvalidOption, match="is not a time"):
        open_relation({"path": path, "where": '{"modified": {">=": "1 fortnight"}}'})
    with pytest.raises(InvalidName):
        StreamOptions.parse({"path": path, "readChangeFeed": "true", "pin": "now"})


def test_spark_reads_them(spark: SparkSession, path: str) -> None:
    assert read(spark, path, timestampAsOf="now").count() == 4 and read(spark, path, timestampAsOf="1 hour ago").count() == 0
    frame = read(spark, path, where='{"modified": {">=": "1d12h", "<": "12h ago"}}')
    assert [row["name"] for row in frame.collect()] == [row["name"] for row in frame.collect()] == ["of 1"]
    assert read(spark, path, readChangeFeed=True, startingTimestamp="yesterday", endingTimestamp="now").count() == 4


@pytest.mark.parametrize("native", [None, False])
def test_frames_of_both_kinds_read_them(spark: SparkSession, path: str, native: bool | None) -> None:
    assert [row["name"] for row in bcs.read(spark, path, where=YESTERDAY, native=native).collect()] == ["of 1"]
    assert bcs.read(spark, path, timestampAsOf="24h", native=native).count() == 0


def test_changes_and_differences_take_times_and_versions(spark: SparkSession, path: str) -> None:
    version = Catalog(path).snapshot(version="compactor-c@0").version
    hour_ago = datetime.datetime.now(datetime.UTC) - datetime.timedelta(hours=1)
    for method in (bcs.changes, bcs.diff):
        for start in ("1h", "yesterday", hour_ago, hour_ago.date() - datetime.timedelta(days=1), "2024-05-01", "@0"):
            assert method(spark, path, start=start, end="now").count() == 4
        assert method(spark, path, start=version).count() == method(spark, path, start="compactor-c@0").count() == 2
    with pytest.raises(InvalidOption, match="The start lies after the end"):
        bcs.changes(spark, path, start="now", end="1h")


def test_several_catalogs_are_read_at_one_time(spark: SparkSession, path: str, tmp_path: Path) -> None:
    with Catalog(tmp_path / "other").writer("w") as writer, writer.transaction() as tx:
        tx.put("objects", [obj("other", modified=datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1))])
    both = {"one": path, "other": tmp_path / "other"}
    assert sorted(row["name"] for row in bcs.read(spark, both, where=YESTERDAY).collect()) == ["of 1", "other"]
    assert bcs.read(spark, both, timestampAsOf="now").count() == 5 and bcs.read(spark, both, timestampAsOf="1h").count() == 0


def test_a_table_of_sql_takes_them_at_each_query(own: SparkSession, path: str) -> None:
    own.sql(f"CREATE TABLE of_yesterday USING bucketcatalog OPTIONS (path '{path}', timestampAsOf '1 hour ago')")
    own.sql(f"CREATE TEMPORARY VIEW of_now USING bucketcatalog OPTIONS (path '{path}', timestampAsOf 'now')")
    try:
        assert own.sql("SELECT * FROM of_yesterday").count() == 0 and own.sql("SELECT * FROM of_now").count() == 4
    finally:
        own.sql("DROP TABLE of_yesterday")
