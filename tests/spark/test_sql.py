"""SQL: tables, temporary views, and a whole database at once."""

from __future__ import annotations

import re
from functools import partial

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import pyspark_bucketcatalog
from bucketcatalog import InvalidOption
from pyspark_bucketcatalog import DefaultSource

from .sample import OWNER, PER_BUCKET, Sample, objects, rows


def put_object(sample: Sample, name: str) -> None:
    with sample.catalog.writer("node-3", database="photos") as writer, writer.transaction() as tx:
        tx.put("objects", objects(sample.buckets["dogs"], [name]))


def test_a_created_table_takes_the_cut_at_each_query(own: SparkSession, copied: Sample) -> None:
    own.sql(
        f"CREATE TABLE dogs USING bucketcatalog OPTIONS (path '{copied.path}', database 'photos', table 'objects', bucket 'dogs')"
    )
    try:
        counts = [own.sql("SELECT count(*) FROM dogs").first()[0]]
        put_object(copied, "late")
        counts.append(own.sql("SELECT count(*) FROM dogs").first()[0])
        assert counts == [PER_BUCKET + 100, PER_BUCKET + 101]
    finally:
        own.sql("DROP TABLE dogs")
    assert copied.catalog.snapshot().scan("buckets").to_arrow().num_rows == 5


def test_a_created_table_keeps_no_credentials() -> None:
    with pytest.raises(InvalidOption, match=r"option storage.secret would be stored with the table.*Next: .*WITH") as error:
        DefaultSource({"provider": "bucketcatalog", "path": "x", "option.storage.secret": "hunter2", "storage.secret": "hunter2"})

    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT name FROM objects WITH (prefix = 'new/')",
        "SELECT name FROM objects WITH (prefix = 'new/') UNION ALL SELECT name FROM objects",
        *(
            pytest.param(query, marks=pytest.mark.once)
            for query in (
                "SELECT name FROM objects WITH (prefix = 'new/') UNION ALL SELECT name FROM objects WITH (prefix = '2021/')",
                "SELECT name FROM objects WITH (path = '{path}', prefix = 'new/')",
                "SELECT name FROM objects WITH (`storage.region` = 'east')",
            )
        ),
    ],
)
def test_options_of_a_query_are_refused_since_spark_uses_those_of_one_mention_for_all(
    own: SparkSession, sample: Sample, query: str
) -> None:
    own.sql(f"CREATE TABLE objects USING bucketcatalog OPTIONS (path '{sample.path}')")
    try:
        with pytest.raises(AnalysisException, match=r"(?s)\[INVALID_OPTION\] The option .* wherever a query names that table"):
            own.sql(query.format(path=sample.path)).collect()
    finally:
        own.sql("DROP TABLE objects")


def test_what_may_not_be_stored_with_a_table_reaches_the_store_from_a_query(sample: Sample) -> None:
    path = f"local://{sample.path}"
    schema = DefaultSource({"provider": "bucketcatalog", "path": path, "option.path": path}).schema()
    reader = DefaultSource({"storage.auto_mkdir": "true"}).reader(schema)

    assert reader._relation.options.storage == {"auto_mkdir": True}
    assert reader.partitions()


def test_sparks_own_properties_of_a_table_are_no_options(sample: Sample) -> None:
    properties = {"provider": "bucketcatalog", "owner": "somebody", "location": sample.path, "path": sample.path, "comment": "x"}

    assert DefaultSource({**properties, "table": "log", "option.table": "log"}).schema().fieldNames()[0] == "writer"


def test_a_created_table_with_columns_of_its_own_says_what_to_do(own: SparkSession, sample: Sample) -> None:
    own.sql(f"CREATE TABLE typed (name STRING) USING bucketcatalog OPTIONS (path '{sample.path}')")
    try:
        with pytest.raises(
            AnalysisException, match=r"\[INVALID_OPTION\] No catalog is named.*leave the columns out of CREATE TABLE"
        ):
            own.sql("SELECT * FROM typed").collect()
    finally:
        own.sql("DROP TABLE typed")


def test_a_temporary_view_shows_the_cut_at_which_it_was_made(own: SparkSession, copied: Sample) -> None:
    own.sql(f"CREATE TEMPORARY VIEW dogs USING bucketcatalog OPTIONS (path '{copied.path}', bucket 'dogs', prefix 'new/')")
    put_object(copied, "new/late")

    assert own.sql("SELECT count(*), max(content_length) FROM dogs").first() == (100, 99)


