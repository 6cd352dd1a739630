"""Spark Connect: planning happens in the client, and what Spark reaches is asked of the server."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest

from bucketcatalog import Catalog
from bucketcatalog.store.local import LocalStore

from ..kit.earlier import Earlier
from .sample import OTHER, objects

CHILD = Path(__file__).with_name("connect_child.py")


@pytest.mark.once
def test_rows_are_the_same_on_spark_connect(tmp_path: Path) -> None:
    names = [f"{number:05}" for number in range(20_000)]
    with Catalog(tmp_path).writer("compactor-1", database="photos") as writer:
        with writer.transaction() as tx:
            tx.put("objects", objects(OTHER, names))
        writer.checkpoint(scope="all", full=True)
        with writer.transaction() as tx:
            tx.put("objects", objects(OTHER, names[::100]))
            tx.delete("objects", objects(OTHER, names[1::100]).select(["owner", "bucket_id", "name"]))
    lengths = Catalog(tmp_path).snapshot().scan("objects", columns=["content_length"]).to_arrow()["content_length"].to_pylist()

    found = on_connect("reads", tmp_path)

    assert found.pop("elsewhere") == len(lengths)
    assert set(map(tuple, found.values())) == {(len(lengths), sum(lengths))} and len(found) == 4


@pytest.mark.once
def test_calls_do_the_same_on_spark_connect(tmp_path: Path) -> None:
    store = Earlier(LocalStore(tmp_path / "ended"))
    old = [{"owner": OTHER, "bucket_id": OTHER, "name": f"{number}"} for number in range(20)]
    with Catalog(store).writer("w", clock=store.now_us) as writer:
        with writer.transaction() as tx:
            tx.put("objects", [{**row, "id": str(uuid.uuid4())} for row in old])
        store.days = 2  # what ended so long ago can be collected
        with writer.transaction() as tx:
            tx.delete("objects", old)
    found = on_connect("calls", tmp_path / "lake")
    errors = found.pop("errors")

    assert found == {
        "updated": 10,
        "deleted": 5,
        "events": {"update": 10, "delete": 5},
        "difference": {"modified": 10, "deleted": 5},
        "then": 1_000,
        "declared": "lab.scores",
        "sql": [995, 1_000, 5, 1, 5],
        "streamed": [1_000, 2_000],
        "merged": 1_995,
        "collected": [[0, 0], [20, 20]],
        "harvested": 1,
    }
    for name, said in {
        "read": "UNKNOWN_TABLE",
        "delete": "INVALID_OPTION",
        "update": "INVALID_OPTION",
        "write": "id",
        "overwrite": "INVALID_OPTION",
        "native": "INVALID_OPTION",
    }.items():
        assert said in errors[name], errors


@pytest.mark.once
def test_examples_run_unchanged_on_spark_connect(tmp_path: Path) -> None:
    said = on_connect("examples", tmp_path / "lake")

    assert said.keys() == {"manta_queries.py", "spark_changes.py", "spark_reading.py", "demo_spark.py"}
    assert "difference: {'deleted': 10, 'modified': 100, 'overwritten': 20}" in said["spark_changes.py"]
    python, sql = re.findall(r"(?:python|spark): +(.*)", said["manta_queries.py"])
    assert python == sql and python.startswith("{'objects': ['myobject'], 'garbage': [") and python.endswith("'left': []}")
    assert "now: 190\nthen: 200\n" in said["spark_reading.py"]
    assert "|numbers|2024/" in said["demo_spark.py"] and "|overwritten|   20|" in said["demo_spark.py"]


def on_connect(what: str, path: Path) -> dict[str, Any]:
    """What the child finds, in a folder of the catalog's own, where tables of SQL lie."""
    environment = os.environ | {"SPARK_REMOTE": "local[2]", "SPARK_TESTING": "1"}  # the server takes a port that nobody has
    done = subprocess.run(
        [sys.executable, CHILD, what, str(path)], cwd=path.parent, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    assert found.pop("module").startswith("pyspark.sql.connect")
    return found
