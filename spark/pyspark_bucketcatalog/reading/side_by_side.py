"""DataFrames of several catalogs read as one: the frame of each, one below the other."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial, reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from bucketcatalog import Catalog, InvalidOption, UnknownTable, clock
from bucketcatalog.federation import Federation, Given, each_given
from bucketcatalog.query.members import CATALOG, Met, met, of_catalogs, telling_of, versions_of, without_rows
from bucketcatalog.query.side_by_side import shown_of
from bucketcatalog.query.snapshot import asked_for
from bucketcatalog.where.conditions import Where
from bucketcatalog.where.given import Predicate

from ..options import folded, given_options, settled_options
from ..types import spark_schema
from ..where import where_of, where_text
from .frames import Natively, frame_of
from .relation import Relation, open_relation

Places = Sequence[str | os.PathLike[str]] | Mapping[str, str | os.PathLike[str]]
Storage = Sequence[Mapping[str, Any] | None] | Mapping[str, Any] | None
_OF_EACH = ("versionAsOf", "startingVersion", "endingVersion")
"""Options that name a version of each."""


def frame_of_each(
    spark: SparkSession,
    places: Places,
    database: str | None,
    storage_options: Storage,
    options: Mapping[str, Any],
    natively: Natively,
) -> DataFrame:
    """The rows of a table of all catalogs that have it; errors as of ``bucketcatalog.query.side_by_side``."""
    now = clock.now_us()  # in all of them what counts from now counts from one
    rest = folded(settled_options(options, now))
    columns, where = rest.pop("columns", None), rest.pop("where", None)
    asked, conditions = asked_for(
        [name.strip() for name in columns.split(",")] if isinstance(columns, str) else columns,
        where_of(where) if isinstance(where, str) else where,
    )
    federation: Any = Catalog(places, storage_options=storage_options)
    assert isinstance(federation, Federation)
    held, chosen = of_catalogs(conditions, federation.names)
    predicate = held.at(now) if isinstance(held, Predicate) else None  # who lacks a column that it is about refuses it
    conditions = {} if isinstance(held, Predicate) else held
    found, unknown = dict[str, Met[Relation]](), list[UnknownTable]()
    for name, given in _given(federation, each_given(places, storage_options), rest.pop("database", database), rest):
        if name in chosen:
            try:
                with telling_of(name):
                    found[name] = met(
                        conditions, partial(_opened, given, now, predicate), lambda relation: relation.available.names
                    )
            except UnknownTable as error:
                unknown.append(error)
    if not found:
        raise unknown[0]
    return _united(spark, found, conditions, asked, natively)


def _given(
    federation: Federation, each_of: Sequence[Given], database: str | None, options: Mapping[str, Any]
) -> Iterator[tuple[str, dict[str, str]]]:
    """The options of a read of each, by its name, but for columns and conditions."""
    past_damage = str(options.get("ignoreCorruption", "")).strip().lower() == "true"
    database = federation.resolve_database(database, ignore_corruption=past_damage)
    versions = {option: versions_of(options.get(option), federation.names) for option in _OF_EACH}
    of_all = {option: value for option, value in options.items() if option not in _OF_EACH}
    for name, each in zip(federation.names, each_of, strict=True):
        if not isinstance(each.place, (str, os.PathLike)):
            raise InvalidOption(f"{each.place!r} is no path and no url.", next_step="Give what Spark's processes can open too.")
        own = {option: version for option, of in versions.items() if (version := of[name]) is not None}
        yield name, given_options(each.place, database, each.options, of_all | own)


def _opened(given: Mapping[str, str], now: int, predicate: Predicate | None, where: Where) -> Relation:
    return open_relation({**given, "where": where_text(where)} if where else given, now, predicate)


def _united(
    spark: SparkSession,
    found: Mapping[str, Met[Relation]],
    conditions: Where,
    asked: Sequence[str] | None,
    natively: Natively,
) -> DataFrame:
    """The frames of all, one below the other."""
    relations = {name: each.made for name, each in found.items()}
    table = next(iter(relations.values())).options.table
    empty = without_rows(table, conditions, found)
    shown = shown_of(
        table,
        {name: relation.shown for name, relation in relations.items()},
        {name: relation.available for name, relation in relations.items()},
        asked,
    )
    frames = [_frame(spark, name, relation, shown, natively) for name, relation in relations.items() if name not in empty]
    return reduce(DataFrame.union, frames) if frames else spark.createDataFrame([], spark_schema(shown))


def _frame(spark: SparkSession, catalog: str, relation: Relation, schema: pa.Schema, natively: Natively) -> DataFrame:
    """The rows of one catalog with the columns of all."""
    has = relation.available.names
    some = [name for name in schema.names if name in has] or has[:1]
    rows = frame_of(spark, relation.of_columns(some), natively)
    kinds = [field.dataType for field in rows.schema.fields]
    numbered = rows.toDF(*(f"c{at}" for at in range(len(some))))  # names may differ in case alone

    def column(field: StructField) -> Column:
        if field.name == CATALOG:
            return F.lit(catalog)
        at = some.index(field.name) if field.name in has else None
        return F.lit(None).cast(field.dataType) if at is None else _as(F.col(f"c{at}"), kinds[at], field.dataType)

    return numbered.select(*(column(field).alias(field.name) for field in spark_schema(schema).fields))


def _as(value: Column, kind: DataType, wanted: DataType) -> Column:
    """A value as a type that its own was widened to. Spark casts no struct to one with other fields, so these are made field by field."""
    if kind.simpleString() == wanted.simpleString():
        return value
    if isinstance(kind, StructType) and isinstance(wanted, StructType):
        known = {field.name: field.dataType for field in kind.fields}
        fields = [
            (_as(value.getField(field.name), known[field.name], field.dataType) if field.name in known else F.lit(None))
            .cast(field.dataType)
            .alias(field.name)
            for field in wanted.fields
        ]
        return F.when(value.isNotNull(), F.struct(*fields))
    if isinstance(kind, ArrayType) and isinstance(wanted, ArrayType):
        return F.transform(value, lambda item: _as(item, kind.elementType, wanted.elementType))
    if isinstance(kind, MapType) and isinstance(wanted, MapType):
        return F.transform_values(value, lambda _, item: _as(item, kind.valueType, wanted.valueType))
    return value.cast(wanted)
