"""Blocks: facts as compressed Arrow within a protobuf message, sorted by key and stamp, each with its own checksum.

Which columns are stored is decided in ``columns``. Stamps are positions in the block's own list of transactions; a block of events
has no list, for all its stamps are those of the transaction that it belongs to.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.message import DecodeError

from ..errors import CorruptionError, UnsupportedFormat
from ..model.arrays import one_chunk
from ..model.bloom import Hashes, hash_keys
from ..model.facts import (
    FACT_COLUMNS,
    NO_STAMP,
    NO_TRANSACTIONS,
    POSITIONS,
    TRANSACTIONS,
    End,
    Expects,
    Facts,
    Kind,
    commit_times,
    conform,
)
from ..model.keys import EVERYTHING, KeyRange, encode_keys, rows_within
from ..model.tables import Table
from ..v1 import log_pb2
from .columns import distinct_columns, read_stream, stored_rows, stream_of
from .sealing import block_checksum, seal_block

TARGET_ROWS = 8_192
MAX_BYTES = 1 << 20
_NAME = ("_name_uuid", "_name_seq")
_KINDS: dict[str, type[IntEnum]] = {"_kind": Kind, "_end_kind": End, "_expects": Expects, "_end_expects": Expects}


class BlockClass(IntEnum):
    """What the rows of a block are; the numbers are the format's."""

    EVENTS = log_pb2.BLOCK_CLASS_EVENTS
    LIVE = log_pb2.BLOCK_CLASS_LIVE
    ENDED = log_pb2.BLOCK_CLASS_ENDED
    STUBS = log_pb2.BLOCK_CLASS_STUBS
    SUPERSEDED = log_pb2.BLOCK_CLASS_SUPERSEDED


@dataclass(frozen=True, slots=True)
class BlockHeader:
    """What a block holds: its rows' keys from ``first_key`` to ``last_key`` and commit times of all stamps, oldest to newest."""

    table: str
    block_class: BlockClass
    rows: int
    first_key: bytes
    last_key: bytes
    oldest: int
    newest: int
    same: tuple[tuple[str, str], ...] = ()
    expectations: int = 0
    late_updates: int = 0


@dataclass(frozen=True, slots=True)
class BlockPlace:
    """Where a block lies in a file, and what is said there of it; ``data`` is the block itself where who read the file has kept it."""

    name: str
    offset: int
    length: int
    checksum: int
    header: BlockHeader
    data: bytes | None = field(default=None, compare=False, repr=False)

    @property
    def is_at_hand(self) -> bool:
        """Whether it can be read without a request."""
        return self.data is not None


TOMBSTONES = frozenset({BlockClass.ENDED, BlockClass.SUPERSEDED})
"""The classes of versions that have ended."""


class Purpose(IntEnum):
    """What a run is for; the numbers are the format's."""

    ROWS = log_pb2.RUN_PURPOSE_ROWS
    ORDER = log_pb2.RUN_PURPOSE_ORDER
    SUMS = log_pb2.RUN_PURPOSE_SUMS


class Side(NamedTuple):
    """What a run beside a table's rows is: of which table, for what, and its name."""

    table: str
    purpose: Purpose
    name: str


@dataclass(frozen=True, slots=True)
class EncodedBlock:
    """A block ready to be written; ``hashes`` are those of its rows' keys, where a filter is made of them. ``side``: not of rows."""

    header: BlockHeader
    data: bytes
    checksum: int
    hashes: Hashes | None = None
    side: Side | None = None


