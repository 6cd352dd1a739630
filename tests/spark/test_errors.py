"""What goes wrong says what, with its code and the next step, through Spark too; and what is secret is shown nowhere."""

from __future__ import annotations

import importlib.machinery
import os
import pickle
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, PythonException
from pyspark.sql import SparkSession

import pyspark_bucketcatalog as bcs
from bucketcatalog import BrokenSystem, Catalog, CatalogWarning, ForkDetected, InvalidOption, NotFound, UsageError
from pyspark_bucketcatalog import DefaultSource
from pyspark_bucketcatalog.failing import ours_first
from pyspark_bucketcatalog.options import ReadOptions
from pyspark_bucketcatalog.reading.relation import open_relation

from ..kit.corrupting import chunk_of
from .sample import OTHER, OWNER, Sample, objects, read, reader, rows


@pytest.mark.once
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"versonAsOf": "1"}, r"\[INVALID_OPTION\] There is no option 'versonasof'. Next: Did you mean versionAsOf\?"),
        ({"mergeSchema": "true"}, r"\[INVALID_OPTION\] There is no option 'mergeschema'"),
        (
            {"ignoreCorruption": "perhaps"},
            r"\[INVALID_OPTION\] The option ignoreCorruption is 'perhaps'. Next: Set it to true or false",
        ),
        ({"strict": "maybe"}, r"\[INVALID_OPTION\] The option strict is 'maybe'. Next: Set it to true or false"),
        ({"maxPartitionRows": "0"}, r"\[INVALID_OPTION\] The option maxPartitionRows"),
        ({"timestampAsOf": "@1", "versionAsOf": "1"}, r"\[INVALID_OPTION\] .* exclude each other"),
        ({"endingVersion": "1"}, r"\[INVALID_OPTION\] .*readChangeFeed"),
        ({"endingTimestamp": "@1"}, r"\[INVALID_OPTION\] .*readDifference"),
        (
            {"readChangeFeed": "true", "readDifference": "true"},
            r"\[INVALID_OPTION\] .* exclude each other. Next: Leave one of them out\.$",
        ),
        (
            {"readDifference": "true", "versionAsOf": "1"},
            r"\[INVALID_OPTION\] .* exclude each other.*endingVersion is what it ends with",
        ),
        (
            {"readChangeFeed": "true", "bucket": "cow"},
            r"\[NOT_FOUND\] There is no bucket 'cow' in database 'photos' at this version",
        ),
        ({"timestampAsOf": "tomorrow"}, r"\[INVALID_TIME\] 'tomorrow' is not a time"),
        ({"timestampAsOf": "2999-01-01"}, r"\[INVALID_TIME\] .* after now"),
        ({"versionAsOf": "nightly"}, r"\[INVALID_VERSION\] There is no tag 'nightly'"),
        ({"table": "cows"}, r"\[UNKNOWN_TABLE\] There is no table 'cows'.* Next: Choose one of buckets, "),
        ({"table": "deleted_log"}, r"\[UNKNOWN_TABLE\]"),
        ({"table": "log", "bucket": "cats"}, r"\[INVALID_OPTION\] Table 'log' is about the catalog"),
        ({"table": "harvest_errors", "bucket": "cats"}, r"\[INVALID_OPTION\] Table 'harvest_errors' has no buckets"),
        ({"database": "videos"}, r"\[DATABASE_NOT_FOUND\] .* no database 'videos'. Next: Choose one of photos"),
        ({"bucket": "cow"}, r"\[NOT_FOUND\] There is no bucket 'cow'"),
        ({"owner": "me"}, r"\[INVALID_OPTION\] The owner 'me' is not a uuid. Next: Give one, or leave it out"),
        ({"owner": "me", "bucket": "cats"}, r"\[INVALID_OPTION\] The owner 'me' is not a uuid"),
        ({"owner": "me", "table": "deleted_objects"}, r"\[INVALID_OPTION\] The owner 'me' is not a uuid"),
        ({"columns": "name,,id"}, r"\[INVALID_OPTION\] The option columns"),
        ({"columns": "nome"}, r"\[INVALID_OPTION\] Table 'objects' has no column 'nome'"),
    ],
)
def test_a_wrong_option_is_named_with_what_to_do(sample: Sample, options: dict[str, str], message: str) -> None:
    with pytest.raises((UsageError, NotFound), match=message):
        DefaultSource({"path": sample.path, **{name.lower(): value for name, value in options.items()}}).schema()


