"""Segments in the store: indexes and filters read by range, each checked before it is decoded; files put when they are full."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from .. import clock, limits
from ..errors import CorruptionError
from ..format.footers import footer_start
from ..format.headers import BlockClass, BlockPlace
from ..format.held import shown_segment
from ..format.runs import InlineRun, SegmentReference
from ..format.sealing import find_sealed
from ..format.segments import (
    ROW_GROUP_ROWS,
    Origin,
    RunBuilder,
    RunRows,
    SegmentFile,
    check_end,
    decode_end,
    decode_filters,
    decode_segment_file,
    index_span,
)
from ..model import paths
from ..model.bloom import KeyFilter
from ..model.cuts import Cut
from ..model.paths import segment as segment_path
from ..model.tables import Table
from ..store.base import Store
from ..store.retry import for_seconds, put_retrying
from .blocks import read_range

Filters = dict[tuple[str, BlockClass], KeyFilter]


def read_index(store: Store, database: str, reference: SegmentReference) -> tuple[BlockPlace, ...]:
    """The places of a segment's blocks: one range read, checked against the reference's digest."""
    name = segment_path(reference.writer, database, reference.uuid)
    start = reference.index_offset
    check_end(reference.size - start, name)
    data = read_range(store, name, start, reference.size - start, lambda: shown_segment(reference))
    return decode_end(data, name, reference).places


def read_segment_file(store: Store, name: str, size: int) -> SegmentFile:
    """What a segment of that size says of itself, without anybody who refers to it: three range reads.

    Where the length of the index is damaged, on which nobody else relies, the file is read whole to find it.
    """
    if size > limits.SEGMENT_BYTES:
        raise CorruptionError(f"{name} has {size} bytes: it is not a segment, none has more than {limits.SEGMENT_BYTES}.")
    footer = footer_start(read_range(store, name, -8, 8, lambda: "a segment"), size, name)
    try:
        start, _ = index_span(read_range(store, name, footer - 4, 4, lambda: "a segment"), footer, name)
        check_end(size - start, name)
        return decode_segment_file(read_range(store, name, start, size - start, lambda: "a segment"), start, size, name)
    except CorruptionError:
        data = read_range(store, name, 0, size, lambda: "a segment")
        found = find_sealed(data)
        if found is None:
            raise
        return decode_segment_file(data[found[0] :], found[0], size, name)


def read_index_and_filters(store: Store, database: str, reference: SegmentReference) -> tuple[tuple[BlockPlace, ...], Filters]:
    """The places of a segment's blocks and the filters over their keys, none where it has none: one range read, checked as above."""
    if not reference.filters_length:
        return read_index(store, database, reference), {}
    name = segment_path(reference.writer, database, reference.uuid)
    start = reference.filters_offset
    check_end(reference.size - reference.index_offset, name)
    data = read_range(store, name, start, reference.size - start, lambda: shown_segment(reference))
    index = decode_end(data[reference.index_offset - start :], name, reference)
    return index.places, decode_filters(data[: reference.filters_length], name, index.filters_digest)


TARGET_SEGMENT_BYTES = 64 << 20
INLINE_RUN_BYTES = 16 << 10
"""The largest run that a checkpoint holds itself: what is larger is worth a request of its own, and too much to be written again."""


class RunWriter:
    """Collects blocks into runs of a writer, each in segments of its own, put when they are full; all that it holds is a segment's size.

    ``cut`` is what the rows cover, None for a transaction's events. The segments' uuids hold ``began``, the store's time before the work
    began: whoever finds one that nothing refers to knows how old the work is that may still be about to refer to it.
    ``origin`` is for which checkpoint they are. Small runs that are left at the end are put nowhere, up to ``inline_bytes`` of them: the
    checkpoint holds them itself.
    """

    def __init__(
        self,
        store: Store,
        writer: str,
        database: str,
        *,
        cut: Cut | None,
        began: int,
        stopped: Callable[[], bool] = lambda: False,
        origin: Origin | None = None,
        inline_bytes: int = 0,
    ) -> None:
        self.segments: list[SegmentReference] = []
        self.inline: list[InlineRun] = []
        self._store = store
        self._writer = writer
        self._database = database
        self.began = began
        self._cut = cut
        self._stopped = stopped
        self._origin = origin
        self._inline_bytes = inline_bytes
        self._open: dict[tuple[str, BlockClass], RunBuilder] = {}
        self._tables: dict[str, Table] = {}

    def add(self, rows: RunRows) -> None:
        """Add rows of a run, which come in the order of their keys. Rows that begin before the last ones end begin a segment."""
        start = 0
        while start < len(rows.facts):  # a row group each time, so that a segment is full when it should be
            builder = self._open.get((rows.of.name, rows.block_class))
            stop = min(start + ROW_GROUP_ROWS - (0 if builder is None else builder.rows_waiting), len(rows.facts))
            self._add(replace(rows, facts=rows.facts.slice(start, stop)))
            start = stop
        self._tables[rows.table.name] = rows.table

    def _add(self, rows: RunRows) -> None:
        key = rows.of.name, rows.block_class
        if key not in self._open or not self._open[key].add(rows.facts):
            if key in self._open:
                self.segments.append(self._put(self._open.pop(key)))
            self._open[key] = RunBuilder(rows)
        if sum(builder.size for builder in self._open.values()) >= TARGET_SEGMENT_BYTES:
            largest = max(self._open, key=lambda key: self._open[key].size)
            self.segments.append(self._put(self._open.pop(largest)))

    def finish(self) -> None:
        """Put what was collected, but for what stays inline; nothing is added after that.

        One run at least is put, so that what stays inline is in a segment too, and not lost with the checkpoint.
        """
        left, room = sorted(self._open.values(), key=lambda builder: builder.size), self._inline_bytes
        while len(left) > 1 and (inline := left[0].inline(min(room, INLINE_RUN_BYTES))) is not None:
            room -= inline.size
            self.inline.append(inline)
            del left[0]
        for builder in reversed(left):  # the smallest last: its index, which has what stays inline, is the one that is read least
            self.segments.append(self._put(builder, is_last=builder is left[0]))
        self._open = {}

    def _put(self, builder: RunBuilder, *, is_last: bool = False) -> SegmentReference:
        uuid = clock.uuid7(self.began).bytes
        origin = self._origin
        if origin is not None:
            runs = (*origin.runs, *self.inline) if is_last else ()
            tables = (*origin.tables, *(self._tables[inline.run.table] for inline in self.inline)) if is_last else ()
            origin = replace(origin, part=len(self.segments), last=is_last, runs=runs, tables=tables)
        data, reference = builder.segment(writer=self._writer, database=self._database, uuid=uuid, cut=self._cut, origin=origin)
        is_over = for_seconds(limits.PATIENCE_SECONDS)
        name = paths.segment(self._writer, self._database, uuid)
        put_retrying(self._store, name, data, lambda: self._stopped() or is_over())
        return reference
