"""Checkpoints here merge levels as chance has it, so that tables of a few rows have as many of them as large ones have elsewhere."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence

import pytest

from bucketcatalog import checkpoint


def any_level(levels: Sequence[int], new: int) -> int:
    """Any of the levels, or none; the same for the same sizes, so that a history can be played again."""
    return zlib.crc32(repr((list(levels), new)).encode()) % (len(levels) + 1)


@pytest.fixture(scope="package", autouse=True)
def levels_of_few_rows() -> Iterator[None]:
    """What ``tiers`` would do with large tables, and more."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint, "lowest_merged", any_level)
        yield
