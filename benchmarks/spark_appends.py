"""Spark: a DataFrame of a million rows appended to a table against Spark writing them as Parquet, in one warm session.

Both read the rows from the same Parquet files, in as many tasks; how long that takes alone is among the details. Ours are checked, put in
order of their keys, stored and committed, and synced to the disk, which Spark's files are not. They reach Python in batches that Spark
measures after each row, whose cost for columns of maps grows with the batch; in a second measure it does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from bucketcatalog import Catalog

from . import dataset, ours
from .measuring import in_turns
from .results import Goal, Group, Measure, Sample
from .sessions import spark_session
from .spark_reads import read_all
from .world import World, stored_bytes

WARM_UP, RUNS = 1, 5
FILES = 4
UNMEASURED = {"spark.sql.execution.arrow.maxBytesPerBatch": "2147483647"}
"""The setting with which Spark counts the rows of what it hands to Python, and nothing else."""


def run(world: World) -> Group:
    """The group."""
    rows = world.scale.objects
    source = world.empty("append-source")
    write_source(source, rows)
    with spark_session(world.directory) as spark:
        given = spark.read.parquet(str(source))
        made: dict[str, Path] = {}

        def append() -> None:
            made["ours"] = world.empty("append")
            given.write.format("bucketcatalog").option("writer", ours.WRITER).mode("append").save(str(made["ours"]))

        def append_unmeasured() -> None:
            with _set(spark, UNMEASURED):
                append()

        def parquet() -> None:
            made["native"] = world.empty("append-parquet")
            given.write.parquet(str(made["native"]))

        subjects = {"ours": append, "unmeasured": append_unmeasured, "native": parquet, "reading": lambda: read_all(given)}
        in_turns(subjects, WARM_UP)
        samples = in_turns(subjects, RUNS)
        tasks, version, master = given.rdd.getNumPartitions(), spark.version, spark.sparkContext.master
    found = Catalog(made["ours"]).snapshot().scan("objects", columns=["name"]).to_arrow().num_rows
    if found != rows:
        raise ValueError(f"{found} of {rows} rows were appended")
    sizes = {of: Sample.one(float(stored_bytes(path)), "bytes") for of, path in made.items()}
    settings = {
        "session": f"Spark {version}, {master}, all defaults but time zone, addresses and interface",
        "ours": 'df.write.format("bucketcatalog").mode("append"), to a catalog that is made by it',
        "batches not measured": ", ".join(f"{name}={value}" for name, value in UNMEASURED.items()),
        "reference": "df.write.parquet(path), all defaults",
        "rows": f"the 14 columns of the data set, uuids as text, in order of creation, from {FILES} Parquet files in {tasks} tasks",
        "runs": f"{WARM_UP} to warm up, median of {RUNS}, in turns",
    }
    return Group(list(measures_of(samples, sizes, rows)), settings)


def measures_of(samples: Mapping[str, Sample], sizes: Mapping[str, Sample], rows: int) -> Iterator[Measure]:
    """The measures, from the seconds and the bytes by subject."""
    name, other = f"Spark append of {rows:,} rows", "Spark's Parquet of them"
    alone = {"reading alone": samples["reading"].document()}
    goal = Goal("ours / other", "at most", 1.3)
    yield Measure(name, samples["ours"], samples["native"], other, goal, alone)
    yield Measure(f"{name}, batches not measured", samples["unmeasured"], samples["native"], other, goal)
    yield Measure(f"{name}, bytes written", sizes["ours"], sizes["native"], other)


@contextmanager
def _set(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name in settings:
            spark.conf.unset(name)


def write_source(path: Path, rows: int) -> None:
    """The data set in a few Parquet files, as Spark has its types."""
    path.mkdir()
    given = dataset.as_text(dataset.objects(rows))
    each = -(-rows // FILES)
    for number in range(FILES):
        pq.write_table(given.slice(number * each, each), path / f"{number}.parquet")
