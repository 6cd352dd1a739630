"""What a hostile writer forged below her own prefix, read through Spark: its executors know all that the driver decided about her files."""

from __future__ import annotations

import pickle
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import pyspark_bucketcatalog as bcs
from bucketcatalog import BucketCatalogError, Catalog
from bucketcatalog.model import paths
from bucketcatalog.store.local import LocalStore

from ..kit.mallory import OTHERS, PASSED_OVER, REFUSED, UNREADABLE, Forging, Mallory, fill
from ..kit.world import SECOND, World, messages, obj, proto
from .sample import read, reader, rows

pytestmark = pytest.mark.filterwarnings("ignore::bucketcatalog.errors.CatalogWarning")
TYPED = r"\[[A-Z_]+\] .*{}.* Next: "
"""What an error is that this project raised."""


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hostile") / "catalog"
    fill(lambda name: LocalStore(path))
    return path


@pytest.fixture
def mallory(filled: Path, tmp_path: Path) -> Mallory:
    """Her, in a catalog in which everybody has committed."""
    shutil.copytree(filled, tmp_path / "catalog")
    return Mallory(LocalStore(tmp_path / "catalog"))


def path_of(mallory: Mallory) -> str:
    return mallory.store.url


def of_others(spark: SparkSession, mallory: Mallory, **options: Any) -> list[str]:
    """The names of alice's and bob's objects."""
    names = read(spark, path_of(mallory), **options).select("name").toArrow()["name"].to_pylist()
    return sorted(name for name in names if name.startswith(OTHERS))


def data_url(mallory: Mallory) -> str:
    return f"{path_of(mallory)}-data/{{owner}}/{{bucket_id}}/{{id}}"


def here(mallory: Mallory) -> list[str]:
    """The same, as the engine reads them."""
    names = Catalog(mallory.store).snapshot().scan("objects", columns=["name"]).to_arrow()["name"].to_pylist()
    return sorted(name for name in names if name.startswith(OTHERS))


def set_aside(mallory: Mallory, name: str, **options: Any) -> None:
    made = Catalog(mallory.store).repair(writer="maintainer-1", set_aside=[name], dry_run=False, **options)
    assert [f"{action.what} {action.subject}" for action in made.actions if action.done] == [f"set aside {name}"]


def refused(call: Callable[[], object], name: str) -> None:
    """The call ends in an error of ours, that names the file; that of no library is its message."""
    with pytest.raises((PySparkException, BucketCatalogError)) as caught:
        call()
    said = str(caught.value)
    assert re.search(TYPED.format(re.escape(name)), said), said
    assert not re.search(r"^(pyarrow|google|KeyError|ValueError|TypeError|IndexError)", said.strip().splitlines()[-1]), said


@pytest.mark.once
def test_what_she_cannot_say_counts_for_nobody(spark: SparkSession, mallory: Mallory) -> None:
    expected, url, path = here(mallory), data_url(mallory), path_of(mallory)
    before = Catalog(mallory.store).collect(data_url=url, older_than="0s", force=True)
    assert before.purged and before.garbage and expected
    for forge in PASSED_OVER.values():
        if forge.__name__ == "everybody":  # in the place of a checkpoint that counts
            assert of_others(spark, mallory) == expected
        forge(mallory)
    assert of_others(spark, mallory) == of_others(spark, mallory, versionAsOf="release") == expected
    told = bcs.jobs.gc(spark, path, data_url=url, older_than="0s", force=True)
    assert replace(told, boundary=0) == replace(before, boundary=0)
    assert bcs.jobs.checkpoint(spark, path, writer="compactor-1") is not None
    assert Catalog(mallory.store).snapshot().view.tail == () and of_others(spark, mallory) == expected


@pytest.mark.once
def test_a_bad_file_stops_reads_and_jobs_by_name_until_it_is_set_aside(spark: SparkSession, mallory: Mallory) -> None:
    expected, url, path = here(mallory), data_url(mallory), path_of(mallory)
    for forge in REFUSED.values():
        name = forge(mallory)
        for call in (
            lambda: of_others(spark, mallory),
            lambda: bcs.jobs.checkpoint(spark, path, writer="compactor-1"),
            lambda: bcs.jobs.gc(spark, path, data_url=url, older_than="0s", force=True),
        ):
            refused(call, name)
        assert of_others(spark, mallory, ignoreCorruption=True) == expected
        set_aside(mallory, name)
    assert of_others(spark, mallory) == expected
    assert bcs.jobs.checkpoint(spark, path, writer="compactor-1") is not None
    assert of_others(spark, mallory) == expected


