"""Tables of one's own from the schema of a DataFrame: ``Catalog.create_table``, with Spark's types."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from bucketcatalog import Catalog, IncompatibleTable, InvalidOption
from bucketcatalog.catalog import DEFAULT_DATABASE
from bucketcatalog.write.declaring import CreatedTable

from .types import arrow_schema, spark_schema

_AS_OTHER = {"variant": "Make it a string of JSON, such as with to_json."}
"""Types that Arrow carries as something else, and what to do instead."""


def create_table(
    catalog: str | os.PathLike[str],
    name: str,
    schema: DataFrame | StructType,
    *,
    key: Iterable[str],
    database: str = DEFAULT_DATABASE,
    storage_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> CreatedTable:
    """Make a table with the columns of a DataFrame, or change it to them, so that rows can be written to it and read from it at once.

    ``options`` are those of ``Catalog.create_table``. Every column but those of the key may hold nulls, as in tables that Spark makes.
    A column that the table has and that Spark shows so stays what it is. ``IncompatibleTable`` names the column of a type that no table
    has.
    """
    columns = schema if isinstance(schema, StructType) else getattr(schema, "schema", None)
    if not isinstance(columns, StructType):
        raise InvalidOption(f"{schema!r:.200} is no schema of Spark's.", next_step="Give a DataFrame, or its schema.")
    opened = Catalog(catalog, storage_options=storage_options)
    known = opened.database(database).look().definitions.get(name)
    shown = {} if known is None else {field.name: field for field in known.surface_schema}
    asked = [_as_arrow(field, name, shown) for field in columns.fields]
    return opened.create_table(name, pa.schema(asked), key=key, database=database, **options)


def _as_arrow(field: StructField, table: str, shown: Mapping[str, pa.Field]) -> pa.Field:
    """A column as Arrow has it: of the type that the table shows, where Spark shows that as this."""
    known = shown.get(field.name)
    if known is not None and spark_schema(pa.schema([known])).fields[0].dataType.simpleString() == field.dataType.simpleString():
        return known
    step = _AS_OTHER.get(field.dataType.typeName(), "Cast it to a type that Arrow has, such as a string.")
    try:
        found = arrow_schema(StructType([field])).field(0)
    except PySparkException:
        found = None
    if found is None or field.dataType.typeName() in _AS_OTHER:
        raise IncompatibleTable(
            f"Column {field.name!r} for table {table!r} is of the type {field.dataType.simpleString()}, which no column has.",
            next_step=step,
        )
    return pa.field(field.name, _nullable(found.type))


def _nullable(kind: pa.DataType) -> pa.DataType:
    """A type of which everything within may be null: Spark says of whatever it has computed whether it is."""
    if pa.types.is_list(kind):
        return pa.list_(_nullable(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _nullable(kind.item_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _nullable(field.type)) for field in kind])
    return kind
