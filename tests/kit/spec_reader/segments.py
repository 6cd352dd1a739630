"""The blocks of runs, checked along the chain of digests, and the rows of orders (spec/segments.md)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

from .sealing import message, unsealed
from .tables import Column, Table

EVENTS, LIVE, ENDED, STUBS, SUPERSEDED = 1, 2, 3, 4, 5
ROWS, ORDER = 1, 2
END = 536_870_909


def checkpoint_blocks(root: Path, database: str, checkpoint: Any) -> Iterator[tuple[Any, Any, bytes]]:
    """Header, run and bytes of each block of a checkpoint, in its segments and in itself (spec/checkpoints.md)."""
    for reference in checkpoint.segments:
        for header, block in blocks_of(root, database, reference, of_cut=True):
            yield header, reference.run, block
    for inline in checkpoint.runs:
        assert len(inline.blocks) == inline.run.blocks
        for block in inline.blocks:
            yield message("Block").FromString(block).header, inline.run, block


def blocks_of(root: Path, database: str, reference: Any, *, of_cut: bool) -> Iterator[tuple[Any, bytes]]:
    """Header and bytes of each block of a segment, checked along the chain of digests (spec/segments.md)."""
    name = f"{reference.writer}/{database}/segments/{UUID(bytes=reference.uuid)}.seg"
    data = (root / name).read_bytes()
    assert len(data) == reference.size
    assert int.from_bytes(data[-8:], "little") < reference.index_offset
    sealed = data[reference.index_offset : reference.index_offset + reference.index_length]
    assert sealed[-32:] == reference.index_digest
    index = unsealed(sealed, "SegmentIndex")
    assert index.HasField("cut") == of_cut
    whole = message("Segment").FromString(data)  # the file is one message, too
    assert len(whole.blocks) == len(index.entries)
    assert whole.filters.checksum == index.filters_digest
    if reference.filters_length:
        filters = data[reference.filters_offset :][: reference.filters_length]
        assert filters[-32:] == index.filters_digest == hashlib.sha256(filters[:-35]).digest()
    assert len(index.entries) == index.run.blocks == reference.run.blocks
    for entry in index.entries:
        block = data[entry.offset : entry.offset + entry.length]
        assert block[-4:] == entry.checksum.to_bytes(4, "little")
        assert (entry.header.table, getattr(entry.header, "class")) == (block_table(index.run), getattr(index.run, "class"))
        yield entry.header, block


def order_table(table: Table, name: str) -> Table:
    """The table that the rows of an order are of (spec/segments.md)."""
    end = Column(END, "deleted_at", "timestamp", "one", False, 0, (), {})
    fields = [end if f == "deleted_at" else int(f) for f in name[name.rindex("(") + 1 : -1].split(",")]
    by_number = {column.number: column for column in table.key}
    first = [field if isinstance(field, Column) else by_number[field] for field in fields]
    key = (*first, *(column for column in table.key if column not in first))
    return replace(table, name=f"{table.name}#{name}", columns=key, key=key)


def block_table(run: Any) -> str:
    """What the blocks of a run have as their table (spec/segments.md)."""
    return run.table if run.purpose in (0, ROWS) else f"{run.table}#{run.name}"
