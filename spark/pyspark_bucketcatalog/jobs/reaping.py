"""``jobs.reap``: the executors look for rows whose parent has ended, the driver ends them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from bucketcatalog import limits
from bucketcatalog.maintain.gc.candidates import parent_column
from bucketcatalog.maintain.gc.reap import BATCH, Reaped, orphan_schema, orphaned_in
from bucketcatalog.model.tables import Table
from bucketcatalog.model.times import Age
from bucketcatalog.query.snapshot import Snapshot
from bucketcatalog.state.plan import Part
from bucketcatalog.state.shares import Share

from ..executors import CatalogPlace, every_share, frame, packed_rows, read_states


@dataclass(frozen=True)
class FindOnExecutors:
    """Finds rows by their parents on the executors; see ``bucketcatalog.maintain.gc.reap.Find``."""

    spark: SparkSession
    place: CatalogPlace

    def __call__(self, snapshot: Snapshot, table: Table, ended: pa.Array) -> Iterator[pa.Table]:
        """The table's live rows whose parents have these ids, as ``orphan_schema`` has them."""
        if not len(ended):
            return
        place = self.place  # a session cannot travel

        def find(task: Share) -> Iterator[pa.Table]:
            for facts in read_states(task, place.open().store, [parent_column(table), *table.key_columns]):
                yield orphaned_in(facts, table, ended)

        schema = orphan_schema(table)
        tasks = every_share(snapshot.state(table.name), Part.LIVE)
        yield from packed_rows(frame(self.spark, find, tasks, schema), schema.names, BATCH)


def reap(
    spark: SparkSession,
    catalog: str | os.PathLike[str],
    database: str | None = None,
    *,
    older_than: Age = limits.COLLECTION_GRACE,
    dry_run: bool = True,
    force: bool = False,
    writer: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Reaped:
    """End the rows whose parent has ended, such as the objects of deleted buckets; see ``Catalog.reap``.

    The driver holds the ids of the parents and, in batches, of what it ends.
    """
    place = CatalogPlace.of(catalog, storage_options)
    return place.open().reap(
        database=database, older_than=older_than, dry_run=dry_run, force=force, writer=writer, find=FindOnExecutors(spark, place)
    )
