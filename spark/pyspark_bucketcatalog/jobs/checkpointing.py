"""``jobs.checkpoint``: the driver decides what is merged, the executors merge ranges of keys, the driver publishes the checkpoint.

The driver reads indexes, and of the uncovered tail what transactions carry row by row. An executor gets the places of its blocks and its
part of the tail; it opens the store itself and puts its segments. What a task has put that dies, or runs twice, is referred to by
nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pyspark.sql import SparkSession

from bucketcatalog import InvalidOption
from bucketcatalog.checkpoint.merge import Merged, MergeTask, run_task
from bucketcatalog.checkpoint.publish import CheckpointResult
from bucketcatalog.model.names import COMPACTOR_PREFIX, host_writer, names_given
from bucketcatalog.write.host_turn import host_turn

from ..executors import CatalogPlace, on_executors

MOST_TASKS = 256


@dataclass(frozen=True)
class MergeOnExecutors:
    """Does the tasks of a merge on Spark's executors; see ``bucketcatalog.checkpoint.merge.MergeWorkers``."""

    spark: SparkSession
    place: CatalogPlace
    most: int = MOST_TASKS

    def run(self, tasks: Sequence[MergeTask]) -> Iterable[Merged]:
        """What each task wrote."""
        place = self.place  # a session cannot travel
        return on_executors(self.spark, lambda task: run_task(place.open().store, task), tasks)


def checkpoint(
    spark: SparkSession,
    catalog: str | os.PathLike[str],
    database: str | None = None,
    *,
    scope: Literal["own", "all"] = "all",
    writer: str | None = None,
    full: bool = False,
    retire: Sequence[str] = (),
    storage_options: Mapping[str, Any] | None = None,
    max_tasks: int = MOST_TASKS,
) -> CheckpointResult | None:
    """Write a checkpoint of every writer's cut, merged on the executors; None where there is nothing new to cover.

    ``writer`` is who writes it, and nobody else may hold it; by default it is this machine's compactor, which its processes hold in turn.
    With ``scope="own"`` it is whose timeline is covered. ``full`` merges everything into one level. Tasks are at most ``max_tasks``, and no
    smaller than about 250,000 rows. It says that the writers to ``retire`` are, as ``Catalog.retire`` has it.
    """
    if scope == "own" and writer is None:
        raise InvalidOption("A checkpoint of one writer's timeline needs its name.", next_step="Give writer, or the scope all.")
    if max_tasks < 1:
        raise InvalidOption(f"max_tasks cannot be {max_tasks}.", next_step="Set it to a whole number above 0.")
    place = CatalogPlace.of(catalog, storage_options)
    opened = place.open()
    name = opened.snapshot(database=database).database
    with (
        host_turn(opened.store, name, named=writer, default=host_writer(COMPACTOR_PREFIX)) as chosen,
        opened.writer(chosen, database=name) as held,
    ):
        named = names_given(retire, "retire", "retire=['node-a']")
        return held.checkpoint(scope=scope, full=full, workers=MergeOnExecutors(spark, place, max_tasks), retire=named)
