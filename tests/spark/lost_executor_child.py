"""A native frame of which executors are killed while it is asked: ``lost_executor_child.py CATALOG``. Prints each answer as JSON.

Executors are processes of their own where the master is ``local-cluster``.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

from pyspark.sql import SparkSession

import pyspark_bucketcatalog as bcs
from pyspark_bucketcatalog.reading import frames


def executors(application: str) -> list[int]:
    """The processes of executors that an application of this machine's has started."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                command = (process / "cmdline").read_text()
            except OSError:
                continue
            if "CoarseGrainedExecutorBackend" in command and application in command:
                found.append(int(process.name))
    return found


def kill_one(application: str) -> None:
    """End an executor, without a word."""
    os.kill(executors(application)[0], signal.SIGKILL)


if __name__ == "__main__":
    session = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.files.maxPartitionBytes", "65536")
        .getOrCreate()
    )
    application = session.sparkContext.applicationId
    frames.LOCAL_KEYS = 0
    frame = bcs.read(session, sys.argv[1], native=True)
    answers = [frame.agg({"content_length": "sum"}).first()[0]]
    kill_one(application)
    answers.append(frame.agg({"content_length": "sum"}).first()[0])
    later = threading.Timer(0.3, kill_one, [application])
    later.start()
    slow = frame.selectExpr("content_length + 0 * length(repeat(name, 1000)) AS length")
    answers.append(slow.agg({"length": "sum"}).first()[0])
    later.join()
    time.sleep(0.1)
    answers.append(frame.agg({"content_length": "sum"}).first()[0])
    print(json.dumps(answers))
    session.stop()
