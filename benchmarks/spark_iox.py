"""Spark: reads of a data table, natively and through the data source, against Spark's own reader of the same Parquet files.

All sides have their DataFrames at hand, in one warm session. A full read goes to the ``noop`` sink, which takes every column of every row;
through the data source, which cannot know what a query needs, the others name their columns as everybody does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it

import pyspark_bucketcatalog as bcs

from . import iox_data
from .fresh import run_fresh
from .measuring import Timed, in_turns
from .results import Goal, Group, Measure, Sample
from .sessions import spark_session
from .spark_reads import read_all
from .world import World

WARM_UP, RUNS = 1, 5
SUMMED, SOUGHT = "usage", "number"
QUERIES = {
    "count": "count",
    "sum": f"sum of {SUMMED}",
    "filter": f"sum of {SUMMED} of one row in a thousand, by {SOUGHT}",
    "full": "full read",
}
WAYS = {"read": "bcs.read", "format": 'format("bucketcatalog")'}
NATIVE = "native"
Frame = Callable[[str | None], DataFrame]
"""A DataFrame of the table, that shows these columns, or all."""


def run(world: World) -> Group:
    """The group."""
    files, each = world.scale.native_parts, world.scale.native_part_rows
    path = world.empty("data-table")
    run_fresh("iox_data", "build", path=str(path), files=files, rows=each)
    with spark_session(world.directory) as spark:
        sides = {way: queries(frame, files * each) for way, frame in frames(spark, path).items()}
        check(sides, files * each)
        subjects: dict[str, Timed] = {
            f"{query}, {way}": _timed(ask) for way, asked in sides.items() for query, ask in asked.items()
        }
        in_turns(subjects, WARM_UP)
        samples = in_turns(subjects, RUNS)
        settings = {
            "session": f"Spark {spark.version}, {spark.sparkContext.master}, all defaults but time zone, addresses and interface",
            "ours": f"{files} files as append has written them; columns and, for the filter, a range named where they go through Python",
            "reference": "spark.read.parquet of the folder with the same files",
            "runs": f"{WARM_UP + 1} to warm up, median of {RUNS}, in turns",
        }
    return Group(list(measures_of(samples, files * each)), settings)


def measures_of(samples: Mapping[str, Sample], rows: int) -> Iterator[Measure]:
    """The measures, from the samples by query and way."""
    for way, shown in WAYS.items():
        for query, what in QUERIES.items():
            goal = Goal("ours / other", "at most", 1.3)
            name = f"Spark {what}, data table of {rows:,} rows, {shown}"
            yield Measure(
                name, samples[f"{query}, {way}"], samples[f"{query}, {NATIVE}"], "spark.read.parquet, the same files", goal
            )


def frames(spark: SparkSession, path: Path) -> dict[str, Frame]:
    """How each side shows the table."""
    table = f"data.{iox_data.TABLE}"
    held, plain = bcs.read(spark, path, table=table), spark.read.parquet(str(iox_data.folder(path)))
    source = spark.read.format("bucketcatalog").option("table", table)
    every = source.load(str(path))

    def through(columns: str | None) -> DataFrame:
        return every if columns is None else source.option("columns", columns).load(str(path))

    return {"read": lambda _: held, "format": through, NATIVE: lambda _: plain}


def queries(frame: Frame, rows: int) -> dict[str, Callable[[], Any]]:
    """What is asked of a side; all but the full read give the answer."""
    every, summed, both = (frame(columns) for columns in (None, SUMMED, f"{SOUGHT},{SUMMED}"))
    first, total = rows // 2, F.round(F.sum(SUMMED), 3)
    sought = F.col(SOUGHT).between(first, first + rows // 1_000 - 1)
    return {
        "count": every.count,
        "sum": lambda: summed.agg(total).collect(),
        "filter": lambda: both.where(sought).agg(total, F.count("*")).collect(),
        "full": lambda: read_all(every),
    }


def check(sides: Mapping[str, Mapping[str, Callable[[], Any]]], rows: int) -> None:
    """All sides give the same answers; it is the first time that they are asked, and so warms up."""
    for query in ("count", "sum", "filter"):
        answers = {way: asked[query]() for way, asked in sides.items()}
        if len({str(answer) for answer in answers.values()}) != 1 or (query == "count" and answers[NATIVE] != rows):
            raise ValueError(f"{query} of {rows} rows: {answers}")


def _timed(ask: Callable[[], Any]) -> Timed:
    def once() -> None:
        ask()

    return once
