"""What was before many events is told by ranges of keys, of which each has so many of them, whatever state they start from."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bucketcatalog.model.events import EventKind
from bucketcatalog.query import pre_images
from bucketcatalog.query.changes import Changes
from bucketcatalog.query.pre_images import BeforeTask
from bucketcatalog.write.shares import share_task

from ...kit.world import BUCKET, OWNER, World, bucket, obj

BOUND, NAMES = 2_048, 8_000
COLUMNS = ["name", "_change_type", "content_length", "_stamp", "_version_before", "_before"]


def wide(numbers: Any, length: int) -> pa.Table:
    count, names = len(numbers), pa.array([f"{n:06}" for n in numbers])
    columns = {"owner": pa.repeat(OWNER, count), "bucket_id": pa.repeat(BUCKET, count), "name": names}
    return pa.table({**columns, "content_length": pa.repeat(pa.scalar(length, pa.int64()), count)})


@pytest.fixture(scope="module")
def world() -> World:
    """Commits all over the keys: with events one by one, with blocks, and with a segment; a third of the events are about few of them."""
    found, random = World(), np.random.default_rng(7)
    with found.writer() as writer:
        found.commit(writer, ("put", "buckets", bucket("pets", id=BUCKET)))
        found.commit(writer, ("put", "objects", wide(random.integers(0, NAMES, 3_000), 1)))
        task = share_task(found.catalog().database("default"), "w", "objects", EventKind.PUT)
        written = task.write(found.store, wide(random.integers(0, NAMES, 6_000), 2).to_batches())
        found.clock.tick()
        with writer.transaction() as tx:
            tx.adopt([written])
        found.commit(writer, ("put", "objects", wide(random.integers(NAMES - 50, NAMES, 5_000), 3)))
        for n in range(20):
            gone = [obj(f"{at:06}") for at in random.integers(0, NAMES, 20)]
            found.commit(writer, ("put", "objects", obj(f"{n * 400:06}", content_length=n)), ("delete", "objects", gone))
    transactions = asked(found).transactions
    assert all(any(getattr(each, held) for each in transactions) for held in ("actions", "blocks", "segments"))
    return found


def asked(world: World, **options: Any) -> Changes:
    found = world.catalog().changes(pre_images=["content_length"], columns=COLUMNS, **options)
    assert isinstance(found, Changes)
    return found


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many events each range had that was read."""
    sizes: list[int] = []
    read_with = BeforeTask.read_with

    def noted(self: BeforeTask, *arguments: Any) -> Iterator[pa.Table]:
        tables = list(read_with(self, *arguments))
        sizes.append(sum(map(len, tables)))
        yield from tables

    monkeypatch.setattr(BeforeTask, "read_with", noted)
    return sizes


@pytest.mark.parametrize("options", [{}, {"start": "w@1"}, {"bucket": "pets", "prefix": "007"}])
def test_no_range_has_many_more_events_than_are_held_and_answers_are_the_same(
    world: World, monkeypatch: pytest.MonkeyPatch, held: list[int], options: dict[str, Any]
) -> None:
    whole = asked(world, **options).to_arrow()
    assert held == [len(whole)]
    held.clear()
    monkeypatch.setattr(pre_images, "EVENTS_OF_A_RANGE", BOUND)

    found = asked(world, **options).to_arrow()
    assert found.sort_by("_stamp").equals(whole.sort_by("_stamp"))
    assert len(held) > 2 and max(held) < 1.5 * BOUND
    at_once = held.copy()
    held.clear()

    tasks = pickle.loads(pickle.dumps(asked(world, **options).tasks(1 << 30)))
    read = pa.concat_tables([rows for task in tasks for rows in task.read(world.store)])
    assert read.sort_by("_stamp").equals(whole.sort_by("_stamp"))
    assert len(held) >= len(at_once) and max(held) < 1.5 * BOUND
    assert all(abs(task.rows - size) < BOUND // 4 for task, size in zip(tasks, held, strict=True))


def test_all_events_of_a_key_are_in_one_range(monkeypatch: pytest.MonkeyPatch, held: list[int]) -> None:
    world = World()
    with world.writer() as writer:
        for n in range(30):
            world.commit(writer, ("put", "objects", [obj("hot", content_length=n), obj(f"i{n:02}"), obj(f"a{n:02}")]))
    monkeypatch.setattr(pre_images, "EVENTS_OF_A_RANGE", 10)
    found = asked(world).to_arrow().to_pylist()
    before = [row["_before"] and row["_before"]["content_length"] for row in found if row["name"] == "hot"]
    assert before == [None, *range(29)]
    assert max(held) <= 30 + 10 and sum(held) == 90 and len(held) >= 6


def test_a_range_reads_no_transaction_whose_keys_lie_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    apart = World()
    with apart.writer() as writer:
        for n in range(40):
            apart.commit(writer, ("put", "objects", [obj(f"{n:02}-{each}") for each in range(5)]))
    monkeypatch.setattr(pre_images, "EVENTS_OF_A_RANGE", 50)
    tasks = asked(apart).tasks(1 << 30)
    assert len(tasks) == 4 and max(len(task.parts) for task in tasks if isinstance(task, BeforeTask)) <= 11


def test_where_conditions_leave_few_of_many_events_there_is_one_range(
    world: World, monkeypatch: pytest.MonkeyPatch, held: list[int]
) -> None:
    monkeypatch.setattr(pre_images, "EVENTS_OF_A_RANGE", BOUND)
    assert held == [] and len(asked(world, bucket="pets", prefix="0000").to_arrow()) == held[0] > 0 and len(held) == 1
    assert not asked(world, bucket="pets", prefix="none").tasks(1)
