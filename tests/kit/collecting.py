"""A world with data in it, which collections take away, and objects that have ended in it."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from bucketcatalog import Catalog
from bucketcatalog.maintain.gc.collect import Collected
from bucketcatalog.maintain.gc.reap import Reaped
from bucketcatalog.write.writer import Writer

from .world import BUCKET, HOUR, OWNER, World, obj

URL = "{owner}/{bucket_id}/{id}"
"""Where the data of objects lies, below some folder or bucket."""


def an_id(name: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, name))


def noting(asked: list[Any], column: str) -> Callable[[pa.Table], list[bool]]:
    """A deleter that deletes all that it is asked for, and notes what that column says of it."""

    def deleter(batch: pa.Table) -> list[bool]:
        asked.extend(batch[column].to_pylist())
        return [True] * len(batch)

    return deleter


def thing(name: str, data: str | None = None, **more: Any) -> dict[str, Any]:
    """An object whose data is called ``data``."""
    return obj(name, id=an_id(data or name), **more)


def reap(world: World, **options: Any) -> Reaped:
    """A run that reaps by the boundaries there are, and publishes one if it has to."""
    world.clock.tick()
    return world.catalog().reap(clock=world.clock, **{"dry_run": False, "writer": "maintainer-1", **options})


def reaped(world: World, **options: Any) -> Reaped:
    """The same, a run that publishes, and the wait before it."""
    reap(world)
    world.clock.tick(7 * HOUR)
    return reap(world, **options)


@dataclass
class Yard:
    """A world with data in it: ``data`` are the references whose data is there, ``refuses`` those that the deleter does not get at."""

    world: World = field(default_factory=World)
    data: set[tuple[str, str, str]] = field(default_factory=set)
    refuses: set[str] = field(default_factory=set)
    asked: list[list[str]] = field(default_factory=list)

    def put(self, writer: Writer, *things: dict[str, Any]) -> None:
        self.data |= {(row["owner"], row["bucket_id"], row["id"]) for row in things}
        self.world.commit(writer, ("put", "objects", list(things)))

    def deleter(self, batch: pa.Table) -> list[bool]:
        found = [tuple(row[name] for name in ("owner", "bucket_id", "id")) for row in batch.to_pylist()]
        assert len(set(found)) == len(found)
        self.asked.append([row[2] for row in found])
        gone = [row[2] not in self.refuses for row in found]
        self.data -= {row for row, is_gone in zip(found, gone, strict=True) if is_gone}
        return gone

    def collect(self, *, catalog: Catalog | None = None, **options: Any) -> Collected:
        self.world.clock.tick()
        given = {"dry_run": False, "deleter": self.deleter, "writer": "maintainer-1", **options}
        return (catalog or self.world.catalog()).collect(clock=self.world.clock, **given)

    def collected(self, **options: Any) -> Collected:
        """A run that publishes, the wait, and the run that collects."""
        self.collect(**options)
        self.world.clock.tick(7 * HOUR)
        return self.collect(**options)

    def has(self, name: str) -> bool:
        return (OWNER, BUCKET, an_id(name)) in self.data


def dead(yard: Yard, *found: str) -> Writer:
    """Objects that were put and deleted more than a day ago."""
    writer = yard.world.writer()
    yard.put(writer, *(thing(name) for name in found))
    yard.world.commit(writer, ("delete", "objects", [obj(name) for name in found]))
    yard.world.clock.tick(25 * HOUR)
    return writer
