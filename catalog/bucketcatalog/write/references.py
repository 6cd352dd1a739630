"""Data references: where a version's data lies, as bytes that are equal where the data is the same.

Tables share a *space* of references where they declare the same columns, by name and type, in the same order: then equal references name
the same data, in whichever of these tables they stand. A reference with an unset column names no data.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from ..model.arrays import one_chunk
from ..model.facts import Facts
from ..model.keys import encode_array, encode_keys
from ..model.tables import Column, DataType, Table

Space: TypeAlias = tuple[tuple[str, DataType], ...]
"""The columns of a data reference, in order."""


def space_of(table: Table) -> Space:
    """The space of the table's references, empty where its rows have no data."""
    return tuple((name, table.by_name[name].type) for name in table.data_reference)


def by_space(tables: Iterable[Table]) -> dict[Space, list[Table]]:
    """The tables of each space; those without data are together."""
    found: dict[Space, list[Table]] = {}
    for table in tables:
        found.setdefault(space_of(table), []).append(table)
    return found


def references(facts: Facts, table: Table) -> pa.Array:
    """The data reference of each row as bytes, null where a column of it is unset or the table has none."""
    columns = [table.by_name[name] for name in table.data_reference]
    if not columns:
        return pa.nulls(len(facts), pa.binary())
    stored = {column.field_name: stored_column(facts, column) for column in columns}
    valid = one_chunk(pa.chunked_array([pa.repeat(pa.scalar(True), len(facts))]))
    for values in stored.values():
        valid = pc.and_(valid, values.is_valid()) if values.null_count else valid
    shape = replace(table, key=table.data_reference)
    if pc.all(valid, min_count=0).as_py():
        return one_chunk(encode_keys(shape, stored))
    encoded = one_chunk(encode_keys(shape, {name: values.filter(valid) for name, values in stored.items()}))
    position = pc.subtract(pc.cumulative_sum(valid.cast(pa.int64())), 1)
    return encoded.take(pc.if_else(valid, position, pa.scalar(None, pa.int64())))


def ids(facts: Facts, column: Column) -> pa.Array:
    """The values of an id's column as bytes, null where it is unset: ids of parents and of their children compare as these."""
    values = stored_column(facts, column)
    if not values.null_count:
        return one_chunk(encode_array(column, values, last=True))
    valid = values.is_valid()
    encoded = one_chunk(encode_array(column, values.filter(valid), last=True))
    position = pc.subtract(pc.cumulative_sum(valid.cast(pa.int64())), 1)
    return encoded.take(pc.if_else(valid, position, pa.scalar(None, pa.int64())))


def stored_column(facts: Facts, column: Column) -> pa.Array:
    """A row column as it is stored, null where the facts have it not."""
    known = column.field_name in facts.rows.column_names
    return one_chunk(facts.rows.column(column.field_name)) if known else pa.nulls(len(facts), column.storage_type)
