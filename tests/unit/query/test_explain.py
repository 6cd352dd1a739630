"""``explain`` tells what a scan reads and what it skips, and reading then asks for exactly that."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pytest

from bucketcatalog import prefix
from bucketcatalog.store.wrappers import Wrapped

from ...kit.world import BUCKET, OWNER, World, obj

ROWS = 60_000


class Watched(Wrapped):
    """Notes down every range that is read."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self.read: list[tuple[str, int, int]] = []

    def get_range(self, name: str, offset: int, length: int) -> bytes:
        self.read.append((name, offset, length))
        return super().get_range(name, offset, length)


def many(start: int, stop: int, step: int = 1) -> pa.Table:
    return pa.Table.from_pylist([obj(f"{n:06}", content_length=n) for n in range(start, stop, step)])


@pytest.fixture(scope="module")
def world() -> World:
    """A base of four blocks, a level over it, events that nothing covers as a block and one by one."""
    world = World()
    with world.writer() as w:
        world.commit(w, ("put", "objects", many(0, ROWS)))
        w.checkpoint()
        world.commit(w, ("put", "objects", many(0, 2_000)))
        w.checkpoint()
        world.commit(w, ("put", "objects", many(59_000, 59_100)))
        world.commit(w, ("put", "objects", obj("000001")), ("put", "objects", obj("059999")))
    return world


def explained(scan: Any) -> dict[str, list[int]]:
    """The numbers of each line, by what it begins with."""
    found: dict[str, list[int]] = {}
    for line in scan.explain().splitlines():
        head, _, rest = line.partition(":")
        found.setdefault(head, []).extend(int(number.replace(",", "")) for number in re.findall(r"[0-9][0-9,]*", rest))
    return found


def test_a_whole_scan_reads_every_live_block_of_every_level(world: World) -> None:
    told = explained(world.snapshot().scan("objects"))
    assert list(told) == ["table objects, live", "level 0", "level 1", "not covered", "not natively", "checkpoints", "requests"]
    for name, blocks in (("level 0", 4), ("level 1", 1)):
        read, total, size, of = told[name]
        assert (read, total) == (blocks, blocks) and 1_000 < size < of  # what is the same in all rows is not read
    assert told["not covered"][:2] == [1, 1] and told["not covered"][4:] == [2, 2]
    assert told["checkpoints"] == [1, 2, 2]
    assert told["requests"] == [8, 6, 2, 0]


@pytest.mark.parametrize(
    ("where", "level_0", "level_1", "events", "tail", "segments", "requests"),
    [
        ({"name": prefix("05999")}, 1, 0, 0, 1, 1, [2, 1, 1, 5]),
        ({"name": prefix("0000")}, 1, 1, 0, 1, 2, [4, 2, 2, 4]),
        ({"name": "059050"}, 1, 0, 1, 0, 1, [3, 2, 1, 4]),
        ({"name": ["000003", "045000"]}, 2, 1, 0, 0, 2, [5, 3, 2, 3]),
        ({"name": "x"}, 0, 0, 0, 0, 0, [0, 0, 0, 6]),
    ],
)
def test_conditions_on_the_key_skip_blocks_of_each_level(
    world: World, where: dict[str, Any], level_0: int, level_1: int, events: int, tail: int, segments: int, requests: list[int]
) -> None:
    told = explained(world.snapshot().scan("objects", where={**obj("x"), **where}))
    assert (told["level 0"][0], told["level 1"][0], told["not covered"][0], told["not covered"][4]) == (
        level_0,
        level_1,
        events,
        tail,
    )
    assert told["checkpoints"] == [1, segments, 2] and told["requests"] == requests


@pytest.mark.parametrize("where", [{}, {"name": prefix("05999")}, {"name": ["000003", "045000"]}, {"name": "x"}])
@pytest.mark.parametrize("table", ["objects", "deleted_objects"])
def test_reading_asks_for_what_was_explained(world: World, table: str, where: dict[str, Any]) -> None:
    watched = Watched(world.store)
    snapshot = World(watched).snapshot()
    scan = snapshot.scan(table, where={**obj("x"), **where} if where else {})
    told = explained(scan)
    watched.read.clear()
    scan.to_arrow()
    blocks = set(watched.read)
    again = (
        where == {"name": ["000003", "045000"]} and table == "objects"
    )  # the first was put again: what it replaced is not read
    assert len(blocks) == len(watched.read) == told["requests"][1] - again
    assert len({name for name, _, _ in blocks if name.endswith(".parquet")}) == told["checkpoints"][1]
    by_level = sum(told[level][2] for level in ("level 0", "level 1"))
    asked = sum(length for name, _, length in blocks if name.endswith(".parquet"))
    assert again or 0.75 * by_level <= asked <= by_level  # of rows that are not folded no stamps are read, which is known then
    assert table == "objects" or asked == by_level


def test_fewer_columns_are_fewer_bytes() -> None:
    fresh = World()
    with fresh.writer() as w:
        fresh.commit(w, ("put", "objects", many(0, ROWS)))
        w.checkpoint()
    snapshot = fresh.snapshot()
    everything, one = (explained(snapshot.scan("objects", columns=columns)) for columns in (None, ["content_length"]))
    assert one["level 0"][2] < everything["level 0"][2] / 2


def test_a_database_without_checkpoints_has_no_levels(world: World) -> None:
    fresh = World()
    with fresh.writer() as w:
        fresh.commit(w, ("put", "objects", obj("a")))
    assert fresh.snapshot().scan("objects").explain().splitlines() == [
        "table objects, live: 1 slices",
        "not covered: 1 of 1 events",
        "not natively: no checkpoint holds its lowest level",
        "checkpoints: 0, segments: 0 of 0",
        "requests: 0 (0 blocks, 0 indexes, each once), 0 blocks skipped",
    ]


def test_it_is_said_what_engines_can_read_by_themselves_or_why_they_cannot(world: World) -> None:
    def said(where: dict[str, Any] | None = None) -> str:
        (line,) = (line for line in world.snapshot().scan("objects", where=where).explain().splitlines() if "natively" in line)
        return line

    key = {"owner": OWNER, "bucket_id": BUCKET}
    assert said() == "not natively: its lowest level is in no segment of a compactor or maintainer"
    with world.writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all", full=True)
    assert said() == f"natively: 1 files, {world.snapshot().scan('objects').to_arrow().num_rows:,} rows; nothing over them"
    with world.writer("v") as w:
        world.commit(w, ("put", "objects", [obj("000001"), obj("new")]))
    assert said().endswith(" rows; 2 rows over them")
    assert said({**key, "name": prefix("0000")}).endswith(" rows; 1 rows over them")
    assert said({**key, "name": "000001"}) == "not natively: its conditions name keys, which are looked up"
