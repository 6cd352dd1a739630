"""Frames held while the catalog is maintained: the rows of their cut, or an error that says what became of it, never other rows."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSourceReader, InputPartition

import pyspark_bucketcatalog as bcs
from bucketcatalog import Catalog, HistoryPruned
from bucketcatalog.store.local import LocalStore
from bucketcatalog.store.wrappers import Wrapped
from pyspark_bucketcatalog.reading import frames

from .sample import OTHER, objects, read, reader

DAY = 86_400_000_000
LOST = Path(__file__).with_name("lost_executor_child.py")
ROWS = 20_000
GONE = r"\[PRUNED\] .*which is gone, lies before .*Next: "


class DaysAgo(Wrapped):
    """A directory some days ago, which is when its files are written too."""

    def __init__(self, path: Path) -> None:
        super().__init__(LocalStore(path))
        self.path = path
        self.days = 0

    def now_us(self, below: str | None = None) -> int:
        return time.time_ns() // 1_000 - self.days * DAY

    def put(self, name: str, data: bytes) -> None:
        super().put(name, data)
        os.utime(self.path / name, (self.now_us() / 1e6, self.now_us() / 1e6))


@dataclass
class Old:
    """A catalog with 20,000 objects in a checkpoint of five days ago, and ten more that came after it."""

    path: Path
    versions: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store = DaysAgo(self.path)
        self.commit(5, [f"{number:05}" for number in range(ROWS)])
        self.checkpoint(5)
        self.commit(4, [f"new {number}" for number in range(10)])

    def commit(self, days: int, names: list[str]) -> None:
        self.store.days = days
        with Catalog(self.store).writer("node-1", clock=self.store.now_us) as writer, writer.transaction() as tx:
            tx.put("objects", objects(OTHER, names))
        self.versions.append(Catalog(self.store).snapshot().version)

    def checkpoint(self, days: int) -> None:
        """One that refers to nothing of those before it."""
        self.store.days = days
        with Catalog(self.store).writer("compactor-1", clock=self.store.now_us) as compactor:
            assert compactor.checkpoint(scope="all", full=True) is not None

    def prune(self) -> None:
        """Published two days ago, deleted now: what is older than the newest checkpoint."""
        for days in (2, 0):
            self.store.days = days
            done = Catalog(self.store).prune("6h", dry_run=False, writer="maintainer-1", clock=self.store.now_us)
        assert {file.kind.value for file in done.files} >= {"segment", "transaction"}


@pytest.fixture
def old(tmp_path: Path) -> Old:
    return Old(tmp_path / "lake")


def names(frame: DataFrame) -> list[str]:
    return sorted(row["name"] for row in frame.select("name").collect())


def copied(reading: DataSourceReader) -> DataSourceReader:
    """The reader in another process."""
    copy: DataSourceReader = pickle.loads(pickle.dumps(reading))
    return copy


def tasks(reading: DataSourceReader) -> Iterator[tuple[DataSourceReader, InputPartition]]:
    """What Spark hands to tasks."""
    for partition in reading.partitions():
        yield pickle.loads(pickle.dumps((reading, partition)))


def rows_of(planned: Iterable[tuple[DataSourceReader, InputPartition]]) -> Iterator[Any]:
    for reading, partition in planned:
        for batch in reading.read(partition):
            yield from batch.to_pylist()


EVERYTHING = sorted([*(f"{number:05}" for number in range(ROWS)), *(f"new {number}" for number in range(10))])


@pytest.mark.once
def test_a_checkpoint_that_merges_everything_changes_no_frame(spark: SparkSession, old: Old) -> None:
    frames = [read(spark, str(old.path)), read(spark, str(old.path), versionAsOf=old.versions[0])]
    planned = [read(spark, str(old.path)), read(spark, str(old.path), versionAsOf=old.versions[0])]
    assert [frame.count() for frame in planned] == [ROWS + 10, ROWS]
    old.commit(3, ["00001", "newer"])
    old.checkpoint(3)

    assert [names(frame) for frame in (*frames, *planned)] == [EVERYTHING, EVERYTHING[:ROWS]] * 2


@pytest.mark.once
def test_a_frame_of_what_was_pruned_is_an_error_that_says_so_and_one_of_what_stays_is_not(spark: SparkSession, old: Old) -> None:
    planned, waiting = read(spark, str(old.path)), read(spark, str(old.path))
    assert planned.count() == ROWS + 10
    old.checkpoint(3)
    kept, waits = read(spark, str(old.path)), read(spark, str(old.path))
    assert kept.count() == ROWS + 10
    old.prune()

    for frame in (planned, waiting, waiting, planned):
        with pytest.raises(PySparkException, match=r"(?s)\[PRUNED\] .* lies before .*Next: "):
            frame.count()
    assert names(kept) == names(waits) == EVERYTHING


def test_a_tagged_version_is_read_from_what_was_kept_for_it_unless_it_was_planned_before(old: Old) -> None:
    with Catalog(old.store).writer("maintainer-1", clock=old.store.now_us) as maintainer:
        maintainer.tag("kept", version=old.versions[0])
    waiting, reading = (copied(reader(str(old.path), versionAsOf="kept")) for _ in range(2))
    planned = list(tasks(reading))
    old.checkpoint(3)
    old.prune()

    assert sorted(row["name"] for row in rows_of(tasks(waiting))) == EVERYTHING[:ROWS]
    with pytest.raises(HistoryPruned, match=GONE):
        list(rows_of(planned))


def test_a_task_that_is_overtaken_by_a_prune_ends_with_an_error_and_shows_no_wrong_row(old: Old) -> None:
    more = [f"more {number:06}" for number in range(150_000)]
    old.commit(4, more)
    old.checkpoint(4)
    reading, partition = next(tasks(reader(str(old.path), ["name"], maxPartitionRows=1_000_000)))
    batches = reading.read(partition)
    shown = next(batches).column("name").to_pylist()
    old.commit(3, ["00001"])
    old.checkpoint(3)
    old.prune()

    with pytest.raises(HistoryPruned, match=GONE):
        shown.extend(name for batch in batches for name in batch.column("name").to_pylist())
    assert shown == [*EVERYTHING[:ROWS], *more][: len(shown)] and len(shown) < ROWS + len(more)


@pytest.mark.parametrize("asked_before", [True, False])
def test_a_feed_of_what_was_pruned_is_an_error_that_says_so(old: Old, asked_before: bool) -> None:
    reading = copied(reader(str(old.path), readChangeFeed=True))
    planned = list(tasks(reading)) if asked_before else tasks(reading)
    old.checkpoint(3)
    old.prune()

    with pytest.raises(HistoryPruned, match=r"\[PRUNED\] .*lies before .*Next: "):
        list(rows_of(planned))


@pytest.mark.once
@pytest.mark.parametrize("overlay_through_python", [False, True])
def test_a_native_frame_of_what_was_pruned_is_an_error_and_one_of_what_stays_is_not(
    spark: SparkSession, old: Old, overlay_through_python: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "LOCAL_KEYS", 0 if overlay_through_python else 8_192)
    planned = bcs.read(spark, str(old.path), native=True)
    assert names(planned) == EVERYTHING
    bcs.attach(spark, str(old.path), view_prefix="held_")
    old.checkpoint(3)
    kept = bcs.read(spark, str(old.path), native=True)
    old.prune()

    for frame in (planned, spark.table("held_objects"), planned):
        with pytest.raises((PySparkException, Py4JJavaError), match=r"(?s)FILE_NOT_EXIST|does not exist|\[PRUNED\]"):
            names(frame)
    assert names(kept) == EVERYTHING


@pytest.mark.once
def test_a_checkpoint_that_merges_everything_changes_no_native_frame(spark: SparkSession, old: Old) -> None:
    held = [bcs.read(spark, str(old.path), native=True), bcs.read(spark, str(old.path), versionAsOf=old.versions[0])]
    old.commit(3, ["00001", "newer"])
    old.checkpoint(3)

    assert [names(frame) for frame in held] == [EVERYTHING, EVERYTHING[:ROWS]]


@pytest.mark.once
def test_a_native_frame_is_the_same_when_executors_are_lost(tmp_path: Path) -> None:
    lengths = list(range(ROWS))
    with Catalog(tmp_path).writer("compactor-1") as writer:
        with writer.transaction() as tx:
            tx.put("objects", objects(OTHER, EVERYTHING[:ROWS]))
        writer.checkpoint(scope="all", full=True)
        with writer.transaction() as tx:
            tx.put("objects", objects(OTHER, EVERYTHING[:ROWS:10]))
    expected = sum(Catalog(tmp_path).snapshot().scan("objects").to_arrow()["content_length"].to_pylist())
    done = subprocess.run([sys.executable, LOST, str(tmp_path)], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr[-3_000:]
    assert json.loads(done.stdout.strip().splitlines()[-1]) == [expected] * 4 and expected != sum(lengths)
