"""The events of one transaction that may be any number: columns in, blocks out, in memory that does not grow with them.

A few megabytes of blocks go into the transaction itself. More of them go into segments that are put before it and that it refers to, so a
transaction of any size is one commit; segments that no transaction refers to, as after a crash, are part of nothing.
"""

from __future__ import annotations

import pyarrow as pa

from ..errors import InvalidRows
from ..format.blocks import TARGET_ROWS, BlockClass, EncodedBlock, encode_blocks
from ..log.files import LogFiles
from ..log.segmenting import SegmentWriter
from ..model.facts import NO_TRANSACTIONS, Facts, concat
from ..model.tables import Table
from .staging import Encoded

INLINE_BYTES = 8 << 20
"""Blocks of up to so many bytes are carried by the transaction."""
_LAST_SEQUENCE = (1 << 31) - 1


class BulkEvents:
    """Events of one table, given in the order of their keys. ``began`` is the store's time before the work, and what it has read, began.

    ``add`` puts a segment whenever one is full, ``finish`` the last one; ``encoded`` is what the transaction carries then.
    """

    def __init__(self, files: LogFiles, writer: str, table: Table, *, began: int) -> None:
        self.tables = {table.name: table}
        self.named_after = 0
        self.read_at: int | None = began
        self.count = 0
        self._table = table
        self._waiting: list[Facts] = []
        self._blocks: list[EncodedBlock] = []
        self._segments = SegmentWriter(files.store, writer, files.database, cut=None, began=began)
        self._bytes = 0

    def add(self, events: pa.Table) -> None:
        """Add events, whose keys come after all before: columns of facts, numbered from ``count`` on."""
        if self.count + len(events) > _LAST_SEQUENCE:
            raise InvalidRows("One transaction cannot hold 2^31 events.", next_step="Change fewer rows at once.")
        self._waiting.append(Facts(NO_TRANSACTIONS, events))
        self.count += len(events)
        if sum(len(facts) for facts in self._waiting) >= TARGET_ROWS:
            self._encode()

    def _encode(self) -> None:
        """Blocks of what is waiting: kept while the transaction can carry them, else all of them for segments."""
        if self._waiting:
            waiting, self._waiting = concat(self._waiting), []
            for block in encode_blocks(waiting, self._table, BlockClass.EVENTS):
                self._blocks.append(block)
                self._bytes += len(block.data)
        if self._bytes > INLINE_BYTES:
            for block in self._blocks:
                self._segments.add(block, self._table)
            self._blocks = []

    def finish(self) -> None:
        """No more is added: what the transaction cannot carry is put."""
        self._encode()
        self._segments.flush()

    def encoded(self) -> Encoded:
        """The events as the transaction carries them."""
        return Encoded(blocks=tuple(self._blocks), segments=tuple(self._segments.written))
