"""Rows that stand in the files of the lowest level as they are: in which files, and which rows of these something lies over.

The state of a key is a function of that key's events alone. So where no other run, checkpoint, or event that no checkpoint covers names a
key, its rows at the lowest level of one checkpoint are its state, and whoever reads Parquet can read them. The other keys are touched: what
is to be said of them a fold says, and their rows in the files are left out, by their positions.

Planning a read comes before, who shows it to other engines after. The work grows with what lies over the lowest level, and with the row
groups whose keys that can touch.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import CorruptionError, ObjectNotFound
from ..format.footers import Layout
from ..format.headers import TOMBSTONES, BlockClass, BlockPlace
from ..format.held import shown_segment
from ..format.parquet import RowGroup, column_statistics, rows_of
from ..format.runs import SegmentReference, StoredPart
from ..log.blocks import gone, read_blocks, side_by_side
from ..log.trust import is_trusted
from ..model.keys import KeyRange, encode_keys, span
from ..parallel import in_order
from .contents import TableState
from .indexes import holds_one
from .plan import SLICE_ROWS, Part, Slice
from .read import touched_keys

MOST_TOUCHED = 1 << 20
"""Keys that may be touched: whoever leaves their rows out holds all of their positions at once."""
MOST_KEY_BYTES = 256 << 20
"""Bytes of these keys."""
MOST_CONCERNED = 1 << 28
"""Rows of all files that hold some of them: as many keys may have to be looked at, and engines are told of each row by a bit."""
_MOST_OVER = 4 * MOST_TOUCHED
"""Rows over the lowest level that are looked through for the keys that they name."""
_CLASSES = {Part.LIVE: frozenset({BlockClass.LIVE}), Part.TOMBSTONES: TOMBSTONES}


@dataclass(frozen=True)
class BaseFile:
    """A segment of the lowest level: its name and size in the store, its rows, what its footer says, and the positions of rows to leave
    out, sorted.
    """

    name: str
    size: int
    rows: int
    groups: tuple[RowGroup, ...] = field(repr=False)
    left_out: pa.Array = field(repr=False)

    @property
    def layout(self) -> Layout:
        """What the footer says."""
        return self.groups[0].footer.layout

    def may_be_null(self, column: str) -> bool:
        """Whether a column that has no parts can hold nulls."""
        said = (column_statistics(group, column) for group in self.groups)
        return not all(each is not None and each.nulls == 0 for each in said)


@dataclass(frozen=True)
class Untouched:
    """The files whose other rows are the state of the keys that are not ``touched``, which are sorted and distinct."""

    files: tuple[BaseFile, ...]
    touched: pa.Array


@dataclass(frozen=True)
class _Base:
    """The segments of the lowest level of one checkpoint, and the state of what is beside and over them."""

    segments: tuple[SegmentReference, ...]
    over: TableState


def untouched(state: TableState, part: Part, ranges: Sequence[KeyRange]) -> Untouched | str:
    """What stands in files as it is of the keys of these ranges, live rows or tombstones; or why nothing can be read so.

    Each file is looked at once more: it has the size and the footer that its checkpoint says, or there is a ``CorruptionError``.
    """
    base = _base(state, part)
    if isinstance(base, str):
        return base
    new = _rows_within(base.over, ranges)
    if new > _MOST_OVER:
        return _too_many(new)
    touched = _touched(base.over, ranges)
    if isinstance(touched, str):
        return touched
    found = _within(base, ranges)
    concerned = sum(segment.run.rows for segment in found if _holds_one(segment, touched))
    if concerned > MOST_CONCERNED:
        return f"something lies over files with {concerned:,} rows: they may have {MOST_CONCERNED:,}"
    threads = max(state.blocks.store.concurrency, pa.cpu_count())
    return Untouched(tuple(in_order(partial(_file, state, touched), found, threads=threads)), touched)


def outlook(state: TableState, part: Part, ranges: Sequence[KeyRange]) -> str:
    """What ``untouched`` would find, in a line, as far as indexes tell."""
    base = _base(state, part)
    if isinstance(base, str):
        return f"not natively: {base}"
    found = _within(base, ranges)
    rows, new = sum(segment.run.rows for segment in found), _rows_within(base.over, ranges)
    if new > _MOST_OVER:
        return f"not natively: {_too_many(new)}"
    over = (
        f"{new:,} rows over them" + (", perhaps of too many keys" if new > MOST_TOUCHED else "") if new else "nothing over them"
    )
    if not found:
        return f"not natively: no file has such rows; {over}"
    return f"natively: {len(found):,} files, {rows:,} rows; {over}"


def _too_many(rows: int) -> str:
    return f"{rows:,} rows lie over the lowest level: more than {_MOST_OVER:,} are not looked through"


def _holds_one(segment: SegmentReference, keys: pa.Array) -> bool:
    """Whether a segment can hold one of the sorted keys."""
    first, last = span(keys, KeyRange.closed(segment.run.first_key, segment.run.last_key))
    return first < last


def _within(base: _Base, ranges: Sequence[KeyRange]) -> list[SegmentReference]:
    """The segments that can hold keys of the ranges."""
    return [segment for segment in base.segments if any(k.overlaps(segment.run.first_key, segment.run.last_key) for k in ranges)]


def _base(state: TableState, wanted: Part) -> _Base | str:
    if state.reads_past_damage:
        return "what is damaged is read past, row by row"
    classes = _CLASSES[wanted]
    segments = [
        tuple(
            p
            for p in parts
            if isinstance(p, SegmentReference) and not p.run.level and p.run.block_class in classes and _is_trusted(p)
        )
        for parts in state.parts_by_checkpoint
    ]
    lowest = [[part for part in parts if not part.run.level] for parts in state.parts_by_checkpoint]
    if not any(lowest):
        return "no checkpoint holds its lowest level"
    # Without such rows in segments of its own, a fold says of other keys than the touched that there are none.
    most = max(range(len(lowest)), key=lambda at: (_rows(segments[at]), _rows(lowest[at])))
    of_others = (
        part for parts in lowest for part in parts if isinstance(part, SegmentReference) and part.run.block_class in classes
    )
    if not segments[most] and any(of_others):
        return "its lowest level is in no segment of a compactor or maintainer"
    over = [
        [part for part in parts if _may_touch(part, wanted, classes, of_base=at == most) and part not in segments[most]]
        for at, parts in enumerate(state.parts_by_checkpoint)
    ]
    return _Base(segments[most], state.of_parts(over))


def _rows(parts: Iterable[StoredPart]) -> int:
    return sum(part.run.rows for part in parts)


def _is_trusted(reference: SegmentReference) -> bool:
    """Whether an engine may read a segment that nobody checks row by row: plain writers write what they like."""
    return not reference.only_of and is_trusted(reference.writer)


def _may_touch(part: StoredPart, wanted: Part, classes: frozenset[BlockClass], *, of_base: bool) -> bool:
    """Whether the rows of a run can say anything of keys: the other classes of the base were folded with it.

    Who wants live rows needs no superseded ones: the live version in the same fold has ended them, and names their keys.
    """
    if of_base and not part.run.level:
        return part.run.block_class in classes
    return wanted is not Part.LIVE or part.run.block_class is not BlockClass.SUPERSEDED


def _rows_within(over: TableState, ranges: Sequence[KeyRange]) -> int:
    """An upper bound of the rows that lie over the base; reads indexes only."""
    slices = over.plan(ranges, target=sys.maxsize)
    places = {place: None for slice_ in slices for place in slice_.places}
    return sum(place.header.rows for place in places) + sum(len(slice_.tail) for slice_ in slices if slice_.tail is not None)


def _touched(over: TableState, ranges: Sequence[KeyRange]) -> pa.Array | str:
    """The keys that anything in the ranges names, sorted and distinct; or why these are too many."""
    slices = over.plan(ranges, target=SLICE_ROWS)
    found, count, size = [pa.array([], pa.binary())], 0, 0
    for keys in in_order(lambda slice_: touched_keys(over.blocks, over.table, _all_over(slice_)), slices):
        found.append(keys)
        count, size = count + len(keys), size + int(keys.nbytes)
        if count > MOST_TOUCHED:
            return f"something lies over more than {MOST_TOUCHED:,} keys of the lowest level"
        if size > MOST_KEY_BYTES:
            return f"something lies over keys of more than {MOST_KEY_BYTES:,} bytes"
    return pa.concat_arrays(found)


def _all_over(slice_: Slice) -> Slice:
    """The slice with nothing for its base."""
    return replace(slice_, live=(), rest=(), upper=(*slice_.live, *slice_.rest, *slice_.upper))


def _file(state: TableState, touched: pa.Array, segment: SegmentReference) -> BaseFile:
    places = state.places(segment)
    name, group = places[0].name, places[0].row_group
    assert group is not None
    store, footer = state.blocks.store, group.footer
    try:
        size = store.head(name).size
        footer.give(store.get_range(name, footer.offset, footer.length))
    except ObjectNotFound:
        raise gone(name, shown_segment(segment)) from None
    if size != segment.size:
        raise CorruptionError(f"{name} has {size:,} bytes, and not {segment.size:,}. It should hold {shown_segment(segment)}.")
    groups = [place.row_group for place in places if place.row_group is not None]
    counts = [rows_of(group) for group in groups]
    if counts != [place.header.rows for place in places] or footer.layout.metadata.num_row_groups != len(places):
        raise CorruptionError(f"{name} has row groups of other sizes than its index says.")
    return BaseFile(name, size, sum(counts), tuple(groups), _left_out(state, places, counts, touched))


def _left_out(state: TableState, places: Sequence[BlockPlace], counts: Iterable[int], touched: pa.Array) -> pa.Array:
    """The positions in a file of the rows with touched keys."""
    starts = dict(zip(places, accumulate(counts, initial=0), strict=False))
    of_key = [column.field_name for column in state.table.key_columns]
    found = []
    for together in side_by_side(place for place in places if holds_one(place, touched)):
        rows = read_blocks(state.blocks.store, together, state.table, of_key).rows
        within = KeyRange.closed(together[0].header.first_key, together[-1].header.last_key)
        is_touched = pc.is_in(encode_keys(state.table, rows), value_set=touched[slice(*span(touched, within))])
        found.append(starts[together[0]] + np.flatnonzero(np.asarray(is_touched)))
    return pa.array(np.concatenate(found) if found else [], pa.int64())
