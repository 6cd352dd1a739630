"""Several catalogs as one DataFrame: rows of each, read natively where they can be, with whose they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import pyspark_bucketcatalog as bcs
from bucketcatalog import Catalog, DatabaseNotFound, IncompatibleTable, InvalidOption, InvalidVersion, UnknownTable, prefix

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


def put(place: Path, table: str, *rows: dict[str, Any], database: str = "default") -> None:
    with Catalog(place).writer("app", database=database) as writer, writer.transaction() as tx:
        tx.put(table, list(rows))


def declared(place: Path, table: str, *rows: dict[str, Any], **columns: pa.DataType) -> None:
    Catalog(place).create_table(table, pa.schema([("id", pa.string()), *columns.items()]), key=["id"])
    put(place, table, *rows)


def test_a_data_table_of_one_alone_is_read_with_its_options(spark: SparkSession, places: list[Path]) -> None:
    Catalog(places[1]).data("cpu", writer="w").append(pa.table({"host": ["a"]}))
    assert bcs.read(spark, places, table="data.cpu", onSchemaConflict="error").count() == 1


def test_catalogs_with_names_are_told_apart_by_them(spark: SparkSession, places: list[Path]) -> None:
    named = {"north": places[0], "south": places[1]}
    both: Any = Catalog(named)
    version = both.snapshot().version
    frame = bcs.read(
        spark, named, columns=["name", "_catalog"], storage_options={"north": {}, "south": None}, versionAsOf=version
    )
    assert sorted(map(tuple, frame.where("name = 'a'").collect())) == [("a", "north"), ("a", "south")]


@pytest.mark.parametrize("as_text", [True, False])
def test_a_condition_on_catalogs_is_as_in_python(spark: SparkSession, places: list[Path], as_text: bool) -> None:
    south = str(places[1])
    text = json.dumps({"_catalog": south, "name": {"prefix": "d"}})
    where: Any = text if as_text else {"_catalog": [south], "name": prefix("d")}
    assert [tuple(row) for row in bcs.read(spark, places, columns=["name", "_catalog"], where=where).collect()] == [("d", south)]
    for wrong in (None, "elsewhere"):
        with pytest.raises(InvalidOption, match="None of the catalogs"):
            bcs.read(spark, places, where={"_catalog": wrong})


def test_columns_that_nobody_asks_for_need_not_go_together(spark: SparkSession, places: list[Path]) -> None:
    declared(places[0], "app.rows", {"id": "a", "n": 1}, n=pa.int32())
    declared(places[1], "app.rows", {"id": "b", "n": "x"}, n=pa.string())
    assert bcs.read(spark, places, table="app.rows", columns=["id"]).count() == 2
    for columns, message in (
        (["id", "id"], "asked for twice"),
        ("id,id", "asked for twice"),
        ([], "No column"),
        (5, "list of names"),
    ):
        with pytest.raises(InvalidOption, match=message):
            bcs.read(spark, places, table="app.rows", columns=columns)


def test_a_condition_on_a_column_that_one_lacks_takes_it_for_null_there(spark: SparkSession, places: list[Path]) -> None:
    declared(places[0], "app.rows", {"id": "a"}, other=pa.string())
    declared(places[1], "app.rows", {"id": "b", "n": 5}, {"id": "c"}, n=pa.int64())

    def found(**where: Any) -> list[str]:
        return sorted(row[0] for row in bcs.read(spark, places, table="app.rows", columns=["id"], where=where).collect())

    assert found(n=5) == ["b"] and found(n=None) == ["a", "c"] and found(n=[5, None]) == ["a", "b", "c"]
    assert found(n=5, other="x") == []
    with pytest.raises(InvalidOption, match="no column 'none' to filter by in any"):
        found(none=None)
    with pytest.raises(InvalidOption, match="not a condition"):
        bcs.read(spark, places, where=["a"])


def test_structs_with_other_fields_are_one_as_in_python(spark: SparkSession, places: list[Path]) -> None:
    kinds = [pa.struct([("a", pa.int32()), ("x", pa.string())]), pa.struct([("b", pa.bool_()), ("a", pa.int64())])]
    values = [[{"a": 1, "x": "x"}, None], [{"b": True, "a": 1 << 40}]]
    for place, kind, of in zip(places, kinds, values, strict=True):
        rows = pa.table(
            {
                "one": pa.array(of, kind),
                "many": pa.array([[v] for v in of], pa.list_(kind)),
                "by": pa.array([[("k", v)] for v in of], pa.map_(pa.string(), kind)),
            }
        )
        Catalog(place).data("cpu", writer="w").append(rows)
    both: Any = Catalog(places)
    wanted = both.data("cpu").scan().to_arrow().to_pylist()
    found = [row.asDict(recursive=True) for row in bcs.read(spark, places, table="data.cpu").collect()]
    assert sorted(map(str, found)) == sorted(str({**row, "by": dict(row["by"])}) for row in wanted)
    assert bcs.read(spark, places, table="data.cpu").select("one.a").groupBy().sum("a").collect()[0][0] == (1 << 40) + 1


def test_a_column_that_is_called_as_what_tells_catalogs_apart_is_refused(spark: SparkSession, places: list[Path]) -> None:
    Catalog(places[1]).data("cpu", writer="w").append(pa.table({"_catalog": ["mine"]}))
    with pytest.raises(IncompatibleTable, match="has a column '_catalog' of its own"):
        bcs.read(spark, places, table="data.cpu")


def test_without_a_database_it_is_the_only_one_of_all(spark: SparkSession, tmp_path: Path) -> None:
    places = [tmp_path / "one", tmp_path / "two"]
    for place, database in zip(places, ("photos", "films"), strict=True):
        put(place, "objects", obj("a"), database=database)
    both: Any = Catalog(places)
    for read in (both.snapshot, lambda: bcs.read(spark, places)):
        with pytest.raises(DatabaseNotFound, match="several databases: films, photos"):
            read()
    with pytest.raises(DatabaseNotFound, match="two"):
        bcs.read(spark, places, "photos")


def test_names_of_options_are_known_in_any_case(spark: SparkSession, places: list[Path]) -> None:
    both: Any = Catalog(places)
    version = both.snapshot().version
    put(places[1], "objects", obj("e"))
    options: dict[str, Any] = {"versionasof": version, "Columns": ["name", "_catalog"], "WHERE": {"_catalog": str(places[1])}}
    assert sorted(row[0] for row in bcs.read(spark, places, **options).collect()) == ["a", "d"]
    assert bcs.read(spark, places[1], Columns=["name"], WHERE={"name": ["a", "e"]}).count() == 2


def test_what_changed_is_told_of_each_between_versions_of_all(spark: SparkSession, places: list[Path]) -> None:
    both: Any = Catalog(places)
    version = both.snapshot().version
    put(places[1], "buckets", {"owner": obj("a")["owner"], "name": "b"})
    rows = bcs.read(
        spark, places, table="buckets", readChangeFeed=True, startingVersion=version, columns=["name", "_catalog"]
    ).collect()
    assert [tuple(row) for row in rows] == [("b", str(places[1]))]


def test_what_names_no_catalog_or_options_is_refused(spark: SparkSession, places: list[Path]) -> None:
    given: Any = [str(place) for place in places]
    for place, options, message in (
        ((each for each in given), None, "names no catalog"),
        ([[given[0]], given[1]], None, "is not one catalog"),
        (given, 5, "cannot be a int"),
        (given[0], [{}], "cannot be a list"),
        (given[0], 5, "cannot be a int"),
        (Catalog(given[0]).store, None, "no path and no url"),
        ([Catalog(given[0]).store, given[1]], None, "no path and no url"),
    ):
        with pytest.raises(InvalidOption, match=message) as told:
            bcs.read(spark, place, storage_options=options)
        assert told.value.next_step
