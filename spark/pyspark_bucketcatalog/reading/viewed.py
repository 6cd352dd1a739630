"""The columns of a view in Spark, made of those of its table: under other names, or computed by Python where a query needs them.

So a view is read as its table is, natively where that is. What its system computes are Arrow kernels, which Spark calls with what it has
read: it knows which columns they need, and calls none whose column nobody asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it
from pyspark.sql.pandas.functions import arrow_udf

from bucketcatalog.query.views import Computed, Projection

from ..types import arrow_schema, conformed, quoted, spark_schema
from .relation import Joined

_arrow_udf: Callable[..., Callable[..., Column]] = arrow_udf  # whose stubs know no types but those of one value


_OF = "__of"
"""What stands in a table that is looked up by: no column of a table is called so."""


def joined(rows: DataFrame, made: Joined) -> DataFrame:
    """The rows with what is looked up of them."""
    for table in made.tables:
        key, *others = table.column_names
        columns = spark_schema(table.schema)
        other = rows.sparkSession.createDataFrame(conformed(table, arrow_schema(columns)), columns).toDF(_OF, *others)
        rows = rows.join(F.broadcast(other), F.col(quoted(key)) == F.col(_OF), "left")
    return rows.select(*(F.col(quoted(name)) for name in made.schema.names))


def projected(rows: DataFrame, schema: pa.Schema, projection: Projection) -> DataFrame:
    """The rows of a view that checks none, given those of its table, whose columns the package has as in ``schema``."""
    numbered = {name: f"c{at}" for at, name in enumerate(schema.names)}  # names may differ in case alone
    every = rows.toDF(*numbered.values())
    return every.select(*(_column(name, schema, projection, numbered).alias(name) for name in projection.schema.names))


def _column(name: str, schema: pa.Schema, projection: Projection, numbered: Mapping[str, str]) -> Column:
    needed = projection.view.needs(name)
    columns = [F.col(numbered[each]) for each in needed]
    if not isinstance(projection.view.columns.get(name), Computed):
        return columns[0]
    kinds = [schema.field(each).type for each in needed]
    made = spark_schema(pa.schema([projection.schema.field(name)]))
    wanted = arrow_schema(made).field(name).type

    def compute(*given: pa.Array) -> pa.Array:
        values = projection.column(name, [each.cast(kind) for each, kind in zip(given, kinds, strict=True)])
        return values.cast(wanted)

    return _arrow_udf(compute, made[name].dataType)(*columns)
