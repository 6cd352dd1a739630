"""What has to change in the tables of a bucket, from one pass over the source: objects, and where it has versions, these too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from ..model.tables import Table
from ..query.snapshot import Snapshot
from .compare import Look, Merger, Side, Step
from .live import live_sides
from .mapping import OBJECT_VERSIONS, OBJECTS, Bucket, names_of, object_ids
from .scope import Scope
from .source import Source, is_of_a_store
from .sources.bucketversions import ONLY_VERSIONS, current

Change = tuple[Table, Step]


@dataclass(frozen=True)
class Difference:
    """The changes of one bucket between a source and a snapshot, as far as a scope goes."""

    snapshot: Snapshot
    bucket: Bucket
    scope: Scope
    source: Source

    def is_known(self) -> bool:
        """Whether the catalog has any object of the source, or any version of one: all may be hidden by delete markers."""
        return any(
            next(live_sides(self.snapshot, self.bucket, self.scope, table=table), None) is not None
            for table in (OBJECTS, OBJECT_VERSIONS)
        )

    def changes(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Change]:
        """The steps of each table, each table's in the order of its keys."""
        if not is_of_a_store(self.source):
            yield from self._changes(batches, Merger(live_sides(self.snapshot, self.bucket, self.scope)), None)
            return
        compared, versioning = self.source.compared, self.source.versioning()
        of_objects = tuple(name for name in compared if name not in ONLY_VERSIONS)
        objects = self._merger(OBJECTS, of_objects, self.source.look)
        versions = None if versioning is None else self._merger(OBJECT_VERSIONS, compared, self.source.look)
        yield from self._changes(batches, objects, versions, versioned=bool(versioning))

    def _merger(self, table: Table, compared: tuple[str, ...], look: Look) -> Merger:
        live = live_sides(self.snapshot, self.bucket, self.scope, table=table, all_columns=True)
        return Merger(live, compared=compared, look=look)

    def _changes(
        self, batches: Iterator[pa.RecordBatch], objects: Merger, versions: Merger | None, *, versioned: bool = False
    ) -> Iterator[Change]:
        for batch in batches:
            if versions is not None and versioned:
                yield from ((OBJECT_VERSIONS, step) for step in versions.take(self._side(OBJECT_VERSIONS, batch)))
            shown = current(batch) if versioned else batch
            if len(shown):
                yield from ((OBJECTS, step) for step in objects.take(self._side(OBJECTS, shown)))
        yield from ((OBJECTS, step) for step in objects.rest())
        if versions is not None:
            yield from ((OBJECT_VERSIONS, step) for step in versions.rest())

    def _side(self, table: Table, batch: pa.RecordBatch) -> Side:
        return Side(names_of(table, batch), object_ids(self.bucket, batch), batch)
