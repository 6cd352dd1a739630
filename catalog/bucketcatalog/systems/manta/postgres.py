"""A PostgreSQL server with the RFD's four tables in one of its schemas: how it is reached, what its tables are, and what it refuses.

``from_postgres`` reads such tables into a database of a catalog, ``to_postgres`` writes them from one. Source: RFD 149, which has the
types and indexes; the schema that was shipped lacks ``creator`` and ``roles``. This module alone imports psycopg, once it is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

from ...errors import BucketCatalogError, InvalidOption, StoreUnavailable
from .payloads import OBJECT
from .views import BUCKET_COLUMNS

if TYPE_CHECKING:
    import psycopg

    Connection: TypeAlias = psycopg.Connection[Any]

TYPES = {
    "id": "uuid",
    "name": "text",
    "owner": "uuid",
    "bucket_id": "uuid",
    "created": "timestamptz",
    "modified": "timestamptz",
    "creator": "uuid",
    "content_length": "bigint",
    "content_md5": "bytea",
    "content_type": "text",
    "headers": "hstore",
    "roles": "uuid[]",
    "sharks": "text[]",
    "properties": "jsonb",
    "deleted_at": "timestamptz",
}
"""The RFD's columns and their types."""
REQUIRED = ("id", "name", "owner", "bucket_id", "created", "modified", "deleted_at")
"""Those that are never NULL."""
OPTIONAL = ("creator", "roles")
"""Those that the shipped tables lack."""
_TAKEN = {
    "uuid": ("uuid",),
    "text": ("text", "varchar"),
    "timestamptz": ("timestamptz",),
    "bigint": ("int8", "int4"),
    "bytea": ("bytea",),
    "hstore": ("hstore", "jsonb", "json", "text"),
    "uuid[]": ("_uuid",),
    "text[]": ("_text", "_varchar"),
    "jsonb": ("jsonb", "json", "text"),
}
"""The server's own names of what is taken for a type."""


@dataclass(frozen=True)
class RfdTable:
    """One of the four: its rows are those of the core's table ``of``, or tombstones of it, in the order of ``key``."""

    name: str
    of: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    live: str | None = None
    """Of tombstones the table that has what is live."""

    @property
    def primary_key(self) -> tuple[str, ...]:
        """What one live row has alone."""
        return ("owner", "name") if self.of == "buckets" else ("owner", "bucket_id", "name")


TABLES = (
    RfdTable(
        "manta_bucket_deleted_bucket",
        "buckets",
        (*BUCKET_COLUMNS, "deleted_at"),
        ("deleted_at", "owner", "name", "id"),
        "manta_bucket",
    ),
    RfdTable(
        "manta_bucket_deleted_object",
        "objects",
        (*OBJECT, "deleted_at"),
        ("deleted_at", "owner", "bucket_id", "name", "id"),
        "manta_bucket_object",
    ),
    RfdTable("manta_bucket", "buckets", BUCKET_COLUMNS, ("owner", "name")),
    RfdTable("manta_bucket_object", "objects", OBJECT, ("owner", "bucket_id", "name")),
)
"""Those of what has ended first: what is live comes last of each key."""
_COLUMNS = """
SELECT table_name, column_name, udt_name, is_nullable FROM information_schema.columns
WHERE table_schema = %s AND table_name = ANY (%s)
"""
_HSTORE = "SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'hstore'"

_WAITED_FOR = ("statement_timeout", "idle_in_transaction_session_timeout", "transaction_timeout")
_SETTINGS = """
SELECT set_config('timezone', 'UTC', false), set_config('datestyle', 'ISO', false),
       (SELECT count(set_config(name, '0', false)) FROM pg_settings WHERE name = ANY (%s))
"""


@contextmanager
def connected(dsn: str, schema: str, *, read_only: bool) -> Iterator[Connection]:
    """A connection in one repeatable-read transaction, which finds the tables of the schema by their names; committed at the end.

    Whatever the server refuses is ``InvalidOption``, and ``StoreUnavailable`` where it cannot be reached or goes away; neither says what
    the DSN may hold of passwords. Times are those of UTC, and nothing that is waited for meanwhile ends the transaction.
    """
    psycopg = driver()
    try:
        with psycopg.connect(dsn, client_encoding="UTF8") as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.read_only = read_only
            connection.execute(_SETTINGS, [list(_WAITED_FOR)])
            if connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", [schema]).fetchone() is None:
                raise InvalidOption(f"The server's database has no schema {schema!r}.", next_step="Name another, or create it.")
            try:
                yield connection
            except KeyboardInterrupt:
                connection.close()  # a roll-back would have to wait for what runs
                raise
    except psycopg.Error as error:
        raise _typed(error, dsn) from None


