"""``bcs.delete`` and ``bcs.update``: rows that a condition is true of, changed at the versions that it saw, in one commit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

import pyspark_bucketcatalog as bcs
from bucketcatalog import Catalog, InvalidOption, InvalidRows, UnknownTable
from pyspark_bucketcatalog.writing import changing

from ..kit.in_engines import TABLE, changed
from ..kit.natively import in_some_order
from .sample import OWNER

CATS = "0b6a2a0e-9d0f-5a53-8a4e-3f1e0c7d9b22"


def objects(*names: str, **more: Any) -> list[dict[str, Any]]:
    return [{"owner": OWNER, "bucket_id": CATS, "name": name, "content_length": len(name), **more} for name in names]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Objects a to eeeee, merged, and one that lies over these."""
    with Catalog(tmp_path).writer("one", database="photos") as one:
        with one.transaction() as tx:
            tx.put("objects", objects("a", "bb", "ccc", "dddd", tags={"team": "red"}))
        with Catalog(tmp_path).writer("compactor-1", database="photos") as compactor:
            compactor.checkpoint(scope="all")
        with one.transaction() as tx:
            tx.put("objects", objects("eeeee"))
    return tmp_path


def shown(path: Path, *columns: str, table: str = "objects") -> list[tuple[Any, ...]]:
    found = Catalog(path).snapshot().scan(table, columns=["name", *columns]).to_arrow().to_pylist()
    return [tuple(row.values()) for row in found]


def log(path: Path) -> list[dict[str, Any]]:
    return sorted(Catalog(path).snapshot().scan("log").to_arrow().to_pylist(), key=lambda each: each["commit_timestamp"])


@pytest.mark.parametrize("native", [None, False])
def test_what_a_condition_is_true_of_is_deleted_by_version(spark: SparkSession, path: Path, native: bool | None) -> None:
    before = Catalog(path).snapshot()
    done = bcs.delete(spark, path, "photos", where="content_length % 2 = 1 AND name <> 'a'", writer="etl", native=native)

    assert (done.rows, done.version, done.read) == (2, "etl@0", before.version)
    assert [name for (name,) in shown(path)] == ["a", "bb", "dddd"]
    ended = dict(shown(path, "_version", table="deleted_objects"))
    was = {row["name"]: row["_version"] for row in before.scan("objects", columns=["name", "_version"]).to_arrow().to_pylist()}
    assert ended == {name: was[name] for name in ("ccc", "eeeee")}
    events = Catalog(path).changes(start=before.version).to_arrow().to_pylist()
    assert {(e["_change_type"], e["name"], e["_version"]) for e in events} == {("delete", name, was[name]) for name in ended}
    last = log(path)[-1]
    assert (last["operation"], last["events"]) == ("delete", 2)
    assert b"content_length %" not in next(path.glob("etl/photos/transactions/*/*.txn")).read_bytes()


def test_tombstones_that_a_condition_is_true_of_are_forgotten(spark: SparkSession, path: Path) -> None:
    with Catalog(path).writer("w", database="photos") as writer:
        for names in (("a", "bb"), ("ccc",)):
            with writer.transaction() as tx:
                tx.delete("objects", [{"owner": OWNER, "bucket_id": CATS, "name": name} for name in names])
    ended = Catalog(path).snapshot().scan("deleted_objects", columns=["deleted_at"], where={"name": "ccc"}).to_arrow()
    purged = bcs.purge(spark, path, where=F.col("deleted_at") < F.lit(ended["deleted_at"][0].as_py()))
    assert purged.rows == 2 and log(path)[-1]["operation"] == "purge"
    assert shown(path, table="deleted_objects") == [("ccc",)]
    assert bcs.purge(spark, path, where="name = 'a'").rows == 0
    with pytest.raises(InvalidOption, match="Spark cannot do this"):
        bcs.purge(spark, path, where="no_column = 1")


@pytest.mark.parametrize("as_column", [False, True])
def test_conditions_and_expressions_name_buckets(spark: SparkSession, path: Path, as_column: bool) -> None:
    with Catalog(path).writer("w", database="photos") as writer, writer.transaction() as tx:
        tx.put("buckets", [{"owner": OWNER, "name": "cats", "id": CATS}, {"owner": OWNER, "name": "dogs"}])
        tx.put("objects", {"bucket": "dogs", "name": "a"})
        tx.delete("objects", {"bucket": "cats", "name": "bb"})
    where = "BUCKET = 'cats' and name = 'a'"
    done = bcs.update(spark, path, set={"content_type": "concat('of/', bucket)"}, where=F.expr(where) if as_column else where)
    assert done.rows == 1 and shown(path, "content_type")[0] == ("a", "of/cats")
    where = "bucket <> 'dogs' and name > 'b'"
    assert bcs.delete(spark, path, where=F.expr(where) if as_column else where).rows == 3
    assert [name for (name,) in shown(path)] == ["a", "a"]
    assert bcs.purge(spark, path, where=F.col("bucket") == "dogs" if as_column else "bucket = 'dogs'").rows == 0
    assert bcs.purge(spark, path, where=F.col("bucket") == "cats" if as_column else "bucket = 'cats'").rows == 4
    with pytest.raises(InvalidOption, match="'bucket' of table 'objects' is part of what a version is"):
        bcs.update(spark, path, set={"bucket": "'dogs'"}, where="true")


