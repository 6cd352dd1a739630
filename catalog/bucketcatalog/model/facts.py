"""Facts: the one relation that events, blocks, checkpoints and the fold all speak.

A fact is a row about one key. An event is a fact, and so is a row of checkpointed state, so replaying is one function over their union.

=========  =====================================================================================================
kind       what it says
=========  =====================================================================================================
VERSION    a PUT began a version. Its stamp, row, row stamp if an UPDATE replaced the row, end if it has ended,
           what the PUT expected, what the DELETE that ended it expected, whether it is purged
DELETE     a blind DELETE that ended nothing yet: its stamp and what it expected
NAMED      something about a version that is not joined yet, by the version's name: a row and row stamp (UPDATE),
           an end (naming DELETE), purged (PURGE)
=========  =====================================================================================================

So PUT is a VERSION, UPDATE a NAMED with a row, a blind DELETE a DELETE, a naming one a NAMED with an end, PURGE a NAMED that is purged.
Source: docs/spec/facts.md.

A *stamp* is ``(commit_time, writer, revision, uuid, sequence)``. Rows hold it as a position in ``transactions``, which is sorted by the
first four, and the sequence number; as one int64 (position << 32 | sequence) stamps of one ``Facts`` compare as numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property, partial
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from .arrays import Mask, convert_list, convert_map, convert_struct, one_chunk
from .keys import KeyRange, encode_keys, span
from .tables import UUID_BYTES, Column, Shape, Table

Stamps = npt.NDArray[np.int64]
NO_STAMP = -1
NEVER = np.iinfo(np.int64).max
_SEQUENCE_BITS = 32


class Kind(IntEnum):
    """What a fact says; the numbers are the format's."""

    VERSION = 0
    DELETE = 1
    NAMED = 2


class End(IntEnum):
    """What ended a version; the numbers are the format's."""

    NONE = 0
    PUT = 1
    DELETE = 2
    NAMED_DELETE = 3
    MOVED = 4


class Expects(IntEnum):
    """What an event expected to replace; the numbers are the format's."""

    NOTHING_SAID = 0
    ABSENT = 1
    VERSION = 2


TRANSACTIONS = pa.schema(
    [
        pa.field("commit_time", pa.int64(), False),
        pa.field("writer", pa.string(), False),
        pa.field("revision", pa.int64(), False),
        pa.field("uuid", UUID_BYTES, False),
    ]
)
_POSITION = pa.int32()
FACT_COLUMNS: dict[str, pa.DataType] = {
    "_kind": pa.uint8(),
    "_txn": _POSITION,
    "_seq": _POSITION,
    "_row_txn": _POSITION,
    "_row_seq": _POSITION,
    "_end_txn": _POSITION,
    "_end_seq": _POSITION,
    "_end_kind": pa.uint8(),
    "_name_uuid": UUID_BYTES,
    "_name_seq": _POSITION,
    "_expects": pa.uint8(),
    "_expects_uuid": UUID_BYTES,
    "_expects_seq": _POSITION,
    "_end_expects": pa.uint8(),
    "_end_expects_uuid": UUID_BYTES,
    "_end_expects_seq": _POSITION,
    "_purged": pa.bool_(),
}
POSITIONS = ("_txn", "_row_txn", "_end_txn")
"""The columns that hold positions in ``transactions``."""
LAST_SEQUENCE = (1 << 31) - 1
"""The largest number that an event can have in its transaction."""
NO_TRANSACTIONS = pa.Table.from_batches([], TRANSACTIONS)


class EventNames(NamedTuple):
    """Names of events, and so of the versions that PUTs among them begin: their transactions' uuids and their numbers there."""

    uuids: pa.Array
    sequences: pa.Array

    def take(self, rows: pa.Array) -> EventNames:
        """The names at these positions, null where a position is."""
        return EventNames(self.uuids.take(rows), self.sequences.take(rows))

    def filter(self, mask: pa.Array) -> EventNames:
        """The names where ``mask`` is true."""
        return EventNames(self.uuids.filter(mask), self.sequences.filter(mask))


