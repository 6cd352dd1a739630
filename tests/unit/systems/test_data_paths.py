"""Paths of data that lies in the catalog: refused in rows that are put where nobody could ever delete what they name."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bucketcatalog import InvalidRows
from bucketcatalog.limits import Limits
from bucketcatalog.query.database import Beside, Database
from bucketcatalog.write.data_paths import elsewhere, is_data_path
from bucketcatalog.write.writer import Writer

from ...kit.installing import installed
from ...kit.world import World, names, rows, stored, version
from .parts import ELSEWHERE, PART, knowing, part

THERE = [
    "v/default/data/x",
    "compactor-1/default/data/a/b=c/x.parquet",
    "v.1/default/data/...",
    "v/default/data/.hidden",
    "v/default/data/a b/\u00e9\n",
    "v/default/data/segments/x.parquet",
    "v/default/data/newest/x",
    "v/default/data/data/default/data/x",
]


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.parametrize("path", [*ELSEWHERE, *THERE])
def test_a_path_is_told_alike_one_by_one_and_as_a_column(path: str) -> None:
    assert is_data_path(path, "default") is (path in THERE)
    assert elsewhere(pa.array(["v/default/data/ok", None, path]), "default") == (-1 if path in THERE else 2)
    assert not is_data_path(path, "default.")


@pytest.mark.parametrize("path", ELSEWHERE)
@pytest.mark.parametrize("as_columns", [False, True], ids=["row", "columns"])
@pytest.mark.parametrize("registers", [False, True])
def test_a_row_that_names_data_elsewhere_is_refused(
    world: World, install_boxes: Callable[[], None], path: str, as_columns: bool, registers: bool
) -> None:
    install_boxes()
    given: Any = [part("w/default/data/x"), part(path), part("y")]
    why = f"Row 1 for table 'boxes.parts', column 'path': {path!r} is no path of data in the database 'default'."
    catalog = knowing(world, PART) if registers else world.catalog()
    with (
        world.writer(catalog=catalog) as writer,
        pytest.raises(InvalidRows, match=re.escape(why)) as caught,
        writer.transaction() as tx,
    ):
        tx.put("boxes.parts", pa.Table.from_pylist(given) if as_columns else given)
    assert "WRITER/default/data/" in caught.value.next_step and stored(world) == []


@pytest.mark.parametrize("as_columns", [False, True], ids=["row", "columns"])
def test_rows_that_name_data_of_any_writer_are_taken(world: World, install_boxes: Callable[[], None], as_columns: bool) -> None:
    install_boxes()
    given: Any = [part(path) for path in THERE]
    world.commit(world.writer(), ("put", "boxes.parts", pa.Table.from_pylist(given) if as_columns else given))
    world.commit(world.writer("v", database="photos"), ("put", "boxes.parts", part("v/photos/data/x")))
    assert sorted(row["path"] for row in rows(world.snapshot(database="default"), "boxes.parts")) == sorted(THERE)


def test_a_row_may_name_none_and_may_share_what_a_row_names_already(world: World) -> None:
    source = """message Part {
      option (table) = { name: "own.parts" key: "name" data_reference: "path" }; string name = 1; optional string path = 2;
    }"""
    known = knowing(world, source)
    world.commit(world.writer("v", catalog=known), ("put", "own.parts", {"name": "old", "path": "elsewhere"}))
    beside = Beside(known.registry.table, keeps_data=lambda name: name == "own.parts")
    old = {"name": "old", "_version": version({"name": "old"}, world.snapshot(), "own.parts")}
    with Writer(Database(world.store, "default", beside), "w", world.clock, Limits()) as writer:
        world.commit(writer, ("put", "own.parts", [{"name": "none"}, {"name": "null", "path": None}]))
        world.commit(writer, ("put", "own.parts", pa.table({"name": ["none at all"]})))
        world.commit(writer, ("put", "own.parts", {"name": "renamed", "path": "elsewhere"}, {"data_of": old}))
        world.commit(
            writer, ("update", "own.parts", {"name": "old", "path": "ignored"}), ("delete", "own.parts", {"name": "null"})
        )
        with pytest.raises(InvalidRows, match="'elsewhere' is no path of data"), writer.transaction() as tx:
            tx.put("own.parts", {"name": "new", "path": "elsewhere"})
    assert names(world.snapshot(), "own.parts") == ["none", "none at all", "old", "renamed"]


@pytest.mark.parametrize("as_columns", [False, True], ids=["row", "columns"])
@pytest.mark.parametrize("presence", ["", "optional "], ids=["without presence", "with presence"])
def test_what_a_scan_shows_of_a_row_without_a_path_can_be_put_back(world: World, as_columns: bool, presence: str) -> None:
    source = f"""message Part {{
      option (table) = {{ name: "own.parts" key: "name" data_reference: "path" }}; string name = 1; {presence}string path = 2;
    }}"""
    beside = Beside(knowing(world, source).registry.table, keeps_data=lambda name: name == "own.parts")
    with Writer(Database(world.store, "default", beside), "w", world.clock, Limits()) as writer:
        world.commit(writer, ("put", "own.parts", {"name": "none"}), ("put", "own.parts", pa.table({"name": ["null"]})))
        shown = rows(world.snapshot(), "own.parts")
        world.commit(writer, ("put", "own.parts", pa.Table.from_pylist(shown) if as_columns else shown))
        assert (
            rows(world.snapshot(), "own.parts")
            == shown
            == [{"name": n, "path": None if presence else ""} for n in ("none", "null")]
        )
        if presence:
            with pytest.raises(InvalidRows, match="'' is no path of data"), writer.transaction() as tx:
                tx.put("own.parts", {"name": "none", "path": ""})


def test_tables_of_no_system_name_data_wherever_it_is(world: World, install_boxes: Callable[[], None]) -> None:
    install_boxes()
    source = PART.replace("boxes.parts", "chests.parts")
    world.commit(world.writer(catalog=knowing(world, source)), ("put", "chests.parts", part("/tmp/x")))
    world.commit(world.writer(), ("put", "boxes.boxes", {"name": "a", "label": "../.."}))
    assert rows(world.snapshot(), "chests.parts") == [part("/tmp/x")]


def test_a_table_that_names_data_otherwise_than_its_system_says_is_not_asked_for_paths(
    world: World, install_boxes: Callable[[], None]
) -> None:
    install_boxes()
    for number, reference in enumerate(["", 'data_reference: "path" data_reference: "box"', 'data_reference: "rows"']):
        catalog = knowing(world, PART.replace('data_reference: "path"', reference))
        world.commit(world.writer(database=f"d{number}", catalog=catalog), ("put", "boxes.parts", part("/tmp/x")))


def test_a_system_that_cannot_be_used_says_nothing_of_a_table_that_is_registered(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(installed(tmp_path / "p", "boxes", "broken_boxes:SYSTEM", "raise RuntimeError('no')"))
    world.commit(world.writer(catalog=knowing(world, PART)), ("put", "boxes.parts", part("/tmp/x")))
    assert rows(world.snapshot(), "boxes.parts") == [part("/tmp/x")]
