"""Look-ups and pages: what one has decoded answers the next ones in the same row group, within a bound, and whoever else reads."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest

from bucketcatalog import CorruptionError
from bucketcatalog.log import blocks
from bucketcatalog.model.bloom import hash_keys
from bucketcatalog.query.snapshot import Snapshot

from ...kit.world import BUCKET, OWNER, World, counted, obj

COUNT = 2_500
BLOCK = 1_000
LOOK = {"owner": OWNER, "bucket_id": BUCKET}


def name(number: int) -> str:
    return f"d{number // 10:04}/f{number:06}"


def objects(numbers: range, **more: Any) -> pa.Table:
    return pa.Table.from_pylist([obj(name(n), content_length=n, **more) for n in numbers])


@pytest.fixture(scope="module", autouse=True)
def small_row_groups() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bucketcatalog.log.segments.ROW_GROUP_ROWS", BLOCK)
        patch.setattr("bucketcatalog.format.segments.ROW_GROUP_ROWS", BLOCK)
        patch.setattr("bucketcatalog.checkpoint.plan.INLINE_BYTES", 0)
        patch.setattr("bucketcatalog.query.listing._SLICE", BLOCK)
        yield


def filled() -> World:
    world = World.counting()
    with world.writer() as writer:
        world.commit(writer, ("put", "objects", objects(range(COUNT))))
        writer.checkpoint()
    return world


@pytest.fixture(scope="module")
def world(small_row_groups: None) -> World:
    """2,500 objects in a checkpoint of three blocks, the lengths their numbers."""
    return filled()


def opened(world: World) -> Snapshot:
    """One that has read indexes and filters, and no block."""
    snapshot = world.snapshot()
    assert snapshot.get("objects", **LOOK, name="d0001") is None
    return snapshot


@pytest.fixture
def snapshot(world: World) -> Snapshot:
    """One that has read indexes and filters, and no block."""
    return opened(world)


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of the row groups that have been decoded, in turn."""
    numbers: list[int] = []
    read = blocks.read_row_groups

    def noted(groups: Any, *arguments: Any, **options: Any) -> Any:
        numbers.extend(group.number for group in groups)
        return read(groups, *arguments, **options)

    monkeypatch.setattr(blocks, "read_row_groups", noted)
    return numbers


def length(snapshot: Snapshot, number: int) -> Any:
    row = snapshot.get("objects", **LOOK, name=name(number))
    return row and row["content_length"]


def test_look_ups_in_one_row_group_ask_for_it_and_decode_it_once(world: World, snapshot: Snapshot, decoded: list[int]) -> None:
    numbers = [5, 6, 0, BLOCK - 1, 5, 700]
    requests, found = counted(world, lambda: [length(snapshot, number) for number in numbers])
    assert (found, requests, decoded) == (numbers, 1, [0])
    requests, found = counted(world, lambda: [length(snapshot, number) for number in (BLOCK, COUNT - 1, 5)])
    assert (found, requests, decoded) == ([BLOCK, COUNT - 1, 5], 2, [0, 1, 2])


