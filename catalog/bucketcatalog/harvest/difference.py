"""What has to change in the tables of a bucket, from one pass over the source and what the catalog has of it: objects, and versions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from ..model.facts import Facts
from ..model.tables import Table
from ..query.snapshot import Snapshot
from ..state.plan import Part
from ..state.read import read_slice
from .compare import Look, Merger, NamedRows, Step
from .mapping import OBJECT_VERSIONS, OBJECTS, Bucket, keys_of, names_of, object_ids
from .scope import Scope
from .source import Source, is_of_a_store
from .sources.s3_pages import ONLY_VERSIONS, current

SLICE_ROWS = 16_384


def live_in_bucket(
    snapshot: Snapshot, bucket: Bucket, scope: Scope, *, table: Table = OBJECTS, all_columns: bool = False
) -> Iterator[NamedRows]:
    """The bucket's live rows that are in scope, with their versions as ``uuid`` and ``sequence``.

    Only names and ids are read, unless ``all_columns`` are wanted: these come by their names, in storage form.
    """
    state = snapshot.state(table.name)
    needed = {*(column.field_name for column in table.key_columns), table.by_name["id"].field_name, "_kind", "_txn", "_seq"}
    for slice_ in state.plan([keys_of(bucket, table)], only_live=True, target=SLICE_ROWS):
        facts = read_slice(state.blocks, state.table, slice_, Part.LIVE, None if all_columns else frozenset(needed))
        mask = scope.mask(facts.stored_column(table.by_name["name"])) if len(facts) else None
        if mask is not None:
            facts = facts.filter(mask)
        if len(facts):
            yield _live_rows(facts, table, all_columns=all_columns)


def _live_rows(facts: Facts, table: Table, *, all_columns: bool) -> NamedRows:
    columns = {
        c.name: facts.stored_column(c) for c in (table.columns if all_columns else (*table.key_columns, table.by_name["id"]))
    }
    version = dict(zip(("uuid", "sequence"), facts.own_names(), strict=True))
    rows = pa.record_batch({**columns, **version} if all_columns else version)
    return NamedRows(names_of(table, columns), columns["id"], rows)


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
            next(live_in_bucket(self.snapshot, self.bucket, self.scope, table=table), None) is not None
            for table in (OBJECTS, OBJECT_VERSIONS)
        )

    def changes(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Change]:
        """The steps of each table, each table's in the order of its keys."""
        if not is_of_a_store(self.source):
            yield from self._changes(batches, Merger(live_in_bucket(self.snapshot, self.bucket, self.scope)), None)
            return
        compared, versioning = self.source.compared, self.source.versioning()
        of_objects = tuple(name for name in compared if name not in ONLY_VERSIONS)
        objects = self._merger(OBJECTS, of_objects, self.source.look)
        versions = None if versioning is None else self._merger(OBJECT_VERSIONS, compared, self.source.look)
        yield from self._changes(batches, objects, versions, versioned=bool(versioning))

    def _merger(self, table: Table, compared: tuple[str, ...], look: Look) -> Merger:
        live = live_in_bucket(self.snapshot, self.bucket, self.scope, table=table, all_columns=True)
        return Merger(live, compared=compared, look=look)

    def _changes(
        self, batches: Iterator[pa.RecordBatch], objects: Merger, versions: Merger | None, *, versioned: bool = False
    ) -> Iterator[Change]:
        for batch in batches:
            if versions is not None and versioned:
                yield from ((OBJECT_VERSIONS, step) for step in versions.take(self._named(OBJECT_VERSIONS, batch)))
            shown = current(batch) if versioned else batch
            if len(shown):
                yield from ((OBJECTS, step) for step in objects.take(self._named(OBJECTS, shown)))
        yield from ((OBJECTS, step) for step in objects.rest())
        if versions is not None:
            yield from ((OBJECT_VERSIONS, step) for step in versions.rest())

    def _named(self, table: Table, batch: pa.RecordBatch) -> NamedRows:
        return NamedRows(names_of(table, batch), object_ids(self.bucket, batch), batch)
