"""``jobs.harvest`` of a tree of objects in a thousand directories, on one core and on two, and of one that has nearly all in one of them.

Each harvest runs in a fresh process that is bound to its cores, Spark's own processes with it; a harvest of a small tree warms both up, and
the tree is read once before, so that nobody waits for the disk. Beside it the harvest without Spark, on one core.
"""

from __future__ import annotations

import os
import time
from functools import partial
from pathlib import Path
from typing import Any

from bucketcatalog import Catalog
from bucketcatalog.harvest import harvest

from .fresh import run_fresh
from .harvest import scan
from .measuring import in_turns
from .results import Goal, Group, Measure, Sample
from .sessions import spark_session
from .world import World

RUNS = 3
DIRECTORIES = 1_000
SKEWED = 0.95
WARM_FILES = 2_000


def run(world: World) -> Group:
    """The group."""
    files = world.scale.objects
    even, skewed = world.directory / "even", world.directory / "skewed"
    each = files // DIRECTORIES
    make_tree(even, [each] * DIRECTORIES)
    make_tree(skewed, [round(files * SKEWED)] + [round(files * (1 - SKEWED)) // DIRECTORIES] * DIRECTORIES)
    warm = world.directory / "few"
    make_tree(warm, [WARM_FILES // 10] * 10)
    for tree in (even, skewed):
        scan(os.fsencode(tree))

    def once(tree: Path, cores: int, how: str) -> float:
        places = {"path": str(world.empty("harvest")), "warm": str(warm), "scratch": str(world.empty("scratch"))}
        return float(run_fresh("spark_harvest", how, cores=cores, tree=str(tree), threads=cores, **places)["seconds"])

    subjects = {
        f"{name} {cores}": partial(once, tree, cores, "on_spark")
        for name, tree in (("even", even), ("skewed", skewed))
        for cores in (1, 2)
    }
    samples = in_turns({**subjects, "alone": partial(once, even, 1, "alone")}, min(RUNS, world.scale.rounds))
    settings = {
        "job": "jobs.harvest(spark, tree, path) into an empty catalog",
        "even": f"{each:,} files in each of {DIRECTORIES:,} directories",
        "skewed": f"{SKEWED:.0%} of the files in one directory, the rest in {DIRECTORIES:,} others",
        "alone": "harvest(Catalog(path), tree), which writes a checkpoint, too",
    }
    return Group(measures_of(samples, each * DIRECTORIES), settings)


def measures_of(samples: dict[str, Sample], files: int) -> list[Measure]:
    """The measures, from the seconds by subject."""
    goal = Goal("other / ours", "at least", 1.7)
    name = f"jobs.harvest of {files:,} files"
    return [
        Measure(f"{name} in 1,000 directories on two cores", samples["even 2"], samples["even 1"], "on one", goal),
        Measure(f"{name}, nearly all in one directory, on two cores", samples["skewed 2"], samples["skewed 1"], "on one", goal),
        Measure(f"{name} on one core", samples["even 1"], samples["alone"], "harvest without Spark"),
    ]


def make_tree(root: Path, sizes: list[int]) -> None:
    """A directory for each of the sizes, with so many empty files."""
    for number, size in enumerate(sizes):
        folder = root / f"p{number:04}"
        folder.mkdir(parents=True)
        for at in range(size):
            os.close(os.open(folder / f"{at:07}.jpg", os.O_CREAT | os.O_WRONLY))


def on_spark(tree: str, path: str, warm: str, scratch: str, threads: int) -> dict[str, Any]:
    """Harvest a tree on so many threads; ``seconds`` begin once Spark has harvested a small one."""
    from pyspark_bucketcatalog import jobs

    with spark_session(Path(scratch), threads) as spark:
        jobs.harvest(spark, warm, f"{scratch}/lake")
        start = time.perf_counter()
        result = jobs.harvest(spark, tree, path)
        seconds = time.perf_counter() - start
    return {"seconds": seconds, "entries": result.entries}


def alone(tree: str, path: str, warm: str, scratch: str, threads: int) -> dict[str, Any]:
    """The same in this process."""
    harvest(Catalog(f"{scratch}/lake"), warm)
    start = time.perf_counter()
    result = harvest(Catalog(path), tree)
    return {"seconds": time.perf_counter() - start, "entries": result.entries}
