"""What a store itself adds to the safety of a catalog: versions of what was deleted or overwritten, a reader who is shown all there is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from bucketcatalog import Catalog
from bucketcatalog.store.s3 import uploads
from bucketcatalog.store.s3.store import S3Store
from minio.clients import client

from ..kit.spec_reader import seal
from ..kit.world import names, obj
from .conftest import ROOT
from .proxy import Proxy


@pytest.fixture
def versioned(s3: Any, bucket: str) -> str:
    """The bucket, which keeps what is overwritten or deleted."""
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    return bucket


def put(url: str, options: dict[str, str], writer: str, *found: str, database: str = "photos") -> None:
    with Catalog(url, storage_options=options).writer(writer, database=database) as opened, opened.transaction() as tx:
        tx.put("objects", [obj(name) for name in found])


def versions(s3: Any, bucket: str) -> Iterator[dict[str, Any]]:
    for page in s3.get_paginator("list_object_versions").paginate(Bucket=bucket):
        yield from page.get("Versions", ())


def test_a_reader_sees_every_database_what_was_deleted_and_what_was_there_before(
    url: str, role: Callable[..., dict[str, str]]
) -> None:
    own = role("writer", "w1")
    put(url, own, "w1", "kept", "deleted")
    put(url, own, "w1", "song", database="songs")
    catalog = Catalog(url, storage_options=own)
    with catalog.writer("w1", database="photos") as writer, writer.transaction() as tx:
        tx.delete("objects", obj("deleted"))
    reading = Catalog(url, storage_options=role("reader"))
    assert reading.databases() == ["photos", "songs"]
    assert names(reading.snapshot(database="songs")) == ["song"]
    assert names(reading.snapshot(database="photos")) == ["kept"]
    assert names(reading.snapshot(database="photos"), "deleted_objects") == ["deleted"]
    assert names(reading.snapshot(database="photos", version="w1@0")) == ["deleted", "kept"]


def test_no_file_of_a_catalog_is_written_twice(url: str, versioned: str, s3: Any, role: Callable[..., dict[str, str]]) -> None:
    """So a bucket with versions has one of each, until something is pruned."""
    for name in ("w1", "w2"):
        put(url, role("writer", name), name, f"{name}/first")
        put(url, role("writer", name), name, f"{name}/second")
    with Catalog(url, storage_options=role("writer", "w1")).writer("w1", database="photos") as writer:
        writer.checkpoint()
    with Catalog(url, storage_options=role("compactor", "compactor-1")).writer("compactor-1", database="photos") as compactor:
        compactor.checkpoint(scope="all")
    options = role("maintainer", "maintainer-1")
    catalog = Catalog(url, storage_options=options)
    catalog.tag("release", writer="maintainer-1")
    catalog.prune("0s", grace="0s", force=True, writer="maintainer-1", dry_run=False)
    written = Counter(version["Key"] for version in versions(s3, versioned))
    assert len(written) > 10 and set(written.values()) == {1}


def test_versions_bring_back_what_a_maintainers_credentials_have_deleted(
    url: str, versioned: str, s3: Any, role: Callable[..., dict[str, str]]
) -> None:
    put(url, role("writer", "w1"), "w1", "a", "b")
    options = role("maintainer", "maintainer-1")
    store, own = S3Store(url, options), client(options)
    for info in [*store.list("")]:
        store.delete(info.name)
    assert [*store.list("")] == []
    for version in versions(s3, versioned):
        with pytest.raises(ClientError, match="AccessDenied"):
            own.delete_object(Bucket=versioned, Key=version["Key"], VersionId=version["VersionId"])
    own.close()
    for page in s3.get_paginator("list_object_versions").paginate(Bucket=versioned):
        for marker in page.get("DeleteMarkers", ()):
            s3.delete_object(Bucket=versioned, Key=marker["Key"], VersionId=marker["VersionId"])
    assert names(Catalog(url, storage_options=role("reader")).snapshot()) == ["a", "b"]


def test_versions_tell_which_file_a_writer_has_put_in_the_place_of_its_own(
    url: str, versioned: str, s3: Any, role: Callable[..., dict[str, str]]
) -> None:
    put(url, role("writer", "w1"), "w1", "a")
    store = S3Store(url, role("writer", "w1"))
    (name,) = [info.name for info in store.list("") if info.name.endswith(".txn")]
    before = store.get(name)
    store.put(name, seal(b""))
    assert store.get(name) != before
    of_it = [version for version in versions(s3, versioned) if version["Key"] == f"{ROOT}/{name}"]
    assert [version["IsLatest"] for version in of_it] == [True, False]
    with s3.get_object(Bucket=versioned, Key=f"{ROOT}/{name}", VersionId=of_it[1]["VersionId"])["Body"] as body:
        assert body.read() == before


@pytest.mark.parametrize("threshold", [0, uploads.THRESHOLD_BYTES], ids=["in parts", "whole"])
def test_no_put_of_a_catalog_says_if_none_match(
    watched: S3Store, proxy: Proxy, threshold: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So a policy that asks for it refuses them all."""
    monkeypatch.setattr(uploads, "THRESHOLD_BYTES", threshold)
    with Catalog(watched).writer("compactor-1") as writer:
        with writer.transaction() as tx:
            tx.put("objects", obj("a"))
        writer.checkpoint(scope="all")
    sent = [request for request in proxy.take() if request.method in ("PUT", "POST")]
    assert len(sent) >= 4
    assert not [request for request in sent if "if-none-match" in {name.lower() for name in request.headers}]
