"""Writing segments: blocks in, segments in the store out, each put when it is full. Nothing refers to them before a checkpoint or a
transaction does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from .. import clock
from ..format.blocks import EncodedBlock
from ..format.segment_refs import SegmentReference
from ..format.segments import Origin, SegmentBuilder
from ..model import paths
from ..model.cuts import Cut
from ..model.tables import Table
from ..store.base import Store
from ..store.retry import for_seconds, put_persistently

TARGET_SEGMENT_BYTES = 64 << 20
PATIENCE = 60.0
"""Seconds for which a file of a checkpoint is put again; whoever has waited longer had better look at the store."""


class SegmentWriter:
    """Collects blocks into a writer's segments, and puts each when it is full; holds one segment at a time.

    ``cut`` is what the rows cover, None for a transaction's events. The segments' uuids hold ``began``, the store's time before the work
    began: whoever finds one that nothing refers to knows how old the work is that may still be about to refer to it.
    ``origin`` is for which checkpoint they are.
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
    ) -> None:
        self.written: list[SegmentReference] = []
        self._store = store
        self._writer = writer
        self._database = database
        self._cut = cut
        self._began = began
        self._stopped = stopped
        self._origin = origin
        self._builder = SegmentBuilder()
        self._tables: dict[str, Table] = {}

    def add(self, block: EncodedBlock, table: Table) -> None:
        """Add a block of a run; blocks of a run come in the order of their keys. One that begins before the last begins a segment."""
        if self._builder.size >= TARGET_SEGMENT_BYTES or not self._builder.can_hold(block.header):
            self._put(last=False)
        self._builder.add(block)
        self._tables[table.name] = table

    def flush(self) -> None:
        """Put what was collected; nothing is added after that."""
        self._put(last=True)

    def _put(self, *, last: bool) -> None:
        if self._builder.size:
            uuid = clock.uuid7(self._began).bytes
            tables = [self._tables[name] for name in sorted(self._tables)]
            origin = None if self._origin is None else replace(self._origin, part=len(self.written), last=last)
            data, reference = self._builder.finish(
                writer=self._writer, database=self._database, uuid=uuid, cut=self._cut, tables=tables, origin=origin
            )
            is_over = for_seconds(PATIENCE)
            name = paths.segment(self._writer, self._database, uuid)
            put_persistently(self._store, name, data, lambda: self._stopped() or is_over())
            self.written.append(reference)
        self._builder, self._tables = SegmentBuilder(), {}
