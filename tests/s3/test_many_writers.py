"""Many writers in one database at once: nobody waits for, repeats or loses anything because of another, and what a reader asks."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from bucketcatalog import Catalog
from bucketcatalog.store.faults import Counting
from bucketcatalog.store.s3.store import S3Store

from ..kit.world import names, obj
from .committing import DATABASE, Plan, names_of, running

PROCESSES, THREADS, COMMITS = 4, 16, 800


def test_writers_at_once_lose_nothing_double_nothing_and_repeat_nothing(
    bucket: str, storage_options: dict[str, str], tmp_path: Path
) -> None:
    url = f"s3://{bucket}/inventory"
    writers = [f"w{number:02}" for number in range(PROCESSES * THREADS)]
    share, more = divmod(COMMITS, len(writers))
    commits = {writer: share + (number < more) for number, writer in enumerate(writers)}
    plans = [
        Plan(url, storage_options, {writer: commits[writer] for writer in writers[process::PROCESSES]}, go=str(tmp_path / "go"))
        for process in range(PROCESSES)
    ]
    with running(plans) as found:
        (tmp_path / "go").touch()
    assert found.failed == []
    assert {writer: len(numbers) for writer, numbers in found.done.items()} == commits
    assert found.requests["PUT"] == COMMITS
    assert found.requests["200"] == sum(found.requests[method] for method in ("PUT", "GET", "HEAD"))
    assert {name for name in found.requests if name.isdigit()} == {"200"}  # no 409, no 412, nothing else

    store = Counting(S3Store(url, storage_options))
    catalog = Catalog(store)
    snapshot = catalog.snapshot(database=DATABASE)
    assert store.requests == Counter(list_prefixes=1, list=2 * len(writers), get=COMMITS)
    expected = sorted(name for writer, count in commits.items() for number in range(count) for name in names_of(writer, number))
    assert names(snapshot) == expected
    assert snapshot.scan("forks").to_arrow().num_rows == snapshot.scan("conflicts").to_arrow().num_rows == 0

    store.reset()
    catalog.snapshot(database=DATABASE)
    assert store.requests == Counter(list_prefixes=1, list=len(writers))
    with Catalog(S3Store(url, storage_options)).writer("w00", database=DATABASE) as writer, writer.transaction() as tx:
        tx.put("objects", obj("one more"))
    store.reset()
    assert len(names(catalog.snapshot(database=DATABASE))) == len(expected) + 1
    assert store.requests == Counter(list_prefixes=1, list=len(writers), get=1)
