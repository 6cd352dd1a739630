"""Reads what fsspec's file systems tell of their files, which each of them says in words of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from .object_names import is_hidden, is_unicode

_TIME_KEYS = ("LastModified", "last_modified", "mtime", "modified", "updated", "created")


def entries(found: Iterable[Mapping[str, Any]], directory: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """What an ``ls`` of ``directory`` gave, by the part of each name below it, directories with a ``/``; the rest cannot be objects."""
    for info in found:
        path = str(info["name"]).rstrip("/")
        part = path[len(directory) + 1 :]
        if not path.startswith(directory + "/") or "/" in part or not _can_be_shown(part):
            continue
        if info["type"] == "directory":
            yield part + "/", info
        elif info["type"] == "file":
            yield part, info


def flat_entries(found: Mapping[str, Mapping[str, Any]], directory: str, prefix: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """What a ``find`` below ``directory`` gave, by full names, which begin with ``prefix``."""
    for path, info in found.items():
        below = path[len(directory) + 1 :]
        if path.startswith(directory + "/") and not below.endswith("/") and _can_be_shown(below.rpartition("/")[2]):
            yield prefix + below, info


def modified_us(info: Mapping[str, Any]) -> int:
    """When the store says the file was last written, in microseconds since the epoch; 0 where it does not say."""
    for key in _TIME_KEYS:
        value = info.get(key)
        if isinstance(value, str):
            try:
                value = datetime.fromisoformat(value)
            except ValueError:
                continue
        if isinstance(value, datetime):
            value = (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
        if isinstance(value, int | float):
            return round(value * 1_000_000)
    return 0


def _can_be_shown(part: str) -> bool:
    return bool(part) and not is_hidden(part) and is_unicode(part)
