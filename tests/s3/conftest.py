"""A store in a bucket of its own for each test, on the real server; also through a proxy."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from bucketcatalog.store.s3.store import S3Store
from minio.process import Server

from ..kit.roles import credentials
from ..kit.server import bucket, s3, server
from .proxy import Proxy

__all__ = ["bucket", "s3", "server"]

ROOT = "lake/inventory"
MEGABYTE = 1 << 20
PATIENT, AT_ONCE = "600", 60
"""For how many seconds a store would try again, and in how many it must not have begun to, also where the machine is busy."""


@pytest.fixture
def storage_options(server: Server) -> dict[str, str]:
    """What a store of the server takes, with the rights of its root user; the dictionary is the test's own."""
    return server.storage_options


@pytest.fixture
def url(bucket: str) -> str:
    return f"s3://{bucket}/{ROOT}"


@pytest.fixture
def role(server: Server, bucket: str) -> Callable[..., dict[str, str]]:
    """``role(name, writer)``: storage options with the rights of that role."""
    return lambda name, writer=None: credentials(server, name, bucket, ROOT, writer)


@pytest.fixture
def proxy(server: Server) -> Iterator[Proxy]:
    with Proxy(server.endpoint_url) as running:
        yield running


@pytest.fixture
def store(bucket: str, storage_options: dict[str, str]) -> S3Store:
    return S3Store(f"s3://{bucket}/{ROOT}", storage_options)


@pytest.fixture
def watched(bucket: str, storage_options: dict[str, str], proxy: Proxy) -> S3Store:
    """The same store, through the proxy."""
    options = {**storage_options, "endpoint_url": proxy.endpoint_url, "retry_timeout": PATIENT}
    return S3Store(f"s3://{bucket}/{ROOT}", options)