def test_attach_shows_every_table_at_one_cut(own: SparkSession, copied: Sample) -> None:
    views = pyspark_bucketcatalog.attach(own, copied.path)
    put_object(copied, "late")

    assert views == copied.catalog.snapshot().tables
    joined = own.sql("SELECT b.name, count(*) FROM objects o JOIN buckets b ON o.bucket_id = b.id GROUP BY b.name, b.id")
    assert sorted(tuple(row) for row in joined.collect()) == [
        ("cats", PER_BUCKET - 5),
        ("dogs", PER_BUCKET + 100),
        ("shared", PER_BUCKET),
        ("shared", PER_BUCKET),
        ("weird", 18),
    ]
    assert own.sql("SELECT count(*) FROM log").first() == (5,)


@pytest.mark.once
def test_attach_takes_a_prefix_for_views_and_a_time(own: SparkSession, sample: Sample) -> None:
    views = pyspark_bucketcatalog.attach(own, sample.path, "photos", view_prefix="old_", versionAsOf=sample.before)

    assert "old_deleted_objects" in views
    assert own.sql("SELECT count(*) FROM old_buckets").first() == (6,)
    with pytest.raises(AnalysisException, match=r"UNSUPPORTED_FEATURE\.TIME_TRAVEL"):
        own.sql("SELECT count(*) FROM old_buckets VERSION AS OF 0")
    with pytest.raises(InvalidOption, match="The option bucket is about one table"):
        pyspark_bucketcatalog.attach(own, sample.path, bucket="cats")
    assert OWNER in {row["owner"] for row in rows(own.table("old_buckets"))}


@pytest.mark.once
def test_the_past_is_an_option_of_views_and_tables_of_sql(own: SparkSession, sample: Sample) -> None:
    options = f"path '{sample.path}', database 'photos', table 'buckets'"
    own.sql(f"CREATE TEMPORARY VIEW by_version USING bucketcatalog OPTIONS ({options}, versionAsOf '{sample.before}')")
    own.sql(f"CREATE TABLE by_time USING bucketcatalog OPTIONS ({options}, timestampAsOf '{sample.before_time}')")
    own.sql(f"CREATE TEMPORARY VIEW commits USING bucketcatalog OPTIONS (path '{sample.path}', table 'log')")
    try:
        counts = [own.sql(f"SELECT count(*) FROM {name}").first()[0] for name in ("by_version", "by_time")]
        newest = own.sql("SELECT writer, max(revision) FROM commits GROUP BY writer").collect()
        for clause in (
            "VERSION AS OF 'node-1@0'",
            "TIMESTAMP AS OF '2024-05-01'",
        ):  # docs/guide/spark.md says what to write instead
            for name in ("by_version", "by_time"):
                with pytest.raises(AnalysisException, match=rf"\[UNSUPPORTED_FEATURE\.TIME_TRAVEL\].*`{name}`"):
                    own.sql(f"SELECT * FROM {name} {clause}")
        with pytest.raises(AnalysisException, match=r"UNSUPPORTED_FEATURE\.TIME_TRAVEL"):
            own.read.option("versionAsOf", sample.before).table("by_time")
    finally:
        own.sql("DROP TABLE by_time")

    assert counts == [6, 6] and sample.catalog.snapshot().scan("buckets").to_arrow().num_rows == 5
    log = sample.catalog.snapshot().scan("log", columns=["writer", "revision"]).to_arrow().to_pylist()
    assert {tuple(row) for row in newest} == {
        (name, max(row["revision"] for row in log if row["writer"] == name)) for name in {row["writer"] for row in log}
    }


def explained(spark: SparkSession, view: str) -> str:
    return str(spark.sql(f"EXPLAIN SELECT name FROM {view} WHERE name LIKE 'new/%'").first()[0])


@pytest.mark.once
def test_explain_shows_what_is_pushed_down_and_how_much_is_left_to_read(own: SparkSession, copied: Sample) -> None:
    def about(view: str) -> tuple[int, int]:
        found = re.search(r"MapInArrow ((changes of )?objects): ([\d,]+) tasks, about ([\d,]+) rows ", explained(own, view))
        assert found is not None, explained(own, view)
        return int(found[3].replace(",", "")), int(found[4].replace(",", ""))

    with copied.catalog.writer("compactor-1", database="photos") as writer:
        writer.checkpoint(scope="all", full=True)
    read = partial(pyspark_bucketcatalog.read, own, copied.path, maxPartitionRows=1)
    read(native=True).createOrReplaceTempView("natively")
    read(native=False).createOrReplaceTempView("all_of_it")
    read(native=False, bucket="cats").createOrReplaceTempView("of_a_bucket")
    pyspark_bucketcatalog.changes(own, copied.path, maxPartitionRows=1).createOrReplaceTempView("events")

    assert "PushedFilters: [IsNotNull(name), StringStartsWith(name,new/)]" in explained(own, "natively")
    assert about("all_of_it") > about("of_a_bucket") > (0, PER_BUCKET - 6)
    assert about("events")[0] > 1 and "changes of objects" in explained(own, "events")
