"""What every store promises, and what is S3's alone: parts, pages, single requests, addresses, encryption, and what cannot be."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

from bucketcatalog.errors import (
    AccessDenied,
    BucketCatalogError,
    InvalidName,
    InvalidOption,
    ObjectNotFound,
    OutcomeUnknown,
    StoreNotFound,
    StoreUnreachable,
)
from bucketcatalog.store import Store, open_store
from bucketcatalog.store.s3 import uploads
from bucketcatalog.store.s3.store import S3Store
from minio.clients import client
from minio.process import Server

from ..kit.store_contract import StoreContract, names_of
from .proxy import Fault, Proxy, Request

ROOT = "lake/inventory"
MEGABYTE = 1 << 20
PATIENT, AT_ONCE = "600", 60
"""For how many seconds a store would try again, and in how many it must not have begun to, also where the machine is busy."""


class OnMinio(StoreContract):
    """The suite as it is, but for one thing that MinIO does and S3 does not."""

    def test_puts_survive_deletes_beside_them(self, store: Store, writer: Store) -> None:
        """MinIO refuses a put while another request removes the folder with its last object; put again, it is there."""

        def put(name: str, data: bytes) -> None:
            for _ in range(5):
                with suppress(AccessDenied):
                    return writer.put(name, data)
            writer.put(name, data)

        def churn(number: int) -> None:
            for turn in range(30):
                put(f"deep/er/{number}", b"%d" % turn)
                writer.delete(f"deep/er/{number}")
            put(f"deep/er/{number}", b"last")

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(churn, range(4)))
        assert names_of(store.list("")) == [f"deep/er/{number}" for number in range(4)]
        assert {store.get(name) for name in names_of(store.list(""))} == {b"last"}


class TestBelowAPrefix(OnMinio):
    """Beside objects whose names begin as the root does."""

    @pytest.fixture
    def store(self, bucket: str, s3: Any, storage_options: dict[str, str]) -> Store:
        for beside in ("lake/inventory-old/a/b", "lake/inventory0", "lake/inventor/a", "a/b"):
            s3.put_object(Bucket=bucket, Key=beside, Body=b"beside")
        return S3Store(f"s3://{bucket}/{ROOT}", storage_options)


class TestAtTheBucketsRoot(OnMinio):
    """Of a bucket that the store has for itself."""

    @pytest.fixture
    def store(self, bucket: str, storage_options: dict[str, str]) -> Store:
        return S3Store(f"s3://{bucket}", storage_options)


@pytest.fixture
def proxy(server: Server) -> Iterator[Proxy]:
    with Proxy(server.endpoint_url) as running:
        yield running


@pytest.fixture
def store(bucket: str, storage_options: dict[str, str]) -> S3Store:
    return S3Store(f"s3://{bucket}/{ROOT}", storage_options)


@pytest.fixture
def watched(bucket: str, storage_options: dict[str, str], proxy: Proxy) -> S3Store:
    """The same store, through the proxy, which does not wait for long."""
    options = {**storage_options, "endpoint_url": proxy.endpoint_url, "read_timeout": 2, "retry_timeout": 1}
    return S3Store(f"s3://{bucket}/{ROOT}", options)


def kinds(requests: list[Request]) -> list[str]:
    return [request.kind for request in requests]


# Large objects.


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


# How much is asked.


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
    assert abs(watched.now_us() - time.time_ns() // 1000) < 2_000_000
    assert abs(watched.now_us() - time.time_ns() // 1000) < 2_000_000
    assert kinds(proxy.take()) == ["head"]


# Addresses.


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


@pytest.fixture(scope="module")
def tls() -> Iterator[tuple[Server, str]]:
    with Server(tls=True) as running:
        root = client(running.storage_options, ca_file=running.ca_file)
        root.create_bucket(Bucket="some")
        root.close()
        yield running, "s3://some/inventory"


class TestTls:
    def test_the_authority_named_by_verify_is_trusted(self, tls: tuple[Server, str]) -> None:
        server, url = tls
        store = S3Store(url, {**server.storage_options, "verify": str(server.ca_file)})
        store.put("a", b"x")
        assert store.get("a") == b"x"

    def test_without_it_the_server_is_refused_at_once_and_by_name(self, tls: tuple[Server, str]) -> None:
        server, url = tls
        for options in ({}, {"verify": "true"}):
            store = S3Store(url, {**server.storage_options, "retry_timeout": PATIENT, **options})
            for call in (lambda store=store: store.get("a"), lambda store=store: store.put("a", b"x")):
                began = time.monotonic()
                with pytest.raises(AccessDenied, match=r"CERTIFICATE_VERIFY_FAILED.*Next: .*option verify"):
                    call()
                assert time.monotonic() - began < AT_ONCE

    @pytest.mark.filterwarnings("ignore::urllib3.exceptions.InsecureRequestWarning")
    def test_verify_false_trusts_anybody(self, tls: tuple[Server, str]) -> None:
        server, url = tls
        store = S3Store(url, {**server.storage_options, "verify": "false"})
        store.put("b", b"x")
        assert store.get("b") == b"x"

    def test_a_file_of_authorities_that_is_not_there_is_told_at_once(self, tls: tuple[Server, str]) -> None:
        server, url = tls
        with pytest.raises(InvalidOption, match=r"option verify names no file"):
            S3Store(url, {**server.storage_options, "verify": "/no/such/file"}).get("a")

    def test_a_body_that_is_not_the_one_of_its_checksum_is_refused(self, tls: tuple[Server, str]) -> None:
        """Over TLS bodies are not signed: what goes wrong between the checksum and the wire is noticed by the checksum alone."""
        server, url = tls
        store = S3Store(url, {**server.storage_options, "verify": str(server.ca_file)})

        def spoil(request: Any, **_: object) -> None:
            request.body = request.body.read().replace(b"right", b"wrong")

        events = store._calls._client().meta.events
        events.register("before-send.s3", spoil)
        with pytest.raises(StoreUnreachable, match="XAmzContentChecksumMismatch"):
            store.put("d", b"right")
        events.unregister("before-send.s3", spoil)
        assert "d" not in names_of(store.list(""))
        store.put("d", b"right")
        assert store.get("d") == b"right"


# Encryption.


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, (None, None)),
        ({"sse": "AES256"}, ("AES256", None)),
        ({"sse": "aws:kms"}, ("aws:kms", "arn:aws:kms:bucketcatalog")),
        ({"sse": "aws:kms", "sse_kms_key_id": "bucketcatalog"}, ("aws:kms", "arn:aws:kms:bucketcatalog")),
    ],
    ids=["none", "AES256", "aws:kms", "aws:kms with a key"],
)
def test_what_is_put_is_encrypted_as_the_options_say(
    bucket: str,
    s3: Any,
    storage_options: dict[str, str],
    options: dict[str, str],
    expected: tuple[str | None, str | None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = S3Store(f"s3://{bucket}", {**storage_options, **options})
    monkeypatch.setattr(uploads, "THRESHOLD_BYTES", 5 * MEGABYTE)
    contents = {"small": b"x", "empty": b"", "large": random.Random(5).randbytes(6 * MEGABYTE)}
    for name, data in contents.items():
        store.put(name, data)
        head = s3.head_object(Bucket=bucket, Key=name)
        assert (head.get("ServerSideEncryption"), head.get("SSEKMSKeyId")) == expected
        assert store.get(name) == data
        assert store.head(name).size == len(data)
    assert store.get_range("large", 3 * MEGABYTE, 10) == contents["large"][3 * MEGABYTE : 3 * MEGABYTE + 10]


def test_a_key_that_the_server_does_not_have_is_an_error_that_names_it(bucket: str, storage_options: dict[str, str]) -> None:
    store = S3Store(f"s3://{bucket}", {**storage_options, "sse": "aws:kms", "sse_kms_key_id": "no-such-key"})
    with pytest.raises(BucketCatalogError, match="key") as caught:
        store.put("a", b"x")
    assert not isinstance(caught.value, OutcomeUnknown | StoreUnreachable)


# What cannot be.


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"endpoint": "http://h"}, r"S3 has no option 'endpoint'.*Did you mean endpoint_url\?"),
        ({"key": "k"}, "key and secret go together"),
        ({"key": "k", "secret": ""}, "secret is no text"),
        ({"key": 5, "secret": "s"}, "key is no text"),
        ({"token": "t"}, "key and secret go together"),
        ({"anon": "maybe"}, "anon is neither true nor false"),
        ({"path_style": 2}, "path_style is neither true nor false"),
        ({"endpoint_url": "localhost:9000"}, "endpoint_url is no address"),
        ({"endpoint_url": "http://user:hunter22@host"}, "endpoint_url is no address"),
        ({"endpoint_url": "http://host/path"}, "endpoint_url is no address"),
        ({"region": ""}, "region is no text"),
        ({"verify": ""}, "verify is no text"),
        ({"sse": "aes"}, "sse is 'aes'"),
        ({"sse_kms_key_id": "k"}, "sse_kms_key_id needs sse"),
        ({"sse": "AES256", "sse_kms_key_id": "k"}, "sse_kms_key_id needs sse"),
        ({"read_timeout": "soon"}, "read_timeout is no number"),
        ({"connect_timeout": 0}, "connect_timeout is no number"),
        ({"retry_timeout": "nan"}, "retry_timeout is no number"),
        ({"retry_timeout": True}, "retry_timeout is no number"),
        ({"max_concurrency": "1.5"}, "max_concurrency is no whole number"),
        ({"max_concurrency": 0}, "max_concurrency is no whole number"),
    ],
)
def test_options_that_cannot_be_are_refused_by_name_when_the_store_is_opened(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidOption, match=reason) as caught:
        open_store("s3://some/where", options)
    assert "hunter22" not in str(caught.value)


@pytest.mark.parametrize("url", ["s3://", "s3:///path", "s3://a", "s3://-bucket", "s3://bu cket/x", "s3://some?x=1"])
def test_a_url_without_a_bucket_is_refused(url: str) -> None:
    with pytest.raises(InvalidOption, match=r"Next: Write s3://BUCKET/PATH"):
        open_store(url)


@pytest.mark.parametrize("url", ["s3://some/a//b", "s3://some/../b", "s3://some/a/./b", "s3://some//a"])
def test_a_path_that_is_ambiguous_is_refused(url: str) -> None:
    with pytest.raises(InvalidName):
        open_store(url)


CALLS: dict[str, Callable[[S3Store], Any]] = {
    "get": lambda store: store.get("a/b"),
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


# What goes wrong on the way.


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


@pytest.mark.parametrize("fault", [Fault.CORRUPT_ANSWER, Fault.CUT_ANSWER])
def test_an_object_that_is_damaged_on_its_way_back_is_asked_for_again(
    watched: S3Store, store: S3Store, proxy: Proxy, fault: Fault
) -> None:
    data = random.Random(7).randbytes(100_000)
    store.put("a/b", data)
    proxy.inject(fault)
    assert watched.get("a/b") == data
    assert kinds(proxy.take()) == ["get", "get"]
    proxy.inject(fault, times=None)
    with pytest.raises(StoreUnreachable, match="a/b"):
        watched.get("a/b")


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
        if name in ("delete", "put", "get") and status == 200:
            continue  # this is what success looks like, but for the bytes, which the reader of a file checks
        with pytest.raises(BucketCatalogError) as caught:
            call(S3Store(f"s3://{bucket}", options))
        assert caught.value.next_step, name
