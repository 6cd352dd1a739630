"""The questions as views of SQL, over the tables as they are attached to Spark: shown where they are asked for.

A view is given nothing: what functions take stands in the condition, the ORDER BY and the LIMIT of the query. So ``find`` answers ``top``,
and, with a table of prices, ``cost`` too. Beside the tables two reads of columns that are shown on request alone are named in braces:
``{begun}`` and ``{ended}``, of which ``READS`` says what they are.
"""

from __future__ import annotations

from ..query.views import SqlView
from .ages import EDGES
from .duplicates import WEAK
from .ended import WORDS

READS = {
    "begun": ("objects", ("owner", "bucket_id", "content_length", "_commit_timestamp")),
    "ended": (
        "deleted_objects",
        (
            *("owner", "bucket_id", "name", "content_length", "deleted_at", "_commit_timestamp"),
            *("_version", "_ended_by", "_end_writer", "_end_revision", "_end_operation"),
        ),
    ),
}
"""By what stands in braces the table that is read, and the columns of it."""
_DAY = 86_400_000_000
_SUMS = "count(*) AS objects, sum(CAST(coalesce(content_length, 0) AS DECIMAL(19, 0))) AS bytes"
_BUCKET = "LEFT JOIN {buckets} b ON b.owner = o.owner AND b.id = o.bucket_id"

_DU = """
SELECT b.name AS bucket, coalesce(b.owner, s.owner) AS owner, coalesce(b.id, s.bucket_id) AS bucket_id,
       coalesce(s.objects, 0) AS objects, coalesce(s.bytes, 0) AS bytes
FROM {buckets} b FULL OUTER JOIN (
    SELECT element_at(group, 'owner') AS owner, element_at(group, 'bucket_id') AS bucket_id,
           CAST(sum(CASE WHEN name = 'objects' THEN value ELSE 0 END) AS BIGINT) AS objects,
           sum(CASE WHEN name = 'bytes' THEN value ELSE 0 END) AS bytes
    FROM {sums} WHERE table = 'objects' GROUP BY 1, 2
) s ON b.owner = s.owner AND b.id = s.bucket_id
"""

_WEAK = ", ".join(f"'{name}'" for name in WEAK)
_DUPS = f"""
WITH hashed AS (
    SELECT *, CASE WHEN length(checksum) > 0 AND NOT coalesce(upper(checksum_algorithm) IN ({_WEAK}), false) THEN 'checksum'
                   WHEN length(content_md5) = 16 THEN 'md5'
                   WHEN length(etag) = 32 AND translate(etag, '0123456789abcdefABCDEF', '') = '' THEN 'etag' END AS kind
    FROM {{objects}} WHERE content_length > 0 AND coalesce(file_type, 'file') = 'file'
), keyed AS (
    SELECT o.owner, o.bucket_id, b.name AS bucket, o.name, o.content_length, o.kind, o.inode, o.modified,
           CASE WHEN o.kind = 'checksum' THEN upper(o.checksum_algorithm) END AS algorithm,
           CASE o.kind WHEN 'checksum' THEN o.checksum WHEN 'md5' THEN lower(hex(o.content_md5)) ELSE lower(o.etag) END AS hash
    FROM hashed o {_BUCKET} WHERE o.kind IS NOT NULL
), files AS (
    SELECT kind, algorithm, hash, content_length, min(struct(owner, bucket_id, name, bucket)) AS first FROM keyed
    GROUP BY kind, algorithm, hash, content_length, inode,
             CASE WHEN inode IS NULL THEN struct(owner, bucket_id, name) END, CASE WHEN inode IS NOT NULL THEN modified END
)
SELECT kind, algorithm, hash, content_length, count(*) AS copies, (count(*) - 1) * CAST(content_length AS DECIMAL(19, 0)) AS wasted_bytes,
       transform(slice(sort_array(collect_list(first)), 1, 3),
                 e -> struct(e.owner, e.bucket, e.name)) AS examples
FROM files GROUP BY kind, algorithm, hash, content_length HAVING count(*) > 1
"""

_GROWTH = f"""
WITH events AS (
    SELECT owner, bucket_id, _commit_timestamp AS made, 1 AS objects, content_length AS bytes FROM {{begun}}
    UNION ALL SELECT owner, bucket_id, _commit_timestamp, 1, content_length FROM {{ended}}
    UNION ALL SELECT owner, bucket_id, deleted_at, -1, -content_length FROM {{ended}}
), days AS (
    SELECT owner, bucket_id, CAST(made AS DATE) AS day, sum(objects) AS objects, sum(CAST(coalesce(bytes, 0) AS DECIMAL(19, 0))) AS bytes
    FROM events GROUP BY 1, 2, 3
)
SELECT o.day, b.name AS bucket, o.owner, o.bucket_id,
       sum(o.objects) OVER so_far AS objects, sum(o.bytes) OVER so_far AS bytes
FROM days o {_BUCKET} WINDOW so_far AS (PARTITION BY o.owner, o.bucket_id ORDER BY o.day)
"""

_DID = " ".join(f"WHEN '{kind}' THEN '{word}'" for kind, word in WORDS.items())
_WHO = f"""
SELECT o.deleted_at, CASE o._ended_by {_DID} END AS did, o._end_writer AS writer, o._end_revision AS revision,
       o._end_operation AS operation, o.owner,
       b.name AS bucket, o.name, o.content_length, o._version AS version
FROM {{ended}} o {_BUCKET}
"""

_DAYS = [str(edge).removesuffix("d") for edge in EDGES]
_FROM_AGE = " ".join(f"WHEN age >= {days} * {_DAY} THEN '{days}d'" for days in reversed(_DAYS))
_BELOW_AGE = " ".join(f"WHEN age < {days} * {_DAY} THEN '{days}d'" for days in _DAYS)
_AGE = f"""
WITH aged AS (
    SELECT storage_class, content_length, coalesce(unix_micros(current_timestamp()) - unix_micros(modified), 0) AS age FROM {{objects}}
)
SELECT storage_class, CASE {_FROM_AGE} ELSE '0s' END AS from_age, CASE {_BELOW_AGE} END AS below_age, {_SUMS} FROM aged GROUP BY 1, 2, 3
"""

VIEWS = (
    SqlView("du", _DU),
    SqlView("find", f"SELECT b.name AS bucket, o.* FROM {{objects}} o {_BUCKET}"),
    SqlView("dups", _DUPS),
    SqlView("growth", _GROWTH),
    SqlView("who", _WHO),
    SqlView("age", _AGE),
)
"""The views; ``growth`` has for each bucket the days on which anything has changed, and what there was at their ends."""
