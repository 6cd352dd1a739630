"""The table ``log``: every commit, and what it says that it has done.

A commit says it as its metrics, numbers by name. Those of a harvest are columns, under the names that ``WORK`` lists: what it has done
since its commit before, and from when until when.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from ..format.transactions import Transaction
from ..log.between import still_there
from ..model.tables import TIMESTAMP
from ..model.uuids import uuid_text
from ..state.contents import Contents

HARVEST = "harvest"
WORK = (
    "created",
    "created_bytes",
    "overwritten",
    "overwritten_bytes",
    "updated",
    "deleted",
    "deleted_bytes",
    "unchanged",
    "unchanged_bytes",
)
"""The metrics of a harvest that are columns, beside ``started`` and ``ended``, which are microseconds since the epoch."""
_FIRST_TIME, _LAST_TIME = -62_135_596_800_000_000, 253_402_300_799_999_999
_TEXTS, _NUMBERS = pa.map_(pa.string(), pa.string()), pa.map_(pa.string(), pa.int64())
LOG = pa.schema(
    [
        pa.field("writer", pa.string(), False),
        pa.field("revision", pa.int64(), False),
        pa.field("uuid", pa.string(), False),
        pa.field("commit_timestamp", TIMESTAMP, False),
        pa.field("operation", pa.string()),
        pa.field("metadata", _TEXTS),
        pa.field("metrics", _NUMBERS),
        pa.field("app_id", pa.string()),
        pa.field("app_version", pa.int64()),
        pa.field("events", pa.int64(), False),
        pa.field("bytes", pa.int64(), False),
        pa.field("parents", pa.list_(pa.string())),
        pa.field("version", pa.string(), False),
        pa.field("source", pa.string()),
        pa.field("bucket", pa.string()),
        pa.field("started", TIMESTAMP),
        pa.field("ended", TIMESTAMP),
        pa.field("seconds", pa.float64()),
        *(pa.field(name, pa.int64()) for name in WORK),
    ]
)


def commits(contents: Contents) -> pa.Table:
    """The rows of ``log``, the oldest first."""
    return pa.Table.from_pylist([_row(one) for one in still_there(contents.files, contents.view)], schema=LOG)


def _row(one: Transaction) -> dict[str, Any]:
    return {
        "writer": one.writer,
        "revision": one.revision,
        "uuid": uuid_text(one.uuid),
        "commit_timestamp": one.commit_time,
        "operation": "(set aside)" if one.set_aside else "(cannot be read)" if one.lost else one.operation or None,
        "metadata": sorted(one.metadata.items()) or None,
        "metrics": sorted(one.metrics.items()) or None,
        "app_id": one.application.id if one.application else None,
        "app_version": one.application.version if one.application else None,
        "events": one.events,
        "bytes": one.size,
        "parents": [uuid_text(link.uuid) for link in one.parents],
        "version": f"{one.writer}@{one.revision}",
        **(_work(one.metadata, one.metrics) if one.operation == HARVEST else {}),
    }


def _work(metadata: Mapping[str, str], metrics: Mapping[str, int]) -> dict[str, Any]:
    """What a harvest says, as columns; anybody can have written it, so what is no time of a calendar is none here."""
    started, ended = (_time(metrics.get(name)) for name in ("started", "ended"))
    return {
        "source": metadata.get("source"),
        "bucket": metadata.get("bucket"),
        "started": started,
        "ended": ended,
        "seconds": None if started is None or ended is None else (ended - started) / 1_000_000,
        **{name: metrics.get(name) for name in WORK},
    }


def _time(given: int | None) -> int | None:
    return given if given is not None and _FIRST_TIME <= given <= _LAST_TIME else None
