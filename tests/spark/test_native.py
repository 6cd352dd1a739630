"""Reading natively: ``bcs.read`` and ``attach`` show what ``format("bucketcatalog")`` shows, and Spark's own reader reads the files."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import pyspark_bucketcatalog as bcs
from bucketcatalog import BucketCatalogError, Catalog, InvalidOption, NotFound
from bucketcatalog.log import segments
from pyspark_bucketcatalog.reading import frames, native

from ..kit.world import messages, proto
from .sample import OTHER, OWNER, Sample, objects, plan, read, rows

NAMES = [f"{2020 + number % 5}/{number:05}.jpg" for number in range(20_000)]
CATS = "0b6a2a0e-9d0f-5a53-8a4e-3f1e0c7d9b22"


class Lake:
    """20,000 objects merged, tombstones among them; later a few or many are overwritten, deleted, added."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        with Catalog(self.path).writer("node-1", database="photos") as writer:
            with writer.transaction() as tx:
                tx.put("buckets", {"owner": OWNER, "name": "cats", "id": CATS})
                tx.put("objects", objects(CATS, NAMES, content_type="image/jpeg"))
            with writer.transaction() as tx:
                tx.put("objects", objects(CATS, NAMES[:9_000], content_type="image/png"))
                tx.delete("objects", objects(CATS, NAMES[-100:]).select(["owner", "bucket_id", "name"]))
        self.merge()
        self.before = Catalog(self.path).snapshot().version

    def merge(self, *, full: bool = True) -> None:
        with Catalog(self.path).writer("compactor-1", database="photos") as compactor:
            compactor.checkpoint(scope="all", full=full)

    def change(self, every: int) -> None:
        """Each so-many-th object is overwritten, its neighbour deleted, and there are new ones."""
        with Catalog(self.path).writer("node-2", database="photos") as writer, writer.transaction() as tx:
            tx.put("objects", objects(CATS, NAMES[::every], content_type="text"))
            tx.delete("objects", objects(CATS, NAMES[1::every]).select(["owner", "bucket_id", "name"]))
            tx.put("objects", objects(CATS, [f"new/{number}" for number in range(10)], owner=OTHER))


@pytest.fixture(scope="module")
def merged(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return Lake(tmp_path_factory.mktemp("merged") / "lake")


@pytest.fixture(scope="module", params=[2_000, 4])
def changed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """Few changes, and as many as are read through Python."""
    lake = Lake(tmp_path_factory.mktemp("changed") / "lake")
    lake.change(request.param)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frames, "LOCAL_KEYS", 1_000)
        yield lake


def same(spark: SparkSession, path: str, **options: Any) -> DataFrame:
    """A native frame, whose rows are those that the data source gives."""
    frame = bcs.read(spark, path, native=True, **options)
    assert rows(frame) == rows(read(spark, path, **options))
    assert {name: str(kind) for name, kind in frame.dtypes} == dict(read(spark, path, **options).dtypes)
    return frame


@pytest.mark.once
@pytest.mark.parametrize("table", ["objects", "deleted_objects"])
def test_the_rows_are_those_of_the_data_source(spark: SparkSession, merged: Lake, table: str) -> None:
    frame = same(spark, merged.path, table=table)

    assert "FileScan parquet" in plan(frame) and "MapInArrow" not in plan(frame)


def test_rows_that_something_lies_over_are_left_out_and_shown_beside(spark: SparkSession, changed: Lake) -> None:
    for table in ("objects", "deleted_objects"):
        same(spark, changed.path, table=table)
    frame = bcs.read(spark, changed.path, native=True)

    assert "FileScan parquet" in plan(frame) and "Subquery" in plan(frame) and "Join" not in plan(frame)
    assert same(spark, changed.path, bucket="cats", owner=OWNER, prefix="2021/", columns="name,content_type,_version").count() > 0
    assert same(spark, changed.path, versionAsOf=Catalog(changed.path).snapshot().version).count() == frame.count()


