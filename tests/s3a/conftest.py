"""A SparkSession with Spark's own file system for S3: Spark fetches it, as users have it do, by ``spark.jars.packages``."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from minio.process import Server

from ..kit.server import bucket, s3, server

__all__ = ["bucket", "s3", "server"]


def hadoop() -> str:
    """The version of Hadoop that this PySpark has: that of its file systems has to be the same."""
    (jar,) = (Path(pyspark.__file__).parent / "jars").glob("hadoop-client-api-*.jar")
    found = re.search(r"(\d+(?:\.\d+)+)\.jar$", jar.name)
    assert found is not None
    return found[1]


@pytest.fixture(scope="session")
def spark(server: Server) -> Iterator[SparkSession]:
    """One that reaches the server by ``s3a://``, as its root user."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    storage = server.storage_options
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars.packages", f"org.apache.hadoop:hadoop-aws:{hadoop()}")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.ui.enabled", "false")
        .config("spark.hadoop.fs.s3a.endpoint", storage["endpoint_url"])
        .config("spark.hadoop.fs.s3a.endpoint.region", storage["region"])
        .config("spark.hadoop.fs.s3a.path.style.access", "true")
        .config("spark.hadoop.fs.s3a.access.key", storage["key"])
        .config("spark.hadoop.fs.s3a.secret.key", storage["secret"])
        .config("spark.hadoop.fs.s3a.attempts.maximum", "2")
        .config("spark.hadoop.fs.s3a.retry.limit", "2")
        .config("spark.hadoop.fs.s3a.impl.disable.cache", "true")  # so that credentials can end
        .getOrCreate()
    )
    yield session
    session.stop()
