"""How the store asks: large objects in parts, listings in pages, all else in one request; where, and signed for whom."""

from __future__ import annotations

import random
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from bucketcatalog.errors import ObjectNotFound, OutcomeUnknown, StoreUnreachable
from bucketcatalog.store.s3 import uploads
from bucketcatalog.store.s3.store import S3Store

from ..kit.store_contract import AT_ONCE_US, names_of
from .conftest import MEGABYTE, ROOT
from .proxy import Fault, Proxy, kinds


def test_an_object_above_32_mib_is_put_in_parts_and_comes_back_whole(watched: S3Store, store: S3Store, proxy: Proxy) -> None:
    data = random.Random(2).randbytes(uploads.THRESHOLD_BYTES + 1)
    watched.put("w/db/segments/large", data)
    asked = kinds(proxy.take())
    assert (asked[0], asked[-1], set(asked[1:-1])) == ("create upload", "complete upload", {"put part"})
    assert len(asked) == 2 + -(-len(data) // uploads.PART_BYTES)
    assert store.get("w/db/segments/large") == data
    assert store.get_range("w/db/segments/large", -5, 5) == data[-5:]
    assert [info.size for info in store.list("")] == [len(data)]
    assert [*store.unfinished_puts()] == []
    watched.put("w/db/segments/small", data[: uploads.THRESHOLD_BYTES])
    assert kinds(proxy.take()) == ["put"]


def test_the_beginning_of_a_large_object_is_one_request_and_others_go_on(watched: S3Store, store: S3Store, proxy: Proxy) -> None:
    """The connection on which the rest would come is given up."""
    store.put("w/large", bytes(30 * MEGABYTE))
    store.put("w/small", b"small")
    for _ in range(20):
        assert watched.get("w/large", most=100) == bytes(100)
        assert watched.get("w/small", most=100) == b"small"
    assert kinds(proxy.take()) == ["get"] * 40


def test_an_object_in_parts_is_there_only_when_it_is_complete(
    watched: S3Store, store: S3Store, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "THRESHOLD_BYTES", 5 * MEGABYTE)
    monkeypatch.setattr(uploads, "PART_BYTES", 5 * MEGABYTE)
    data = random.Random(3).randbytes(6 * MEGABYTE)
    proxy.inject(Fault.DROP, lambda request: request.kind == "complete upload")
    with pytest.raises(OutcomeUnknown):
        watched.put("w/large", data)
    assert kinds(proxy.take()).count("put part") == 2
    assert names_of(store.list("")) == store.list_prefixes("") == []
    with pytest.raises(ObjectNotFound):
        store.get("w/large")
    (left,) = store.unfinished_puts()
    assert left.name == "w/large"
    watched.put("w/large", data)
    assert store.get("w/large") == data
    assert [*store.unfinished_puts()] == [left]


def test_what_a_put_left_is_found_below_the_root_alone_and_thrown_away(
    store: S3Store, s3: Any, bucket: str, storage_options: dict[str, str]
) -> None:
    begun = time.time_ns() // 1000
    keys = [f"{ROOT}/w/a", f"{ROOT}/w/a", f"{ROOT}/v/b c%é", f"{ROOT}-old/a", "a"]
    for key in keys:
        upload = s3.create_multipart_upload(Bucket=bucket, Key=key)["UploadId"]
        s3.upload_part(Bucket=bucket, Key=key, UploadId=upload, PartNumber=1, Body=b"part")
    store.put("w/b", b"x")
    left = [*store.unfinished_puts()]
    assert sorted(put.name for put in left) == ["v/b c%é", "w/a", "w/a"]
    assert len({put.token for put in left}) == 3
    assert all(abs(put.begun_us - begun) < 10_000_000 for put in left)
    assert len([*S3Store(f"s3://{bucket}", storage_options).unfinished_puts()]) == 5
    for put in left[:2]:
        store.discard(put)
        store.discard(put)
    assert [*store.unfinished_puts()] == left[2:]
    assert names_of(store.list("")) == ["w/b"]


def test_a_put_whose_parts_are_thrown_away_meanwhile_fails_and_can_be_made_again(
    store: S3Store, storage_options: dict[str, str], proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "THRESHOLD_BYTES", 5 * MEGABYTE)
    monkeypatch.setattr(uploads, "PART_BYTES", 5 * MEGABYTE)
    patience = {"endpoint_url": proxy.endpoint_url, "read_timeout": 0.5, "retry_timeout": 2}
    watched = S3Store(store.url, {**storage_options, **patience})
    data = random.Random(4).randbytes(12 * MEGABYTE)
    waiting = proxy.inject(Fault.LATE, lambda request: request.kind == "put part" and request.query["partNumber"] == "3")
    with ThreadPoolExecutor(1) as pool:
        putting = pool.submit(watched.put, "w/large", data)
        while not waiting.hits:
            time.sleep(0.01)
        (put,) = store.unfinished_puts()
        store.discard(put)
        with pytest.raises(OutcomeUnknown, match="NoSuchUpload"):
            putting.result()
    assert names_of(store.list("")) == []
    watched.put("w/large", data)
    assert store.get("w/large") == data


def test_a_listing_asks_for_pages_of_a_thousand_and_begins_behind_what_is_known(
    watched: S3Store, store: S3Store, proxy: Proxy
) -> None:
    names = [f"w/db/transactions/{number:05}/x" for number in range(1_050)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: store.put(name, b""), names))
    store.put("v/db/x", b"")
    assert names_of(watched.list("w/db/transactions/")) == names
    assert [request.query["max-keys"] for request in proxy.take()] == ["1000", "1000"]
    assert names_of(watched.list("w/db/transactions/", after="w/db/transactions/01040")) == names[1_040:]
    (request,) = proxy.take()
    assert request.query["start-after"] == f"{ROOT}/w/db/transactions/01040"
    assert names_of(watched.list("w/db/transactions/", after=names[3], limit=2)) == names[4:6]
    (request,) = proxy.take()
    assert request.query["max-keys"] == "2"
    assert names_of(watched.list("w/db/transactions/", after=names[3], limit=1_003)) == names[4:1_007]
    assert [request.query["max-keys"] for request in proxy.take()] == ["1000", "3"]
    assert names_of(watched.list("w/db/transactions/", limit=0)) == names_of(watched.list("w/db/", after="x")) == []
    assert proxy.take() == []
    listing = watched.list("w/db/transactions/")
    assert [next(listing).name for _ in range(1_000)] == names[:1_000]
    assert len(proxy.take()) == 1
    assert watched.list_prefixes("") == ["v", "w"]
    assert len(proxy.take()) == 1
    assert len(watched.list_prefixes("w/db/transactions/")) == 1_050
    assert len(proxy.take()) == 2


