"""Columns as engines show them that read a file by themselves: whatever definition it was written by, they are those of a scan, or it says
which are not."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bucketcatalog import between, prefix
from bucketcatalog.format import shown
from bucketcatalog.format.footers import Layout, Leaf
from bucketcatalog.log import segments
from bucketcatalog.query.files import Files
from bucketcatalog.query.scan import Scan

from ...kit.fields import AT, FIELDS, SYMBOLS
from ...kit.natively import in_some_order, put_together
from ...kit.world import World, messages, obj, proto, time_at

ROWS: list[dict[str, Any]] = [
    {
        "k": 1,
        "text": "a",
        "number": -5,
        "small": 2**32 - 1,
        "large": 2**64 - 1,
        "raw": b"\x00\xff",
        "flag": True,
        "mode": "MODE_SLOW",
    },
    {
        "k": 2,
        "uid": "aaaaaaaa-0000-4000-8000-000000000001",
        "at": time_at(-1),
        "ratio": math.nan,
        "words": ["x", ""],
        "counts": {"a": 1},
    },
    {"k": 3, "plain": "p", "plain_mode": "MODE_FAST", "ratio": -0.0, "mode": "7", "created": time_at(5)},
    {"k": -4},
]


@pytest.fixture(autouse=True)
def _everything_in_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """However small a run is."""
    monkeypatch.setattr(segments, "INLINE_RUN_BYTES", 0)


def declared(fields: str, *beside: str) -> Any:
    body = f'message Row {{ option (table) = {{ name: "my.rows" key: "k" }}; {fields} }}'
    return messages(proto(SYMBOLS, *beside, body))["Row"]


def merged(world: World, fields: str, rows: list[dict[str, Any]], *beside: str) -> None:
    """These rows, put by who declares the table so, merged."""
    catalog = world.catalog()
    catalog.register(declared(fields, *beside))
    with world.writer(catalog=catalog) as writer:
        world.commit(writer, ("put", "my.rows", rows))
    with world.writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all", full=True)


def also_declared(world: World, fields: str, *beside: str) -> None:
    """A row by somebody who declares the table otherwise, merged with nothing."""
    catalog = world.catalog()
    catalog.register(declared(fields, *beside))
    with world.writer("maintainer-1", catalog=catalog) as writer:
        world.commit(writer, ("put", "my.rows", {"k": 1_000}))


def asked(world: World, **options: Any) -> tuple[Scan, Files]:
    read = world.snapshot().scan("my.rows", **options)
    assert isinstance(read, Scan)
    return read, read.files()


def is_the_same(world: World, **options: Any) -> bool:
    read, files = asked(world, **options)
    assert files.why is None and files.native
    return in_some_order(put_together(read, world.store)) == in_some_order(read.to_arrow())


def test_every_type_is_shown_as_a_scan_shows_it() -> None:
    world = World()
    merged(world, FIELDS, ROWS)

    assert is_the_same(world)
    assert is_the_same(world, columns=["_version", "_commit_timestamp", "_writer", "_revision", "k"])
    (file,) = asked(world, columns=["plain", "created"])[1].native
    assert file.stored == ["plain", "created"], "no times and no zeros are looked up where nothing is null"


CONDITIONS: list[Mapping[str, Any]] = [
    {"k": between(1, 3, inclusive="left")},
    {"text": prefix("a")},
    {"mode": ["MODE_SLOW", None]},
    {"plain_mode": "MODE_UNSPECIFIED"},
    {"ratio": math.nan},
    {"ratio": 0.0},
    {"large": 2**64 - 1},
    {"uid": None, "flag": [True, None]},
    {"created": time_at(5)},
]


@pytest.mark.parametrize("where", CONDITIONS, ids=str)
def test_conditions_are_those_of_a_scan(where: Mapping[str, Any]) -> None:
    world = World()
    merged(world, FIELDS, ROWS)
    read, files = asked(world, where=where, columns=["k"])

    found = put_together(read, world.store)["k"].to_pylist()
    assert sorted(found) == sorted(read.to_arrow()["k"].to_pylist()) and found
    assert files.native or "k" not in where


CHANGED = {
    "another name": ("optional string text = 2;", "optional string called = 2;"),
    "wider": ("optional int32 number = 4;", "optional int64 number = 4;"),
    "declared later": ("map<string, int64> counts = 15;", "map<string, int64> counts = 15; optional string later = 20;"),
    "declared later, without presence": (
        "string plain = 3;",
        "string plain = 3; int32 zero = 21; Mode first = 22; bytes none = 23;",
    ),
    "declared later, with a time": (
        "optional bool flag = 10;",
        f"optional bool flag = 10; optional int64 since = 24 [{AT} default: COLUMN_DEFAULT_CREATED}}];",
    ),
}


@pytest.mark.parametrize("change", CHANGED)
def test_files_of_an_older_definition_are_shown_by_the_newer_one(change: str) -> None:
    world = World()
    merged(world, FIELDS, ROWS)
    old, new = CHANGED[change]
    assert old in FIELDS
    also_declared(world, FIELDS.replace(old, new))

    assert is_the_same(world)


def test_a_time_that_was_declared_later_is_that_of_the_put_or_of_the_last_update() -> None:
    world = World()
    catalog = world.catalog()
    catalog.register(declared("int64 k = 1; optional string text = 2;"))
    with world.writer(catalog=catalog) as writer:
        put = world.commit(writer, ("put", "my.rows", {"k": 1}))
        updated = world.commit(writer, ("update", "my.rows", {"k": 1, "text": "b", "_version": f"{put.uuid}:0"}))
    with world.writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all", full=True)
    also_declared(
        world,
        f"int64 k = 1; optional string text = 2; optional int64 since = 3 [{AT} default: COLUMN_DEFAULT_CREATED}}]; "
        f"optional int64 until = 4 [{AT} default: COLUMN_DEFAULT_MODIFIED}}];",
    )
    read, files = asked(world, where={"k": between(0, 2)})

    assert files.native and files.touched == 0
    (row,) = put_together(read, world.store).to_pylist()
    assert (row["since"], row["until"]) == (time_at(put.commit_time), time_at(updated.commit_time))


def why(world: World, **options: Any) -> str:
    read, files = asked(world, **options)
    assert not files.native and files.why is not None
    assert in_some_order(files.overlay.to_arrow()) == in_some_order(read.to_arrow())
    return files.why


IN = "message In { optional int64 n = 1; }"


def test_messages_are_shown_while_they_are_as_declared_and_then_say_that_they_have_to_be_converted() -> None:
    world = World()
    fields = "int64 k = 1; optional In m = 2; repeated In ms = 3; map<string, In> by = 4;"
    merged(world, fields, [{"k": 1, "m": {"n": 5}, "ms": [{"n": 1}, {}], "by": {"a": {}}}, {"k": 2, "m": {}}], IN)
    assert is_the_same(world)

    also_declared(world, fields, IN.replace("}", "optional string more = 2; }"))
    assert "the column 'm' is stored as struct<n: int64>, which has to be converted, in compactor-1/" in why(world)
    assert is_the_same(world, columns=["k"])


@pytest.mark.parametrize("fields", ["repeated Mode modes = 2;", "map<string, Mode> modes = 2;", "optional With modes = 2;"])
def test_enumerations_within_others_have_to_be_converted(fields: str) -> None:
    world = World()
    value: Any = {"repeated": ["MODE_FAST"], "map<stri": {"a": "MODE_FAST"}, "optional": {"mode": "MODE_FAST"}}[fields[:8]]
    merged(world, f"int64 k = 1; {fields}", [{"k": 1, "modes": value}], "message With { optional Mode mode = 1; }")

    assert "the column 'modes' is stored as" in why(world) and "which has to be converted" in why(world)


def test_columns_that_are_called_alike_but_for_case_are_left_to_this_package() -> None:
    world = World()
    merged(
        world,
        "int64 k = 1; optional string name = 2; optional string NAME = 3; optional string other = 4;",
        [{"k": 1, "name": "a"}],
    )
    assert why(world).startswith("'name' and 'NAME' are called alike but for case, in compactor-1/")
    assert is_the_same(world, columns=["k", "other"])

    world = World()
    merged(world, "int64 k = 1; optional In m = 2;", [{"k": 1}], "message In { optional int64 n = 1; optional int64 N = 2; }")
    assert why(world).startswith("'n' and 'N' are called alike but for case, in compactor-1/")
    assert is_the_same(world, columns=["k"])


def test_more_symbols_than_an_engine_chooses_from_are_left_to_this_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown, "MOST_SYMBOLS", 2)
    world = World()
    merged(world, FIELDS, ROWS)

    assert why(world).startswith("the column 'mode' has 3 symbols, in compactor-1/")
    assert is_the_same(world, columns=["k", "text"])


def layout(**options: Any) -> Layout:
    """That of a file with a text and a number, as pyarrow writes it with these options."""
    sink = io.BytesIO()
    pq.write_table(pa.table({"text": ["a", "b"], "ratio": [1.0, math.nan]}), sink, **options)
    file = pq.ParquetFile(sink)
    leaves = [Leaf(field.name, field.name, 8, False, at == 0, field.type) for at, field in enumerate(file.schema_arrow)]
    return Layout("file", file.metadata, file.schema_arrow, tuple(leaves))


def test_what_engines_would_choose_rows_by_and_nobody_checks_is_noticed() -> None:
    bounds, indexes = (
        "it has bounds of numbers with a fraction, which leave out what is no number",
        "it has page indexes, which nobody checks",
    )

    assert shown.unchecked(layout(write_statistics=["text"]), ["text", "ratio"]) is None
    assert shown.unchecked(layout(), ["text", "ratio"]) == bounds
    assert shown.unchecked(layout(), ["text"]) is None
    assert shown.unchecked(layout(write_statistics=["text"], write_page_index=True), ["text"]) == indexes


def test_the_core_tables_are_read_natively_whole() -> None:
    world = World()
    with world.writer() as writer:
        world.commit(writer, ("put", "objects", [obj("a", tags={"x": "1"}, parts=3, legal_hold=True), obj("b", roles=None)]))
    with world.writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all", full=True)
    read = world.snapshot().scan("objects")
    assert isinstance(read, Scan)

    assert read.files().native and in_some_order(put_together(read, world.store)) == in_some_order(read.to_arrow())
