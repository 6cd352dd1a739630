"""A read as a DuckDB relation shows the rows of a scan, and DuckDB itself reads the files where it can."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from bucketcatalog import Catalog, InvalidOption, UsageError, between
from bucketcatalog.query import files
from bucketcatalog.query.in_duckdb import native_relation
from bucketcatalog.query.views import Computed, View
from bucketcatalog.state.untouched import BaseFile
from bucketcatalog.store import LocalStore, MemoryStore
from bucketcatalog.store.elsewhere import as_files, path_of
from bucketcatalog.store.faults import Counting

from ...kit import in_engines
from ...kit.in_engines import (
    CHANGES,
    COMPUTED,
    CONDITIONS,
    NAMED_OTHERWISE,
    ODD,
    TABLE,
    asked_columns,
    decoys,
    merge,
    put,
    redeclared,
    same,
    scan,
    viewed,
    without,
)


@pytest.fixture
def connection() -> Any:
    with duckdb.connect() as opened:
        yield opened


def rows(relation: Any) -> pa.Table:
    return relation.to_arrow_table()


def reads_files(relation: Any) -> bool:
    """Whether DuckDB reads Parquet for it."""
    return "PARQUET_SCAN" in relation.explain()


@pytest.mark.parametrize("table", [TABLE, f"deleted_{TABLE}"])
def test_merged_rows_and_tombstones_are_those_of_a_scan(merged: Catalog, connection: Any, table: str) -> None:
    relation = scan(merged, table).to_duckdb(connection)

    assert reads_files(relation) and same(rows(relation), scan(merged, table))


@pytest.mark.parametrize("table", [TABLE, f"deleted_{TABLE}"])
def test_rows_that_something_lies_over_are_left_out_and_shown_beside(changed: Catalog, connection: Any, table: str) -> None:
    relation = scan(changed, table).to_duckdb(connection)

    assert reads_files(relation) and same(rows(relation), scan(changed, table))
    stamps = scan(changed, table, columns=["_version", "_commit_timestamp", "_writer", "_revision"])
    assert same(rows(stamps.to_duckdb(connection)), stamps)


@pytest.mark.parametrize("where", CONDITIONS, ids=lambda where: str(where)[:60])
def test_conditions_are_those_of_a_scan(changed: Catalog, connection: Any, where: Mapping[str, Any]) -> None:
    connection.execute("SET default_collation = 'nocase'; SET TimeZone = 'America/New_York'; SET binary_as_string = true")
    for table in (TABLE, f"deleted_{TABLE}"):
        read = scan(changed, table, columns=["k", "plain", "at"], where=where)
        relation = read.to_duckdb(connection)
        assert same(rows(relation), read)
        assert reads_files(relation) or not read.to_arrow().num_rows, "DuckDB sees of some conditions that no row meets them"


def test_a_view_is_read_as_its_table_is_unless_it_computes(changed: Catalog, connection: Any) -> None:
    for where in ({}, {"text": "p"}, {"again": ["a", "B"], "_revision": between(0, 1)}):
        read = viewed(changed, NAMED_OTHERWISE, **where)
        relation = read.to_duckdb(connection)
        assert reads_files(relation) and len(read.to_arrow()) and same(rows(relation), read)
    for read in (viewed(changed, COMPUTED), viewed(changed, COMPUTED, length=1)):
        relation = read.to_duckdb(connection)
        assert not reads_files(relation) and len(read.to_arrow()) and same(rows(relation), read)


def test_a_view_of_columns_that_differ_in_case_alone_is_refused(changed: Catalog, connection: Any) -> None:
    for column in ("text", Computed(pa.string(), ("text",), pc.utf8_upper)):
        with pytest.raises(InvalidOption, match="DuckDB does not tell the columns 'text' and 'Text' apart"):
            viewed(changed, View("alike", TABLE, {"text": "plain", "Text": column})).to_duckdb(connection)


def test_a_connection_that_is_closed_shows_nothing(changed: Catalog) -> None:
    closed = duckdb.connect()
    closed.close()
    with pytest.raises(InvalidOption, match="DuckDB shows nothing on this connection"):
        scan(changed).to_duckdb(closed)


def test_when_versions_ended_is_a_condition(changed: Catalog, connection: Any) -> None:
    times = sorted(set(scan(changed, f"deleted_{TABLE}").to_arrow()["deleted_at"].to_pylist()))
    assert len(times) > 1
    for condition in (times[0], between(times[0], times[-1], inclusive="right")):
        read = scan(changed, f"deleted_{TABLE}", where={"deleted_at": condition})
        assert read.to_arrow().num_rows > 0 and same(rows(read.to_duckdb(connection)), read)


@pytest.mark.parametrize("change", CHANGES)
def test_files_of_an_older_definition_are_shown_by_the_newer_one(tmp_path: Path, connection: Any, change: str) -> None:
    read = scan(redeclared(tmp_path / "lake", change))
    relation = read.to_duckdb(connection)

    assert reads_files(relation) and same(rows(relation), read)


def test_columns_that_are_constant_have_a_value_for_each_row(tmp_path: Path, connection: Any) -> None:
    read = scan(redeclared(tmp_path / "lake", "declared later, without presence"), columns=["zero", "first"])

    assert same(rows(read.to_duckdb(connection)), read) and read.to_arrow().num_rows > 300


def test_files_whose_columns_are_made_otherwise_are_read_beside_each_other(
    changed: Catalog, connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BaseFile, "may_be_null", lambda file, column: file.rows == 120)
    read = scan(changed)
    assert len(files.alike(read.files().native)) == 2

    assert same(rows(read.to_duckdb(connection)), read)


@pytest.mark.parametrize("name", ODD)
def test_a_directory_may_be_called_anything(tmp_path: Path, connection: Any, name: str) -> None:
    read = scan(in_engines.changed(tmp_path / name))
    decoys(tmp_path / name)
    relation = read.to_duckdb(connection)

    assert reads_files(relation) and same(rows(relation), read)


def test_a_directory_whose_name_is_no_text_is_read_too(tmp_path: Path, connection: Any) -> None:
    read = scan(in_engines.merged(f"{tmp_path}/\udcff"))

    assert same(rows(read.to_duckdb(connection)), read)


def test_only_the_columns_and_row_groups_that_a_query_needs_are_read(tmp_path: Path, connection: Any) -> None:
    store = Counting(LocalStore(tmp_path))
    relation = in_engines.scan(in_engines.wide(store)).to_duckdb(connection)

    def read_for(query: Any, expected: int) -> int:
        store.reset()
        assert len(query.fetchall()) == expected
        return store.bytes_read

    everything = read_for(relation, 500)
    assert read_for(relation.project("number"), 500) < everything / 5
    assert read_for(relation.filter("k = 321").project("text"), 1) < everything / 5
    assert "Projections: number" in relation.aggregate("sum(number)").explain()


@pytest.mark.parametrize("at_hand", [8 << 20, 0])
def test_a_relation_may_be_asked_as_often_as_one_likes(
    changed: Catalog, connection: Any, at_hand: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "AT_HAND_BYTES", at_hand)
    read = scan(changed)
    relation = read.to_duckdb(connection)
    expected = read.to_arrow()

    for _ in range(2):
        assert same(rows(relation), read)
        assert sorted(relation.filter("k IN (1, 2, 3)").project("k").fetchall()) == [(1,), (2,), (3,)]
        assert len(relation.limit(3).fetchall()) == 3
    both = relation.project("k, text").set_alias("one").join(relation.project("k").set_alias("other"), "one.k = other.k")
    assert both.aggregate("count(*)").fetchall() == [(expected.num_rows,)]
    assert connection.sql("SELECT count(*) FROM relation WHERE ratio > 1e300").fetchall() == [
        (sum(value is not None and not value <= 1e300 for value in expected["ratio"].to_pylist()),)
    ]


def test_what_this_package_reads_it_reads_with_the_columns_that_a_query_needs(
    changed: Catalog, connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "AT_HAND_BYTES", 0)
    read, asked = scan(changed), asked_columns(monkeypatch)
    relation = native_relation(connection, files.Files(read.schema, (), read, why="for this test"), read, changed.store)

    assert relation.filter("flag").project("k").order("k").fetchall() == [
        (row["k"],) for row in read.to_arrow().to_pylist() if row["flag"]
    ]
    assert asked == [["flag", "k"]]


def test_a_relation_outlives_what_it_was_made_of(tmp_path: Path, connection: Any) -> None:
    relation = scan(in_engines.changed(tmp_path / "lake"), columns=["k"]).to_duckdb(connection)
    put(Catalog(tmp_path / "lake"), [{"k": 7_000}])

    assert 7_000 not in rows(relation)["k"].to_pylist() and 7_000 in scan(Catalog(tmp_path / "lake")).to_arrow()["k"].to_pylist()


def test_a_table_without_rows_is_a_relation_without_rows(tmp_path: Path, connection: Any) -> None:
    for read in (
        scan(in_engines.without_rows(tmp_path / "lake")),
        scan(in_engines.merged(tmp_path / "other"), where={"k": between(5_000)}),
    ):
        relation = read.to_duckdb(connection)
        assert relation.columns == read.schema.names and relation.fetchall() == []


def test_a_file_that_is_gone_is_an_error_and_never_fewer_rows(tmp_path: Path, connection: Any) -> None:
    relation = scan(in_engines.merged(tmp_path / "lake")).to_duckdb(connection)
    assert len(relation.fetchall()) == 320
    for file in (tmp_path / "lake").rglob("*.parquet"):
        file.unlink()

    with pytest.raises(duckdb.Error, match="No files found"):
        relation.fetchall()


@pytest.mark.parametrize("column", ["file_row_number", "file_index", "File_Row_Number", "filename"])
def test_a_column_may_be_called_as_duckdb_calls_one_of_its_own(tmp_path: Path, connection: Any, column: str) -> None:
    put(Catalog(tmp_path / "lake"), [{"k": k, column: 3 - k} for k in range(300)], f"int64 k = 1; optional int64 {column} = 2;")
    merge(Catalog(tmp_path / "lake"))
    assert reads_files(scan(Catalog(tmp_path / "lake")).to_duckdb(connection))
    put(Catalog(tmp_path / "lake"), [{"k": 1}], f"int64 k = 1; optional int64 {column} = 2;")

    read = scan(Catalog(tmp_path / "lake"))
    assert read.files().native and same(rows(read.to_duckdb(connection)), read)
    assert reads_files(read.to_duckdb(connection)) is (column == "filename")


def test_columns_that_differ_in_case_alone_cannot_be_shown_together(tmp_path: Path, connection: Any) -> None:
    put(Catalog(tmp_path / "lake"), [{"k": 1, "a": "x", "A": "y"}], "int64 k = 1; optional string a = 2; optional string A = 3;")
    catalog = Catalog(tmp_path / "lake")

    with pytest.raises(InvalidOption, match=r"DuckDB does not tell the columns 'a' and 'A' apart. Next: Ask for one of them"):
        scan(catalog).to_duckdb(connection)
    assert scan(catalog, columns=["A"]).to_duckdb(connection).fetchall() == [("y",)]


def test_a_message_without_fields_is_shown(tmp_path: Path, connection: Any) -> None:
    fields = "int64 k = 1; optional Nothing nothing = 2;"
    put(Catalog(tmp_path / "lake"), [{"k": 1, "nothing": {}}, {"k": 2}], fields, "message Nothing {}")
    read = scan(Catalog(tmp_path / "lake"))

    assert same(rows(read.to_duckdb(connection)), read)


def test_a_file_that_many_threads_read_through_the_store_at_once_is_read_as_it_is(
    tmp_path: Path, connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, numbers = "many.parquet", pa.table({f"c{n}": np.random.default_rng(n).permutation(200_000) for n in range(8)})
    pq.write_table(numbers, tmp_path / name, row_group_size=10_000)
    shared, path = as_files(LocalStore(tmp_path), "shared"), path_of("shared", name, (tmp_path / name).stat().st_size)
    connection.register_filesystem(shared)
    kind = type(shared.open(path))
    seek = kind.seek

    def interrupted(file: Any, *where: int) -> int:
        at: int = seek(file, *where)
        time.sleep(0)  # another thread's turn, which may come anywhere
        return at

    monkeypatch.setattr(kind, "seek", interrupted)

    for _ in range(5):
        assert rows(connection.read_parquet([path])) == numbers


def test_a_store_in_memory_is_read_through_it(connection: Any) -> None:
    store = MemoryStore()
    in_engines.changed(store)
    read = scan(Catalog(store))
    relation = read.to_duckdb(connection)

    assert reads_files(relation) and same(rows(relation), read)
    assert reads_files(scan(Catalog(store)).to_duckdb(connection)) and len(connection.list_filesystems()) == 1
    (protocol,) = connection.list_filesystems()
    (file, *_others) = read.files().native
    before = [info.name for info in store.list("")]
    for refused, error in (
        (f"COPY (SELECT 1) TO '{protocol}://1/a.parquet'", "can only be read"),
        (f"SELECT * FROM '{protocol}://{file.size}/{file.name}x.parquet'", "There is no object"),
    ):
        with pytest.raises(duckdb.Error, match=error):
            connection.execute(refused)
    assert [info.name for info in store.list("")] == before


def test_where_a_connection_reads_no_files_this_package_does(merged: Catalog) -> None:
    with duckdb.connect(config={"enable_external_access": "false"}) as connection:
        relation = scan(merged).to_duckdb(connection)
        assert not reads_files(relation) and same(rows(relation), scan(merged))


def test_whatever_is_read_can_be_shown(changed: Catalog, connection: Any) -> None:
    snapshot = changed.snapshot()
    changes = changed.changes(table=TABLE)

    assert same(rows(changes.to_duckdb(connection)), changes)
    for read in (snapshot.scan("log"), snapshot.scan("segments"), scan(changed, where={"k": [1, 2]})):
        assert same(rows(read.to_duckdb(connection)), read)


def test_where_it_is_not_installed_or_given_something_else_it_says_so(merged: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidOption, match=r"'str' is no connection of DuckDB's. Next: Give one, such as duckdb.connect\(\)"):
        scan(merged).to_duckdb("lake.db")
    without("duckdb", monkeypatch)
    with pytest.raises(UsageError, match=r"cannot be given to duckdb, which is not installed here. Next: pip install duckdb"):
        scan(merged).to_duckdb(None)
