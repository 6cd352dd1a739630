"""``jobs.harvest`` of buckets of a real server, with and without versions: the same rows as without Spark, and no credentials shown."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import pyspark_bucketcatalog as bcs
from bucketcatalog import AccessDenied, Catalog
from bucketcatalog.harvest import harvest, rounds, sections
from minio.process import Server
from pyspark_bucketcatalog.executors import CatalogPlace
from pyspark_bucketcatalog.jobs.harvesting import HarvestOnExecutors

from ..kit.harvested import counted, everything
from ..kit.roles import credentials
from ..kit.world import without_aws

pytestmark = pytest.mark.skipif(os.environ.get("BUCKETCATALOG_SKIP_S3") == "1", reason="BUCKETCATALOG_SKIP_S3 is 1")

KEYS = [*(f"a/{at % 7}/{at:04}" for at in range(150)), *(f"IMG_{at:05}.jpg" for at in range(150)), "b-c/d", "z/", "\u00e9 +%"]


@pytest.fixture(autouse=True)
def small_and_no_credentials_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Tasks that leave the rest early, and stores that are reached with what options say alone."""
    without_aws(monkeypatch, tmp_path)
    monkeypatch.setattr(rounds, "FIRST_ENTRIES", 10)
    monkeypatch.setattr(sections, "CARRIED_EVENTS", 3)


def fill(s3: Any, bucket: str, keys: list[str], body: bytes = b"x") -> None:
    for key in keys:
        s3.put_object(Bucket=bucket, Key=key, Body=body)


@pytest.mark.once
@pytest.mark.parametrize("versioned", [False, True])
def test_a_bucket_is_harvested_row_for_row_as_without_spark(
    spark: SparkSession, server: Server, s3: Any, bucket: str, tmp_path: Path, versioned: bool
) -> None:
    if versioned:
        s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    fill(s3, bucket, [f"in/{key}" for key in KEYS])
    if versioned:
        fill(s3, bucket, [f"in/{key}" for key in KEYS[::5]], b"another")
        for key in KEYS[::9]:
            s3.delete_object(Bucket=bucket, Key=f"in/{key}")
    mine, alone = tmp_path / "mine", Catalog(tmp_path / "alone")
    source, options = f"s3://{bucket}/in", server.storage_options

    def compared() -> Any:
        result = bcs.jobs.harvest(spark, source, mine, source_options=options, max_tasks=4)
        assert counted(result) == counted(harvest(alone, source, source_options=options))
        assert everything(Catalog(mine)) == everything(alone)
        return result

    first = compared()
    assert (first.created, len(first.transactions)) == (len(KEYS) - (34 if versioned else 0), 1)
    assert bool(first.versions) is versioned
    fill(s3, bucket, ["in/IMG_00010.jpg", "in/new"], b"other")
    s3.delete_object(Bucket=bucket, Key="in/a/3/0003")
    second = compared()
    assert (second.created, second.overwritten, second.deleted) == (1, 1, 1)
    assert compared().transactions == ()


def test_headers_and_tags_are_asked_for_by_tasks(
    spark: SparkSession, server: Server, s3: Any, bucket: str, tmp_path: Path
) -> None:
    for at in range(20):
        s3.put_object(
            Bucket=bucket, Key=f"k{at:02}", Body=b"x", ContentType="text/odd", Metadata={"at": str(at)}, Tagging=f"n={at}"
        )
    mine, alone = tmp_path / "mine", Catalog(tmp_path / "alone")
    asked: dict[str, Any] = {"source_options": server.storage_options, "metadata": True, "tags": True}
    bcs.jobs.harvest(spark, f"s3://{bucket}", mine, max_tasks=4, **asked)
    harvest(alone, f"s3://{bucket}", **asked)

    assert everything(Catalog(mine)) == everything(alone)
    row = Catalog(mine).snapshot().scan("objects").to_arrow().to_pylist()[7]
    assert (row["content_type"], dict(row["user_metadata"]), dict(row["tags"])) == ("text/odd", {"at": "7"}, {"n": "7"})


@pytest.mark.once
def test_a_catalog_in_the_bucket_is_left_out_and_credentials_are_shown_nowhere(
    spark: SparkSession, server: Server, s3: Any, bucket: str, capfd: pytest.CaptureFixture[str]
) -> None:
    fill(s3, bucket, KEYS)
    url = f"s3://{bucket}/lake"
    storage = credentials(server, "writer", bucket, "lake", "w1")
    given: dict[str, Any] = {"writer": "w1", "source_options": server.storage_options, "storage_options": storage, "max_tasks": 4}
    for _ in range(2):
        result = bcs.jobs.harvest(spark, f"s3://{bucket}", url, **given)
        assert result.entries == len(KEYS)
    wrong = {**server.storage_options, "secret": "not-the-secret"}
    with pytest.raises(AccessDenied) as refused:
        bcs.jobs.harvest(spark, f"s3://{bucket}", url, **{**given, "source_options": wrong})
    workers = HarvestOnExecutors(spark, CatalogPlace(url, storage), 4)
    shown = f"{result!r} {workers!r} {refused.value!r} {capfd.readouterr()}"

    for secret in ("not-the-secret", storage["secret"], storage["token"], server.storage_options["secret"]):
        assert secret not in shown
