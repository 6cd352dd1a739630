"""One real MinIO server for a lane, or one a process where several run it, and a bucket of its own for each test: fixtures to import."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from minio.clients import client
from minio.process import Server


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
