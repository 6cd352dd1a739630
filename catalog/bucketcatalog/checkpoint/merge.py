"""Merging: levels of a table and what is new over them in, segments of their fold out, in memory that does not grow with the table.

A merge is planned from indexes, but for the keys of a few blocks where these lie in a heap, as tasks of disjoint ranges of keys. A task is
small, can be pickled, and writes segments of its own wherever it runs; a checkpoint then refers to them. So a task that dies, or runs
twice, leaves segments that nothing refers to.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import ClosedWriter
from ..format.headers import BlockClass, BlockPlace
from ..format.runs import InlineRun, SegmentReference, StoredPart
from ..format.segments import Origin, RunRows
from ..log.blocks import Blocks, read_block
from ..log.segments import RunWriter
from ..model.arrays import Mask, one_chunk
from ..model.cuts import Cut
from ..model.facts import Facts, Kind
from ..model.keys import EVERYTHING, KeyRange, encode_keys
from ..model.render import with_defaults
from ..model.tables import Table
from ..state.contents import TableState
from ..state.overlay import Arranged
from ..state.plan import SLICE_ROWS, Part
from ..state.read import read_arranged
from ..state.shares import PackedSlice, Share, grouped
from ..state.side_runs import side_runs
from ..store.base import Store

_HEAP = 8
"""Rows over one key, in targets, that are still cut well enough by what the indexes tell."""
_ROOMY = 4
"""Rows of a range of a heap, in targets. Each range reads all blocks over it, so more of them cost more."""
_SAMPLED_BLOCKS = 32


def merge_ranges(state: TableState, target: int) -> list[KeyRange]:
    """Ranges that cover all keys, each of a few ``target`` rows where blocks lie in a heap; else one, for the indexes to tell.

    Many transactions with keys from one end of a table to the other, none of them covered yet, are such a heap: every block of theirs spans
    nearly all keys, so that first and last keys do not tell where the rows are. Then the table is cut by the keys of a few of them.
    """
    places = {place for level in state.blocks_by_level() for place in level} | {event.place for event in state.events}
    if deepest(places) <= _HEAP * target:
        return [EVERYTHING]
    keys = _sampled(state, places)
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


def _sampled(state: TableState, places: Collection[BlockPlace]) -> pa.Array:
    """The sorted keys of a few blocks that stand at even distances among all by their first keys."""
    ordered = sorted(places, key=lambda place: (place.header.first_key, place.name, place.offset))
    chosen = ordered[:: -(-len(ordered) // _SAMPLED_BLOCKS)]
    columns = {column.field_name for column in state.table.key_columns}
    read = (read_block(state.blocks.store, place, state.table, columns) for place in chosen)
    keys = pa.concat_arrays([one_chunk(encode_keys(state.table, facts.rows)) for facts in read])
    return keys.take(pc.sort_indices(keys))


MERGE_SLICE_ROWS = SLICE_ROWS
"""About the most rows that are merged at once: all of them are in memory, and a column of text has no more than 2 GiB."""
FEWEST_ROWS = 1 << 18
"""Rows below which a further task costs more, in its start and in a segment of its own, than it saves."""


@dataclass(frozen=True)
class MergePart:
    """A share of one table. Of the ``lowest`` level sums and orders are kept beside the rows."""

    share: Share
    lowest: bool

    @property
    def table(self) -> Table:
        """Whose rows they are."""
        return self.share.table


@dataclass(frozen=True)
class MergeTask:
    """A part of a merge that is done in one place: picklable. Tasks of one merge share no key of a table.

    ``writer`` is whose segments they become, ``cut`` what they cover, ``began`` the store's time before the work began, ``origin`` for
    which checkpoint; up to ``inline_bytes`` of small runs are left to the checkpoint itself.
    """

    writer: str
    database: str
    cut: Cut
    began: int
    parts: tuple[MergePart, ...]
    origin: Origin
    inline_bytes: int = 0

    @property
    def rows(self) -> int:
        """An upper bound of the rows that are read."""
        return sum(part.share.rows for part in self.parts)


@dataclass(frozen=True, slots=True)
class Merged:
    """What a task has made: the segments that it wrote, and the runs that the checkpoint is to hold itself."""

    segments: tuple[SegmentReference, ...]
    inline: tuple[InlineRun, ...] = ()

    @property
    def parts(self) -> tuple[StoredPart, ...]:
        """All of its runs."""
        return (*self.segments, *self.inline)


class MergeWorkers(Protocol):
    """Who does the tasks of a merge. ``most`` is how many tasks it is worth making."""

    @property
    def most(self) -> int:
        """See the class."""
        ...

    def run(self, tasks: Sequence[MergeTask]) -> Iterable[Merged]:
        """What each task wrote, in any order; a task may be run again, and then only one of its results counts."""
        ...


@dataclass(frozen=True)
class Alone:
    """This process, one task after the other. ``stopped`` ends it, with ``ClosedWriter``, at the next slice.

    ``progress`` is told, slice by slice, how many rows were merged so far.
    """

    store: Store
    stopped: Callable[[], bool] = lambda: False
    progress: Callable[[int], None] = lambda _: None
    most: int = 1

    def run(self, tasks: Sequence[MergeTask]) -> Iterator[Merged]:
        """What each task wrote, in order."""
        so_far = 0

        def tell(rows: int) -> None:
            nonlocal so_far
            so_far += rows
            self.progress(so_far)

        return (run_task(self.store, task, stopped=self.stopped, tell=tell) for task in tasks)


def merge_parts(states: Iterable[TableState], lowest: Collection[str], most: int) -> list[tuple[MergePart, ...]]:
    """The parts of at most ``most`` tasks of about equal weight that merge all of these; few rows are one task's, whatever their tables.

    ``lowest`` are the tables below which nothing lies.
    """
    slices = [
        (state.table, PackedSlice.of(slice_, state.table, Part.EVERYTHING))
        for state in states
        for slice_ in state.plan(merge_ranges(state, MERGE_SLICE_ROWS), target=MERGE_SLICE_ROWS)
    ]
    weights = [slice_.rows for _, slice_ in slices]
    count = max(min(most, _distinct_rows(slice_ for _, slice_ in slices) // FEWEST_ROWS), 1)
    tasks = []
    for group in grouped(weights, count):
        by_table = groupby((slices[at] for at in group), key=lambda one: one[0].name)
        parts = [list(of_table) for _, of_table in by_table]
        found = [Share(part[0][0], Part.EVERYTHING, tuple(slice_ for _, slice_ in part)) for part in parts]
        tasks.append(tuple(MergePart(share, share.table.name in lowest) for share in found))
    return tasks


def _distinct_rows(slices: Iterable[PackedSlice]) -> int:
    """The rows that slices read, where a block that lies over several counts once."""
    tail, places = 0, dict[BlockPlace, int]()
    for packed in slices:
        tail += packed.tail_rows
        places |= {place: place.header.rows for place in packed.slice.places}
    return tail + sum(places.values())


def run_task(
    store: Store,
    task: MergeTask,
    *,
    stopped: Callable[[], bool] = lambda: False,
    tell: Callable[[int], None] = lambda _: None,
    into: Store | None = None,
) -> Merged:
    """Merge what a task is about and put its segments, into another store if there is one; ``ClosedWriter`` once ``stopped`` says so.

    ``tell`` is given the number of rows that a slice has come to, each time.
    """
    runs = RunWriter(
        into or store,
        task.writer,
        task.database,
        cut=task.cut,
        began=task.began,
        stopped=stopped,
        origin=task.origin,
        inline_bytes=task.inline_bytes,
    )
    blocks = Blocks(store)
    for part in task.parts:
        for rows in _merged(blocks, part, stopped, tell):
            runs.add(rows)
    runs.finish()
    return Merged(tuple(runs.segments), tuple(runs.inline))


def _merged(blocks: Blocks, part: MergePart, stopped: Callable[[], bool], tell: Callable[[int], None]) -> Iterator[RunRows]:
    """The state that slices of a table make; the rows of each class are in key order."""
    beside = [(run.classes, run.keeping()) for run in side_runs(part.table)] if part.lowest else []
    for slice_ in part.share.unpacked():
        if stopped():
            raise ClosedWriter(
                "The writer was closed while it wrote a checkpoint.", next_step="Open it again, and write another."
            )
        # Rows that pass as they are may be older than a column that has zeros.
        state = read_arranged(blocks, part.table, slice_)
        for kind, rows in _by_class(replace(state, facts=with_defaults(state.facts, part.table)), part.table):
            yield RunRows(rows, part.table, kind)
            for classes, keeping in beside:
                if kind in classes:
                    yield from keeping.add(rows)
        tell(int(np.count_nonzero(state.among)))
    for _, keeping in beside:
        yield from keeping.rest()


def _by_class(state: Arranged, table: Table) -> Iterator[tuple[BlockClass, Facts]]:
    facts, among = state.facts, state.among
    is_version = among & (facts.numbers("_kind") == Kind.VERSION)
    ended = facts.numbers("_end_kind") > 0
    purged = is_version & ended & (facts.numbers("_purged") > 0)
    live, tombstones = is_version & ~ended, is_version & ended & ~purged
    superseded = tombstones & _of_live_keys(facts, table, live, tombstones)
    masks = {
        BlockClass.LIVE: live,
        BlockClass.ENDED: tombstones & ~superseded,
        BlockClass.SUPERSEDED: superseded,
        BlockClass.STUBS: among & ~is_version | purged,
    }
    for kind, mask in masks.items():
        if np.any(mask):
            yield kind, state.where(mask)


def _of_live_keys(state: Facts, table: Table, live: Mask, asked: Mask) -> Mask:
    """Which of the rows asked for have a key that has a live version too."""
    found = np.zeros(len(state), dtype=bool)
    if live.any() and asked.any():
        like = live.copy()  # with values that some row asked for has too, in each column of the key: few, as a rule
        for column in reversed(table.key_columns):
            values, at = one_chunk(state.rows.column(column.field_name)), np.flatnonzero(like)
            some = values if len(at) == len(values) else values.take(pa.array(at))
            like[at] = np.asarray(pc.is_in(some, value_set=pc.unique(values.filter(pa.array(asked)))))
        rows = state.rows.select([column.field_name for column in table.key_columns])
        keys, alive = (one_chunk(encode_keys(table, rows.filter(pa.array(mask)))) for mask in (asked, like))
        found[asked] = np.asarray(pc.is_in(keys, value_set=alive))
    return found
