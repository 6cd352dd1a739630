"""Spark: a full read of the catalog's live objects against native Parquet of the same rows, in one warm session.

The Parquet files are written by Spark itself from the catalog's rows, with its defaults. Both go to the ``noop`` sink, which takes every
column of every row.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import DataFrame

from . import dataset, ours
from .measuring import in_turns
from .results import Goal, Group, Measure, Sample
from .sessions import spark_session
from .world import World

WARM_UP, RUNS = 2, 5
PARTS = 4
GROUP, SUMMED = "content_type", "content_length"


def run(world: World) -> Group:
    """The group."""
    catalog, parquet = world.empty("spark-catalog"), world.empty("spark-parquet")
    rows = world.scale.spark_objects
    ours.build(catalog, (dataset.objects(rows // PARTS, seed=200 + part) for part in range(PARTS)))
    with spark_session(world.directory) as spark:
        every = spark.read.format("bucketcatalog").load(str(catalog))
        schema = every.select(*dataset.COLUMNS).schema
        mine = spark.read.format("bucketcatalog").schema(schema).load(str(catalog))
        native = as_parquet(mine, parquet, rows)
        subjects = {
            "ours": lambda: read_all(mine),
            "native": lambda: read_all(native),
            "every column": lambda: read_all(every),
            "count": lambda: count(mine),
            "native count": lambda: count(native),
            "sum": lambda: sum_up(spark.read.format("bucketcatalog").option("columns", f"{GROUP},{SUMMED}").load(str(catalog))),
            "native sum": lambda: sum_up(native),
        }
        in_turns(subjects, WARM_UP)
        samples = in_turns(subjects, RUNS)
        settings = {
            "session": f"Spark {spark.version}, {spark.sparkContext.master}, all defaults but time zone, addresses and interface",
            "ours": "a user schema of the 14 columns of the data set, table objects, noop sink",
            "reference": f"{_files(parquet)} Parquet files as Spark writes them by default, noop sink",
            "runs": f"{WARM_UP} to warm up, median of {RUNS}, in turns",
        }
    return Group(measures_of(samples, rows), settings)


def measures_of(samples: Mapping[str, Sample], rows: int) -> list[Measure]:
    """The measures, from the samples by subject."""
    goal = Goal("ours / other", "at most", 1.3)
    name = f"Spark full read of {rows:,} live objects"
    return [
        Measure(name, samples["ours"], samples["native"], "native Parquet", goal),
        Measure(f"{name}, all our columns", samples["every column"], samples["native"], "native Parquet of 14 columns"),
        Measure(f"Spark count of {rows:,} live objects", samples["count"], samples["native count"], "native Parquet"),
        Measure(f"Spark sum of {SUMMED} by {GROUP}", samples["sum"], samples["native sum"], "native Parquet"),
    ]


def as_parquet(mine: DataFrame, path: Path, rows: int) -> DataFrame:
    """The same rows, so many, from Parquet files that Spark has written with its defaults."""
    mine.write.parquet(str(path))
    native = mine.sparkSession.read.parquet(str(path))
    if not mine.count() == native.count() == rows:
        raise ValueError(f"the two do not have the same {rows} rows")
    return native


def read_all(frame: DataFrame) -> None:
    """Read every row and column."""
    frame.write.format("noop").mode("overwrite").save()


def count(frame: DataFrame) -> None:
    """Count all rows."""
    frame.count()


def sum_up(frame: DataFrame) -> None:
    """Sum by group."""
    frame.groupBy(GROUP).sum(SUMMED).collect()


def _files(parquet: Path) -> int:
    return len(list(parquet.glob("*.parquet")))