def test_what_is_put_again_meanwhile_stays(spark: SparkSession, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put = changing._put

    def later(*given: Any) -> Any:
        found = list(put(*given))
        with Catalog(path).writer("one", database="photos") as one, one.transaction() as tx:
            tx.put("objects", objects("ccc", content_md5=None))
        return found

    monkeypatch.setattr(changing, "_put", later)
    done = bcs.delete(spark, path, where="name >= 'ccc'")
    assert done.rows == 3
    assert [name for (name,) in shown(path)] == ["a", "bb", "ccc"]
    assert len(Catalog(path).snapshot().scan("conflicts").to_arrow()) == 0


def test_rows_are_updated_whole_and_stay_the_version_that_they_were(spark: SparkSession, path: Path) -> None:
    was = shown(path, "_version", "created", "tags", "modified")
    done = bcs.update(
        spark,
        path,
        table="objects",
        set={"content_length": "content_length * 10", "content_type": F.concat(F.lit("x/"), F.col("name"))},
        where=F.col("name").isin("bb", "eeeee"),
    )

    assert done.rows == 2 and done.version is not None and done.version.startswith("spark-")
    assert shown(path, "content_length", "content_type") == [
        ("a", 1, None),
        ("bb", 20, "x/bb"),
        ("ccc", 3, None),
        ("dddd", 4, None),
        ("eeeee", 50, "x/eeeee"),
    ]
    now = shown(path, "_version", "created", "tags", "modified")
    assert [row[:4] for row in now] == [row[:4] for row in was]
    assert [new[4] > old[4] for new, old in zip(now, was, strict=True)] == [name in ("bb", "eeeee") for (name, *_) in now]


def test_rows_of_every_type_are_updated_to_what_they_were(spark: SparkSession, tmp_path: Path) -> None:
    catalog = changed(tmp_path)
    before = catalog.snapshot().scan(TABLE).to_arrow().drop_columns("modified")
    done = bcs.update(spark, tmp_path, table=TABLE, set={}, where="true")

    assert done.rows == len(before) > 0
    assert in_some_order(Catalog(tmp_path).snapshot().scan(TABLE).to_arrow().drop_columns("modified")) == in_some_order(before)


def test_values_are_set_as_they_are(spark: SparkSession, path: Path) -> None:
    bcs.update(spark, path, set={"content_length": 5, "etag": None, "legal_hold": True}, where="name = 'a'")
    assert shown(path, "content_length", "etag", "legal_hold")[0] == ("a", 5, None, True)


def test_nothing_that_matches_is_no_commit(spark: SparkSession, path: Path) -> None:
    count = len(log(path))
    assert (done := bcs.delete(spark, path, where="name = 'z'")).rows == 0 and done.version is None
    assert bcs.update(spark, path, where="false", set={"etag": "'x'"}).rows == 0
    assert len(log(path)) == count


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("cast(name AS long)", r"Spark cannot compute this for all rows of 'objects'.*CAST_INVALID_INPUT.*Next: .*try_cast"),
        ("content_length div (content_length - 1)", r"Spark cannot compute this for all rows of 'objects'.*DIVIDE_BY_ZERO"),
    ],
)
def test_what_spark_cannot_compute_is_a_typed_error(spark: SparkSession, path: Path, value: str, message: str) -> None:
    before = Catalog(path).snapshot().version
    with pytest.raises(InvalidRows, match=message):
        bcs.update(spark, path, set={"content_length": value}, where="true")
    assert Catalog(path).snapshot().version == before


@pytest.mark.once
def test_what_the_table_cannot_hold_is_the_same_error_as_elsewhere(spark: SparkSession, path: Path) -> None:
    with pytest.raises(InvalidRows, match=r"comes to 70000\d{3} bytes.*Next: Store"):
        bcs.update(spark, path, set={"content_type": "repeat('x', 70000000)"}, where="name = 'a'")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"where": "nome = 'a'"}, r"Spark cannot do this to rows of 'objects'.*nome.*Next: .*Spark SQL, of the columns owner"),
        ({"where": "to_json(struct(*)) NOT LIKE '%a%'"}, r"A condition cannot speak of all columns by \*.*Name them: owner"),
        ({"where": "hash(name, *) = 1"}, r"A condition cannot speak of all columns by \*"),
        (
            {"where": "true", "set": {"etag": object()}},
            r"Column 'etag' cannot be set to <object.*Next: Give text that is Spark SQL",
        ),
        ({"where": "name ="}, r"Spark cannot do this to rows of 'objects'.*PARSE"),
        ({"where": "true", "set": {"nome": "1"}}, r"has no column 'nome'.*Next: Set some of owner"),
        ({"where": "true", "set": {"name": "'x'"}}, r"'name' of table 'objects' is part of what a version is"),
        ({"where": "true", "set": {"id": "'x'"}}, r"'id' of table 'objects' is part of what a version is"),
        ({"where": "true", "set": {"content_length": "map(1, 2)"}}, r"Spark cannot do this to rows of 'objects'.*cast"),
        ({"where": "true", "table": "log"}, r"'log' is about the catalog"),
        ({"where": "true", "table": "deleted_objects"}, r"'deleted_objects'"),
    ],
)
def test_what_cannot_be_changed_is_a_typed_error(spark: SparkSession, path: Path, given: dict[str, Any], message: str) -> None:
    before = Catalog(path).snapshot().version
    with pytest.raises((InvalidOption, UnknownTable), match=message):
        (bcs.update if "set" in given else bcs.delete)(spark, path, "photos", **given)
    assert Catalog(path).snapshot().version == before


def test_a_star_that_is_no_column_is_none(spark: SparkSession, path: Path) -> None:
    done = bcs.delete(spark, path, where="content_length * 2 = 4 OR name = 'x(*' OR content_length*3 = 9")
    assert [name for (name,) in shown(path)] == ["a", "dddd", "eeeee"] and done.rows == 2