def test_sparks_own_error_holds_the_code_and_the_next_step(spark: SparkSession, sample: Sample) -> None:
    with pytest.raises(AnalysisException, match=r"\[INVALID_OPTION\] There is no option 'tabel'. Next: Did you mean table\?"):
        read(spark, sample.path, tabel="objects")


def test_our_line_comes_first_without_a_traceback(spark: SparkSession, sample: Sample, copied: Sample) -> None:
    asked = [
        lambda: read(spark, sample.path, tabel="objects"),
        lambda: spark.sql(f"CREATE TEMPORARY VIEW wrong USING bucketcatalog OPTIONS (path '{sample.path}', tabel 'objects')"),
        lambda: spark.range(1).write.format("bucketcatalog").mode("append").option("table", "buckets").save(copied.path),
    ]
    frames = [bcs.read(spark, copied.path, table="objects", native=False), read(spark, copied.path)]
    assert [frame.count() > 0 for frame in frames] == [True, True]
    assert list(damaged(copied, "*.parquet"))
    for ask in [*asked, *(frame.collect for frame in frames)]:
        with pytest.raises((AnalysisException, PythonException)) as error:
            ask()
        lines = [line for line in str(error.value).splitlines() if line.strip()]  # PySpark 4.1 begins with an empty one
        ours = next(number for number, line in enumerate(lines) if "bucketcatalog.errors." in line)
        assert ours <= 1 and re.search(r"bucketcatalog\.errors\.\w+: \[[A-Z_]+\] .* Next: ", lines[ours]), lines
        assert "Traceback" not in str(error.value)


def test_a_traceback_is_hidden_of_our_errors_alone_and_in_sparks_processes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def told_of(error: Exception) -> bool:
        monkeypatch.delenv("SPARK_HIDE_TRACEBACK", raising=False)
        with pytest.raises(type(error)), ours_first():
            raise error
        return os.environ.pop("SPARK_HIDE_TRACEBACK", None) == "1"

    assert not told_of(NotFound("It is gone.", next_step="Look."))
    spec = importlib.machinery.ModuleSpec("pyspark.daemon", None)
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", spec)
    assert told_of(NotFound("It is gone.", next_step="Look."))
    assert not told_of(ValueError("It is none."))
    assert not told_of(BrokenSystem("It failed.", next_step="Report it."))
    monkeypatch.setenv("BUCKETCATALOG_TRACEBACK", "1")
    assert not told_of(NotFound("It is gone.", next_step="Look."))


def test_no_catalog_is_an_error_and_never_an_empty_frame(spark: SparkSession, tmp_path: Path) -> None:
    for options in ({}, {"database": "photos"}, {"database": "photos", "timestampAsOf": "2001-01-01"}):
        with pytest.raises(AnalysisException, match=rf"\[CATALOG_NOT_FOUND\] There is no catalog at {tmp_path}.*Next: "):
            read(spark, str(tmp_path), **options)
    with pytest.raises(AnalysisException, match=r"\[INVALID_OPTION\] No catalog is named"):
        spark.read.format("bucketcatalog").load()
    with pytest.raises(AnalysisException, match=r"\[INVALID_OPTION\] A read is of one catalog"):
        spark.read.format("bucketcatalog").option("table", "log").load(["a", "b"])


