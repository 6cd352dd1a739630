"""``jobs.harvest``: the same rows as without Spark, in one commit, whatever becomes of tasks, executors and the driver."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import pyspark_bucketcatalog as bcs
from bucketcatalog import Catalog, InvalidOption, SourceNotFound
from bucketcatalog.harvest import harvest, rounds
from bucketcatalog.model.uuids import uuid_text

from ..kit.harvested import counted, everything
from ..kit.trees import HOSTILE, assert_same, make_tree, touch

CHILD = Path(__file__).with_name("harvest_child.py")
NAMES = [*HOSTILE, b"bad\xff", *(b"big/%04d" % at for at in range(3_000)), *(b"d%d/e/f" % at for at in range(30))]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks that leave the rest after a thousand entries: batches have so many."""
    monkeypatch.setattr(rounds, "FIRST_ENTRIES", 1_000)


def segments(path: Path) -> set[str]:
    return {file.stem for file in path.glob("*/*/segments/*.parquet")}


def test_a_tree_is_harvested_row_for_row_as_without_spark(spark: SparkSession, small: None, tmp_path: Path) -> None:
    root = make_tree(tmp_path / "tree", NAMES)
    (root / "link").symlink_to("big")
    mine, alone = tmp_path / "mine", Catalog(tmp_path / "alone")
    told: list[int] = []
    result = bcs.jobs.harvest(spark, root, mine, bucket="tree", progress=lambda state: told.append(state.entries))

    assert counted(result) == counted(harvest(alone, root, bucket="tree"))
    assert_same(Catalog(mine), root)
    assert everything(Catalog(mine)) == everything(alone)
    assert len(result.transactions) == 1 and result.errors == 1 and told == sorted(told) and told[-1] == result.entries
    for at in range(0, 3_000, 7):
        touch(root / "big" / f"{at:04}", "other")
        (root / "big" / f"{at + 1:04}").unlink()
    make_tree(root, [b"new/a", b"new/b"])
    result = bcs.jobs.harvest(spark, root, mine, bucket="tree")
    assert counted(result) == counted(harvest(alone, root, bucket="tree"))
    assert (result.created, result.overwritten, result.deleted) == (2, 429, 429)
    assert everything(Catalog(mine)) == everything(alone)
    before = sorted(mine.rglob("*"))
    assert bcs.jobs.harvest(spark, root, mine, bucket="tree").transactions == ()
    assert sorted(mine.rglob("*")) == before


@pytest.mark.once
def test_any_other_url_is_harvested_row_for_row(spark: SparkSession, small: None, tmp_path: Path) -> None:
    root = make_tree(tmp_path / "tree", [name for name in NAMES if not name.startswith(b"bad")])
    mine, alone = tmp_path / "mine", Catalog(tmp_path / "alone")
    result = bcs.jobs.harvest(spark, f"local://{root}", mine)
    assert counted(result) == counted(harvest(alone, f"local://{root}"))
    assert everything(Catalog(mine)) == everything(alone)
    (root / "d3" / "e" / "f").unlink()
    result = bcs.jobs.harvest(spark, f"local://{root}", mine)
    assert (result.deleted, result.changes, len(result.transactions)) == (1, 1, 1)
    assert bcs.jobs.harvest(spark, f"local://{root}", mine).transactions == ()


@pytest.mark.once
def test_executors_make_checksums_and_the_log_says_what_was_done(spark: SparkSession, small: None, tmp_path: Path) -> None:
    root = make_tree(tmp_path / "tree", [name for name in NAMES if not name.startswith(b"bad")])
    (root / "a0").chmod(0o600)
    mine, alone = tmp_path / "mine", Catalog(tmp_path / "alone")
    result = bcs.jobs.harvest(spark, root, mine, bucket="tree", checksum=True)
    assert counted(result) == counted(harvest(alone, root, bucket="tree", checksum=True)) and result.hashed == result.created
    assert everything(Catalog(mine)) == everything(alone)
    rows = bcs.read(spark, mine).where("checksum is null or checksum_algorithm <> 'SHA256' or inode is null")
    assert rows.count() == 0
    (row,) = bcs.read(spark, mine, table="log").select("created", "created_bytes", "metrics", "seconds", "bucket").collect()
    assert (row["created"], row["created_bytes"], row["bucket"]) == (result.created, result.bytes, "tree")
    assert row["metrics"]["hashed"] == result.hashed and 0 < row["seconds"] < result.seconds + 1
    assert bcs.jobs.harvest(spark, root, mine, bucket="tree", checksum=True).transactions == ()
    (root / "a0").chmod(0o640)
    assert bcs.jobs.harvest(spark, root, mine, bucket="tree").updated == 1


