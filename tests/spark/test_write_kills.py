"""Executors killed in the middle of a write, and the driver before and after its commit: the rows count once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bucketcatalog import Catalog

from .sample import OWNER

ROOT = Path(__file__).parents[2]
CHILD = Path(__file__).with_name("lost_writer_child.py")
BUCKET = "0b6a2a0e-9d0f-5a53-8a4e-3f1e0c7d9b22"
PATIENCE = 180.0
pytestmark = pytest.mark.once


def started(path: Path, master: str, rows: int) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, str(CHILD), str(path), master, str(rows)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, start_new_session=True
    )


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


def test_executors_that_are_killed_and_tasks_that_run_twice_change_nothing(tmp_path: Path) -> None:
    child = started(tmp_path, "local-cluster[2,1,1024]", 300_000)
    output, _ = child.communicate(timeout=PATIENCE)
    assert child.returncode == 0, output
    assert "written" in output and ("LOST" in output or "Lost" in output)
    assert written(tmp_path) == expected(300_000)
    named = sum(len(t.segments) for t in Catalog(tmp_path).snapshot().view.tail)
    assert segments(tmp_path) >= named == 8  # what was put twice is part of nothing


@pytest.mark.parametrize("moment", ["before its commit", "after its commit"])
def test_a_driver_that_is_killed_leaves_nothing_or_all(spark: SparkSession, tmp_path: Path, moment: str) -> None:
    is_so: Callable[[], bool] = {
        "before its commit": lambda: segments(tmp_path) > 0,
        "after its commit": lambda: any(tmp_path.glob("*/*/transactions/*/*.txn")),
    }[moment]
    child = started(tmp_path, "local[2]", 300_000)
    began = time.monotonic()
    while not is_so():
        assert child.poll() is None and time.monotonic() - began < PATIENCE, child.stdout and child.stdout.read()
        time.sleep(0.002)
    os.killpg(child.pid, signal.SIGKILL)
    child.communicate()
    if moment == "before its commit":
        assert Catalog(tmp_path).databases() == []
    else:
        assert written(tmp_path) == expected(300_000)

    rows = spark.range(0, 300_000, 1, 2).selectExpr(
        f"'{OWNER}' AS owner",
        f"'{BUCKET}' AS bucket_id",
        "format_string('n%07d', id) AS name",
        "id % 20000 AS content_length",
    )
    rows.write.format("bucketcatalog").options(txnAppId="job", txnVersion=1).mode("append").save(str(tmp_path))
    assert written(tmp_path) == expected(300_000)
