"""Rows appended while executors are lost, or until the driver is: ``lost_writer_child.py CATALOG MASTER ROWS EVENTS TABLE``.

Where the master is ``cluster`` executors are processes of their own on two addresses, of which one is killed in the middle; the last task
ends only once Spark does it a second time beside, which it never does on one address. Where it is ``flaky`` every task fails the first time
after it has written its rows; before that the same was given up, because one has failed each time. Where it is ``held`` the last task never
ends. ``EVENTS`` is the folder where Spark writes down what happened. The ``TABLE`` is one of the catalog, or a data table.
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
from typing import Any

import pyarrow as pa
import pyspark
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.datasource import DataSourceWriter
from pyspark.sql.types import StructType

from pyspark_bucketcatalog import DefaultSource
from pyspark_bucketcatalog.writing.batch import BatchWriter, Written
from tests.spark.lost_executor_child import kill_one

CATALOG, MASTER, ROWS, EVENTS, TABLE = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4], sys.argv[5]
PUT = "*/*/data/*/*/*.parquet" if TABLE.startswith("data.") else "*/*/segments/*.parquet"
"""The files that tasks put."""
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


def last_never_ends(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows, for as long as anybody waits for those of the last task."""
    context = TaskContext.get()
    assert context is not None
    while context.partitionId() == TASKS - 1:
        time.sleep(0.1)
    yield from batches


def kill_in_the_middle(application: str) -> None:
    """End an executor once the first of eight tasks has put its rows."""
    while not any(Path(CATALOG).glob(PUT)):
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


def write(url: str, *, is_cluster: bool = False, is_flaky: bool = False, is_held: bool = False) -> None:
    """Append the rows; where there is a cluster one of its executors is lost meanwhile, else tasks may fail by themselves, or not end."""
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
    if TABLE.startswith("data."):
        rows = rows.withColumn("_partition", F.concat(F.lit("p"), F.col("content_length") % 3))
    session.range(2).count()
    if is_cluster:
        rows = rows.mapInArrow(last_runs_twice, rows.schema)
        threading.Thread(target=kill_in_the_middle, args=[session.sparkContext.applicationId], daemon=True).start()
    if is_held:
        rows = rows.mapInArrow(last_never_ends, rows.schema)
    source = "bucketcatalog"
    if is_flaky:
        session.dataSource.register(Failing)
        source = Failing.name()
        try:
            append(rows, source, always=TASKS - 1)
        except Exception as error:
            print("given up:", "the executor is gone" in str(error))
    append(rows, source)
    print("written")
    session.stop()


def append(rows: DataFrame, source: str, **options: object) -> None:
    """Append the rows to the table as the first commit of an application."""
    given = {"table": TABLE, "txnAppId": "job", "txnVersion": 1, **options}
    rows.write.format(source).options(**given).mode("append").save(CATALOG)


class FailingWriter(BatchWriter):
    """Fails after it has written the rows of a task, the first time, and with one task each time."""

    def __init__(self, write: Any, always: int | None) -> None:
        super().__init__(write)
        self._always = always

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Write, and fail or not."""
        written = super().write(iterator)
        context = TaskContext.get()
        assert context is not None
        if context.attemptNumber() == 0 or context.partitionId() == self._always:
            raise RuntimeError("the executor is gone")
        return written


class Failing(DefaultSource):
    """The data source, whose writers fail."""

    def __init__(self, options: Any) -> None:
        always = options.pop("always", None)
        self._always = None if always is None else int(always)
        super().__init__(options)

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "failing"

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """A writer that fails."""
        return FailingWriter(super().writer(schema, overwrite)._write, self._always)  # type: ignore[attr-defined]


if __name__ == "__main__":
    if MASTER == "cluster":
        with cluster() as master:
            write(master, is_cluster=True)
    else:
        write(
            {"flaky": "local[2,3]", "held": "local[2]"}.get(MASTER, MASTER), is_flaky=MASTER == "flaky", is_held=MASTER == "held"
        )
