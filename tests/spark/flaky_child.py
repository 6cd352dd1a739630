"""A checkpoint on executors whose every task dies the first time, after it has put its segments: ``flaky_child.py CATALOG MARKS``.

In a process of its own, for Spark counts failures only where its master says how many are allowed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from pyspark.sql import SparkSession

from bucketcatalog import Catalog
from bucketcatalog.checkpoint import merge
from bucketcatalog.checkpoint.merge import Merged, MergeTask, run_task
from pyspark_bucketcatalog.executors import on_executors

PATH, MARKS = sys.argv[1:]


class Dying:
    """Executors that die once for each task."""

    most = 4

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    def run(self, tasks: Sequence[MergeTask]) -> list[Merged]:
        def do(task: MergeTask) -> Merged:
            merged = run_task(Catalog(PATH).store, task)
            mark = Path(MARKS) / task.parts[0].share.slices[0].slice.keys.start.hex()[:200].ljust(1, "_")
            if not mark.exists():
                mark.touch()
                raise RuntimeError("the executor is gone")
            return merged

        return on_executors(self.spark, do, tasks)


if __name__ == "__main__":
    session = SparkSession.builder.master("local[2,3]").config("spark.ui.enabled", "false").getOrCreate()
    merge.FEWEST_ROWS = merge.MERGE_SLICE_ROWS = 4_096
    with Catalog(PATH).writer("compactor-flaky", database="photos") as writer:
        result = writer.checkpoint(scope="all", workers=Dying(session))
    assert result is not None
    print(json.dumps(asdict(result)))
    session.stop()
