"""``jobs.gc`` and ``jobs.reap``: as in one process, on executors; small catalogs, cut into many tasks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import pyspark_bucketcatalog as bcs
from bucketcatalog import Catalog, InvalidOption
from bucketcatalog.state.contents import TableState
from bucketcatalog.store.local import LocalStore

from ..kit.earlier import Earlier
from ..kit.world import declaring

OWNER, BUCKET, THEIRS = (str(uuid.uuid5(uuid.NAMESPACE_OID, name)) for name in ("owner", "bucket", "theirs"))


def an_id(name: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, name))


def thing(name: str, data: str | None = None, bucket: str = BUCKET) -> dict[str, Any]:
    return {"owner": OWNER, "bucket_id": bucket, "name": name, "id": an_id(data or name)}


def key(name: str, bucket: str = BUCKET) -> dict[str, Any]:
    return {"owner": OWNER, "bucket_id": bucket, "name": name}


@pytest.fixture
def small_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slices and tasks of a few rows, as larger catalogs have larger ones."""
    monkeypatch.setitem(TableState.plan.__kwdefaults__, "target", 16)
    monkeypatch.setattr("pyspark_bucketcatalog.executors.MOST_ROWS", 16)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Twenty objects that ended two days ago, one whose data another names, one without data, one of an external bucket, live ones."""
    store = Earlier(LocalStore(tmp_path / "lake"))
    ended = [f"{number:02}" for number in range(20)]
    with Catalog(store).writer("w", clock=store.now_us) as writer:
        with writer.transaction() as tx:
            tx.put("buckets", [{"owner": OWNER, "name": "ours", "id": BUCKET}, {"owner": OWNER, "name": "old", "id": OWNER}])
            tx.put("buckets", {"owner": OWNER, "name": "theirs", "id": THEIRS, "external": True})
            tx.put("objects", [thing(name) for name in (*ended, "shared", "live")])
            tx.put("objects", [thing("theirs", bucket=THEIRS), thing("left", bucket=OWNER), key("no data")])
        writer.checkpoint()
        with writer.transaction() as tx:
            tx.put("objects", thing("again", data="shared"))
            tx.put("object_versions", {**thing("19"), "version_id": "1"})
        store.days = 2
        with writer.transaction() as tx:
            tx.delete("objects", [key(name) for name in (*ended, "shared", "no data")])
            tx.delete("objects", key("theirs", THEIRS))
            tx.delete("buckets", {"owner": OWNER, "name": "old"})
    folder = tmp_path / "data" / OWNER / BUCKET
    folder.mkdir(parents=True)
    for name in (*ended, "shared", "live"):
        (folder / an_id(name)).write_text(name)
    return tmp_path / "lake"


def url(lake: Path) -> str:
    return f"{lake.parent}/data/{{owner}}/{{bucket_id}}/{{id}}"


def left(lake: Path) -> set[str]:
    return {file.read_text() for file in (lake.parent / "data").rglob("*") if file.is_file()}


def names(lake: Path, table: str) -> list[str]:
    return list(Catalog(lake).snapshot().scan(table, columns=["name"]).to_arrow()["name"].to_pylist())


def test_data_that_nothing_names_is_deleted_on_executors_and_only_that(
    spark: SparkSession, lake: Path, small_tasks: None
) -> None:
    told = bcs.jobs.gc(spark, lake, data_url=url(lake))
    here = Catalog(lake).collect(data_url=url(lake))
    assert replace(told, boundary=0) == replace(here, boundary=0) and told.dry_run
    assert (told.garbage, told.purged, told.shared, told.external) == (19, 23, 2, 1)
    first = bcs.jobs.gc(spark, lake, data_url=url(lake), dry_run=False)
    assert (first.purged, first.waiting) == (0, 24) and first.published and len(left(lake)) == 22
    done = bcs.jobs.gc(spark, lake, data_url=url(lake), dry_run=False, force=True)
    assert (done.purged, done.deleted, done.failed, done.owners) == (23, 19, 0, 1)
    assert left(lake) == {"19", "shared", "live"}
    assert names(lake, "deleted_objects") == [] and names(lake, "deleted_buckets") == ["old"]


@pytest.mark.once
def test_a_callable_deletes_on_executors_and_what_it_leaves_is_kept(spark: SparkSession, lake: Path, tmp_path: Path) -> None:
    asked, refused = tmp_path / "asked", an_id("07")
    asked.mkdir()

    def deleter(batch: pa.Table) -> list[bool]:
        for an_id in batch["id"].to_pylist():
            (asked / an_id).write_text("")
        return [an_id != refused for an_id in batch["id"].to_pylist()]

    done = bcs.jobs.gc(spark, lake, deleter=deleter, dry_run=False, force=True)
    assert (done.deleted, done.failed, done.purged) == (18, 1, 22) and "left the data of 1" in done.problems[0]
    assert {file.name for file in asked.iterdir()} == {an_id(f"{number:02}") for number in range(19)}
    assert names(lake, "deleted_objects") == ["07"]
    for data_url, why in (
        (None, "nothing says how data of 'object_versions', 'objects' is deleted"),
        (url(lake / "lake"), "keeps no data"),
    ):
        for dry_run in (True, False):
            done = bcs.jobs.gc(spark, lake, data_url=data_url, dry_run=dry_run, force=True)
            assert (done.garbage, done.left, done.purged, done.problems) == (1, 1, 0, ()) and why in done.why_left[0]


FILES = (
    'message F { option (table) = { name: "own.files" key: "k" data_reference: "path" }; string k = 1; optional string path = 2; }',
    'message M { option (table) = { name: "own.more" key: "k" data_reference: "file" }; string k = 1; optional string file = 2; }',
    """message U { option (table) = { name: "own.uuids" key: "k" data_reference: "path" }; string k = 1;
    optional bytes path = 2 [(column).type = LOGICAL_TYPE_UUID]; }""",
)


@pytest.mark.once
@pytest.mark.parametrize("root", ["data", "lake/w/default/data"])
def test_data_that_a_table_with_other_columns_names_stays(spark: SparkSession, tmp_path: Path, root: str) -> None:
    store = Earlier(LocalStore(tmp_path / "lake"))
    catalog, folder = Catalog(store), tmp_path / root
    catalog.register(declaring(*FILES))
    ids = {name: an_id(name) for name in ("by text", "by path", "by nobody")}
    by_path = {name: f"w/default/data/{its_id}" if root != "data" else its_id for name, its_id in ids.items()}
    folder.mkdir(parents=True)
    for name, its_id in ids.items():
        (folder / its_id).write_text(name)
    with catalog.writer("w", clock=store.now_us) as writer:
        with writer.transaction() as tx:
            tx.put("own.uuids", [{"k": name, "path": its_id} for name, its_id in ids.items()])
            tx.put("own.files", {"k": "live", "path": ids["by text"]})
            tx.put("own.more", {"k": "live", "file": by_path["by path"]})
        store.days = 2
        with writer.transaction() as tx:
            tx.delete("own.uuids", [{"k": name} for name in ids])
    options: Any = {"data_url": f"{folder}/{{path}}", "force": True}
    told = bcs.jobs.gc(spark, tmp_path / "lake", **options)
    here = Catalog(tmp_path / "lake").collect(**options)
    assert replace(told, boundary=0) == replace(here, boundary=0)
    done = bcs.jobs.gc(spark, tmp_path / "lake", dry_run=False, **options)
    kept = {"by text", "by path"} if root != "data" else {"by text"}
    assert (done.shared, done.deleted, done.purged) == (len(kept), 3 - len(kept), 3)
    assert {file.read_text() for file in folder.iterdir()} == kept


@pytest.mark.once
def test_a_tag_keeps_what_it_has_live(spark: SparkSession, lake: Path) -> None:
    catalog = Catalog(lake)
    catalog.tag("release", version="w@1", writer="maintainer-1")
    done = bcs.jobs.gc(spark, lake, data_url=url(lake), dry_run=False, force=True)
    assert (done.tagged, done.purged) == (24, 0) and len(left(lake)) == 22


@pytest.mark.once
def test_rows_whose_parent_has_ended_are_ended(spark: SparkSession, lake: Path, small_tasks: None) -> None:
    told = bcs.jobs.reap(spark, lake)
    here = Catalog(lake).reap()
    assert replace(told, boundary=0) == replace(here, boundary=0) and told.rows == {"object_versions": 0, "objects": 1}
    first = bcs.jobs.reap(spark, lake, dry_run=False)
    assert first.rows["objects"] == 0 and first.published, "its boundary is to be waited out"
    assert bcs.jobs.reap(spark, lake, dry_run=False, force=True).rows["objects"] == 1
    assert "left" in names(lake, "deleted_objects") and sorted(names(lake, "objects")) == ["again", "live"]
    assert bcs.jobs.reap(spark, lake, dry_run=False, force=True).rows["objects"] == 0


@pytest.mark.once
def test_what_is_refused_in_one_process_is_refused_by_jobs(spark: SparkSession, lake: Path) -> None:
    with pytest.raises(InvalidOption, match="may be in use"):
        bcs.jobs.gc(spark, lake, older_than="1h")
    with pytest.raises(InvalidOption, match="may be in use"):
        bcs.jobs.reap(spark, lake, older_than="1h")


@pytest.mark.once
def test_the_jobs_run_from_a_command_line(lake: Path) -> None:
    few = "--master local[2] --conf spark.sql.shuffle.partitions=2 --conf spark.ui.enabled=false pyspark-shell"
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYSPARK_SUBMIT_ARGS": few}

    command = [sys.executable, "-m", "pyspark_bucketcatalog.jobs"]
    options = ["gc", str(lake), "--data-url", url(lake), "--yes", "--force", "--json"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=True, env=environment)
    assert json.loads(done.stdout)["deleted"] == 19 and left(lake) == {"19", "shared", "live"}
    shown = subprocess.run([*command, "reap", "--help"], capture_output=True, text=True, check=True)
    assert "--older-than" in shown.stdout and "Example:" in shown.stdout
