"""The questions as temporary views beside those of the tables, each the analysed query over the frames of these."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from bucketcatalog import InvalidOption
from bucketcatalog.questions.sql import READS, VIEWS

from .reading.relation import Relation
from .types import quoted

_MARK = "bucketcatalog.question"
"""In the metadata of a view's first column: its own name, by which it is known when it is replaced."""


def refuse_taken(spark: SparkSession, tables: Iterable[str], prefix: str) -> None:
    """``InvalidOption`` where a question's view would be called as one of ``tables``, or as a view or table that is none of ours."""
    shown = {view.casefold() for view in tables}
    for each in VIEWS:
        view = f"{prefix}{each.name}"
        if view.casefold() in shown or (spark.catalog.tableExists(quoted(view)) and not _is_ours(spark, view)):
            raise InvalidOption(
                f"There is something called {view!r} already, as the question {each.name!r} would be shown.",
                next_step="Give another view_prefix, or leave questions out.",
            )


def show(
    spark: SparkSession, relation: Relation, frames: Mapping[str, DataFrame], frame: Callable[[Relation], DataFrame], prefix: str
) -> list[str]:
    """Show each question whose tables there are ``frames`` of; returns what the views are called."""
    there = {*frames, *(name for name, (table, _) in READS.items() if table in frames)}
    asked = [each for each in VIEWS if there.issuperset(each.of)]
    reads = {name for each in asked for name in each.of if name in READS}
    read = {
        name: frame(relation.of_table(table).of_columns(list(columns)))
        for name, (table, columns) in READS.items()
        if name in reads
    }
    for each in asked:
        named: dict[str, Any] = {name: read[name] if name in read else frames[name] for name in each.of}
        rows = spark.sql(each.sql, **named)
        view = f"{prefix}{each.name}"
        rows.withMetadata(rows.columns[0], {_MARK: view}).createOrReplaceTempView(quoted(view))
    return [f"{prefix}{each.name}" for each in asked]


def _is_ours(spark: SparkSession, view: str) -> bool:
    fields = spark.table(quoted(view)).schema.fields
    return bool(fields) and (fields[0].metadata or {}).get(_MARK) == view