@dataclass(frozen=True)
class Facts:
    """Facts about the keys of one table.

    ``transactions`` has the columns of ``TRANSACTIONS``, distinct and sorted by stamp. ``rows`` has row columns named by field number and
    those of ``FACT_COLUMNS``; a column that is absent is null or its default throughout. ``_txn``, ``_row_txn`` and ``_end_txn`` are
    positions in ``transactions``.
    """

    transactions: pa.Table
    rows: pa.Table

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def column(self, name: str) -> pa.Array:
        """A fact column as one array, all null where it is absent."""
        index = self.rows.schema.get_field_index(name)
        if index < 0:
            return pa.nulls(len(self), FACT_COLUMNS[name])
        return one_chunk(self.rows.column(index))

    def stored_column(self, column: Column) -> pa.Array:
        """A row column as it is stored, null where the facts have it not."""
        index = self.rows.schema.get_field_index(column.field_name)
        return pa.nulls(len(self), column.storage_type) if index < 0 else one_chunk(self.rows.column(index))

    def meant_column(self, column: Column) -> pa.Array:
        """The same as it is ``meant``."""
        return meant(column, self.stored_column(column))

    def numbers(self, name: str, missing: int = 0) -> Stamps:
        """A fact column of numbers as int64, ``missing`` where it is null."""
        if self.rows.schema.get_field_index(name) < 0:
            return np.full(len(self), missing, dtype=np.int64)
        values = self.column(name).cast(pa.int64())
        return np.asarray(pc.fill_null(values, missing) if values.null_count else values, dtype=np.int64)

    def stamps(self, what: str = "") -> Stamps:
        """The facts' own stamps, or with ``row`` or ``end`` those of their rows or ends; ``NO_STAMP`` where there is none."""
        infix = f"{what}_" if what else ""
        position = self.numbers(f"_{infix}txn", NO_STAMP)
        return np.where(position < 0, NO_STAMP, stamps_of(position, self.numbers(f"_{infix}seq")))

    def row_stamps(self) -> Stamps:
        """The stamps of the events that wrote the rows."""
        row = self.stamps("row")
        return np.where(row == NO_STAMP, self.stamps(), row)

    def event_names(self, stamps: Stamps) -> EventNames:
        """The names of the events with these stamps, null where a stamp is ``NO_STAMP``."""
        missing = stamps == NO_STAMP
        uuids = self.uuids.take(pa.array(positions_of(stamps), mask=missing))
        return EventNames(uuids, pa.array(sequences_of(stamps).astype(np.int32), mask=missing))

    def end_times(self) -> Stamps:
        """The commit times of the versions' ends, in microseconds; the largest number there is for those that have none."""
        end = self.numbers("_end_txn", NO_STAMP)
        if not len(self.transactions):
            return np.full(len(self), NEVER, dtype=np.int64)
        times = np.asarray(one_chunk(self.transactions.column("commit_time")))
        return np.where(end == NO_STAMP, NEVER, times[end])

    @cached_property
    def uuids(self) -> pa.Array:
        """The transactions' uuids, by position."""
        return one_chunk(self.transactions.column("uuid"))

    def own_names(self) -> EventNames:
        """The names of the facts' own events."""
        return EventNames(self.uuids.take(self.column("_txn")), self.column("_seq"))

    def take(self, indices: Any) -> Self:
        """The facts at these positions, in this order."""
        return replace(self, rows=self.rows.take(indices))

    def filter(self, mask: Any) -> Self:
        """The facts where ``mask`` is true."""
        return replace(self, rows=self.rows.filter(mask))

    def slice(self, start: int, stop: int) -> Self:
        """The facts from ``start`` up to ``stop``, without copying."""
        return replace(self, rows=self.rows.slice(start, stop - start))


def meant(column: Column, values: pa.Array) -> pa.Array:
    """A stored column as it is meant: what has no presence is its zero where it is unset, in messages as well."""
    if column.implicit and values.null_count:
        values = pc.fill_null(values, pa.scalar(column.zero, values.type))
    if not any(child.has_zeros for child in column.children):
        return values
    if column.shape is Shape.MAP:
        key, item = column.children
        return convert_map(values, partial(meant, key), partial(meant, item))
    if column.shape is Shape.LIST:
        return convert_list(values, partial(meant, column.one))
    children = [meant(child, values.field(at)) for at, child in enumerate(column.children)]
    return convert_struct(values, [values.type.field(at) for at in range(values.type.num_fields)], children)


def stamps_of(positions: Stamps, sequences: Stamps) -> Stamps:
    """Stamps as numbers: the positions of transactions and the sequence numbers in them."""
    return positions << _SEQUENCE_BITS | sequences


def positions_of(stamps: Stamps) -> Stamps:
    """The positions of the stamps' transactions; of those there are, ``NO_STAMP`` has none."""
    return stamps >> _SEQUENCE_BITS


def sequences_of(stamps: Stamps) -> Stamps:
    """The stamps' sequence numbers; of those there are, ``NO_STAMP`` has none."""
    return stamps & ((1 << _SEQUENCE_BITS) - 1)


def commit_times(uuids: pa.Array) -> Stamps:
    """The commit times that version 7 uuids hold, in microseconds; 0 for nulls."""
    filled = pc.fill_null(uuids, bytes(16)) if uuids.null_count else uuids
    if not len(filled):
        return np.empty(0, dtype=np.int64)
    raw = np.frombuffer(filled.buffers()[1], dtype=">u8", offset=filled.offset * 16, count=len(filled) * 2)[::2].astype(np.int64)
    return (raw >> 16) * 1_000 + (raw & 0xFFF)


