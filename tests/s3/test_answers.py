"""Answers that have the status of success and are none of S3's, as maintenance pages and wrong ports give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bucketcatalog import Catalog
from bucketcatalog.errors import OutcomeUnknown, StoreUnreachable
from bucketcatalog.harvest import harvest
from bucketcatalog.store.s3.store import S3Store
from minio.process import Server

from .proxy import Proxy

PAGES = [b"", b"<html><body>maintenance</body></html>", b"<!doctype html><p>no xml<br>"]
LISTINGS: dict[str, Callable[[S3Store], Any]] = {
    "list": lambda store: list(store.list("")),
    "list_prefixes": lambda store: store.list_prefixes(""),
    "unfinished_puts": lambda store: list(store.unfinished_puts()),
}


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("listing", LISTINGS)
def test_what_is_no_listing_is_never_the_end_of_one(
    server: Server, bucket: str, storage_options: dict[str, str], listing: str, page: bytes
) -> None:
    with Proxy(server.endpoint_url) as proxy:
        store = S3Store(f"s3://{bucket}", {**storage_options, "endpoint_url": proxy.endpoint_url, "retry_timeout": 0.2})
        proxy.page = 200, page
        with pytest.raises(StoreUnreachable):
            LISTINGS[listing](store)


@pytest.mark.parametrize("page", PAGES)
def test_a_put_that_somebody_else_says_yes_to_is_not_acknowledged(
    server: Server, bucket: str, storage_options: dict[str, str], page: bytes
) -> None:
    with Proxy(server.endpoint_url) as proxy:
        store = S3Store(f"s3://{bucket}", {**storage_options, "endpoint_url": proxy.endpoint_url})
        proxy.page = 200, page
        with pytest.raises(OutcomeUnknown):
            store.put("a", b"x")


def test_a_harvest_of_a_maintenance_page_deletes_nothing(
    server: Server, bucket: str, storage_options: dict[str, str], s3: Any
) -> None:
    for number in range(3):
        s3.put_object(Bucket=bucket, Key=f"photos/{number}", Body=b"x")
    catalog = Catalog(f"s3://{bucket}/catalog", storage_options=storage_options)
    with Proxy(server.endpoint_url) as proxy:
        options = {**storage_options, "endpoint_url": proxy.endpoint_url, "retry_timeout": 0.2}
        assert harvest(catalog, f"s3://{bucket}/photos", source_options=options).created == 3
        proxy.page = 200, PAGES[1]
        with pytest.raises(StoreUnreachable):
            harvest(catalog, f"s3://{bucket}/photos", source_options=options)
        with pytest.raises(StoreUnreachable):
            Catalog(f"s3://{bucket}/catalog", storage_options=options).snapshot()

    assert catalog.snapshot().scan("objects").to_arrow().num_rows == 3


def test_gc_leaves_alone_what_no_catalog_put(server: Server, bucket: str, storage_options: dict[str, str], s3: Any) -> None:
    from bucketcatalog.maintain.gc.orphans import abandoned

    names = ["backup.tar", "w1/default/segments/x.parquet", "w1/default/other/x", "../w1/default/segments/x"]
    for name in names[:3]:
        s3.create_multipart_upload(Bucket=bucket, Key=name)
    store = S3Store(f"s3://{bucket}", storage_options)

    assert {put.name for put in store.unfinished_puts()} == set(names[:3])
    assert [put.name for put in abandoned(store, -1_000_000, force=True)] == ["w1/default/segments/x.parquet"]
