"""What a program hands over by mistake is answered with an error that says what belongs there."""

from __future__ import annotations

import json
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bucketcatalog import Catalog, IncompatibleTable, InvalidName, InvalidOption
from bucketcatalog.harvest import harvest
from bucketcatalog.model.times import parse_age

from ..kit.world import World, messages, names, obj, proto


@pytest.fixture
def world() -> World:
    world = World()
    with world.writer() as writer:
        world.commit(writer, ("put", "objects", obj("a")))
    return world


@pytest.mark.parametrize("url", [5, None, b"/x", "/x\0y", Path("/x\0y"), [5], ["/x", None]])
def test_what_names_no_catalog_is_refused(url: Any) -> None:
    with pytest.raises(InvalidOption, match=r"names no catalog. Next: Give a path or a URL"):
        Catalog(url)


@pytest.mark.parametrize("tables", [json, [json], "objects", 5, None, ["objects"]])
def test_what_declares_no_tables_cannot_be_registered(tables: Any) -> None:
    with pytest.raises(IncompatibleTable, match=r"declares no tables. Next: Give a module that protoc generated"):
        Catalog("memory://mistaken").register(tables)


def test_several_declarations_are_registered_from_any_iterable() -> None:
    found = messages(
        proto(
            'message A { option (table) = { name: "x.a" key: "k" }; string k = 1; }',
            'message B { option (table) = { name: "x.b" key: "k" }; string k = 1; }',
        )
    )
    assert Catalog("memory://mistaken").register([found["A"], iter([found["B"]])]) == ["x.a", "x.b"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"table": None}, "None is no table's name"),
        ({"table": ["objects"]}, "is no table's name"),
        ({"table": "objects", "where": {1: 2}}, "has no column 1 to filter by"),
        ({"table": "log", "where": {1: 2}}, "has no column 1 to filter by"),
        ({"table": "objects", "where": "name"}, "on column 'name' of 'objects' does not fit: it is neither true nor false"),
        ({"table": "objects", "where": 0}, "0 is not a condition"),
        ({"table": "objects", "columns": b"name"}, r"The columns b'name' are not a list of names. Next: Give a list"),
        ({"table": "objects", "columns": 5}, "are not a list of names"),
        ({"table": "objects", "columns": []}, "No column is asked for"),
        ({"table": "log", "columns": ()}, "No column is asked for"),
        ({"table": "objects", "columns": [["name"]]}, "are not a list of names"),
        (
            {"table": "objects", "columns": ["bukcet"]},
            "Table 'objects' has no column 'bukcet'. Next: Its columns are .*name.*, bucket",
        ),
        ({"table": "objects", "where": {"nam": "x"}}, "has no column 'nam' to filter by. Next: .*, bucket"),
        ({"table": "objects", "columns": ["name", "x", "x"]}, "Table 'objects' has no column 'x'. Next: Its columns are .*name"),
        ({"table": "log", "columns": ["writer", "x", "x"]}, "Table 'log' has no column 'x'. Next: Its columns are .*writer"),
        (
            {"table": "objects", "columns": ["*", "_version"]},
            "Columns of table 'objects' are asked for by name, and '[*]' is none",
        ),
        ({"table": "objects", "columns": ["name", "owner", "name"]}, "The column 'name' is asked for twice. Next: Name each"),
        ({"table": "log", "columns": ["writer", "uuid", "writer"]}, "The column 'writer' is asked for twice. Next: Name each"),
    ],
)
def test_a_scan_names_the_argument_that_does_not_fit(world: World, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        world.snapshot().scan(**options)


def test_what_takes_several_names_takes_one(world: World, tmp_path: Path) -> None:
    assert world.snapshot().scan("objects", columns="name").schema.names == ["name"]
    assert world.snapshot().scan("log", columns="writer").to_arrow()["writer"].to_pylist() == ["w"]
    assert world.catalog().changes(columns="name").schema.names == ["name"]
    for name in ("g.jpg", "g.png"):
        (tmp_path / name).touch()
    catalog = Catalog(tmp_path / "catalog")
    assert harvest(catalog, tmp_path, include="*.jpg").created == 1
    schema = pa.schema([pa.field("k", pa.string(), False), pa.field("v", pa.int64())])
    assert catalog.create_table("own.rows", schema, key="k").name == "own.rows"
    assert catalog.declare("own.rows") is None


@pytest.mark.parametrize("given", [b"node-a", 5, None, [["node-a"]], [b"node-a"]])
@pytest.mark.parametrize("option", ["join", "void"])
def test_what_repair_is_to_join_or_void_are_names(world: World, option: str, given: Any) -> None:
    with pytest.raises(InvalidOption, match=rf"are not a list of names. Next: Give a list, such as {option}=\["):
        world.catalog().repair(**{option: given})


@pytest.mark.parametrize("given", [b"*.jpg", 5, None, [["*.jpg"]], [b"*.jpg"]])
@pytest.mark.parametrize("option", ["include", "exclude"])
def test_globs_are_texts(world: World, tmp_path: Path, option: str, given: Any) -> None:
    (tmp_path / "g").touch()
    with pytest.raises(InvalidOption, match=rf"The globs .* are not a list of names. Next: Give a list, such as {option}=\["):
        harvest(world.catalog(), tmp_path, **{option: given})
    assert names(world.snapshot()) == ["a"]


@pytest.mark.parametrize("source", ["", b"", "file://"])
def test_an_empty_source_is_not_the_working_directory(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: Any
) -> None:
    (tmp_path / "here").touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidOption):
        harvest(world.catalog(), source)
    assert names(world.snapshot()) == ["a"]


