"""What has to change in the tables of a bucket, from one pass over the source and what the catalog has of it: objects, and versions.

The catalog's side is planned by who has its snapshot, and can be read by anybody: slices of each table, for all names or a range of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from ..errors import SourceNotFound
from ..log.blocks import Blocks
from ..model.facts import Facts
from ..model.tables import Table
from ..query.snapshot import Snapshot
from ..state.plan import Part, Slice
from ..state.read import read_slice
from .compare import Look, Merger, NamedRows, Step
from .mapping import OBJECT_VERSIONS, OBJECTS, Bucket, keys_of, names_of, names_upto, object_ids
from .ranges import ALL_NAMES, NameRange
from .scope import Scope
from .source import Source, is_of_a_store
from .sources.s3_pages import ONLY_VERSIONS, current

SLICE_ROWS = 16_384


@dataclass(frozen=True)
class LiveRows:
    """A bucket's live rows of a table, as far as the slices go; ``stored_as`` is the table as the catalog has it."""

    blocks: Blocks
    stored_as: Table
    slices: Iterable[Slice]

    @classmethod
    def of(cls, snapshot: Snapshot, bucket: Bucket, table: Table, within: NameRange = ALL_NAMES) -> LiveRows:
        """Those that a snapshot shows in a range of names."""
        state = snapshot.state(table.name)
        keys = keys_of(bucket, table, within)
        return cls(state.blocks, state.table, state.plan([keys], only_live=True, target=SLICE_ROWS))

    def named(self, table: Table, scope: Scope, *, all_columns: bool = False) -> Iterator[NamedRows]:
        """The rows that are in scope, with their versions as ``uuid`` and ``sequence``.

        Only names and ids are read, unless ``all_columns`` are wanted: these come by their names, in storage form.
        """
        needed = {*(column.field_name for column in table.key_columns), table.by_name["id"].field_name, "_kind", "_txn", "_seq"}
        for slice_ in self.slices:
            facts = read_slice(self.blocks, self.stored_as, slice_, Part.LIVE, None if all_columns else frozenset(needed))
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


def is_known(snapshot: Snapshot, bucket: Bucket, scope: Scope) -> bool:
    """Whether the catalog has any object of the bucket, or any version of one: all may be hidden by delete markers."""
    tables = (OBJECTS, OBJECT_VERSIONS)
    return any(next(LiveRows.of(snapshot, bucket, table).named(table, scope), None) is not None for table in tables)


def refuse_empty(snapshot: Snapshot, bucket: Bucket, scope: Scope, source: Source) -> None:
    """``SourceNotFound`` for a source in which nothing is found at all, where that is more likely a mistake than meant."""
    if is_known(snapshot, bucket, scope):
        raise SourceNotFound(
            f"Nothing at all is found in {source.url}, and the catalog has entries of it: all of them would be taken for deleted.",
            next_step="See that it is mounted and that the globs fit. If it is meant to be empty: --allow-empty, allow_empty=True.",
        )
    if bucket.row is not None and is_of_a_store(source):  # in a store a path without anything below it is not there at all
        raise SourceNotFound(
            f"Nothing at all is found in {source.url}.",
            next_step="Check the bucket, the path and the endpoint. If it is meant to be empty: --allow-empty, allow_empty=True.",
        )


Change = tuple[Table, Step]


@dataclass
class Portion:
    """Entries up to about so many, of batches that may be more: ``ended`` is the last name where there may be more, else None.

    ``began`` is the first name, where there is any.
    """

    batches: Iterator[pa.RecordBatch]
    most: int | None = None
    seen: int = 0
    began: bytes | None = field(default=None, init=False)
    ended: bytes | None = field(default=None, init=False)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self.batches:
            if self.began is None and len(batch):
                self.began = batch.column("name")[0].as_py().encode()
            self.seen += len(batch)
            if self.most is not None and self.seen >= self.most:
                self.ended = batch.column("name")[-1].as_py().encode()
            yield batch
            if self.ended is not None:
                return


@dataclass(frozen=True)
class Difference:
    """The changes of one bucket between a source and what the catalog has, the ``known`` rows of each table, as far as a scope goes."""

    bucket: Bucket
    scope: Scope
    source: Source
    known: Callable[[Table], LiveRows]

    def changes(self, entries: Portion) -> Iterator[Change]:
        """The steps of each table, each table's in the order of its keys, as far as the entries go."""
        if not is_of_a_store(self.source):
            yield from self._changes(entries, Merger(self.known(OBJECTS).named(OBJECTS, self.scope)), None)
            return
        compared, versioning = self.source.compared, self.source.versioning()
        of_objects = tuple(name for name in compared if name not in ONLY_VERSIONS)
        objects = self._merger(OBJECTS, of_objects, self.source.look)
        versions = None if versioning is None else self._merger(OBJECT_VERSIONS, compared, self.source.look)
        yield from self._changes(entries, objects, versions, versioned=bool(versioning))

    def _merger(self, table: Table, compared: tuple[str, ...], look: Look) -> Merger:
        return Merger(self.known(table).named(table, self.scope, all_columns=True), compared=compared, look=look)

    def _changes(
        self, entries: Portion, objects: Merger, versions: Merger | None, *, versioned: bool = False
    ) -> Iterator[Change]:
        for batch in entries:
            if versions is not None and versioned:
                yield from ((OBJECT_VERSIONS, step) for step in versions.take(self._named(OBJECT_VERSIONS, batch)))
            shown = current(batch) if versioned else batch
            if len(shown):
                yield from ((OBJECTS, step) for step in objects.take(self._named(OBJECTS, shown)))
        for table, merger in ((OBJECTS, objects), (OBJECT_VERSIONS, versions)):
            if merger is not None:
                before = None if entries.ended is None else names_upto(table, entries.ended)
                yield from ((table, step) for step in merger.rest(before))

    def _named(self, table: Table, batch: pa.RecordBatch) -> NamedRows:
        return NamedRows(names_of(table, batch), object_ids(self.bucket, batch), batch)
