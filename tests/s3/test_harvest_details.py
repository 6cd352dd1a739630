"""Headers, user metadata and tags of objects, which a harvest asks for on request, of a real server."""

from __future__ import annotations

import time
from typing import Any

import pytest

from bucketcatalog import Catalog
from bucketcatalog.harvest import harvest
from bucketcatalog.store.memory import MemoryStore

from .harvesting import assert_nothing_new, counts, fill, rows


@pytest.fixture
def catalog() -> Catalog:
    return Catalog(MemoryStore())


def put(s3: Any, bucket: str, key: str, **more: Any) -> str:
    answer = s3.put_object(
        Bucket=bucket,
        Key=key,
        Body=b"x",
        ContentType="image/jpeg",
        CacheControl="max-age=60",
        Metadata={"colour": "green", "b": "2"},
        Tagging="team=cats&stage=raw",
        ChecksumAlgorithm="SHA256",
        **more,
    )
    return str(answer["ChecksumSHA256"])


def test_headers_and_tags_are_recorded_on_request(
    catalog: Catalog, s3: Any, bucket: str, storage_options: dict[str, str]
) -> None:
    url = f"s3://{bucket}"
    checksum = put(s3, bucket, "a")
    fill(s3, bucket, ["b"])
    harvest(catalog, url, source_options=storage_options)
    assert [row["content_type"] for row in rows(catalog)] == [None, None]
    result = harvest(catalog, url, source_options=storage_options, metadata=True, tags=True)
    assert counts(result) == (0, 0, 2, 0, 0)
    a, b = rows(catalog)
    assert a["content_type"] == "image/jpeg" and b["content_type"] == "binary/octet-stream"
    assert dict(a["user_metadata"]) == {"b": "2", "colour": "green"} and dict(a["tags"]) == {"stage": "raw", "team": "cats"}
    assert dict(a["headers"]) == {"cache-control": "max-age=60"} and a["checksum"] == checksum
    assert (b["user_metadata"], b["tags"]) == (None, None)
    for asked in ({}, {"metadata": True}, {"tags": True}, {"metadata": True, "tags": True}):
        assert_nothing_new(catalog, url, source_options=storage_options, **asked)


def test_tags_change_without_a_version_and_are_followed_when_asked_for(
    catalog: Catalog, s3: Any, bucket: str, storage_options: dict[str, str]
) -> None:
    url = f"s3://{bucket}"
    put(s3, bucket, "a")
    put(s3, bucket, "b")
    harvest(catalog, url, source_options=storage_options, metadata=True, tags=True)
    s3.put_object_tagging(Bucket=bucket, Key="a", Tagging={"TagSet": [{"Key": "team", "Value": "dogs"}]})
    s3.delete_object_tagging(Bucket=bucket, Key="b")
    assert_nothing_new(catalog, url, source_options=storage_options, metadata=True)
    assert counts(harvest(catalog, url, source_options=storage_options, tags=True)) == (0, 0, 2, 0, 0)
    a, b = rows(catalog)
    assert dict(a["tags"]) == {"team": "dogs"} and b["tags"] is None
    assert a["content_type"] == "image/jpeg" and rows(catalog, "deleted_objects") == []


def test_an_update_of_the_same_version_keeps_what_was_asked_for_before(
    catalog: Catalog, s3: Any, bucket: str, storage_options: dict[str, str]
) -> None:
    url = f"s3://{bucket}"
    put(s3, bucket, "a")
    harvest(catalog, url, source_options=storage_options, metadata=True, tags=True)
    put(s3, bucket, "a", StorageClass="REDUCED_REDUNDANCY")
    assert counts(harvest(catalog, url, source_options=storage_options)) == (0, 0, 1, 0, 0)
    (row,) = rows(catalog)
    assert row["storage_class"] == "REDUCED_REDUNDANCY"
    assert dict(row["tags"]) == {"stage": "raw", "team": "cats"} and row["content_type"] == "image/jpeg"


def test_each_version_has_its_own(catalog: Catalog, s3: Any, bucket: str, storage_options: dict[str, str]) -> None:
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    url = f"s3://{bucket}"
    put(s3, bucket, "a")
    s3.put_object(Bucket=bucket, Key="a", Body=b"y", ContentType="text/plain", Tagging="n=2")
    put(s3, bucket, "gone")
    s3.delete_object(Bucket=bucket, Key="gone")
    harvest(catalog, url, source_options=storage_options, metadata=True, tags=True)
    versions = sorted(rows(catalog, "object_versions"), key=lambda row: (row["name"], row["ordinal"]))
    assert [row["content_type"] for row in versions] == ["image/jpeg", "text/plain", "image/jpeg", None]
    assert [None if row["tags"] is None else len(row["tags"]) for row in versions] == [2, 1, 2, None]
    (current,) = rows(catalog)
    assert current["content_type"] == "text/plain" and dict(current["tags"]) == {"n": "2"}
    assert_nothing_new(catalog, url, source_options=storage_options, metadata=True, tags=True)
    oldest = versions[0]["version_id"]
    s3.put_object_tagging(Bucket=bucket, Key="a", VersionId=oldest, Tagging={"TagSet": []})
    result = harvest(catalog, url, source_options=storage_options, tags=True)
    assert (result.changes, result.version_changes) == (0, 1)


def test_headers_of_the_same_bytes_put_again_are_followed(
    catalog: Catalog, s3: Any, bucket: str, storage_options: dict[str, str]
) -> None:
    url = f"s3://{bucket}"
    put(s3, bucket, "a")
    harvest(catalog, url, source_options=storage_options, metadata=True)
    time.sleep(0.01)  # times of listings have milliseconds
    s3.put_object(Bucket=bucket, Key="a", Body=b"x", ContentType="text/html", Metadata={"colour": "blue"})
    assert counts(harvest(catalog, url, source_options=storage_options, metadata=True)) == (0, 0, 1, 0, 0)
    (row,) = rows(catalog)
    assert (row["content_type"], dict(row["user_metadata"]), row["headers"]) == ("text/html", {"colour": "blue"}, None)


def test_locks_are_recorded(catalog: Catalog, s3: Any, bucket: str, storage_options: dict[str, str]) -> None:
    locked = f"{bucket}-lock"
    s3.create_bucket(Bucket=locked, ObjectLockEnabledForBucket=True)
    put(
        s3,
        locked,
        "a",
        ObjectLockLegalHoldStatus="ON",
        ObjectLockMode="GOVERNANCE",
        ObjectLockRetainUntilDate="2099-01-01T00:00:00Z",
    )
    harvest(catalog, f"s3://{locked}", source_options=storage_options, metadata=True)
    (row,) = rows(catalog)
    assert (row["lock_mode"], row["legal_hold"], row["lock_retain_until"].year) == ("GOVERNANCE", True, 2099)
    assert_nothing_new(catalog, f"s3://{locked}", source_options=storage_options, metadata=True)
