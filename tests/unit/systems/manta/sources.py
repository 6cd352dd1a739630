"""The RFD's tables in schemas of a real PostgreSQL server, to import from and to export into, and rows for them."""

from __future__ import annotations

import datetime
import json
import random
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from bucketcatalog import Catalog
from bucketcatalog.store.memory import MemoryStore
from bucketcatalog.systems.manta.from_postgres import Imported, import_database
from bucketcatalog.systems.manta.postgres import TABLES, TYPES
from bucketcatalog.systems.manta.to_postgres import Exported, export_database

from ....kit.hostile import GOOD
from ....kit.postgres import Postgres, Schema
from ....kit.world import BUCKET, ID_1, ID_2, OTHER, OWNER

NAMES = [name for name in GOOD if name and "\0" not in name]
TIME = datetime.datetime(2020, 2, 29, 12, 34, 56, 789_012, datetime.UTC)
COLUMNS = {table.name: table.columns for table in TABLES}
CREATED = {"created": TIME, "modified": TIME}


@dataclass(frozen=True)
class Source:
    """The four tables in a schema of a server; ``headers`` is the type of those."""

    dsn: str
    schema: Schema
    name: str
    headers: str

    @property
    def connection(self) -> psycopg.Connection[Any]:
        return self.schema.connection

    def insert(self, table: str, *rows: dict[str, Any]) -> None:
        """Rows by their columns; times are ``TIME`` unless said."""
        with self.connection.cursor() as cursor:
            for row in rows:
                given = {**{name: TIME for name in COLUMNS[table] if TYPES[name] == "timestamptz"}, **row}
                values = [self._value(name, value) for name, value in given.items()]
                marks = ", ".join(f"%s::{TYPES[name]}" if name != "headers" else "%s" for name in given)
                cursor.execute(f"INSERT INTO {table} ({', '.join(given)}) VALUES ({marks})".encode(), values)

    def _value(self, name: str, value: Any) -> Any:
        if name == "headers" and value is not None:
            return json.dumps(value) if self.headers == "text" else self.schema.headers(value)
        return Jsonb(value) if name == "properties" and value is not None else value

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        cursor = self.connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []

    def bring(self, catalog: Catalog, **options: Any) -> Imported:
        """Import into the catalog's database ``default``."""
        return import_database(catalog, self.dsn, **{"database": "default", "writer": "importer", "schema": self.name, **options})

    def take(self, catalog: Catalog, **options: Any) -> Exported:
        return export_database(catalog, self.dsn, **{"database": "default", "schema": self.name, **options})

    def differences(self, other: str) -> dict[str, int]:
        """For each table the rows that this schema or the other one has alone; what is empty is NULL."""
        told = {}
        for table, columns in COLUMNS.items():
            names = ", ".join(_comparable(name) for name in columns)
            mine, theirs = (f"SELECT {names} FROM {schema}.{table}" for schema in (self.name, other))
            only = f"(({mine} EXCEPT ALL {theirs}) UNION ALL ({theirs} EXCEPT ALL {mine}))"
            told[table] = self.run(f"SELECT count(*) FROM {only} d")[0][0]
        return told


def _comparable(name: str) -> str:
    if name == "headers":  # which one of the two may have as another type
        return "nullif(to_jsonb(headers) #>> '{}', '{}')::jsonb"
    return f"nullif({name}, '{{}}')" if TYPES[name].endswith("[]") else name


@pytest.fixture(params=["as the server has it", "text"])
def source(postgres: Postgres, request: pytest.FixtureRequest) -> Iterator[Source]:
    with sources(postgres, request.param == "text") as found:
        yield found


@pytest.fixture
def native(postgres: Postgres) -> Iterator[Source]:
    with sources(postgres) as found:
        yield found


@contextmanager
def sources(postgres: Postgres, as_text: bool = False) -> Iterator[Source]:
    with postgres.schema() as schema:
        name = schema.connection.execute("SELECT current_schema()").fetchone()
        assert name is not None
        found = Source(postgres.dsn, schema, name[0], "text" if as_text else "hstore" if schema.hstore else "jsonb")
        for table in ("manta_bucket_object", "manta_bucket_deleted_object") if as_text else ():
            found.run(f"ALTER TABLE {table} ALTER headers TYPE text USING NULL")
        yield found


