"""A small catalog with everything in it, of which one writer's files will be forged, and what the others' part of it is.

It is made in memory, by a clock and with random bytes that are the same each time, so that a case can be repeated by its number.
No key of the others is one that ``mallory`` has used: what she has written, and whether it is there, changes none of their rows.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest

from bucketcatalog.format.definitions import tables_of
from bucketcatalog.format.records import Link, Void
from bucketcatalog.format.transactions import decode_transaction
from bucketcatalog.model import paths
from bucketcatalog.model.tables import Table
from bucketcatalog.model.uuids import uuid_bytes
from bucketcatalog.write.writer import Writer

from ..collecting import an_id
from ..corrupting import of_segment
from ..world import BUCKET, DAY, HOUR, MINUTE, OWNER, SECOND, World, messages, proto

FORGER = "mallory"
DATABASE = "default"
OTHERS = ("alice", "bob", "compactor-1", "maintainer-1")
TABLES = ("buckets", "objects", "lab.things", "mallory.things")
VICTIM = "victim"
"""What the names of all others' rows begin with, and in a forged file mean that it is about one of them."""
_DECLARED = proto(
    """
    message Part { optional string text = 1; repeated int64 numbers = 2; }
    message Thing {
      option (table) = { name: "lab.things" key: "name" id: "id" sums: { name: "total" field: "size" group: "kind" } };
      string name = 1;
      optional string id = 2;
      string kind = 3;
      optional int64 size = 4;
      repeated Part parts = 5;
      map<string, int64> by_name = 6;
      optional double ratio = 7;
      optional bytes raw = 8;
    }
    """
)
_HERS = proto(
    """
    message Own {
      option (table) = { name: "mallory.things" key: "name" orders: { name: "size" fields: "size" } };
      string name = 1;
      optional int64 size = 2;
      repeated string labels = 3;
    }
    """
)


@dataclass(frozen=True)
class Base:
    """The catalog's objects by name, and their times; ``now`` is when it was finished."""

    files: dict[str, bytes]
    modified: dict[str, int]
    now: int

    def of(self, writer: str, ending: str = "") -> list[str]:
        """The names of what a writer has, those that end so."""
        return sorted(name for name in self.files if name.startswith(f"{writer}/") and name.endswith(ending))

    def write(self, folder: Path) -> None:
        """Lay it into a folder."""
        for name, data in self.files.items():
            self.restore(folder, name, data)

    def restore(self, folder: Path, name: str, data: bytes | None = None) -> None:
        """Put back what the folder had under a name, or nothing; other bytes are as old as the catalog."""
        path = folder / name
        found = self.files.get(name) if data is None else data
        if found is None:
            path.unlink(missing_ok=True)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(found)
        at = self.modified.get(name, self.now) * 1_000
        os.utime(path, ns=(at, at))


def thing(name: str, number: int) -> dict[str, Any]:
    """A row of the table with columns of every shape."""
    return {
        "name": name,
        "id": f"id-{number}",
        "kind": "ab"[number % 2],
        "size": number * 1000,
        "parts": [{"text": f"t{number}", "numbers": list(range(number % 4))}],
        "by_name": {f"k{n}": n for n in range(number % 3)},
        "ratio": number / 7,
        "raw": bytes([number % 256]) * 5,
    }


def stored_object(name: str, number: int, bucket_id: str = BUCKET) -> dict[str, Any]:
    """A row of objects whose data has a name of its own."""
    return {
        "owner": OWNER,
        "bucket_id": bucket_id,
        "name": name,
        "id": an_id(name),
        "content_length": number,
        "headers": {"a": f"h{number}"},
        "content_md5": bytes([number % 256]) * 16,
        "tags": {"t": str(number)},
    }


@contextmanager
def _made_alike(world: World) -> Iterator[None]:
    """The time and random bytes are the same each time, and small runs become levels and segments as large ones do."""
    random = Random(17)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "urandom", random.randbytes)
        patch.setattr("bucketcatalog.clock.now_us", world.clock)
        patch.setattr("bucketcatalog.clock.monotonic", lambda: world.clock() / SECOND)
        patch.setattr("bucketcatalog.checkpoint.plan.INLINE_BYTES", 10_000)
        patch.setattr("bucketcatalog.checkpoint.plan.SMALL_ROWS", 8)
        yield


def made() -> Base:
    """The base catalog; the same bytes each time."""
    world = World()
    store = world.store
    with _made_alike(world):
        _fill(world)
        infos = list(store.list(""))
        return Base({i.name: store.get(i.name) for i in infos}, {i.name: i.modified_us for i in infos}, world.clock.now)


def _objects(prefix: str, count: int, start: int = 0, bucket_id: str = BUCKET) -> list[dict[str, Any]]:
    return [stored_object(f"{prefix}-{n:04}", n, bucket_id) for n in range(start, start + count)]


def _keys(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: row[name] for name in ("owner", "bucket_id", "name")} for row in rows]


def _things(prefix: str, count: int, start: int = 0) -> list[dict[str, Any]]:
    return [thing(f"{prefix}-{n:04}", n) for n in range(start, start + count)]


