"""Merging: levels of a table and what is new over them in, blocks of their fold out, in memory that does not grow with the table."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from .base import TableBase
from .codec.blocks import TARGET_ROWS, BlockClass, EncodedBlock, encode_blocks
from .facts import Facts, Kind, concat
from .merge import Part
from .reading import read_slice
from .sums import KeptSums
from .tables import Table

_CLASSES = (BlockClass.LIVE, BlockClass.ENDED, BlockClass.STUBS)


def merged_blocks(base: TableBase, *, lowest: bool) -> Iterator[EncodedBlock]:
    """The state that a table's levels and tail make, as blocks; each class is a run of its own, in key order.

    ``lowest``: nothing lies below it, so that sums over its live rows are kept beside them.
    """
    waiting: dict[BlockClass, list[Facts]] = {kind: [] for kind in _CLASSES}
    sums = KeptSums(base.table)
    for piece in base.plan():
        state = read_slice(base.blocks, base.table, piece, Part.EVERYTHING)
        for kind, rows in _by_class(state):
            yield from _full_blocks(waiting[kind], rows, base.table, kind)
            if lowest and kind is BlockClass.LIVE:
                sums.add(rows)
    for kind in _CLASSES:
        if waiting[kind]:
            yield from encode_blocks(concat(waiting[kind]), base.table, kind)
    yield from sums.blocks()


def _full_blocks(waiting: list[Facts], rows: Facts, table: Table, kind: BlockClass) -> Iterator[EncodedBlock]:
    """Blocks of what is complete; the rest waits for the next slice."""
    waiting.append(rows)
    if sum(len(part) for part in waiting) < TARGET_ROWS:
        return
    joined = concat(waiting)
    whole = len(joined) - len(joined) % TARGET_ROWS
    yield from encode_blocks(joined.slice(0, whole), table, kind)
    waiting[:] = [joined.slice(whole, len(joined))] if whole < len(joined) else []


def _by_class(state: Facts) -> Iterator[tuple[BlockClass, Facts]]:
    is_version = state.numbers("_kind") == Kind.VERSION
    ended = state.numbers("_end_kind") > 0
    purged = ended & (state.numbers("_purged") > 0)
    masks = {
        BlockClass.LIVE: is_version & ~ended,
        BlockClass.ENDED: is_version & ended & ~purged,
        BlockClass.STUBS: ~is_version | purged,
    }
    for kind, mask in masks.items():
        if np.any(mask):
            yield kind, state.filter(pa.array(mask))
