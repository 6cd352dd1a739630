"""The questions in SQL, as the guide has them, against the functions of Python."""

from __future__ import annotations

import ast
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import pyspark_bucketcatalog as bcs
from bucketcatalog import Catalog, InvalidOption
from bucketcatalog.questions import age, cost, du, dups, find, growth, top, who
from bucketcatalog.store.local import LocalStore

from ..kit.blocks import ROOT, blocks_of
from ..kit.world import DAY, OTHER, OWNER, World, time_at

GUIDE = ROOT / "docs" / "guide" / "questions.md"
IDS = [f"33333333-3333-4333-8333-00000000000{number}" for number in range(3)]
PRICES = {"STANDARD": 0.023, "GLACIER": 0.004}
VIEWS = ["du", "find", "dups", "growth", "who", "age"]


def objects(now: int) -> list[dict[str, Any]]:
    hashes: list[dict[str, Any]] = [
        {"checksum": "c1", "checksum_algorithm": "sha256"},
        {"checksum": "c1", "checksum_algorithm": "crc32", "content_md5": bytes(16)},
        {"content_md5": bytes(range(16))},
        {"etag": "0123456789ABCDEF0123456789abcdef"},
        {"etag": "0123456789abcdef0123456789abcdef-2"},
        {},
    ]
    return [
        {
            "owner": OWNER if number % 3 else OTHER,
            "bucket_id": IDS[number % 2] if number % 3 else IDS[2],
            "name": f"{'ab'[number % 2]}/{number:03}.jpg",
            "content_length": [None, 0, 7, 7, 1_000, 1 << 31][number % 11 % 6],
            "modified": time_at(now - number // 20 * 9 * DAY),
            "storage_class": [None, "STANDARD", "GLACIER"][number % 4 % 3],
            "inode": None if number % 5 else number % 2,
            **hashes[number % 7 % 6],
        }
        for number in range(120)
    ]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    """A catalog in which rows were put, put again and deleted on several days, a part of them under a checkpoint."""
    path = tmp_path_factory.mktemp("questions") / "lake"
    world = World()
    places = zip([OWNER, OWNER, OTHER], ["pets", "logs", "pets"], IDS, strict=True)
    with world.writer("w") as writer, world.writer("x") as other:
        world.commit(writer, ("put", "buckets", [{"owner": owner, "name": name, "id": id_} for owner, name, id_ in places]))
        rows = objects(world.clock())
        for at, day in enumerate((rows[:60], rows[40:100])):
            world.clock.tick(DAY)
            world.commit(writer, ("put", "objects", day), operation=f"load-{at}")
        writer.checkpoint()
        world.clock.tick(DAY)
        world.commit(other, ("put", "objects", [{**row, "content_length": 9} for row in rows[90:]]), operation="again")
        world.clock.tick(2 * DAY)
        keys = [{name: row[name] for name in ("owner", "bucket_id", "name")} for row in rows[:25]]
        world.commit(other, ("delete", "objects", keys), operation="expire")
    kept = LocalStore(str(path))
    for info in world.store.list(""):
        kept.put(info.name, world.store.get(info.name))
    return Catalog(path)


@pytest.fixture(scope="module")
def session(spark: SparkSession, lake: Catalog) -> SparkSession:
    own = spark.newSession()
    shown = bcs.attach(own, lake.url.removeprefix("file://"), questions=True)
    assert shown[-len(VIEWS) :] == VIEWS
    return own


def told(frame: DataFrame | list[dict[str, Any]], *columns: str) -> list[tuple[Any, ...]]:
    rows = [row.asDict() for row in frame.collect()] if isinstance(frame, DataFrame) else frame
    return sorted((tuple(map(plain, (row[name] for name in columns))) for row in rows), key=repr)


def plain(value: Any) -> Any:
    if isinstance(value, list):
        return [tuple(each.asDict().values() if hasattr(each, "asDict") else each.values()) for each in value]
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None)
    return round(value, 6) if isinstance(value, float) else int(value) if type(value).__name__ == "Decimal" else value


@pytest.fixture(scope="module")
def guide() -> dict[str, str]:
    """The statements of the guide, by question."""
    (block,) = (block for block in blocks_of(GUIDE) if block.kind == "python spark" and "\nsql = {" in block.text)
    (said,) = (
        node for node in ast.parse(block.text).body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "sql"
    )
    found: dict[str, str] = ast.literal_eval(said.value)
    return found


