"""Doing things on executors: one Spark task for each, and what came out of each back on the driver.

It is a DataFrame's ``mapInArrow``, since RDDs are not there on Spark Connect, and of ``spark.range``, since that alone has exactly one
row in each partition without a shuffle. Spark may do a thing again after a failure, or twice at once where it speculates: then one of
the outcomes comes back.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


def on_executors(spark: SparkSession, do: Callable[[Item], Outcome], items: Sequence[Item]) -> list[Outcome]:
    """What ``do`` makes of each item, in no particular order. ``do``, the items and what comes back are pickled."""
    if not items:
        return []
    packed = [pickle.dumps(item) for item in items]  # a task takes its own apart, and no other

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                outcome = pickle.dumps(do(pickle.loads(packed[number])))
                yield pa.record_batch({"outcome": pa.array([outcome], pa.binary())})

    each = spark.range(0, len(packed), 1, len(packed))
    return [pickle.loads(row.outcome) for row in each.mapInArrow(work, "outcome binary").collect()]
