"""What a frame makes of rows is taken back as the same rows: pandas, Polars, DuckDB, and streams of any of them."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from bucketcatalog import InvalidRows

from ...kit.world import OWNER, World, bucket, obj


def as_lists(rows: pa.Table) -> pl.LazyFrame:
    """The rows as Polars has them that knows no maps."""
    kinds = {
        field.name: pa.struct({"key": field.type.key_type, "value": field.type.item_type})
        for field in rows.schema
        if pa.types.is_map(field.type)
    }
    for name, kind in kinds.items():
        rows = rows.set_column(rows.column_names.index(name), name, rows[name].cast(pa.list_(kind)))
    found = pl.from_arrow(rows)
    assert isinstance(found, pl.DataFrame) and all(found.schema[name] == pl.List(pl.Struct) for name in kinds)
    return found.lazy()


FRAMES: dict[str, Callable[[Any], Any]] = {
    "pandas": lambda scan: scan.to_pandas(),
    "pandas, some rows in another order": lambda scan: scan.to_pandas().sort_values("name", ascending=False),
    "pandas of Arrow": lambda scan: scan.to_arrow().to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda scan: pl.from_arrow(scan),
    "polars, lazily": lambda scan: scan.to_polars(),
    "polars, maps as lists": lambda scan: as_lists(scan.to_arrow()),
    "a read": lambda scan: scan,
    "a stream": lambda scan: scan.to_reader(),
    "duckdb": lambda scan: scan.to_duckdb(duckdb.connect()),
}


@pytest.fixture(scope="module")
def world() -> World:
    """Rows with values in every kind of column, and without."""
    found = World()
    full = {
        "content_length": 5,
        "parts": 3,
        "content_md5": b"\x00" * 16,
        "headers": {"cache-control": "no-store", "x": ""},
        "tags": {"team": "a"},
        "roles": [OWNER],
        "sharks": ["dc:1", "dc:2"],
        "legal_hold": False,
        "lock_retain_until": datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC),
        "properties": '{"a":1}',
        "mode": 0o644,
        "inode": 1 << 40,
    }
    with found.writer() as w:
        found.commit(w, ("put", "buckets", [bucket("pets", tags={"of": "us"}, object_lock=True), bucket("cars")]))
        found.commit(w, ("put", "objects", [obj("a", **full), obj("b"), obj("c", parts=4, tags={"other": "b"}, legal_hold=True)]))
    return found


@pytest.mark.parametrize("form", FRAMES)
@pytest.mark.parametrize("table", ["objects", "buckets"])
def test_rows_go_out_and_come_back_as_they_were(world: World, form: str, table: str) -> None:
    scan = world.snapshot().scan(table)
    copy = World()
    with copy.writer() as w:
        copy.commit(w, ("put", table, FRAMES[form](scan)))
    assert copy.snapshot().scan(table).to_arrow().equals(scan.to_arrow())


def test_integers_of_which_some_are_missing_are_integers_and_fractions_are_refused(world: World) -> None:
    copy = World()
    rows = pd.DataFrame([obj("a", content_length=1), obj("b"), obj("c", content_length=1 << 40)])
    assert str(rows["content_length"].dtype) == "float64"
    with copy.writer() as w:
        copy.commit(w, ("put", "objects", rows))
        assert copy.snapshot().scan("objects").to_arrow()["content_length"].to_pylist() == [1, None, 1 << 40]
        for wrong in (1.5, float("inf"), float(1 << 60)):
            rows.loc[0, "content_length"] = wrong
            with pytest.raises(InvalidRows, match="int64 is expected, not double"), w.transaction() as tx:
                tx.put("objects", rows)


def test_dicts_in_a_frame_are_maps_of_what_each_says_and_others_are_refused(world: World) -> None:
    copy = World()
    rows = pd.DataFrame([obj("a", tags={"x": "1"}), obj("b", tags={"y": "2"}), obj("c", tags=None), obj("d", tags={})])
    with copy.writer() as w:
        copy.commit(w, ("put", "objects", rows))
        tags = copy.snapshot().scan("objects", columns=["tags"]).to_arrow()["tags"].to_pylist()
        assert tags == [[("x", "1")], [("y", "2")], None, None]
        few = pl.DataFrame([obj("e", tags={"x": "1", "y": None}), obj("f", tags=None)])
        of_words = few.with_columns(pl.col("tags").struct.with_fields(pl.field("x").cast(pl.Categorical)))
        for frame in (few, of_words[1:], of_words.lazy().filter(pl.col("name") == "e")):
            copy.commit(w, ("put", "objects", frame))
        tags = copy.snapshot().scan("objects", columns=["tags"], where={"name": ["e", "f"]}).to_arrow()["tags"].to_pylist()
        assert tags == [[("x", "1")], None]
        for wrong in ({"x": 1}, {"x": "1", "y": 2}):
            with pytest.raises(InvalidRows, match="Column 'tags' for table 'objects'"), w.transaction() as tx:
                tx.put("objects", pa.table(pd.DataFrame([obj("a", tags=wrong)])))
        for pairs in ([{"key": None, "value": "1"}], [{"key": "x", "value": None}], [None, {"key": "x", "value": "1"}]):
            with pytest.raises(InvalidRows, match="Column 'tags' for table 'objects'"), w.transaction() as tx:
                tx.put("objects", pl.DataFrame([obj("a", tags=pairs)]))
