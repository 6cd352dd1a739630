"""A real S3 server for the benchmarks, and plain boto3 to compare with."""

from __future__ import annotations

import uuid
from typing import Any

import boto3

from bucketcatalog import Catalog
from bucketcatalog.store.memory import MemoryStore
from minio.process import VERSION, Server

from . import dataset


def version() -> str:
    """Of the server."""
    return VERSION.split("-")[1][:8]


def plain_client(server: Server) -> Any:
    """boto3 as everybody has it, all defaults."""
    return plain(server.storage_options)


def plain(options: dict[str, str]) -> Any:
    """The same from options of a store."""
    return boto3.client(
        "s3",
        endpoint_url=options["endpoint_url"],
        aws_access_key_id=options["key"],
        aws_secret_access_key=options["secret"],
        region_name=options["region"],
    )


def bucket(server: Server) -> str:
    """An empty bucket."""
    name = f"bench-{uuid.uuid4().hex}"
    plain_client(server).create_bucket(Bucket=name)
    return name


def commit_bytes() -> int:
    """The size of a transaction that puts one such object, not the first of its writer, which defines the table too."""
    store = MemoryStore()
    with Catalog(store).writer("size") as writer:
        for number in range(2):
            with writer.transaction(operation="upload") as tx:
                tx.put("objects", row(number))
    *_, last = store.list("size/")
    return last.size


def row(number: int) -> dict[str, Any]:
    """One object as users put it."""
    return {
        "owner": dataset.OWNER,
        "bucket_id": dataset.BUCKET,
        "name": f"projects/00/datasets/00/picture-{number:08x}",
        "id": uuid.UUID(int=7),
        "content_length": 4_096,
        "content_md5": uuid.UUID(int=7).bytes,
        "content_type": "image/jpeg",
        "sharks": ["us-east-1:1.stor", "us-east-2:3.stor"],
    }
