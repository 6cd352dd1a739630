"""Rows appended while executors are lost, or until the driver is: ``lost_writer_child.py CATALOG MASTER ROWS EVENTS``.

Where the master is ``cluster`` executors are processes of their own on two addresses, of which one is killed in the middle; the last task
ends only once Spark does it a second time beside, which it never does on one address. ``EVENTS`` is the folder where Spark writes down
what happened.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyarrow as pa
import pyspark
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from tests.spark.lost_executor_child import kill_one

CATALOG, MASTER, ROWS, EVENTS = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
TASKS = 8
OWNER, BUCKET = "8f1a1c3e-52f3-4f0e-9d8b-0a4c5b6d7e8f", "0b6a2a0e-9d0f-5a53-8a4e-3f1e0c7d9b22"


def last_runs_twice(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows; the last task waits until another attempt at it is alive too, so that how fast the machine is decides nothing.

    An attempt is alive while it touches its file; one that was killed with its executor stops.
    """
    context = TaskContext.get()
    assert context is not None
    if context.partitionId() == TASKS - 1:
        attempts = Path(EVENTS).with_name("attempts")
        attempts.mkdir(exist_ok=True)
        met, mine = attempts / "met", attempts / f"{context.taskAttemptId()}.attempt"
        while not met.exists():
            mine.touch()
            others = [other for other in attempts.glob("*.attempt") if other != mine]
            if any(time.time() - other.stat().st_mtime < 0.5 for other in others):
                met.touch()
            time.sleep(0.05)
    yield from batches


def kill_in_the_middle(application: str) -> None:
    """End an executor once the first of eight tasks has put its rows."""
    while not any(Path(CATALOG).glob("*/*/segments/*.parquet")):
        time.sleep(0.01)
    kill_one(application)


@contextmanager
def cluster() -> Iterator[str]:
    """A standalone master with two workers of one core, each with an address of its own; gives its URL."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"spark://127.0.0.1:{port}"
    works = Path(EVENTS).with_name("works")
    with ExitStack() as stack:

        def start(kind: str, host: str, *arguments: str) -> None:
            home = Path(pyspark.__file__).parent
            command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}", "--host", host, "--webui-port", "0"]
            environment = os.environ | {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": host, "SPARK_NO_DAEMONIZE": "1"}
            started = subprocess.Popen([*command, *arguments], env=environment)
            stack.callback(started.wait)
            stack.callback(started.kill)

        start("master.Master", "127.0.0.1", "--port", str(port))
        for number in (1, 2):
            start(
                "worker.Worker",
                f"127.0.0.{number}",
                "--cores",
                "1",
                "--memory",
                "1g",
                "--work-dir",
                str(works / str(number)),
                url,
            )
        yield url


def write(url: str, *, is_cluster: bool) -> None:
    """Append the rows; where there is a cluster one of its executors is lost meanwhile."""
    session = (
        SparkSession.builder.master(url)
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.eventLog.enabled", "true")
        .config("spark.eventLog.dir", EVENTS)
        .config("spark.eventLog.compress", "false")
        .config("spark.eventLog.rolling.enabled", "false")
        .config("spark.speculation", "true")
        .config("spark.speculation.interval", "50ms")
        .config("spark.speculation.multiplier", "1.01")
        .config("spark.speculation.quantile", "0.1")
        .config("spark.speculation.minTaskRuntime", "10ms")
        .config("spark.speculation.efficiency.enabled", "false")
        .getOrCreate()
    )
    rows = session.range(0, ROWS, 1, TASKS).select(
        F.lit(OWNER).alias("owner"),
        F.lit(BUCKET).alias("bucket_id"),
        F.format_string("n%07d", "id").alias("name"),
        F.length(F.repeat(F.lit("x"), F.col("id").cast("int") % 20_000)).cast("long").alias("content_length"),
    )
    session.range(2).count()
    if is_cluster:
        rows = rows.mapInArrow(last_runs_twice, rows.schema)
        threading.Thread(target=kill_in_the_middle, args=[session.sparkContext.applicationId], daemon=True).start()
    rows.write.format("bucketcatalog").options(txnAppId="job", txnVersion=1).mode("append").save(CATALOG)
    print("written")
    session.stop()


if __name__ == "__main__":
    if MASTER == "cluster":
        with cluster() as master:
            write(master, is_cluster=True)
    else:
        write(MASTER, is_cluster=False)
