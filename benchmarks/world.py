"""What several groups build on: the rows and a catalog of them, made once and on demand, and places to work in."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pyarrow as pa

from bucketcatalog.checkpoint.publish import CheckpointResult

from . import dataset, ours
from .fresh import run_fresh


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How large and how often."""

    name: str
    objects: int
    upserts: int
    shallow: int
    deep: int
    commit_rounds: int
    commits_a_round: int
    peer_depths: tuple[int, int]
    peer_rounds: int
    rounds: int
    deletes: int
    past_checkpoints: int
    lookups: int
    spark_objects: int
    memory_parts: int
    memory_part_rows: int
    large_parts: int
    large_part_rows: int
    native_parts: int
    native_part_rows: int
    uncovered_objects: int
    uncovered_upserts: int
    questions_objects: int
    questions_upserts: int
    questions_files: int
    checkpoints: int
    changes: int
    overwrites: tuple[int, int]
    streamed: tuple[int, int]
    arrivals: int
    s3_commits: int
    s3_seconds: float
    s3_many: int
    s3_writers: int
    s3_tail: int
    s3_objects: int
    manta_creates: int
    manta_objects: int
    manta_tombstones: int
    manta_accounted: int
    data_depths: tuple[int, ...]
    data_peer_depths: tuple[int, ...]
    data_files: int
    data_small_files: int
    data_seconds: float


FULL = Scale(
    name="full",
    objects=1_000_000,
    upserts=10_000,
    shallow=10,
    deep=20_000,
    commit_rounds=40,
    commits_a_round=10,
    peer_depths=(10, 200),
    peer_rounds=8,
    rounds=9,
    deletes=50,
    past_checkpoints=5,
    lookups=500,
    spark_objects=2_000_000,
    memory_parts=10,
    memory_part_rows=500_000,
    large_parts=10,
    large_part_rows=1_000_000,
    native_parts=10,
    native_part_rows=1_000_000,
    uncovered_objects=2_000_000,
    uncovered_upserts=20_000,
    questions_objects=2_000_000,
    questions_upserts=10_000,
    questions_files=100_000,
    checkpoints=1_000,
    changes=1_000,
    overwrites=(1, 20),
    streamed=(100, 10_000),
    arrivals=30,
    s3_commits=100,
    s3_seconds=8.0,
    s3_many=10_000,
    s3_writers=100,
    s3_tail=50,
    s3_objects=200_000,
    manta_creates=800,
    manta_objects=2_000_000,
    manta_tombstones=1_000_000,
    manta_accounted=5_000_000,
    data_depths=(10, 1_000, 10_000),
    data_peer_depths=(10, 200, 1_000),
    data_files=100_000,
    data_small_files=1_000,
    data_seconds=30.0,
)
SMALL = Scale(
    name="small",
    objects=100_000,
    upserts=1_000,
    shallow=10,
    deep=500,
    commit_rounds=10,
    commits_a_round=5,
    peer_depths=(10, 200),
    peer_rounds=2,
    rounds=3,
    deletes=10,
    past_checkpoints=3,
    lookups=100,
    spark_objects=200_000,
    memory_parts=4,
    memory_part_rows=50_000,
    large_parts=10,
    large_part_rows=50_000,
    native_parts=10,
    native_part_rows=10_000,
    uncovered_objects=40_000,
    uncovered_upserts=400,
    questions_objects=20_000,
    questions_upserts=200,
    questions_files=2_000,
    checkpoints=50,
    changes=500,
    overwrites=(1, 20),
    streamed=(100, 500),
    arrivals=5,
    s3_commits=30,
    s3_seconds=2.0,
    s3_many=640,
    s3_writers=10,
    s3_tail=5,
    s3_objects=20_000,
    manta_creates=80,
    manta_objects=100_000,
    manta_tombstones=50_000,
    manta_accounted=100_000,
    data_depths=(10, 50, 200),
    data_peer_depths=(10, 20, 50),
    data_files=2_000,
    data_small_files=50,
    data_seconds=3.0,
)


class World:
    """Everything lies below ``directory``, which whoever made it removes. ``tree`` is the file tree to harvest."""

    def __init__(self, directory: Path, scale: Scale, tree: Path) -> None:
        self.directory = directory
        self.scale = scale
        self.tree = tree
        self._copies = 0

    @cached_property
    def rows(self) -> pa.Table:
        """The data set."""
        return dataset.objects(self.scale.objects)

    @cached_property
    def checkpoint(self) -> CheckpointResult:
        """The checkpoint of the catalog at ``catalog``."""
        return ours.build(self._catalog, iter([self.rows]))

    @property
    def _catalog(self) -> Path:
        return self.directory / "catalog"

    @property
    def catalog(self) -> Path:
        """A catalog of the data set, checkpointed; not to be written to."""
        assert self.checkpoint.rows == self.scale.objects
        return self._catalog

    @property
    def large(self) -> Path:
        """A catalog of all the large parts, checkpointed; not to be written to."""
        made = {"parts": self.scale.large_parts, "rows": self.scale.large_part_rows}
        return self.once("large", lambda path: run_fresh("ours", "build_seeded", path=str(path), **made))

    def once(self, name: str, make: Callable[[Path], object]) -> Path:
        """The path at which ``make`` has made something, the first time; not to be written to."""
        path = self.directory / name
        if not path.exists():
            make(path)
        return path

    def copy(self, path: Path) -> Path:
        """A copy to write to. Both formats never change a file, so it is made of links."""
        self._copies += 1
        target = self.directory / f"copy-{self._copies}"
        shutil.copytree(path, target, copy_function=os.link)
        return target

    def empty(self, name: str) -> Path:
        """A path below which there is nothing yet."""
        self._copies += 1
        return self.directory / f"{name}-{self._copies}"


def stored_bytes(path: Path) -> int:
    """The size of all files below a path, in sum."""
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
