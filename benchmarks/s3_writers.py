"""Many writers at once in one database of a real S3 server: commits a second against plain PUTs from as many clients, and the peers.

Writers and clients live in four processes at most, as threads: ours and plain PUTs alike. They commit until a common end. Peers append to
one table with all their own means against conflicts; what they give up is counted, and what they try again where they tell.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bucketcatalog import Catalog
from minio.process import Server

from . import s3_client, servers
from .results import Goal, Group, Measure, Sample
from .world import World

WRITERS = (1, 4, 16, 64)
AMONG_PEERS = 8
MANY = 64


def run(world: World) -> Group:
    """The group."""
    measures, commits = [], {}
    with Server() as server:
        for writers in WRITERS:
            mine = rate(server, "ours", writers, world.scale.s3_seconds)
            plain = rate(server, "puts", writers, world.scale.s3_seconds)
            commits[writers] = mine
            name = f"S3: commits by {writers} writer{'s' * (writers > 1)} of one database"
            goal = Goal("ours / other", "at least", 0.8)
            measures.append(Measure(name, _sample(mine), _sample(plain), "plain boto3 PUTs by as many clients", goal, mine))
        mine = rate(server, "ours", AMONG_PEERS, world.scale.s3_seconds)
        for peer in ("deltalake", "pyiceberg"):
            theirs = rate(server, peer, AMONG_PEERS, world.scale.s3_seconds)
            goal = Goal("ours / other", "at least", 10)
            name = f"S3: commits by {AMONG_PEERS} writers of one table"
            measures.append(Measure(name, _sample(mine), _sample(theirs), peer, goal, {"ours": mine, peer: theirs}))
        measures.append(_many(server, world.scale.s3_many))
    settings = {
        "server": f"MinIO {servers.version()} on this machine, which shares its cores with the clients",
        "seconds of a run": world.scale.s3_seconds,
        "deltalake": "create_write_transaction of one file's metadata, tables held open, conditional PUT, its own 15 retries; "
        "after a conflict that it reports the table is brought up to date",
        "pyiceberg": "append of one row, SQL catalog in SQLite for the pointer, data and metadata on the server; "
        "after a conflict the table is refreshed and the commit made again, 15 times",
    }
    return Group(measures, settings)


def rate(server: Server, kind: str, writers: int, seconds: float, *, processes: int = 4) -> dict[str, Any]:
    """What ``writers`` of a kind did in some seconds in a bucket of their own, in so many processes of their own."""
    with tempfile.TemporaryDirectory() as folder:
        where = {"bucket": servers.bucket(server), "options": server.storage_options, "kind": kind, "seconds": seconds}
        where["folder"] = folder
        s3_client.PREPARED.get(kind, lambda _: None)(where)
        return _together(where, writers, processes)


def _together(where: dict[str, Any], writers: int, most: int = 4) -> dict[str, Any]:
    processes = min(most, writers)
    shares = [writers // processes + (number < writers % processes) for number in range(processes)]
    running = []
    for number, share in enumerate(shares):
        asked = json.dumps({**where, "first": sum(shares[:number]), "writers": share})
        command = [sys.executable, "-m", "benchmarks.s3_client"]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent.parent
        )
        assert process.stdin is not None
        process.stdin.write(asked + "\n")
        process.stdin.flush()
        running.append(process)
    for process in running:  # each says that it is ready, then all begin
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    for process in running:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    found = [json.loads(process.communicate()[0]) for process in running]
    total = {key: sum(one[key] for one in found) for key in ("commits", "failures", "retries")}
    return {**total, "seconds": max(one["seconds"] for one in found)}


def _sample(found: dict[str, Any]) -> Sample:
    return Sample.one(found["commits"] / found["seconds"], "commits/s")


def _many(server: Server, commits: int) -> Measure:
    """So many commits by 64 writers at once, then one reader: all must be there, once."""
    bucket = servers.bucket(server)
    where = {"bucket": bucket, "options": server.storage_options, "kind": "ours", "seconds": 3_600, "limit": -(-commits // MANY)}
    found = _together(where, MANY)
    snapshot = Catalog(f"s3://{bucket}/catalog", storage_options=server.storage_options).snapshot()
    seen = snapshot.scan("log", columns=["writer", "revision"]).to_arrow()
    once = seen.group_by(["writer", "revision"]).aggregate([]).num_rows
    wrong = abs(found["commits"] - once) + (len(seen) - once) + found["failures"]
    return Measure(
        f"S3: {found['commits']:,} commits by {MANY} writers at once: lost, doubled, failed or tried again",
        Sample.one(float(wrong + found["retries"]), "commits"),
        goal=Goal("ours", "at most", 0),
        details=found,
    )
