"""What tests of clones share: a world that is worth a copy, making one, and looking at two."""

from __future__ import annotations

from typing import Any

from bucketcatalog.maintain.clone import Cloned
from bucketcatalog.maintain.clone import clone as clone_to

from .world import World, bucket, obj, rows

MAINTAINER = "maintainer-test"
TABLES = ("objects", "deleted_objects", "buckets", "harvest_errors", "conflicts")


def clone(world: World, target: Any, version: str | None = None, **options: Any) -> Cloned:
    world.clock.tick()
    catalog = world.catalog()
    with world.writer(MAINTAINER, catalog=catalog) as held:
        return clone_to(catalog.database("default"), held, target, None, version, now=world.clock, **options)


def at(world: World, store: Any) -> World:
    """The world of another store, by the same clock."""
    other = World(store)
    other.clock = world.clock
    return other


def content(store: Any) -> dict[str, bytes]:
    return {info.name: store.get(info.name) for info in store.list("")}


def shown(world: World, **options: Any) -> dict[str, Any]:
    """Everything that a snapshot shows of rows, versions and results."""
    snapshot = world.snapshot(**options)
    wanted = {"objects": [*snapshot.table("objects").by_name, "_version", "_writer", "_revision", "_commit_timestamp"]}
    return {table: rows(snapshot, table, wanted.get(table)) for table in TABLES}


def copied_world() -> World:
    """Two writers and a compactor; tombstones, stubs, a conflict, an application's result, a tag, checkpoints and a tail."""
    world = World()
    with world.writer() as w, world.writer("v") as v, world.writer("compactor-1") as compactor, world.writer(MAINTAINER) as held:
        world.commit(w, ("put", "objects", [obj(f"{n:03}", content_length=n) for n in range(100)]), app_id="job", app_version=3)
        world.commit(v, ("put", "buckets", bucket("b")), ("put", "objects", obj("005", etag="v")))
        compactor.checkpoint(scope="all")
        world.commit(v, ("delete", "objects", [obj("007"), obj("never")]))
        world.clock.tick()
        held.tag("before")
        world.commit(w, ("put", "objects", obj("008"), {"expect": "absent"}), ("put", "objects", obj("new")))
    return world
