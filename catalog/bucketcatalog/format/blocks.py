"""Blocks: facts as a plain Arrow stream within a protobuf message, sorted by key and stamp, each with its own checksum.

Which columns are stored is decided in ``columns``. Blocks of events have no stamps, for all of theirs are of the transaction that they
belong to. A row group of a segment is a block too: it is decoded here once somebody else has read its columns.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import CorruptionError, UnsupportedFormat
from ..model.arrays import one_chunk
from ..model.facts import FACT_COLUMNS, LAST_SEQUENCE, NO_STAMP, POSITIONS, End, Expects, Facts, Kind, commit_times
from ..model.keys import EVERYTHING, KeyRange, key_at, rows_within
from ..model.render import row_column
from ..model.tables import Column, Table
from ..v1 import log_pb2
from .bounds import UNDECODABLE, why
from .checking import problems_of_rows
from .columns import (
    columns_to_read,
    facts_of,
    key_columns,
    rows_of_message,
    stored_rows,
    unknown_times,
)
from .headers import BlockClass, BlockHeader, BlockPlace, header_message, header_of
from .sealing import block_checksum, seal_block
from .sizes import refuse_large_rows
from .streams import check_stream

TARGET_ROWS = 8_192
MAX_BYTES = 1 << 20
_WRITE = pa.ipc.IpcWriteOptions(compression=pa.Codec("zstd", compression_level=1))
_NAME = ("_name_uuid", "_name_seq")
_KINDS: dict[str, type[IntEnum]] = {"_kind": Kind, "_end_kind": End, "_expects": Expects, "_end_expects": Expects}


@dataclass(frozen=True, slots=True)
class EncodedBlock:
    """A block ready to be written into a message."""

    header: BlockHeader
    data: bytes
    checksum: int


def encode_blocks(facts: Facts, table: Table, block_class: BlockClass, target_rows: int = TARGET_ROWS) -> Iterator[EncodedBlock]:
    """``facts``, sorted by key and stamp, as blocks of about ``target_rows`` rows and at most 1 MiB (one row may be more)."""
    for start in range(0, len(facts), target_rows):
        part = facts.slice(start, min(start + target_rows, len(facts)))
        block = _encode(part, table, block_class)
        if len(block.data) > MAX_BYTES and len(part) > 1:
            yield from encode_blocks(part, table, block_class, (len(part) + 1) // 2)
        else:
            yield block


def _encode(facts: Facts, table: Table, block_class: BlockClass) -> EncodedBlock:
    refuse_large_rows(facts, table, block_class)
    header = block_header(facts, table, block_class)
    rows = stream_of(rows_of_message(stored_rows(facts, table, block_class)))
    message = log_pb2.Block(header=header_message(header), rows=rows)
    return EncodedBlock(header, *seal_block(message.SerializeToString(deterministic=True)))


def block_header(facts: Facts, table: Table, block_class: BlockClass) -> BlockHeader:
    """What the header of a block of these facts, at least one, says."""
    first, last = (key_at(table, facts.rows, row) for row in (0, len(facts) - 1))
    oldest, newest = (0, 0) if block_class is BlockClass.EVENTS else _time_range(facts)
    return BlockHeader(table.name, block_class, len(facts), first, last, oldest, newest, *_conflict_counts(facts))


def _time_range(facts: Facts) -> tuple[int, int]:
    """The smallest and the largest commit time in any stamp, those of versions that are only named included."""
    used = [pc.unique(facts.rows.column(name)).drop_null() for name in POSITIONS if name in facts.rows.column_names]
    commit_time = np.asarray(one_chunk(facts.transactions.column("commit_time")))
    named = commit_times(facts.column("_name_uuid").drop_null())
    times = np.concatenate([*(commit_time[np.asarray(each)] for each in used), named])
    return (int(times.min()), int(times.max())) if len(times) else (0, 0)


def _conflict_counts(facts: Facts) -> tuple[int, int]:
    names, expectations, late = {*facts.rows.column_names}, 0, 0
    if not names.isdisjoint({"_expects", "_end_expects"}):
        expectations = int(np.count_nonzero((facts.numbers("_expects") > 0) | (facts.numbers("_end_expects") > 0)))
    if names.issuperset({"_row_txn", "_end_txn"}):
        end = facts.stamps("end")
        late = int(np.count_nonzero((end != NO_STAMP) & (facts.stamps("row") > end) & (facts.numbers("_kind") == Kind.VERSION)))
    return expectations, late


def block_place(name: str, data: bytes, offset: int, header: Any) -> BlockPlace:
    """The place of a block in the file ``name``, with the block itself; ``header`` is its message."""
    return BlockPlace(name, offset, len(data), int.from_bytes(data[-4:], "little"), header_of(header), data)


def decode_block(
    data: bytes, table: Table, name: str, columns: Collection[str] | None = None, keys: KeyRange = EVERYTHING
) -> Facts:
    """The facts of a sealed block, with ``columns`` only where given (storage names) and of ``keys`` only.

    The facts of a block of events have no transactions and no positions: ``facts_of_blocks`` gives them theirs. Errors name file ``name``.
    """
    block_checksum(data, name, f"a block of table {table.name!r}")
    try:
        message = log_pb2.Block.FromString(data)
        header = header_of(message.header)
        check_stream(message.rows, header.rows)
        read, schema = partial(_valid_rows, message.rows), stream_schema(message.rows)
    except UNDECODABLE as error:
        raise CorruptionError(f"{name} holds a block of table {table.name!r} that cannot be read: {why(error)}.") from None
    return facts_of_block(read, schema, header, table, name, columns, keys)


def _valid_rows(stream: bytes, columns: Collection[str]) -> pa.Table:
    """The rows of a stream, of which it is known that no offset lies outside of its buffer: Arrow believes them."""
    rows = read_stream(stream, columns)
    rows.validate(full=True)
    return rows


def facts_of_block(
    read: Callable[[Collection[str]], pa.Table],
    schema: pa.Schema,
    header: BlockHeader,
    table: Table,
    name: str,
    columns: Collection[str] | None = None,
    keys: KeyRange = EVERYTHING,
) -> Facts:
    """``decode_block`` of a block with that header whose columns, of ``schema``, somebody can ``read``.

    Where it has none of the columns that are asked for, the facts have one of the key: without any, who could count them?
    """
    whole = keys.covers(header.first_key, header.last_key)
    of_key = [column.field_name for column in table.key_columns]
    needed = None if columns is None else {*columns, *(() if whole else of_key)}
    try:
        wanted = partial(columns_to_read, schema, table, header.block_class, name=name)
        rows = read(wanted(needed) or wanted(of_key[:1]))
        if header.rows != len(rows):
            raise CorruptionError(f"{name} holds a block of {len(rows)} rows that claims {header.rows}.")
        if not whole:
            start, stop = rows_within(table, key_columns(rows, table), len(rows), keys)
            rows = rows.slice(start, stop - start)
        facts = _with_times(facts_of(rows, table), unknown_times(schema, table, header.block_class, columns))
        if columns is not None:
            kept = [n for n in facts.rows.column_names if n in columns] or facts.rows.column_names[:1]
            facts = replace(facts, rows=facts.rows.select(kept))
        _check_kinds(facts, name)
        for problem in problems_of_rows(facts, header.block_class, table, columns):
            raise CorruptionError(f"{name} holds a block of table {table.name!r} that {problem}.")
        if columns is None or {"_kind", *_NAME} <= {*columns}:
            _check_names(facts, name)
    except UNDECODABLE as error:
        raise CorruptionError(f"{name} holds a block of table {table.name!r} that cannot be read: {why(error)}.") from None
    return facts


def _with_times(facts: Facts, columns: Iterable[Column]) -> Facts:
    """The facts of a fold with the times of columns that it did not know yet, as one has them that knows them."""
    rows = facts.rows
    for column in columns:
        rows = rows.append_column(column.field_name, row_column(facts, column))
    return replace(facts, rows=rows)


def _check_names(facts: Facts, name: str) -> None:
    """``CorruptionError`` where a fact is about a version and does not say which."""
    named = facts.numbers("_kind") == Kind.NAMED
    if named.any() and any(facts.column(column).filter(pa.array(named)).null_count for column in _NAME):
        raise CorruptionError(
            f"{name} holds a block with a fact that names no version: nobody can tell what it is about.",
        )


def _check_kinds(facts: Facts, name: str) -> None:
    """``UnsupportedFormat`` where a fact says what this release does not know."""
    for column, known in _KINDS.items():
        if column in facts.rows.column_names:
            largest = pc.max(facts.column(column)).as_py()
            if largest is not None and largest > max(known):
                raise UnsupportedFormat(
                    f"{name} holds a block with {largest} in the column {column!r}, which this release does not know.",
                    next_step="Read it with a newer release of bucketcatalog.",
                )


def facts_of_blocks(rows: Facts, transaction: pa.Table, first_sequence: int = 0) -> Facts:
    """The facts of a block of events of the one transaction in ``transaction``, numbered from ``first_sequence`` on.

    ``CorruptionError`` where there is no such number.
    """
    table = rows.rows
    for position, sequence in (("_txn", "_seq"), ("_row_txn", "_row_seq"), ("_end_txn", "_end_seq")):
        if sequence in table.column_names:
            known = table.column(sequence).is_valid()
            if first_sequence:
                numbers = _numbered(table.column(sequence), first_sequence)
                table = table.set_column(table.schema.get_field_index(sequence), sequence, numbers)
            table = table.append_column(position, pc.if_else(known, pa.scalar(0, FACT_COLUMNS[position]), None))
    return Facts(transaction, table)


def _numbered(sequences: pa.ChunkedArray, first: int) -> pa.ChunkedArray:
    try:
        return pc.add_checked(sequences, pa.scalar(first, sequences.type))
    except pa.ArrowInvalid:
        raise CorruptionError(f"Events that are numbered from {first:,} on have numbers beyond {LAST_SEQUENCE:,}.") from None


def stream_of(rows: pa.Table) -> bytes:
    """The rows as a compressed stream of one batch."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=_WRITE) as writer:
        writer.write_batch(rows.combine_chunks().to_batches()[0])
    return bytes(sink.getvalue())


def read_stream(data: bytes, columns: Iterable[str]) -> pa.Table:
    """The rows of a stream, with these columns alone."""
    names = stream_schema(data).names
    options = pa.ipc.IpcReadOptions(use_threads=False, included_fields=[names.index(name) for name in columns])
    with pa.ipc.open_stream(pa.py_buffer(data), options=options) as reader:
        return reader.read_all()


def stream_schema(data: bytes) -> pa.Schema:
    """The columns that a stream has."""
    return pa.ipc.read_schema(pa.py_buffer(data))
