"""Manta in SQL: the RFD's four tables column for column, accounts equal to what Python counts, and what is misplaced."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import pyspark_bucketcatalog as bcs
from bucketcatalog import Catalog
from bucketcatalog.systems.manta.accounting import BY, growth, usage
from bucketcatalog.systems.manta.operations import Manta
from bucketcatalog.systems.manta.placement import node_of_bucket, node_of_object

from .sample import OTHER, OWNER
from .sample import rows as sorted_rows

ID = "aaaaaaaa-0000-4000-8000-000000000001"
NODES = 7
BUCKET = [("id", "string"), ("name", "string"), ("owner", "string"), ("created", "timestamp")]
OBJECT = [
    ("id", "string"),
    ("name", "string"),
    ("owner", "string"),
    ("bucket_id", "string"),
    ("created", "timestamp"),
    ("modified", "timestamp"),
    ("creator", "string"),
    ("content_length", "bigint"),
    ("content_md5", "binary"),
    ("content_type", "string"),
    ("headers", "map<string,string>"),
    ("roles", "array<string>"),
    ("sharks", "array<string>"),
    ("properties", "string"),
]
ENDED = [("deleted_at", "timestamp")]
TABLES = {
    "manta_bucket": BUCKET,
    "manta_bucket_object": OBJECT,
    "manta_bucket_deleted_bucket": BUCKET + ENDED,
    "manta_bucket_deleted_object": OBJECT + ENDED,
}
HOSTILE = ["caf\u00e9", "\U0001f408", "a'b\"c`d\\", "a_b%c", "a:b", " ", "line\nbreak", "\uffff"]


@dataclass(frozen=True)
class Shown:
    """A catalog that is shown twice: as it is under ``now_``, and as it was at ``time`` under ``then_``."""

    catalog: Catalog
    time: str
    bucket_id: str


def _row(number: int, *, owner: str = OWNER) -> dict[str, Any]:
    chance = random.Random(number)
    return {
        "owner": owner,
        "name": f"{chance.choice(['2024/', 'x/', ''])}{number}{chance.choice(HOSTILE)}",
        "id": ID,
        "content_length": chance.choice([None, 0, 7, chance.randrange(1 << 40)]),
        "content_type": chance.choice([None, "text/plain", "image/png"]),
        "sharks": chance.choices(["dc1:1", "dc1:2", "dc2:1"], k=chance.randrange(4)),
    }


def _bulk(catalog: Catalog, writer: str, bucket_id: str, numbers: range) -> list[dict[str, Any]]:
    """One commit of many objects, by a process that has heard of no placement."""
    given = [_row(number, owner=OTHER if number % 5 == 0 else OWNER) | {"bucket_id": bucket_id} for number in numbers]
    with catalog.writer(writer) as held, held.transaction() as tx:
        tx.put("objects", given)
    return given


def _work(node: Manta, bucket_id: str) -> str:
    """What the four tables have a row of each of; the time before the last of it."""
    full = {
        "owner": OWNER,
        "bucket_id": bucket_id,
        "name": "full",
        "id": ID,
        "creator": OTHER,
        "content_length": 5,
        "content_md5": "xzY5jJbR9rcrMRhlcmi/8g==",
        "content_type": "text/plain",
        "headers": {"h": "1", "m-\u00e9": ""},
        "roles": [OTHER, OWNER, OTHER],
        "sharks": [{"datacenter": "dc2", "manta_storage_id": "9"}, "dc1:1"],
        "properties": {"b": [1, None], "a": "x"},
    }
    node.createobject(**full)
    node.createobject(**full | {"content_length": 6})
    node.createobject(owner=OWNER, bucket_id=bucket_id, name="bare", id=ID)
    time = node.createbucket(owner=OWNER, name="gone")["created"]
    node.deletebucket(owner=OWNER, name="gone")
    node.deleteobject(owner=OWNER, bucket_id=bucket_id, name="bare")
    return f"@{int(time.timestamp()) * 1_000_000 + time.microsecond}"


def _moves(catalog: Catalog, node: Manta, bucket_id: str) -> None:
    """Seven nodes of two writers, of which the first has given one that was taken, and one that was not."""
    with Manta(catalog, writer="node-2") as second:
        node.placement.place(NODES, ["node-1", "node-2"])
        _create(node, bucket_id, {0, 2, 4, 6}, range(1_000, 1_060))
        _create(second, bucket_id, {1, 3, 5}, range(1_000, 1_060))
        node.placement.give(0, "node-2")
        second.placement.take(0)
        node.placement.give(2, "node-2")
        _create(second, bucket_id, {0, 1, 3, 5}, range(1_060, 1_100))
        _create(node, bucket_id, {4, 6}, range(1_060, 1_100))


def _create(node: Manta, bucket_id: str, own: set[int], numbers: range) -> None:
    for number in numbers:
        row = _row(number) | {"bucket_id": bucket_id}
        if node_of_object(OWNER, bucket_id, row["name"], NODES) in own:
            node.createobject(**row)


@pytest.fixture(scope="module")
def shown(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    path = tmp_path_factory.mktemp("manta") / "lake"
    catalog = Catalog(path)
    with Manta(catalog, writer="node-1") as node:
        bucket_id = node.createbucket(owner=OWNER, name="photos")["id"]
        time = _work(node, bucket_id)
        given = _bulk(catalog, "stranger", bucket_id, range(100))
        with catalog.writer("stranger") as writer, writer.transaction() as tx:
            tx.delete("objects", [{name: row[name] for name in ("owner", "bucket_id", "name")} for row in given[:40]])
        with catalog.writer("compactor-1") as compactor:
            compactor.checkpoint(scope="all")
        _moves(catalog, node, bucket_id)
    _bulk(catalog, "stranger", bucket_id, range(50, 150))
    _bulk(catalog, "node-1", bucket_id, range(200, 300))  # another process of the first writer
    with catalog.writer("stranger") as writer, writer.transaction() as tx:
        tx.put("buckets", [{"owner": owner, "name": f"bucket-{n}"} for n in range(10) for owner in (OWNER, OTHER)])
    views = bcs.attach(spark, path, view_prefix="now_")
    views += bcs.attach(spark, path, view_prefix="then_", timestampAsOf=time)
    yield Shown(Catalog(path), time, bucket_id)
    for view in views:
        spark.catalog.dropTempView(view)


@pytest.mark.once
@pytest.mark.parametrize("table", TABLES)
def test_the_tables_are_those_of_the_rfd_column_for_column(spark: SparkSession, shown: Shown, table: str) -> None:
    for prefix in ("now_", "then_"):
        frame = spark.sql(f"SELECT * FROM {prefix}{table}")
        assert [(column.name, column.dataType.simpleString()) for column in frame.schema] == TABLES[table]


@pytest.mark.parametrize("table", TABLES)
def test_their_rows_are_those_that_python_reads_now_and_as_of_a_time(spark: SparkSession, shown: Shown, table: str) -> None:
    for prefix, options in (("now_", {}), ("then_", {"timestamp": shown.time})):
        expected = shown.catalog.snapshot(**options).scan(table).to_arrow()
        assert sorted_rows(spark.table(prefix + table)) == sorted_rows(expected)


@pytest.mark.once
@pytest.mark.parametrize("by", BY)
def test_the_difference_of_two_moments_is_the_growth_that_python_counts(spark: SparkSession, shown: Shown, by: str) -> None:
    of, counts = ", ".join(BY[by]), ("objects", "bytes")
    grown = ", ".join(f"coalesce(now.{count}, 0) - coalesce(was.{count}, 0) AS {count}_grown" for count in counts)
    on = " AND ".join(f"now.{name} <=> was.{name}" for name in BY[by])
    named = ", ".join(f"coalesce(now.{name}, was.{name}) AS {name}" for name in BY[by])
    found = spark.sql(
        f"SELECT {named}, {grown} FROM now_manta_usage_by_{by} AS now FULL JOIN then_manta_usage_by_{by} AS was ON {on} ORDER BY {of}"
    )
    expected = growth(shown.catalog.snapshot(timestamp=shown.time), shown.catalog.snapshot(), by)
    assert sorted_rows(found) == sorted_rows(expected.select([*BY[by], "objects_grown", "bytes_grown"]))


@pytest.mark.once
def test_as_of_a_time_nothing_has_happened_that_came_later(spark: SparkSession, shown: Shown) -> None:
    def names(table: str) -> list[str]:
        return [row.name for row in spark.sql(f"SELECT name FROM {table} ORDER BY name, id").collect()]

    assert names("then_manta_bucket") == ["gone", "photos"] and names("then_manta_bucket_deleted_bucket") == []
    assert names("then_manta_bucket_object") == ["bare", "full"] and names("then_manta_bucket_deleted_object") == ["full"]
    assert names("now_manta_bucket_deleted_bucket") == ["gone"] and len(names("now_manta_bucket")) == 21
    assert "bare" in names("now_manta_bucket_deleted_object") and "bare" not in names("now_manta_bucket_object")


@pytest.mark.once
def test_values_are_what_a_user_of_postgresql_expects(spark: SparkSession, shown: Shown) -> None:
    (row,) = spark.sql(
        f"""SELECT headers['h'] AS header, map_keys(headers) AS names, roles, sharks[0] AS shark, hex(content_md5) AS md5,
        get_json_object(properties, '$.b[0]') AS first, creator, modified = created AS is_new
        FROM now_manta_bucket_object WHERE owner = '{OWNER}' AND bucket_id = '{shown.bucket_id}' AND name = 'full'"""
    ).collect()
    assert (row.header, sorted(row["names"]), row.roles, row.shark) == ("1", ["h", "m-\u00e9"], [OTHER, OWNER, OTHER], "dc2:9")
    assert (row.md5, row["first"], row.creator, row.is_new) == ("C736398C96D1F6B72B3118657268BFF2", "1", OTHER, True)
    (ended,) = spark.sql(
        "SELECT content_length, deleted_at > created AS later FROM now_manta_bucket_deleted_object WHERE name = 'full'"
    ).collect()
    assert (ended.content_length, ended.later) == (5, True)


@pytest.mark.parametrize("deleted", [False, True])
@pytest.mark.parametrize("by", BY)
def test_accounts_are_what_python_counts_now_and_as_of_a_time(spark: SparkSession, shown: Shown, by: str, deleted: bool) -> None:
    view = f"manta_{'garbage' if deleted else 'usage'}_by_{by}"
    for prefix, options in (("now_", {}), ("then_", {"timestamp": shown.time})):
        expected = usage(shown.catalog.snapshot(**options), by, deleted=deleted)
        found = spark.table(prefix + view)
        assert found.columns == expected.schema.names and {"objects", "bytes"} <= {
            column.name for column in found.schema if column.dataType.simpleString() == "bigint"
        }
        assert sorted_rows(found) == sorted_rows(expected) and expected.num_rows


def _misplaced(catalog: Catalog) -> list[dict[str, Any]]:
    """What is misplaced, by the definition, in Python."""
    snapshot = catalog.snapshot()
    placed = {row["node"]: row for row in snapshot.scan("manta.placement").to_arrow().to_pylist()}
    assert [placed[node]["nodes"] for node in range(NODES)] == [NODES] * NODES
    found = []
    for kind in ("bucket", "object"):
        for row in snapshot.scan(f"manta_{kind}_writer").to_arrow().to_pylist():
            name = row["name"]
            node = (
                node_of_bucket(row["owner"], name, NODES)
                if kind == "bucket"
                else node_of_object(row["owner"], row["bucket_id"], name, NODES)
            )
            of = placed[node]
            is_owners = row["writer"] == of["writer"] and of["given_to"] is None
            if not is_owners and row["revision"] > dict(of["before"] or ()).get(row["writer"], -1):
                found.append({"kind": kind, "bucket_id": None, **row, "node": node, "placed_on": of["writer"]})
    return found


def test_what_is_misplaced_is_what_python_finds(spark: SparkSession, shown: Shown) -> None:
    columns = ["kind", "owner", "bucket_id", "name", "id", "node", "placed_on", "writer", "revision"]
    found = spark.table("now_manta_misplaced")
    assert found.columns == columns
    expected = pa.Table.from_pylist([{name: row[name] for name in columns} for row in _misplaced(shown.catalog)])
    assert sorted_rows(found) == sorted_rows(expected)


@pytest.mark.once
def test_that_is_what_strangers_and_those_who_have_not_heard_have_written_and_nothing_else(
    spark: SparkSession, shown: Shown
) -> None:
    query = "SELECT kind, writer, collect_set(node) AS nodes, count(*) AS n FROM now_manta_misplaced GROUP BY kind, writer"
    found = {(row.kind, row.writer): (sorted(row.nodes), row.n) for row in spark.sql(query).collect()}
    assert {*found} == {("object", "stranger"), ("bucket", "stranger"), ("object", "node-1")}
    assert found["object", "stranger"] == ([*range(NODES)], 100)
    assert found["bucket", "stranger"][1] == 20 and found["object", "node-1"][0] == [0, 1, 2, 3, 5]
    assert spark.sql("SELECT count(*) FROM then_manta_misplaced").first()[0] == 0
