"""Rows as people see them as Parquet holds them: a message without fields has a child there, as it has in segments."""

from __future__ import annotations

from functools import partial

import pyarrow as pa

from ..model.arrays import convert_list, convert_map, convert_struct
from .columns import NOTHING


def exported_schema(schema: pa.Schema) -> pa.Schema:
    """The schema of rows that have this one, as Parquet can have it."""
    return pa.schema([field.with_type(_type(field.type)) for field in schema])


def exported_rows(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The rows in the schema that ``exported_schema`` has made of theirs."""
    columns = [_values(values, kind) for values, kind in zip(rows.columns, schema.types, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_map(kind):
        return pa.map_(_type(kind.key_type), _type(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(_type(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_type(field.type)) for field in kind] or [NOTHING])
    return kind


def _values(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if values.type == kind:
        return values
    if pa.types.is_map(kind):
        return convert_map(values, partial(_values, kind=kind.key_type), partial(_values, kind=kind.item_type))
    if pa.types.is_list(kind):
        return convert_list(values, partial(_values, kind=kind.value_type))
    children = [_values(values.field(at), field.type) for at, field in enumerate(kind)] if values.type.num_fields else []
    return convert_struct(values, list(kind), children or [pa.nulls(len(values), NOTHING.type)])