def transaction_table(stamps: Iterable[tuple[int, str, int, bytes]]) -> pa.Table:
    """A table of transactions from ``(commit_time, writer, revision, uuid)``, sorted."""
    columns = list(zip(*sorted(set(stamps)), strict=True)) or [(), (), (), ()]
    return pa.table([pa.array(list(c), f.type) for c, f in zip(columns, TRANSACTIONS, strict=True)], schema=TRANSACTIONS)


def conform(rows: pa.Table, table: Table) -> pa.Table:
    """``rows`` of an older or newer schema with the row columns that ``table`` knows, in its types; fact columns stay."""
    known = table.storage_schema
    names = [name for name in rows.column_names if name.startswith("_") or known.get_field_index(name) >= 0]
    arrays = []
    for name in names:
        values = rows.column(name)
        wanted = FACT_COLUMNS.get(name) or known.field(name).type
        arrays.append(values if values.type == wanted else values.cast(wanted))
    return pa.table(arrays, names=names)


def concat(parts: Sequence[Facts]) -> Facts:
    """The union of facts about keys of one table, with positions in one common table of transactions."""
    parts = [part for part in parts if len(part)] or list(parts[:1])
    if len(parts) <= 1:
        return parts[0] if parts else Facts(NO_TRANSACTIONS, pa.table({}))
    first = parts[0].transactions
    if all(part.transactions is first or part.transactions.equals(first) for part in parts[1:]):
        return Facts(first, pa.concat_tables([part.rows for part in parts], promote_options="default"))
    common = distinct_transactions([part.transactions for part in parts])
    uuids = one_chunk(common.column("uuid"))
    rows = [_remapped(part, uuids) for part in parts]
    return Facts(common, pa.concat_tables(rows, promote_options="default"))


def distinct_transactions(tables: Sequence[pa.Table]) -> pa.Table:
    """The transactions of all of these tables, each once, sorted by stamp."""
    every = pa.concat_tables({id(table): table for table in tables}.values())
    _, first = np.unique(np.asarray(pc.index_in(every["uuid"], value_set=pc.unique(every["uuid"]))), return_index=True)
    distinct = every.take(first)
    order = distinct.set_column(3, "uuid", distinct["uuid"].cast(pa.binary()))
    return distinct.take(pc.sort_indices(order, sort_keys=[(name, "ascending") for name in TRANSACTIONS.names])).combine_chunks()


def _remapped(part: Facts, uuids: pa.Array) -> pa.Table:
    mapping = pc.index_in(part.uuids, value_set=uuids).cast(_POSITION)
    rows = part.rows
    for name in POSITIONS:
        index = rows.schema.get_field_index(name)
        if index >= 0:
            rows = rows.set_column(index, name, mapping.take(one_chunk(rows.column(index))))
    return rows


@dataclass(frozen=True)
class SortedFacts:
    """Facts and their encoded keys, of one length and in the keys' order: those of a range are found by bisection."""

    facts: Facts
    keys: pa.Array

    @classmethod
    def of(cls, facts: Facts, table: Table) -> Self:
        """``facts`` in order of their keys, as they often are already."""
        keys = one_chunk(encode_keys(table, facts.rows)) if len(facts) else pa.array([], pa.binary())
        if pc.all(pc.less_equal(keys[:-1], keys[1:]), min_count=0).as_py():
            return cls(facts, keys)
        order = pc.sort_indices(keys)
        return cls(facts.take(order), keys.take(order))

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """All of the parts, at least one, in order."""
        if len(parts) == 1:
            return parts[0]
        keys = pa.concat_arrays([part.keys for part in parts])
        order = pc.sort_indices(keys)
        return cls(concat([part.facts for part in parts]).take(order), keys.take(order))

    def __len__(self) -> int:
        return len(self.keys)

    def within(self, keys: KeyRange) -> Self:
        """The part whose keys lie in the range, without copying."""
        start, stop = span(self.keys, keys)
        return replace(self, facts=self.facts.slice(start, stop), keys=self.keys[start:stop])

    def filter(self, mask: Mask) -> Self:
        """The facts where ``mask`` is true; all and none are no copies."""
        kept = int(np.count_nonzero(mask))
        if kept in (0, len(self)):
            return self if kept else replace(self, facts=self.facts.slice(0, 0), keys=self.keys[:0])
        rows = pa.array(mask)
        return replace(self, facts=self.facts.filter(rows), keys=self.keys.filter(rows))

    def keyed(self, table: Table) -> Self:
        """The same facts with the keys that the table gives them, which have the same order."""
        return replace(self, keys=one_chunk(encode_keys(table, self.facts.rows)))

    def of_keys(self, keys: pa.Array) -> Self:
        """The part about these keys."""
        mask = pc.is_in(self.keys, value_set=keys)
        return replace(self, facts=self.facts.filter(mask), keys=self.keys.filter(mask))
