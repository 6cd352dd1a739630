"""The columns of stored rows, in Parquet files and in the Arrow streams of blocks: facts to a table that any program reads, and back.

A row column has the table's name for it and its protobuf field number as its field id, by which it is found again whatever it is called by
then. What the engine needs has a name that begins with ``_``. A stamp is columns of its own: the time, writer, revision and uuid of its
transaction and the event's number in there. Facts have positions in a list of transactions, made of those columns when they are read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache, partial
from itertools import chain
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import CorruptionError, UnsupportedFormat
from ..model.arrays import convert_list, convert_map, convert_struct, is_constant, one_chunk, plain
from ..model.facts import (
    FACT_COLUMNS,
    NO_TRANSACTIONS,
    TRANSACTIONS,
    Facts,
    conform,
    distinct_transactions,
)
from ..model.tables import END_TIME, TIMESTAMP, UUID_BYTES, Column, DataType, Default, Shape, Table, split_side
from ..model.uuids import from_text, to_text
from .headers import FOLDED, TOMBSTONES, BlockClass

_FIELD_ID = b"PARQUET:field_id"
NOTHING = pa.field("_", pa.bool_())
"""What stands in a message that has no fields, for Parquet knows no empty groups."""
_STAMPS = {"_txn": "_", "_row_txn": "_row_", "_end_txn": "_end_"}
"""The columns of facts that hold positions of transactions, each with what the columns begin with that are stored for it."""
_OF_A_TRANSACTION = {"commit_time": TIMESTAMP, "writer": pa.string(), "revision": pa.int64(), "uuid": pa.string()}
STAMPS_OF = {Default.CREATED: ("_txn",), Default.MODIFIED: ("_row_txn", "_txn")}
"""The stamps whose times a default stands for, the first that there is."""
_OF_ENDS = ("_end_txn", "_end_seq", "_end_kind", "_end_expects", "_end_expects_uuid", "_end_expects_seq")
_NAMES = ("_name_uuid", "_name_seq")
_NEVER_SET = {
    BlockClass.EVENTS: frozenset(_STAMPS),
    BlockClass.LIVE: frozenset({*_OF_ENDS, *_NAMES}),
    BlockClass.ENDED: frozenset(_NAMES),
    BlockClass.SUPERSEDED: frozenset(_NAMES),
    BlockClass.STUBS: frozenset[str](),
}
"""Columns of facts that say nothing of rows of a class."""


class Meaning(NamedTuple):
    """What a stored column is: a column by its storage name, or the ``part`` of the transactions that its positions are of."""

    column: str
    part: str = ""


_ENDED_AT = Meaning("_end_txn", "commit_time")
"""The part of a stamp that people see: with tombstones it is stored as ``deleted_at``."""


class _StoredColumn(NamedTuple):
    """A column as it is stored, and what it is of the facts; ``row`` where it is a row's."""

    field: pa.Field
    means: Meaning
    row: Column | None = None


def are_facts(table: Table, block_class: BlockClass) -> bool:
    """Whether rows of a table and class have stamps and kinds: of those beside a table's only whole tombstones, in another order."""
    return split_side(table.name)[1] is None or block_class in TOMBSTONES


@lru_cache(maxsize=256)
def _stored_columns(table: Table, block_class: BlockClass) -> tuple[_StoredColumn, ...]:
    found = [_StoredColumn(_stored_field(column), Meaning(column.field_name), column) for column in table.columns]
    if not are_facts(table, block_class):
        return tuple(found)
    for name, kind in FACT_COLUMNS.items():
        if name in _NEVER_SET[block_class]:
            continue
        if name in _STAMPS:
            for part, of in _OF_A_TRANSACTION.items():
                means = Meaning(name, part)
                is_shown = means == _ENDED_AT and block_class in TOMBSTONES
                if is_shown and END_TIME in table.columns:
                    continue  # a column of the row says it
                found.append(_StoredColumn(_stored_field(END_TIME) if is_shown else pa.field(_STAMPS[name] + part, of), means))
        else:
            found.append(_StoredColumn(pa.field(name, pa.string() if kind == UUID_BYTES else kind), Meaning(name)))
    return tuple(found)


def _stored_field(column: Column) -> pa.Field:
    return pa.field(column.name, _stored_type(column), metadata={_FIELD_ID: str(column.number)})


def _stored_type(column: Column) -> pa.DataType:
    """The storage type with the names and numbers of what lies in a message."""
    if column.shape is Shape.MAP:
        key, item = column.children
        return pa.map_(_stored_type(key), _stored_type(item))
    one = pa.struct(_stored_children(column)) if column.type is DataType.MESSAGE else column.item_type
    return pa.list_(one) if column.shape is Shape.LIST else one


