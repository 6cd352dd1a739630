"""What reads leave alone: blocks without a wanted key, base blocks under newer PUTs, the rest of a slice behind a group."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bucketcatalog import Catalog, CorruptionError, prefix
from bucketcatalog.format.headers import BlockClass, BlockHeader, BlockPlace
from bucketcatalog.format.runs import run_of
from bucketcatalog.model.keys import KeyRange
from bucketcatalog.parallel import in_order
from bucketcatalog.state.indexes import block_run
from bucketcatalog.store.faults import Counting
from bucketcatalog.store.memory import MemoryStore

from ...kit.world import BUCKET, MINUTE, OWNER, Clock, World, counted, obj

COUNT = 30_000
LOOK = {"owner": OWNER, "bucket_id": BUCKET}


def name(number: int) -> str:
    return f"d{number // 10:04}/f{number:06}"


@pytest.fixture(scope="module")
def world() -> World:
    """30,000 objects in a checkpoint of two blocks, in 3,000 folders of ten."""
    clock = Clock()
    world = World(Counting(MemoryStore(clock=clock)))
    world.clock = clock
    writer = world.writer()
    world.commit(writer, ("put", "objects", pa.Table.from_pylist([obj(name(n), content_length=n) for n in range(COUNT)])))
    writer.checkpoint()
    writer.close()
    return world


def test_a_listing_of_groups_reads_each_block_once(world: World) -> None:
    snapshot = world.snapshot()
    snapshot.get("objects", **LOOK, name="d0001")  # reads the index
    count, page = counted(world, lambda: snapshot.list("objects", **LOOK, delimiter="/", limit=5_000))
    assert list(page.groups) == [f"d{n:04}/" for n in range(COUNT // 10)]
    assert (count, len(page.rows), page.next_marker) == (2, 0, None)


def test_a_snapshot_that_was_looked_into_travels(world: World) -> None:
    snapshot = world.snapshot()
    found = snapshot.get("objects", **LOOK, name=name(5))
    assert found is not None and pickle.loads(pickle.dumps(snapshot)).get("objects", **LOOK, name=name(5)) == found


def test_pages_of_groups_are_the_pages_of_all_groups(world: World) -> None:
    snapshot = world.snapshot()
    groups: list[Any] = []
    marker = None
    while True:
        page = snapshot.list("objects", **LOOK, delimiter="/", limit=999, marker=marker)
        groups += page.groups
        marker = page.next_marker
        if marker is None:
            break
    assert groups == [f"d{n:04}/" for n in range(COUNT // 10)]


def test_slices_within_a_long_group_are_not_read(world: World) -> None:
    snapshot = world.snapshot()
    snapshot.get("objects", **LOOK, name="d0001")
    count, page = counted(world, lambda: snapshot.list("objects", **LOOK, delimiter="d", prefix="", limit=5))
    assert (page.groups, page.next_marker, count) == (
        ["d"],
        None,
        2,
    )  # the first slice, and the last, which ends behind the group


@pytest.mark.parametrize("wanted", [[5], [5, 6, 7], [0, COUNT - 1], list(range(200)), list(range(8_000, 8_400))])
def test_keys_are_found_in_the_blocks_that_hold_them_alone(world: World, wanted: list[int]) -> None:
    snapshot = world.snapshot()
    snapshot.get("objects", **LOOK, name="d0001")
    where = {**LOOK, "name": [*map(name, wanted), "absent"]}
    blocks = {number // 8_192 for number in wanted}
    few = len(wanted) < 64

    count, found = counted(world, lambda: snapshot.scan("objects", where=where).to_arrow())
    assert found["content_length"].to_pylist() == wanted
    assert count <= (len(wanted) if few else len(blocks))
    assert snapshot.scan("objects", where={**where, "content_length": wanted[0]}).to_arrow().num_rows == 1
    assert snapshot.scan("objects", where={**LOOK, "name": []}).to_arrow().num_rows == 0


def test_what_was_put_since_is_found_without_the_blocks_below(world: World) -> None:
    with world.writer() as writer:
        world.commit(
            writer,
            ("put", "objects", pa.Table.from_pylist([obj(name(n), content_length=COUNT + n) for n in range(0, COUNT, 100)])),
        )
        world.commit(writer, ("put", "objects", obj(name(7), content_length=777)))
        new = [name(n) for n in range(0, COUNT, 100)]
        snapshot = world.snapshot()
        snapshot.get("objects", **LOOK, name="d0001")

        count, found = counted(world, lambda: snapshot.scan("objects", where={**LOOK, "name": new}).to_arrow())
        assert count == 1  # the block of the new events
        assert found["content_length"].to_pylist() == [COUNT + n for n in range(0, COUNT, 100)]
        count, row = counted(world, lambda: snapshot.get("objects", **LOOK, name=name(7)))
        assert (count, row["content_length"]) == (0, 777)  # its block was read before

        world.commit(writer, ("delete", "objects", obj(name(100))), ("delete", "objects", obj(name(8))))
        snapshot = world.snapshot()
        assert snapshot.get("objects", **LOOK, name=name(100)) is snapshot.get("objects", **LOOK, name=name(8)) is None
        assert snapshot.scan("deleted_objects", where={**LOOK, "name": name(100)}).to_arrow()["content_length"].to_pylist() == [
            100,
            COUNT + 100,
        ]
        assert snapshot.scan("objects", where={"name": prefix("d0010/")}).to_arrow()["content_length"].to_pylist() == list(
            range(101, 110)
        )


def test_superseded_versions_that_lie_over_the_base_are_read_for_tombstones_alone() -> None:
    world = World()
    rounds = 3
    with world.writer() as writer:
        for length in range(rounds + 1):
            count = COUNT if not length else COUNT // 100
            world.commit(
                writer, ("put", "objects", pa.Table.from_pylist([obj(name(n), content_length=length) for n in range(count)]))
            )
            if not length:
                writer.checkpoint()
        world.commit(writer, ("delete", "objects", obj(name(0))))
        writer.checkpoint()
    snapshot = world.snapshot()

    def over(*, only_live: bool) -> set[BlockClass]:
        plan = snapshot.state("objects").plan(only_live=only_live)
        return {place.header.block_class for slice_ in plan for place in slice_.upper}

    assert over(only_live=True) == {BlockClass.LIVE, BlockClass.ENDED}  # the key that was deleted has no live version
    assert over(only_live=False) == {BlockClass.LIVE, BlockClass.ENDED, BlockClass.SUPERSEDED}
    live = snapshot.scan("objects").to_arrow()
    assert live["content_length"].to_pylist() == [rounds] * (COUNT // 100 - 1) + [0] * (COUNT - COUNT // 100)
    ended = snapshot.scan("deleted_objects").to_arrow()
    assert ended["content_length"].to_pylist() == [*range(rounds + 1)] + [*range(rounds)] * (COUNT // 100 - 1)
    assert ended["name"].to_pylist() == sorted(ended["name"].to_pylist())


@pytest.mark.parametrize(
    "again", [range(0, COUNT, 10), range(0, COUNT // 2, 5), range(1, COUNT, 10)], ids=["same", "half", "others"]
)
def test_versions_that_a_higher_level_has_ended_are_left_out_and_no_block_is_read_twice(again: range) -> None:
    clock = Clock()
    world = World(Counting(MemoryStore(clock=clock)))
    world.clock = clock
    expected = [0] * COUNT
    with world.writer() as writer:
        for length, numbers in enumerate((range(COUNT), range(0, COUNT, 10), again)):
            rows = [obj(name(n), content_length=length) for n in numbers]
            world.commit(writer, ("put", "objects", pa.Table.from_pylist(rows)))
            writer.checkpoint()
            expected[numbers.start : numbers.stop : numbers.step] = [length] * len(numbers)
    snapshot = world.snapshot()
    levels = snapshot.state("objects").blocks_by_level()
    assert len(levels) == 3
    live = sum(place.header.block_class is BlockClass.LIVE for level in levels for place in level)
    count, found = counted(world, lambda: snapshot.scan("objects").to_arrow())
    assert found["content_length"].to_pylist() == expected
    assert count == live


class TestRuns:
    @given(st.lists(st.binary(max_size=2), min_size=2, max_size=12), st.binary(max_size=2), st.none() | st.binary(max_size=2))
    @settings(max_examples=300)
    def test_a_run_gives_what_overlaps(self, keys: list[bytes], start: bytes, stop: bytes | None) -> None:
        keys = sorted(keys[: len(keys) // 2 * 2])
        places = [
            BlockPlace("s", n, 1, 0, BlockHeader("t", BlockClass.LIVE, 1, first, last, 0, 0))
            for n, (first, last) in enumerate(zip(keys[::2], keys[1::2], strict=True))
        ]
        run = block_run(run_of([place.header for place in places]), places)
        within = KeyRange(start, stop)
        wanted = [p for p in places if within.overlaps(p.header.first_key, p.header.last_key)]
        assert list(run.within(within)) == (wanted if stop is None or stop > start else list(run.within(within)))

    @pytest.mark.parametrize("keys", [[(b"b", b"a")], [(b"a", b"c"), (b"b", b"d")]])
    def test_blocks_out_of_order_are_named(self, keys: list[tuple[bytes, bytes]]) -> None:
        places = [
            BlockPlace("the segment", n, 1, 0, BlockHeader("t", BlockClass.LIVE, 1, first, last, 0, 0))
            for n, (first, last) in enumerate(keys)
        ]
        with pytest.raises(CorruptionError, match="the segment"):
            block_run(run_of([place.header for place in places]), places)


class TestInOrder:
    @pytest.fixture(autouse=True)
    def two_threads(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(pa, "cpu_count", lambda: 2)

    def test_results_come_in_the_order_of_the_items(self) -> None:
        first = threading.Event()

        def work(item: int) -> int:
            if item == 0:
                assert first.wait(10)
            first.set()
            return item * item

        assert list(in_order(work, range(50))) == [n * n for n in range(50)]

    def test_no_more_is_done_than_was_taken_and_a_result_a_thread(self) -> None:
        done: list[int] = []
        results: Iterator[None] = in_order(done.append, range(100))
        next(results)
        next(results)
        assert len(done) <= 5
        results.close()  # type: ignore[attr-defined]
        assert len(done) <= 7

    def test_the_first_error_ends_it(self) -> None:
        def work(item: int) -> int:
            if item == 3:
                raise CorruptionError("item 3", next_step="-")
            return item

        found: list[int] = []
        with pytest.raises(CorruptionError, match="item 3"):
            found.extend(in_order(work, range(100)))
        assert found == [0, 1, 2]


def test_following_lists_no_further_back_than_the_last_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of a writer that has been silent for long, all of whose transactions are settled: its timeline is not listed from its start."""
    world = World()
    monkeypatch.setattr("bucketcatalog.clock.now_us", world.clock)
    with world.writer("silent") as silent, world.writer("busy") as busy, world.writer("compactor-1") as compactor:
        for number in range(20):
            world.commit(silent, ("put", "objects", obj(str(number))))
        for number in range(3):
            world.clock.tick(30 * MINUTE)
            world.commit(busy, ("put", "objects", obj(f"later {number}")))
            compactor.checkpoint(scope="all")
    counting = Counting(world.store)
    catalog = Catalog(counting)
    snapshot = catalog.snapshot(database="default")
    assert snapshot.view.checkpoints[0].coverage["silent"].list_from == 20
    counting.reset()
    catalog.snapshot(database="default")
    assert counting.objects_listed < 20


