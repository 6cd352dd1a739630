"""Options and URLs that cannot be are refused by name, before anything is asked."""

from __future__ import annotations

from typing import Any

import pytest

from bucketcatalog.errors import InvalidName, InvalidOption
from bucketcatalog.store import open_store


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"endpoint": "http://h"}, r"S3 has no option 'endpoint'.*Did you mean endpoint_url\?"),
        ({"key": "k"}, "key and secret go together"),
        ({"key": "k", "secret": ""}, "The option secret is empty"),
        ({"key": 5, "secret": "s"}, "The option key is not a text"),
        ({"key": "k\0", "secret": "s"}, "The option key holds a NUL character"),
        ({"token": "t"}, "key and secret go together"),
        ({"anon": "maybe"}, "anon is neither true nor false"),
        ({"path_style": 2}, "path_style is neither true nor false"),
        ({"endpoint_url": "localhost:9000"}, "endpoint_url is not the address"),
        ({"endpoint_url": "http://user:hunter22@host"}, "endpoint_url is not the address"),
        ({"endpoint_url": "http://host/path"}, "endpoint_url is not the address"),
        ({"region": ""}, "The option region is empty"),
        ({"verify": ""}, "The option verify is empty"),
        ({"sse": "aes"}, "sse is 'aes'"),
        ({"sse_kms_key_id": "k"}, "sse_kms_key_id needs sse"),
        ({"sse": "AES256", "sse_kms_key_id": "k"}, "sse_kms_key_id needs sse"),
        ({"read_timeout": "soon"}, "read_timeout is not a number"),
        ({"connect_timeout": 0}, "connect_timeout is not a number"),
        ({"retry_timeout": "nan"}, "retry_timeout is not a number"),
        ({"retry_timeout": True}, "retry_timeout is not a number"),
        ({"max_concurrency": "1.5"}, "max_concurrency is not a whole number"),
        ({"max_concurrency": 0}, "max_concurrency is not a whole number"),
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
