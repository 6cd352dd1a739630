"""What is pinned, and which pins there are."""

from __future__ import annotations

from typing import Any

from .world import World, rows


def pins(world: World, **options: Any) -> dict[tuple[str, str], dict[str, Any]]:
    """The rows of ``pins`` by writer and name."""
    return {(row["writer"], row["name"]): row for row in rows(world.snapshot(**options), "pins")}
