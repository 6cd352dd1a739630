"""The tables and columns that the histories use."""

from __future__ import annotations

import datetime

import pyarrow as pa

DATABASE = "db"
KEYS = {"objects": ("owner", "bucket_id", "name"), "buckets": ("owner", "name"), "harvest_errors": ("source", "path")}
"""The key columns of the tables that the histories use."""

PINNED = {
    "objects": ("owner", "bucket_id", "name", "id"),
    "buckets": ("owner", "name", "id"),
    "harvest_errors": ("source", "path"),
}
"""The columns that an UPDATE does not change: key, id and data reference."""

DROPPING = frozenset({"harvest_errors"})
"""The tables that keep no tombstones."""

CREATED = {"objects": "created", "buckets": "created"}
"""The column that holds the commit time of the version's PUT where its row lacks it, by table."""

MODIFIED = {"objects": "modified", "harvest_errors": "seen"}
"""The column that holds the commit time of whatever wrote the row where that lacks it, by table."""

COLUMNS = {
    "objects": ("owner", "bucket_id", "name", "id", "content_length", "content_type", "created", "modified"),
    "buckets": ("owner", "name", "id", "region", "created"),
    "harvest_errors": ("source", "path", "code", "message", "seen"),
}
TIME = pa.timestamp("us", tz="UTC")
TIMES = {*CREATED.values(), *MODIFIED.values()}
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
MICROSECOND = datetime.timedelta(microseconds=1)
