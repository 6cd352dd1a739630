"""The ways in which Python data sources go wrong in Spark, reading: one test each."""

from __future__ import annotations

import importlib.machinery
import io
import pickle
import pkgutil
import random
import shutil
import subprocess
import sys
import tomllib
from importlib import import_module
from inspect import signature
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import pyarrow as pa
import pytest
from pyspark.serializers import CloudPickleSerializer, read_int
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.worker import lookup_data_sources

import pyspark_bucketcatalog
from bucketcatalog import Catalog, InvalidOption
from pyspark_bucketcatalog import DefaultSource
from pyspark_bucketcatalog.reading.reader import CatalogReader
from pyspark_bucketcatalog.types import arrow_schema, spark_schema

from .sample import OTHER, OWNER, PER_BUCKET, Sample, objects, read, reader, rows

ROOT = Path(__file__).parents[2]
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
LIVE = 4 * PER_BUCKET + 18 + 95


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def looked_up() -> list[str]:
    """The names that Spark's own search for data sources finds; that of PySpark 4.1 can only be repeated, it is one with its process."""
    if not hasattr(lookup_data_sources, "_main"):
        modules = (import_module(info.name) for info in iter_modules() if info.name.startswith("pyspark_"))
        return [module.DefaultSource.name() for module in modules if hasattr(module, "DefaultSource")]
    found = io.BytesIO()
    lookup_data_sources._main(io.BytesIO(), found)
    found.seek(0)
    names = []
    for _ in range(read_int(found)):
        names.append(found.read(read_int(found)).decode())
        found.read(read_int(found))
    return names


def read_here(reading: DataSourceReader, partitions: list[InputPartition] | None = None) -> pa.Table:
    """What the tasks would read."""
    batches = [batch for part in partitions or reading.partitions() for batch in reading.read(part)]
    return pa.Table.from_batches(batches) if batches else pa.table({})


def put_bucket(sample: Sample, name: str) -> None:
    with sample.catalog.writer("node-3", database="photos") as writer, writer.transaction() as tx:
        tx.put("buckets", {"owner": OWNER, "name": name})


def names(frame: DataFrame) -> list[str]:
    return sorted(row["name"] for row in rows(frame))


def test_p01_the_format_is_found_without_registration(spark: SparkSession, sample: Sample) -> None:
    assert "bucketcatalog" in looked_up()
    assert read(spark, sample.path, table="buckets").count() == 5


def test_p02_the_package_imports_nothing_before_it_is_asked(tmp_path: Path) -> None:
    script = """
import sys
sys.modules["bucketcatalog"] = None  # importing it raises
import pyspark_bucketcatalog
assert not any(name.startswith(("pyspark_bucketcatalog.", "pyspark.")) for name in sys.modules), "imports at once"
assert pyspark_bucketcatalog.DefaultSource.name() == "bucketcatalog"
assert not hasattr(pyspark_bucketcatalog, "nonsense")
"""
    subprocess.run([sys.executable, "-c", script], check=True, cwd=tmp_path)


