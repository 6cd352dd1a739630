"""The one SparkSession of this lane: local, two threads, no user interface, times in UTC."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ..kit.server import bucket, s3, server
from .sample import Sample, build

__all__ = ["bucket", "s3", "server"]

# Every Java that a test starts compiles quickly and not well, and collects without threads of its own: nothing here runs for long enough
# to earn back what better code costs, and that is most of the lane's time.
for variable in ("SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS"):
    os.environ[variable] = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Started once for all tests of the lane, since that takes seconds; tests must not change its configuration for others."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    java = Path(sys.prefix) / "java"
    if java.is_dir():
        os.environ["JAVA_HOME"] = str(java)
    session = (
        SparkSession.builder.master("local[2]")
        .appName("bucketcatalog tests")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    yield session
    session.stop()


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    """A catalog that no test changes."""
    return build(tmp_path_factory.mktemp("sample") / "catalog")


@pytest.fixture
def own(spark: SparkSession) -> SparkSession:
    """A session whose settings and views are the test's own; Spark and its tables are shared."""
    return spark.newSession()


@pytest.fixture
def copied(sample: Sample, tmp_path: Path) -> Sample:
    """The same catalog, to change or to damage."""
    path = tmp_path / "catalog"
    shutil.copytree(sample.path, path)
    return replace(sample, path=str(path))