@pytest.mark.once
def test_a_dry_run_writes_nothing_and_says_the_same(spark: SparkSession, tmp_path: Path) -> None:
    root = make_tree(tmp_path / "tree", NAMES)
    told = bcs.jobs.harvest(spark, root, tmp_path / "lake", dry_run=True, include=["big/*"])
    assert (told.created, told.transactions, (tmp_path / "lake").exists()) == (3_000, (), False)
    assert bcs.jobs.harvest(spark, root, tmp_path / "lake", include=["big/*"]).created == 3_000


def test_errors_of_tasks_and_options_have_their_types(spark: SparkSession, tmp_path: Path) -> None:
    root = make_tree(tmp_path / "tree", [b"a", b"b/c"])
    bcs.jobs.harvest(spark, root, tmp_path / "lake")
    with pytest.raises(SourceNotFound, match="is not a directory that can be listed"):
        bcs.jobs.harvest(spark, tmp_path / "typo", tmp_path / "lake")
    for name in ("a", "b/c"):
        (root / name).unlink()
    with pytest.raises(SourceNotFound, match="would be taken for deleted"):
        bcs.jobs.harvest(spark, root, tmp_path / "lake")
    assert bcs.jobs.harvest(spark, root, tmp_path / "lake", allow_empty=True).deleted == 2
    with pytest.raises(InvalidOption, match="max_tasks"):
        bcs.jobs.harvest(spark, root, tmp_path / "lake", max_tasks=0)
    opened: Any = Catalog(tmp_path / "lake")
    with pytest.raises(InvalidOption, match=r"A Catalog cannot travel to executors.*Give the path or url"):
        bcs.jobs.harvest(spark, root, opened)


def child(root: Path, lake: Path, what: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(CHILD), str(root), str(lake), what]
    return subprocess.run(command, capture_output=True, text=True, cwd=lake.parent, check=False)


def named(lake: Path) -> set[str]:
    """The segments that commits name."""
    return {uuid_text(segment.uuid) for transaction in Catalog(lake).snapshot().view.tail for segment in transaction.segments}


@pytest.mark.once
@pytest.mark.parametrize("what", ["tasks", "executors"])
def test_tasks_and_executors_that_die_leave_unreferenced_files_and_nothing_else(what: str, tmp_path: Path) -> None:
    root = make_tree(tmp_path / "tree", [b"%d/%05d" % (at % 50, at) for at in range(12_000)])
    lake, alone = tmp_path / "lake", Catalog(tmp_path / "alone")
    ran = child(root, lake, what)
    assert ran.returncode == 0, ran.stderr
    result = json.loads(ran.stdout)

    assert (result["created"], len(result["transactions"])) == (12_000, 1)
    assert counted(harvest(alone, root, bucket="tree")).created == 12_000
    assert everything(Catalog(lake)) == everything(alone)
    assert named(lake) <= segments(lake)
    if what == "tasks":
        assert "the executor is gone" in ran.stderr and len(segments(lake)) == 2 * len(named(lake))
    else:
        assert "killed after 1" in ran.stderr and "killed after 3" in ran.stderr


@pytest.mark.once
@pytest.mark.parametrize("what", ["before", "during", "after"])
def test_a_driver_that_is_killed_has_committed_all_or_nothing_and_the_next_run_does_the_rest(
    what: str, spark: SparkSession, small: None, tmp_path: Path
) -> None:
    root = make_tree(tmp_path / "tree", NAMES)
    lake, alone = tmp_path / "lake", Catalog(tmp_path / "alone")
    ran = child(root, lake, what)
    assert (ran.returncode, ran.stdout) == (-signal.SIGKILL, "") and segments(lake)
    harvest(alone, root, bucket="tree")
    if what == "before":
        assert not list(lake.rglob("*.txn"))
    else:
        assert everything(Catalog(lake)) == everything(alone)
    again = bcs.jobs.harvest(spark, root, lake, bucket="tree")
    assert len(again.transactions) == (1 if what == "before" else 0)
    assert everything(Catalog(lake)) == everything(alone)
    assert (segments(lake) - named(lake) != set()) is (what == "before")
