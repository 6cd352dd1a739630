"""The option ``where`` as text, and as an expression of pyarrow: read natively where that is all, and else by tasks that test rows."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

import pyspark_bucketcatalog as bcs
from bucketcatalog import Catalog, InvalidOption
from pyspark_bucketcatalog.reading.relation import open_relation
from pyspark_bucketcatalog.where import where_of, where_text

from ..kit.world import DAY, OWNER, obj
from .sample import read

field = pc.field
NAMES = ["a/1", "a/2", "a/3", "b/1"]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Objects in a checkpoint, all committed now."""
    found = str(tmp_path_factory.mktemp("predicates") / "lake")
    with Catalog(found).writer("compactor-c") as writer:
        with writer.transaction() as tx:
            bucket = obj("")["bucket_id"]
            tx.put("buckets", {"owner": OWNER, "name": "pets", "id": bucket})
            tx.put("objects", [obj(name, content_length=n, tags={"team": name[0]}) for n, name in enumerate(NAMES)])
        writer.checkpoint(scope="all")
    return found


ALL: list[tuple[Any, list[str]]] = [
    ("name like 'a/%' and content_length > 0", ["a/2", "a/3"]),
    ("not name = 'a/1' and tags['team'] = 'a'", ["a/2", "a/3"]),
    ("modified >= '1h' and length(name) = 3", NAMES),
    (field("content_length") >= 2, ["a/3", "b/1"]),
    (field("content_length") + 1 > 3, ["b/1"]),
]
READ_NATIVELY = [0, 3]


def found(relation: Any) -> list[str]:
    tasks = [pickle.loads(pickle.dumps(task)) for task in relation.tasks(["name"])]
    return sorted(name for task in tasks for rows in task.read(relation.catalog.store) for name in rows["name"].to_pylist())


@pytest.mark.parametrize(("where", "expected"), ALL, ids=str)
def test_a_relation_reads_the_rows_of_which_it_is_true_wherever_and_whenever(
    path: str, where: Any, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    relation = open_relation({"path": path, "where": where_text(where)})
    placed = open_relation({"path": path, "where": where_text(where), "bucket": "pets", "prefix": "a/"})
    sent = pickle.dumps(relation)
    from bucketcatalog import clock

    now = clock.now_us()
    monkeypatch.setattr("bucketcatalog.clock.now_us", lambda: now + 30 * DAY)
    assert found(relation) == found(pickle.loads(sent)) == found(relation.of_columns(["name"])) == expected
    assert found(placed) == [name for name in expected if name.startswith("a/")]


def test_events_are_narrowed_by_keys_alone(path: str) -> None:
    for kind in ("readChangeFeed", "readDifference"):
        for where in ("name like 'a/%' and name != 'a/2'", pc.starts_with(field("name"), "a/") & (field("name") != "a/2")):
            assert found(open_relation({"path": path, kind: "true", "where": where_text(where)})) == ["a/1", "a/3"]
        with pytest.raises(InvalidOption, match="'content_length' is not one of the key"):
            open_relation({"path": path, kind: "true", "where": "content_length > 0"})


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("name >", "is not understood at character 7"),
        ("nome = 'a'", "has no column 'nome' to filter by"),
        ('{"name": ', r"The option where is .* Next: Give JSON, such as .* or a condition such as host in"),
        ("[1]", "is not understood at character 1"),
        ("arrow:AAAA", "is to be an expression of pyarrow, and is none"),
    ],
)
def test_what_is_none_is_refused(path: str, where: str, message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        open_relation({"path": path, "where": where})


def test_text_carries_an_expression_as_it_is() -> None:
    expression = (field("n") > 1) & field("text").isin(["a", None])
    again: Any = where_of(where_text(expression))
    assert again.expression.equals(expression)
    with pytest.raises(InvalidOption, match="Name columns by their names"):
        where_text(field(0) > 1)
    with pytest.raises(InvalidOption, match="5 is not a condition"):
        where_text(5)


@pytest.mark.parametrize("at", range(len(ALL)))
def test_spark_shows_them(spark: SparkSession, path: str, at: int) -> None:
    where, expected = ALL[at]
    for native in (None, False, *([True] if at in READ_NATIVELY else [])):
        frame = bcs.read(spark, path, where=where, columns=["name"], native=native)
        assert sorted(row["name"] for row in frame.collect()) == expected
    if isinstance(where, str):
        assert sorted(row["name"] for row in read(spark, path, where=where).collect()) == expected


def test_several_catalogs_take_them_too(spark: SparkSession, path: str, tmp_path: Path) -> None:
    with Catalog(tmp_path / "other").writer("w") as writer, writer.transaction() as tx:
        tx.put("objects", [obj("c/1", content_length=9)])
    both = {"one": path, "other": tmp_path / "other"}
    for where, expected in (
        ("content_length > 2", ["b/1", "c/1"]),
        ("_catalog = 'other' and length(name) = 3", ["c/1"]),
        (field("_catalog") == "one", NAMES),
        (field("content_length") > 2, ["b/1", "c/1"]),
    ):
        frame = bcs.read(spark, both, where=where, columns=["name"])
        assert sorted(row["name"] for row in frame.collect()) == expected, where
    with pytest.raises(InvalidOption, match="compares '_catalog' and others in one breath"):
        bcs.read(spark, both, where="_catalog = 'other' or content_length = 1")


def test_data_tables_take_them(spark: SparkSession, tmp_path: Path) -> None:
    Catalog(tmp_path / "lake").data("cpu", writer="w").append(pa.table({"host": ["a", "b", "b"], "v": [1, 2, 3]}))
    for where in ("host = 'b' and v > 2", "length(host) = 1 and v > 2", field("v") * 2 > 4):
        frame = bcs.read(spark, tmp_path / "lake", table="data.cpu", where=where)
        assert [row["v"] for row in frame.collect()] == [3]
