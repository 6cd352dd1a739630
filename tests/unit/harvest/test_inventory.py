"""What a bucket's inventory makes of answers that no server gives on command."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from bucketcatalog.errors import UnsupportedStore
from bucketcatalog.store.s3.inventory import S3Inventory

OPTIONS = {"endpoint_url": "http://127.0.0.1:1", "key": "k", "secret": "secret", "retry_timeout": "0.01"}


class Answering:
    """A client whose calls give, or raise, what a test says."""

    def __init__(self, inventory: S3Inventory, monkeypatch: pytest.MonkeyPatch, **answers: Any) -> None:
        for name, answer in answers.items():
            setattr(self, name, lambda answer=answer, **wanted: self._give(answer))
        real = inventory._calls._client()
        self.meta = real.meta
        monkeypatch.setattr(inventory._calls, "_client", lambda: self)

    @staticmethod
    def _give(answer: Any) -> Any:
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
