"""Commits of one action to a real S3 server, against one boto3 PUT of the same bytes; and reading and listing, to explain them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from bucketcatalog import Catalog
from bucketcatalog.clock import uuid7
from bucketcatalog.model.cuts import Head
from bucketcatalog.model.paths import transaction
from minio.process import Server

from . import ours, servers
from .measuring import in_turns
from .results import Goal, Group, Measure
from .world import World


def run(world: World) -> Group:
    """The group."""
    with Server() as server:
        return _measured(world, server)


def _measured(world: World, server: Server) -> Group:
    client, bucket = servers.plain_client(server), servers.bucket(server)
    catalog = Catalog(f"s3://{bucket}/catalog", storage_options=server.storage_options)
    with catalog.writer(ours.WRITER) as writer:
        commits = _commits(writer)
        next(commits)
        data = bytes(servers.commit_bytes())
        names = (transaction("plain", "default", Head(n, uuid7(1_700_000_000_000_000 + n).bytes)) for n in itertools.count())
        count = world.scale.s3_commits
        samples = in_turns(
            {
                "commit": lambda: _several(commits, count),
                "put": lambda: _several((client.put_object(Bucket=bucket, Key=name, Body=data) for name in names), count),
            },
            world.scale.rounds,
        )
    goal = Goal("ours / other", "at most", 1.2)
    each = {name: sample.scaled(1 / count, "s") for name, sample in samples.items()}
    measures = [Measure("S3: commit of one action", each["commit"], each["put"], "a boto3 PUT of its bytes", goal)]
    settings = {
        "server": f"MinIO {servers.version()} on this machine, a data directory of its own",
        "bytes of a commit": len(data),
        "ours": f"Writer held open; {count} commits a run",
        "put": "boto3 with its defaults, a client held open, names of the shape that transactions have",
    }
    return Group(measures, settings)


def _commits(writer: Any) -> Iterator[None]:
    for number in itertools.count():
        with writer.transaction(operation="upload") as tx:
            tx.put("objects", servers.row(number))
        yield


def _several(things: Iterator[object], count: int) -> None:
    for _ in itertools.islice(things, count):
        pass
