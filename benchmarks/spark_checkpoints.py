"""Spark: a full merge of ten million objects by ``jobs.checkpoint`` on one core and on two, what the driver needs, and a read of them all.

Each merge runs in a fresh process that is bound to its cores, Spark's own processes with it; a merge of a small catalog warms both up. The
driver is two processes, Python and a Java machine with half of Spark's usual heap; on one machine that one does an executor's work as well.
"""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

from bucketcatalog import Catalog

from . import dataset, ours, spark_reads
from .fresh import run_fresh
from .measuring import in_turns
from .results import Goal, Group, Measure, Sample
from .sessions import spark_session
from .world import World

RUNS = 3
HEAP = "512m"
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
    parquet = str(world.empty("large-parquet") / "rows")
    reads = run_fresh("spark_checkpoints", "read", path=str(start), parquet=parquet, rounds=min(RUNS, scale.rounds))
    samples |= {name: Sample(tuple(seconds)) for name, seconds in reads["seconds"].items()}
    peaks = Sample(tuple(max(one[of] for one in found) / 1e6 for of in ("python", "java")), "MB")
    settings = {
        "job": "jobs.checkpoint(spark, path, scope='own', full=True): everything is read, folded and written",
        "catalog": "a level of all objects and one of changes",
        "tasks": sorted({one["tasks"] for one in found}),
        "driver": f"VmHWM of the driver's Python and of its Java machine with a heap of {HEAP}, together",
        "read": "the 14 columns of the data set, noop sink, once to warm up, in turns; two levels against Parquet as Spark writes it",
    }
    return Group(measures_of(samples, peaks, rows), settings)


def measures_of(samples: dict[str, Sample], peaks: Sample, rows: int) -> list[Measure]:
    """The measures, from the seconds by subject and the peaks of the driver's two processes."""
    merge, read = f"jobs.checkpoint, full merge of {rows:,} objects", f"Spark full read of {rows:,} live objects from two levels"
    both = Sample.one(sum(peaks.values), peaks.unit)
    each = dict(zip(("python", "java"), peaks.values, strict=True))
    return [
        Measure(f"{merge} on two cores", samples["two"], samples["one"], "on one", Goal("other / ours", "at least", 1.7)),
        Measure(f"{merge}, peak memory of the driver", both, goal=Goal("ours", "at most", 1_000), details=each),
        Measure(read, samples["ours"], samples["native"], "native Parquet", Goal("ours / other", "at most", 1.2)),
    ]


def _two_levels(world: World, path: Path) -> None:
    changes = dataset.upserts(dataset.objects(world.scale.large_part_rows, seed=ours.FIRST_SEED), world.scale.upserts)
    copied = world.copy(world.large)
    with Catalog(copied).writer(ours.WRITER) as writer:
        with writer.transaction() as tx:
            tx.put("objects", changes)
        writer.checkpoint()
    copied.rename(path)


def merge(path: str, warm: str, threads: int) -> dict[str, Any]:
    """Merge a catalog on so many threads; ``seconds`` begin once Spark has merged a small one."""
    from pyspark_bucketcatalog import jobs

    with spark_session(Path(warm).parent, threads, HEAP) as spark:
        _touch(warm)
        jobs.checkpoint(spark, warm, scope="own", writer=ours.WRITER, full=True)
        start = time.perf_counter()
        result = jobs.checkpoint(spark, path, scope="own", writer=ours.WRITER, full=True)
        seconds = time.perf_counter() - start
        peaks = {"python": ours.peak_memory(), "java": ours.peak_memory(_java())}
    assert result is not None
    return {"seconds": seconds, "tasks": result.tasks, "rows": result.rows, "bytes": result.bytes, **peaks}


def _java() -> str:
    """The process of the Java machine, which this one has started."""
    for task in Path("/proc/self/task").iterdir():
        for child in (task / "children").read_text().split():
            if Path(f"/proc/{child}/comm").read_text().strip() == "java":
                return child
    raise OSError("no Java machine was started from here")


def read(path: str, parquet: str, rounds: int) -> dict[str, Any]:
    """Read all of a catalog in Spark, and the same rows from Parquet files written at ``parquet``, in turns; seconds of each."""
    with spark_session(Path(parquet).parent) as spark:
        schema = spark.read.format("bucketcatalog").load(path).select(*dataset.COLUMNS).schema
        mine = spark.read.format("bucketcatalog").schema(schema).load(path)
        native = spark_reads.as_parquet(mine, Path(parquet), mine.count())
        subjects = {"ours": partial(spark_reads.read_all, mine), "native": partial(spark_reads.read_all, native)}
        in_turns(subjects, 1)
        samples = in_turns(subjects, rounds)
    return {"seconds": {name: sample.values for name, sample in samples.items()}}


def _touch(path: str) -> None:
    with Catalog(path).writer(ours.WRITER) as writer, writer.transaction() as tx:
        tx.put("objects", dataset.objects(1, seed=7))
