"""What is known of a put by the way in which it failed, without a server."""

from __future__ import annotations

import pytest
from botocore import exceptions as boto

from bucketcatalog.errors import (
    AccessDenied,
    BucketCatalogError,
    InvalidOption,
    OutcomeUnknown,
    StoreUnreachable,
    UnsupportedStore,
)
from bucketcatalog.store.s3.failures import translated
from bucketcatalog.store.s3.options import split_url

UNTRUSTED = "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate (_ssl.c:1006)"
DAMAGED = "[SSL: DECRYPTION_FAILED_OR_BAD_RECORD_MAC] decryption failed or bad record mac (_ssl.c:2580)"
NO_TLS = "[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1006)"


@pytest.mark.parametrize(
    ("text", "doing", "kind"),
    [
        (UNTRUSTED, "put", AccessDenied),
        (UNTRUSTED, "read", AccessDenied),
        (DAMAGED, "put", OutcomeUnknown),
        (DAMAGED, "read", StoreUnreachable),
        (NO_TLS, "put", OutcomeUnknown),
        (NO_TLS, "list", UnsupportedStore),
    ],
)
def test_only_a_certificate_that_is_not_trusted_says_that_nothing_was_sent(
    text: str, doing: str, kind: type[BucketCatalogError]
) -> None:
    error = boto.SSLError(endpoint_url="https://x", error=text)
    assert type(translated(error, doing, "w/a", "s3://b")) is kind


@pytest.mark.parametrize(
    ("status", "doing", "kind"),
    [(408, "put", OutcomeUnknown), (425, "put", OutcomeUnknown), (409, "put", StoreUnreachable), (408, "read", StoreUnreachable)],
)
def test_what_may_go_better_soon_is_tried_again(status: int, doing: str, kind: type[BucketCatalogError]) -> None:
    answer = {"Error": {"Code": "X", "Message": "m"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    assert type(translated(boto.ClientError(answer, "PutObject"), doing, "w/a", "s3://b")) is kind


def test_a_url_with_a_password_is_refused_without_being_shown() -> None:
    with pytest.raises(InvalidOption) as error:
        split_url("s3://AKIAX:TOPSECRET@bucket/x")
    assert "TOPSECRET" not in str(error.value) and "as options" in str(error.value)


def test_a_bucket_that_is_missing_is_one_fact_with_one_next_step() -> None:
    """A listing is refused with NoSuchBucket, or with a bare 404 where the answer to HEAD has no body."""

    def missing(code: str, doing: str) -> BucketCatalogError:
        answer = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": 404}}
        return translated(boto.ClientError(answer, "ListObjectsV2"), doing, "", "s3://b")

    told = {str(missing(code, doing)) for code, doing in (("NoSuchBucket", "list"), ("404", "list"), ("404", "open"))}
    (text,) = told
    assert "There is no bucket for s3://b" in text


@pytest.mark.parametrize("doing", ["put", "upload", "read", "list", "delete"])
@pytest.mark.parametrize(("status", "code"), [(501, "NotImplemented"), (405, "MethodNotAllowed"), (501, "501"), (405, "405")])
def test_what_the_server_does_not_have_is_refused_for_certain(status: int, code: str, doing: str) -> None:
    """MinIO without a service of keys answers so to every put that is to be encrypted."""
    answer = {"Error": {"Code": code, "Message": "m"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    error = translated(boto.ClientError(answer, "PutObject"), doing, "w/a", "s3://b")
    assert type(error) is UnsupportedStore
    assert "the server does not have this" in error.message and "sse" in error.next_step