def test_p02_registering_helps_where_another_package_breaks_the_search(
    spark: SparkSession, sample: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyspark_broken").mkdir()
    (tmp_path / "pyspark_broken" / "__init__.py").write_text("raise RuntimeError('broken')\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(RuntimeError, match="broken"):
        looked_up()

    pyspark_bucketcatalog.register(spark)

    assert read(spark, sample.path, table="buckets").count() == 5


def test_p03_both_packages_are_packaged_at_top_level() -> None:
    wheel = project()["tool"]["hatch"]["build"]["targets"]["wheel"]

    assert wheel["packages"] == ["catalog/bucketcatalog", "spark/pyspark_bucketcatalog"]


def test_p04_no_path_is_rewritten_so_that_editable_installs_work() -> None:
    build = project()["tool"]["hatch"]["build"]

    assert "sources" not in build
    assert "sources" not in build["targets"]["wheel"]


def test_p05_the_package_is_on_the_path_and_not_behind_an_import_hook() -> None:
    assert project()["build-system"]["build-backend"] == "hatchling.build"
    assert "pyspark_bucketcatalog" in {module.name for module in pkgutil.iter_modules()}
    assert importlib.machinery.PathFinder.find_spec("pyspark_bucketcatalog") is not None


def test_p06_pyarrow_is_a_hard_dependency() -> None:
    needed = [line for line in project()["project"]["dependencies"] if line.startswith("pyarrow")]

    assert len(needed) == 1
    assert int(needed[0].removeprefix("pyarrow>=")) >= 18
    assert project()["project"]["requires-python"] == ">=3.11"


def test_p07_registering_over_the_one_that_was_found_is_allowed(spark: SparkSession, sample: Sample) -> None:
    pyspark_bucketcatalog.register(spark)
    pyspark_bucketcatalog.register(spark)

    assert read(spark, sample.path, table="buckets").count() == 5


@pytest.mark.parametrize("options", [{}, {"columns": "owner, name"}])
def test_p08_the_cut_is_that_of_load(spark: SparkSession, copied: Sample, options: dict[str, str]) -> None:
    frame = read(spark, copied.path, table="buckets", **options)
    put_bucket(copied, "late")

    assert names(frame) == ["cats", "dogs", "shared", "shared", "weird"]


def test_p08_where_the_user_gives_the_schema_spark_makes_the_source_at_the_first_action(
    spark: SparkSession, copied: Sample
) -> None:
    reading = spark.read.format("bucketcatalog").option("table", "buckets").schema("owner string, name string")
    frame, pinned = reading.load(copied.path), reading.option("versionAsOf", copied.before).load(copied.path)
    put_bucket(copied, "early")
    first = names(frame)
    put_bucket(copied, "late")

    assert first == names(frame) == ["cats", "dogs", "early", "shared", "shared", "weird"]
    assert names(pinned) == ["cats", "dogs", "empty", "shared", "shared", "weird"]


def test_p08_a_pickled_source_reads_the_same_cut(copied: Sample) -> None:
    source = DefaultSource({"path": copied.path, "table": "buckets"})
    pickled = CloudPickleSerializer().dumps(source)
    put_bucket(copied, "late")

    copy = pickle.loads(pickled)

    assert "late" not in read_here(copy.reader(source.schema())).column("name").to_pylist()


def test_p09_every_action_on_a_frame_reads_the_same_cut_and_a_new_load_the_new_one(spark: SparkSession, copied: Sample) -> None:
    frame = read(spark, copied.path)
    first = frame.count()
    with copied.catalog.writer("node-3", database="photos") as writer, writer.transaction() as tx:
        tx.put("objects", objects(copied.buckets["cats"], ["late"]))

    assert (first, frame.count(), frame.filter("name = 'late'").count()) == (LIVE, LIVE, 0)
    assert read(spark, copied.path).count() == LIVE + 1


def test_p10_reused_workers_remember_nothing(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "catalog"
    seen = []
    for name in ("one", "two"):
        shutil.rmtree(path, ignore_errors=True)
        with Catalog(path).writer("node-1") as writer, writer.transaction() as tx:
            tx.put("buckets", {"owner": OWNER, "name": name})
        seen.append([row["name"] for row in rows(read(spark, str(path), table="buckets"))])

    assert seen == [["one"], ["two"]]


@pytest.mark.parametrize("options", [{}, {"table": "log"}, {"readChangeFeed": True}, {"table": "harvest_errors"}])
def test_p11_partitions_are_a_list_of_input_partitions(sample: Sample, options: dict[str, Any]) -> None:
    partitions = reader(sample.path, **options).partitions()

    assert type(partitions) is list
    assert all(isinstance(partition, InputPartition) for partition in partitions)


def test_p12_nothing_to_read_is_an_empty_frame(spark: SparkSession, sample: Sample) -> None:
    nothing = reader(sample.path, table="harvest_errors")
    frame = read(spark, sample.path, table="harvest_errors")

    assert nothing.partitions() == []
    assert list(nothing.read(InputPartition(None))) == []
    assert (frame.columns, frame.collect()) == (["source", "path", "code", "message", "seen"], [])


def test_p13_a_reader_travels_without_what_it_planned(sample: Sample) -> None:
    reading = reader(sample.path, ["name"])
    before = CloudPickleSerializer().dumps(reading)
    partitions = reading.partitions()
    travelled = pickle.loads(CloudPickleSerializer().dumps((reading, partitions)))

    assert len(CloudPickleSerializer().dumps(reading)) == len(before) < 4_000
    assert read_here(*travelled).num_rows == LIVE


def test_p13_a_partition_holds_no_part_of_the_tail_but_its_own(tmp_path: Path) -> None:
    noise = random.Random(1)  # so that the tail cannot be packed to nothing
    with Catalog(tmp_path).writer("node-1") as writer:
        with writer.transaction() as tx:
            tx.put("objects", objects(OTHER, [f"{number:06d}" for number in range(200_000)]))
        for start in range(0, 3_200, 64):
            with writer.transaction() as tx:
                names = [f"{number:06d} {noise.randbytes(100).hex()}" for number in range(start, start + 64)]
                tx.put("objects", objects(OTHER, names).to_pylist())
    parts = reader(str(tmp_path), maxPartitionRows=50_000).partitions()
    sizes = [len(pickle.dumps(part)) for part in parts]

    assert len(parts) > 2
    assert sizes[0] > 2 * max(sizes[1:])
    assert read_here(reader(str(tmp_path)), parts).num_rows == 203_200


@pytest.mark.parametrize("table", ["buckets", "objects", "deleted_objects", "log", "checkpoints", "tables", "segments"])
def test_p14_batches_have_exactly_the_schema_that_spark_expects(sample: Sample, table: str) -> None:
    reading = reader(sample.path, table=table)
    zone: dict[str, Any] = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {"timestamp_utc": True}
    expected = to_arrow_schema(spark_schema(reading._relation.schema), **zone)
    batches = [batch for part in reading.partitions() for batch in reading.read(part)]

    assert batches
    assert all(batch.schema.equals(expected) for batch in batches)
    assert not expected.field(0).nullable


def test_p14_types_that_spark_has_not_are_widened() -> None:
    unsigned = pa.schema(
        [
            pa.field("a", pa.uint64(), False),
            pa.field("b", pa.list_(pa.uint32())),
            pa.field("c", pa.map_(pa.string(), pa.uint64())),
            pa.field("d", pa.struct([pa.field("e", pa.uint64())])),
        ]
    )
    schema = spark_schema(unsigned)

    assert (
        schema.simpleString() == "struct<a:decimal(20,0),b:array<bigint>,c:map<string,decimal(20,0)>,d:struct<e:decimal(20,0)>>"
    )
    assert spark_schema(arrow_schema(schema)) == schema


@pytest.mark.parametrize("enabled", ["true", "false"])
def test_p15_no_filter_is_taken_whatever_sparks_setting_for_that_is(own: SparkSession, sample: Sample, enabled: str) -> None:
    own.conf.set(PUSHDOWN, enabled)
    frame = read(own, sample.path)
    dogs = frame.filter(f"bucket_id = '{sample.buckets['dogs']}'")

    assert CatalogReader.pushFilters is DataSourceReader.pushFilters
    assert (dogs.filter("name like 'new/%'").count(), dogs.count(), frame.count()) == (100, PER_BUCKET + 100, LIVE)
    assert dogs.union(frame.filter("name like 'new/%'")).count() == PER_BUCKET + 200


@pytest.mark.parametrize("value", ["true", "false"])
def test_p15_the_option_that_took_filters_is_refused_with_what_to_do_instead(sample: Sample, value: str) -> None:
    with pytest.raises(
        InvalidOption,
        match=r"other queries of the same DataFrame.*Next: .*with the options where, bucket, owner, prefix and columns\.",
    ):
        DefaultSource({"path": sample.path, "filterpushdown": value}).schema()


def test_p16_option_names_have_no_case_and_values_may_be_typed(spark: SparkSession, sample: Sample) -> None:
    frame = read(spark, sample.path, TABLE="Objects".lower(), VersionAsOf=sample.before, STRICT=True, maxpartitionROWS=10_000)

    assert frame.count() == LIVE - 95
