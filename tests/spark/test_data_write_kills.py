"""Writes of DataFrames to data tables whose tasks fail, run twice or are killed, and whose driver dies: the rows count once.

What attempts have written that are part of nothing lies beside the rest under names of its own: it is never read, and told as orphans.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StringType, StructField, StructType

from bucketcatalog import Catalog, CommitUnknown
from bucketcatalog.store import Store
from bucketcatalog.systems.iox.verify import verify
from pyspark_bucketcatalog.writing.parts import PartsWrite, plan_parts

from ..kit.lost_writes import Child, NoAnswers, Place
from ..kit.world import World

CHILD = Path(__file__).with_name("lost_writer_child.py")
ROWS = 6_000
TASKS, PARTITIONS = 8, 3
COLUMNS = StructType([StructField("name", StringType()), StructField("n", LongType()), StructField("_partition", StringType())])


def started(path: Path, master: str) -> Child:
    events = path.with_name("events")
    events.mkdir()
    return Child(CHILD, path, master, ROWS, events, "data.cpu")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lake"


def put(path: Path) -> set[str]:
    """The files that tasks have put."""
    return {str(file.relative_to(path)) for file in path.glob("*/*/data/*/*/*.parquet")}


def is_written_once(path: Path) -> set[str]:
    """That every row counts once, by one commit, and that nothing is wrong with any file of it; returns the files that count."""
    catalog = Catalog(path)
    names = catalog.data("cpu").scan(columns=["name"]).to_arrow()["name"].to_pylist()
    assert sorted(names) == [f"n{number:07}" for number in range(ROWS)]
    (committed,) = catalog.snapshot().scan("log").to_arrow().to_pylist()
    assert (committed["app_id"], committed["app_version"]) == ("job:data.cpu", 1)
    files = catalog.data("cpu").files()
    assert len(files) == TASKS * PARTITIONS and len(files["write"].unique()) == 1
    assert [str(each) for each in verify(catalog, deep=True) if each.severity.value != "info"] == []
    return {*files["path"].to_pylist()}


def are_told(path: Path, files: set[str]) -> None:
    """That these are what nothing names: no more, so that all of them can go, and no less."""
    assert {each.name for each in Catalog(path).orphans(older_than="0s", force=True)} == files
    assert [*Catalog(path).orphans()] == []


def test_tasks_that_fail_after_they_have_written_are_done_again_and_a_job_that_is_given_up_adds_nothing(path: Path) -> None:
    output = started(path, "flaky").finish()
    assert "given up: True" in output and "written" in output
    named = is_written_once(path)
    left = put(path) - named
    writes = {
        file: json.loads(pq.read_schema(path / file).metadata[b"bucketcatalog.data"])["write"] for file in sorted(named | left)
    }
    (committed,) = {writes[file] for file in named}
    # Two attempts at each task, of which neither has overwritten what the other one has put; and what the job had put that was given up.
    assert len([file for file in left if writes[file] == committed]) == len(named)
    assert len({*writes.values()}) == 2
    are_told(path, left)


@pytest.mark.once
def test_executors_that_are_killed_and_tasks_that_run_twice_at_once_change_nothing(path: Path) -> None:
    output = started(path, "cluster").finish()
    assert "written" in output and ("LOST" in output or "Lost" in output)
    assert '"Speculative":true' in "".join(file.read_text() for file in path.with_name("events").iterdir())
    named = is_written_once(path)
    assert named <= put(path)
    are_told(path, put(path) - named)


@pytest.mark.once
@pytest.mark.parametrize("moment", ["before its commit", "during its commit", "after its commit"])
def test_a_driver_that_is_killed_leaves_nothing_or_all(spark: SparkSession, path: Path, moment: str) -> None:
    is_so: Callable[[], bool] = {
        "before its commit": lambda: bool(put(path)),
        "during its commit": lambda: any(path.glob("*/*/transactions")),
        "after its commit": lambda: any(path.glob("*/*/transactions/*/*.txn")),
    }[moment]
    started(path, "held" if moment == "before its commit" else "local[2]").kill_once(is_so)
    landed = Catalog(path).databases() != []
    assert landed == (moment == "after its commit") or moment == "during its commit"
    before = is_written_once(path) if landed else set()
    rows = spark.range(0, ROWS, 1, TASKS).selectExpr(
        "format_string('n%07d', id) AS name", f"concat('p', id % {PARTITIONS}) AS _partition"
    )
    rows.write.format("bucketcatalog").options(table="data.cpu", txnAppId="job", txnVersion=1).mode("append").save(str(path))
    named = is_written_once(path)
    assert named == before or not landed
    are_told(path, put(path) - named)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """A store in this process, whose clock all go by."""
    world = World()
    monkeypatch.setitem(Catalog.writer.__kwdefaults__ or {}, "clock", world.clock)
    return world


def planned(store: Store, **options: str) -> PartsWrite:
    """A write to a data table in a store of this process."""
    place: Any = Place(store)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pyspark_bucketcatalog.writing.parts.CatalogPlace.of", lambda path, storage: place)
        found = plan_parts({"path": "memory://x", "table": "data.cpu", **options}, COLUMNS)
    assert found is not None
    return found


def rows(*names: str) -> list[pa.RecordBatch]:
    batches: list[pa.RecordBatch] = pa.table(
        {"name": names, "n": range(len(names)), "_partition": ["p"] * len(names)}
    ).to_batches()
    return batches


def values(world: World) -> list[str]:
    return sorted(world.catalog().data("cpu").scan().to_arrow()["name"].to_pylist())


@pytest.mark.parametrize("options", [{}, {"txnAppId": "job", "txnVersion": "1"}], ids=["plain", "of an application"])
@pytest.mark.parametrize(("landed", "covered"), [(True, False), (True, True), (False, False)])
def test_a_commit_whose_answer_was_lost_is_looked_for(
    world: World, options: dict[str, str], *, landed: bool, covered: bool
) -> None:
    with world.writer("other") as writer, writer.transaction() as tx:
        tx.put("data.cpu", {"name": "before", "n": 0})
    to = planned(NoAnswers(world.store, world.clock, landed=landed, covered=covered), **options)
    written = to.put(rows("a", "b"))
    if landed:
        committed = to.commit(written)
        assert committed is not None and committed.version == f"{to.writer}@0"
        assert values(world) == ["a", "b", "before"]
    else:
        with pytest.raises(CommitUnknown, match="Open the writer again"):
            to.commit(written)
        assert values(world) == ["before"]
    if options:  # the application does it again, as Spark's caller would
        again = planned(world.store, **options)
        again.commit(again.put(rows("a", "b")))
        assert values(world) == ["a", "b", "before"]


def test_attempts_at_one_task_write_under_names_of_their_own(world: World) -> None:
    to = planned(world.store)
    attempts = [pickle.loads(pickle.dumps(to.parts.task)).write(world.store, rows("a", f"{number}")) for number in range(20)]
    paths = [each.row["path"] for attempt in attempts for each in attempt]
    assert len({*paths}) == len(paths) == 20
    for number, path in enumerate(paths):  # so that none has overwritten what another one has put
        assert pq.read_table(pa.BufferReader(world.store.get(path)))["name"].to_pylist() == ["a", f"{number}"]
    to.commit([attempts[7], attempts[13]])
    assert values(world) == ["13", "7", "a", "a"]
