"""Harvest of a bucket on a real S3 server against a bare paged LIST of it with boto3, in turns."""

from __future__ import annotations

import io
import tarfile
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from minio.process import Server

from . import servers
from .fresh import run_fresh
from .measuring import in_turns
from .results import Goal, Group, Measure, Sample
from .world import World

RUNS = 2
A_TAR = 10_000
DIRECTORIES = 20


def run(world: World) -> Group:
    """The group."""
    objects = world.scale.s3_objects
    with Server() as server:
        client, bucket = servers.plain_client(server), servers.bucket(server)
        fill(client, bucket, objects)
        lake, options = servers.bucket(server), server.storage_options

        peaks = []

        def harvested(name: str) -> float:
            found = run_fresh("ours", "harvest_bucket", source=f"s3://{bucket}", catalog=f"s3://{lake}/{name}", options=options)
            assert found["entries"] == objects
            peaks.append(found["peak"] / 1e6)
            return float(found["seconds"])

        def listed() -> None:
            assert bare_list(client, bucket) == objects

        harvested("again")
        names = iter(f"first-{number}" for number in range(1_000))
        subjects = {"first": lambda: harvested(next(names)), "again": lambda: harvested("again"), "list": listed}
        samples = in_turns(subjects, min(RUNS, world.scale.rounds))
    idle = run_fresh("ours", "import_only")["peak"] / 1e6
    goal = Goal("ours / other", "at most", 2.0)
    measures = [
        Measure(f"S3: harvest of {objects:,} objects", samples["first"], samples["list"], "a bare paged LIST", goal),
        Measure("S3: the same again, nothing changed", samples["again"], samples["list"], "a bare paged LIST", goal),
        Measure("S3: peak memory of that", Sample(tuple(peaks), "MB"), Sample.one(idle, "MB"), "the imports of a reader alone"),
    ]
    settings = {
        "server": f"MinIO {servers.version()} on this machine, which shares its cores with the client",
        "ours": "harvest(Catalog(s3 url), s3 url) in a fresh process, its imports not counted, into an empty catalog on the same "
        "server; and into one that has it all",
        "reference": "boto3's paginator of list_objects_v2, all defaults, keys counted",
        "bucket": f"{objects} objects of 10 bytes in {DIRECTORIES} directories",
    }
    return Group(measures, settings)


def fill(client: Any, bucket: str, objects: int) -> None:
    """So many small objects; MinIO takes them as archives and unpacks these itself."""

    def put(first: int) -> None:
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as tar:
            for number in range(first, min(first + A_TAR, objects)):
                entry = tarfile.TarInfo(f"directory-{number % DIRECTORIES:02}/picture-{number:08}.jpg")
                entry.size = 10
                tar.addfile(entry, io.BytesIO(b"%010d" % number))
        extracted = {"snowball-auto-extract": "true"}
        client.put_object(Bucket=bucket, Key=f"archive-{first}.tar", Body=archive.getvalue(), Metadata=extracted)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(put, range(0, objects, A_TAR)))
    assert bare_list(client, bucket) == objects


def bare_list(client: Any, bucket: str) -> int:
    """How many objects there are."""
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket)
    return sum(len(page.get("Contents", ())) for page in pages)