def test_looking_up_what_is_live_opens_no_run_of_ended_rows_that_is_older_than_what_lies_over_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bucketcatalog.checkpoint.plan.INLINE_BYTES", 0)
    world = World.counting()
    with world.writer("w") as writer, world.writer("late") as late:
        world.commit(writer, ("put", "objects", [obj(name(n), content_length=1) for n in range(3_000)]))
        old = world.clock.now
        world.commit(writer, ("put", "objects", [obj(name(n), content_length=2) for n in range(3_000)]))
        world.commit(writer, ("delete", "objects", [obj(name(n)) for n in (2_000, 2_001)]))
        writer.checkpoint()
        world.commit(writer, ("put", "objects", [obj(name(n), content_length=3) for n in range(100)]))
        writer.checkpoint()
        classes = {run.block_class for run in world.snapshot().view.checkpoints[0].runs if run.is_of_rows and not run.level}
        assert classes == {BlockClass.LIVE, BlockClass.ENDED, BlockClass.SUPERSEDED}
        requests, found = counted(world, lambda: world.snapshot().get("objects", **obj(name(7))))
        assert found is not None and found["content_length"] == 3
        assert requests == 3  # an index of each level, and a block of the upper one
        world.clock.now, now = old, world.clock.now
        world.commit(late, ("put", "objects", obj(name(2_000), content_length=4)))
        world.clock.now = now
        assert world.snapshot().get("objects", **obj(name(2_000))) is None  # what ended it lies among the ended ones
