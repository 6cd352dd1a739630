"""Where data lies, who deletes it, and what lies there that nobody names."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bucketcatalog import Catalog, InvalidOption, StoreUnavailable
from bucketcatalog.maintain.gc.data import DataPlace, Deleting, Template
from bucketcatalog.maintain.gc.orphans import Orphan
from bucketcatalog.store.faults import Failing
from bucketcatalog.store.memory import MemoryStore

from ...kit.world import BUCKET, OWNER, World, messages, obj, proto
from .test_collect import DAY, HOUR, Yard, an_id, dead, thing

URL = "{owner}/{bucket_id}/{id}"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("s3://data/all", "names no column"),
        ("s3://{owner}/{id}", "in which folder or bucket"),
        ("{owner}/{id}", "in which folder or bucket"),
        ("/data/{owner}{id}", "not separated"),
        ("/data/{owner}-{id}", "not separated"),
        ("/data/{id}/{id}", "twice"),
        ("/data/{}", "is no column"),
        ("/data/{id!r}", "is no column"),
        ("/data/{id:>9}", "is no column"),
        ("/data/{id", "cannot be read"),
    ],
)
def test_what_does_not_say_where_data_lies_is_refused(text: str, why: str) -> None:
    with pytest.raises(InvalidOption, match=why):
        Template.parse(text)


def test_no_two_references_have_one_name() -> None:
    template = Template.parse("s3://data/all/{a}/{b}.bin")
    assert (template.root, template.columns) == ("s3://data/all", ("a", "b"))
    batch = pa.table({"a": ["x/y", "x", "x%2Fy"], "b": ["z", "y/z", "z"]})
    assert template.names(batch).to_pylist() == ["x%2Fy/z.bin", "x/y%2Fz.bin", "x%252Fy/z.bin"]
    assert Template.parse("/data/p-{path}").names(pa.table({"path": ["a/b"]})).to_pylist() == ["p-a/b"]


def test_data_at_a_url_is_deleted_and_what_is_not_there_is_gone(tmp_path: Path) -> None:
    yard = Yard()
    dead(yard, "a", "b", "c")
    folder = tmp_path / OWNER / BUCKET
    folder.mkdir(parents=True)
    for name in ("a", "b", "live"):
        (folder / an_id(name)).write_text(name)
    done = yard.collected(deleter=None, data_url=f"{tmp_path}/{URL}")
    assert (done.purged, done.deleted, done.failed) == (3, 3, 0)
    assert [file.name for file in folder.iterdir()] == [an_id("live")]


def test_what_a_store_does_not_delete_is_left_for_the_next_run() -> None:
    store = Failing(MemoryStore(), at=1, error=StoreUnavailable("The store is away."), methods=("delete",))
    place = DataPlace(Template.parse(f"/x/{URL}"), "memory://elsewhere", given=store)
    batch = pa.table({"owner": ["o", "o", "o"], "bucket_id": ["b"] * 3, "id": ["1", "2", "3"]})
    told = Deleting(place).delete(batch)
    assert told.gone.tolist() == [True, False, True] and told.problems == ("The store is away.",)


def test_no_template_reaches_the_log_of_the_catalog(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path / "lake")
    with catalog.writer("w") as writer, writer.transaction() as tx:
        tx.put("objects", obj("a"))
    logged = [str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*.txn")]
    for root, names in ((tmp_path, logged), (tmp_path / "lake", [name.removeprefix("lake/") for name in logged])):
        place = DataPlace.open(f"{root}/{{path}}", None, catalog.store)
        told = Deleting(place).delete(pa.table({"path": [*names, "lake/../lake/x", "", "other/x"]}))
        assert told.gone.tolist() == [False] * (len(names) + 2) + [root == tmp_path]
    assert len(list(tmp_path.rglob("*.txn"))) == 1
    inside = DataPlace.open(f"{tmp_path}/lake/w/default/data/{{path}}", None, catalog.store)
    assert Deleting(inside).delete(pa.table({"path": ["p/x"]})).gone.all()


def test_a_place_pickles_as_what_it_was_opened_with_and_shows_no_secret(tmp_path: Path) -> None:
    place = DataPlace.open(f"{tmp_path}/{URL}", None, MemoryStore())
    assert place.store.url == str(tmp_path)
    assert pickle.loads(pickle.dumps(place)) == place
    secret = DataPlace.open(f"s3://data/{URL}", {"key": "a-key", "secret": "the-secret"}, MemoryStore())
    assert "the-secret" not in repr(Deleting(secret)) and pickle.loads(pickle.dumps(secret)).options["secret"] == "the-secret"
    assert secret.store.url == pickle.loads(pickle.dumps(secret)).store.url == "s3://data"


# Orphans.

FILES = proto(
    """message File {
      option (table) = {name: "iox.file" key: "chunk" data_reference: "path"};
      string chunk = 1;
      optional string path = 2;
    }"""
)


@pytest.fixture
def world() -> World:
    return World()


def files(world: World) -> Catalog:
    catalog = world.catalog()
    catalog.register(messages(FILES)["File"])
    return catalog


def found(catalog: Catalog, **options: Any) -> list[Orphan]:
    return list(catalog.orphans(**options))


def path(name: str) -> str:
    return f"w/default/data/part/iox.file/{name}.parquet"


def test_files_that_no_version_names_are_orphans_once_they_are_old(world: World) -> None:
    catalog = files(world)
    writer = world.writer(catalog=catalog)
    for name in ("named", "ended", "orphan"):
        world.store.put(path(name), name.encode())
    world.commit(writer, ("put", "iox.file", [{"chunk": name, "path": path(name)} for name in ("named", "ended")]))
    world.commit(writer, ("delete", "iox.file", {"chunk": "ended"}))
    assert found(catalog) == []
    world.clock.tick(25 * HOUR)
    world.store.put(path("young"), b"")
    (orphan,) = found(catalog)
    assert (orphan.name, orphan.bytes, orphan.deleted) == (path("orphan"), 6, False)
    (orphan,) = found(catalog, dry_run=False)
    assert orphan.deleted
    assert [info.name for info in world.store.list("w/default/data/")] == [path(n) for n in ("ended", "named", "young")]


def test_a_file_of_a_version_purged_by_hand_is_an_orphan_once_a_boundary_has_passed_it(world: World) -> None:
    catalog = files(world)
    writer = world.writer(catalog=catalog)
    for name in ("tagged", "purged"):
        world.store.put(path(name), b"")
        world.commit(writer, ("put", "iox.file", {"chunk": name, "path": path(name)}))
        if name == "tagged":
            with world.writer("maintainer-1") as held:
                held.tag("release")
    versions = world.snapshot().scan("iox.file", columns=["chunk", "_version"]).to_arrow()
    world.commit(writer, ("delete", "iox.file", [{"chunk": "purged"}, {"chunk": "tagged"}]), ("purge", "iox.file", versions))
    world.commit(writer, ("put", "iox.file", {"chunk": "x", "path": "x"}), ("delete", "iox.file", {"chunk": "x"}))
    world.clock.tick(25 * HOUR)
    assert found(catalog) == []
    catalog.collect(dry_run=False, writer="maintainer-1", clock=world.clock)
    assert found(catalog) == []
    world.clock.tick(7 * HOUR)
    assert [orphan.name for orphan in found(catalog)] == [path("purged")]
    with world.writer("maintainer-1") as held:
        held.drop_tag("release")
    assert [orphan.name for orphan in found(catalog)] == [path("purged"), path("tagged")]


def test_orphans_at_a_url_are_of_the_names_that_references_have(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path / "lake")
    with catalog.writer("w") as writer, writer.transaction() as tx:
        tx.put("objects", thing("named"))
    orphan = f"{OWNER}/{BUCKET}/{an_id('orphan')}"
    long_ago, now = MemoryStore("orphans", clock=lambda: 1), MemoryStore("orphans")
    for name in (f"{OWNER}/{BUCKET}/{an_id('named')}", orphan, "README", f"{OWNER}/x/y"):
        long_ago.put(name, b"1")
    now.put(f"{OWNER}/{BUCKET}/{an_id('young')}", b"1")
    (told,) = found(catalog, data_url=f"memory://orphans/{URL}", dry_run=False)
    assert (told.name, told.deleted) == (orphan, True)
    assert len(list(now.list(""))) == 4
    with pytest.raises(InvalidOption, match="No table has the data reference path"):
        found(catalog, data_url="memory://orphans/{path}")


def test_without_a_table_that_names_files_nothing_is_taken_for_an_orphan(world: World) -> None:
    world.commit(world.writer(), ("put", "objects", obj("a")))
    world.store.put(path("a"), b"")
    world.clock.tick(2 * DAY)
    with pytest.raises(InvalidOption, match="No table names data by a path"):
        found(world.catalog())
    with pytest.raises(InvalidOption, match="may be in use"):
        found(files(world), older_than="1h")
