"""Spark Connect: planning happens in the client, and what Spark reaches is asked of the server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bucketcatalog import Catalog

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

    environment = os.environ | {"SPARK_TESTING": "1"}  # the server takes a port that nobody has
    done = subprocess.run([sys.executable, CHILD, str(tmp_path)], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3_000:]
    found = json.loads(done.stdout.strip().splitlines()[-1])

    assert found.pop("module").startswith("pyspark.sql.connect") and found.pop("elsewhere") == len(lengths)
    assert set(map(tuple, found.values())) == {(len(lengths), sum(lengths))} and len(found) == 4
