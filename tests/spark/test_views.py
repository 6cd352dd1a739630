"""Views natively: their rows as their table's files have them, under their names, and what their system computes where it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it

import pyspark_bucketcatalog as bcs
from bucketcatalog import Catalog, InvalidOption, between, prefix
from bucketcatalog.query.views import Computed, View, ViewScan
from bucketcatalog.where.conditions import Where
from pyspark_bucketcatalog.reading.native import native_frame
from pyspark_bucketcatalog.reading.relation import TableRelation

from ..kit.in_engines import CONDITIONS, FIELDS, TABLE, changed, merge, merged, put, scan
from .sample import plan, rows


def upper(text: pa.Array) -> pa.Array:
    """A kernel of one column."""
    return pc.utf8_upper(text)


def longer(large: pa.Array, at: pa.Array, counts: pa.Array) -> pa.Array:
    """A kernel of columns that Spark knows under other types; it looks at these."""
    assert (large.type, at.type, counts.type) == (pa.uint64(), pa.timestamp("us", "UTC"), pa.map_(pa.string(), pa.int64()))
    return pc.if_else(pc.is_valid(at), large, pa.scalar(None, pa.uint64()))


def wrong(text: pa.Array) -> pa.Array:
    """No kernel of any use."""
    raise ValueError(f"of {len(text)} texts")


VIEW = View(
    "shown",
    TABLE,
    {
        "text": "plain",
        "plain": "text",
        "again": "text",
        "loud": Computed(pa.string(), ("text",), upper),
        "more": Computed(pa.uint64(), ("large", "at", "counts"), longer),
        "number": "number",
    },
    {"k": between(0, 300), "ratio": between(-1.5)},
)


def shown(patch: pytest.MonkeyPatch, view: View) -> None:
    """Have Spark read a view where it is asked for the table, as an installed system would."""

    def read(relation: TableRelation, columns: Sequence[str] | None, where: Where) -> ViewScan:
        return ViewScan(view, relation.snapshot, columns, where, system="odd")

    patch.setattr(TableRelation, "_read", read)


@pytest.mark.once
def test_whatever_a_view_asks_of_rows_spark_asks_of_files(spark: SparkSession, tmp_path: Path) -> None:
    catalog = merged(tmp_path / "lake")
    frames, expected = list[DataFrame](), list[tuple[int, int]]()
    for number, where in enumerate(CONDITIONS):
        read = scan(catalog, columns=["k"], where=where)
        files = read.files()
        assert files.why is None and not files.touched
        expected += [(number, k) for k in read.to_arrow().column("k").to_pylist()]
        if files.native:
            frames.append(native_frame(spark, files.native, str(tmp_path / "lake")).select(F.lit(number).alias("number"), "k"))

    assert sorted(map(tuple, reduce(DataFrame.union, frames).collect())) == sorted(expected)


@pytest.mark.parametrize("is_changed", [False, True])
def test_a_view_is_read_as_its_table_is(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_changed: bool
) -> None:
    catalog = (changed if is_changed else merged)(tmp_path / "lake")
    expected = ViewScan(VIEW, catalog.snapshot(), None, {}, system="odd").to_arrow()
    shown(monkeypatch, VIEW)
    frame = bcs.read(spark, tmp_path / "lake", table=TABLE, native=True)

    assert frame.columns == expected.schema.names and len(expected) > 50
    assert rows(frame.withColumn("more", F.col("more").cast("string"))) == rows(_as_text(expected, "more"))
    assert "FileScan parquet" in plan(frame) and "ArrowEvalPython" in plan(frame)
    assert rows(frame.select("plain", "number").where("plain > 'a'")) == rows(
        expected.select(["plain", "number"]).filter(pc.field("plain") > "a")
    )
    assert "Python" not in plan(frame.select("plain", "number").where("plain > 'a'"))
    assert frame.where("loud = 'A'").count() == expected.filter(pc.field("loud") == "A").num_rows > 0


def test_what_a_view_computes_wrongly_is_its_systems_error_where_it_is_asked_for(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = merged(tmp_path / "lake")
    shown(monkeypatch, View("shown", TABLE, {"key": "k", "bad": Computed(pa.string(), ("text",), wrong)}))
    frame = bcs.read(spark, tmp_path / "lake", table=TABLE, native=True)

    assert frame.count() == scan(catalog).to_arrow().num_rows == frame.select("key").distinct().count()
    with pytest.raises(
        PySparkException, match="The system 'odd' failed at the column 'bad' of its view 'shown': ValueError: of "
    ):
        frame.collect()


def as_number(text: pa.Array) -> pa.Array:
    """A kernel that not every text is for."""
    return text.cast(pa.int64())


@pytest.mark.once
def test_nothing_that_a_query_asks_is_asked_of_rows_that_are_left_out(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = Catalog(tmp_path / "lake")
    put(catalog, [{"k": k, "text": "no number" if k % 50 == 7 else str(k)} for k in range(400)])
    merge(catalog)
    put(catalog, [{"k": k, "text": str(k)} for k in range(7, 400, 50)], writer="node-2")
    frame = bcs.read(spark, tmp_path / "lake", table=TABLE, native=True)

    assert "FileScan parquet" in plan(frame) and "Subquery" in plan(frame)
    assert frame.where("cast(text AS bigint) >= 100").count() == 300
    assert frame.selectExpr("cast(text AS bigint) AS number").where("number >= 100").agg({"number": "sum"}).first()[0] == sum(
        range(100, 400)
    )
    shown(monkeypatch, View("shown", TABLE, {"key": "k", "number": Computed(pa.int64(), ("text",), as_number)}))
    viewed = bcs.read(spark, tmp_path / "lake", table=TABLE, native=True)
    assert "FileScan parquet" in plan(viewed)
    assert viewed.where("number >= 100 AND key < 300").count() == 200
    assert viewed.where("number >= 100").agg({"number": "sum", "key": "max"}).first() == (sum(range(100, 400)), 399)


def test_columns_that_differ_in_case_alone_are_told_apart(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = merged(tmp_path / "lake")
    put(catalog, [{"k": 1, "Text": "later"}], FIELDS.replace("string plain = 3;", "string plain = 3; string Text = 50;"))
    view = View("shown", TABLE, {"one": "text", "two": "Text"})
    expected = ViewScan(view, Catalog(tmp_path / "lake").snapshot(), None, {}, system="odd").to_arrow()
    shown(monkeypatch, view)

    assert rows(bcs.read(spark, tmp_path / "lake", table=TABLE, native=True)) == rows(expected)


def test_a_condition_that_only_rows_can_be_checked_by_is_no_native_one(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = merged(tmp_path / "lake")
    view = View("shown", TABLE, {"key": "k", "words": "text"}, {"text": prefix("a")})

    def read(relation: TableRelation, columns: Sequence[str] | None, where: Where) -> ViewScan:
        return ViewScan(view, relation.snapshot, columns, {"words": "a"}, system="odd")

    monkeypatch.setattr(TableRelation, "_read", read)
    expected = ViewScan(view, catalog.snapshot(), None, {"words": "a"}, system="odd").to_arrow()

    assert rows(bcs.read(spark, tmp_path / "lake", table=TABLE)) == rows(expected)
    monkeypatch.setattr("pyspark_bucketcatalog.reading.frames.LOCAL_ROWS", 0)
    assert rows(bcs.read(spark, tmp_path / "lake", table=TABLE)) == rows(expected)
    with pytest.raises(
        InvalidOption, match=r"cannot be read natively: it is a view, and its rows lie in the files of 'my\.rows'"
    ):
        bcs.read(spark, tmp_path / "lake", table=TABLE, native=True)


def _as_text(table: pa.Table, name: str) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), name, table.column(name).cast(pa.string()))
