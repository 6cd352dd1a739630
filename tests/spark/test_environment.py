"""The Java and the Python that Spark finds are those that `make setup` provides."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import SparkSession


def test_workers_run_in_the_python_of_the_driver(spark: SparkSession) -> None:
    def describe(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.record_batch({"prefix": [sys.prefix] * batch.num_rows, "arrow": [pa.__version__] * batch.num_rows})

    rows = spark.range(4).mapInArrow(describe, "prefix string, arrow string").collect()

    assert {(row.prefix, row.arrow) for row in rows} == {(sys.prefix, pa.__version__)}


def test_java_is_one_that_spark_supports(spark: SparkSession) -> None:
    version = spark.sql("SELECT java_method('java.lang.System', 'getProperty', 'java.specification.version')").first()

    assert version is not None
    assert int(version[0]) >= 17