def driver() -> Any:
    """psycopg; ``InvalidOption`` where it is not installed."""
    try:
        return import_module("psycopg")
    except ImportError:
        raise InvalidOption(
            "What speaks to PostgreSQL is not installed.", next_step="pip install 'bucketcatalog[postgres]'"
        ) from None


def _typed(error: Any, dsn: str) -> BucketCatalogError:
    """A driver's error as one of the package's."""
    psycopg = driver()
    try:
        known = psycopg.conninfo.conninfo_to_dict(dsn)
    except psycopg.Error:
        return InvalidOption(
            "The DSN cannot be read.", next_step="Give one as libpq has it, such as 'host=db1 dbname=buckets user=reader'."
        )
    told = _told(error, dsn, [str(value) for name, value in known.items() if "password" in name and value])
    if isinstance(error, psycopg.OperationalError):
        return StoreUnavailable(
            f"PostgreSQL cannot be reached, or has ended the connection{told}.",
            next_step="Look whether the DSN is right and the server runs, and run the same again.",
        )
    return InvalidOption(f"PostgreSQL refuses{told}.", next_step="Change what it names, and run the same again.")


def _told(error: Any, dsn: str, secrets: Sequence[str]) -> str:
    """The first line of what the error says, and where; nothing where a password that the DSN spells wrong may be in it."""
    before_host = dsn.rpartition("@")[0].rpartition("//")[2]
    if "@" in before_host or (":" in before_host and not secrets):  # the password may count as a part of the host
        return ""
    parts = [part.splitlines()[0].rstrip(".") for part in (str(error), error.diag.context) if part]
    text = ", ".join(parts)
    for secret in secrets:
        text = text.replace(secret, "***")
    return f": {text}" if text else ""


def columns_of(connection: Connection, schema: str) -> dict[str, dict[str, str]]:
    """The columns of those of the four tables that are there, with the server's names of their types.

    ``InvalidOption`` names a column that is missing, is of a type that is not taken, or may be NULL where the RFD's is not.
    """
    found: dict[str, dict[str, str]] = {}
    for table, column, kind, nullable in connection.execute(_COLUMNS, [schema, [table.name for table in TABLES]]):
        if column in REQUIRED and nullable == "YES":
            raise _unfit(schema, table, f"whose {column} may be NULL", f"ALTER TABLE {table} ALTER {column} SET NOT NULL")
        found.setdefault(table, {})[column] = kind
    for table in TABLES:
        has = found.get(table.name, {})
        for column in table.columns if has else ():
            if column not in has:
                if column not in OPTIONAL:
                    raise _unfit(schema, table.name, f"without a column {column}", "Add it as RFD 149 has it.")
            elif has[column] not in _TAKEN[TYPES[column]]:
                what = f"whose {column} is {_said(has[column])}, and not {' or '.join(map(_said, _TAKEN[TYPES[column]]))}"
                raise _unfit(schema, table.name, what, "Change its type.")
    return found


def _said(kind: str) -> str:
    """What SQL calls a type of the server's catalog."""
    return f"{kind[1:]}[]" if kind.startswith("_") else kind


def _unfit(schema: str, table: str, what: str, next_step: str) -> InvalidOption:
    return InvalidOption(f"The schema {schema!r} has a table {table} {what}.", next_step=next_step)


def find_by_name(connection: Connection, schema: str) -> bool:
    """Have tables of the schema found by their names, and hstore wherever it lies; says whether the database has hstore."""
    hstore = connection.execute(_HSTORE).fetchone()
    path = [schema] if hstore is None else [schema, hstore[0]]
    connection.execute("SELECT set_config('search_path', %s, false)", [", ".join(quoted(name) for name in path)])
    return hstore is not None


def quoted(name: str) -> str:
    """A name as SQL takes it, whatever it is."""
    return '"' + name.replace('"', '""') + '"'


def shown_key(table: RfdTable, row: Mapping[str, Any]) -> str:
    """The key of a row, for messages."""
    return ", ".join(f"{column} {_short(row[column])}" for column in _shown(table))


def _shown(table: RfdTable) -> Sequence[str]:
    return (*table.primary_key, "deleted_at") if table.live is not None else table.primary_key


def _short(value: Any) -> str:
    text = str(value)
    return repr(text if len(text) <= 80 else f"{text[:80]}...")
