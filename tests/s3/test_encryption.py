"""Encryption on the way and at rest: whom the store trusts, and what is put is encrypted as its options say."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from typing import Any

import pytest

from bucketcatalog.errors import AccessDenied, BucketCatalogError, InvalidOption, OutcomeUnknown, StoreUnreachable
from bucketcatalog.store.s3 import uploads
from bucketcatalog.store.s3.store import S3Store
from minio.clients import client
from minio.process import Server

from ..kit.store_contract import names_of
from .conftest import AT_ONCE, MEGABYTE, PATIENT


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