def _stored_children(column: Column) -> list[pa.Field]:
    return list(map(_stored_field, column.children)) or [NOTHING]


def stored_rows(facts: Facts, table: Table, block_class: BlockClass) -> pa.Table:
    """The facts as the columns that rows of a table and class have, in their order; an unset one is null.

    What is text in a stamp is a dictionary: most rows that lie together are of few transactions.
    """
    columns = _stored_columns(table, block_class)
    stamps = {name: facts.column(name).dictionary_encode() for name in _STAMPS if name not in _NEVER_SET[block_class]}
    fields, arrays = [], []
    for column in columns:
        if column.row is not None:
            values = facts.stored_column(column.row)
            is_blank = values.null_count == len(values)
            values = pa.nulls(len(values), column.field.type) if is_blank else _named(column.row, values)
        elif column.means.part:
            values = _of_stamps(stamps[column.means.column], facts.transactions.column(column.means.part), column.field.type)
        else:
            values = _shown(facts.column(column.means.column))
        fields.append(column.field.with_type(values.type))
        arrays.append(values)
    return pa.table(arrays, schema=pa.schema(fields))


def _of_stamps(stamps: pa.DictionaryArray, of: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    """A part of the transactions at positions, which are given by their distinct values."""
    distinct = _shown(one_chunk(of).take(stamps.dictionary)).cast(kind)
    if not pa.types.is_string(kind):
        return distinct.take(stamps.indices)
    words = distinct.dictionary_encode()  # where one stands twice Arrow would write a page with bytes that nobody has set
    return pa.DictionaryArray.from_arrays(words.indices.take(stamps.indices), words.dictionary)


def _shown(values: pa.Array) -> pa.Array:
    """The values as they are stored: the uuids of transactions are text, as in the names of their files."""
    return to_text(values) if values.type == UUID_BYTES else values


def _named(column: Column, values: pa.Array) -> pa.Array:
    """The values with the fields of messages, which storage calls by number, under their names."""
    if values.type == _stored_type(column):
        return values
    if column.shape is Shape.MAP:
        key, item = column.children
        return convert_map(values, partial(_named, key), partial(_named, item))
    if column.shape is Shape.LIST:
        return convert_list(values, partial(_named, column.one))
    children = [_named(child, values.field(at)) for at, child in enumerate(column.children)]
    children = children or [pa.nulls(len(values), NOTHING.type)]
    return convert_struct(values, _stored_children(column), children)


def rows_of_message(rows: pa.Table) -> pa.Table:
    """The rows, at least one, as a message has them: no dictionaries, nor columns that are null throughout. Those of the key never are."""
    kept = [field for field in rows.schema if rows.column(field.name).null_count < len(rows)]
    values = [plain(one_chunk(rows.column(field.name))) for field in kept]
    return pa.table(values, schema=pa.schema([field.with_type(of.type) for field, of in zip(kept, values, strict=True)]))


def columns_to_read(
    stored: pa.Schema, table: Table, block_class: BlockClass, columns: Collection[str] | None, name: str
) -> list[str]:
    """Which of the columns of file ``name`` hold what is asked for by storage names, or hold anything that this release knows.

    ``UnsupportedFormat`` where the file has a column of the engine's that it does not know; ``CorruptionError`` where two columns have one
    name or say the same, one has a type that the table does not give it, one of the key is missing, or one is of stamps and a transaction
    gives these.
    """
    if len(set(stored.names)) < len(stored.names):  # they are read by their names
        raise CorruptionError(f"{name} holds rows of table {table.name!r} in which several columns have one name.")
    wanted, seen = [], set()
    if columns is not None:
        stamps = (STAMPS_OF[column.default] for column in unknown_times(stored, table, block_class, columns))
        columns = {*columns, *chain.from_iterable(stamps)}
    for field in stored:
        means = meaning_of(field, table)
        if means in seen:
            raise CorruptionError(f"{name} holds rows of table {table.name!r} in which two columns are {field.name!r}.")
        if means is None and field.name.startswith("_"):
            raise UnsupportedFormat(
                f"{name} holds rows with the unknown column {field.name!r}.",
                next_step="Read it with a newer release of bucketcatalog.",
            )
        if means is None:
            continue
        seen.add(means)
        if columns is None or means.column in columns:
            if not _is_of_type(field.type, means, table):
                raise CorruptionError(f"{name} holds rows of table {table.name!r} whose column {field.name!r} is {field.type}.")
            wanted.append(field.name)
    if block_class is BlockClass.EVENTS and any(means.part for means in seen):
        raise CorruptionError(f"{name} holds events of table {table.name!r} with stamps, which are their transaction's to give.")
    if missing := [column.name for column in table.key_columns if Meaning(column.field_name) not in seen]:
        raise CorruptionError(
            f"{name} holds rows of table {table.name!r} without the column {missing[0]!r}, which is of the key."
        )
    return wanted


def unknown_times(stored: pa.Schema, table: Table, block_class: BlockClass, columns: Collection[str] | None) -> list[Column]:
    """The columns that are asked for, stand for a time where they are unset, and were declared after rows of this class were folded."""
    if block_class not in FOLDED:
        return []
    with_times = [c for c in table.columns if c.default in STAMPS_OF and (columns is None or c.field_name in columns)]
    known = {meaning_of(field, table) for field in stored} if with_times else set()
    return [column for column in with_times if Meaning(column.field_name) not in known]


SHOWN_OF_STAMPS = {
    END_TIME.name: _ENDED_AT,
    "_commit_timestamp": Meaning("_txn", "commit_time"),
    "_writer": Meaning("_txn", "writer"),
    "_revision": Meaning("_txn", "revision"),
    "_end_writer": Meaning("_end_txn", "writer"),
    "_end_revision": Meaning("_end_txn", "revision"),
}
"""What people see of the stamps of a row, by what they call it."""


def stored_names(stored: pa.Schema, table: Table, shown: str) -> list[str] | None:
    """Which of the columns of a file hold what people see as ``shown``; None where that is made of several columns."""
    column = table.by_name.get(shown)
    means = SHOWN_OF_STAMPS.get(shown) if column is None else Meaning(column.field_name)
    return None if means is None else [field.name for field in stored if meaning_of(field, table) == means]


def _is_of_type(kind: pa.DataType, means: Meaning, table: Table) -> bool:
    """Whether a column that means that can be of a type."""
    if means.part:
        return bool(kind == _OF_A_TRANSACTION[means.part])
    column = table.by_number.get(means.column)
    if column is None:
        own = FACT_COLUMNS.get(means.column)
        return bool(kind == (pa.string() if own == UUID_BYTES else own))
    return kind == column.storage_type or _is_readable_as(kind, _stored_type(column))


def _is_readable_as(kind: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether a column of one type can hold what should have another: integers may be wider or less so, messages have other fields."""
    if kind == wanted:
        return True
    if pa.types.is_map(wanted):
        return pa.types.is_map(kind) and all(
            _is_readable_as(*both) for both in ((kind.key_type, wanted.key_type), (kind.item_type, wanted.item_type))
        )
    if pa.types.is_list(wanted):
        return pa.types.is_list(kind) and _is_readable_as(kind.value_type, wanted.value_type)
    if pa.types.is_struct(wanted):
        known = {number_of(field): field.type for field in wanted}
        return pa.types.is_struct(kind) and all(
            _is_readable_as(field.type, known[number])
            for field in kind
            if (number := number_of(field)) in known and number is not None
        )
    are_integers = pa.types.is_integer(wanted) and pa.types.is_integer(kind)
    return are_integers and bool(pa.types.is_signed_integer(kind) == pa.types.is_signed_integer(wanted))


def meaning_of(field: pa.Field, table: Table) -> Meaning | None:
    """What a stored column is; None where that is not known."""
    if field.name.startswith("_"):
        return _of_engine(field.name)
    number = number_of(field)
    if number is not None and number in table.by_number:
        return Meaning(number)
    return _ENDED_AT if number == END_TIME.field_name else None


def number_of(field: pa.Field) -> str | None:
    number = (field.metadata or {}).get(_FIELD_ID)
    return None if number is None else number.decode()


@lru_cache(maxsize=64)
def _of_engine(name: str) -> Meaning | None:
    if name in FACT_COLUMNS and name not in _STAMPS:
        return Meaning(name)
    parts = (Meaning(own, part) for own in _STAMPS for part in _OF_A_TRANSACTION)
    return next((means for means in parts if name == _STAMPS[means.column] + means.part), None)


def key_columns(rows: pa.Table, table: Table) -> dict[str, pa.Array]:
    """The columns of the key by their storage names; ``KeyError`` where one is missing."""
    places = {number_of(field): at for at, field in enumerate(rows.schema)}
    return {c.field_name: one_chunk(rows.column(places[c.field_name]).cast(c.storage_type)) for c in table.key_columns}


def facts_of(rows: pa.Table, table: Table) -> Facts:
    """The facts that stored rows are, with their key and the columns that say anything. ``ValueError`` or Arrow's where they are none.

    Where none of them says anything the facts have one all the same: without any, who could count them?
    """
    found: dict[str, pa.Array] = {}
    stamps: dict[str, dict[str, pa.Array]] = {}
    for field, chunks in zip(rows.schema, rows.columns, strict=True):
        means, values = meaning_of(field, table), one_chunk(chunks)
        if means is not None and means.part:
            stamps.setdefault(means.column, {})[means.part] = values
        elif means is not None:
            is_uuid = FACT_COLUMNS.get(means.column) == UUID_BYTES
            found[means.column] = from_text(values) if is_uuid else _numbered(field.type, values)
    if END_TIME.field_name in found and "_end_txn" in stamps:
        stamps["_end_txn"].setdefault("commit_time", found[END_TIME.field_name])
    transactions, positions = _positions(stamps)
    every = found | positions
    if len(rows):
        of_key = {column.field_name for column in table.key_columns}
        said = {name: values for name, values in every.items() if name in of_key or values.null_count < len(rows)}
        every = said or dict(list(every.items())[:1])
    return Facts(transactions, conform(pa.table(list(every.values()), names=list(every)), table))


def _numbered(kind: pa.DataType, values: pa.Array) -> pa.Array:
    """The values with the fields of messages called by number, as storage has them; those without a number are left out."""
    if not _has_messages(kind):
        return values
    if pa.types.is_map(kind):
        return convert_map(values, partial(_numbered, kind.key_type), partial(_numbered, kind.item_type))
    if pa.types.is_list(kind):
        return convert_list(values, partial(_numbered, kind.value_type))
    numbered = [(number, at) for at in range(kind.num_fields) if (number := number_of(kind.field(at))) is not None]
    children = {number: _numbered(kind.field(at).type, values.field(at)) for number, at in numbered}
    fields = [pa.field(number, child.type) for number, child in children.items()]
    return convert_struct(values, fields, list(children.values()))


def _has_messages(kind: pa.DataType) -> bool:
    if pa.types.is_map(kind):  # its entries are structs and no messages
        return _has_messages(kind.key_type) or _has_messages(kind.item_type)
    return pa.types.is_struct(kind) or (pa.types.is_list(kind) and _has_messages(kind.value_type))


def _positions(stamps: Mapping[str, Mapping[str, pa.Array]]) -> tuple[pa.Table, dict[str, pa.Array]]:
    """The transactions of stamps, and where in their list each row's is, by the facts' names for that."""
    listed, encoded, positions = [], {}, {}
    for position, parts in stamps.items():
        if missing := _OF_A_TRANSACTION.keys() - parts.keys():
            raise ValueError(f"it has stamps without {min(missing)}")
        uuids = parts["uuid"]
        if uuids.null_count == len(uuids):
            positions[position] = pa.nulls(len(uuids), FACT_COLUMNS[position])
            continue
        encoded[position] = _encoded(uuids)
        first = _first_rows(encoded[position])
        firsts = {part: values.take(first) for part, values in parts.items()} | {"uuid": from_text(encoded[position].dictionary)}
        listed.append(pa.table([firsts[field.name].cast(field.type) for field in TRANSACTIONS], schema=TRANSACTIONS))
    if not listed:
        return NO_TRANSACTIONS, positions
    common = listed[0] if len(listed) == len(listed[0]) == 1 else distinct_transactions(listed)
    of = one_chunk(common.column("uuid"))
    for position, uuids in encoded.items():
        positions[position] = pc.index_in(from_text(uuids.dictionary), value_set=of).take(uuids.indices)
    return common, positions


def _encoded(uuids: pa.Array) -> pa.DictionaryArray:
    """The uuids as a dictionary; most rows that lie together are of one transaction, which is seen at once."""
    if is_constant(uuids):
        return pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(uuids), dtype=np.int32)), uuids[:1])
    return uuids.dictionary_encode()


def _first_rows(encoded: pa.DictionaryArray) -> pa.Array:
    """Where each value of the dictionary stands first."""
    at = np.asarray(pc.fill_null(encoded.indices, -1))
    rows = np.flatnonzero(at >= 0)[::-1]
    first = np.zeros(len(encoded.dictionary), dtype=np.int64)
    first[at[rows]] = rows
    return pa.array(first)
