"""Harvests of buckets without versions, of a real server."""

from __future__ import annotations

import json
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from bucketcatalog import Catalog
from bucketcatalog.cli import run
from bucketcatalog.errors import AccessDenied, InvalidOption, SourceNotFound, StoreUnreachable
from bucketcatalog.harvest import BATCH_ROWS, harvest, open_source
from bucketcatalog.harvest.scope import Scope
from bucketcatalog.harvest.sources import s3 as harvest_s3
from bucketcatalog.harvest.sources import s3_parts
from bucketcatalog.harvest.sources.s3 import S3Source
from bucketcatalog.store.memory import MemoryStore
from bucketcatalog.store.open import open_inventory
from minio.process import Server

from .harvesting import assert_nothing_new, counts, fill, names, rows

HOSTILE = ["a-b", "a/b", "a0", "a b", "a+b", "a%20b", "a%2Fb", "é", "\U0001f600", "￮", "dir/", "q?x=1&y", "<tag>", "t\tb"]
PART = 5 * 1024 * 1024


@pytest.fixture
def catalog() -> Catalog:
    return Catalog(MemoryStore())


def in_order(keys: list[str]) -> list[str]:
    return sorted(keys, key=str.encode)


def test_every_key_is_in_the_catalog_and_a_second_harvest_commits_nothing(
    catalog: Catalog, s3: Any, bucket: str, storage_options: dict[str, str]
) -> None:
    fill(s3, bucket, HOSTILE)
    result = harvest(catalog, f"s3://{bucket}", source_options=storage_options)
    assert names(catalog) == in_order(HOSTILE)
    assert counts(result) == (len(HOSTILE), 0, 0, 0, 0) and result.errors == 0
    assert_nothing_new(catalog, f"s3a://{bucket}/", source_options=storage_options)


def test_what_the_listing_says_is_in_the_row(catalog: Catalog, s3: Any, bucket: str, storage_options: dict[str, str]) -> None:
    put = s3.put_object(Bucket=bucket, Key="one.txt", Body=b"hello", StorageClass="REDUCED_REDUNDANCY")
    upload = s3.create_multipart_upload(Bucket=bucket, Key="parts")["UploadId"]
    parts = [
        {"PartNumber": n, "ETag": s3.upload_part(Bucket=bucket, Key="parts", UploadId=upload, PartNumber=n, Body=body)["ETag"]}
        for n, body in ((1, b"x" * PART), (2, b"y"))
    ]
    s3.complete_multipart_upload(Bucket=bucket, Key="parts", UploadId=upload, MultipartUpload={"Parts": parts})
    result = harvest(catalog, f"s3://{bucket}", source_options=storage_options)
    one, many = rows(catalog)
    etag = put["ETag"].strip('"')
    assert (one["etag"], one["content_length"], one["storage_class"]) == (etag, 5, "REDUCED_REDUNDANCY")
    assert (one["parts"], one["content_md5"], one["version_id"], one["content_type"]) == (None, None, None, None)
    assert one["id"] == str(uuid.uuid5(uuid.UUID(result.bucket_id), f"one.txt\0{etag}"))
    assert one["modified"] == one["created"] == s3.list_objects_v2(Bucket=bucket)["Contents"][0]["LastModified"]
    assert many["parts"] == 2 and many["etag"].endswith("-2") and many["content_length"] == PART + 1


def test_a_second_harvest_commits_what_changed_and_nothing_else(
    catalog: Catalog, s3: Any, bucket: str, storage_options: dict[str, str]
) -> None:
    url = f"s3://{bucket}"
    fill(s3, bucket, ["a", "b", "c", "d/e"])
    harvest(catalog, url, source_options=storage_options)
    before = catalog.snapshot().version
    fill(s3, bucket, ["b", "new"], b"other")
    s3.delete_object(Bucket=bucket, Key="d/e")
    assert counts(harvest(catalog, url, source_options=storage_options)) == (1, 1, 0, 1, 2)
    change = catalog.diff(start=before).to_arrow()
    told = dict(zip(change["name"].to_pylist(), change["_change_type"].to_pylist(), strict=True))
    assert told == {"b": "overwritten", "d/e": "deleted", "new": "created"}


