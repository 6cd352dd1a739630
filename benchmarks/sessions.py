"""A Spark session, and how long the first thing that is asked of a new one takes.

It imports nothing but Spark: whatever else a first answer needs is imported while the time runs.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession


@contextmanager
def spark_session(
    directory: Path, threads: int | None = None, heap: str = "1g", more: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """A local session on so many threads, by default as many as there are cores; its ``heap`` is Spark's default, ``more`` are settings."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    java = Path(sys.prefix) / "java"
    if java.is_dir():
        os.environ["JAVA_HOME"] = str(java)
    spark = (
        SparkSession.builder.master(f"local[{threads or '*'}]")
        .appName("bucketcatalog benchmarks")
        .config("spark.driver.memory", heap)
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(directory / "warehouse"))
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config(map=dict(more or {}))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    try:
        yield spark
    finally:
        spark.stop()


def first_attach(directory: str, path: str) -> dict[str, Any]:
    """Show every table of a catalog in a new session; ``seconds`` begin when that is there, ``start`` is how long it took to be."""

    def attach(spark: SparkSession) -> int:
        import pyspark_bucketcatalog as bcs

        return len(bcs.attach(spark, path))

    return _first(directory, attach)


def first_sum(directory: str, path: str, group: str, summed: str, native: bool) -> dict[str, Any]:
    """Sum by group in a new session, of a catalog's objects or of Parquet files (``native``); ``seconds`` as of ``first_attach``."""

    def add_up(spark: SparkSession) -> int:
        return len(_frame(spark, path, native).groupBy(group).sum(summed).collect())

    return _first(directory, add_up)


def _frame(spark: SparkSession, path: str, native: bool) -> DataFrame:
    if native:
        return spark.read.parquet(path)
    import pyspark_bucketcatalog as bcs

    return bcs.read(spark, path)


def _first(directory: str, ask: Callable[[SparkSession], int]) -> dict[str, Any]:
    began = time.perf_counter()
    with spark_session(Path(directory)) as spark:
        ready = time.perf_counter()
        answers = ask(spark)
        return {"seconds": time.perf_counter() - ready, "start": ready - began, "answers": answers}
