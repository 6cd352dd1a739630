"""Spark: queries of objects that its own Parquet reader reads, merged and after overwrites, against Parquet of the same rows.

Both sides have their DataFrames at hand, in one warm session; how long it takes to make them is a measure of its own. The Parquet files are
written by Spark with its defaults. A full read goes to the ``noop`` sink, which takes every column of every row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it

import pyspark_bucketcatalog as bcs

from . import dataset
from .measuring import Timed, in_turns
from .native_states import MERGED, PREFIX, SPREAD, STATES, TENTH, WITHIN, State, catalog, parquet, read_natively
from .results import Goal, Group, Measure, Sample
from .sessions import spark_session
from .spark_reads import GROUP, SUMMED, read_all
from .world import World

WARM_UP, RUNS = 2, 5
FULL_WARM_UP, FULL_RUNS = 1, 3
PLANNING = "planning"
QUERIES = {
    "count": "count",
    "sum": f"sum of {SUMMED} by {GROUP}",
    "filter": "filter on a prefix of the name",
    "join": "join with buckets",
    "full": "full read",
}
GOALS: Mapping[str, Mapping[str, float]] = {
    MERGED.name: dict.fromkeys(QUERIES, 1.1),
    WITHIN.name: dict.fromkeys(QUERIES, 1.3),
    SPREAD.name: {"sum": 2.5, "filter": 2.5, "join": 2.5, "full": 1.4},
    TENTH.name: {"full": 1.8},
}


@dataclass(frozen=True)
class Side:
    """The DataFrames of one side, objects with its usual columns and with those of the data set alone, and how the first one is made."""

    make: Callable[[], DataFrame]
    objects: DataFrame
    of_dataset: DataFrame
    buckets: DataFrame

    def queries(self) -> dict[str, Callable[[], Any]]:
        """What is asked of it; all but the full read give the answer. Each plans anew: Spark keeps what a plan has shuffled."""
        objects, buckets = self.objects, self.buckets.select(F.col("id").alias("of"), F.col("name").alias("bucket"))
        total = F.sum(SUMMED)
        return {
            "count": objects.count,
            "sum": lambda: sorted(objects.groupBy(GROUP).agg(total).collect()),
            "filter": lambda: objects.where(F.col("name").startswith(PREFIX)).agg(total).collect(),
            "join": lambda: objects.join(buckets, objects["bucket_id"] == buckets["of"]).groupBy("bucket").agg(total).collect(),
            "full": partial(read_all, self.of_dataset),
        }


def run(world: World) -> Group:
    """The group."""
    parts = world.scale.native_parts
    rows = parts * world.scale.native_part_rows
    places = {state: (catalog(world, state, parts), parquet(world, state, parts)) for state in STATES}
    measures: list[Measure] = []
    with spark_session(world.directory) as spark:
        for state, (path, plain) in places.items():
            samples = _samples(_ours(spark, path), _native(spark, plain), rows)
            measures += measures_of(state, samples, rows, read_natively(path))
        version, master = spark.version, spark.sparkContext.master
    settings = {
        "session": f"Spark {version}, {master}, all defaults but time zone, addresses and interface",
        "ours": "bcs.read(spark, path); the full read asks for the 14 columns of the data set",
        "reference": "spark.read.parquet(path) of Parquet with these columns as Spark writes it by default",
        "filter": f"sum of {SUMMED} of names that begin with {PREFIX}, one in a hundred: those that are overwritten within a prefix",
        "join": f"with a table of one row by bucket_id, sum of {SUMMED} by its name",
        "runs": f"{WARM_UP} to warm up, median of {RUNS}, in turns; of full reads {FULL_WARM_UP} and {FULL_RUNS}",
    }
    return Group(measures, settings)


def measures_of(state: State, samples: Mapping[str, Sample], rows: int, details: Mapping[str, Any]) -> Iterator[Measure]:
    """The measures of a state, from the samples of each query, and of planning, by name and ``native`` name."""
    for query, shown in QUERIES.items():
        most = GOALS[state.name].get(query)
        goal = None if most is None else Goal("ours / other", "at most", most)
        name = f"Spark {shown}, {rows:,} objects, {state.shown}"
        yield Measure(name, samples[query], samples[f"native {query}"], "native Parquet", goal)
    name = f"bcs.read of {rows:,} objects, {state.shown}"
    yield Measure(name, samples[PLANNING], samples[f"native {PLANNING}"], "spark.read.parquet", details=dict(details))


def _ours(spark: SparkSession, path: Path) -> Side:
    make = partial(bcs.read, spark, path)
    return Side(make, make(), make(columns=dataset.COLUMNS), bcs.read(spark, path, table="buckets"))


def _native(spark: SparkSession, path: Path) -> Side:
    make = partial(spark.read.parquet, str(path / "objects"))
    objects = make()
    return Side(make, objects, objects, spark.read.parquet(str(path / "buckets")))


def _samples(ours: Side, native: Side, rows: int) -> dict[str, Sample]:
    mine, theirs = ours.queries(), native.queries()
    _check(mine, theirs, rows)
    subjects = {query: _timed(ask) for query, ask in mine.items()} | {
        f"native {query}": _timed(ask) for query, ask in theirs.items()
    }
    full = {query: subjects.pop(query) for query in ("full", "native full")}
    subjects |= {PLANNING: _timed(ours.make), f"native {PLANNING}": _timed(native.make)}
    in_turns(subjects, WARM_UP - 1)
    samples = in_turns(subjects, RUNS)
    in_turns(full, FULL_WARM_UP)
    return samples | in_turns(full, FULL_RUNS)


def _check(mine: Mapping[str, Callable[[], Any]], theirs: Mapping[str, Callable[[], Any]], rows: int) -> None:
    """Both sides give the same answers; it is the first time that they are asked, and so warms up."""
    for query in ("count", "sum", "filter", "join"):
        found, expected = mine[query](), theirs[query]()
        if not found or found != expected or (query == "count" and found != rows):
            raise ValueError(f"{query}: {found} and not {expected}, of {rows} rows")


def _timed(ask: Callable[[], Any]) -> Timed:
    def once() -> None:
        ask()

    return once