def test_another_storage_class_of_the_same_version_is_an_update_and_makes_no_tombstone(
    catalog: Catalog, s3: Any, bucket: str, storage_options: dict[str, str]
) -> None:
    url = f"s3://{bucket}"
    fill(s3, bucket, ["a", "b"])
    harvest(catalog, url, source_options=storage_options)
    (before, _) = rows(catalog)
    s3.put_object(Bucket=bucket, Key="a", Body=b"x", StorageClass="REDUCED_REDUNDANCY")
    assert counts(harvest(catalog, url, source_options=storage_options)) == (0, 0, 1, 0, 1)
    (after, _) = rows(catalog)
    assert after["storage_class"] == "REDUCED_REDUNDANCY" and after["modified"] > before["modified"]
    assert (after["id"], after["created"]) == (before["id"], before["created"])
    assert rows(catalog, "deleted_objects") == []
    assert_nothing_new(catalog, url, source_options=storage_options)


def test_a_path_in_a_bucket_is_a_bucket_of_its_own(
    catalog: Catalog, s3: Any, bucket: str, storage_options: dict[str, str]
) -> None:
    fill(s3, bucket, ["in/", "in/a", "in/b/c", "inside", "other/x"])
    result = harvest(catalog, f"s3://{bucket}/in", source_options=storage_options)
    assert names(catalog) == ["a", "b/c"] and result.bucket == f"{bucket}/in"
    harvest(catalog, f"s3://{bucket}", source_options=storage_options)
    assert len(rows(catalog, "buckets")) == 2 and len(names(catalog)) == 7


def test_the_source_is_named_with_its_server_and_without_credentials(
    catalog: Catalog, server: Server, s3: Any, bucket: str, storage_options: dict[str, str]
) -> None:
    fill(s3, bucket, ["a"])
    result = harvest(catalog, f"s3://{bucket}", source_options=storage_options)
    host = server.endpoint_url.partition("://")[2]
    assert result.source == f"s3://{bucket}?endpoint={host}"
    assert result.owner == str(uuid.uuid5(uuid.NAMESPACE_DNS, host))
    (row,) = rows(catalog, "buckets")
    assert (row["name"], row["external"], row["versioning"]) == (bucket, True, None)
    assert storage_options["secret"] not in repr(rows(catalog, "buckets")) + repr(rows(catalog, "log"))
    elsewhere = S3Source(open_inventory(f"s3://{bucket}", {"region": "us-east-1", "key": "k", "secret": "secret"}))
    assert (elsewhere.url, elsewhere.authority) == (f"s3://{bucket}", "s3.amazonaws.com")


def test_globs_hold_for_keys(catalog: Catalog, s3: Any, bucket: str, storage_options: dict[str, str]) -> None:
    fill(s3, bucket, ["a.jpg", "b.txt", "c/d.jpg"])
    harvest(catalog, f"s3://{bucket}", source_options=storage_options)
    s3.delete_object(Bucket=bucket, Key="b.txt")
    assert counts(harvest(catalog, f"s3://{bucket}", source_options=storage_options, include=["*.jpg"])) == (0, 0, 0, 0, 2)
    assert names(catalog) == ["a.jpg", "b.txt", "c/d.jpg"]


def test_the_catalogs_own_objects_are_left_out(s3: Any, bucket: str, storage_options: dict[str, str]) -> None:
    fill(s3, bucket, ["lake.txt", "photos/a", "lakes/b"])
    catalog = Catalog(f"s3://{bucket}/lake", storage_options=storage_options)
    harvest(catalog, f"s3://{bucket}", source_options=storage_options)
    assert names(catalog) == ["lake.txt", "lakes/b", "photos/a"]
    assert_nothing_new(catalog, f"s3://{bucket}", source_options=storage_options)
    with pytest.raises(InvalidOption, match="is the catalog itself"):
        harvest(catalog, f"s3://{bucket}/lake", source_options=storage_options)
    whole = Catalog(f"s3://{bucket}", storage_options=storage_options)
    with pytest.raises(InvalidOption, match="is a part of the catalog"):
        harvest(whole, f"s3://{bucket}/w1", source_options=storage_options)


def test_parts_listed_at_once_come_in_order(
    s3: Any, bucket: str, storage_options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(harvest_s3, "_PAGES_FIRST", 1)
    monkeypatch.setattr(s3_parts, "_PART_PAGES", 0)
    keys = [f"{a}{s}{b:03}" for a in ("a", "a-b", "b", "c d", "e", "f+", "\xe9") for s in ("/", "-", "/x/") for b in range(80)]
    keys += ["a/", "b/x/"]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda key: s3.put_object(Bucket=bucket, Key=key, Body=b""), keys))
    inventory = open_inventory(f"s3://{bucket}", storage_options)
    first = in_order(keys)[998]
    assert len(s3_parts.spans(inventory, 4, after=first, pages=1)) > 2
    for threads in (1, 4):
        source = S3Source(inventory, threads=threads)
        batches = list(source.entries(Scope(), lambda error: None))
        assert [name for batch in batches for name in batch.column("name").to_pylist()] == in_order(keys)
        assert [len(batch) for batch in batches] == [len(keys)] and len(keys) < BATCH_ROWS


