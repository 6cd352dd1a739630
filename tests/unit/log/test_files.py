"""What a process keeps of the log's files that it has read."""

from __future__ import annotations

import pytest

from bucketcatalog.log import files as log_files
from bucketcatalog.log.files import LogFiles
from bucketcatalog.model import paths
from bucketcatalog.store.faults import Counting

from ...kit.world import World, obj


def test_what_is_kept_stays_within_its_bound_and_counts_a_file_once_however_often_it_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    writer = world.writer("w")
    for number in range(12):
        world.commit(writer, ("put", "objects", obj(f"name-{number:02}")))
    heads = list(LogFiles(world.store, "default").transactions("w"))
    sizes = [LogFiles(world.store, "default").transaction("w", head).size for head in heads]
    monkeypatch.setattr(log_files, "_KEPT_BYTES", sum(sizes[:5]))
    store = Counting(world.store)
    files = LogFiles(store, "default")
    for _ in range(3):
        for head in heads[:4]:
            files.keep(paths.transaction("w", "default", head), files.transaction("w", head))
    assert store.requests["get"] == 4
    for head in heads:
        files.transaction("w", head)
    files.transaction("w", heads[-1])
    assert store.requests["get"] == 12
    files.transaction("w", heads[0])
    assert store.requests["get"] == 13
