"""Which levels a checkpoint merges: bounds that hold for any sequence of sizes; and how many rows lie over one key."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest

from bucketcatalog.checkpoint.merge import deepest
from bucketcatalog.checkpoint.plan import BASE_SHARE, FAN_IN, SMALL_ROWS, lowest_merged
from bucketcatalog.format.headers import BlockClass, BlockHeader, BlockPlace


def after(levels: list[int], new: int) -> tuple[list[int], int]:
    """The levels after a checkpoint of so many new rows, and how many rows it wrote."""
    at = lowest_merged(levels, new)
    written = sum(levels[at:]) + new
    return [*levels[:at], written], written


def run(base: int, sizes: Iterable[int]) -> tuple[list[int], float, int]:
    """The levels in the end, rows written for each new row, and the most levels that there were."""
    levels, written, new, most = [base], 0, 0, 1
    for size in sizes:
        levels, cost = after(levels, size)
        written, new, most = written + cost, new + size, max(most, len(levels))
    return levels, written / new, most


@pytest.mark.parametrize(
    ("levels", "new", "lowest"),
    [
        ([], 5, 0),
        ([100], 5, 0),
        ([1_000_000], 10_000, 1),
        ([1_000_000, 10_000], 10_000, 2),
        ([1_000_000, 10_000, 10_000, 10_000], 10_000, 1),
        ([1_000_000, 60_000, 10_000, 10_000], 10_000, 4),
        ([1_000_000, 60_000, 10_000, 10_000, 10_000], 10_000, 2),
        ([1_000_000, 240_000], 10_000, 0),
        ([1_000_000, 10_000], 300_000, 0),
    ],
)
def test_levels_of_about_one_size_are_merged_and_all_of_them_once_they_are_a_share_of_the_base(
    levels: list[int], new: int, lowest: int
) -> None:
    assert lowest_merged(levels, new) == lowest


@pytest.mark.parametrize("seed", range(20))
def test_whatever_the_sizes_levels_are_few_and_those_over_the_base_a_share_of_it(seed: int) -> None:
    chance = random.Random(seed)
    base = 10 ** chance.randint(0, 8)
    largest = 10 ** chance.randint(1, 6)
    levels = [base]
    for _ in range(500):
        levels, _ = after(levels, chance.choice([1, largest, chance.randint(1, largest)]))
        powers = 1
        while FAN_IN**powers < sum(levels):
            powers += 1
        assert len(levels) <= 1 + (FAN_IN - 1) * (powers + 1)
        assert sum(levels[1:]) * BASE_SHARE < levels[0] or len(levels) == 1


def test_sizes_that_alternate_leave_few_levels() -> None:
    assert run(10_000_000, [40_000, 9_000] * 100)[2] <= 12


@pytest.mark.parametrize(("changes", "times", "amplification"), [(1_000, 1_000, 11.0), (100, 1_000, 11.0), (10, 1_000, 11.0)])
def test_a_row_is_written_again_at_most_eleven_times_however_small_the_checkpoints(
    changes: int, times: int, amplification: float
) -> None:
    assert run(1_000_000, [changes] * times)[1] <= amplification
    assert SMALL_ROWS < 1_000_000


def test_the_rows_over_one_key_are_counted_where_they_are_the_most() -> None:
    def place(first: bytes, last: bytes, rows: int) -> BlockPlace:
        return BlockPlace("s", rows, 1, 0, BlockHeader("t", BlockClass.LIVE, rows, first, last, 0, 0))

    assert deepest([]) == 0
    assert deepest([place(b"a", b"b", 1), place(b"c", b"d", 2), place(b"e", b"f", 4)]) == 4
    assert deepest([place(b"a", b"c", 1), place(b"c", b"e", 2), place(b"d", b"f", 4), place(b"x", b"z", 5)]) == 6
