"""``jobs.checkpoint``: merged on executors, published by the driver, and nothing lost whatever becomes of a task."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

import pyspark_bucketcatalog as bcs
from bucketcatalog import Catalog, DatabaseNotFound, InvalidOption
from bucketcatalog.checkpoint import merge
from bucketcatalog.checkpoint.merge import Merged, MergeTask, run_task
from bucketcatalog.format.sealing import RUNS
from bucketcatalog.model.uuids import uuid_text
from minio.process import Server
from pyspark_bucketcatalog.executors import CatalogPlace, on_executors
from pyspark_bucketcatalog.jobs.checkpointing import MergeOnExecutors

from ..kit.roles import credentials
from .sample import OWNER, Sample, objects, read, rows

ROOT = Path(__file__).parents[2]
CHILD = Path(__file__).with_name("flaky_child.py")
JOBS = ROOT / "spark" / "pyspark_bucketcatalog" / "jobs" / "__main__.py"


@pytest.fixture
def small_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks of a few thousand rows, as larger catalogs have larger ones."""
    monkeypatch.setattr(merge, "MERGE_SLICE_ROWS", 4_096)
    monkeypatch.setattr(merge, "FEWEST_ROWS", 4_096)


def answers(path: str) -> list[Any]:
    snapshot = Catalog(path).snapshot()
    return [rows(snapshot.scan(name).to_arrow()) for name in ("objects", "deleted_objects", "buckets", "deleted_buckets")]


def segments(path: str) -> set[str]:
    return {file.stem for file in Path(path).glob("*/*/segments/*.parquet")}


def referred(path: str) -> set[str]:
    view = Catalog(path).snapshot().view
    return {uuid_text(reference.uuid) for checkpoint in view.checkpoints for reference in checkpoint.segments}


def test_a_checkpoint_of_every_writers_cut_is_merged_on_the_executors(
    spark: SparkSession, copied: Sample, small_tasks: None
) -> None:
    before = answers(copied.path)
    result = bcs.jobs.checkpoint(spark, copied.path, database="photos")

    assert result is not None and result.tasks > 2 and result.bytes > 0 and result.seconds > 0
    view = copied.catalog.snapshot().view
    assert view.tail == ()
    assert len(next(c for c in view.checkpoints if c.writer.startswith("compactor-")).segments) == result.segments
    assert answers(copied.path) == before
    assert rows(read(spark, copied.path).drop("headers")) == rows(
        copied.catalog.snapshot().scan("objects").to_arrow().drop("headers")
    )
    assert bcs.jobs.checkpoint(spark, copied.path) is None


@pytest.mark.once
def test_a_job_continues_the_checkpoint_before_and_can_merge_everything(
    spark: SparkSession, copied: Sample, small_tasks: None
) -> None:
    bcs.jobs.checkpoint(spark, copied.path)
    with copied.catalog.writer("node-1", database="photos") as writer, writer.transaction() as tx:
        tx.put("objects", objects(copied.buckets["cats"], ["later"]))
    step = bcs.jobs.checkpoint(spark, copied.path)
    assert step is not None and step.reused_bytes > 0
    before = answers(copied.path)
    full = bcs.jobs.checkpoint(spark, copied.path, full=True)

    assert full is not None and full.reused_bytes == 0 and full.tasks > 2
    newest = max(copied.catalog.snapshot().view.checkpoints, key=lambda checkpoint: checkpoint.revision)
    assert RUNS not in newest.features
    assert answers(copied.path) == before


@pytest.mark.once
def test_a_writers_own_timeline_can_be_covered(spark: SparkSession, copied: Sample) -> None:
    result = bcs.jobs.checkpoint(spark, copied.path, scope="own", writer="node-2")
    assert result is not None and result.version.startswith("node-2@") and result.tasks == 1
    with pytest.raises(InvalidOption, match="needs its name"):
        bcs.jobs.checkpoint(spark, copied.path, scope="own")
    with pytest.raises(InvalidOption, match="max_tasks"):
        bcs.jobs.checkpoint(spark, copied.path, max_tasks=0)
    with pytest.raises(DatabaseNotFound):
        bcs.jobs.checkpoint(spark, copied.path, database="typo")


@pytest.mark.once
def test_tasks_that_die_after_they_have_written_are_done_again_and_leave_unreferenced_segments(
    copied: Sample, tmp_path: Path
) -> None:
    before, old = answers(copied.path), segments(copied.path)
    marks = tmp_path / "marks"
    marks.mkdir()
    done = subprocess.run([sys.executable, CHILD, copied.path, marks], capture_output=True, text=True, cwd=tmp_path, check=True)
    result = json.loads(done.stdout)

    assert result["tasks"] == 4 and "the executor is gone" in done.stderr
    written = segments(copied.path) - old
    assert len(written) == 2 * result["segments"]
    assert len(written & referred(copied.path)) == result["segments"]
    assert answers(copied.path) == before


