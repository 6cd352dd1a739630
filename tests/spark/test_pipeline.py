"""The declarative pipeline of the examples: what it keeps of a history is what the engine says of each hour of it."""

from __future__ import annotations

import os
import random
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from bucketcatalog.write.writer import Writer

from ..kit.blocks import ROOT, blocks_of
from ..kit.world import World
from .sample import OWNER

GUIDE = ROOT / "docs" / "guide" / "pipelines.md"
HOUR = 3_600_000_000
Hour = tuple[str, int]


class History:
    """Two writers who put, update, delete and purge a few names in two buckets, and what each hour came to."""

    def __init__(self) -> None:
        self._world = World()
        self.catalog, self._clock = self._world.catalog(), self._world.clock
        self._chance = random.Random(19)
        self.put, self.added = Counter[Hour](), Counter[Hour]()
        self.live: dict[Hour, tuple[int, int]] = {}
        with self._writer("node-1") as writer, writer.transaction() as tx:
            tx.put("buckets", [{"owner": OWNER, "name": name} for name in ("cats", "dogs")])
        rows = self.catalog.snapshot(database="photos").scan("buckets", columns=["id", "name"]).to_arrow().to_pylist()
        self.buckets = {row["id"]: row["name"] for row in rows}
        self._ended: list[dict[str, Any]] = []

    def _writer(self, name: str) -> Writer:
        return self._world.writer(name, database="photos")

    def save(self, path: Path) -> None:
        """Write the catalog as it is to a disk."""
        for info in self._world.store.list(""):
            (path / info.name).parent.mkdir(parents=True, exist_ok=True)
            (path / info.name).write_bytes(self._world.store.get(info.name))

    def go_on(self, hours: int) -> None:
        """So many hours more, each of thirty events."""
        with self._writer("node-1") as one, self._writer("node-2") as two:
            for _ in range(hours):
                self._clock.now = self._clock.now // HOUR * HOUR + HOUR
                for _ in range(30):
                    self._clock.tick(1_000_000)
                    self._do(self._chance.choice((one, two)))
                for bucket in self.buckets:
                    mine = [row["content_length"] for row in self._rows() if row["bucket_id"] == bucket]
                    self.live[bucket, self._hour] = (len(mine), sum(mine))

    @property
    def _hour(self) -> int:
        return self._clock.now // HOUR * HOUR

    def _rows(self) -> list[dict[str, Any]]:
        columns = ["owner", "bucket_id", "name", "content_length", "_version"]
        return self.catalog.snapshot(database="photos").scan("objects", columns=columns).to_arrow().to_pylist()

    def _do(self, writer: Writer) -> None:
        bucket, size = self._chance.choice([*self.buckets]), self._chance.randrange(1_000)
        key = {"owner": OWNER, "bucket_id": bucket, "name": f"{self._chance.randrange(5)}"}
        row = next((row for row in self._rows() if row.items() >= key.items()), None)
        what = self._chance.choice(("put", "put", "put and delete", "update", "blind", "named", "stale", "purge"))
        with writer.transaction() as tx:
            if "put" in what:
                tx.put("objects", {**key, "content_length": size})
                self.put[bucket, self._hour] += 1
                self.added[bucket, self._hour] += size
            if "delete" in what or what == "blind":
                tx.delete("objects", key)
            if what == "update" and row is not None:
                tx.update("objects", {**row, "content_length": size})
                self.added[bucket, self._hour] += max(size - row["content_length"], 0)
            if what == "named" and row is not None:
                tx.delete("objects", {**key, "_version": row["_version"]})
            if what == "stale" and self._ended:
                tx.delete("objects", self._chance.choice(self._ended))
            if what == "purge" and self._ended:
                tx.purge("objects", self._ended.pop())
        if row is not None and what in ("put", "named"):
            self._ended.append({**key, "_version": row["_version"]})

    def growth(self) -> Iterator[tuple[Any, ...]]:
        """The rows of the table that the pipeline makes, of hours in which something happened to objects of a bucket."""
        events = (
            self.catalog.changes(database="photos")
            .only(["bucket_id", "_change_type", "_commit_timestamp"])
            .to_arrow()
            .to_pylist()
        )
        happened = {(row["bucket_id"], _us(row["_commit_timestamp"]) // HOUR * HOUR) for row in events}
        objects, size = Counter[str](), Counter[str]()
        for (bucket, hour), (live, length) in sorted(self.live.items()):
            put, added = self.put[bucket, hour], self.added[bucket, hour]
            ended, removed = objects[bucket] + put - live, size[bucket] + added - length
            objects[bucket], size[bucket] = live, length
            if (bucket, hour) in happened:
                yield (bucket, self.buckets[bucket], hour, put, ended, added, removed, live, length)


def _us(time: datetime) -> int:
    return round(time.replace(tzinfo=time.tzinfo or UTC).timestamp() * 1_000_000)


def run(folder: Path) -> None:
    """Run the copy of the pipeline in ``folder`` by the command of the guide."""
    command = next(block.text for block in blocks_of(GUIDE) if block.text.startswith("spark-pipelines"))
    program, *arguments = shlex.split(command.replace("\\\n", " ").replace("/data/lake", str(folder / "lake")))
    environment = os.environ | {"SPARK_TESTING": "1", "PYSPARK_PYTHON": sys.executable}  # the server takes a port that nobody has
    done = subprocess.run(
        [Path(sys.executable).with_name(program), *arguments, "--conf", "spark.ui.enabled=false"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5_000:]


def kept(folder: Path) -> list[tuple[Any, ...]]:
    """The rows of the growth table."""
    rows = pq.read_table(folder / "spark-warehouse" / "growth").to_pylist()
    return sorted(tuple(_us(value) if name == "hour" else value for name, value in row.items()) for row in rows)


@pytest.mark.once
def test_a_pipeline_that_runs_again_has_the_growth_of_every_hour_as_the_engine_has_it(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples" / "growth_pipeline", tmp_path / "growth_pipeline")
    spec = tmp_path / "growth_pipeline" / "spark-pipeline.yml"
    spec.write_text(spec.read_text().replace("file:///tmp/growth_pipeline", f"file://{tmp_path}/state"))
    history = History()

    for hours in (3, 2):
        history.go_on(hours)
        history.save(tmp_path / "lake")
        run(tmp_path)

        assert kept(tmp_path) == list(history.growth())
        received = pq.read_table(tmp_path / "spark-warehouse" / "object_events", columns=["_stamp"])["_stamp"].to_pylist()
        assert sorted(received) == sorted(history.catalog.changes(database="photos").to_arrow()["_stamp"].to_pylist())
    assert sum(history.put.values()) == 56 and min(count for count, _ in history.live.values()) > 0