@pytest.mark.once
def test_several_databases_are_listed(spark: SparkSession, tmp_path: Path) -> None:
    for database in ("photos", "videos"):
        with Catalog(tmp_path).writer("node-1", database=database) as writer, writer.transaction() as tx:
            tx.put("buckets", {"owner": OWNER, "name": database})

    with pytest.raises(AnalysisException, match=r"\[DATABASE_NOT_FOUND\] .*photos, videos"):
        read(spark, str(tmp_path), table="buckets")
    assert [row["name"] for row in rows(read(spark, str(tmp_path), table="buckets", database="videos"))] == ["videos"]


def damaged(sample: Sample, pattern: str) -> Iterator[Path]:
    for path in Path(sample.path).rglob(pattern):
        data = bytearray(path.read_bytes())
        data[chunk_of(bytes(data)) if path.suffix == ".parquet" else len(data) // 3] ^= 1
        path.write_bytes(data)
        yield path


@pytest.mark.parametrize("pattern", ["*.parquet", *(pytest.param(name, marks=pytest.mark.once) for name in ("*.ckpt", "*.txn"))])
def test_a_damaged_file_stops_the_read_and_is_named(spark: SparkSession, copied: Sample, pattern: str) -> None:
    files = [path.relative_to(copied.path).as_posix() for path in damaged(copied, pattern)]

    with pytest.raises((AnalysisException, PythonException), match=r"\[CORRUPT\] .*Next: ") as error:
        read(spark, copied.path).collect()
    assert any(name in str(error.value) for name in files)


@pytest.mark.once
def test_a_missing_file_stops_the_read_and_is_named(spark: SparkSession, copied: Sample) -> None:
    frame = read(spark, copied.path)
    for path in Path(copied.path).rglob("*.parquet"):
        path.unlink()

    with pytest.raises((AnalysisException, PythonException), match=r"\[MISSING\] node-1/photos/segments/.*Next: "):
        frame.count()


@pytest.mark.once
def test_a_fork_is_a_warning_and_where_asked_for_an_error(sample: Sample, tmp_path: Path) -> None:
    copies = [tmp_path / "one", tmp_path / "two"]
    for path in copies:
        shutil.copytree(sample.path, path)
        with Catalog(path).writer("node-2", database="photos") as writer, writer.transaction() as tx:
            tx.put("buckets", {"owner": OWNER, "name": path.name})
    shutil.copytree(*copies, dirs_exist_ok=True)

    with pytest.warns(CatalogWarning, match="'node-2' is forked at revision 1"):
        assert reader(str(copies[1]), table="buckets").partitions()
    with pytest.raises(ForkDetected, match="forked"):
        reader(str(copies[1]), strict=True)


def test_values_of_storage_options_are_shown_nowhere() -> None:
    secret = "hunter2"
    options = ReadOptions.parse({"path": "s3://lake/x", "storage.secret": secret, "storage.client_kwargs": '{"verify": false}'})

    assert options.storage == {"secret": secret, "client_kwargs": {"verify": False}}
    assert secret not in repr(options)


def test_errors_about_storage_options_do_not_show_their_values(sample: Sample) -> None:
    with pytest.raises(InvalidOption, match="secret") as error:
        open_relation({"path": sample.path, "storage.secret": "hunter2"})

    assert "hunter2" not in str(error.value)


def test_storage_options_reach_the_store_in_the_tasks_and_no_plan(spark: SparkSession, tmp_path: Path) -> None:
    with Catalog(tmp_path / "catalog").writer("node-1") as writer, writer.transaction() as tx:
        tx.put("objects", objects(OTHER, ["a", "b"]))
    options = {"storage.auto_mkdir": "true", "storage.token": "hunter2"}
    frame = read(spark, f"local://{tmp_path}/catalog", **options)
    task = pickle.loads(pickle.dumps(reader(f"local://{tmp_path}/catalog", **options)))

    assert frame.count() == 2
    assert task._relation.options.storage == {"auto_mkdir": True, "token": "hunter2"}
    assert "hunter2" not in frame._jdf.queryExecution().toString() + repr(task._relation) + repr(task._relation.catalog.store)
    assert "hunter2" not in repr(task.partitions())