@pytest.mark.once
@pytest.mark.parametrize("table", ["objects", "deleted_objects"])
def test_names_of_buckets_are_joined_to_what_is_read_natively(spark: SparkSession, changed: Lake, table: str) -> None:
    asked = {"table": table, "columns": ["bucket", "name", "content_type"]}
    frame = bcs.read(spark, changed.path, native=True, **asked)

    assert rows(frame) == rows(read(spark, changed.path, **asked | {"columns": "bucket,name,content_type"})) != []
    assert "BroadcastHashJoin" in plan(frame) and "FileScan parquet" in plan(frame)
    some = bcs.read(spark, changed.path, native=True, where={"bucket": "cats", "name": NAMES[2]}, **asked)
    assert {row["bucket"] for row in rows(some)} <= {"cats"}
    if table == "deleted_objects":
        ended = bcs.read(spark, changed.path, table=table, columns=["_ended_by", "_end_writer", "_end_operation"])
        assert ended.where("_end_operation IS NOT NULL").count() == 0
        assert {tuple(row) for row in ended.select("_ended_by", "_end_writer").distinct().collect()} >= {
            ("put", "node-1"),
            ("delete", "node-1"),
        }


def test_columns_are_pruned_and_filters_pushed_down(spark: SparkSession, changed: Lake) -> None:
    frame = bcs.read(spark, changed.path, native=True)
    asked = plan(frame.where("name LIKE '2021/%'").groupBy("content_type").sum("content_length"))

    assert "StringStartsWith(name,2021/)" in asked
    (schema,) = {line.partition("ReadSchema: ")[2] for line in asked.splitlines() if "ReadSchema: " in line}
    stored = {part.partition(":")[0] for part in schema.removeprefix("struct<").removesuffix(">").split(",")}
    assert stored == {"name", "content_type", "content_length", "_tmp_metadata_row_index"}


def test_the_past_is_read_as_of_a_version_a_time_and_a_tag(spark: SparkSession, changed: Lake) -> None:
    cut = Catalog(changed.path).snapshot(version=changed.before).cut
    then = same(spark, changed.path, versionAsOf=changed.before)

    assert then.count() == len(NAMES) - 100 == same(spark, changed.path, timestampAsOf=f"@{cut.newest_commit_time}").count()
    Catalog(changed.path).tag(f"kept{then.count()}", version=changed.before)
    assert rows(bcs.read(spark, changed.path, versionAsOf=f"kept{then.count()}", columns=["name"])) == rows(then.select("name"))