@pytest.mark.once
def test_a_task_that_runs_twice_counts_once(spark: SparkSession, copied: Sample, small_tasks: None) -> None:
    before, old = answers(copied.path), segments(copied.path)
    path = copied.path

    class Twice(MergeOnExecutors):
        def run(self, tasks: Sequence[MergeTask]) -> list[Merged]:
            def do(task: MergeTask) -> Merged:
                run_task(Catalog(path).store, task)
                return run_task(Catalog(path).store, task)

            return on_executors(self.spark, do, tasks)

    with copied.catalog.writer("compactor-1", database="photos") as writer:
        result = writer.checkpoint(scope="all", workers=Twice(spark, CatalogPlace(path)))
    assert result is not None
    assert len(segments(path) - old) == 2 * result.segments
    assert len((segments(path) - old) & referred(path)) == result.segments
    assert answers(path) == before


@pytest.mark.once
def test_a_task_that_dies_for_good_publishes_nothing(spark: SparkSession, copied: Sample, small_tasks: None) -> None:
    before = answers(copied.path)

    def die(task: MergeTask) -> Merged:
        raise RuntimeError("the disk is full")

    class Dying(MergeOnExecutors):
        def run(self, tasks: Sequence[MergeTask]) -> list[Merged]:
            return on_executors(self.spark, die, tasks)

    with copied.catalog.writer("compactor-1", database="photos") as writer:
        with pytest.raises(PythonException, match="the disk is full"):
            writer.checkpoint(scope="all", workers=Dying(spark, CatalogPlace(copied.path)))
        assert not list(Path(copied.path).glob("compactor-1/photos/newest/*"))
        assert answers(copied.path) == before
        assert writer.checkpoint(scope="all") is not None
    assert answers(copied.path) == before


@pytest.mark.once
def test_two_compactors_at_once_harm_nothing(spark: SparkSession, copied: Sample, small_tasks: None) -> None:
    before = answers(copied.path)
    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(bcs.jobs.checkpoint, spark, copied.path, writer=f"compactor-{n}") for n in range(2)]
        results = [job.result() for job in jobs]

    assert any(results)
    assert answers(copied.path) == before
    assert bcs.jobs.checkpoint(spark, copied.path, writer="compactor-0") is not None or results[0] is not None
    assert answers(copied.path) == before


@pytest.mark.once
@pytest.mark.parametrize("command", [[sys.executable, "-m", "pyspark_bucketcatalog.jobs"], ["spark-submit", str(JOBS)]])
def test_the_job_runs_from_the_command_line(command: list[str], copied: Sample, tmp_path: Path) -> None:
    before = answers(copied.path)
    environment = {**os.environ, "PATH": f"{Path(sys.prefix) / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    arguments = ["checkpoint", copied.path, "--database", "photos", "--json"]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, env=environment, cwd=tmp_path, check=True)
    (line,) = done.stdout.splitlines()

    assert json.loads(line)["written"] is True
    assert copied.catalog.snapshot().view.tail == ()
    assert answers(copied.path) == before


@pytest.mark.once
def test_the_command_line_ends_as_the_others_do(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pyspark_bucketcatalog.jobs"]
    helped = subprocess.run([*command, "checkpoint", "--help"], capture_output=True, text=True, check=True)
    missing = subprocess.run([*command, "checkpoint", str(tmp_path)], capture_output=True, text=True, check=False)
    wrong = subprocess.run(
        [*command, "checkpoint", str(tmp_path), "--max-tasks", "no"], capture_output=True, text=True, check=False
    )

    assert "--storage-option" in helped.stdout and "Example:" in helped.stdout
    assert (missing.returncode, missing.stdout) == (1, "") and "[CATALOG_NOT_FOUND]" in missing.stderr.splitlines()[-1]
    assert wrong.returncode == 2


def test_nothing_is_imported_before_a_job_is_asked_for() -> None:
    code = "import sys, pyspark_bucketcatalog as b; b.jobs; print('bucketcatalog' in sys.modules, 'checkpoint' in dir(b.jobs))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["False", "True"]
    assert callable(bcs.jobs.checkpoint)
    with pytest.raises(AttributeError, match="no_such_job"):
        _ = bcs.jobs.no_such_job


@pytest.mark.once
@pytest.mark.skipif(os.environ.get("BUCKETCATALOG_SKIP_S3") == "1", reason="BUCKETCATALOG_SKIP_S3 is 1")
def test_credentials_reach_the_tasks_and_are_shown_nowhere(
    spark: SparkSession, server: Server, bucket: str, small_tasks: None, capfd: pytest.CaptureFixture[str]
) -> None:
    url = f"s3://{bucket}/lake"
    own = credentials(server, "writer", bucket, "lake", "w1")
    with Catalog(url, storage_options=own).writer("w1", database="photos") as writer, writer.transaction() as tx:
        tx.put("objects", objects(OWNER, [f"{number:05}" for number in range(40_000)]))
    compactor = credentials(server, "compactor", bucket, "lake", "compactor-1")
    result = bcs.jobs.checkpoint(spark, url, writer="compactor-1", storage_options=compactor)

    assert result is not None and result.tasks > 2
    assert Catalog(url, storage_options=own).snapshot().view.tail == ()
    wrong = {**compactor, "secret": "not-the-secret"}
    with pytest.raises(Exception, match="ACCESS_DENIED") as refused:
        on_executors(spark, lambda place: place.open().databases(), [CatalogPlace(url, wrong)])
    place = CatalogPlace(url, compactor)
    shown = f"{place!r} {MergeOnExecutors(spark, place)!r} {refused.value} {capfd.readouterr()}"
    assert "not-the-secret" not in shown
    assert str(compactor["secret"]) not in shown
