"""``jobs.run``: a system's job, planned and committed by the driver, its tasks done by the executors."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from bucketcatalog.registry import JobTask
from bucketcatalog.store import Store

from ..executors import CatalogPlace, on_executors


@dataclass(frozen=True)
class RunTasksOnExecutors:
    """Has the tasks of a job done, one Spark task each; see ``bucketcatalog.registry.RunTasks``."""

    spark: SparkSession
    place: CatalogPlace

    def __call__(self, tasks: Sequence[JobTask], store: Store) -> Sequence[Any]:
        """What they come to, in no particular order."""
        place = self.place  # a session cannot travel
        return on_executors(self.spark, lambda task: task.run(place.open().store), tasks)


def run(
    spark: SparkSession,
    catalog: str | os.PathLike[str],
    job: str,
    database: str | None = None,
    *,
    writer: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> Any:
    """Run a job of an installed system, called ``SYSTEM.JOB``, with its own options, on the executors; see ``Catalog.run_job``.

    The system's package has to be installed where executors run, too.
    """
    place = CatalogPlace.of(catalog, storage_options)
    return place.open().run_job(job, database=database, writer=writer, run=RunTasksOnExecutors(spark, place), **options)


def compact_data(
    spark: SparkSession,
    catalog: str | os.PathLike[str],
    table: str,
    database: str | None = None,
    *,
    partition: str | None = None,
    writer: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> Any:
    """Make large files of the small ones of a data table, or of one of its partitions: executors write them, one commit names them.

    ``options`` are ``target_bytes``, about how large a file is to be, and ``least``, how many files are worth making one. What was deleted
    is left out of the new files. Returns what was done; others may append, delete and compact meanwhile.
    """
    asked = {"table": table, "partition": partition, **options}
    return run(spark, catalog, "iox.compact", database, writer=writer, storage_options=storage_options, **asked)
