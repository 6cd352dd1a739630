"""Spark: the events of many transactions as a stream against the same events as a batch, and how soon a stream has what was committed.

Both readers go to the ``noop`` sink in one warm session, with every column of the events. A stream's time is that of a query that is
started without a checkpoint, receives all that there is and ends. Of an idle query, which has no interval but Spark's default trigger, it
is the time from when ``commit`` has returned until ``foreachBatch`` has the row as a value of Python.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamReader

from bucketcatalog import Catalog

from . import dataset, ours
from .fresh import run_fresh
from .measuring import in_turns
from .results import Goal, Group, Measure, Sample
from .sessions import spark_session
from .spark_reads import read_all
from .world import World

WARM_UP, RUNS = 1, 5
FILES = 10
FIRST_SEED = 600
IDLE = (1.0, 2.5)
"""Seconds between an arrival and the next commit, at random, so that it comes at any moment between two looks."""
LOST = 60.0
"""Seconds after which a row that has not arrived will not."""


def run(world: World) -> Group:
    """The group."""
    transactions, each = world.scale.streamed
    path = world.empty("streamed")
    run_fresh("spark_streams", "build", path=str(path), transactions=transactions, rows=each)
    with spark_session(world.directory) as spark:
        subjects = {
            "batch": lambda: read_all(spark.read.format("bucketcatalog").option("readChangeFeed", True).load(str(path))),
            "stream": lambda: _receive(world, _events(spark).option("maxFilesPerTrigger", FILES).load(str(path))),
            "one batch": lambda: _receive(world, _events(spark).load(str(path))),
        }
        in_turns(subjects, WARM_UP)
        samples = in_turns(subjects, RUNS)
        arrivals = Sample(tuple(_arrivals(world, spark, path)))
        version, master = spark.version, spark.sparkContext.master
    settings = {
        "session": f"Spark {version}, {master}, all defaults but time zone, addresses and interface",
        "stream": f"availableNow, maxFilesPerTrigger={FILES}, noop sink, a checkpoint of its own on disk; the query is started and awaited",
        "batch": "readChangeFeed from the beginning, noop sink, the same columns",
        "runs": f"{WARM_UP} to warm up, median of {RUNS}, in turns",
        "arrivals": f"{world.scale.arrivals} commits of one object, one at a time, {IDLE[0]:g} to {IDLE[1]:g} s after the last one arrived",
    }
    return Group(list(measures_of(samples, arrivals, transactions, transactions * each)), settings)


def measures_of(samples: Mapping[str, Sample], arrivals: Sample, transactions: int, events: int) -> Iterator[Measure]:
    """The measures, from the seconds by subject and those of each arrival."""
    name = f"Spark stream of {events:,} events in {transactions:,} transactions"
    twice = Goal("ours / other", "at most", 2)
    batches = -(-transactions // FILES)
    yield Measure(f"{name}, {batches} batches", samples["stream"], samples["batch"], "the same events as a batch", twice)
    yield Measure(f"{name}, one batch", samples["one batch"], samples["batch"], "the same events as a batch", twice)
    name = "Spark stream with the default trigger, from commit until foreachBatch has the row"
    soon = Goal("ours", "at most", 1)
    yield Measure(f"{name}, median", arrivals, goal=soon)
    yield Measure(f"{name}, the slowest of {len(arrivals.values)}", Sample.one(max(arrivals.values), "s"), goal=soon)


def build(path: str, transactions: int, rows: int) -> dict[str, int]:
    """A catalog of so many transactions, each of so many objects, without a checkpoint."""
    with ours.opened(path) as writer:
        for number in range(transactions):
            with writer.transaction() as tx:
                tx.put("objects", dataset.objects(rows, seed=FIRST_SEED + number))
    return {}


def _events(spark: SparkSession) -> DataStreamReader:
    return spark.readStream.format("bucketcatalog").option("readChangeFeed", True)


def _receive(world: World, events: DataFrame) -> None:
    """Run a query over all that there is."""
    state = str(world.empty("stream-state"))
    query = events.writeStream.format("noop").option("checkpointLocation", state).trigger(availableNow=True).start()
    query.awaitTermination()


def _arrivals(world: World, spark: SparkSession, path: Path) -> Iterator[float]:
    """Seconds until each of some commits has arrived; the first, which warms up, is left out."""
    arrived: dict[str, float] = {}
    news = threading.Condition()

    def take(batch: DataFrame, number: int) -> None:
        names = [row.name for row in batch.select("name").collect()]
        with news:
            arrived.update(dict.fromkeys(names, time.perf_counter()))
            news.notify_all()

    pauses = random.Random(1)
    names = [f"arrival/{number}" for number in range(world.scale.arrivals + 1)]
    events = _events(spark).option("startingVersion", Catalog(path).snapshot().version).load(str(path))
    state = str(world.empty("stream-state"))
    query = events.writeStream.foreachBatch(take).option("checkpointLocation", state).start()
    try:
        with Catalog(path).writer(ours.WRITER) as writer:
            for name in names:
                time.sleep(pauses.uniform(*IDLE))
                with writer.transaction() as tx:
                    tx.put("objects", [{"owner": dataset.OWNER, "bucket_id": dataset.BUCKET, "name": name}])
                committed = time.perf_counter()
                with news:
                    if not news.wait_for(partial(arrived.__contains__, name), LOST):
                        raise TimeoutError(f"{name} has not arrived after {LOST:g} s: {query.exception()}")
                if name != names[0]:
                    yield arrived[name] - committed
    finally:
        query.stop()
