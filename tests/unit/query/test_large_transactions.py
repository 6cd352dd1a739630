"""Events of transactions of any size: so many are read at a time, tasks divide them, and they come in the order that is promised."""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bucketcatalog import CatalogWarning, CorruptionError
from bucketcatalog.format.runs import SegmentReference
from bucketcatalog.log import segments
from bucketcatalog.log.files import LogFiles
from bucketcatalog.model.events import EventKind
from bucketcatalog.model.facts import Facts
from bucketcatalog.query import events
from bucketcatalog.query.changes import Changes, changes_of
from bucketcatalog.state import feed
from bucketcatalog.state.feed import Feed
from bucketcatalog.store.base import Store
from bucketcatalog.write.shares import share_task

from ...kit.world import BUCKET, OWNER, World, obj, stored

BULK = 150_000
"""Events of each of the processes that write one transaction."""


def wide(names: Sequence[str], length: int) -> pa.Table:
    count = len(names)
    columns = {"owner": pa.repeat(OWNER, count), "bucket_id": pa.repeat(BUCKET, count), "name": pa.array(names)}
    return pa.table({**columns, "content_length": pa.repeat(pa.scalar(length, pa.int64()), count)})


@pytest.fixture(scope="module")
def world() -> World:
    """One commit of two processes' segments between small ones; a process had names backwards, and some of the other's."""
    found = World()
    with found.writer() as writer:
        found.commit(writer, ("put", "objects", [obj("before"), obj("a")]))
        task = share_task(found.catalog().database("default"), "w", "objects", EventKind.PUT)
        names = [[f"{n:07}" for n in range(BULK)], [f"{n:07}" for n in reversed(range(BULK - 5_000, 2 * BULK - 5_000))]]
        written = [task.write(found.store, wide(each, part).to_batches(10_000)) for part, each in enumerate(names)]
        found.clock.tick()
        with writer.transaction() as tx:
            tx.put("objects", [obj(f"own {n}") for n in range(3)])
            tx.adopt(written)
        found.commit(writer, ("delete", "objects", [obj("b"), obj("a")]))
    return found


