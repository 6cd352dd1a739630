"""``jobs.harvest``: the driver divides a source, executors list and compare its sections, the driver commits once.

An executor gets a range of names and the places of what the catalog has there; it lists the source itself and puts segments for what
differs. What a task has put that dies, or runs twice, is referred to by nothing, and so is all of it where the driver dies before its
commit: the next run finds the same difference again.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from pyspark.sql import SparkSession

from bucketcatalog import BucketCatalogError, InvalidOption
from bucketcatalog.catalog import DEFAULT_DATABASE
from bucketcatalog.harvest import Harvested, Progress, Source
from bucketcatalog.harvest import harvest as run_harvest
from bucketcatalog.harvest.sections import Done, HarvestTask, Section
from bucketcatalog.harvest.source import AnyPath

from ..executors import CatalogPlace, on_executors, parallelism, sent

PARTS_A_CORE = 4


@dataclass(frozen=True)
class HarvestOnExecutors:
    """Does the sections of a harvest on Spark's executors; see ``bucketcatalog.harvest.sections.HarvestWorkers``."""

    spark: SparkSession
    place: CatalogPlace
    parts: int

    def run(self, task: HarvestTask, sections: Sequence[Section]) -> Iterable[Done]:
        """What becomes of each section; the error of one, as it was raised."""
        packed, place = sent(task), self.place  # a session cannot travel

        def do(section: Section) -> Done | BucketCatalogError:
            task: HarvestTask = pickle.loads(packed)
            try:
                return task.run(section, place.open().store)
            except BucketCatalogError as error:  # stores have tried again themselves; Spark would only bury what it says
                return error

        for outcome in on_executors(self.spark, do, sections):
            if isinstance(outcome, BucketCatalogError):
                raise outcome
            yield outcome


def harvest(
    spark: SparkSession,
    source: AnyPath | Source,
    catalog: str | os.PathLike[str],
    database: str = DEFAULT_DATABASE,
    *,
    writer: str | None = None,
    bucket: str | None = None,
    owner: str | UUID | None = None,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    dry_run: bool = False,
    allow_empty: bool = False,
    metadata: bool = False,
    tags: bool = False,
    checksum: bool = False,
    source_options: Mapping[str, Any] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    max_tasks: int | None = None,
) -> Harvested:
    """Bring the catalog's inventory of ``source`` up to date, listed and compared by the executors; see ``bucketcatalog.harvest.harvest``.

    The rows are the same as without Spark. All of it is one transaction, which has to be committed within the maximum snapshot age
    (``StaleRead``) and holds at most 2^31 changes (``InvalidRows``). A directory must be there on every machine that has executors.
    With ``checksum`` the executors read the files. ``progress`` is told after each round. A round has about ``max_tasks`` tasks, by default
    4 for each core that Spark knows of.
    """
    if max_tasks is not None and max_tasks < 1:
        raise InvalidOption(f"max_tasks cannot be {max_tasks}.", next_step="Set it to a whole number above 0.")
    place = CatalogPlace.of(catalog, storage_options)
    parts = max_tasks if max_tasks is not None else PARTS_A_CORE * parallelism(spark)
    return run_harvest(
        place.open(),
        source,
        database=database,
        writer=writer,
        bucket=bucket,
        owner=owner,
        include=include,
        exclude=exclude,
        dry_run=dry_run,
        allow_empty=allow_empty,
        metadata=metadata,
        tags=tags,
        checksum=checksum,
        source_options=source_options,
        progress=progress,
        workers=HarvestOnExecutors(spark, place, parts),
    )
