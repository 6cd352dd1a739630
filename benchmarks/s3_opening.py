"""Opening a catalog of many writers on a real S3 server: how many requests it takes, first, again, and behind a checkpoint."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from bucketcatalog import Catalog
from bucketcatalog.store import open_store
from bucketcatalog.store.faults import Counting
from minio.process import Server

from . import servers
from .measuring import seconds
from .results import Goal, Group, Measure, Sample
from .world import World


def run(world: World) -> Group:
    """The group."""
    writers, commits = world.scale.s3_writers, world.scale.s3_tail
    with Server() as server:
        url, options = f"s3://{servers.bucket(server)}/catalog", server.storage_options
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda number: _fill(Catalog(url, storage_options=options), number, commits), range(writers)))
        store = Counting(open_store(url, options))
        catalog = Catalog(store)
        first = _opened(catalog, store)
        _fill(Catalog(url, storage_options=options), 0, 1)
        again = _opened(catalog, store)
        with Catalog(url, storage_options=options).writer("compactor-bench", database="bench") as compactor:
            compactor.checkpoint(scope="all")
        covered_store = Counting(open_store(url, options))
        covered = _opened(Catalog(covered_store), covered_store)
    tail = writers * commits
    measures = [
        _lists(f"S3: LISTs to open, {writers} writers with {commits} uncovered commits each", first, 2 * writers + 1),
        _lists("S3: LISTs to follow, a commit later", again, writers + 1),
        _gets("S3: GETs to open", first, tail),
        _gets("S3: GETs to follow, a commit later", again, 1),
        _gets("S3: GETs to open behind a checkpoint of all", covered, 2),
        Measure("S3: time to open", Sample.one(first["seconds"], "s"), Sample.one(again["seconds"], "s"), "to follow"),
        Measure("S3: time to open behind a checkpoint of all", Sample.one(covered["seconds"], "s")),
    ]
    settings = {
        "server": f"MinIO {servers.version()} on this machine",
        "requests": {"open": first, "follow": again, "open behind a checkpoint": covered},
        "goal": "a LIST of the writers and two a writer to open, one a writer to follow; a GET of each transaction that no checkpoint "
        "covers; behind the checkpoint the checkpoint and the transaction beside it, or less",
    }
    return Group(measures, settings)


def _fill(catalog: Catalog, number: int, commits: int) -> None:
    with catalog.writer(f"writer-{number}", database="bench") as writer:
        for count in range(commits):
            with writer.transaction() as tx:
                tx.put("objects", servers.row(number << 10 | count))


def _opened(catalog: Catalog, store: Counting) -> dict[str, float]:
    """What a snapshot takes."""
    store.reset()
    took = seconds(lambda: _look(catalog))
    asked = store.requests
    return {"LIST": asked["list"] + asked["list_prefixes"], "GET": asked["get"], "range GET": asked["get_range"], "seconds": took}


def _look(catalog: Catalog) -> None:
    catalog.snapshot(database="bench")


def _lists(name: str, found: dict[str, float], most: int) -> Measure:
    return Measure(name, Sample.one(found["LIST"], "requests"), goal=Goal("ours", "at most", most))


def _gets(name: str, found: dict[str, float], most: int) -> Measure:
    return Measure(name, Sample.one(found["GET"], "requests"), goal=Goal("ours", "at most", most))