def test_filters_are_asked_only_of_blocks_that_would_have_to_be_read(
    world: World, snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[int] = []

    def noted(keys: pa.Array) -> Any:
        hashed.append(len(keys))
        return hash_keys(keys)

    monkeypatch.setattr("bucketcatalog.state.indexes.hash_keys", noted)
    assert length(snapshot, 5) == 5
    assert hashed == [1]
    assert snapshot.get("objects", **LOOK, name=f"{name(5)}x") is None
    assert length(snapshot, 6) == 6
    assert hashed == [1]
    assert counted(world, lambda: snapshot.get("objects", **LOOK, name=f"{name(BLOCK)}x")) == (0, None)
    assert hashed == [1, 1]


def test_keys_that_are_asked_for_together_and_one_by_one_are_found_alike(
    world: World, snapshot: Snapshot, decoded: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pa, "cpu_count", lambda: 1)  # two threads may both find that nothing is kept
    where = {**LOOK, "name": [name(number) for number in range(100, 160)]}
    requests, found = counted(world, lambda: snapshot.scan("objects", columns=["content_length"], where=where).to_arrow())
    assert found["content_length"].to_pylist() == list(range(100, 160))
    assert (requests, decoded) == (1, [0])
    assert length(snapshot, 130) == 130  # of which other columns are needed
    requests, found = counted(world, lambda: snapshot.scan("objects", columns=["name"], where=where).to_arrow())
    assert found["name"].to_pylist() == where["name"]
    assert (requests, decoded) == (0, [0, 0])


def test_pages_slice_what_the_page_before_has_decoded(world: World, snapshot: Snapshot, decoded: list[int]) -> None:
    def pages(limit: int) -> list[Any]:
        found: list[Any] = []
        marker = None
        while True:
            page = snapshot.list("objects", **LOOK, prefix="d00", marker=marker, limit=limit)
            found += page.rows["content_length"].to_pylist()
            marker = page.next_marker
            if marker is None:
                return found

    requests, found = counted(world, lambda: pages(99))
    assert found == list(range(BLOCK))
    assert (requests, decoded) == (1, [0])
    assert counted(world, lambda: snapshot.list("objects", **LOOK, prefix="d0010/").rows["content_length"].to_pylist()) == (
        0,
        list(range(100, 110)),
    )


def test_a_page_of_groups_decodes_names_alone_and_other_columns_only_for_rows_that_it_has(
    world: World, snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    read = blocks.read_block

    def noted(store: Any, place: Any, table: Any, columns: Any = None, *arguments: Any, **options: Any) -> Any:
        asked.append(columns if columns is None else len(columns))
        return read(store, place, table, columns, *arguments, **options)

    monkeypatch.setattr(blocks, "read_block", noted)
    assert snapshot.list("objects", **LOOK, delimiter="/", limit=50).groups == [f"d{number:04}/" for number in range(50)]
    assert asked == [3]
    assert snapshot.list("objects", **LOOK, delimiter="/", prefix="d0050/f").rows["content_length"].to_pylist() == list(
        range(500, 510)
    )
    assert snapshot.list("objects", **LOOK, delimiter="/", prefix="d", limit=70).groups[-1] == "d0069/"
    assert asked == [3, None]


@pytest.mark.parametrize("read", ["scan", "page", "keys"])
def test_who_reads_much_fills_nothing_and_drives_nothing_out(world: World, monkeypatch: pytest.MonkeyPatch, read: str) -> None:
    monkeypatch.setattr(blocks, "_LOOKED_UP_BYTES", 1)  # so that the last block alone is kept
    snapshot = opened(world)

    def much() -> int:
        if read == "page":
            return len(snapshot.list("objects", **LOOK, limit=COUNT).rows)
        where = None if read == "scan" else {**LOOK, "name": [name(number) for number in range(COUNT)]}
        return snapshot.scan("objects", where=where).to_arrow().num_rows

    assert much() == COUNT
    assert counted(world, lambda: length(snapshot, 7)) == (1, 7)
    assert much() == COUNT
    assert counted(world, lambda: length(snapshot, 8)) == (0, 8)


def test_blocks_that_were_looked_into_longest_ago_go_where_there_are_too_many(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "_bytes", lambda facts: 10)
    monkeypatch.setattr(blocks, "_LOOKED_UP_BYTES", 25)
    snapshot = opened(world)
    for number, requests in ((1, 1), (BLOCK, 1), (2, 0), (2 * BLOCK, 1), (3, 0), (BLOCK + 1, 1), (4, 0)):
        assert counted(world, lambda number=number: length(snapshot, number)) == (requests, number)  # type: ignore[misc]


def test_what_lies_over_a_block_is_kept_with_it_and_a_scan_does_not_drive_it_out(
    monkeypatch: pytest.MonkeyPatch, decoded: list[int]
) -> None:
    """Levels over the base, one of which has ended the other's versions, and a large transaction that no checkpoint covers."""
    monkeypatch.setattr(blocks, "_KEPT_BYTES", 1)
    world = filled()
    with world.writer() as writer:
        world.commit(writer, ("put", "objects", objects(range(0, COUNT, 10), etag="first")))
        writer.checkpoint()
        world.commit(writer, ("put", "objects", objects(range(0, COUNT, 20), etag="second")))
        world.commit(writer, ("delete", "objects", objects(range(3, COUNT, 100)).select(["owner", "bucket_id", "name"])))
        writer.checkpoint()
        world.commit(writer, ("put", "objects", objects(range(1, COUNT, 20), etag="third")))
    snapshot = world.snapshot()
    wanted = {**dict.fromkeys(range(20), ""), 0: "second", 1: "third", 10: "first"}
    of_all = {row["name"]: row["etag"] or "" for row in snapshot.scan("objects").to_arrow().to_pylist()}

    def looked_up() -> dict[int, str]:
        rows = {number: snapshot.get("objects", **LOOK, name=name(number)) for number in wanted if number != 3}
        assert snapshot.get("objects", **LOOK, name=name(3)) is None
        return {number: row["etag"] or "" for number, row in rows.items() if row is not None}

    found = looked_up()
    assert found == {number: etag for number, etag in wanted.items() if number != 3}
    assert found == {number: of_all[name(number)] for number in found}
    assert snapshot.scan("objects").to_arrow().num_rows == len(of_all)
    decoded.clear()
    assert counted(world, looked_up) == (0, found)
    assert decoded == []


def damage_the_first_block(world: World) -> None:
    segment = world.snapshot().state("objects").blocks_by_level()[0][0].name
    data = bytearray(world.store.get(segment))
    data[4:1024] = bytes(1020)
    world.store.delete(segment)
    world.store.put(segment, bytes(data))


def test_what_was_checked_answers_though_its_file_is_damaged_since_and_who_comes_later_is_told() -> None:
    world = filled()
    snapshot = world.snapshot()
    assert length(snapshot, 1) == 1
    damage_the_first_block(world)
    assert length(snapshot, 2) == 2
    with pytest.raises(CorruptionError):
        length(world.snapshot(), 2)
    with pytest.raises(CorruptionError):
        snapshot.scan("objects").to_arrow()


def test_a_damaged_block_is_not_kept_and_told_of_each_time() -> None:
    world = filled()
    damage_the_first_block(world)
    snapshot = world.snapshot()
    for _ in range(2):
        with pytest.raises(CorruptionError, match="checksum"):
            length(snapshot, 2)


def test_threads_share_what_is_kept(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "_LOOKED_UP_BYTES", 1)
    snapshot = opened(world)
    numbers = [number * 9_973 % COUNT for number in range(200)]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(lambda number: length(snapshot, number), numbers)) == numbers