def test_an_owner_may_be_a_uuid(tmp_path: Path) -> None:
    owner = uuid.UUID("00000000-0000-4000-8000-000000000009")
    source, catalog = tmp_path / "source", Catalog(tmp_path / "lake")
    source.mkdir()
    (source / "g").touch()
    assert harvest(catalog, source, owner=owner).owner == str(owner)
    assert harvest(catalog, source, owner=str(owner)).unchanged == 1


@pytest.mark.parametrize(
    ("options", "expected", "message"),
    [
        ({"owner": 5}, InvalidOption, "The owner 5 is not a uuid"),
        ({"owner": b"0" * 32}, InvalidOption, "is not a uuid"),
        ({"bucket": b"t"}, InvalidName, "b't' cannot be the name of a bucket"),
        ({"bucket": 5}, InvalidName, "5 cannot be the name of a bucket"),
        ({"dry_run": "no"}, InvalidOption, "dry_run is 'no'"),
        ({"dry_run": None}, InvalidOption, "dry_run is None"),
        ({"allow_empty": 1}, InvalidOption, "allow_empty is 1"),
        ({"metadata": "no"}, InvalidOption, "metadata is 'no'"),
        ({"tags": 0}, InvalidOption, "tags is 0"),
        ({"checksum": 1}, InvalidOption, "checksum is 1"),
    ],
)
def test_a_harvest_names_the_argument_that_does_not_fit(
    world: World, tmp_path: Path, options: dict[str, Any], expected: type[Exception], message: str
) -> None:
    (tmp_path / "g").touch()
    with pytest.raises(expected, match=message):
        harvest(world.catalog(), tmp_path, **options)
    assert names(world.snapshot()) == ["a"]


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        *[
            (method, {"table": table} | more, r"is no table's name. Next: Give one of the snapshot's tables")
            for method, more in [("changes", {}), ("diff", {}), ("restore", {"version": "w@0", "dry_run": True})]
            for table in ([], {}, 5, None)
        ],
        *[("run_job", {"job": job}, r"There is no job .*. Next: Choose one of SYSTEM.JOB") for job in (5, None, [], b"x.y")],
        *[
            (method, {"data_url": url}, r"data_url is .*, and no text. Next: Give a URL such as s3://")
            for method in ("collect", "orphans")
            for url in (5, b"x", [], {})
        ],
        *[
            ("prune", {"older_than": "7d", "keep": keep}, r"cannot be pruned with keep=.*. Next: Give keep=1 or more")
            for keep in ("", b"x", None, [], 1.5, 0, True)
        ],
        *[
            (method, {"older_than": age}, r"is not an age. Next: Give one from 0s to 999999w")
            for method in ("collect", "reap", "orphans", "prune")
            for age in (2**70, -1, timedelta.max, timedelta(days=-1))
        ],
        ("prune", {"older_than": "7d", "grace": 2**70}, r"is not an age. Next: Give one from 0s to 999999w"),
    ],
)
def test_a_method_names_the_argument_that_does_not_fit(world: World, method: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        getattr(world.catalog(), method)(**options)


@pytest.mark.parametrize("table", [[], {}, 5, None, b"objects"])
@pytest.mark.parametrize("method", ["get", "list", "table"])
def test_a_snapshot_asked_for_what_is_no_name_of_a_table_says_so(world: World, method: str, table: Any) -> None:
    with pytest.raises(InvalidOption, match=r"is no table's name. Next: Give one of the snapshot's tables"):
        getattr(world.snapshot(), method)(table)


def test_the_longest_age_that_text_can_say_is_one_in_every_form(world: World) -> None:
    for age in ("999999w", parse_age("999999w"), timedelta(weeks=999_999)):
        assert (world.catalog().reap(older_than=age).parents, world.catalog().collect(older_than=age).waiting) == (0, 0)


def test_columns_may_be_any_iterable_of_names(world: World) -> None:
    for columns in (("name",), iter(["name"]), {"name": 1}):
        scan: Any = world.snapshot().scan("objects", columns=columns)
        assert scan.to_arrow().to_pylist() == [{"name": "a"}]


def test_an_empty_delimiter_is_named(world: World) -> None:
    with pytest.raises(InvalidOption, match=r"The delimiter is empty. Next: Give one of at least one character"):
        world.snapshot().list("objects", delimiter="", owner=obj("")["owner"], bucket_id=obj("")["bucket_id"])


def test_a_representation_says_where_and_what(world: World) -> None:
    catalog, snapshot = world.catalog(), world.snapshot()
    assert repr(catalog) == f"Catalog({catalog.url!r})"
    assert repr(snapshot) == f"Snapshot({catalog.url!r}, 'default', at w@0, 2023-11-14T22:13:21.000000Z)"
