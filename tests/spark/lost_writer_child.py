"""Rows appended while executors are lost, or until the driver is: ``lost_writer_child.py CATALOG MASTER ROWS``.

Where the master is ``local-cluster`` executors are processes of their own, of which one is killed in the middle; Spark speculates.
"""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from tests.spark.lost_executor_child import kill_one

CATALOG, MASTER, ROWS = sys.argv[1], sys.argv[2], int(sys.argv[3])
OWNER, BUCKET = "8f1a1c3e-52f3-4f0e-9d8b-0a4c5b6d7e8f", "0b6a2a0e-9d0f-5a53-8a4e-3f1e0c7d9b22"


def kill_in_the_middle(application: str) -> None:
    """End an executor once the first of eight tasks has put its rows."""
    while not any(Path(CATALOG).glob("*/*/segments/*.parquet")):
        time.sleep(0.01)
    kill_one(application)


if __name__ == "__main__":
    session = (
        SparkSession.builder.master(MASTER)
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.speculation", "true")
        .config("spark.speculation.interval", "50ms")
        .config("spark.speculation.multiplier", "1.01")
        .config("spark.speculation.quantile", "0.1")
        .config("spark.speculation.minTaskRuntime", "10ms")
        .getOrCreate()
    )
    rows = session.range(0, ROWS, 1, 8).select(
        F.lit(OWNER).alias("owner"),
        F.lit(BUCKET).alias("bucket_id"),
        F.format_string("n%07d", "id").alias("name"),
        F.length(F.repeat(F.lit("x"), F.col("id").cast("int") % 20_000)).cast("long").alias("content_length"),
    )
    session.range(2).count()
    if MASTER.startswith("local-cluster"):
        threading.Thread(target=kill_in_the_middle, args=[session.sparkContext.applicationId]).start()
    rows.write.format("bucketcatalog").options(txnAppId="job", txnVersion=1).mode("append").save(CATALOG)
    print("written")
    session.stop()
