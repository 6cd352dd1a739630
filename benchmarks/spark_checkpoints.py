"""Spark: a full merge of ten million objects by ``jobs.checkpoint`` on one core and on two.

Each runs in a fresh process that is bound to its cores, Spark's own processes with it; a merge of a small catalog warms both up.
"""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

from bucketcatalog import Catalog

from . import dataset, ours
from .fresh import run_fresh
from .measuring import in_turns
from .results import Goal, Group, Measure, Sample
from .world import World

RUNS = 3
WARM_ROWS = 20_000


def run(world: World) -> Group:
    """The group."""
    scale = world.scale
    start = world.once("two-levels", lambda path: _two_levels(world, path))
    found: list[dict[str, Any]] = []

    def once(cores: int) -> float:
        copied, small = world.copy(start), world.empty("warm")
        ours.build(small, iter([dataset.objects(WARM_ROWS)]))
        found.append(run_fresh("spark_checkpoints", "merge", cores=cores, path=str(copied), warm=str(small), threads=cores))
        return float(found[-1]["seconds"])

    samples = in_turns({"one": partial(once, 1), "two": partial(once, 2)}, min(RUNS, scale.rounds))
    rows = scale.large_parts * scale.large_part_rows
    settings = {
        "job": "jobs.checkpoint(spark, path, scope='own', full=True): everything is read, folded and written",
        "catalog": "a level of all objects and one of changes",
        "tasks": sorted({one["tasks"] for one in found}),
    }
    return Group(measures_of(samples, rows), settings)


def measures_of(samples: dict[str, Sample], rows: int) -> list[Measure]:
    """The measures, from the samples by cores."""
    goal = Goal("other / ours", "at least", 1.7)
    return [
        Measure(f"jobs.checkpoint, full merge of {rows:,} objects on two cores", samples["two"], samples["one"], "on one", goal)
    ]


def _two_levels(world: World, path: Path) -> None:
    changes = dataset.upserts(dataset.objects(world.scale.large_part_rows, seed=ours.FIRST_SEED), world.scale.upserts)
    copied = world.copy(ours.large(world))
    with Catalog(copied).writer(ours.WRITER) as writer:
        with writer.transaction() as tx:
            tx.put("objects", changes)
        writer.checkpoint()
    copied.rename(path)


def merge(path: str, warm: str, threads: int) -> dict[str, Any]:
    """Merge a catalog on so many threads; ``seconds`` begin once Spark has merged a small one."""
    from pyspark_bucketcatalog import jobs

    from .spark_reads import spark_session

    with spark_session(Path(warm).parent, threads) as spark:
        _touch(warm)
        jobs.checkpoint(spark, warm, scope="own", writer=ours.WRITER, full=True)
        start = time.perf_counter()
        result = jobs.checkpoint(spark, path, scope="own", writer=ours.WRITER, full=True)
        seconds = time.perf_counter() - start
    assert result is not None
    return {"seconds": seconds, "tasks": result.tasks, "rows": result.rows, "bytes": result.bytes}


def _touch(path: str) -> None:
    with Catalog(path).writer(ours.WRITER) as writer, writer.transaction() as tx:
        tx.put("objects", dataset.objects(1, seed=7))
