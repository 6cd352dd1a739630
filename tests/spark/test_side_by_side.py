"""Several catalogs as one DataFrame: rows of each, read natively where they can be, with whose they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import pyspark_bucketcatalog as bcs
from bucketcatalog import Catalog, IncompatibleTable, InvalidOption, InvalidVersion, UnknownTable

from ..kit.world import obj


@pytest.fixture
def places(tmp_path: Path) -> list[Path]:
    """Two catalogs, one with rows in a checkpoint and over it, one with rows in its log."""
    found = [tmp_path / "north", tmp_path / "south"]
    with Catalog(found[0]).writer("compactor-1") as writer:
        for names in (["a", "b"], ["c"]):
            with writer.transaction() as tx:
                tx.put("objects", [obj(name, content_length=1) for name in names])
            if "a" in names:
                writer.checkpoint(scope="all")
    with Catalog(found[1]).writer("w") as writer, writer.transaction() as tx:
        tx.put("objects", [obj("a", content_length=10), obj("d", content_length=10)])
    return found


def test_rows_of_each_are_there_with_whose_they_are(spark: SparkSession, places: list[Path]) -> None:
    frame = bcs.read(spark, places, columns=["name", "content_length", "_catalog"])
    north, south = map(str, places)
    assert sorted(map(tuple, frame.collect())) == [
        ("a", 1, north),
        ("a", 10, south),
        ("b", 1, north),
        ("c", 1, north),
        ("d", 10, south),
    ]
    assert frame.groupBy("_catalog").sum("content_length").count() == 2
    assert bcs.read(spark, places).where("name = 'a'").count() == 2 and "_catalog" not in bcs.read(spark, places).columns
    assert [row[0] for row in bcs.read(spark, places, columns="_catalog").distinct().sort("_catalog").collect()] == [north, south]


def test_a_version_of_all_reads_the_same_again(spark: SparkSession, places: list[Path]) -> None:
    both: Any = Catalog(places)
    version = both.snapshot().version
    with Catalog(places[1]).writer("w") as writer, writer.transaction() as tx:
        tx.put("objects", obj("e"))
    assert bcs.read(spark, places, versionAsOf=version).count() == 5 and bcs.read(spark, places).count() == 6
    with pytest.raises(InvalidVersion):
        bcs.read(spark, places, versionAsOf="w@0")


def test_columns_that_one_lacks_are_null_and_types_are_widened(spark: SparkSession, places: list[Path]) -> None:
    shapes = [[("id", pa.string()), ("n", pa.int32()), ("x", pa.string())], [("id", pa.string()), ("n", pa.int64())]]
    for place, shape, row in zip(places, shapes, [{"id": "1", "n": 1, "x": "x"}, {"id": "2", "n": 1 << 40}], strict=True):
        Catalog(place).create_table("app.rows", pa.schema(shape), key=["id"])
        opened = Catalog(place)
        with opened.writer("app") as writer, writer.transaction() as tx:
            tx.put("app.rows", [row])
    frame = bcs.read(spark, places, table="app.rows")
    assert frame.dtypes == [("id", "string"), ("n", "bigint"), ("x", "string")]
    assert sorted(map(tuple, frame.collect())) == [("1", 1, "x"), ("2", 1 << 40, None)]
    Catalog(places[1]).create_table("app.other", pa.schema([("id", pa.int64())]), key=["id"])
    Catalog(places[0]).create_table("app.other", pa.schema([("id", pa.string())]), key=["id"])
    with pytest.raises(IncompatibleTable, match="north"):
        bcs.read(spark, places, table="app.other")


def test_data_tables_of_each_are_read(spark: SparkSession, places: list[Path]) -> None:
    for number, place in enumerate(places):
        Catalog(place).data("cpu", writer="w").append(pa.table({"host": ["a", "b"], "v": [number, number + 10]}))
    assert bcs.read(spark, places, table="data.cpu").groupBy().sum("v").collect()[0][0] == 22


def test_what_none_has_is_refused(spark: SparkSession, places: list[Path]) -> None:
    with pytest.raises(UnknownTable):
        bcs.read(spark, places, table="none.such")
    with pytest.raises(InvalidOption, match="no column 'none'"):
        bcs.read(spark, places, columns=["none"])
    with pytest.raises(InvalidOption, match="twice"):
        bcs.read(spark, [places[0], places[0]])
