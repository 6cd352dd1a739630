"""Columns of entries beside columns that the catalog has of the same versions: which differ, and what is left as it is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..model.arrays import same_values


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
    found = np.zeros(len(entries), dtype=bool)
    for name in columns:
        mine, theirs = entries.column(name), known.column(name)
        found |= ~same_values(mine, theirs if pa.types.is_nested(mine.type) else theirs.cast(mine.type))
    return pa.array(found)
