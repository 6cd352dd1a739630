"""The four tables of the RFD as views, under their names and with their columns in their order, and what is asked of them all together.

Source: RFD 149. A bucket or object that ended is a tombstone of the core's tables: the deleted tables of the RFD are views on these.
"""

from __future__ import annotations

from ...query.views import View
from .payloads import OBJECT


def _named(name: str, of: str, columns: tuple[str, ...]) -> View:
    return View(name, of, {column: column for column in columns})


BUCKET_COLUMNS = ("id", "name", "owner", "created")
VIEWS = (
    _named("manta_bucket", "buckets", BUCKET_COLUMNS),
    _named("manta_bucket_object", "objects", OBJECT),
    _named("manta_bucket_deleted_bucket", "deleted_buckets", (*BUCKET_COLUMNS, "deleted_at")),
    _named("manta_bucket_deleted_object", "deleted_objects", (*OBJECT, "deleted_at")),
)
