"""What a harvest did, as the table ``log`` shows it: of each commit, and from when until when."""

from __future__ import annotations

import datetime
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from bucketcatalog import Catalog, clock
from bucketcatalog.harvest import EntryError, harvest, sections
from bucketcatalog.harvest import commit as committing
from bucketcatalog.harvest.account import Counts
from bucketcatalog.harvest.sources.s3 import S3Source
from bucketcatalog.query.commits import WORK
from bucketcatalog.store.memory import MemoryStore

from ...kit.harvested import Workers
from ...kit.trees import make_tree, touch
from ...kit.world import bucket
from .inventories import ListInventory, listed, version
from .sources import ListSource

HARVESTED = ("source", "bucket", "started", "ended", "seconds", *WORK)


def log(catalog: Catalog) -> list[dict[str, Any]]:
    return catalog.snapshot().scan("log").to_arrow().to_pylist()


def work(row: dict[str, Any]) -> dict[str, int]:
    """What is not nothing of what a commit did."""
    return {name: row[name] for name in WORK if row[name]}


def test_every_number_that_is_a_column_is_counted() -> None:
    assert set(WORK) <= {one.name for one in fields(Counts)}


@pytest.mark.parametrize("divided", [False, True])
def test_a_commit_says_what_it_did_to_how_many_bytes(tmp_path: Path, divided: bool) -> None:
    root = make_tree(tmp_path / "tree", [b"1", b"22", b"333", b"4444", b"55555"])
    store = MemoryStore()
    catalog = Catalog(store)
    more = {"workers": Workers(store)} if divided else {}
    before = datetime.datetime.now(datetime.UTC)
    harvest(catalog, root, bucket="tree", **more)
    after = datetime.datetime.now(datetime.UTC)
    touch(root / "1", "now ten by")
    (root / "22").unlink()
    (root / "333").chmod(0o700)
    make_tree(root, [b"7777777"])
    result = harvest(catalog, root, bucket="tree", **more)

    first, second = log(catalog)
    assert work(first) == {"created": 5, "created_bytes": 15}
    assert work(second) == {
        "created": 1,
        "created_bytes": 7,
        "overwritten": 1,
        "overwritten_bytes": 10,
        "updated": 1,
        "deleted": 1,
        "deleted_bytes": 2,
        "unchanged": 2,
        "unchanged_bytes": 9,
    }
    assert second["operation"] == "harvest" and (second["source"], second["bucket"]) == (result.source, "tree")
    assert before <= first["started"] <= first["ended"] <= after < second["started"] <= second["ended"]
    assert second["seconds"] == (second["ended"] - second["started"]).total_seconds()
    assert {name: getattr(result, name) for name in WORK} == {name: second[name] for name in WORK}
    assert (result.overwritten_bytes_before, result.bytes) == (1, 17)
    metrics = dict(second["metrics"])
    assert metrics["overwritten_bytes_before"] == 1 and metrics["entries"] == 5 and metrics["errors"] == 0


def test_each_commit_says_what_was_done_since_the_one_before(tmp_path: Path) -> None:
    catalog = Catalog(MemoryStore())
    first = [(f"{at:02}", "x" * (at + 1)) for at in range(30)]
    result = harvest(catalog, ListSource(first, batch=4), chunk_events=8)
    rows = log(catalog)
    assert len(rows) == len(result.transactions) == 4
    assert sum(row["created"] for row in rows) == 30 and sum(row["created_bytes"] for row in rows) == result.bytes
    for earlier, later in pairwise(rows):
        assert earlier["ended"] == later["started"]
    changed = [(name, identity) for name, identity in first if name not in ("03", "21")]
    result = harvest(catalog, ListSource(changed, batch=4), chunk_events=1)
    rows = log(catalog)[4:]
    assert [row["deleted"] for row in rows] == [1, 1] and [row["deleted_bytes"] for row in rows] == [4, 22]
    assert result.unchanged == 28 and 3 <= rows[0]["unchanged"] < sum(row["unchanged"] for row in rows) < 28


