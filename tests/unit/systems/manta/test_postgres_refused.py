"""What a real PostgreSQL server and a catalog cannot both hold, and what cannot be imported or exported at all: typed errors."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from typing import Any

import pytest

from bucketcatalog import BucketCatalogError, Catalog, InvalidOption, InvalidRows, StoreUnavailable
from bucketcatalog.systems.manta.from_postgres import import_database
from bucketcatalog.systems.manta.postgres_rows import EMPTY, NULL_VALUES
from bucketcatalog.systems.manta.to_postgres import export_database

from ....kit.postgres import Postgres
from ....kit.postgres import postgres as postgres
from ....kit.world import OTHER, OWNER
from .sources import Source, bucket, obj, put, scanned, sources
from .sources import catalog as catalog
from .sources import empty as empty
from .sources import native as native
from .sources import source as source

REFUSED = [
    ("manta_bucket_object", "roles", "ARRAY[NULL::uuid]", "roles has a NULL element"),
    ("manta_bucket_object", "sharks", "ARRAY['a', NULL]", "sharks has a NULL element"),
    ("manta_bucket_object", "sharks", "ARRAY[ARRAY['a', 'b']]", "sharks is no list that begins at 1"),
    ("manta_bucket_object", "sharks", "'[0:1]={a,b}'", "sharks is no list that begins at 1"),
    ("manta_bucket_object", "name", "''", "name has not 1 to 1,024 bytes"),
    ("manta_bucket_object", "name", "repeat('é', 513)", "name has not 1 to 1,024 bytes"),
    ("manta_bucket_object", "content_length", "-1", "content_length is negative"),
    ("manta_bucket_object", "modified", "'infinity'", "modified lies outside of the years 1 to 9999"),
    ("manta_bucket_object", "created", "'10000-01-01 00:00:00+00'", "created lies outside of the years 1 to 9999"),
    ("manta_bucket_object", "created", "'0001-12-31 23:59:59.999999+00 BC'", "created lies outside of the years 1 to 9999"),
    ("manta_bucket_deleted_object", "deleted_at", "'-infinity'", "deleted_at lies outside of the years 1 to 9999"),
    ("manta_bucket", "created", "'-infinity'", "created lies outside of the years 1 to 9999"),
    ("manta_bucket_deleted_bucket", "name", "''", "name has not 1 to 1,024 bytes"),
]


@pytest.mark.parametrize(("table", "column", "value", "why"), REFUSED)
def test_what_the_catalog_cannot_hold_is_refused_by_the_rows_key(
    native: Source, catalog: Catalog, table: str, column: str, value: str, why: str
) -> None:
    rows = [(obj if "object" in table else bucket)(name) for name in "abc"]
    native.insert(table, *rows)
    native.run(f"UPDATE {table} SET {column} = {value} WHERE name = 'b'")
    with pytest.raises(InvalidRows) as caught:
        native.bring(catalog)
    assert f"A row of {table} is none that a catalog can hold: its {why} (owner '{OWNER}'" in caught.value.message
    assert column == "name" or "name 'b'" in caught.value.message
    assert "Change or remove it there with SQL" in caught.value.next_step
    assert scanned(catalog, "log", "operation") == [("declare",)]
    native.run(f"DELETE FROM {table} WHERE name NOT IN ('a', 'c') OR {column} = {value}")
    assert native.bring(catalog).rows[table] == 2


def test_null_values_of_headers_are_refused_or_made_empty(source: Source, catalog: Catalog) -> None:
    source.insert("manta_bucket_object", obj("a", headers={"k": None, "l": "v"}), obj("b", headers={}))
    with pytest.raises(InvalidRows, match=r"headers has a NULL value .* name 'a'") as caught:
        source.bring(catalog)
    assert 'hstore_nulls="empty"' in caught.value.next_step
    assert source.bring(catalog, hstore_nulls="empty").mapped == {EMPTY: 1, NULL_VALUES: 1}
    assert scanned(catalog, "objects", "name", "headers") == [("a", [("k", ""), ("l", "v")]), ("b", None)]


@pytest.mark.parametrize("given", ['{"a": 1}', '{"a": {"b": "c"}}', '["a"]', '"a"', "null"])
def test_headers_that_are_json_and_no_texts_are_refused(postgres: Postgres, catalog: Catalog, given: str) -> None:
    with sources(postgres, as_text=True) as source:
        source.insert("manta_bucket_object", obj("a"))
        source.run(f"UPDATE manta_bucket_object SET headers = '{given}'")
        with pytest.raises(InvalidRows, match="headers is no object of texts"):
            source.bring(catalog)
        source.run("UPDATE manta_bucket_object SET headers = 'a=>b'")
        with pytest.raises(InvalidOption, match="PostgreSQL refuses: invalid input syntax for type json"):
            source.bring(catalog)


def test_the_shipped_tables_lack_creator_and_roles(native: Source, empty: Source, catalog: Catalog) -> None:
    for table in ("manta_bucket_object", "manta_bucket_deleted_object"):
        native.run(f"ALTER TABLE {table} DROP creator, DROP roles, ALTER content_length SET NOT NULL")
        native.insert(table, obj("a", content_length=1, sharks=["dc:1"]))
    native.bring(catalog)
    assert scanned(catalog, "objects", "sharks", "roles", "creator") == [(["dc:1"], None, None)]
    empty.take(catalog)
    rows = native.run("SELECT id, name, owner, bucket_id, sharks, deleted_at FROM manta_bucket_deleted_object")
    assert empty.run("SELECT id, name, owner, bucket_id, sharks, deleted_at FROM manta_bucket_deleted_object") == rows
    for table in ("manta_bucket_object", "manta_bucket_deleted_object"):
        native.run(f"DELETE FROM {table}")
    native.take(catalog)
    assert native.run("SELECT name FROM manta_bucket_object") == [("a",)]


BROKEN = [
    ("DROP TABLE manta_bucket_deleted_object", "has no table manta_bucket_deleted_object"),
    ("ALTER TABLE manta_bucket_object DROP sharks", "a table manta_bucket_object without a column sharks"),
    ("ALTER TABLE manta_bucket ALTER created TYPE timestamp", "manta_bucket whose created is timestamp, and not timestamptz"),
    ("ALTER TABLE manta_bucket_object DROP sharks, ADD sharks jsonb", r"whose sharks is jsonb, and not text\[\] or varchar\[\]"),
    ("ALTER TABLE manta_bucket_deleted_bucket ALTER deleted_at DROP NOT NULL", "deleted_bucket whose deleted_at may be NULL"),
]


@pytest.mark.parametrize(("statement", "why"), BROKEN)
def test_tables_that_are_not_the_rfds_are_refused(native: Source, catalog: Catalog, statement: str, why: str) -> None:
    native.run(statement)
    with pytest.raises(InvalidOption, match=why):
        native.bring(catalog)
    assert catalog.databases() == []


def test_a_wrong_schema_or_dsn_is_told_without_its_password(native: Source, catalog: Catalog) -> None:
    wrong: Sequence[tuple[dict[str, str], type[BucketCatalogError], str]] = [
        ({"schema": "no 'such\""}, InvalidOption, "has no schema"),
        ({"dsn": "nonsense s3cret-word"}, InvalidOption, "The DSN cannot be read"),
        ({"dsn": "postgresql://u:s3cret-word@127.0.0.1:1/db"}, StoreUnavailable, "cannot be reached"),
        ({"dsn": "postgresql://u:b@s3cret-word@127.0.0.1:1/db"}, StoreUnavailable, "cannot be reached"),
        ({"dsn": "postgresql://u:s3cret/word@127.0.0.1:1/db"}, StoreUnavailable, "cannot be reached"),
        ({"dsn": "host=/nowhere password=s3cret-word dbname=s3cret-word"}, StoreUnavailable, "cannot be reached"),
    ]
    put(catalog, obj("a"))
    for options, kind, text in wrong:
        for function in (import_database, export_database):
            given = {"dsn": native.dsn, "database": "default", "schema": native.name, **options}
            given |= {"writer": "w"} if function is import_database else {}
            with pytest.raises(kind, match=text) as caught:
                function(catalog, **given)
            assert "s3cret" not in "".join(traceback.format_exception(caught.value))
            assert "\n" not in str(caught.value)


def test_options_that_cannot_be_are_refused(native: Source, catalog: Catalog) -> None:
    for option, value in (("batch", 0), ("hstore_nulls", "keep")):
        with pytest.raises(InvalidOption):
            native.bring(catalog, **{option: value})


def test_without_psycopg_one_is_told_how_to_install_it(monkeypatch: pytest.MonkeyPatch, catalog: Catalog) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(InvalidOption) as caught:
        import_database(catalog, "host=nowhere", database="default", writer="w")
    assert caught.value.next_step == "pip install 'bucketcatalog[postgres]'"


UNFIT = [
    (obj("b\0c"), "has a NUL"),
    ({name: value for name, value in obj("b").items() if name != "id"}, "has no id"),
    (obj("b", roles=[OTHER]), "has roles, for which there is no column"),
]


@pytest.mark.parametrize(("row", "why"), UNFIT)
def test_what_the_server_cannot_hold_is_refused_and_nothing_is_written(
    native: Source, catalog: Catalog, row: dict[str, Any], why: str
) -> None:
    native.run("ALTER TABLE manta_bucket_object DROP roles")
    put(catalog, obj("a"), delete=True)
    put(catalog, obj("a"), row)
    with pytest.raises(InvalidRows, match=rf"A row for manta_bucket_object {why}.* name 'b"):
        native.take(catalog)
    assert native.run(
        "SELECT (SELECT count(*) FROM manta_bucket_object) + (SELECT count(*) FROM manta_bucket_deleted_object)"
    ) == [(0,)]


def test_tables_with_rows_are_not_written_into(native: Source, catalog: Catalog) -> None:
    put(catalog, obj("a"))
    native.insert("manta_bucket", bucket("x"))
    with pytest.raises(InvalidOption, match=r"The table manta_bucket of the schema .* has rows"):
        native.take(catalog)
    assert native.run("SELECT count(*) FROM manta_bucket_object") == [(0,)]