@pytest.fixture
def empty(postgres: Postgres) -> Iterator[Source]:
    """A schema without tables."""
    with sources(postgres) as found:
        for table in TABLES:
            found.run(f"DROP TABLE {table.name}")
        yield found


@pytest.fixture
def catalog() -> Catalog:
    return Catalog(MemoryStore())


def obj(name: str, id_: str = ID_1, **columns: Any) -> dict[str, Any]:
    return {"id": id_, "name": name, "owner": OWNER, "bucket_id": BUCKET, **columns}


def bucket(name: str, id_: str = BUCKET, **columns: Any) -> dict[str, Any]:
    return {"id": id_, "name": name, "owner": OWNER, **columns}


def fill(source: Source, seed: int, count: int) -> None:
    """Random rows of hostile content in all tables: keys and moments that recur, and exact duplicates among what was deleted."""
    chance = random.Random(seed)

    def texts(most: int) -> list[str]:
        return [chance.choice([*NAMES, "NULL", "{}", ",", '"', '\\"', "a,b", ""]) for _ in range(chance.randint(0, most))]

    def time() -> datetime.datetime:
        first = datetime.datetime(1, 1, 1, tzinfo=datetime.UTC)
        return first + datetime.timedelta(days=chance.randrange(3_652_058), microseconds=chance.choice([0, 1, 120_000]))

    def uuid_() -> str:
        return str(uuid.UUID(int=chance.getrandbits(128)))

    def row() -> dict[str, Any]:
        given = {
            "id": uuid_(),
            "name": chance.choice(NAMES),
            "owner": chance.choice([OWNER, OTHER]),
            "bucket_id": chance.choice([BUCKET, ID_2]),
            "created": time(),
            "modified": time(),
            "creator": uuid_(),
            "content_length": chance.choice([0, 1, 2**63 - 1]),
            "content_md5": chance.randbytes(chance.choice([16, 16, 3, 0])),
            "content_type": chance.choice(["text/plain", "", "a\tb\\N"]),
            "headers": dict(zip(texts(3), texts(3), strict=False)),
            "roles": [uuid_() for _ in range(chance.randint(0, 3))],
            "sharks": texts(3),
            "properties": chance.choice([{"a": texts(2), "é😀": {"b": 1.50, "c": None}}, [], "x", 0]),
        }
        unset = {name: None for name in list(given)[6:] if chance.random() < 0.2}
        return {**given, **unset}

    live, ended = {}, []
    for _ in range(count):
        one = row()
        live[one["owner"], one["bucket_id"], one["name"]] = one
        ended += [{**row(), "deleted_at": chance.choice([TIME, TIME, time()])}] * chance.choice([1, 1, 1, 2])
    source.insert("manta_bucket_object", *live.values())
    source.insert("manta_bucket_deleted_object", *ended)
    few = {(one["owner"], one["name"]): one for one in live.values()}.values()
    source.insert("manta_bucket", *({name: one[name] for name in COLUMNS["manta_bucket"]} for one in few))
    names = COLUMNS["manta_bucket_deleted_bucket"]
    source.insert("manta_bucket_deleted_bucket", *({name: one[name] for name in names} for one in ended))


def everything(catalog: Catalog) -> dict[str, list[Any]]:
    """All rows of a catalog without the times at which it was filled, in an order of their own."""
    snapshot = catalog.snapshot()
    found = {}
    for name in ("buckets", "objects", "deleted_buckets", "deleted_objects"):
        rows = snapshot.scan(name).to_arrow()
        rows = rows.drop_columns(["deleted_at"]) if name.startswith("deleted_") else rows
        found[name] = sorted(rows.to_pylist(), key=repr)
    return found


def scanned(catalog: Catalog, name: str, *columns: str) -> list[tuple[Any, ...]]:
    rows = catalog.snapshot().scan(name, columns=list(columns)).to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in rows)


def put(catalog: Catalog, *rows: dict[str, Any], delete: bool = False) -> None:
    with catalog.writer("w") as writer:
        for row in rows:
            with writer.transaction() as tx:
                tx.put("objects", row)
                if delete:
                    tx.delete("objects", {name: row[name] for name in ("owner", "bucket_id", "name")})
