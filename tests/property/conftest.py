"""Checkpoints here merge levels as chance has it, in tasks of a few rows: small tables are to them what large ones are elsewhere.

Orders of tombstones are used however little they save.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from functools import partial

import pytest

from bucketcatalog.checkpoint import merge, plan
from bucketcatalog.state import orders
from bucketcatalog.write import writer


def any_level(levels: Sequence[int], new: int) -> int:
    """Any of the levels, or none; the same for the same sizes, so that a history can be played again."""
    return zlib.crc32(repr((list(levels), new)).encode()) % (len(levels) + 1)


@pytest.fixture(scope="package", autouse=True)
def levels_of_few_rows() -> Iterator[None]:
    """What ``lowest_merged`` would do with large tables, and more; merges in as many tasks as executors would get."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "lowest_merged", any_level)
        patch.setattr(plan, "INLINE_BYTES", 16 << 10)  # some runs of a checkpoint lie in it, others do not
        patch.setattr(writer, "Alone", partial(merge.Alone, most=3))
        patch.setattr(merge, "MERGE_SLICE_ROWS", 4)
        patch.setattr(merge, "FEWEST_ROWS", 2)
        patch.setattr(orders, "SHARE", 1e-6)
        patch.setattr(orders, "RUN_ROWS", 4)
        yield