@pytest.fixture
def undivided(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """As many tasks as there are parts, however few rows are in one."""
    monkeypatch.setattr(events, "_WORTH", 1 << 30)
    return monkeypatch


def read(tasks: Sequence[Any], world: World) -> pa.Table:
    return pa.concat_tables([rows for task in tasks for rows in task.read(world.store)])


def test_transactions_come_in_order_and_in_a_large_one_the_events_of_each_key_do(world: World) -> None:
    events = world.catalog().changes().only(["_stamp", "name", "content_length", "_revision"]).to_arrow()
    assert events["_revision"].to_pylist() == sorted(events["_revision"].to_pylist())
    small = events.slice(0, 5)["name"].to_pylist(), events.slice(len(events) - 2)["name"].to_pylist()
    assert small == (["before", "a", "own 0", "own 1", "own 2"], ["b", "a"])

    large = [row for row in events.to_pylist() if row["_revision"] == 1]
    assert len(large) == 3 + 2 * BULK
    seen: dict[str, int] = {}
    for row in large:
        sequence = int(row["_stamp"].partition(":")[2])
        assert seen.get(row["name"], -1) < sequence
        seen[row["name"]] = sequence
    assert len(seen) == 3 + 2 * BULK - 5_000
    lengths = [row["content_length"] for row in large[3:]]
    assert lengths == sorted(lengths)  # one process' after the other's
    first = [row["name"] for row in large[3 : 3 + BULK]]
    assert first == sorted(first)


@pytest.mark.parametrize("most_rows", [1, 20_000, 100_000, 1 << 30])
def test_tasks_divide_one_transaction_and_give_together_what_is_read_at_once(
    world: World, most_rows: int, undivided: pytest.MonkeyPatch
) -> None:
    changes = world.catalog().changes().only(["_stamp", "name"])
    tasks = changes.tasks(most_rows)
    assert tasks == world.catalog().changes().only(["_stamp", "name"]).tasks(most_rows)
    assert [pickle.dumps(task) for task in tasks] == [pickle.dumps(task) for task in changes.tasks(most_rows)]

    assert read(pickle.loads(pickle.dumps(tasks)), world) == changes.to_arrow()
    assert sum(task.rows for task in tasks) == len(changes.to_arrow())
    assert max(task.rows for task in tasks) < most_rows + feed.ORDERED_ROWS
    assert len(tasks) >= (2 * BULK) // max(most_rows, feed.ORDERED_ROWS)
    assert max(len(pickle.dumps(task)) for task in tasks) < 40_000


def test_a_task_reads_the_index_of_a_segment_once(
    world: World, undivided: pytest.MonkeyPatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    (task,) = world.catalog().changes().tasks(1 << 30)
    opened: list[bytes] = []

    def read_index(store: Store, database: str, segment: SegmentReference) -> Any:
        opened.append(segment.uuid)
        return segments.read_index(store, database, segment)

    monkeypatch.setattr(feed, "read_index", read_index)
    read([task], world)
    assert len(opened) == len(set(opened)) == len(stored(world, ".parquet")) == 2


def test_no_more_events_are_held_than_a_bound_however_many_there_are(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[int] = []
    read_some = Feed.read

    def counted(self: Feed, parts: Any, find: Any) -> Iterator[Facts]:
        for facts in read_some(self, parts, find):
            held.append(len(facts))
            yield facts

    monkeypatch.setattr(Feed, "read", counted)
    changes = world.catalog().changes()
    peak = pa.total_allocated_bytes()
    allocated = []
    for batch in changes.to_batches():
        assert len(batch) <= 65_536
        allocated.append(pa.total_allocated_bytes() - peak)
    assert sum(held) == 2 * BULK + 3 + 4 and max(held) <= feed.ORDERED_ROWS
    assert max(allocated) < 0.5 * world.catalog().changes().to_arrow().nbytes
    for task in changes.tasks(1 << 30):
        assert max(map(len, task.read(world.store))) <= feed.ORDERED_ROWS


def test_events_of_given_transactions_are_those_of_the_cuts(world: World) -> None:
    """What somebody has chosen from among the transactions is divided and read in the same way."""
    files = LogFiles(world.store, "default")
    snapshot = world.snapshot()
    chosen = [t for t in snapshot.view.tail if t.revision != 1]
    found = changes_of(files, snapshot.table("objects"), chosen)
    assert isinstance(found, Changes)
    assert found.to_arrow()["name"].to_pylist() == ["before", "a", "b", "a"] == read(found.tasks(1), world)["name"].to_pylist()
    narrowed = changes_of(files, snapshot.table("objects"), snapshot.view.tail, {"name": "a"})
    assert narrowed.to_arrow()["_change_type"].to_pylist() == ["put", "delete"]
    assert changes_of(files, snapshot.table("buckets"), snapshot.view.tail).tasks(1) == []


def test_of_several_blocks_that_are_read_together_only_the_damaged_one_is_left_out() -> None:
    world = World()
    with world.writer() as writer:
        world.commit(writer, ("put", "objects", wide([f"{n:07}" for n in range(100_000)], 1)))
    (name,) = stored(world, ".parquet")
    data = bytearray(world.store.get(name))
    group = pq.read_metadata(io.BytesIO(data)).row_group(3)
    names = next(each for each in map(group.column, range(group.num_columns)) if each.path_in_schema == "name")
    data[names.data_page_offset + names.total_compressed_size // 2] ^= 1
    world.store.delete(name)
    world.store.put(name, bytes(data))

    with pytest.raises(CorruptionError, match=name):
        world.catalog().changes().to_arrow()
    for read_on in (
        lambda: world.catalog().changes(ignore_corruption=True).to_arrow(),
        lambda: read(world.catalog().changes(ignore_corruption=True).tasks(1), world),
    ):
        with pytest.warns(CatalogWarning, match=name):
            found = read_on()["name"].to_pylist()
        assert len(found) == 100_000 - 16_384 and found == sorted(found)


def test_many_files_are_divided_though_they_have_few_events(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    with world.writer() as writer:
        for number in range(40):
            world.commit(writer, ("put", "objects", obj(f"{number:02}")))
    changes = world.catalog().changes()
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    assert [len(changes.tasks(most_rows)) for most_rows in (10, 1 << 20)] == [4, 1]
    monkeypatch.setattr("bucketcatalog.query.events._MUCH", 650)
    assert [len(changes.tasks(most_rows)) for most_rows in (1, 10, 600, 1 << 20)] == [40, 4, 4, 1]
