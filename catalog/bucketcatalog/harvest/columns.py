"""Columns of entries beside columns that the catalog has of the same versions: which differ, and what is left as it is."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc


def with_unsaid(entries: pa.RecordBatch, known: pa.RecordBatch, columns: Sequence[str]) -> pa.RecordBatch:
    """The entries, with what is known where they leave one of the columns unset."""
    for name in columns:
        values = entries.column(name)
        if values.null_count:
            filled = pc.coalesce(values, known.column(name).cast(values.type))
            entries = entries.set_column(entries.schema.get_field_index(name), name, filled)
    return entries


def differing(entries: pa.RecordBatch, known: pa.RecordBatch, columns: Sequence[str]) -> pa.Array:
    """Which rows differ in one of the columns."""
    found = pa.repeat(pa.scalar(False), len(entries))
    for name in columns:
        found = pc.or_(found, _differ(entries.column(name), known.column(name)))
    return found


def _differ(mine: pa.Array, theirs: pa.Array) -> pa.Array:
    if pa.types.is_nested(mine.type):
        return pa.array([one != other for one, other in zip(mine.to_pylist(), theirs.to_pylist(), strict=True)], pa.bool_())
    return pc.coalesce(pc.not_equal(mine, theirs.cast(mine.type)), pc.xor(mine.is_null(), theirs.is_null()))
