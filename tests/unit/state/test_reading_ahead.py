"""Where requests take their time, blocks of a slice are fetched before it is their turn: a few of them, and their rows come in order."""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from bucketcatalog import CorruptionError
from bucketcatalog.format import segments as format_segments
from bucketcatalog.log import segments
from bucketcatalog.store.wrappers import Wrapped

from ...kit.world import World, obj

COUNT, STEP = 1_000, 100
BLOCKS = COUNT // STEP
AT_ONCE = 4


class Far(Wrapped):
    """A store that takes its time, and notes how many ranges are asked for at once. ``slow`` are those that take longer, by number.

    Nobody gets anything before ``together`` have asked at once.
    """

    concurrency = 16

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self.asked = self.under_way = self.most = 0
        self.together = 0
        self.slow: tuple[int, ...] = ()
        self._asked = threading.Condition()

    def get_range(self, name: str, offset: int, length: int) -> bytes:
        with self._asked:
            number, self.asked = self.asked, self.asked + 1
            self.under_way += 1
            self.most = max(self.most, self.under_way)
            self._asked.notify_all()
            assert self._asked.wait_for(lambda: self.most >= self.together, timeout=20)
        time.sleep(0.2 if number in self.slow else 0.005)
        with self._asked:
            self.under_way -= 1
        return super().get_range(name, offset, length)


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> Far:
    """The store of a catalog with a table of ten blocks, all of one slice, where slices are read one by one."""
    for module in (format_segments, segments):
        monkeypatch.setattr(module, "ROW_GROUP_ROWS", STEP)
    monkeypatch.setattr(pa, "cpu_count", lambda: 1)
    world = World()
    with world.writer() as writer:
        world.commit(writer, ("put", "objects", [obj(f"{n:04}", content_length=n) for n in range(COUNT)]))
        writer.checkpoint()
    return Far(world.store)


def scan(far: Far) -> Any:
    """A scan of one column, planned but not read."""
    found = World(far).snapshot().scan("objects", columns=["content_length"])
    assert [len(slice_.live) for slice_ in found.plan()] == [BLOCKS]
    far.asked = far.most = 0
    return found


def reading(far: Far) -> Iterator[pa.Table]:
    """The rows of a scan as another process reads them, block by block."""
    (task,) = scan(far).tasks(1 << 30)
    found: Iterator[pa.Table] = pickle.loads(pickle.dumps(task)).read(far)
    return found


def readers() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("bucketcatalog")]


def test_the_next_blocks_are_fetched_while_one_is_read(far: Far) -> None:
    found = scan(far)
    far.together = 2
    assert found.to_arrow()["content_length"].to_pylist() == list(range(COUNT))
    assert far.asked == BLOCKS and 2 <= far.most <= AT_ONCE


@pytest.mark.parametrize(
    ("concurrency", "cores", "most"), [(16, 1, AT_ONCE), (16, 2, AT_ONCE), (3, 1, 3), (16, 8, 2), (16, 16, 1), (1, 1, 1)]
)
def test_no_more_are_under_way_than_it_pays_on_all_cores_together(
    far: Far, concurrency: int, cores: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = scan(far)
    monkeypatch.setattr(Far, "concurrency", concurrency)
    monkeypatch.setattr(pa, "cpu_count", lambda: cores)
    far.together = most
    assert len(found.to_arrow()) == COUNT
    assert far.most == most


def test_no_more_is_fetched_than_a_few_blocks_ahead_of_who_takes_them(far: Far) -> None:
    rows = reading(far)
    taken = []
    for _ in range(2):
        taken += next(rows)["content_length"].to_pylist()
        time.sleep(0.1)
        assert far.asked <= 1 + len(taken) // STEP + AT_ONCE  # one is for the footer
    assert taken == list(range(2 * STEP)) and readers()
    rows.close()  # type: ignore[attr-defined]
    asked = far.asked
    assert readers() == [] and asked <= 1 + len(taken) // STEP + AT_ONCE + 1
    time.sleep(0.05)
    assert far.asked == asked


def test_an_error_comes_when_it_is_its_turn_and_the_first_one_alone(far: Far) -> None:
    places = World(far).snapshot().state("objects").blocks_by_level()[0]
    data = bytearray(far.get(places[0].name))
    for place in (places[2], places[3]):
        data[place.offset : place.offset + place.length] = bytes(place.length)
    far.delete(places[0].name)
    far.put(places[0].name, bytes(data))
    rows = reading(far)
    far.slow = (1, 2)  # the first two after the footer: what is behind them is there before
    taken = []
    for _ in range(2):
        taken += next(rows)["content_length"].to_pylist()
    assert taken == list(range(2 * STEP))
    with pytest.raises(CorruptionError, match=r"name='0200'.*name='0299'"):
        next(rows)
    assert readers() == []


def test_a_footer_is_fetched_once_however_many_need_it(far: Far) -> None:
    assert sum(len(rows) for rows in reading(far)) == COUNT
    assert far.asked == BLOCKS + 1
