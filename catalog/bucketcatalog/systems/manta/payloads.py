"""What an operation answers: rows of the core tables as the service sends them.

A bucket is ``id``, ``owner``, ``name`` and ``created``; an object the fourteen columns of the RFD, of which ``content_md5`` is base64 and
``sharks`` are pairs. Times are datetimes in UTC. Where the tables say nothing headers and lists are empty, and all else is None.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...query.listing import Page
from .names import md5_text, shark_pairs

BUCKET_KEY, OBJECT_KEY = ("owner", "name"), ("owner", "bucket_id", "name")
BUCKET = ("id", "owner", "name", "created")
OBJECT = (
    "id",
    "name",
    "owner",
    "bucket_id",
    "created",
    "modified",
    "creator",
    "content_length",
    "content_md5",
    "content_type",
    "headers",
    "roles",
    "sharks",
    "properties",
)
"""The columns of ``manta_bucket_object``, in the RFD's order."""
TIMES = ("created", "modified")
"""Those of them that the commit says."""


@dataclass(frozen=True)
class Listing:
    """A page of a listing, in byte order: rows as payloads, groups of names that share what lies before a delimiter, and the marker of the
    next page, None on the last."""

    rows: Sequence[dict[str, Any]]
    groups: Sequence[dict[str, str]]
    next_marker: str | None


def bucket_payload(row: Mapping[str, Any]) -> dict[str, Any]:
    """A bucket."""
    return {name: row[name] for name in BUCKET}


def object_payload(row: Mapping[str, Any]) -> dict[str, Any]:
    """An object."""
    payload = {name: row.get(name) for name in OBJECT}
    payload["content_md5"] = md5_text(payload["content_md5"])
    payload["headers"] = dict(payload["headers"] or {})
    payload["roles"] = list(payload["roles"] or ())
    payload["sharks"] = shark_pairs(payload["sharks"])
    return payload


def deleted_payload(row: Mapping[str, Any]) -> dict[str, Any]:
    """What is told of an object that was deleted: what a collector needs to know."""
    told = {name: row[name] for name in ("id", "owner", "bucket_id", "name", "content_length")}
    return {**told, "shark_count": len(row["sharks"] or ())}


def listing(page: Page, payload: Any) -> Listing:
    """A page of the engine's. The marker of a group is the group: a page after it passes over what is in it, and nothing else."""
    groups = [{"name": str(group), "type": "group", "nextMarker": str(group)} for group in page.groups]
    rows = [payload(row) for row in page.rows.to_pylist()]
    return Listing(rows, groups, None if page.next_marker is None else str(page.next_marker))
