"""Ranges of keys for a merge whose blocks lie over each other in heaps: there their first and last keys do not tell where the rows are.

Many transactions with keys from one end of a table to the other, none of them covered yet, are such a heap: every block of theirs spans
nearly all keys. Then the keys of a few blocks are read, and the table is cut at every so many of them.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute as pc

from ..format.segments import BlockPlace
from ..log.segments import read_block
from ..model.arrays import one_chunk
from ..model.keys import EVERYTHING, KeyRange, encode_keys
from ..state.tables import TableBase

_HEAP = 8
"""Rows over one key, in targets, that are still cut well enough by what the indexes tell."""
_ROOMY = 4
"""Rows of a range of a heap, in targets. Each range reads all blocks over it, so more of them cost more."""
_SAMPLED_BLOCKS = 32


def merge_ranges(base: TableBase, target: int) -> list[KeyRange]:
    """Ranges that cover all keys, each of a few ``target`` rows where blocks lie in a heap; else one, for the indexes to tell."""
    places = {place for level in base.blocks_by_level() for place in level} | {event.place for event in base.events}
    if deepest(places) <= _HEAP * target:
        return [EVERYTHING]
    keys = _sampled(base, places)
    count = -(-sum(place.header.rows for place in places) // (_ROOMY * target))
    cuts = sorted({keys[at * len(keys) // count].as_py() for at in range(1, count)} - {b""})
    return [KeyRange(start, stop) for start, stop in zip([b"", *cuts], [*cuts, None], strict=True)]


def deepest(places: Collection[BlockPlace]) -> int:
    """The rows of the blocks that lie over one key, where they are the most."""
    most = rows = 0
    open_: list[tuple[bytes, int]] = []
    for place in sorted(places, key=lambda place: place.header.first_key):
        while open_ and open_[0][0] < place.header.first_key:
            rows -= heapq.heappop(open_)[1]
        heapq.heappush(open_, (place.header.last_key, place.header.rows))
        rows += place.header.rows
        most = max(most, rows)
    return most


def _sampled(base: TableBase, places: Collection[BlockPlace]) -> pa.Array:
    """The sorted keys of a few blocks that stand at even distances among all by their first keys."""
    ordered = sorted(places, key=lambda place: (place.header.first_key, place.name, place.offset))
    chosen = ordered[:: -(-len(ordered) // _SAMPLED_BLOCKS)]
    columns = {column.field_name for column in base.table.key_columns}
    read = (read_block(base.blocks.store, place, base.table, columns) for place in chosen)
    keys = pa.concat_arrays([one_chunk(encode_keys(base.table, facts.rows)) for facts in read])
    return keys.take(pc.sort_indices(keys))
