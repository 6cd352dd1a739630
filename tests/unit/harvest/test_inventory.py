"""What a bucket's inventory makes of answers that no server gives on command."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from botocore.exceptions import ClientError

from bucketcatalog.errors import UnsupportedStore
from bucketcatalog.store.inventory import Span
from bucketcatalog.store.s3.inventory import S3Inventory

ORDER = "bucketcatalog:order"

OPTIONS = {"endpoint_url": "http://127.0.0.1:1", "key": "k", "secret": "secret", "retry_timeout": "0.01"}


class Answering:
    """A client whose calls give, or raise, what a test says."""

    def __init__(self, inventory: S3Inventory, monkeypatch: pytest.MonkeyPatch, **answers: Any) -> None:
        for name, answer in answers.items():
            setattr(self, name, functools.partial(self._give, answer))
        self.asked: list[dict[str, Any]] = []
        real = inventory._calls._client()
        self.meta = real.meta
        monkeypatch.setattr(inventory._calls, "_client", lambda: self)

    def _give(self, answer: Any, **wanted: Any) -> Any:
        self.asked.append(wanted)
        if isinstance(answer, Exception):
            raise answer
        return answer


def error(code: str, status: int) -> ClientError:
    return ClientError({"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}, "GetBucketVersioning")


@pytest.fixture
def inventory() -> S3Inventory:
    return S3Inventory("s3://bucket", OPTIONS)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({}, ""),
        ({"Status": "Suspended"}, "Suspended"),
        (error("AccessDenied", 403), None),
        (error("NotImplemented", 501), None),
        (error("MethodNotAllowed", 405), None),
    ],
)
def test_the_versioning_is_told_or_is_not_known(
    inventory: S3Inventory, monkeypatch: pytest.MonkeyPatch, answer: Any, told: str | None
) -> None:
    Answering(inventory, monkeypatch, get_bucket_versioning=answer)
    assert inventory.versioning() == told


@pytest.mark.parametrize("answer", [error("IllFormed", 400), KeyError("no answer of S3")])
def test_an_answer_that_is_not_s3s_says_nothing_about_versions(
    inventory: S3Inventory, monkeypatch: pytest.MonkeyPatch, answer: Exception
) -> None:
    Answering(inventory, monkeypatch, get_bucket_versioning=answer)
    with pytest.raises(UnsupportedStore):
        inventory.versioning()


def test_a_page_of_versions_that_ends_in_a_key_that_is_no_utf8_is_not_skipped_from(
    inventory: S3Inventory, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = {"Versions": [{"Key": "a%FF"}], ORDER: [b"Version"], "EncodingType": "url", "IsTruncated": True}
    answering = Answering(inventory, monkeypatch, list_object_versions={**page, "NextKeyMarker": "a%FF"})
    found = inventory.versions(Span())
    assert [entry["Key"] for entry in next(found).entries] == ["a%FF"]
    with pytest.raises(UnsupportedStore, match=r"beyond the key b'a\\xff'"):
        next(found)
    assert answering.asked == [{"Bucket": "bucket", "Prefix": "", "EncodingType": "url"}]


def test_the_next_page_of_versions_is_asked_for_behind_the_decoded_key(
    inventory: S3Inventory, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = {"Versions": [{"Key": "k"}], ORDER: [b"Version"], "EncodingType": "url", "IsTruncated": True}
    more = {"NextKeyMarker": "a%2B+%C3%A9", "NextVersionIdMarker": "v"}
    answering = Answering(inventory, monkeypatch, list_object_versions={**page, **more})
    found = inventory.versions(Span())
    assert next(found) and next(found)
    assert (answering.asked[1]["KeyMarker"], answering.asked[1]["VersionIdMarker"]) == ("a+ \xe9", "v")


def test_prefixes_that_are_no_utf8_divide_nothing(inventory: S3Inventory, monkeypatch: pytest.MonkeyPatch) -> None:
    below = [{"Prefix": "a%FF/"}, {"Prefix": "b+%C3%A9/"}]
    Answering(inventory, monkeypatch, list_objects_v2={"CommonPrefixes": below, "EncodingType": "url", "IsTruncated": False})
    assert inventory.prefixes("", 1) == ["b \xe9/"]
