"""Names in place of ids, wherever rows are read: by bucket, owner and prefix, and the bucket's name as a column."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from bucketcatalog import Catalog, InvalidOption, NotFound, between, prefix
from bucketcatalog.query.looked_up import LookedUp
from bucketcatalog.store.faults import Counting

from ...kit.world import OTHER, OWNER, World, obj

PETS, CARS, SHARED, OTHERS, GONE, ORPHANED = (f"{digit}0000000-0000-4000-8000-000000000000" for digit in "abcdef")


@pytest.fixture(scope="module")
def world() -> World:
    """Two owners, who both have a bucket ``shared``; a bucket that has ended, another that nothing tells of, and objects in each."""
    found = World()
    buckets = {
        PETS: (OWNER, "pets"),
        CARS: (OWNER, "cars"),
        SHARED: (OWNER, "shared"),
        OTHERS: (OTHER, "shared"),
        GONE: (OWNER, "gone"),
    }
    with found.writer() as w:
        found.commit(w, ("put", "buckets", [{"owner": owner, "name": name, "id": id_} for id_, (owner, name) in buckets.items()]))
        ids = {**buckets, ORPHANED: (OWNER, "")}
        rows = [
            obj(name, content_length=n) | {"owner": ids[id_][0], "bucket_id": id_}
            for n, id_ in enumerate(ids)
            for name in ("a/1", "a/2", "b")
        ]
        found.commit(w, ("put", "objects", rows))
        found.commit(w, ("delete", "buckets", {"owner": OWNER, "name": "gone"}))
        found.commit(w, ("delete", "objects", obj("b") | {"bucket_id": PETS}))
    return found


def names(read: Any) -> list[tuple[Any, str]]:
    return [(row["bucket"], row["name"]) for row in read.to_arrow().to_pylist()]


ASKED = ["bucket", "name"]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"bucket": "pets"}, [("pets", "a/1"), ("pets", "a/2")]),
        ({"bucket": "cars", "prefix": "a/"}, [("cars", "a/1"), ("cars", "a/2")]),
        ({"bucket": "shared", "owner": OTHER}, [("shared", name) for name in ("a/1", "a/2", "b")]),
        ({"bucket": PETS}, [("pets", "a/1"), ("pets", "a/2")]),
        ({"bucket": GONE}, [("gone", name) for name in ("a/1", "a/2", "b")]),
        ({"bucket": ORPHANED}, [(None, name) for name in ("a/1", "a/2", "b")]),
        ({"owner": OTHER, "where": {"name": "b"}}, [("shared", "b")]),
        ({"where": {"bucket": "pets"}}, [("pets", "a/1"), ("pets", "a/2")]),
        ({"where": {"bucket": ["pets", "gone"], "name": "a/1"}}, [("pets", "a/1"), ("gone", "a/1")]),
        ({"where": {"bucket": prefix("ca")}}, [("cars", name) for name in ("a/1", "a/2", "b")]),
        ({"where": {"bucket": between("d", "h"), "name": "b"}}, [("gone", "b")]),
        ({"where": {"bucket": None, "name": "b"}}, [(None, "b")]),
        ({"where": {"bucket": [None, "cars"], "name": "b"}}, [("cars", "b"), (None, "b")]),
        ({"where": {"bucket": "pets", "bucket_id": [PETS, CARS]}}, [("pets", "a/1"), ("pets", "a/2")]),
        ({"where": {"bucket": "nobody's"}}, []),
    ],
)
def test_rows_are_found_by_names(world: World, asked: dict[str, Any], expected: list[tuple[Any, str]]) -> None:
    read = world.snapshot().scan("objects", columns=ASKED, **asked)
    assert isinstance(read, LookedUp)
    assert sorted(names(read), key=repr) == sorted(expected, key=repr)
    assert read.count() == len(expected)
    tasks = pickle.loads(pickle.dumps(read.tasks(1)))
    found = [(row["bucket"], row["name"]) for task in tasks for part in task.read(world.store) for row in part.to_pylist()]
    assert sorted(found, key=repr) == sorted(expected, key=repr)


@pytest.mark.parametrize(
    ("asked", "error", "told"),
    [
        ({"bucket": "shared"}, InvalidOption, rf"2 owners have a bucket 'shared': {OWNER}; {OTHER}\..*owner"),
        (
            {"bucket": "gone"},
            NotFound,
            f"no bucket 'gone' in database 'default' at this version: it has ended.*deleted_buckets.*its id, {GONE}",
        ),
        ({"bucket": "dogs"}, NotFound, "no bucket 'dogs' in database 'default' at this version.*'cars', 'pets', 'shared'"),
        ({"bucket": "pets", "owner": OTHER}, NotFound, f"no bucket 'pets' of owner {OTHER}"),
        ({"bucket": "pets", "owner": "me"}, InvalidOption, "'me' is not a uuid"),
        ({"bucket": OTHER}, NotFound, "no bucket"),
        ({"bucket": "pets", "where": {"bucket_id": PETS}}, InvalidOption, "'bucket_id' has to be is said twice"),
        ({"prefix": "a", "where": {"name": "b"}}, InvalidOption, "'name' has to be is said twice"),
    ],
)
def test_what_is_meant_by_a_name_is_certain_or_an_error(world: World, asked: Any, error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=told):
        world.snapshot().scan("objects", **asked)


@pytest.mark.parametrize(
    ("table", "asked", "told"),
    [
        ("log", {"bucket": "pets"}, "no rows of buckets"),
        ("harvest_errors", {"bucket": "pets"}, "has no buckets"),
        ("harvest_errors", {"owner": OWNER}, "has no owners"),
        ("harvest_errors", {"prefix": "file://", "where": {"source": "x"}}, "said twice"),
    ],
)
def test_tables_without_buckets_say_so(world: World, table: str, asked: Any, told: str) -> None:
    with pytest.raises(InvalidOption, match=told):
        world.snapshot().scan(table, **asked)


def test_a_bucket_is_a_row_of_its_own_table_too_and_one_that_ended_is_found_among_tombstones(world: World) -> None:
    snapshot = world.snapshot()
    assert snapshot.scan("buckets", bucket="shared", columns=["owner"]).to_arrow()["owner"].to_pylist() == [OWNER, OTHER]
    assert snapshot.scan("buckets", owner=OTHER, prefix="sha").count() == 1
    assert names(snapshot.scan("deleted_objects", bucket="pets", columns=ASKED)) == [("pets", "b")]
    assert snapshot.scan("deleted_objects", bucket="gone", columns=ASKED).count() == 0
    with pytest.raises(NotFound):
        snapshot.scan("deleted_objects", bucket="never")


def test_rows_are_looked_up_and_listed_by_the_names_of_their_buckets(world: World) -> None:
    snapshot = world.snapshot()
    by_id = snapshot.get("objects", owner=OWNER, bucket_id=PETS, name="a/1")
    assert by_id is not None and snapshot.get("objects", bucket="pets", name="a/1") == by_id
    assert snapshot.get("objects", bucket="pets", name="b") is None
    assert snapshot.get("objects", bucket="shared", owner=OTHER, name="b") is not None
    found = snapshot.get_all("objects", [{"bucket": "pets", "name": "a/1"}, {"bucket": "cars", "name": "x"}], columns=["name"])
    assert found == [{"name": "a/1"}, None]
    page = snapshot.list("objects", bucket="pets", prefix="a/", limit=1)
    assert page.rows["name"].to_pylist() == ["a/1"] and page.next_marker == "a/1"
    for read in (lambda: snapshot.get("objects", bucket="shared", name="b"), lambda: snapshot.list("objects", bucket="shared")):
        with pytest.raises(InvalidOption, match="2 owners have a bucket 'shared'"):
            read()


def test_the_owner_of_a_bucket_is_enough_to_read_no_other_range_of_keys(world: World) -> None:
    with world.writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all", full=True)
    counting = Counting(world.store)
    snapshot = Catalog(counting).snapshot()
    assert "1 of " in snapshot.scan("objects", bucket="cars").explain() or snapshot.scan("objects", bucket="cars").count() == 3
    read = snapshot.scan("objects", columns=["name"])
    counting.reset()
    assert read.available.field("name").type == pa.string() and not counting.requests


def test_events_and_differences_are_narrowed_by_names_also_of_what_has_ended(world: World) -> None:
    catalog = world.catalog()
    assert names(catalog.changes(bucket="gone", columns=ASKED)) == [("gone", name) for name in ("a/1", "a/2", "b")]
    assert names(catalog.changes(bucket="pets", prefix="b", columns=ASKED)) == [("pets", "b"), ("pets", "b")]
    assert names(catalog.diff(bucket="pets", columns=ASKED)) == [("pets", "a/1"), ("pets", "a/2")]
    assert names(catalog.diff(start="w@2", bucket="pets", columns=ASKED)) == [("pets", "b")]
    assert {row["name"] for row in catalog.changes(table="buckets", owner=OTHER).to_arrow().to_pylist()} == {"shared"}
    for read in (catalog.changes, catalog.diff):
        with pytest.raises(InvalidOption, match="2 owners"):
            read(bucket="shared")
        with pytest.raises(NotFound, match="at either version"):
            read(bucket="never")


def test_a_name_that_the_past_had_is_found_in_the_past(world: World) -> None:
    assert world.snapshot(version="w@1").scan("objects", bucket="gone", columns=ASKED).count() == 3


def test_sums_and_conflicts_speak_of_buckets_by_name_and_of_who_was_in_the_way() -> None:
    world = World()
    with world.writer("a") as a, world.writer("b") as b:
        world.commit(a, ("put", "buckets", {"owner": OWNER, "name": "pets", "id": PETS}))
        put = world.commit(a, ("put", "objects", obj("cat", content_length=3) | {"bucket_id": PETS}))
        again = world.commit(b, ("put", "objects", obj("cat", content_length=4) | {"bucket_id": PETS}, {"expect": "absent"}))
        late = obj("cat", content_length=5, _version=f"{put.uuid}:0") | {"bucket_id": PETS}
        world.commit(a, ("update", "objects", late))
        world.commit(b, ("delete", "objects", obj("dog") | {"bucket_id": CARS}, {"expect": f"{put.uuid}:0"}))
    rows = {
        row["kind"] + row["writer"] + str(row["bucket"]): row for row in world.snapshot().scan("conflicts").to_arrow().to_pylist()
    }
    told = {name: (row["other_writer"], row["other_version"], dict(row["key"])["name"]) for name, row in rows.items()}
    assert told == {
        "expectationbpets": ("a", f"{put.uuid}:0", "cat"),
        "late_updateapets": ("b", f"{again.uuid}:0", "cat"),
        "expectationbNone": (None, None, "dog"),
    }
    sums = world.snapshot().scan("sums", where={"bucket": "pets"}).to_arrow().to_pylist()
    assert {row["name"]: int(row["value"]) for row in sums} == {"objects": 1, "bytes": 4}
    assert {dict(row["group"])["bucket_id"] for row in sums} == {PETS}


@pytest.mark.parametrize("merged", [False, True])
def test_engines_join_the_names_to_what_they_read_themselves(world: World, merged: bool) -> None:
    if merged:
        with world.writer("compactor-1") as compactor:
            compactor.checkpoint(scope="all", full=True)
    for asked in ({}, {"bucket": "pets"}, {"where": {"bucket": prefix("sh")}}, {"where": {"bucket": None}}):
        read = world.snapshot().scan("objects", columns=["name", "bucket", "content_length"], **asked)
        expected = sorted(map(tuple, map(dict.values, read.to_arrow().to_pylist())), key=repr)
        assert sorted(read.to_duckdb(duckdb.connect()).fetchall(), key=repr) == expected
        assert sorted(read.to_polars().collect().rows(), key=repr) == expected


def test_rows_of_a_table_with_a_parent_of_its_own_are_those_of_one_parent_by_its_name(tmp_path: Path) -> None:
    catalog, ids = Catalog(tmp_path), ["1", "2"]
    text = pa.string()
    catalog.create_table("jobs.owners", pa.schema({"name": text, "id": text}), key=["name"], id="id")
    catalog.create_table("jobs.tasks", pa.schema({"k": text, "owner": text}), key=["k"], parent=("jobs.owners", "owner"))
    catalog.create_table("jobs.notes", pa.schema({"k": text, "owner_id": text}), key=["k"], parent=("jobs.owners", "owner_id"))
    with catalog.writer("w") as w, w.transaction() as tx:
        tx.put("jobs.owners", [{"name": name, "id": id_} for name, id_ in zip("PQ", ids, strict=True)])
        tx.put("jobs.tasks", [{"k": id_, "owner": id_} for id_ in ids])
        tx.put("jobs.notes", {"k": "a", "owner": "P"})
    snapshot = catalog.snapshot()
    assert snapshot.scan("jobs.tasks", bucket="P").to_arrow().to_pylist() == [{"k": "1", "owner": "1"}]
    shown = snapshot.scan("jobs.notes", bucket="P", columns=["owner", "owner_id"]).to_arrow().to_pylist()
    assert shown == [{"owner": "P", "owner_id": "1"}]
    with pytest.raises(NotFound, match=r"no bucket 'R'.*'P', 'Q'"):
        snapshot.scan("jobs.tasks", bucket="R")
