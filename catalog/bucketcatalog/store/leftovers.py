"""Temporary files in a directory that is a store: what puts leave behind whose process died."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from .base import UnfinishedPut
from .object_names import TEMPORARY


def leftovers(root: str) -> Iterator[UnfinishedPut]:
    """Every temporary file below ``root``, of puts that are under way too: how old they are tells the two apart."""
    for path in Path(root).rglob(f"{TEMPORARY}*"):
        with suppress(FileNotFoundError):
            yield UnfinishedPut(path.relative_to(root).as_posix(), path.stat().st_mtime_ns // 1_000)


def remove(root: str, put: UnfinishedPut) -> None:
    """Remove a temporary file; one that is gone already is none. ``ValueError`` for any other file."""
    if not put.name.rpartition("/")[2].startswith(TEMPORARY):
        raise ValueError(f"{put.name!r} is no temporary file")
    (Path(root) / put.name).unlink(missing_ok=True)
