"""What every store promises, of stores on the real server, at a bucket's root and below a prefix."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

from bucketcatalog.errors import AccessDenied
from bucketcatalog.store import Store
from bucketcatalog.store.s3.store import S3Store

from ..kit.store_contract import StoreContract, names_of
from .conftest import ROOT


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
