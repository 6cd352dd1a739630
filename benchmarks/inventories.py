"""The world's rows as inventory tables of the peer's, made once and on demand; not to be written to."""

from __future__ import annotations

from pathlib import Path

from . import dataset, peer
from .world import World

SMALL_FILES = 8 << 20


def as_text(world: World) -> Path:
    """With uuids as text, as the catalog shows them."""
    return world.once("delta", lambda path: peer.build(path, dataset.as_text(world.rows)))


def as_bytes(world: World) -> Path:
    """With uuids as 16 bytes."""
    return world.once("delta-binary", lambda path: peer.build(path, world.rows))


def in_small_files(world: World) -> Path:
    """As text, in files of about ``SMALL_FILES`` bytes."""
    return world.once("delta-small", lambda path: peer.build(path, dataset.as_text(world.rows), target_file_size=SMALL_FILES))
