"""One real MinIO server for the lane, or one a process where several run it; a bucket of its own for each test, and a store in that."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bucketcatalog.store.s3.store import S3Store
from minio.clients import client
from minio.process import Server

from .proxy import Proxy

ROOT = "lake/inventory"
MEGABYTE = 1 << 20
PATIENT, AT_ONCE = "600", 60
"""For how many seconds a store would try again, and in how many it must not have begun to, also where the machine is busy."""


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """Started once, since all tests share it: whoever kills or stops a server starts one of their own."""
    folder = Path(tempfile.mkdtemp(prefix="bucketcatalog-minio-", dir=_fast_folder()))
    try:
        with Server(folder) as running:
            yield running
            running.kill()  # nobody needs the data any more, and it would wait for the connections that stores have kept
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _fast_folder() -> str | None:
    """Memory, where there is enough of it: the server syncs what it is given, which is most of the time that a put takes."""
    memory = Path("/dev/shm")
    return str(memory) if os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 4 << 30 else None


@pytest.fixture
def storage_options(server: Server) -> dict[str, str]:
    """What a store of the server takes, with the rights of its root user; the dictionary is the test's own."""
    return server.storage_options


@pytest.fixture(scope="session")
def s3(server: Server) -> Iterator[Any]:
    """A boto3 client of the root user, to look at things past the code under test."""
    with_root = client(server.storage_options)
    yield with_root
    with_root.close()


@pytest.fixture
def bucket(s3: Any) -> str:
    """The name of an empty bucket that no other test has."""
    name = f"test-{uuid.uuid4().hex}"
    s3.create_bucket(Bucket=name)
    return name


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
