"""Executors killed in the middle of a write, and the driver before and after its commit: the rows count once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bucketcatalog import Catalog

from ..kit.lost_writes import Child
from .sample import OWNER

CHILD = Path(__file__).with_name("lost_writer_child.py")
BUCKET = "0b6a2a0e-9d0f-5a53-8a4e-3f1e0c7d9b22"
ROWS = 40_000
pytestmark = pytest.mark.once


def started(path: Path, master: str) -> Child:
    events = path.with_name("events")
    events.mkdir()
    return Child(CHILD, path, master, ROWS, events, "objects")


def written(path: Path) -> tuple[int, int, list[tuple[str, int]]]:
    """How many objects there are, the sum of their lengths, and what was committed."""
    snapshot = Catalog(path).snapshot()
    lengths = snapshot.scan("objects", columns=["content_length"]).to_arrow()["content_length"]
    log = snapshot.scan("log").to_arrow().to_pylist()
    return len(lengths), sum(lengths.to_pylist()), [(row["app_id"], row["events"]) for row in log]


def expected(rows: int) -> tuple[int, int, list[tuple[str, int]]]:
    return rows, sum(number % 20_000 for number in range(rows)), [("job:objects", rows)]


def segments(path: Path) -> int:
    return len(list(path.glob("*/*/segments/*.parquet")))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lake"


def test_executors_that_are_killed_and_tasks_that_run_twice_change_nothing(path: Path) -> None:
    output = started(path, "cluster").finish()
    assert "written" in output and ("LOST" in output or "Lost" in output)
    assert '"Speculative":true' in "".join(file.read_text() for file in path.with_name("events").iterdir())
    assert written(path) == expected(ROWS)
    named = sum(len(t.segments) for t in Catalog(path).snapshot().view.tail)
    assert segments(path) >= named == 8  # what was put twice is part of nothing


@pytest.mark.parametrize("moment", ["before its commit", "during its commit", "after its commit"])
def test_a_driver_that_is_killed_leaves_nothing_or_all(spark: SparkSession, path: Path, moment: str) -> None:
    is_so: Callable[[], bool] = {
        "before its commit": lambda: segments(path) > 0,
        "during its commit": lambda: any(path.glob("*/*/transactions")),
        "after its commit": lambda: any(path.glob("*/*/transactions/*/*.txn")),
    }[moment]
    started(path, "local[2]").kill_once(is_so)
    landed = Catalog(path).databases() != []
    assert landed == (moment == "after its commit") or moment == "during its commit"
    assert not landed or written(path) == expected(ROWS)

    rows = spark.range(0, ROWS, 1, 2).selectExpr(
        f"'{OWNER}' AS owner",
        f"'{BUCKET}' AS bucket_id",
        "format_string('n%07d', id) AS name",
        "id % 20000 AS content_length",
    )
    rows.write.format("bucketcatalog").options(txnAppId="job", txnVersion=1).mode("append").save(str(path))
    assert written(path) == expected(ROWS)