@pytest.mark.once
@pytest.mark.parametrize("forge", UNREADABLE.values(), ids=UNREADABLE)
def test_rows_that_cannot_be_read_stop_executors_by_name_and_are_read_past_where_asked_for(
    spark: SparkSession, mallory: Mallory, forge: Forging
) -> None:
    expected, name = here(mallory), forge(mallory)
    refused(lambda: of_others(spark, mallory), name)
    assert of_others(spark, mallory, ignoreCorruption=True) == expected
    if name.endswith(".txn"):
        refused(lambda: bcs.jobs.checkpoint(spark, path_of(mallory), writer="compactor-1"), name)
        set_aside(mallory, name)
    else:  # nobody merges what plain writers have merged
        assert bcs.jobs.checkpoint(spark, path_of(mallory), writer="compactor-1") is not None
    assert of_others(spark, mallory) == expected


@pytest.mark.once
def test_what_is_set_aside_is_not_read_by_executors(spark: SparkSession, mallory: Mallory) -> None:
    with Catalog(mallory.store).writer("mallory") as writer, writer.transaction() as tx:
        tx.put("objects", [obj(f"mallory bulk {number:05}") for number in range(20_000)])
    path, head = path_of(mallory), max(mallory.files.transactions("mallory"))
    name, whole = paths.transaction("mallory", "default", head), read(spark, path).count()
    (reference,) = mallory.files.transaction("mallory", head).segments
    segment = Path(path) / paths.segment("mallory", "default", reference.uuid)
    data = segment.read_bytes()
    segment.write_bytes(data[:1])  # so that whoever reads it says so
    refused(lambda: read(spark, path).count(), segment.name)
    set_aside(mallory, name, force=True)
    asked = pickle.loads(pickle.dumps(reader(path)))
    assert sum(len(batch) for each in asked.partitions() for batch in asked.read(each)) == whole - 20_000
    assert read(spark, path).count() == whole - 20_000
    assert bcs.jobs.checkpoint(spark, path, writer="compactor-1", full=True) is not None
    assert [entry.head for entry in mallory.checkpoint_of("compactor-1").asides] == [head]
    assert read(spark, path).count() == whole - 20_000
    segment.write_bytes(data)
    Catalog(mallory.store).repair(writer="maintainer-1", take_in=[name], dry_run=False)
    assert read(spark, path).count() == whole


ROW = 'message R {{ option (table) = {{ name: "lab.r" key: "k" }}; string k = 1; optional {} n = 2; }}'


@pytest.mark.once
def test_events_by_a_definition_that_does_not_fit_are_left_out_where_that_is_asked_for(
    spark: SparkSession, tmp_path: Path
) -> None:
    fits, misfit = ([*messages(proto(ROW.format(kind))).values()] for kind in ("int64", "string"))
    world = World(LocalStore(tmp_path / "catalog"))
    world.clock.now = world.store.now_us() - 10 * SECOND
    catalog = world.catalog()
    catalog.register(fits)
    world.commit(world.writer("alice", catalog=catalog), ("put", "lab.r", [{"k": f"{n:05}", "n": n} for n in range(17_000)]))
    by = world.writer("mallory")
    world.commit_unasked(by, fits, ("put", "lab.r", {"k": "before", "n": 1}))
    world.commit_unasked(by, misfit, ("put", "lab.r", [{"k": f"after {n:05}", "n": "x"} for n in range(17_000)]))
    path = str(tmp_path / "catalog")
    with pytest.raises(PySparkException, match=r"\[INCOMPATIBLE_TABLE\] .*mallory/default/.* Next: ") as caught:
        read(spark, path, table="lab.r").collect()
    assert "two ways" in str(caught.value)
    kept = rows(read(spark, path, table="lab.r", ignoreCorruption=True))
    assert [row["k"] for row in kept] == [*(f"{n:05}" for n in range(17_000)), "before"] and kept[9]["n"] == 9
    lost = rows(read(spark, path, table="damage", ignoreCorruption=True))
    assert sum(row["rows"] for row in lost) == 17_000 and all(row["file"].startswith("mallory/") for row in lost)
