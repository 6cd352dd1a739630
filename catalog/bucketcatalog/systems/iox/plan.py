"""Plans: which files and row groups of a data table a read has to open, found without opening any."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...model.arrays import Mask, one_chunk
from ...model.render import chosen
from ...query.parquet_filters import hashes_of
from ...query.row_tests import Comparison, RowTest
from ...query.snapshot import Snapshot
from .bloom_filters import groups_without, values_asked, with_filters
from .live import Live, as_declared, by_file
from .names import BEGINS
from .reading import PARTITION, PATH, REQUESTED, DataAsked, FilePart, FilesTask
from .schemas import OnConflict
from .statistics import TABLE as STATISTICS
from .statistics import Sought, files_out, groups_out, kind_of

_OF_PART = {
    "path": "path",
    "size": "size",
    "rows": "rows",
    "row_groups": "of_groups",
    "partition": "partition",
    "chunk": "chunk",
    "schema": "schema",
    "first_clock": "clock",
}
"""What a part says of its file, by the columns of the table of files."""
_FEW_FILES = 1_000
"""Files whose statistics are looked up one by one, and not read with those of all others."""


@dataclass(frozen=True)
class Pruned:
    """Which of a table's files may have rows that are looked for, and of those with several row groups which of these have none."""

    kept: Mask
    groups: pa.Table

    def groups_of(self, chunks: Iterable[str]) -> dict[str, set[int]]:
        """By chunk the row groups without such rows, of these."""
        some = self.groups.filter(pc.is_in(self.groups["chunk"], value_set=pa.array(list(chunks), pa.string())))
        found: dict[str, set[int]] = {}
        for chunk, group in zip(some["chunk"].to_pylist(), some["row_group"].to_pylist(), strict=True):
            found.setdefault(chunk, set()).add(group)
        return found


def pruned(snapshot: Snapshot, live: Live, test: RowTest, columns: pa.Schema, only: Sequence[str] | None) -> Pruned:
    """What conditions rule out, of columns ``only`` where these are given: by partitions, by schemas, by ends, and by Bloom filters."""
    kept = np.ones(len(live.files), dtype=bool)
    places_of = (PARTITION, PATH) if only is None else (PARTITION,)
    of_files = {name: test.where[name] for name in places_of if name in test.where}
    if of_files:
        places = live.files.select(["partition", "path"]).rename_columns([PARTITION, PATH])
        kept &= np.asarray(RowTest(test.name, of_files, places.schema.remove_metadata()).of(places))
    groups = [pa.table({"chunk": pa.array([], pa.string()), "row_group": pa.array([], pa.int64())})]
    by_column: list[tuple[Sought, Mask]] = []
    for name in test.where:
        if name in REQUESTED or (only is not None and name not in only):
            continue
        kind = columns.field(name).type
        wanted = test.wanted(name)
        has = np.asarray(pc.is_in(live.files["schema"], value_set=_with(live, name)))
        if not wanted.nothing:
            kept &= has
        sought = Sought(name, wanted, kind)
        out = _files_out(snapshot, live.table, sought)
        kept &= ~(
            has & np.asarray(pc.is_in(live.files["chunk"], value_set=out))
        )  # in others a column within another may be called so
        by_column.append((sought, has))
    groups += [_groups_out(snapshot, live, sought, has & kept) for sought, has in by_column]
    for sought, has in by_column:
        if (values := values_asked(sought)) is not None:
            groups += _filtered_out(snapshot, live, sought.column, values, has & kept)
    found = pa.concat_tables(groups)
    return Pruned(kept & _has_any_left(live, found), found)


def _with(live: Live, name: str) -> pa.Array:
    """The schemas that have a column."""
    return pa.array([id_ for id_, schema in live.by_schema.items() if schema.get_field_index(name) >= 0], pa.string())


def _files_out(snapshot: Snapshot, table: str, sought: Sought) -> pa.Array:
    """The chunks of the files that statistics rule out."""
    ends = kind_of(sought.kind)
    kinds = [] if ends is None else [ends, "int"] if ends == "double" else [ends]
    columns = ["chunk", "rows", "nulls", *(f"{end}_{kind}" for kind in kinds for end in ("min", "max"))]
    found = snapshot.scan(STATISTICS, columns=columns, where={"table": table, "column": sought.column}).to_arrow()
    return files_out(found, sought)