def _messages() -> list[Any]:
    return [messages(_DECLARED)["Thing"], messages(_HERS)["Own"]]


@cache
def declared() -> list[Table]:
    """The tables that are not the core's."""
    return tables_of(_messages())


def _opened(world: World, name: str) -> Writer:
    catalog = world.catalog()
    catalog.register(_messages())
    return world.writer(name, catalog=catalog)


def _fill(world: World) -> None:
    alice, bob, mallory = (_opened(world, name) for name in ("alice", "bob", FORGER))
    compactor, maintainer = _opened(world, "compactor-1"), _opened(world, "maintainer-1")
    world.commit(alice, ("put", "buckets", {"owner": OWNER, "name": f"{VICTIM}-bucket", "id": BUCKET, "region": "here"}))
    world.commit(alice, ("put", "objects", _objects(f"{VICTIM}-a", 80)), ("put", "lab.things", _things(f"{VICTIM}-a", 5)))
    world.commit(bob, ("put", "objects", _objects(f"{VICTIM}-b", 20)), ("put", "lab.things", _things(f"{VICTIM}-b", 70)))
    world.commit(mallory, ("put", "objects", _objects("m-a", 70)), ("put", "lab.things", _things("m-a", 70)))
    world.commit(alice, ("delete", "objects", _keys(_objects(f"{VICTIM}-a", 4))))
    world.clock.tick(HOUR)
    compactor.checkpoint(scope="all")
    maintainer.tag("first")
    world.commit(alice, ("update", "objects", _objects(f"{VICTIM}-a", 2, 10)))
    world.commit(bob, ("put", "objects", _objects(f"{VICTIM}-c", 3)))
    world.commit(mallory, ("put", "lab.things", _things("m-b", 4)))
    world.clock.tick(MINUTE)
    compactor.checkpoint(scope="all")  # a level of its own
    stray = world.commit(bob, ("put", "objects", _objects("stray", 1)))
    head = next(h for h in bob._database.files.transactions("bob") if h.uuid == uuid_bytes(stray.uuid))
    name = paths.transaction("bob", DATABASE, head)
    found = decode_transaction(world.store.get(name), name)
    maintainer.void([Void("bob", Link(found.revision, found.uuid, found.digest))])
    world.clock.tick(3 * DAY)
    catalog = world.catalog()
    catalog.prune("36h", dry_run=False, writer="maintainer-2", clock=world.clock)
    catalog.collect(dry_run=False, writer="maintainer-2", deleter=lambda rows: [True] * len(rows), clock=world.clock)
    maintainer.tag("recent")
    _recent(world, alice, bob, mallory)
    for writer in (alice, bob, mallory, compactor, maintainer):
        writer.close()
    _end_of_forger(world)


def _recent(world: World, alice: Writer, bob: Writer, mallory: Writer) -> None:
    """What no checkpoint of everyone covers, of which some is in the writers' own checkpoints."""
    hers = [{"name": f"m-{n:04}", "size": n, "labels": ["x"] * (n % 3)} for n in range(80)]
    bucket = {"owner": OWNER, "name": "m-bucket", "tags": {"k": "v"}}
    world.commit(
        mallory, ("put", "buckets", bucket), ("put", "mallory.things", hers[:3]), ("put", "lab.things", _things("m-c", 2))
    )
    world.commit(mallory, ("put", "mallory.things", hers), ("put", "objects", _objects("m-d", 70)), app_id="app", app_version=3)
    world.commit(alice, ("put", "objects", _objects(f"{VICTIM}-d", 70)), app_id="app", app_version=1)
    world.commit(mallory, ("delete", "objects", _keys(_objects("m-a", 3))), ("update", "objects", _objects("m-d", 2, 5)))
    mallory.checkpoint()
    world.commit(alice, ("put", "lab.things", _things(f"{VICTIM}-d", 3)), operation="by hand", metadata={"why": "so"})
    alice.checkpoint()
    world.commit(alice, ("delete", "objects", _keys(_objects(f"{VICTIM}-d", 3))), ("put", "objects", _objects(f"{VICTIM}-e", 3)))
    world.commit(bob, ("update", "objects", _objects(f"{VICTIM}-b", 3)), ("delete", "lab.things", [{"name": f"{VICTIM}-b-0002"}]))
    world.commit(mallory, ("put", "mallory.things", hers[:70]), ("put", "objects", _objects("m-e", 2)))
    mallory.tag("hers")
    mallory.checkpoint()
    world.commit(mallory, ("put", "objects", _objects("m-f", 3)), ("delete", "mallory.things", [{"name": "m-0001"}]))


def _end_of_forger(world: World) -> None:
    """A transaction whose events lie in a segment, and a timeline that is forked after it."""
    with _opened(world, FORGER) as writer:
        world.commit(writer, ("put", "objects", _objects("m-s", 70)))
    of_segment(world, max(info.name for info in world.store.list(f"{FORGER}/") if info.name.endswith(".txn")))
    left, right = _opened(world, FORGER), _opened(world, FORGER)
    world.commit(left, ("put", "objects", _objects("m-l", 2)))
    world.commit(right, ("put", "objects", _objects("m-r", 66)))
