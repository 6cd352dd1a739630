"""A stream that is killed again and again while others commit, write checkpoints and prune: it brings what was committed, once."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bucketcatalog import Catalog
from bucketcatalog.write.writer import Writer

from ..kit.chance import SEARCHES, count, seed_of
from .sample import OWNER

CHILD = Path(__file__).with_name("stream_child.py")
BUCKET = "0b6a2a0e-9d0f-5a53-8a4e-3f1e0c7d9b22"
PATIENCE = 240.0
pytestmark = pytest.mark.once


class Busy(threading.Thread):
    """Writers of one process that commit, and keep house, until they are told to stop."""

    def __init__(self, path: Path, chance: random.Random) -> None:
        super().__init__()
        self.path, self.chance = path, chance
        self.ended, self.is_pinned = threading.Event(), threading.Event()
        self.failed: BaseException | None = None
        self.stamps: list[str] = []
        self.horizons: set[str | None] = set()

    def run(self) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._run()
        except BaseException as error:
            self.failed = error

    def _run(self) -> None:
        catalog = Catalog(self.path)
        writers = [catalog.writer(f"node-{number}") for number in range(3)]
        number = 0
        while not self.ended.wait(self.chance.random() / 5):
            number += 1
            self._commit(self.chance.choice(writers), number)
            if number % 15 == 0:
                writers.append(catalog.writer(f"late-{number}"))
            if number % 10 == 0:
                self.chance.choice(writers).checkpoint()
            if number % 12 == 0:
                self._keep_house()

    def _commit(self, writer: Writer, number: int) -> None:
        keys = [{"owner": OWNER, "bucket_id": BUCKET, "name": f"n{self.chance.randrange(200)}"} for _ in range(3)]
        with writer.transaction() as tx:
            if number % 20 == 0:
                rows = [{**keys[0], "name": f"many{number}-{n}"} for n in range(2_000)]
            else:
                rows = [*{row["name"]: row for row in keys}.values()]
            (tx.delete if number % 4 == 1 else tx.put)("objects", rows)
        assert tx.committed is not None
        self.stamps += [f"{tx.committed.uuid}:{sequence}" for sequence in range(len(rows))]

    def _keep_house(self) -> None:
        with Catalog(self.path).writer("compactor-1") as compactor:
            compactor.checkpoint(scope="all")
        if self.is_pinned.is_set():  # what was pruned before the stream had begun is no part of it
            self.horizons.add(Catalog(self.path).prune("0s", grace="0s", dry_run=False, force=True).horizon)


@contextmanager
def streaming(path: Path, folder: Path, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """The child that streams, killed at the end."""
    command = [sys.executable, str(CHILD), str(path), str(folder), json.dumps(options)]
    log = (folder.parent / "child.log").open("ab")
    child = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    try:
        yield child
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        log.close()


def until(child: subprocess.Popen[bytes], is_so: Callable[[], bool]) -> None:
    began = time.monotonic()
    while not is_so():
        assert child.poll() is None, "the stream has ended"
        assert time.monotonic() - began < PATIENCE, "the stream does not get on"
        time.sleep(0.05)


def batches(folder: Path) -> list[pa.Table]:
    return [pq.read_table(file) for file in sorted(folder.glob("[0-9]*.parquet"))]


def test_a_killed_stream_brings_every_event_once_and_in_the_order_of_each_timeline(tmp_path: Path) -> None:
    path, folder = tmp_path / "catalog", tmp_path / "received"
    chance = random.Random(seed_of("streams"))
    busy = Busy(path, chance)
    with Catalog(path).writer("first") as first:
        busy._commit(first, 2)
    busy.start()
    options = {"readChangeFeed": "true", "maxFilesPerTrigger": 4, "pin": "received"}
    try:
        for _ in range(SEARCHES["streams"].cases_of_a_test):
            before = len(batches(folder)) if folder.exists() else 0
            with streaming(path, folder, **options) as child:
                until(child, lambda before=before: folder.exists() and len(list(folder.glob("*.parquet"))) > before)
                busy.is_pinned.set()
                time.sleep(chance.random() * 2)
            count("streams")
        if len(busy.horizons) < 2:  # on a busy machine nobody may have come to prune behind the pin that has moved
            with streaming(path, folder, **options) as child:
                until(child, lambda: len(busy.horizons) > 1)
    finally:
        busy.ended.set()
        busy.join()
    assert busy.failed is None
    with streaming(path, folder, **{**options, "maxFilesPerTrigger": 200}) as child:
        until(child, lambda: sum(map(len, batches(folder))) >= len(busy.stamps))
        time.sleep(1)
    found = batches(folder)

    assert not (folder / "differs").exists()
    assert sorted(pa.concat_tables(found)["_stamp"].to_pylist()) == sorted(busy.stamps)
    assert len(busy.horizons) > 1  # what the stream had received was let go
    newest: dict[str, int] = {}
    for each in found:
        for writer, revisions in revisions_of(each).items():
            assert min(revisions) > newest.get(writer, -1)
            newest[writer] = max(revisions)


def revisions_of(rows: pa.Table) -> dict[str, list[int]]:
    by_writer: dict[str, list[int]] = {}
    for writer, revision in zip(rows["_writer"].to_pylist(), rows["_revision"].to_pylist(), strict=True):
        by_writer.setdefault(writer, []).append(revision)
    return by_writer
