"""What a reader that knows docs/spec alone is shown and has to say: a catalog with something of everything, and its answers compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa

from bucketcatalog import Catalog
from bucketcatalog.query.snapshot import Snapshot

from . import spec_reader
from .world import MINUTE, World, bucket, messages, obj, proto, rows, version

ON_REQUEST = ["_version", "_commit_timestamp", "_writer", "_revision"]
PARTS = proto(
    """
    enum Mode { MODE_UNSPECIFIED = 0; MODE_FAST = 1; }
    message Copy { string where = 1; optional int64 seen = 2 [(column) = {type: LOGICAL_TYPE_TIMESTAMP_MICROS}]; Mode mode = 3; }
    message Part {
      option (table) = { name: "test.parts" key: "volume" key: "label" key: "number" data_reference: "location" };
      sint64 volume = 1;
      bytes label = 2;
      uint32 number = 30;
      optional string location = 4;
      optional uint64 size = 5;
      Mode mode = 6;
      repeated Copy copies = 7;
      map<int64, string> notes = 8;
      bytes uid = 9 [(column) = {type: LOGICAL_TYPE_UUID}];
    }
    message Once {
      option (table) = { name: "test.once" key: "number" id: "token" tombstones: TOMBSTONES_DROPPED };
      int32 number = 1;
      optional string token = 2;
    }
    """
)
NEWER = proto(
    """
    message Once {
      option (table) = { name: "test.once" key: "number" id: "token" tombstones: TOMBSTONES_DROPPED };
      int32 number = 1;
      optional string token = 2;
      repeated int32 added = 3;
    }
    """
)
KEY = ("volume", "label", "number")


class Script:
    """Writes a catalog with something of everything in it; each step is a few transactions."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.writers = {}
        for name in ("node-1", "node-2", "slow"):
            catalog = world.catalog()
            catalog.register(messages(PARTS)["Part"])
            catalog.register(messages(PARTS)["Once"])
            self.writers[name] = world.writer(name, catalog=catalog)
        self.maintainers = {number: world.writer(f"maintainer-{number}") for number in (1, 2)}

    def commit(self, writer: str, *calls: tuple[Any, ...], **options: Any) -> Any:
        return self.world.commit(self.writers[writer], *calls, **options)

    def begin(self) -> None:
        """Buckets, objects one by one and in columns, updates, deletes of every kind, expectations, a purge."""
        self.commit(
            "node-1", ("put", "buckets", [bucket("b"), bucket("empty", region="eu")]), ("put", "objects", obj("a/1", etag="x"))
        )
        self.commit(
            "node-2", ("put", "objects", [obj(f"n/{n:03}", content_length=n, sharks=["dc:1", "dc:2"]) for n in range(100)])
        )
        self.commit(
            "node-2", ("put", "objects", obj("a/2", tags={"k": "v", "": "e"})), ("put", "objects", obj("a/2", etag="twice"))
        )
        look = self.world.snapshot()
        first = version(obj("a/1"), look)
        self.commit("node-1", ("update", "objects", obj("a/1", etag="y", _version=first)), ("delete", "objects", obj("a/2")))
        self.commit(
            "node-2", ("delete", "objects", obj("a/1"), {"expect": first}), ("put", "objects", obj("a/1"), {"expect": "absent"})
        )
        self.commit("node-1", ("update", "objects", obj("a/1", etag="late", _version=first)))
        self.commit(
            "node-2", ("put", "objects", obj("a/3"), {"expect": first}), ("delete", "objects", obj("never"), {"expect": first})
        )
        moved = version(obj("a/3"), self.world.snapshot())
        self.commit("node-1", ("delete", "objects", obj("a/3", _version=moved), {"moved": True}), ("put", "objects", obj("a/4")))
        gone = version(obj("n/007"), self.world.snapshot())
        self.commit(
            "node-2", ("delete", "objects", [obj("n/007"), obj("n/008")]), ("purge", "objects", obj("n/007", _version=gone))
        )
        parts = [{"volume": n, "label": bytes([0, n + 9]), "number": 1 << 31, "mode": "MODE_FAST"} for n in (-3, 5, 0)]
        parts[0] |= {"copies": [{"where": "x", "seen": 7}, {"mode": 9}], "notes": {-1: "minus", 4: "four"}, "uid": UUID(int=3)}
        self.commit("slow", ("put", "test.parts", parts), ("put", "test.once", {"number": -1, "token": "t"}))
        self.commit("slow", ("delete", "test.once", {"number": -1}), ("delete", "test.parts", {k: parts[2][k] for k in KEY}))
        more = pa.Table.from_pylist([{"volume": 1 << 40, "label": b"\x00\x80", "number": n, "size": n << 50} for n in range(70)])
        self.commit("slow", ("put", "test.parts", more))
        self.tag(1, "first", version="node-1@0")
        self.tag(1, "lately")
        self.tag(2, "first", replace=True)
        self.maintainers[1].drop_tag("lately")
        self.writers["slow"].pin("all", version=":")
        self.writers["slow"].pin("dropped")
        self.writers["node-2"].pin("all", version="node-1@0")
        self.maintainers[2].pin("all")
        self.writers["slow"].unpin("dropped")

    def tag(self, maintainer: int, name: str, **options: Any) -> None:
        self.world.clock.tick()
        self.maintainers[maintainer].tag(name, **options)

    def go_on(self) -> None:
        """What comes after a checkpoint: rows that lie below it change, others are new."""
        self.commit("node-1", ("put", "objects", [obj("n/003", etag="z"), obj("new")]), ("delete", "objects", obj("n/004")))
        seen = version(obj("n/005"), self.world.snapshot())
        self.commit("node-2", ("update", "objects", obj("n/005", content_length=555, _version=seen)))
        self.commit("node-1", ("delete", "objects", obj("n/005", _version=seen)), ("delete", "buckets", bucket("b")))
        self.commit("node-1", ("put", "buckets", bucket("b", region="us")))
        catalog = self.world.catalog()
        catalog.register(messages(NEWER)["Once"])
        self.writers["node-3"] = self.world.writer("node-3", catalog=catalog)
        self.commit("node-3", ("put", "test.once", {"number": 2, "added": [1, 2]}))
        self.tag(1, "first", version="node-2@0", replace=True)
        self.tag(2, "nothing", version=":")
        self.writers["slow"].pin("all")
        self.writers["slow"].pin("dropped", version="node-2@0")
        self.writers["node-2"].unpin("all")

    def arrive_late(self) -> None:
        """Transactions that were committed before what others have checkpointed, and arrive now."""
        behind = self.world.clock.now - 5 * MINUTE
        there, self.world.clock.now = self.world.clock.now, behind
        catalog = Catalog(self.world.store)
        with catalog.writer("late", clock=self.world.clock) as writer, writer.transaction() as tx:
            tx.put("objects", [obj("never"), obj("n/008", etag="between"), obj("new", etag="older")])
            tx.delete("objects", obj("n/010"))
        self.world.clock.now = there