def test_everything_else_is_one_request(watched: S3Store, proxy: Proxy) -> None:
    watched.put("a", b"0123456789")
    assert kinds(proxy.take()) == ["put"]
    for offset, length in ((2, 3), (0, 10), (-4, 4), (-20, 20)):
        watched.get_range("a", offset, length)
        (request,) = proxy.take()
        assert request.kind == "get" and request.headers["Range"].startswith("bytes=")
    watched.get("a")
    watched.head("a")
    watched.now_us()  # known from the answers
    watched.delete("a")
    assert kinds(proxy.take()) == ["get", "head", "delete"]
    with pytest.raises(ObjectNotFound):
        watched.get("a")
    assert kinds(proxy.take()) == ["get"]


def test_a_store_that_was_asked_nothing_asks_for_the_time(watched: S3Store, proxy: Proxy) -> None:
    assert proxy.take() == []
    assert abs(watched.now_us() - time.time_ns() // 1000) < AT_ONCE_US
    assert abs(watched.now_us() - time.time_ns() // 1000) < AT_ONCE_US
    assert kinds(proxy.take()) == ["head"]


def test_an_endpoint_of_ones_own_is_asked_for_the_bucket_in_the_path(watched: S3Store, proxy: Proxy, bucket: str) -> None:
    watched.put("a/ü b", b"x")
    (request,) = proxy.take()
    assert request.target == f"/{bucket}/{ROOT}/a/%C3%BC%20b"
    assert "/us-east-1/s3/aws4_request" in request.headers["Authorization"]


def test_requests_are_signed_for_the_region_of_the_options(bucket: str, storage_options: dict[str, str], proxy: Proxy) -> None:
    options = {**storage_options, "endpoint_url": proxy.endpoint_url}
    del options["region"]
    S3Store(f"s3://{bucket}", options).put("a", b"x")
    S3Store(f"s3://{bucket}", {**options, "region": "eu-north-1"}).put("a", b"x")
    signed = [request.headers["Authorization"].split("/")[2] for request in proxy.take()]
    assert signed == ["us-east-1", "eu-north-1"]


def test_with_path_style_false_the_bucket_stands_in_the_name_of_the_host(bucket: str, storage_options: dict[str, str]) -> None:
    options = {**storage_options, "endpoint_url": "http://localhost:1", "path_style": "false", "retry_timeout": 0.1}
    with pytest.raises(StoreUnreachable, match=rf"http://{bucket}\.localhost:1/a"):
        S3Store(f"s3://{bucket}", options).get("a")
