"""Buckets and servers that are not there, bytes that go wrong on their way, answers that are not of S3: typed errors, or asked again."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import pytest

from bucketcatalog.errors import BucketCatalogError, OutcomeUnknown, StoreNotFound, StoreUnreachable
from bucketcatalog.store.s3 import uploads
from bucketcatalog.store.s3.store import S3Store

from ..kit.store_contract import names_of
from .conftest import AT_ONCE, MEGABYTE, PATIENT
from .proxy import Fault, Proxy, kinds

CALLS: dict[str, Callable[[S3Store], Any]] = {
    "get": lambda store: store.get("a/b"),
    "bounded get": lambda store: store.get("a/b", most=MEGABYTE),
    "get_range": lambda store: store.get_range("a/b", 0, 1),
    "empty range": lambda store: store.get_range("a/b", 0, 0),
    "put": lambda store: store.put("a/b", b"x"),
    "list": lambda store: [*store.list("a/")],
    "list_prefixes": lambda store: store.list_prefixes(""),
    "head": lambda store: store.head("a/b"),
    "delete": lambda store: store.delete("a/b"),
    "unfinished_puts": lambda store: [*store.unfinished_puts()],
    "large put": lambda store: store.put("a/b", bytes(uploads.THRESHOLD_BYTES + 1)),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_bucket_that_is_missing_is_named_at_once(call: str, storage_options: dict[str, str]) -> None:
    store = S3Store("s3://no-such-bucket/inventory", {**storage_options, "retry_timeout": PATIENT})
    began = time.monotonic()
    with pytest.raises(StoreNotFound, match="s3://no-such-bucket/inventory") as caught:
        CALLS[call](store)
    assert caught.value.code == "STORE_NOT_FOUND"
    assert time.monotonic() - began < AT_ONCE


@pytest.mark.parametrize("call", CALLS)
def test_a_server_that_is_not_there_is_asked_again_for_a_while_and_then_named(
    bucket: str, storage_options: dict[str, str], call: str
) -> None:
    store = S3Store(f"s3://{bucket}", {**storage_options, "endpoint_url": "http://127.0.0.1:1", "retry_timeout": 0.3})
    began = time.monotonic()
    with pytest.raises((StoreUnreachable, OutcomeUnknown), match=r"127\.0\.0\.1:1/"):
        CALLS[call](store)
    asked_once = call == "put"  # who puts has a deadline of its own
    assert asked_once or 0.3 <= time.monotonic() - began < 25  # by default it would be 30


def test_a_put_that_finds_no_server_did_not_happen(bucket: str, storage_options: dict[str, str]) -> None:
    with pytest.raises(StoreUnreachable):
        S3Store(f"s3://{bucket}", {**storage_options, "endpoint_url": "http://127.0.0.1:1"}).put("a", b"x")


def test_a_body_that_is_corrupted_on_its_way_is_not_stored(watched: S3Store, store: S3Store, proxy: Proxy) -> None:
    proxy.inject(Fault.CORRUPT_REQUEST)
    with pytest.raises(StoreUnreachable, match="XAmzContentSHA256Mismatch"):
        watched.put("a/b", b"0123456789")
    assert names_of(store.list("")) == []
    watched.put("a/b", b"0123456789")
    assert store.get("a/b") == b"0123456789"
    assert all(request.headers["x-amz-checksum-crc32"] for request in proxy.take())


def test_a_part_that_is_corrupted_on_its_way_is_sent_again(
    watched: S3Store, store: S3Store, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "THRESHOLD_BYTES", 5 * MEGABYTE)
    monkeypatch.setattr(uploads, "PART_BYTES", 5 * MEGABYTE)
    data = random.Random(6).randbytes(6 * MEGABYTE)
    proxy.inject(Fault.CORRUPT_REQUEST, lambda request: request.kind == "put part")
    watched.put("a/b", data)
    assert store.get("a/b") == data
    assert kinds(proxy.take()).count("put part") == 3


@pytest.mark.parametrize("most", [None, MEGABYTE])
@pytest.mark.parametrize("fault", [Fault.CORRUPT_ANSWER, Fault.CUT_ANSWER])
def test_an_object_that_is_damaged_on_its_way_back_is_asked_for_again(
    watched: S3Store, store: S3Store, proxy: Proxy, storage_options: dict[str, str], fault: Fault, most: int | None
) -> None:
    data = random.Random(7).randbytes(100_000)
    store.put("a/b", data)
    proxy.inject(fault)
    assert watched.get("a/b", most=most) == data
    assert kinds(proxy.take()) == ["get", "get"]
    proxy.inject(fault, times=None)
    hurried = S3Store(store.url, {**storage_options, "endpoint_url": proxy.endpoint_url, "retry_timeout": 0.3})
    with pytest.raises(StoreUnreachable, match="a/b"):
        hurried.get("a/b", most=most)


def test_a_range_that_is_cut_on_its_way_back_is_asked_for_again(watched: S3Store, store: S3Store, proxy: Proxy) -> None:
    data = random.Random(8).randbytes(100_000)
    store.put("a/b", data)
    proxy.inject(Fault.CUT_ANSWER)
    assert watched.get_range("a/b", 10, 50_000) == data[10:50_010]
    assert kinds(proxy.take()) == ["get", "get"]


@pytest.mark.parametrize("status", [200, 302, 400, 403, 404, 418, 502])
def test_an_answer_that_is_not_of_s3_is_a_typed_error(
    bucket: str, storage_options: dict[str, str], proxy: Proxy, status: int
) -> None:
    """As the login page of a network or a proxy in between gives it."""
    proxy.page = status, b"<html><body>Please log in.<br></body>"
    options = {**storage_options, "endpoint_url": proxy.endpoint_url, "retry_timeout": 0.1}
    for name, call in CALLS.items():
        if name in ("delete", "put", "get", "bounded get") and status == 200:
            continue  # this is what success looks like, but for the bytes, which the reader of a file checks
        with pytest.raises(BucketCatalogError) as caught:
            call(S3Store(f"s3://{bucket}", options))
        assert caught.value.next_step, name