def encode_blocks(facts: Facts, table: Table, block_class: BlockClass, target_rows: int = TARGET_ROWS) -> Iterator[EncodedBlock]:
    """``facts``, sorted by key and stamp, as blocks of about ``target_rows`` rows and at most 1 MiB (one row may be more)."""
    for start in range(0, len(facts), target_rows):
        part = facts.slice(start, min(start + target_rows, len(facts)))
        block = _encode(part, table, block_class)
        if len(block.data) > MAX_BYTES and len(part) > 1:
            yield from encode_blocks(part, table, block_class, (len(part) + 1) // 2)
        else:
            yield block


def encode_side(rows: pa.Table, shape: Table, side: Side) -> Iterator[EncodedBlock]:
    """The rows of a side run as blocks, in the order of the keys of their ``shape``; no filter is made of them."""
    ordered = rows.take(pc.sort_indices(one_chunk(encode_keys(shape, rows))))
    for block in encode_blocks(Facts(NO_TRANSACTIONS, ordered), shape, BlockClass.LIVE):
        yield replace(block, hashes=None, side=side)


def _encode(facts: Facts, table: Table, block_class: BlockClass) -> EncodedBlock:
    transactions, rows, used, hashes = b"", facts.rows, None, None
    if block_class is BlockClass.EVENTS:
        rows = rows.drop_columns([name for name in POSITIONS if name in rows.column_names])
    else:
        used, rows = _own_positions(facts)
        transactions = stream_of(used)
        hashes = hash_keys(one_chunk(encode_keys(table, facts.rows)))
    kept, same = distinct_columns(rows, table)
    header = _header(facts, table, block_class, used, same)
    message = log_pb2.Block(header=header_message(header), transactions=transactions, rows=stream_of(kept))
    data, checksum = seal_block(message.SerializeToString(deterministic=True))
    return EncodedBlock(header, data, checksum, hashes)


def block_header(facts: Facts, table: Table, block_class: BlockClass) -> BlockHeader:
    """What a header of these facts, at least one, has to say, but for the columns that are left out."""
    used = None if block_class is BlockClass.EVENTS else _own_positions(facts)[0]
    return _header(facts, table, block_class, used, ())


def _header(
    facts: Facts, table: Table, block_class: BlockClass, used: pa.Table | None, same: tuple[tuple[str, str], ...]
) -> BlockHeader:
    """The header of facts whose stamps are of the transactions ``used``; events have none."""
    keys = encode_keys(table, {c.field_name: facts.rows[c.field_name].take([0, len(facts) - 1]) for c in table.key_columns})
    oldest, newest = (0, 0) if used is None else _time_range(used, facts)
    first, last = keys[0].as_py(), keys[1].as_py()
    return BlockHeader(table.name, block_class, len(facts), first, last, oldest, newest, same, *_conflict_counts(facts))


def _time_range(used: pa.Table, facts: Facts) -> tuple[int, int]:
    named = facts.column("_name_uuid").drop_null()
    times = np.concatenate([np.asarray(one_chunk(used.column("commit_time"))), commit_times(named)])
    return int(times.min(initial=0 if not len(times) else times[0])), int(times.max(initial=0))


def _conflict_counts(facts: Facts) -> tuple[int, int]:
    expectations = np.count_nonzero((facts.numbers("_expects") > 0) | (facts.numbers("_end_expects") > 0))
    end = facts.stamps("end")
    late = np.count_nonzero((end != NO_STAMP) & (facts.stamps("row") > end) & (facts.numbers("_kind") == Kind.VERSION))
    return int(expectations), int(late)


def _own_positions(facts: Facts) -> tuple[pa.Table, pa.Table]:
    """The transactions that the facts refer to, and the rows with positions in those."""
    positions = {name: facts.numbers(name, NO_STAMP) for name in POSITIONS if name in facts.rows.column_names}
    used = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *positions.values()]))
    used = used[used >= 0]
    rows = facts.rows
    for name, values in positions.items():
        own = np.searchsorted(used, values).astype(np.int32)
        rows = rows.set_column(rows.schema.get_field_index(name), name, pa.array(own, mask=values < 0))
    return facts.transactions.take(pa.array(used)), rows


def header_message(header: BlockHeader) -> Any:
    """The header as a message."""
    return log_pb2.BlockHeader(
        table=header.table,
        **{"class": header.block_class},
        rows=header.rows,
        first_key=header.first_key,
        last_key=header.last_key,
        oldest=header.oldest,
        newest=header.newest,
        same=[log_pb2.SameColumn(**{"column": column, "as": other}) for column, other in header.same],
        expectations=header.expectations,
        late_updates=header.late_updates,
    )


def header_of(message: Any) -> BlockHeader:
    """The header that a message holds."""
    return BlockHeader(
        message.table,
        BlockClass(getattr(message, "class")),
        message.rows,
        message.first_key,
        message.last_key,
        message.oldest,
        message.newest,
        tuple((same.column, getattr(same, "as")) for same in message.same),
        message.expectations,
        message.late_updates,
    )


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
        transactions = _transactions(message.transactions)
        whole = keys.covers(header.first_key, header.last_key)
        needed = columns if whole or columns is None else {*columns, *(c.field_name for c in table.key_columns)}
        stored = stored_rows(message.rows, header.same, needed, name)
        part = stored if whole else _within(stored, table, keys)
        rows = conform(part.select([n for n in part.column_names if columns is None or n in columns]), table)
    except (DecodeError, pa.ArrowException, ValueError, KeyError, OSError) as error:
        raise CorruptionError(
            f"{name} holds a block of table {table.name!r} that cannot be read: {error}.",
        ) from None
    if header.rows != len(stored):
        raise CorruptionError(f"{name} holds a block of {len(stored)} rows that claims {header.rows}.")
    facts = Facts(transactions, rows)
    _check_kinds(facts, name)
    if columns is None or {"_kind", *_NAME} <= {*columns}:
        _check_names(facts, name)
    return facts


def _transactions(data: bytes) -> pa.Table:
    """A block's list of transactions. What it declares of nulls says nothing; that there are none does (``ValueError``)."""
    if not data:
        return NO_TRANSACTIONS
    listed = read_stream(data)
    return listed if listed.schema.equals(TRANSACTIONS) else listed.select(TRANSACTIONS.names).cast(TRANSACTIONS)


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


def _within(rows: pa.Table, table: Table, keys: KeyRange) -> pa.Table:
    """The rows in the range, found before they are unpacked."""
    columns = {c.field_name: one_chunk(rows.column(c.field_name)) for c in table.key_columns}
    start, stop = rows_within(table, columns, len(rows), keys)
    return rows.slice(start, stop - start)


def facts_of_blocks(rows: Facts, transaction: pa.Table) -> Facts:
    """The facts of a block of events of the one transaction in ``transaction``."""
    table = rows.rows
    for position, sequence in (("_txn", "_seq"), ("_row_txn", "_row_seq"), ("_end_txn", "_end_seq")):
        if sequence in table.column_names:
            known = table.column(sequence).is_valid()
            table = table.append_column(position, pc.if_else(known, pa.scalar(0, FACT_COLUMNS[position]), None))
    return Facts(transaction, table)
