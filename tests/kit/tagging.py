"""What is tagged, and which tags there are."""

from __future__ import annotations

from typing import Any

from bucketcatalog.write.writer import Writer

from .world import World, obj, rows


def put(world: World, writer: Writer, name: str) -> str:
    """Commit an object; the version that shows it."""
    world.commit(writer, ("put", "objects", obj(name)))
    return world.snapshot().version


def tags(world: World, **options: Any) -> dict[str, dict[str, Any]]:
    """The rows of ``tags`` by name."""
    return {row["name"]: row for row in rows(world.snapshot(**options), "tags")}