def _groups_out(snapshot: Snapshot, live: Live, sought: Sought, kept: Mask) -> pa.Table:
    """Which row groups of the files that are kept statistics rule out. Those of other files, nearly all of them, are not decoded."""
    chunks = one_chunk(live.files["chunk"]).filter(pa.array(kept))
    where = _about(live.table, sought.column, chunks)
    found = snapshot.scan(STATISTICS, columns=["chunk", "row_groups"], where=where).to_arrow()
    return groups_out(found.filter(pc.is_in(found["chunk"], value_set=chunks)), sought)


def _about(table: str, column: str, chunks: pa.Array) -> dict[str, Any]:
    """What rows of statistics about a column of these files meet; where these are many, others do too."""
    where: dict[str, Any] = {"table": table, "column": column}
    return where | ({"chunk": chunks.to_pylist()} if len(chunks) <= _FEW_FILES else {})


def _filtered_out(snapshot: Snapshot, live: Live, column: str, values: Sequence[Any], kept: Mask) -> Iterator[pa.Table]:
    """Which row groups of the files that are kept Bloom filters rule out, by the type that each file has the column in.

    Where no such file has any nothing is read. Memory does not grow with the files.
    """
    files = live.files.select(["chunk", "schema", "row_groups"]).filter(pa.array(kept & with_filters(live.files, column)))
    if not len(files):
        return
    chunks, row_groups = (one_chunk(files[name]) for name in ("chunk", "row_groups"))
    schemas = one_chunk(files["schema"]).dictionary_encode()
    kinds = [live.by_schema[id_].field(column).type for id_ in schemas.dictionary.to_pylist()]
    hashes = {kind: hashes_of(values, kind) for kind in kinds}
    of_file = np.array([list(hashes).index(kind) for kind in kinds])[np.asarray(schemas.indices)]
    where = _about(live.table, column, chunks)
    for batch in snapshot.scan(STATISTICS, columns=["chunk", "bloom_filters"], where=where).to_batches():
        at = pc.index_in(batch["chunk"], value_set=chunks)
        is_meant = pc.and_(at.is_valid(), batch["bloom_filters"].is_valid())
        rows, at = pa.Table.from_batches([batch]).filter(is_meant), at.filter(is_meant)
        for number, hashed in enumerate(hashes.values()):
            some = pa.array(np.flatnonzero(of_file[np.asarray(at)] == number))
            if len(some):
                yield groups_without(rows.take(some), row_groups.take(at.take(some)), hashed)


def _has_any_left(live: Live, groups: pa.Table) -> Mask:
    """For each file whether it has a row group that is none of these."""
    if not len(groups):
        return np.ones(len(live.files), dtype=bool)
    out = groups.group_by("chunk").aggregate([("row_group", "count_distinct")])
    at = pc.index_in(one_chunk(live.files["chunk"]), value_set=one_chunk(out["chunk"]))
    has_none = pc.greater_equal(one_chunk(out["row_group_count_distinct"]).take(at), one_chunk(live.files["row_groups"]))
    return ~np.asarray(pc.fill_null(has_none, False))


@dataclass(frozen=True)
class Plan:
    """What a read opens of a table, of which ``total`` files count."""

    asked: DataAsked
    parts: Sequence[FilePart] = field(repr=False)
    total: int
    row_groups: int
    skipped: int = 0

    def tasks(self, most_rows: int) -> list[FilesTask]:
        """The files in tasks of at most about so many rows; those whose rows have to be compared are in one."""
        merged = [parts for parts in self._by_partition if len(parts) > 1] if self.asked.key_columns else []
        together = {part.path for parts in merged for part in parts}
        alone = (part for part in self.parts if part.path not in together)
        return [
            *(FilesTask(self.asked, parts, is_merged=True) for parts in merged),
            *_packed(self.asked, _divided(alone, most_rows), most_rows),
        ]

    @property
    def alone(self) -> list[FilePart]:
        """The files all of whose rows count, whatever others hold."""
        if not self.asked.key_columns:
            return [part for part in self.parts if part.is_whole]
        return [parts[0] for parts in self._by_partition if len(parts) == 1 and parts[0].is_whole]

    @cached_property
    def _by_partition(self) -> list[tuple[FilePart, ...]]:
        found: dict[str, list[FilePart]] = {}
        for part in self.parts:
            found.setdefault(part.partition, []).append(part)
        return list(map(tuple, found.values()))

    @cached_property
    def read_groups(self) -> int:
        """How many row groups are read."""
        return sum(len(part.groups) for part in self.parts)


