"""Columns between Arrow, as the engine shows them, and Spark.

The Spark schema is defined from the engine's once, and the Arrow schema of what is handed to Spark from that by Spark's own rules, since
Spark compares the two exactly. What Spark has no type for is widened: unsigned 32 bits to a long, unsigned 64 bits to decimal(20,0).
"""

from __future__ import annotations

from inspect import signature
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from bucketcatalog import InvalidOption

_WIDER = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.uint64(): pa.decimal128(20, 0)}
# PySpark 4.3 asks for a time zone where 4.1 and 4.2 asked whether it is UTC.
_IN_UTC: dict[str, Any] = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {"timestamp_utc": True}


def spark_schema(schema: pa.Schema) -> StructType:
    """The columns as Spark knows them."""
    return from_arrow_schema(
        pa.schema([pa.field(f.name, _widened(f.type), f.nullable) for f in schema]), prefer_timestamp_ntz=True
    )


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema that Spark expects of batches with these columns."""
    return to_arrow_schema(schema, **_IN_UTC)


def check_columns(wanted: StructType, available: pa.Schema, table: str) -> None:
    """``InvalidOption`` where the user's schema names a column that the table has not, or not of that type."""
    known = {field.name: field for field in spark_schema(available).fields}
    for field in wanted.fields:
        have = known.get(field.name)
        if have is None:
            raise InvalidOption(
                f"Table {table!r} has no column {field.name!r}, which the schema asks for.",
                next_step=f"Its columns are {', '.join(known)}. A table of CREATE TABLE keeps those of then: drop it and create it again.",
            )
        if have.dataType.simpleString() != field.dataType.simpleString():
            raise InvalidOption(
                f"Column {field.name!r} of table {table!r} is {have.dataType.simpleString()}, not {field.dataType.simpleString()}.",
                next_step="Ask for it as it is, and cast it in the query.",
            )
        if have.nullable and not field.nullable:
            raise InvalidOption(
                f"Column {field.name!r} of table {table!r} can be null.", next_step="Ask for it without NOT NULL."
            )


def conformed(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """``rows`` with exactly this schema, which names columns that they have."""
    columns = []
    for field in schema:
        values = rows.column(field.name)
        if not values.type.equals(field.type):
            is_finer = (
                pa.types.is_timestamp(values.type) and values.type.unit == "ns"
            )  # Spark has no moments finer than microseconds
            values = values.cast(field.type, safe=not is_finer)
        # Spark makes no column of nothing at all, which a cast of no rows is.
        columns.append(values if values.num_chunks else pa.chunked_array([pa.nulls(0, field.type)]))
    return pa.Table.from_arrays(columns, schema=schema)


def quoted(name: str) -> str:
    """A name as SQL has it."""
    return f"`{name.replace('`', '``')}`"


def _widened(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_map(kind):
        return pa.map_(_widened(kind.key_type), _widened(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(_widened(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _widened(field.type), field.nullable) for field in kind])
    return _WIDER.get(kind, kind)