def test_du_has_every_bucket(session: SparkSession, lake: Catalog) -> None:
    columns = ["bucket", "owner", "bucket_id", "objects", "bytes"]
    assert told(session.table("du"), *columns) == told(du(lake).to_pylist(), *columns) != []


def test_find_has_the_rows_with_their_buckets(session: SparkSession, lake: Catalog) -> None:
    columns = ["bucket", "name", "content_length", "modified", "storage_class", "owner"]
    expected = find(lake, larger=8, name="*.jpg", columns=columns).to_arrow().to_pylist()
    assert told(session.sql("SELECT * FROM find WHERE content_length > 8 AND name LIKE '%.jpg'"), *columns) == told(
        expected, *columns
    )


def test_dups_are_the_groups_of_the_function(session: SparkSession, lake: Catalog) -> None:
    columns = ["kind", "algorithm", "hash", "content_length", "copies", "wasted_bytes", "examples"]
    expected = dups(lake).groups.to_pylist()
    assert {row["kind"] for row in expected} == {"checksum", "md5", "etag"}
    assert told(session.table("dups"), *columns) == told(expected, *columns)


def test_growth_has_what_there_was_at_the_end_of_each_day(session: SparkSession, lake: Catalog) -> None:
    found = [row.asDict() for row in session.table("growth").collect()]
    rows = growth(lake, every="1d").to_pylist()
    known = {(row["time"], row["bucket_id"]): (row["objects"], row["bytes"]) for row in rows}
    assert len({row["day"] for row in found}) == 4
    for row in found:
        end = datetime(row["day"].year, row["day"].month, row["day"].day, tzinfo=UTC) + timedelta(days=1)
        assert (row["objects"], row["bytes"]) == known[end, row["bucket_id"]]


def test_who_has_each_version_and_who_ended_it(session: SparkSession, lake: Catalog) -> None:
    columns = ["deleted_at", "did", "writer", "revision", "operation", "owner", "bucket", "name", "content_length", "version"]
    expected = who(lake, by="object").to_pylist()
    assert {row["did"] for row in expected} == {"overwrote", "deleted"}
    assert told(session.table("who"), *columns) == told(expected, *columns)


def test_ages_are_those_of_the_function_where_there_is_anything(session: SparkSession, lake: Catalog) -> None:
    columns = ["storage_class", "from_age", "below_age", "objects", "bytes"]
    expected = [row for row in age(lake).to_pylist() if row["objects"]]
    assert told(session.table("age"), *columns) == told(expected, *columns)


def test_the_guide_has_a_statement_for_each_question(session: SparkSession, lake: Catalog, guide: dict[str, str]) -> None:
    assert set(guide) == {"du", "top", "find", "dups", "growth", "who", "age", "cost"}
    found = {question: session.sql(sql) for question, sql in guide.items()}
    for rows in found.values():
        assert rows.columns and rows.collect() is not None
    largest = top(lake, "largest", 10).to_pylist()
    assert [row["content_length"] for row in found["top"].collect()] == [row["content_length"] for row in largest]
    columns = ["bucket", "storage_class", "objects", "bytes", "cost"]
    assert told(found["cost"], *columns) == told(cost(lake, PRICES).to_pylist(), *columns)
    by_writer = ["writer", "operation", "did", "objects", "bytes"]
    assert told(found["who"], *by_writer) == told(who(lake).to_pylist(), *by_writer)
    by_prefix = ["bucket", "owner", "prefix", "objects", "bytes"]
    assert told(found["du"], *by_prefix) == told(du(lake, depth=1).to_pylist(), *by_prefix)


def test_attached_again_they_replace_their_own_views_and_nobody_elses(spark: SparkSession, lake: Catalog) -> None:
    own, path = spark.newSession(), lake.url.removeprefix("file://")
    assert not {"du", "find"} & set(bcs.attach(own, path))
    own.sql("SELECT 1 AS mine").createOrReplaceTempView("du")
    with pytest.raises(InvalidOption, match="There is something called 'du' already"):
        bcs.attach(own, path, questions=True)
    assert own.table("du").columns == ["mine"]
    for _ in range(2):
        assert bcs.attach(own, path, questions=True, view_prefix="q_")[-len(VIEWS) :] == [f"q_{name}" for name in VIEWS]
    own.sql("CREATE OR REPLACE TEMPORARY VIEW du AS SELECT * FROM q_du")
    with pytest.raises(InvalidOption, match="already"):
        bcs.attach(own, path, questions=True)
