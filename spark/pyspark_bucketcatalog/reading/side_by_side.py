"""DataFrames of several catalogs read as one: the frame of each, one below the other."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it

from bucketcatalog import Catalog, UnknownTable
from bucketcatalog.federation import Federation
from bucketcatalog.query.side_by_side import CATALOG, chosen, telling_of, together, versions_of

from ..options import given_options
from ..types import quoted, spark_schema
from .frames import Natively, frame_of
from .relation import Relation, open_relation

Storage = Sequence[Mapping[str, Any] | None] | Mapping[str, Any] | None


def frame_of_each(
    spark: SparkSession,
    paths: Sequence[str | os.PathLike[str]],
    database: str | None,
    storage_options: Storage,
    options: Mapping[str, Any],
    natively: Natively,
) -> DataFrame:
    """The rows of a table of all catalogs that have it; errors as of ``bucketcatalog.query.side_by_side``."""
    asked = options.get("columns")
    columns = [name.strip() for name in asked.split(",")] if isinstance(asked, str) else asked
    found, unknown = dict[str, Relation](), list[UnknownTable]()
    for url, given in _given(paths, database, storage_options, options):
        try:
            with telling_of(url):
                found[url] = open_relation(given)
        except UnknownTable as error:
            unknown.append(error)
    if not found:
        raise unknown[0]
    shown = _shown(found, columns)
    return reduce(DataFrame.union, (_frame(spark, url, relation, shown, natively) for url, relation in found.items()))


def _given(
    paths: Sequence[str | os.PathLike[str]], database: str | None, storage_options: Storage, options: Mapping[str, Any]
) -> Iterator[tuple[str, dict[str, str]]]:
    """The options of a read of each, by its url, but for the columns."""
    opened: Any = Catalog(list(paths), storage_options=storage_options)
    assert isinstance(opened, Federation)
    urls = [member.url for member in opened.members]
    versions = versions_of(options.get("versionAsOf"), urls)
    each = [storage_options] * len(urls) if isinstance(storage_options, Mapping | None) else storage_options
    of_all = {name: value for name, value in options.items() if name not in ("columns", "versionAsOf")}
    for url, path, storage in zip(urls, paths, each, strict=True):
        version = {} if versions[url] is None else {"versionAsOf": versions[url]}
        yield url, given_options(path, database, storage, of_all | version)


def _shown(found: Mapping[str, Relation], columns: Sequence[str] | None) -> pa.Schema:
    """The columns that are shown of all."""
    name = next(iter(found.values())).options.table
    if columns is None:
        return together(name, {url: relation.shown for url, relation in found.items()})
    return chosen(name, together(name, {url: relation.available for url, relation in found.items()}), columns)


def _frame(spark: SparkSession, url: str, relation: Relation, schema: pa.Schema, natively: Natively) -> DataFrame:
    """The rows of one catalog with the columns of all."""
    has = relation.available.names
    some = [name for name in schema.names if name in has] or has[:1]
    rows = frame_of(spark, relation.of_columns(some), natively)
    kinds = {field.name: field.dataType for field in spark_schema(schema).fields}

    def column(name: str) -> Column:
        if name == CATALOG:
            return F.lit(url).alias(name)
        value = F.col(quoted(name)) if name in has else F.lit(None)
        return value.cast(kinds[name]).alias(name)

    return rows.select(*map(column, schema.names))