def test_what_is_not_there_or_not_allowed_is_said(
    catalog: Catalog, s3: Any, bucket: str, storage_options: dict[str, str]
) -> None:
    with pytest.raises(SourceNotFound, match=r"There is no bucket.*Next: Create it"):
        harvest(catalog, "s3://no-such-bucket-here", source_options=storage_options)
    with pytest.raises(AccessDenied, match=r"Next: Check the credentials of the source .*s3:ListBucket"):
        harvest(catalog, f"s3://{bucket}", source_options={**storage_options, "secret": "not the secret"})
    away = {**storage_options, "endpoint_url": "http://127.0.0.1:1", "retry_timeout": "0.1"}
    with pytest.raises(StoreUnreachable):
        harvest(catalog, f"s3://{bucket}", source_options=away)
    with pytest.raises(InvalidOption, match="S3 has no option 'endpoint'"):
        harvest(catalog, f"s3://{bucket}", source_options={"endpoint": "http://x"})
    assert catalog.databases() == []


def test_a_bucket_that_has_become_empty_deletes_nothing_unasked(
    catalog: Catalog, s3: Any, bucket: str, storage_options: dict[str, str]
) -> None:
    fill(s3, bucket, ["a"])
    harvest(catalog, f"s3://{bucket}", source_options=storage_options)
    s3.delete_object(Bucket=bucket, Key="a")
    with pytest.raises(SourceNotFound, match="Nothing at all"):
        harvest(catalog, f"s3://{bucket}", source_options=storage_options)
    assert counts(harvest(catalog, f"s3://{bucket}", source_options=storage_options, allow_empty=True)) == (0, 0, 0, 1, 0)


def test_without_options_the_environment_says_how(
    catalog: Catalog, s3: Any, bucket: str, storage_options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(s3, bucket, ["a"])
    for name, option in (
        ("AWS_ENDPOINT_URL", "endpoint_url"),
        ("AWS_ACCESS_KEY_ID", "key"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("AWS_REGION", "region"),
    ):
        monkeypatch.setenv(name, storage_options[option])
    assert counts(harvest(catalog, f"s3://{bucket}")) == (1, 0, 0, 0, 0)
    assert open_source(f"s3://{bucket}").url == open_source(f"s3://{bucket}", options=storage_options).url


def test_the_command_harvests_a_bucket(
    tmp_path: Path, s3: Any, bucket: str, storage_options: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    fill(s3, bucket, ["a", "b"])
    given = [part for name, value in storage_options.items() for part in ("--source-option", f"{name}={value}")]
    command = ["harvest", f"s3://{bucket}", str(tmp_path / "lake"), *given]
    assert run([*command, "--dry-run", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["created"], told["transactions"], (tmp_path / "lake").exists()) == (2, [], False)
    assert run(command) == 0
    assert "2 entries: 2 created, 0 overwritten, 0 deleted" in capsys.readouterr().out
    assert run([*command, "--metadata", "--tags"]) == 0
    assert "2 updated" in capsys.readouterr().out
    assert run(["harvest", "s3://no-such-bucket-here", str(tmp_path / "lake"), *given]) == 1
    assert capsys.readouterr().err.splitlines()[-1].startswith("[SOURCE_NOT_FOUND]")


def test_a_path_with_nothing_below_it_is_not_registered_unasked(
    server: Server, bucket: str, storage_options: dict[str, str]
) -> None:
    catalog = Catalog(f"s3://{bucket}/catalog", storage_options=storage_options)
    with pytest.raises(SourceNotFound, match=r"Nothing at all is found in s3://.*/mistyped.*Next: Check the bucket"):
        harvest(catalog, f"s3://{bucket}/mistyped", source_options=storage_options)
    assert catalog.databases() == []
    assert harvest(catalog, f"s3://{bucket}/mistyped", source_options=storage_options, allow_empty=True).entries == 0
    assert harvest(catalog, f"s3://{bucket}/mistyped", source_options=storage_options).transactions == ()
