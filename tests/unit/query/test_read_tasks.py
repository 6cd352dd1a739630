"""Reads in parts for other processes: tasks of any size, pickled on the way, give together what the read gives at once."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from bucketcatalog import prefix
from bucketcatalog.query import events
from bucketcatalog.query.database import MetadataTask
from bucketcatalog.query.reads import ReadTask
from bucketcatalog.state import shares

from ...kit.world import BUCKET, OWNER, World, obj

ROWS = 150_000
"""So many that they are several slices."""


def some(first: int, count: int, length: int) -> pa.Table:
    """Rows of consecutive names."""
    names = pa.array([f"{n:06}" for n in range(first, first + count)])
    owner, bucket = (pa.array([value] * count) for value in (OWNER, BUCKET))
    return pa.table(
        {"owner": owner, "bucket_id": bucket, "name": names, "content_length": pa.array([length] * count, pa.int64())}
    )


@pytest.fixture(scope="module")
def world() -> World:
    """A checkpoint, one over it, and a tail, with tombstones in each."""
    found = World()
    with found.writer() as writer:
        for part, count in enumerate((ROWS, 9_000, 40, 40)):
            found.commit(writer, ("put", "objects", some(part * 7_000, count, part)))
            found.commit(writer, ("delete", "objects", obj(f"{part * 9_000:06}")))
            if part < 2:
                writer.checkpoint()
    return found


@pytest.fixture(params=[1, 1 << 30], ids=["many", "one"])
def most_rows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """As many tasks as there are slices, or one."""
    monkeypatch.setattr(shares, "_FEWEST_ROWS", 1 << 30)
    monkeypatch.setattr(events, "_WORTH", 1 << 30)
    return int(request.param)


def together(world: World, tasks: Sequence[ReadTask], schema: pa.Schema) -> pa.Table:
    """What the tasks read, each sent away and read from a store of its own."""
    sent = [pickle.loads(pickle.dumps(task)) for task in tasks]
    return pa.concat_tables(
        [schema.empty_table(), *(read.select(schema.names) for task in sent for read in task.read(world.store))]
    )


@pytest.mark.parametrize("where", [{}, {"name": prefix("0140")}, {"name": "014012"}, {"content_length": 2}], ids=str)
@pytest.mark.parametrize("table", ["objects", "deleted_objects"])
def test_a_scan_in_tasks_is_the_scan(world: World, table: str, where: dict[str, Any], most_rows: int) -> None:
    scan = world.snapshot().scan(table, where=where)
    tasks = scan.tasks(most_rows)

    assert together(world, tasks, scan.schema) == scan.to_arrow()
    assert sum(task.rows for task in tasks) >= scan.to_arrow().num_rows
    assert len(tasks) > 1 or most_rows > 1 or where or table != "objects"


def test_a_scan_of_nothing_has_no_tasks(world: World) -> None:
    assert world.snapshot().scan("buckets").tasks(1) == []


def test_changes_in_tasks_are_the_changes(world: World, most_rows: int) -> None:
    changes = world.catalog().changes()
    tasks = changes.tasks(most_rows)

    assert together(world, tasks, changes.schema) == changes.to_arrow()
    assert sum(task.rows for task in tasks) == changes.to_arrow().num_rows
    assert len(tasks) == (7 + 3 if most_rows == 1 else 1)  # of its transactions the largest is divided
    assert world.catalog().changes(table="buckets").tasks(1) == []


def test_a_table_about_the_catalog_is_one_task_that_reads_at_its_version(world: World) -> None:
    before = world.snapshot(version=2)
    task = MetadataTask("default", before.version, "log", ("revision", "events"))
    scan = before.scan("log", columns=["revision", "events"])
    found = together(world, [task], scan.schema)

    assert found == scan.to_arrow()
    assert len(found) == 3 and before.version != world.snapshot().version


def test_a_task_holds_no_rows_of_the_tail_but_its_own(world: World) -> None:
    one, *others = world.snapshot().scan("objects").tasks(1)

    assert len(others) > 1
    assert max(len(pickle.dumps(task)) for task in others) < len(pickle.dumps(one))  # the tail lies over the first slice alone
