"""The columns of the tables about the catalog itself."""

from __future__ import annotations

import pyarrow as pa

from ..model.tables import TIMESTAMP
from ..state.conflicts import CONFLICTS
from ..state.sums import SUMS
from .damage import DAMAGE

_MAP = pa.map_(pa.string(), pa.string())
SCHEMAS = {
    "log": pa.schema(
        [
            pa.field("writer", pa.string(), False),
            pa.field("revision", pa.int64(), False),
            pa.field("uuid", pa.string(), False),
            pa.field("commit_timestamp", TIMESTAMP, False),
            pa.field("operation", pa.string()),
            pa.field("metadata", _MAP),
            pa.field("app_id", pa.string()),
            pa.field("app_version", pa.int64()),
            pa.field("events", pa.int64(), False),
            pa.field("bytes", pa.int64(), False),
            pa.field("parents", pa.list_(pa.string())),
            pa.field("version", pa.string(), False),
        ]
    ),
    "writers": pa.schema(
        [
            pa.field("writer", pa.string(), False),
            pa.field("role", pa.string(), False),
            pa.field("revision", pa.int64(), False),
            pa.field("heads", pa.int64(), False),
            pa.field("last_commit_timestamp", TIMESTAMP, False),
            pa.field("uncovered", pa.int64(), False),
        ]
    ),
    "checkpoints": pa.schema(
        [
            pa.field("writer", pa.string(), False),
            pa.field("revision", pa.int64(), False),
            pa.field("uuid", pa.string(), False),
            pa.field("as_of", TIMESTAMP, False),
            pa.field("created", TIMESTAMP, False),
            pa.field("writers", pa.int64(), False),
            pa.field("rows", pa.int64(), False),
            pa.field("bytes", pa.int64(), False),
            pa.field("bytes_written", pa.int64(), False),
            pa.field("bytes_reused", pa.int64(), False),
            pa.field("segments", pa.int64(), False),
            pa.field("in_use", pa.bool_(), False),
            pa.field("version", pa.string(), False),
        ]
    ),
    "segments": pa.schema(
        [
            pa.field("checkpoint", pa.string(), False),
            pa.field("name", pa.string(), False),
            pa.field("table", pa.string(), False),
            pa.field("class", pa.string(), False),
            pa.field("purpose", pa.string(), False),
            pa.field("run", pa.string()),
            pa.field("level", pa.int64(), False),
            pa.field("rows", pa.int64(), False),
            pa.field("blocks", pa.int64(), False),
            pa.field("bytes", pa.int64()),
        ]
    ),
    "conflicts": CONFLICTS,
    "sums": SUMS,
    "forks": pa.schema(
        [
            pa.field("writer", pa.string(), False),
            pa.field("revision", pa.int64(), False),
            pa.field("uuids", pa.list_(pa.string()), False),
            pa.field("open", pa.bool_(), False),
        ]
    ),
    "tables": pa.schema(
        [
            pa.field("table", pa.string(), False),
            pa.field("key", pa.list_(pa.string())),
            pa.field("id", pa.string()),
            pa.field("data_reference", pa.list_(pa.string())),
            pa.field("parent", pa.string()),
            pa.field("columns", pa.list_(pa.string())),
            pa.field("tombstones", pa.bool_()),
            pa.field("contradiction", pa.string()),
        ]
    ),
    "tags": pa.schema(
        [
            pa.field("name", pa.string(), False),
            pa.field("version", pa.string(), False),
            pa.field("created", TIMESTAMP, False),
            pa.field("dropped", pa.bool_(), False),
            pa.field("commit_timestamp", TIMESTAMP, False),
            pa.field("writer", pa.string(), False),
            pa.field("revision", pa.int64(), False),
            pa.field("replaced_version", pa.string()),
            pa.field("replaced_commit_timestamp", TIMESTAMP),
            pa.field("replaced_writer", pa.string()),
        ]
    ),
    "damage": DAMAGE,
}
METADATA_TABLES = frozenset(SCHEMAS)


def metadata_schema(name: str) -> pa.Schema:
    """The columns of a table about the catalog."""
    return SCHEMAS[name]
