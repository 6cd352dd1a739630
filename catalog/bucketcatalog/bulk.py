"""The events of one transaction that may be any number: columns in, blocks out, in memory that does not grow with them.

A few megabytes of blocks go into the transaction itself. More of them go into segments that are put before it and that it refers to, so a
transaction of any size is one commit; segments that no transaction refers to, as after a crash, are part of nothing.
"""

from __future__ import annotations

import pyarrow as pa

from . import clock, paths
from .codec.blocks import TARGET_ROWS, BlockClass, EncodedBlock, encode_blocks
from .codec.segments import SegmentBuilder, SegmentReference
from .errors import InvalidRows
from .facts import NO_TRANSACTIONS, Facts, concat
from .log.files import LogFiles
from .ownevents import Encoded
from .store.persist import for_seconds, put_persistently
from .tables import Table

INLINE_BYTES = 8 << 20
"""Blocks of up to so many bytes are carried by the transaction."""
SEGMENT_BYTES = 64 << 20
_PATIENCE = 60.0
_LAST_SEQUENCE = (1 << 31) - 1


class BulkEvents:
    """Events of one table, given in the order of their keys.

    ``add`` puts a segment whenever one is full, ``finish`` the last one; ``encoded`` is what the transaction carries then.
    """

    def __init__(self, files: LogFiles, writer: str, table: Table) -> None:
        self.tables = {table.name: table}
        self.named_after = 0
        self.count = 0
        self._files = files
        self._writer = writer
        self._table = table
        self._waiting: list[Facts] = []
        self._blocks: list[EncodedBlock] = []
        self._bytes = 0
        self._segments: list[SegmentReference] = []

    def add(self, events: pa.Table) -> None:
        """Add events, whose keys come after all before: columns of facts, numbered from ``count`` on."""
        if self.count + len(events) > _LAST_SEQUENCE:
            raise InvalidRows("One transaction cannot hold 2^31 events.", next_step="Change fewer rows at once.")
        self._waiting.append(Facts(NO_TRANSACTIONS, events))
        self.count += len(events)
        if sum(len(facts) for facts in self._waiting) >= TARGET_ROWS:
            self._encode()

    def _encode(self) -> None:
        """Blocks of what is waiting."""
        if self._waiting:
            waiting, self._waiting = concat(self._waiting), []
            for block in encode_blocks(waiting, self._table, BlockClass.EVENTS):
                self._blocks.append(block)
                self._bytes += len(block.data)
                if self._bytes >= SEGMENT_BYTES:
                    self._put_segment()

    def _put_segment(self) -> None:
        builder = SegmentBuilder()
        for block in self._blocks:
            builder.add(block)
        uuid = clock.uuid7(self._files.store.now_us()).bytes
        data, reference = builder.finish(
            writer=self._writer, database=self._files.database, uuid=uuid, tables=list(self.tables.values())
        )
        name = paths.segment(self._writer, self._files.database, uuid)
        put_persistently(self._files.store, name, data, for_seconds(_PATIENCE))
        self._segments.append(reference)
        self._blocks, self._bytes = [], 0

    def finish(self) -> None:
        """No more is added: what is left is put too, where the transaction cannot carry it."""
        self._encode()
        if self._blocks and (self._segments or self._bytes > INLINE_BYTES):
            self._put_segment()

    def encoded(self) -> Encoded:
        """The events as the transaction carries them."""
        return Encoded(blocks=tuple(self._blocks), segments=tuple(self._segments))