def copied(world: World, folder: Path) -> Path:
    """The catalog as files, as the specification has it."""
    for info in world.store.list(""):
        path = folder / info.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(world.store.get(info.name))
    return folder


def compare(answer: spec_reader.Answer, snapshot: Snapshot) -> int:
    """Assert that both say the same of every table; returns how many rows that were."""
    assert set(answer.tables) <= set(snapshot.definitions)
    count = 0
    for name in answer.tables:
        table = snapshot.table(name)
        columns = [column.name for column in table.shown_columns]
        live = rows(snapshot, name, [*columns, *ON_REQUEST])
        assert answer.live(name) == live
        if table.keeps_tombstones:
            expected = rows(snapshot, f"deleted_{name}", [*columns, *ON_REQUEST, "deleted_at"])
            assert answer.tombstones(name) == expected
            count += len(expected)
        count += len(live)
    conflicts = answer.conflicts()
    told = [name for name in conflicts[0] if name != "key"] if conflicts else ["event"]
    expected = [{name: row[name] for name in told} for row in conflicts]
    assert by_text(expected) == by_text(rows(snapshot, "conflicts", told))
    assert answer.tags() == rows(snapshot, "tags")
    assert answer.pins() == rows(snapshot, "pins", ["name", "writer", "version", "commit_timestamp", "revision"])
    return count


def by_text(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(found, key=str)