def test_what_waits_is_committed_after_some_time(monkeypatch: pytest.MonkeyPatch) -> None:
    catalog, now = Catalog(MemoryStore()), [0.0]
    monkeypatch.setattr(committing.clock, "monotonic", lambda: now[0])

    def later() -> None:
        now[0] += committing.CHUNK_SECONDS

    result = harvest(catalog, ListSource([("a", "1"), ("b", "1"), later, ("c", "1"), ("d", "1")]))
    assert len(result.transactions) == 2 and [row["created"] for row in log(catalog)] == [3, 1]


def test_a_clock_that_goes_back_makes_no_time_negative(monkeypatch: pytest.MonkeyPatch) -> None:
    catalog, now = Catalog(MemoryStore()), [clock.now_us()]
    now_us = clock.now_us
    monkeypatch.setattr(committing.clock, "now_us", lambda: now_us() - now[0])
    now[0] = 0

    def back() -> None:
        now[0] = 3_600_000_000

    harvest(catalog, ListSource([("a", "1"), back, ("b", "1")]), writer="w")
    (row,) = log(catalog)
    assert row["seconds"] == 0.0


def test_errors_are_a_metric_and_a_dry_run_says_what_it_would_do(tmp_path: Path) -> None:
    catalog = Catalog(MemoryStore())
    source = ListSource([("a", "1"), EntryError(b"b", "EIO", "no"), ("c", "22")])
    planned = harvest(catalog, source, dry_run=True)
    assert (planned.created_bytes, planned.errors, catalog.databases()) == (3, 1, [])
    harvest(catalog, source)
    assert dict(log(catalog)[0]["metrics"])["errors"] == 1


def test_versions_of_a_bucket_are_a_metric_and_bytes_are_of_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sections, "CARRIED_EVENTS", 0)
    catalog = Catalog(MemoryStore())
    entries = [version("a", "2", 2, latest=True), version("a", "1", 1), listed("b", VersionId="1", IsLatest=True)]
    harvest(catalog, S3Source(ListInventory(entries, status="Enabled")))
    (row,) = log(catalog)
    assert work(row) == {"created": 2, "created_bytes": 2}
    assert (dict(row["metrics"])["versions"], dict(row["metrics"])["version_changes"]) == (3, 3)
    entries = [entries[0] | {"StorageClass": "GLACIER"}, entries[2]]
    harvest(catalog, S3Source(ListInventory(entries, status="Enabled")))
    assert work(log(catalog)[1]) == {"updated": 1, "unchanged": 1, "unchanged_bytes": 1}


def test_other_commits_have_their_metrics_and_none_of_these_columns(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "tree", [b"a"])
    catalog = Catalog(tmp_path / "lake")
    with catalog.writer("w") as writer:
        with writer.transaction(operation="mine", metadata={"source": "mine"}) as tx:
            tx.metrics["created"] = 5
            tx.put("buckets", bucket("x"))
        with writer.transaction(operation="harvest", metadata={"bucket": "odd"}) as tx:
            tx.metrics.update({"started": 1 << 62, "ended": -(1 << 62), "created": -3})
            tx.put("buckets", bucket("x"))
        with writer.transaction(operation="harvest") as tx:
            tx.put("buckets", bucket("x"))
    harvest(catalog, root)
    mine, odd, bare, full = log(catalog)
    assert mine["metrics"] == [("created", 5)] and all(mine[name] is None for name in HARVESTED)
    assert (odd["bucket"], odd["started"], odd["ended"], odd["seconds"], odd["created"]) == ("odd", None, None, None, -3)
    assert bare["metrics"] is None and all(bare[name] is None for name in HARVESTED)
    assert full["created"] == 1
    found = catalog.snapshot().scan("log", columns=["version"], where={"created": 1}).to_arrow()
    assert found["version"].to_pylist() == [full["version"]]
