"""The blocks of runs, checked along the chain of digests, and the rows of orders (spec/segments.md)."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq

from .facts import END
from .sealing import message, unsealed
from .tables import Column, Table

EVENTS, LIVE, ENDED, STUBS, SUPERSEDED = 1, 2, 3, 4, 5
ROWS, ORDER = 1, 2


def checkpoint_blocks(root: Path, database: str, checkpoint: Any) -> Iterator[tuple[Any, Any, pa.Table]]:
    """Header, run and rows of each block of a checkpoint, in its segments and in itself (spec/checkpoints.md)."""
    for reference in checkpoint.segments:
        for header, rows in blocks_of(root, database, reference, of_cut=True):
            yield header, reference.run, rows
    for inline in checkpoint.runs:
        assert len(inline.blocks) == inline.run.blocks
        for block in inline.blocks:
            yield message("Block").FromString(block).header, inline.run, rows_of_message(block)


def rows_of_message(data: bytes) -> pa.Table:
    """The rows of a sealed block (spec/segments.md, "Blocks in messages")."""
    assert data[-6:-4] == b"\xfd\x7f"
    assert zlib.crc32(data[:-6]) == int.from_bytes(data[-4:], "little")
    block = message("Block").FromString(data)
    assert len(data) <= 1 << 20 or block.header.rows == 1
    with pa.ipc.open_stream(block.rows) as stream:
        return stream.read_all()


def blocks_of(root: Path, database: str, reference: Any, *, of_cut: bool) -> Iterator[tuple[Any, pa.Table]]:
    """Header and rows of each block of a segment, checked along the chain of digests (spec/segments.md)."""
    data = (root / reference.writer / database / "segments" / f"{UUID(bytes=reference.uuid)}.parquet").read_bytes()
    start, stop = reference.index_offset, reference.index_offset + reference.index_length
    index, length, footer = unsealed(data[start:stop], "SegmentIndex"), data[stop : stop + 4], data[stop + 4 :]
    assert (len(data), index.checksum, index.HasField("cut")) == (reference.size, reference.index_digest, of_cut)
    assert int.from_bytes(length, "little") == reference.index_length
    assert hashlib.sha256(footer).digest() == index.footer_digest
    assert int.from_bytes(footer[-8:-4], "little") == len(footer) - 8
    if reference.filters_length:
        assert reference.filters_offset + reference.filters_length == start
        assert unsealed(data[reference.filters_offset : start], "KeyFilters").checksum == index.filters_digest
    file = pq.ParquetFile(pa.BufferReader(data))
    assert file.num_row_groups == len(index.entries) == index.run.blocks == reference.run.blocks
    for number, entry in enumerate(index.entries):
        at = entry.offset
        for chunk, *said in zip(chunks_of(file.metadata.row_group(number)), entry.lengths, entry.checksums, strict=True):
            assert (chunk, zlib.crc32(data[at : at + said[0]])) == ((at, said[0]), said[1])
            at += said[0]
        assert (entry.header.table, getattr(entry.header, "class")) == (block_table(index.run), getattr(index.run, "class"))
        yield entry.header, file.read_row_group(number)


def chunks_of(group: Any) -> Iterator[tuple[int, int]]:
    """Where each column chunk of a row group begins, and how long it is."""
    for column in map(group.column, range(group.num_columns)):
        yield column.dictionary_page_offset or column.data_page_offset, column.total_compressed_size


def order_table(table: Table, name: str) -> Table:
    """The table that the rows of an order are of (spec/segments.md)."""
    columns = {str(column.number): column for column in table.key} | {"deleted_at": Column(END, "deleted_at", "timestamp")}
    *fields, last = name[name.rindex("(") + 1 : -1].split(",")
    first = [columns[field] for field in (fields if last == "*" else (*fields, last))]
    key = (*first, *(column for column in table.key if column not in first))
    others = tuple(column for column in table.columns if column not in key) if last == "*" else ()
    return replace(table, columns=(*key, *others), key=key)


def block_table(run: Any) -> str:
    """What the blocks of a run have as their table (spec/segments.md)."""
    return run.table if run.purpose in (0, ROWS) else f"{run.table}#{run.name}"
