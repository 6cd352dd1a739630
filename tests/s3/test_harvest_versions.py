"""Harvests of buckets that keep versions, of a real server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bucketcatalog import Catalog
from bucketcatalog.errors import AccessDenied
from bucketcatalog.harvest import harvest
from bucketcatalog.harvest.scope import Scope
from bucketcatalog.store.inventory import IS_DELETE_MARKER, Span
from bucketcatalog.store.memory import MemoryStore
from bucketcatalog.store.open import open_inventory
from minio.clients import client
from minio.process import Server

from .harvesting import assert_nothing_new, counts, fill, listed_versions, names, rows


@pytest.fixture
def catalog() -> Catalog:
    return Catalog(MemoryStore())


@pytest.fixture
def versioned(s3: Any, bucket: str) -> str:
    set_versioning(s3, bucket, "Enabled")
    return bucket


def set_versioning(s3: Any, bucket: str, status: str) -> None:
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": status})


def assert_as_listed(catalog: Catalog, s3: Any, bucket: str) -> None:
    """``object_versions`` is what a plain boto3 client lists, in its order; ``objects`` are the current ones."""
    found = rows(catalog, "object_versions")
    keys = {row["name"] for row in found}
    shown = s3.list_object_versions(Bucket=bucket)
    assert keys == {one["Key"] for one in [*shown.get("Versions", []), *shown.get("DeleteMarkers", [])]}
    for key in keys:
        listed = listed_versions(s3, bucket, key)
        mine = sorted((row for row in found if row["name"] == key), key=lambda row: -row["ordinal"])
        assert [row["version_id"] for row in mine] == [one["VersionId"] for one in listed]
        assert [row["is_latest"] for row in mine] == [one["IsLatest"] for one in listed]
        assert [row["is_delete_marker"] for row in mine] == ["marker" in one for one in listed]
        assert [row["content_length"] for row in mine] == [one.get("Size") for one in listed]
        assert [row["modified"] for row in mine] == [one["LastModified"] for one in listed]
    current = {one["Key"]: one for one in s3.list_objects_v2(Bucket=bucket).get("Contents", [])}
    objects = {row["name"]: row for row in rows(catalog)}
    assert objects.keys() == current.keys()
    assert all(objects[key]["etag"] == one["ETag"].strip('"') for key, one in current.items())
    assert all(row["version_id"] for row in objects.values())


def test_every_version_and_delete_marker_is_in_order(
    catalog: Catalog, s3: Any, versioned: str, storage_options: dict[str, str]
) -> None:
    for body in (b"1", b"22", b"333"):
        fill(s3, versioned, ["a", "b/c"], body)
    s3.delete_object(Bucket=versioned, Key="b/c")
    fill(s3, versioned, ["b/c"], b"back")
    s3.delete_object(Bucket=versioned, Key="a")
    fill(s3, versioned, ["d"])
    result = harvest(catalog, f"s3://{versioned}", source_options=storage_options)
    assert_as_listed(catalog, s3, versioned)
    assert names(catalog) == ["b/c", "d"]
    assert (result.entries, result.versions, result.version_changes) == (2, 10, 10)
    (bucket,) = rows(catalog, "buckets")
    assert bucket["versioning"] == "Enabled"
    assert_nothing_new(catalog, f"s3://{versioned}", source_options=storage_options)


def test_later_harvests_follow_versions_that_come_and_go(
    catalog: Catalog, s3: Any, versioned: str, storage_options: dict[str, str]
) -> None:
    url = f"s3://{versioned}"
    for body in (b"1", b"22"):
        fill(s3, versioned, ["a", "b", "c"], body)
    harvest(catalog, url, source_options=storage_options)
    kept = {row["id"] for row in rows(catalog, "object_versions")}
    fill(s3, versioned, ["a"], b"333")
    marker = s3.delete_object(Bucket=versioned, Key="b")["VersionId"]
    oldest = listed_versions(s3, versioned, "c")[-1]["VersionId"]
    s3.delete_object(Bucket=versioned, Key="c", VersionId=oldest)
    result = harvest(catalog, url, source_options=storage_options)
    assert counts(result) == (0, 1, 0, 1, 1)
    assert_as_listed(catalog, s3, versioned)
    # New: a version and a delete marker. Updated: what was the latest of a and of b. Gone: the oldest of c.
    assert result.version_changes == 5
    (gone,) = rows(catalog, "deleted_object_versions")
    assert (gone["name"], gone["version_id"]) == ("c", oldest)
    assert kept - {gone["id"]} < {row["id"] for row in rows(catalog, "object_versions")}
    s3.delete_object(Bucket=versioned, Key="b", VersionId=marker)
    s3.delete_object(Bucket=versioned, Key="c")
    harvest(catalog, url, source_options=storage_options)
    assert_as_listed(catalog, s3, versioned)
    assert names(catalog) == ["a", "b"]
    assert_nothing_new(catalog, url, source_options=storage_options)


def test_null_versions_of_a_suspended_bucket_are_replaced_in_place(
    catalog: Catalog, s3: Any, bucket: str, storage_options: dict[str, str]
) -> None:
    url = f"s3://{bucket}"
    fill(s3, bucket, ["before", "kept"], b"null")
    assert harvest(catalog, url, source_options=storage_options).versions == 0
    set_versioning(s3, bucket, "Enabled")
    fill(s3, bucket, ["before", "new"], b"version")
    harvest(catalog, url, source_options=storage_options)
    assert_as_listed(catalog, s3, bucket)
    assert [row["version_id"] for row in rows(catalog, "object_versions") if row["name"] == "kept"] == ["null"]
    set_versioning(s3, bucket, "Suspended")
    fill(s3, bucket, ["before", "new"], b"null again")
    harvest(catalog, url, source_options=storage_options)
    assert_as_listed(catalog, s3, bucket)
    assert rows(catalog, "buckets")[0]["versioning"] == "Suspended"
    fill(s3, bucket, ["new"], b"null again")
    result = harvest(catalog, url, source_options=storage_options)
    assert (counts(result), result.version_changes) == ((0, 1, 0, 0, 2), 1)
    s3.delete_object(Bucket=bucket, Key="new")
    harvest(catalog, url, source_options=storage_options)
    assert_as_listed(catalog, s3, bucket)
    assert names(catalog) == ["before", "kept"]
    assert_nothing_new(catalog, url, source_options=storage_options)


def test_versions_of_one_key_over_several_pages_stay_together(
    catalog: Catalog, s3: Any, versioned: str, storage_options: dict[str, str]
) -> None:
    for number in range(1_100):
        fill(s3, versioned, ["many"], b"x" * (number % 7))
    fill(s3, versioned, ["a/1", "b/2", "many-more"])
    pages = list(open_inventory(f"s3://{versioned}", storage_options).versions(Span()))
    assert [len(page.entries) for page in pages] == [1_000, 103]
    harvest(catalog, f"s3://{versioned}", source_options=storage_options)
    found = rows(catalog, "object_versions")
    mine = sorted((row for row in found if row["name"] == "many"), key=lambda row: -row["ordinal"])
    listed = [one["VersionId"] for page in pages for one in page.entries if one["Key"] == "many"]
    assert [row["version_id"] for row in mine] == listed and len({row["ordinal"] for row in mine}) == 1_100
    assert names(catalog) == ["a/1", "b/2", "many", "many-more"]
    assert_nothing_new(catalog, f"s3://{versioned}", source_options=storage_options)


def test_the_order_of_the_answer_is_kept_where_boto3_tears_it_apart(
    s3: Any, versioned: str, storage_options: dict[str, str]
) -> None:
    for key in ("a", "<Version>", "b<DeleteMarker>c"):
        fill(s3, versioned, [key])
        s3.delete_object(Bucket=versioned, Key=key)
        fill(s3, versioned, [key])
    (page,) = open_inventory(f"s3://{versioned}", storage_options).versions(Span())
    assert [IS_DELETE_MARKER in entry for entry in page.entries] == [False, True, False] * 3
    assert [entry["Key"] for entry in page.entries] == ["%3CVersion%3E"] * 3 + ["a"] * 3 + ["b%3CDeleteMarker%3Ec"] * 3


def test_globs_hold_for_versions(catalog: Catalog, s3: Any, versioned: str, storage_options: dict[str, str]) -> None:
    fill(s3, versioned, ["a.jpg", "b.txt"])
    fill(s3, versioned, ["a.jpg", "b.txt"], b"again")
    url = f"s3://{versioned}"
    harvest(catalog, url, source_options=storage_options, exclude=["*.txt"])
    assert names(catalog, "object_versions") == ["a.jpg", "a.jpg"]
    harvest(catalog, url, source_options=storage_options)
    result = harvest(catalog, url, source_options=storage_options, include=["*.txt"])
    assert (result.versions, result.version_changes, result.entries) == (2, 0, 1)
    assert Scope(("*.txt",)).holds("b.txt")


def allowed(server: Server, bucket: str, *actions: str) -> dict[str, str]:
    """Credentials that may do these things with a bucket and its objects."""
    places = [f"arn:aws:s3:::{bucket}", f"arn:aws:s3:::{bucket}/*"]
    policy = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": list(actions), "Resource": places}]}
    sts = client(server.storage_options, "sts")
    given = sts.assume_role(RoleArn="arn:aws:iam::000000000000:role/any", RoleSessionName="some", Policy=json.dumps(policy))
    sts.close()
    keys = given["Credentials"]
    return {
        **server.storage_options,
        "key": keys["AccessKeyId"],
        "secret": keys["SecretAccessKey"],
        "token": keys["SessionToken"],
    }


def test_without_the_right_to_ask_a_bucket_is_taken_for_one_without_versions(
    catalog: Catalog, server: Server, s3: Any, versioned: str
) -> None:
    fill(s3, versioned, ["a"])
    fill(s3, versioned, ["a", "b"], b"again")
    result = harvest(catalog, f"s3://{versioned}", source_options=allowed(server, versioned, "s3:ListBucket"))
    assert (result.versions, names(catalog), rows(catalog, "buckets")[0]["versioning"]) == (0, ["a", "b"], None)


def test_a_right_to_ask_that_is_lost_changes_nothing(
    catalog: Catalog, server: Server, s3: Any, versioned: str, storage_options: dict[str, str]
) -> None:
    fill(s3, versioned, ["a"])
    harvest(catalog, f"s3://{versioned}", source_options=storage_options)
    with pytest.raises(AccessDenied, match=r"Next: .*s3:GetBucketVersioning"):
        harvest(catalog, f"s3://{versioned}", source_options=allowed(server, versioned, "s3:ListBucket"))
    assert_nothing_new(catalog, f"s3://{versioned}", source_options=storage_options)


RIGHTS = r"s3:ListBucketVersions.*s3:GetObject, s3:GetObjectTagging.*s3:GetObjectVersion, s3:GetObjectVersionTagging"


def test_a_right_that_is_missing_is_named(catalog: Catalog, server: Server, s3: Any, versioned: str) -> None:
    fill(s3, versioned, ["a"])
    for actions, asked in (
        (("s3:GetBucketVersioning",), {}),
        (("s3:ListBucket",), {"tags": True}),
        (("s3:ListBucket",), {"metadata": True}),
    ):
        with pytest.raises(AccessDenied, match=RIGHTS):
            harvest(catalog, f"s3://{versioned}", source_options=allowed(server, versioned, *actions), **asked)
    assert catalog.databases() == []


def test_a_wrong_secret_is_not_taken_for_a_right_that_is_missing(
    catalog: Catalog, s3: Any, versioned: str, storage_options: dict[str, str]
) -> None:
    fill(s3, versioned, ["a"])
    harvest(catalog, f"s3://{versioned}", source_options=storage_options)
    with pytest.raises(AccessDenied, match=r"SignatureDoesNotMatch.*Next: Check the credentials of the source"):
        harvest(catalog, f"s3://{versioned}", source_options={**storage_options, "secret": "mistyped"})
