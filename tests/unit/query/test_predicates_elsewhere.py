"""Conditions as text and as expressions where something else than one table is read: changes, differences, several catalogs, and none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from bucketcatalog import Catalog, InvalidOption
from bucketcatalog.federation import Federation
from bucketcatalog.query.changes import Changes
from bucketcatalog.query.difference import Diff
from bucketcatalog.query.filtered import FilteredRows
from bucketcatalog.query.side_by_side import SideBySide
from bucketcatalog.store.faults import Counting

from ...kit.world import BUCKET, OTHER, OWNER, World, obj

field = pc.field


@pytest.fixture(scope="module")
def world() -> World:
    """Objects of two owners, in files of their own, of which one was deleted."""
    found = World.counting()
    with found.writer() as w:
        found.commit(w, ("put", "objects", [obj(f"a/{n}") for n in range(9)]))
        rows = pa.Table.from_pylist([obj(f"b/{n:05}") | {"owner": OTHER} for n in range(20_000)])
        found.commit(w, ("put", "objects", rows))
        found.commit(w, ("delete", "objects", obj("a/3")))
    return found


def names(read: Any) -> list[str]:
    return [row["name"] for row in read.to_arrow().to_pylist()]


ON_KEYS: list[tuple[Any, int]] = [
    ("name = 'a/3'", 2),
    ("name like 'a/%' and name not in ('a/1', 'a/2')", 8),
    (f"owner = '{OWNER}' and name > 'a/6'", 2),
    ("name ilike 'A/_'", 10),
    (field("name") == "a/3", 2),
    ((field("name") >= "a/6") & ~field("name").isin(["a/7"]) & pc.starts_with(field("name"), "a"), 2),
    (pc.match_like(field("name"), "a/%"), 10),
]


@pytest.mark.parametrize(("where", "events"), ON_KEYS, ids=str)
def test_events_and_differences_are_narrowed_by_what_is_said_of_keys(world: World, where: Any, events: int) -> None:
    changes, diff = world.catalog().changes(where=where), world.catalog().diff(where=where)
    assert isinstance(changes, Changes) and isinstance(diff, Diff)
    assert len(names(changes)) == events and set(names(diff)) == set(names(changes)) - {"a/3"}
    assert len(names(changes.only(["_change_type", "name"]))) == events
    before = world.catalog().changes(where=where, pre_images=["content_length"])
    assert len(names(before)) == events


def test_events_of_other_keys_are_not_read(world: World) -> None:
    store = world.store
    assert isinstance(store, Counting)

    def bytes_read(where: Any) -> int:
        changes = world.catalog().changes(where=where)
        store.reset()
        _ = changes.to_arrow()
        return store.bytes_read

    assert bytes_read(f"owner = '{OWNER}' and length(name) = 3") * 4 < bytes_read("length(name) = 3")


@pytest.mark.parametrize("what", ["changes", "diff"])
@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("etag = 'x'", r"'etag' is not one of the key of table 'objects'.*Next: Give conditions on owner, bucket_id, name"),
        ("name = 'a' and (etag = 'x' or name = 'b')", "'etag' is not one of the key"),
        (field("etag") == "x", "'etag' is not one of the key"),
        ("_change_type = 'put'", "'_change_type' is not one of the key"),
        ("nome = 'a'", "Table 'objects' has no column 'nome' to filter by"),
        ("name = 7", "on column 'name' of 'objects' does not fit"),
        ("name ~ 7", "is not understood at character 6"),
        ("name", "it is neither true nor false"),
        (7, "7 is not a condition"),
    ],
    ids=str,
)
def test_what_is_said_of_other_columns_of_events_is_refused(world: World, what: str, where: Any, message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        getattr(world.catalog(), what)(table="objects", where=where)


def test_a_place_goes_with_text_on_keys(world: World) -> None:
    found = world.catalog().changes(where="name != 'a/3' and length(name) = 3", owner=OWNER, prefix="a/")
    assert names(found) == [f"a/{n}" for n in range(9) if n != 3]


@pytest.fixture
def both(tmp_path: Path) -> Federation:
    """Two catalogs, of which one knows more of its rows, and in wider numbers."""
    places = {"north": str(tmp_path / "n"), "south": str(tmp_path / "s")}
    kinds = {"north": {"n": pa.int32()}, "south": {"n": pa.int64(), "more": pa.string()}}
    rows = {"north": [("a", 1), ("b", 5)], "south": [("a", 2), ("c", 1 << 40)]}
    for name, place in places.items():
        catalog = Catalog(place)
        catalog.create_table("app.rows", pa.schema([pa.field("id", pa.string(), False), *kinds[name].items()]), key=["id"])
        with catalog.writer("w") as writer, writer.transaction() as tx:
            tx.put("app.rows", [{"id": id_, "n": n} | ({"more": id_} if name == "south" else {}) for id_, n in rows[name]])
    opened: Any = Catalog(places)
    assert isinstance(opened, Federation)
    return opened


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("n > 1", ["b", "a", "c"]),
        ("n >= 1099511627776", ["c"]),
        (field("n") > 4, ["b", "c"]),
        ("more is null", ["a", "b"]),
        ("more = 'a' or n = 5", ["b", "a"]),
        ("not more = 'a'", ["c"]),
        ("_catalog = 'south' and n < 5", ["a"]),
        ("_catalog = 'south' or id = 'b'", ["b", "a", "c"]),
        ((field("_catalog") == "south") & (field("more") != "a"), ["c"]),
        ("_catalog like 'n%'", ["a", "b"]),
        ("id = 'a' and _revision >= 0", ["a", "a"]),
    ],
    ids=str,
)
def test_several_catalogs_are_asked_of_the_columns_of_all(both: Federation, where: Any, expected: list[str]) -> None:
    read = both.snapshot().scan("app.rows", columns=["id"], where=where)
    assert [row["id"] for row in read.to_arrow().to_pylist()] == expected and read.count() == len(expected)
    assert both.snapshot().scan("app.rows", where=where).schema.names == ["id", "n", "more"]


def test_each_of_several_catalogs_is_narrowed_by_what_all_have_alike(both: Federation) -> None:
    scan = both.snapshot().scan
    assert type(scan("app.rows", where="_catalog in ('north', 'south') and id = 'a'")) is SideBySide
    rest = scan("app.rows", where="id = 'a' and n = 1")
    assert type(rest) is FilteredRows and "checked on the rows" in rest.explain() and rest.explain().count("not natively") == 2
    with pytest.raises(InvalidOption, match=r"has no column 'none' to filter by. Next: Its columns are id, n, .*more, _catalog"):
        scan("app.rows", where="none = 1")
    with pytest.raises(InvalidOption, match=r"None of the catalogs is 'west'. Next: Give one, or a list, of north, south"):
        scan("app.rows", where="_catalog = 'west' and n = 1")


def test_changes_of_several_catalogs_are_of_those_that_are_meant(both: Federation) -> None:
    for read in (both.changes, both.diff):
        assert names_of(read(table="app.rows", where="id = 'a' and _catalog = 'south'")) == [("a", "south")]
        assert names_of(read(table="app.rows", where="_catalog like 'n%'")) == [("a", "north"), ("b", "north")]
        assert names_of(read(table="app.rows", where=field("_catalog") == "north")) == [("a", "north"), ("b", "north")]
        assert names_of(read(table="app.rows", where=field("id") == "a")) == [("a", "north"), ("a", "south")]
        for where, message in (
            ("_catalog = 'south' or id = 'a'", "compares '_catalog' and others in one breath"),
            ((field("_catalog") == "south") & (field("id") == "a"), "cannot be taken apart. Next: Give it as text"),
            ("_catalog = 'west'", "None of the catalogs is one of which _catalog = 'west' is true"),
            ("n = 1", "'n' is not one of the key of table 'app.rows'.*That is so in north"),
        ):
            with pytest.raises(InvalidOption, match=message):
                read(table="app.rows", where=where)


def names_of(read: Any) -> list[tuple[str, str]]:
    rows = read.only(["id", "_catalog"]).to_arrow().to_pylist()
    return [(row["id"], row["_catalog"]) for row in rows]


def test_only_who_gives_an_expression_has_arrows_engine_imported(tmp_path: Path) -> None:
    with Catalog(tmp_path / "lake").writer("w") as writer, writer.transaction() as tx:
        tx.put("objects", obj("a", content_length=5) | {"bucket_id": BUCKET})
    code = """
import sys, pyarrow.compute as pc
from bucketcatalog import Catalog
scan = Catalog(sys.argv[1]).snapshot().scan
heavy = {"pyarrow.dataset", "pyarrow.acero", "pyarrow.substrait"}
for where in ("content_length > 4 and length(name) = 1", "content_length > 4"):
    assert scan("objects", where=where).count() == 1
    assert not heavy & {*sys.modules}, heavy & {*sys.modules}
assert scan("objects", where=pc.field("content_length") + 1 > 5).count() == 1
"""
    ran = subprocess.run([sys.executable, "-c", code, str(tmp_path / "lake")], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
