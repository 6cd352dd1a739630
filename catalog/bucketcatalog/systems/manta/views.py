"""The four tables of the RFD as views, under their names and with their columns in their order, and what is asked of them all together.

Source: RFD 149. A bucket or object that ended is a tombstone of the core's tables: the deleted tables of the RFD are views on these.
"""

from __future__ import annotations

from ...query.views import SqlView, View
from .payloads import OBJECT
from .placement import DIGITS
from .placement import TABLE as PLACEMENT


def _named(name: str, of: str, columns: tuple[str, ...]) -> View:
    return View(name, of, {column: column for column in columns})


BUCKET_COLUMNS = ("id", "name", "owner", "created")
VIEWS = (
    _named("manta_bucket", "buckets", BUCKET_COLUMNS),
    _named("manta_bucket_object", "objects", OBJECT),
    _named("manta_bucket_deleted_bucket", "deleted_buckets", (*BUCKET_COLUMNS, "deleted_at")),
    _named("manta_bucket_deleted_object", "deleted_objects", (*OBJECT, "deleted_at")),
)


_COMMITTED = {"writer": "_writer", "revision": "_revision"}


def _misplaced(kind: str, of: str, columns: str, text: str) -> str:
    """Rows of a view that a writer has committed where another's node is, and not before that was."""
    node = f"shiftright(CAST(conv(substr(sha2({text}, 256), 1, {DIGITS}), 16, 10) AS BIGINT) * ring.nodes, {4 * DIGITS})"
    return (
        f"SELECT '{kind}' AS kind, {columns}, placed.node, placed.writer AS placed_on, row.writer, row.revision "
        f"FROM {{{of}}} row CROSS JOIN (SELECT max(nodes) AS nodes FROM {{{PLACEMENT}}}) ring "
        f"JOIN {{{PLACEMENT}}} placed ON placed.node = {node} "
        "WHERE NOT (row.writer = placed.writer AND placed.given_to IS NULL) "
        "AND row.revision > coalesce(element_at(placed.before, row.writer), -1)"
    )


PLACED = (
    View("manta_bucket_writer", "buckets", {**{name: name for name in ("owner", "name", "id")}, **_COMMITTED}),
    View("manta_object_writer", "objects", {**{name: name for name in ("owner", "bucket_id", "name", "id")}, **_COMMITTED}),
    SqlView(
        "manta_misplaced",
        _misplaced(
            "bucket",
            "manta_bucket_writer",
            "row.owner, CAST(NULL AS STRING) AS bucket_id, row.name, row.id",
            "concat(row.owner, ':', row.name)",
        )
        + " UNION ALL "
        + _misplaced(
            "object",
            "manta_object_writer",
            "row.owner, row.bucket_id, row.name, row.id",
            "concat(row.owner, ':', row.bucket_id, ':', md5(row.name))",
        ),
    ),
)
"""Who has committed what, and what of it lies where another writer's nodes are. Of updates the writer of the version is told."""


def _usage(by: str, of: str, columns: str, source: str = "") -> SqlView:
    """Objects and bytes by columns: of live objects what they use, of deleted ones what their collection frees."""
    kind = "usage" if of == "objects" else "garbage"
    sums = "count(*) AS objects, sum(coalesce(content_length, 0)) AS bytes"
    return SqlView(f"manta_{kind}_by_{by}", f"SELECT {columns}, {sums} FROM {source or f'{{{of}}}'} GROUP BY {columns}")


def _totals(by: str, columns: str) -> SqlView:
    """The same of live objects by what sums are kept by: no object is read."""
    groups = ", ".join(f"element_at(group, '{column}') AS {column}" for column in columns.split(", "))
    each = ", ".join(f"CASE WHEN name = '{name}' THEN value ELSE 0 END AS {name}" for name in ("objects", "bytes"))
    return SqlView(
        f"manta_usage_by_{by}",
        f"SELECT {columns}, CAST(sum(objects) AS BIGINT) AS objects, CAST(sum(bytes) AS BIGINT) AS bytes "
        f"FROM (SELECT {groups}, {each} FROM {{sums}} WHERE table = 'objects') GROUP BY {columns}",
    )


def _by_shark(of: str) -> SqlView:
    """The same by where copies lie: each counts."""
    return _usage("shark", of, "shark", source=f"(SELECT explode(sharks) AS shark, content_length FROM {{{of}}})")


ACCOUNTS = (
    _totals("owner", "owner"),
    _totals("bucket", "owner, bucket_id"),
    _usage("content_type", "objects", "owner, content_type"),
    _by_shark("objects"),
    _usage("owner", "deleted_objects", "owner"),
    _usage("bucket", "deleted_objects", "owner, bucket_id"),
    _usage("content_type", "deleted_objects", "owner, content_type"),
    _by_shark("deleted_objects"),
)
"""Who uses how much, and what collection will free and where; see ``accounting`` for the same without Spark."""
