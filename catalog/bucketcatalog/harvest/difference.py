"""What has to change in the tables of a bucket, from one pass over the source and what the catalog has of it: objects, and versions.

The catalog's side is planned by who has its snapshot, and can be read by anybody: slices of each table, for all names or a range of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa

from ..errors import SourceNotFound
from ..log.blocks import Blocks
from ..model.facts import Facts
from ..model.tables import Column, Table
from ..query.snapshot import Snapshot
from ..state.plan import Part, Slice
from ..state.read import read_slice
from ..wording import either
from .checksums import Checksums
from .compare import Look, Merger, NamedRows, Step
from .mapping import OBJECT_VERSIONS, OBJECTS, Bucket, keys_of, names_of, names_upto, object_ids
from .ranges import ALL_NAMES, NameRange
from .scope import Scope
from .source import Source, is_compared, is_of_a_store
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

    def named(self, table: Table, scope: Scope, more: Iterable[str] | None = ()) -> Iterator[NamedRows]:
        """The rows that are in scope, with their versions as ``uuid`` and ``sequence``.

        Only names, ids and lengths are read, and what else is wanted by its name; all columns for None. They come in storage form.
        """
        names = None if more is None else {*table.key, *(name for name in (table.id,) if name), "content_length", *more}
        columns = [column for column in table.columns if names is None or column.name in names]
        for slice_ in self.slices:
            facts = self._facts(slice_, table, scope, columns)
            if len(facts):
                whole = None if more is None else partial(self._whole, slice_, table, scope)
                yield _live_rows(facts, table, columns, whole)

    def _facts(self, slice_: Slice, table: Table, scope: Scope, columns: Sequence[Column]) -> Facts:
        needed = frozenset((*(column.field_name for column in columns), "_kind", "_txn", "_seq"))
        facts = read_slice(self.blocks, self.stored_as, slice_, Part.LIVE, needed)
        mask = scope.mask(facts.stored_column(table.by_name["name"])) if len(facts) else None
        return facts if mask is None else facts.filter(mask)

    def _whole(self, slice_: Slice, table: Table, scope: Scope) -> pa.RecordBatch:
        """A slice's rows in scope, with all columns: they are needed only of what has changed, which is mostly nothing."""
        return _with_versions(self._facts(slice_, table, scope, table.columns), table.columns)


def _live_rows(facts: Facts, table: Table, columns: Sequence[Column], whole: Callable[[], pa.RecordBatch] | None) -> NamedRows:
    rows = _with_versions(facts, columns)
    if whole is not None:
        rows = rows.append_column("place", pa.array(np.arange(len(rows))))
    return NamedRows(names_of(table, rows), rows.column("id"), rows, whole)


def _with_versions(facts: Facts, columns: Sequence[Column]) -> pa.RecordBatch:
    version = dict(zip(("uuid", "sequence"), facts.own_names(), strict=True))
    return pa.record_batch({**{column.name: facts.stored_column(column) for column in columns}, **version})


def is_known(snapshot: Snapshot, bucket: Bucket, scope: Scope) -> bool:
    """Whether the catalog has any object of the bucket, or any version of one: all may be hidden by delete markers."""
    tables = (OBJECTS, OBJECT_VERSIONS)
    return any(next(LiveRows.of(snapshot, bucket, table).named(table, scope), None) is not None for table in tables)


def refuse_empty(snapshot: Snapshot, bucket: Bucket, scope: Scope, source: Source) -> None:
    """``SourceNotFound`` for a source in which nothing is found at all, where that is more likely a mistake than meant."""
    if is_known(snapshot, bucket, scope):
        raise SourceNotFound(
            f"Nothing at all is found in {source.url}, and the catalog has entries of it: all of them would be taken for deleted.",
            next_step=f"See that it is mounted and that the globs fit. If it is meant to be empty: {_allow_empty()}.",
        )
    if bucket.row is not None and is_of_a_store(source):  # in a store a path without anything below it is not there at all
        raise SourceNotFound(
            f"Nothing at all is found in {source.url}.",
            next_step=f"Check the bucket, the path and the endpoint. If it is meant to be empty: {_allow_empty()}.",
        )


def _allow_empty() -> str:
    return either("allow_empty=True", "--allow-empty")


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
    checksums: Checksums | None = None

    def changes(self, entries: Portion) -> Iterator[Change]:
        """The steps of each table, each table's in the order of its keys, as far as the entries go."""
        compared = self.source.compared if is_compared(self.source) else ()
        versioning = self.source.versioning() if is_of_a_store(self.source) else None
        objects = self._merger(OBJECTS, tuple(name for name in compared if name not in ONLY_VERSIONS))
        versions = None if versioning is None else self._merger(OBJECT_VERSIONS, compared)
        yield from self._changes(entries, objects, versions, versioned=bool(versioning))

    def _merger(self, table: Table, compared: tuple[str, ...]) -> Merger:
        look = self._look()
        known = self.known(table).named(table, self.scope, compared if look is None else None)
        return Merger(known, compared=compared, look=look)

    def _look(self) -> Look | None:
        """What adds columns that no listing shows."""
        checksums, ask = self.checksums, self.source.look if is_of_a_store(self.source) else None
        if checksums is None or ask is None:
            return ask or checksums
        return lambda entries, known: checksums(ask(entries, known), known)

    def _changes(
        self, entries: Portion, objects: Merger, versions: Merger | None, *, versioned: bool = False
    ) -> Iterator[Change]:
        parts = (part for batch in entries for part in (self.checksums.parts(batch) if self.checksums else [batch]))
        for batch in parts:
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
