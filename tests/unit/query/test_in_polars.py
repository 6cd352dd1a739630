"""A read as a LazyFrame shows the rows of a scan, and Polars itself reads the files where it can."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from polars import col

from bucketcatalog import Catalog, UsageError, between
from bucketcatalog.query import files, in_polars
from bucketcatalog.query.in_polars import native_frame
from bucketcatalog.state.untouched import BaseFile
from bucketcatalog.store import LocalStore, MemoryStore

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


def rows(frame: Any) -> pa.Table:
    found: pa.Table = frame.collect().to_arrow()
    return found


def reads_files(frame: Any) -> bool:
    """Whether Polars reads Parquet for it."""
    return "Parquet SCAN" in frame.explain()


@pytest.mark.parametrize("table", [TABLE, f"deleted_{TABLE}"])
@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_merged_rows_and_tombstones_are_those_of_a_scan(merged: Catalog, table: str, engine: Any) -> None:
    frame = scan(merged, table).to_polars()

    assert reads_files(frame) and same(frame.collect(engine=engine).to_arrow(), scan(merged, table))


@pytest.mark.parametrize("table", [TABLE, f"deleted_{TABLE}"])
@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_rows_that_something_lies_over_are_left_out_and_shown_beside(changed: Catalog, table: str, engine: Any) -> None:
    frame = scan(changed, table).to_polars()

    assert reads_files(frame) and same(frame.collect(engine=engine).to_arrow(), scan(changed, table))
    stamps = scan(changed, table, columns=["_version", "_commit_timestamp", "_writer", "_revision"])
    assert same(rows(stamps.to_polars()), stamps)


@pytest.mark.parametrize("where", CONDITIONS, ids=lambda where: str(where)[:60])
def test_conditions_are_those_of_a_scan(changed: Catalog, where: Mapping[str, Any]) -> None:
    for table in (TABLE, f"deleted_{TABLE}"):
        read = scan(changed, table, columns=["k", "plain", "at"], where=where)
        frame = read.to_polars()
        assert same(rows(frame), read)
        assert reads_files(frame) or not read.to_arrow().num_rows


def test_a_view_is_read_as_its_table_is_unless_it_computes(changed: Catalog) -> None:
    for where in ({}, {"text": "p"}, {"again": ["a", "B"], "_revision": between(0, 1)}):
        read = viewed(changed, NAMED_OTHERWISE, **where)
        frame = read.to_polars()
        assert reads_files(frame) and len(read.to_arrow()) and same(rows(frame), read)
    for read in (viewed(changed, COMPUTED), viewed(changed, COMPUTED, length=1)):
        frame = read.to_polars()
        assert not reads_files(frame) and len(read.to_arrow()) and same(rows(frame), read)


def test_when_versions_ended_is_a_condition(changed: Catalog) -> None:
    times = sorted(set(scan(changed, f"deleted_{TABLE}").to_arrow()["deleted_at"].to_pylist()))
    assert len(times) > 1
    for condition in (times[0], between(times[0], times[-1], inclusive="right")):
        read = scan(changed, f"deleted_{TABLE}", where={"deleted_at": condition})
        assert read.to_arrow().num_rows > 0 and same(rows(read.to_polars()), read)


@pytest.mark.parametrize("change", CHANGES)
def test_files_of_an_older_definition_are_shown_by_the_newer_one(tmp_path: Path, change: str) -> None:
    read = scan(redeclared(tmp_path / "lake", change))
    frame = read.to_polars()

    assert reads_files(frame) and same(rows(frame), read)


def test_columns_that_are_constant_have_a_value_for_each_row(tmp_path: Path) -> None:
    read = scan(redeclared(tmp_path / "lake", "declared later, without presence"), columns=["zero", "first"])

    assert same(rows(read.to_polars()), read) and read.to_arrow().num_rows > 300
    assert read.to_polars().select("first").collect().height == read.to_arrow().num_rows


def test_files_whose_columns_are_made_otherwise_or_that_are_many_are_read_beside_each_other(
    changed: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = scan(changed)
    monkeypatch.setattr(in_polars, "_MOST_ROWS", 250)
    assert same(rows(read.to_polars()), read)
    monkeypatch.setattr(BaseFile, "may_be_null", lambda file, column: file.rows == 120)
    assert len(files.alike(read.files().native)) == 2
    assert same(rows(read.to_polars()), read)


@pytest.mark.parametrize("name", ODD)
def test_a_directory_may_be_called_anything(tmp_path: Path, name: str) -> None:
    read = scan(in_engines.changed(tmp_path / name))
    decoys(tmp_path / name)
    frame = read.to_polars()

    assert reads_files(frame) and same(rows(frame), read)


def test_a_directory_whose_name_is_no_text_is_read_too(tmp_path: Path) -> None:
    read = scan(in_engines.merged(f"{tmp_path}/\udcff"))

    assert same(rows(read.to_polars()), read)


def test_only_the_columns_that_a_query_needs_are_read(tmp_path: Path) -> None:
    frame = in_engines.scan(in_engines.wide(LocalStore(tmp_path))).to_polars()

    plan = frame.filter(col("k") == 321).select("text").explain()
    assert "PROJECT 2/" in plan and 'SELECTION: col("k") == 321' in plan
    for file in tmp_path.rglob("*.parquet"):
        texts = {name: at for at, name in enumerate(polars.read_parquet_schema(file))}["text"]
        damage(file, texts)
    assert frame.select(col("number").sum(), polars.len()).collect().rows() == [(sum(k % 7 for k in range(500)), 500)]
    with pytest.raises(polars.exceptions.ComputeError):
        frame.select("text").collect()


def damage(file: Path, column: int) -> None:
    """A Parquet file of which a column can no longer be read."""
    metadata = pq.read_metadata(file)
    data = bytearray(file.read_bytes())
    for group in range(metadata.num_row_groups):
        chunk = metadata.row_group(group).column(column)
        start = chunk.dictionary_page_offset or chunk.data_page_offset
        data[start : start + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    file.write_bytes(data)


@pytest.mark.parametrize("at_hand", [8 << 20, 0])
def test_a_frame_may_be_collected_as_often_as_one_likes(changed: Catalog, at_hand: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "AT_HAND_BYTES", at_hand)
    read = scan(changed)
    frame, expected = read.to_polars(), read.to_arrow()

    for _ in range(2):
        assert same(rows(frame), read)
        assert sorted(frame.filter(col("k").is_in([1, 2, 3])).select("k").collect()["k"]) == [1, 2, 3]
        assert frame.head(3).collect().height == 3 == frame.filter(col("k") > 20).head(3).collect().height
        assert frame.head(40).filter(col("k") == 10**6).collect().height == 0
        assert frame.sort("k", descending=True).head(2).select("k").collect()["k"].to_list() == [1_000, 359]
    assert frame.join(frame.select("k"), on="k").select(polars.len()).collect().item() == expected.num_rows


def test_what_this_package_reads_it_reads_with_the_columns_that_a_query_needs(
    changed: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "AT_HAND_BYTES", 0)
    read, asked = scan(changed), asked_columns(monkeypatch)
    frame = native_frame(files.Files(read.schema, (), read, why="for this test"), read, changed.store)

    assert frame.filter("flag").select("k").sort("k").collect()["k"].to_list() == [
        row["k"] for row in read.to_arrow().to_pylist() if row["flag"]
    ]
    assert asked == [["flag", "k"]]


def test_a_frame_shows_its_cut_whatever_is_committed_meanwhile(tmp_path: Path) -> None:
    frame = scan(in_engines.changed(tmp_path / "lake"), columns=["k"]).to_polars()
    put(Catalog(tmp_path / "lake"), [{"k": 7_000}])

    assert 7_000 not in rows(frame)["k"].to_pylist() and 7_000 in scan(Catalog(tmp_path / "lake")).to_arrow()["k"].to_pylist()


def test_a_table_without_rows_is_a_frame_without_rows(tmp_path: Path) -> None:
    for read in (
        scan(in_engines.without_rows(tmp_path / "lake")),
        scan(in_engines.merged(tmp_path / "other"), where={"k": between(5_000)}),
    ):
        assert same(rows(read.to_polars()), read) and read.to_polars().collect().height == 0


def test_a_file_that_is_gone_is_an_error_and_never_fewer_rows(tmp_path: Path) -> None:
    frame = scan(in_engines.merged(tmp_path / "lake")).to_polars()
    assert frame.collect().height == 320
    for file in (tmp_path / "lake").rglob("*.parquet"):
        file.unlink()

    with pytest.raises(FileNotFoundError):
        frame.collect()


def test_columns_may_be_called_anything(tmp_path: Path) -> None:
    fields = "int64 k = 1; optional int64 row = 2; optional string a = 3; optional string A = 4; optional Nothing nothing = 5;"
    put(
        Catalog(tmp_path / "lake"),
        [{"k": 1, "row": 7, "a": "x", "A": "y", "nothing": {}}, {"k": 2}],
        fields,
        "message Nothing {}",
    )
    merge(Catalog(tmp_path / "lake"))
    put(Catalog(tmp_path / "lake"), [{"k": 3}], fields, "message Nothing {}")
    read = scan(Catalog(tmp_path / "lake"))

    assert read.to_polars().select("k", "a", "A").sort("k").collect().rows() == [(1, "x", "y"), (2, None, None), (3, None, None)]
    assert read.to_polars().collect_schema().names() == read.schema.names


def test_of_a_store_in_memory_this_package_reads_all(tmp_path: Path) -> None:
    store = MemoryStore()
    in_engines.changed(store)
    read = scan(Catalog(store))
    frame = read.to_polars()

    assert not reads_files(frame) and same(rows(frame), read)


def test_whatever_is_read_can_be_shown(changed: Catalog) -> None:
    snapshot = changed.snapshot()
    changes = changed.changes(table=TABLE)

    assert same(rows(changes.to_polars()), changes)
    for read in (snapshot.scan("log"), snapshot.scan("segments"), scan(changed, where={"k": [1, 2]})):
        assert same(rows(read.to_polars()), read)


def test_where_it_is_not_installed_it_says_so(merged: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    without("polars", monkeypatch)
    with pytest.raises(UsageError, match=r"cannot be given to polars, which is not installed here. Next: pip install polars"):
        scan(merged).to_polars()