def plan(snapshot: Snapshot, live: Live, columns: Sequence[str] | None, where: Mapping[str, Any], on: OnConflict) -> Plan:
    """The plan of a read; ``InvalidOption`` for a column that no file has, ``SchemaConflict`` and ``KeyConflict`` for files that differ."""
    shape, table, snapshot = live.merged(on), live.table, as_declared(snapshot)
    schema = chosen(f"{BEGINS}{table}", available_of(shape.schema), shape.schema.names if columns is None else columns)
    test = RowTest(f"{BEGINS}{table}", where, available_of(shape.schema))  # once: what counts from now is kept as it was
    asked = DataAsked(table, schema, tuple(test.where.items()), shape.schema, live.key_columns, live.conditions, live.by_schema)
    found = pruned(snapshot, live, asked.test, shape.schema, asked.key_columns or None)
    is_shown = np.asarray(pc.invert(pc.is_in(live.files["schema"], value_set=pa.array(list(shape.skipped), pa.string()))))
    kept = np.flatnonzero(found.kept & is_shown & live.is_left)
    return Plan(
        asked,
        list(parts_of(live, kept, found)),
        int(live.is_left.sum()),
        int(pc.sum(live.counting["row_groups"], min_count=0).as_py()),
        int((live.is_left & ~is_shown).sum()),
    )


def available_of(columns: pa.Schema) -> pa.Schema:
    """What can be asked for of a table with these columns."""
    return pa.schema([*columns, *(pa.field(*each) for each in REQUESTED.items())])


def may_have(snapshot: Snapshot, live: Live, conditions: Sequence[Comparison], columns: pa.Schema) -> pa.Table:
    """The files that may have rows that meet every condition, as far as statistics tell."""
    snapshot = as_declared(snapshot)
    kept = np.ones(len(live.files), dtype=bool)
    for each in conditions:
        test = each.test(live.table, columns)
        if not each.is_negative:
            kept &= pruned(snapshot, live, test, columns, None).kept
    return live.files.filter(pa.array(kept & live.is_left))


def parts_of(live: Live, kept: np.ndarray[Any, Any], found: Pruned | None = None) -> Iterator[FilePart]:
    """What is read of the files at these positions."""
    files = live.files.take(pa.array(kept))
    without, deleted = by_file(live.without), _deleted(live)
    groups = found.groups_of(files["chunk"].to_pylist()) if found is not None and len(found.groups) else {}
    named = files.select(list(_OF_PART)).rename_columns(list(_OF_PART.values()))
    for at, said in zip(kept.tolist(), named.to_pylist(), strict=True):
        part = FilePart(**said, without=without.get(at, ()), deleted=deleted.get(at, ()))
        out = groups.get(part.chunk)
        if out is None:
            yield part
        elif left := tuple(number for number in range(part.of_groups) if number not in out):
            yield replace(part, row_groups=left)


def _deleted(live: Live) -> dict[int, tuple[tuple[int, tuple[str, ...] | None], ...]]:
    """By file the predicates that it has rows of."""
    sizes = np.bincount(np.asarray(live.claims["file"]), minlength=len(live.files))
    found: dict[int, list[tuple[int, tuple[str, ...] | None]]] = {}
    for position, each in enumerate(live.predicates):
        if each.is_removal:
            continue
        for at, chunks in by_file(live.concerned_by(each)).items():
            found.setdefault(at, []).append((position, None if len(chunks) == sizes[at] else chunks))
    return {at: tuple(each) for at, each in found.items()}


def _divided(parts: Iterable[FilePart], most_rows: int) -> Iterator[FilePart]:
    """The parts, those of more rows cut between row groups."""
    for part in parts:
        groups = part.groups
        pieces = min(len(groups), -(-part.rows_read // most_rows))
        if pieces < 2:
            yield part
            continue
        ends = [len(groups) * piece // pieces for piece in range(pieces + 1)]
        yield from (replace(part, row_groups=groups[start:stop]) for start, stop in pairwise(ends))


def _packed(asked: DataAsked, parts: Iterable[FilePart], most_rows: int) -> Iterator[FilesTask]:
    waiting: list[FilePart] = []
    rows = 0
    for part in parts:
        if waiting and rows + part.rows_read > most_rows:
            yield FilesTask(asked, tuple(waiting))
            waiting, rows = [], 0
        waiting.append(part)
        rows += part.rows_read
    if waiting:
        yield FilesTask(asked, tuple(waiting))
