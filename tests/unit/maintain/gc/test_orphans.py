"""Orphans: what lies where data does and nobody names."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from bucketcatalog import Catalog, IncompatibleTable, InvalidOption
from bucketcatalog.maintain.gc.orphans import Orphan
from bucketcatalog.store.memory import MemoryStore

from ....kit.collecting import URL, an_id, thing
from ....kit.world import BUCKET, DAY, HOUR, OWNER, World, messages, obj, proto

FILES = proto(
    """message File {
      option (table) = {name: "iox.file" key: "chunk" data_reference: "path"};
      string chunk = 1;
      optional string path = 2;
    }"""
)


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


@pytest.mark.parametrize("later", ["", 'data_reference: "crate"', 'data_reference: "crate" data_reference: "path"'])
@pytest.mark.parametrize("met", [True, False])
def test_data_of_a_table_stays_where_a_later_definition_says_that_it_lies_elsewhere(world: World, later: str, met: bool) -> None:
    def known(reference: str) -> Catalog:
        options = f'{{ name: "c.parts" key: "crate" key: "path" {reference} }}'
        source = proto(f"message Part {{ option (table) = {options}; string crate = 1; string path = 2; }}")
        catalog = files(world)
        catalog.register(messages(source)["Part"])
        return catalog

    world.store.put(path("live"), b"")
    world.store.put(path("nobody's"), b"")
    first = world.writer("w", catalog=known('data_reference: "path"'))
    second = world.writer("v", catalog=known(later))
    row = {"crate": "a", "path": path("live")}
    if met:
        world.commit(first, ("put", "c.parts", row), ("put", "iox.file", {"chunk": "x", "path": path("x")}))
        with pytest.raises(IncompatibleTable, match=r"'c\.parts' is defined with two data references"):
            world.commit(second, ("put", "c.parts", {"crate": "b", "path": "z"}))
    else:
        with second.transaction() as tx:  # begun, and its table looked up, before the other commits
            tx.put("c.parts", {"crate": "b", "path": "z"})
            world.commit(first, ("put", "c.parts", row), ("put", "iox.file", {"chunk": "x", "path": path("x")}))
    world.clock.tick(30 * HOUR)
    if met:
        assert [orphan.name for orphan in found(world.catalog(), dry_run=False)] == [path("nobody's")]
    else:
        with pytest.raises(IncompatibleTable, match=r"'c\.parts' is defined with two data references"):
            found(world.catalog(), dry_run=False)
    assert path("live") in [info.name for info in world.store.list("w/default/data/")]


@pytest.mark.parametrize("url", ["lake/w/default/data/part/{id}", "{id}", "lake/w/default/data/part/iox.file/{id}.parquet"])
def test_a_path_in_the_catalog_names_what_lies_at_a_url_in_it(url: str, tmp_path: Path) -> None:
    source = """message Thing { option (table) = {name: "iox.thing" key: "chunk" data_reference: "id"};
      string chunk = 1; optional string id = 2; }"""
    catalog = Catalog(tmp_path / "lake")
    catalog.register(messages(FILES)["File"])
    catalog.register(messages(proto(source))["Thing"])
    with catalog.writer("w") as writer, writer.transaction() as tx:
        tx.put("iox.file", [{"chunk": "a", "path": path("live")}, {"chunk": "none"}])
        tx.put("iox.thing", {"chunk": "none"})
    for name in ("live", "orphan"):
        catalog.store.put(path(name), b"")
    options: Any = {
        "data_url": f"{tmp_path}/{url}",
        "older_than": "0s",
        "force": True,
        "dry_run": False,
        "writer": "maintainer-1",
    }
    time.sleep(0.01)  # a file system's time is coarse
    (orphan,) = found(catalog, **options)
    assert "orphan" in orphan.name and orphan.deleted
    assert [info.name for info in catalog.store.list("w/default/data/")] == [path("live")]