def test_a_frame_shows_its_cut_whatever_is_committed_and_merged_meanwhile(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    frame = bcs.read(spark, lake.path, native=True, columns="name,content_type")
    before = rows(frame)
    lake.change(3)
    between = bcs.read(spark, lake.path, native=True, columns="name,content_type")
    now = rows(between)
    lake.merge()

    assert rows(frame) == before != now == rows(between)
    assert rows(bcs.read(spark, lake.path, native=True, columns="name,content_type")) == now


def test_attach_shows_all_tables_or_none(spark: SparkSession, tmp_path: Path) -> None:
    with Catalog(tmp_path / "lake").writer("node-1") as writer, writer.transaction() as tx:
        tx.put("buckets", {"owner": OWNER, "name": "cats", "id": CATS})
        tx.put("objects", objects(CATS, NAMES))

    with pytest.raises(
        InvalidOption, match=r"'(deleted_)?objects' cannot be read natively: no checkpoint holds its lowest level"
    ):
        bcs.attach(spark, tmp_path / "lake", view_prefix="strict_", native=True)
    assert not [table.name for table in spark.catalog.listTables() if table.name.startswith("strict_")]
    bcs.attach(spark, tmp_path / "lake", view_prefix="strict_")
    assert spark.table("strict_objects").count() == len(NAMES) and spark.table("strict_buckets").count() == 1


def test_the_file_system_is_that_of_the_session(own: SparkSession, merged: Lake) -> None:
    own.conf.set("fs.viewfs.impl.disable.cache", "true")
    own.conf.set("fs.viewfs.mounttable.default.link./lake", f"file://{merged.path}")

    assert bcs.read(own, merged.path, native=True, native_root="viewfs:///lake").count() == len(NAMES) - 100


def test_a_file_that_is_gone_is_an_error_and_never_fewer_rows(own: SparkSession, tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    own.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    own.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    frame = bcs.read(own, lake.path, native=True)
    assert frame.count() == len(NAMES) - 100
    for file in Path(lake.path).rglob("*.parquet"):
        file.unlink()

    with pytest.raises((PySparkException, Py4JJavaError), match=r"(?s)FAILED_READ_FILE|does not exist|FILE_NOT_EXIST"):
        frame.select("name").collect()


@pytest.mark.parametrize(("column", "of_dictionary"), [("name", False), ("content_type", True)])
def test_a_page_that_is_damaged_is_an_error_also_where_a_filter_is_pushed_down(
    spark: SparkSession, tmp_path: Path, column: str, of_dictionary: bool
) -> None:
    lake = Lake(tmp_path / "lake")
    frame = bcs.read(spark, lake.path, native=True)
    (file,) = {name.removeprefix("file://") for name in frame.inputFiles()}
    data, metadata = bytearray(Path(file).read_bytes()), pq.ParquetFile(file).metadata
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        (chunk,) = (each for each in map(group.column, range(group.num_columns)) if each.path_in_schema == column)
        start, stop = chunk.data_page_offset, chunk.data_page_offset + chunk.total_compressed_size
        if of_dictionary:
            start, stop = chunk.dictionary_page_offset, chunk.data_page_offset
        word = data.find(b"image/png", start, stop)
        data[word + 6 if word >= 0 else (start + stop) // 2] ^= 1
    Path(file).write_bytes(data)

    for asked in (frame, frame.where("content_type = 'image/png' AND name < '9'")):
        with pytest.raises((PySparkException, Py4JJavaError), match=r"(?s)(CRC|checksum)"):
            asked.select("name", "content_type").collect()


SETTINGS = {
    "spark.sql.caseSensitive": "true",
    "spark.sql.parquet.fieldId.read.enabled": "true",
    "spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY",
    "spark.sql.parquet.mergeSchema": "true",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.session.timeZone": "America/New_York",
    "spark.sql.parquet.enableVectorizedReader": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.files.maxPartitionBytes": "65536",
}


def test_no_setting_of_a_session_changes_an_answer(own: SparkSession, changed: Lake) -> None:
    before = rows(read(own, changed.path, columns="name,created,content_length,_version"))
    for name, value in SETTINGS.items():
        own.conf.set(name, value)
    after = bcs.read(own, changed.path, native=True, columns="name,created,content_length,_version").toArrow()

    assert rows(after.set_column(1, "created", after["created"].cast(pa.timestamp("us", "UTC")))) == before


def test_a_root_with_odd_characters_is_read(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(tmp_path / "date=2024" / "a [b]*{c,d}? %20#'\"é:x")

    assert same(spark, lake.path, columns="name,content_length").count() == len(NAMES) - 100


@pytest.mark.once
def test_what_cannot_be_read_natively_is_read_through_python_and_says_why(
    spark: SparkSession, merged: Lake, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = rows(read(spark, merged.path, columns="name"))
    caplog.set_level(logging.WARNING, logger="pyspark_bucketcatalog")
    for options, why in [
        ({"ignoreCorruption": True}, "what is damaged is read past, row by row"),
        ({"native_root": "file:///nowhere"}, "Spark does not read file:///nowhere: .*PATH_NOT_FOUND"),
        ({"native_root": "nosuch://bucket"}, "Spark does not read nosuch://bucket: .*No FileSystem for scheme"),
        ({"native_root": "viewfs:///lake"}, "Spark does not read viewfs:///lake: .*Empty Mount table"),
    ]:
        caplog.clear()
        assert rows(bcs.read(spark, merged.path, columns=["name"], **options)) == expected
        (said,) = caplog.messages
        assert re.match(f"Table 'objects' is read through Python: {why}", said)
        with pytest.raises(InvalidOption, match="Table 'objects' cannot be read natively: "):
            bcs.read(spark, merged.path, native=True, **options)
    caplog.clear()
    assert rows(bcs.read(spark, merged.path, columns=["name"], native=False)) == expected and not caplog.messages


def test_files_of_another_size_elsewhere_are_not_read(spark: SparkSession, merged: Lake, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(merged.path, tmp_path / "copy")
    for file in (tmp_path / "copy").rglob("*.parquet"):
        file.write_bytes(file.read_bytes() + b"more")

    with pytest.raises(InvalidOption, match="other sizes"):
        bcs.read(spark, merged.path, native=True, native_root=f"file://{tmp_path}/copy")


class TestAttach:
    @pytest.fixture
    def views(self, own: SparkSession, changed: Lake) -> Iterator[list[str]]:
        return iter([bcs.attach(own, changed.path)])

    def test_views_are_read_natively_and_join_small_tables_by_broadcast(
        self, own: SparkSession, views: Iterator[list[str]]
    ) -> None:
        assert {"objects", "buckets", "deleted_objects", "log", "segments"} <= set(next(views))
        asked = own.sql("SELECT b.name, count(*) FROM objects o JOIN buckets b ON b.id = o.bucket_id GROUP BY b.name")

        assert "FileScan parquet" in plan(asked) and "SortMergeJoin" not in plan(asked)
        assert [row.name for row in asked.collect()] == ["cats"]

    def test_views_show_one_cut(self, own: SparkSession, changed: Lake, views: Iterator[list[str]]) -> None:
        next(views)
        assert own.table("objects").count() == read(own, changed.path).count()
        assert own.table("deleted_objects").count() == read(own, changed.path, table="deleted_objects").count()
        assert own.table("log").count() == read(own, changed.path, table="log").count()


@pytest.mark.once
def test_events_and_tables_about_the_catalog_are_read_too(spark: SparkSession, merged: Lake) -> None:
    for options in ({"readChangeFeed": True}, {"table": "segments"}, {"table": "log"}):
        assert rows(bcs.read(spark, merged.path, **options)) == rows(read(spark, merged.path, **options))
    with pytest.raises(InvalidOption, match="only tables, their tombstones, and views of these lie in files"):
        bcs.read(spark, merged.path, table="log", native=True)


@pytest.mark.once
def test_an_empty_state_and_a_bucket_that_is_not_there(spark: SparkSession, merged: Lake) -> None:
    assert bcs.read(spark, merged.path, timestampAsOf="1970-01-01").count() == 0
    with pytest.raises(NotFound):
        bcs.read(spark, merged.path, bucket="dogs")
    with pytest.raises(InvalidOption, match="no option 'nativ'"):
        bcs.read(spark, merged.path, nativ=True)


@pytest.mark.once
def test_rows_through_python_are_many_to_spark_however_few_columns_they_have(spark: SparkSession, sample: Sample) -> None:
    frame = bcs.read(spark, sample.path, columns="name", native=False)
    small = spark.range(10).selectExpr("cast(id AS string) AS name")
    told = int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))

    assert told >= 64 << 20
    assert rows(frame) == rows(read(spark, sample.path, columns="name"))
    assert frame.coalesce(1).count() == frame.union(frame).count() // 2 == frame.count()
    assert "BroadcastHashJoin [name" in plan(frame.join(small, "name"))


def test_what_is_damaged_is_an_error_of_its_own_view_alone(
    own: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "INLINE_RUN_BYTES", 0)
    lake = Lake(tmp_path / "lake")
    found = Catalog(lake.path).snapshot().scan("segments", where={"table": "buckets"}).to_arrow()["name"].to_pylist()
    for name in set(found):
        Path(lake.path, name).unlink()
    bcs.attach(own, lake.path)

    assert own.table("objects").count() == len(NAMES) - 100
    with pytest.raises((PySparkException, Py4JJavaError), match=r"(?s)MISSING|is gone"):
        own.table("buckets").collect()


def test_a_frame_stays_as_it_is_when_its_table_is_declared_anew(spark: SparkSession, tmp_path: Path) -> None:
    def catalog(fields: str) -> Catalog:
        found = Catalog(tmp_path)
        found.register(
            messages(proto(f'message R {{ option (table) = {{ name: "lab.r" key: "k" }}; int64 k = 1; {fields} }}'))["R"]
        )
        return found

    with catalog("optional string v = 2; optional int32 n = 3;").writer("maintainer-1") as writer:
        with writer.transaction() as tx:
            tx.put("lab.r", [{"k": number, "v": str(number), "n": number} for number in range(10_000)])
        writer.checkpoint(scope="all", full=True)
    frame = bcs.read(spark, str(tmp_path), table="lab.r", native=True)
    before = rows(frame)
    newer = "optional string called = 2; optional int64 n = 3; int32 zero = 4; optional int64 since = 5 [(column) = {"
    with (
        catalog(f"{newer} type: LOGICAL_TYPE_TIMESTAMP_MICROS default: COLUMN_DEFAULT_CREATED }}];").writer(
            "maintainer-1"
        ) as writer,
        writer.transaction() as tx,
    ):
        tx.put("lab.r", [{"k": 10_000, "called": "new", "n": 1 << 40, "zero": 5}])
    after = bcs.read(spark, str(tmp_path), table="lab.r", native=True)

    assert rows(frame) == before and frame.columns == ["k", "v", "n"]
    assert after.columns == ["k", "called", "n", "zero", "since"]
    assert rows(after) == rows(read(spark, str(tmp_path), table="lab.r"))
    assert after.where("zero = 0 AND since IS NOT NULL AND called = '7' AND n = 7").count() == 1


def test_files_of_one_size_are_read_apart(spark: SparkSession, tmp_path: Path) -> None:
    """Which rows are left out of a file is told by its size."""
    lake = Lake(tmp_path / "lake")
    found = Catalog(lake.path).snapshot().scan("objects", columns=["name"]).files()  # type: ignore[union-attr]
    (file,) = found.native
    twins = [replace(file, left_out=pa.array(left_out, pa.int64())) for left_out in ([0, 1, 2], [5])]
    frame = native.native_frame(spark, twins, f"file://{lake.path}")

    assert frame.count() == 2 * file.rows - 4


def test_whether_natively_is_yes_or_no(spark: SparkSession, merged: Lake) -> None:
    assert "FileScan" not in plan(bcs.read(spark, merged.path, native="false"))  # type: ignore[arg-type] # as options are given
    for value in ("nonsense", 0, 1, ""):
        with pytest.raises(InvalidOption, match="native cannot be"):
            bcs.read(spark, merged.path, native=value)  # type: ignore[arg-type]
        with pytest.raises(InvalidOption, match="native cannot be"):
            bcs.attach(spark, merged.path, native=value)  # type: ignore[arg-type]


def test_damage_is_told_where_a_database_is_attached(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lake = Lake(tmp_path / "lake")
    for file in Path(lake.path).rglob("compactor-1/**/*.parquet"):
        file.unlink()
    caplog.set_level(logging.WARNING, logger="pyspark_bucketcatalog")

    bcs.attach(spark, lake.path, view_prefix="gone_")
    assert any(said.startswith("Table 'objects' cannot be read: ") and ".parquet" in said for said in caplog.messages)
    with pytest.raises(BucketCatalogError, match=r"\.parquet"):
        bcs.attach(spark, lake.path, view_prefix="gone_", native=True)


def test_who_wants_rows_natively_is_told_what_to_do(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    with pytest.raises(InvalidOption, match="what has changed is wanted"):
        bcs.read(spark, lake.path, readChangeFeed=True, native=True)
    lake.change(2)
    assert bcs.read(spark, lake.path, table="deleted_objects").count() > 8_192
    with Catalog(tmp_path / "other").writer("node-1") as writer, writer.transaction() as tx:
        tx.put("objects", objects(CATS, NAMES))
    with pytest.raises(InvalidOption, match="no checkpoint holds") as caught:
        bcs.read(spark, tmp_path / "other", native=True)
    assert f"jobs.checkpoint(spark, {str(tmp_path / 'other')!r})" in str(caught.value.next_step)
