"""Eight processes at once that append small files to one data table on a real S3 server, against deltalake with conditional PUT.

Each process is a writer of its own, with the table held open. They append until a common end. What the peer gives up is counted, and how
often ours had to put anything again; the peer tries again by itself, up to 15 times, and does not tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from minio.process import Server

from . import s3_client, servers
from .results import Comparison, Group, Measure, Sample
from .s3_writers import rate
from .world import World

WRITERS = 8
FASTER: Comparison = "ours / other"
KINDS = {"ours": "data", "deltalake": "deltalake data"}


def run(world: World) -> Group:
    """The group."""
    with Server() as server:
        found = {side: rate(server, kind, WRITERS, world.scale.data_seconds, processes=WRITERS) for side, kind in KINDS.items()}
    settings = {
        "server": f"MinIO {servers.version()} on this machine, which shares its cores with the writers",
        "seconds of a run": world.scale.data_seconds,
        "rows": f"{s3_client.DATA_ROWS} a file",
        "deltalake": "write_deltalake, tables held open, conditional PUT, its own 15 retries; "
        "after a conflict that it reports the table is brought up to date",
    }
    return Group(list(measures_of(found)), settings)


def measures_of(found: Mapping[str, Mapping[str, Any]]) -> Iterator[Measure]:
    """The measures, from what each side did."""
    name = f"S3: appends to one data table by {WRITERS} processes"
    rates = {side: Sample.one(each["commits"] / each["seconds"], "commits/s") for side, each in found.items()}
    details = {side: dict(each) for side, each in found.items()}
    yield Measure(name, rates["ours"], rates["deltalake"], "deltalake", details=details, compares=FASTER)
    given_up = {side: Sample.one(float(each["failures"]), "commits") for side, each in found.items()}
    yield Measure(f"{name}: given up", given_up["ours"], given_up["deltalake"], "deltalake", compares=FASTER)
