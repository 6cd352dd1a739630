"""Spark: a count and a sum of objects of which no checkpoint has any, against Parquet of the same rows, in one warm session.

Everything has to be folded by each query, in Python, whichever way it is asked for. There is no goal: a checkpoint is the way out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

import pyspark_bucketcatalog as bcs
from bucketcatalog import Catalog

from . import dataset, ours
from .fresh import run_fresh
from .measuring import Timed, in_turns
from .results import Group, Measure, Sample
from .sessions import spark_session
from .spark_reads import GROUP, PARTS, SUMMED, as_parquet, count, sum_up
from .world import World

WARM_UP, RUNS = 1, 3
UPSERTS = 20
FIRST_SEED = 400
WAYS = {"format": 'format("bucketcatalog")', "read": "bcs.read"}
QUERIES = {"count": "count", "sum": f"sum of {SUMMED} by {GROUP}, which alone were asked for"}


def run(world: World) -> Group:
    """The group."""
    path = world.empty("uncovered")
    made = {"objects": world.scale.uncovered_objects, "each": world.scale.uncovered_upserts}
    rows = run_fresh("uncovered_reads", "build", path=str(path), **made)["rows"]
    with spark_session(world.directory) as spark:
        by_format = partial(spark.read.format("bucketcatalog").load, str(path))
        every = by_format().select(*dataset.COLUMNS)
        plain = as_parquet(every, world.empty("uncovered-parquet"), rows)
        frame = bcs.read(spark, path)
        subjects: dict[str, Timed] = {
            "count, format": partial(count, every),
            "count, read": partial(count, frame),
            "count, native": partial(count, plain),
            "sum, format": lambda: sum_up(by_format(columns=f"{GROUP},{SUMMED}")),
            "sum, read": lambda: sum_up(bcs.read(spark, path, columns=[GROUP, SUMMED])),
            "sum, native": partial(sum_up, plain),
            "planning": lambda: _forget(bcs.read(spark, path)),
        }
        in_turns(subjects, WARM_UP)
        samples = in_turns(subjects, RUNS)
        settings = {
            "session": f"Spark {spark.version}, {spark.sparkContext.master}, all defaults but time zone, addresses and interface",
            "catalog": f"{PARTS} transactions of {made['objects'] // PARTS:,} objects, {UPSERTS} upserts of {made['each']:,}",
            "reference": "spark.read.parquet(path) of Parquet as Spark writes it by default",
            "runs": f"{WARM_UP} to warm up, median of {RUNS}, in turns",
        }
    return Group(list(measures_of(samples, rows)), settings)


def measures_of(samples: Mapping[str, Sample], rows: int) -> Iterator[Measure]:
    """The measures, from the samples by query and way."""
    for query, shown in QUERIES.items():
        for way, call in WAYS.items():
            name = f"Spark {shown}, {rows:,} objects, no checkpoint, {call}"
            yield Measure(name, samples[f"{query}, {way}"], samples[f"{query}, native"], "native Parquet")
    yield Measure(f"bcs.read of {rows:,} objects, no checkpoint", samples["planning"], compares="ours")


def build(path: str, objects: int, each: int) -> dict[str, Any]:
    """A catalog without a checkpoint: so many objects, and upserts, half of objects that are there, half of new ones."""
    parts = [dataset.objects(objects // PARTS, seed=FIRST_SEED + part) for part in range(PARTS)]
    existing = pa.concat_tables(rows.select(["name"]) for rows in parts)
    with ours.opened(path) as writer:
        for rows in parts:
            with writer.transaction() as tx:
                tx.put("objects", rows)
        for number in range(UPSERTS):
            with writer.transaction(operation="upsert") as tx:
                tx.put("objects", dataset.upserts(existing, each, seed=5_000 + number))
    return {"rows": Catalog(Path(path)).snapshot().scan("objects", columns=["name"]).to_arrow().num_rows}


def _forget(made: object) -> None:
    """Take what a subject makes, which ``in_turns`` would take for its seconds."""
