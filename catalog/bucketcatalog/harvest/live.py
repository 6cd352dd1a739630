"""What the catalog has of a bucket: the live rows of a table, with their versions, in the order of a source's names."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from ..model.arrays import one_chunk
from ..model.facts import Facts
from ..model.tables import Column, Table
from ..query.snapshot import Snapshot
from ..state.overlay import Part
from ..state.read import read_slice
from .compare import Side
from .mapping import OBJECTS, Bucket, keys_of, names_of
from .scope import Scope

SLICE_ROWS = 16_384


def live_sides(
    snapshot: Snapshot, bucket: Bucket, scope: Scope, *, table: Table = OBJECTS, all_columns: bool = False
) -> Iterator[Side]:
    """The bucket's live rows that are in scope, with their versions as ``uuid`` and ``sequence``.

    Only names and ids are read, unless ``all_columns`` are wanted: these come by their names, in storage form.
    """
    base = snapshot.base(table.name)
    needed = {*(column.field_name for column in table.key_columns), table.by_name["id"].field_name, "_kind", "_txn", "_seq"}
    for piece in base.plan([keys_of(bucket, table)], only_live=True, target=SLICE_ROWS):
        facts = read_slice(base.blocks, base.table, piece, Part.LIVE, None if all_columns else frozenset(needed))
        mask = scope.mask(_column(facts, table.by_name["name"])) if len(facts) else None
        if mask is not None:
            facts = facts.filter(mask)
        if len(facts):
            yield _live_side(facts, table, all_columns=all_columns)


def _live_side(facts: Facts, table: Table, *, all_columns: bool) -> Side:
    columns = {c.name: _column(facts, c) for c in (table.columns if all_columns else (*table.key_columns, table.by_name["id"]))}
    version = {"uuid": facts.uuids.take(facts.column("_txn")), "sequence": facts.column("_seq")}
    rows = pa.record_batch({**columns, **version} if all_columns else version)
    return Side(names_of(table, columns), columns["id"], rows)


def _column(facts: Facts, column: Column) -> pa.Array:
    known = column.field_name in facts.rows.column_names
    return one_chunk(facts.rows.column(column.field_name)) if known else pa.nulls(len(facts), column.storage_type)
