"""Whatever a user can ask of a catalog, and the same catalog without its checkpoints."""

from __future__ import annotations

from typing import Any

from ...kit.world import BUCKET, OWNER, World, obj, rows


def without_checkpoints(world: World) -> World:
    """The same store with its transactions only."""
    plain = World()
    plain.clock.now = world.clock.now
    for info in world.store.list(""):
        if info.name.endswith(".txn"):
            plain.store.put(info.name, world.store.get(info.name))
    return plain


def answers(world: World, **options: Any) -> dict[str, Any]:
    """Everything that a user can ask of a snapshot."""
    snapshot = world.snapshot(**options)
    wide = ["name", "id", "content_length", "created", "modified", "_version", "_commit_timestamp", "_writer", "_revision"]
    found: dict[str, Any] = {
        "version": snapshot.version,
        "objects": rows(snapshot, "objects", wide),
        "deleted": rows(snapshot, "deleted_objects", [*wide, "deleted_at"]),
        "buckets": rows(snapshot, "buckets"),
        "deleted buckets": rows(snapshot, "deleted_buckets"),
        "conflicts": sorted(map(str, rows(snapshot, "conflicts"))),
        "forks": rows(snapshot, "forks"),
        "log": rows(snapshot, "log"),
        "list": snapshot.list("objects", owner=OWNER, bucket_id=BUCKET, delimiter="/").groups,
    }
    found["get"] = {row["name"]: snapshot.get("objects", **obj(row["name"])) for row in found["objects"]}
    return found
