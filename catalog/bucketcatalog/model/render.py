"""State rows as people see them: surface names and types, defaults filled in, and the columns every table shows on request.

``_version``, ``_commit_timestamp``, ``_writer`` and ``_revision`` are those of the PUT that began the row's version. Of a tombstone
``_ended_by`` says what ended it (put, delete, move), ``_end_version``, ``_end_writer`` and ``_end_revision`` which event that was.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InvalidOption
from .arrays import convert_list, convert_map, hexadecimal, one_chunk
from .facts import NO_STAMP, End, Facts, Kind, Stamps, meant
from .tables import END_TIME, TIMESTAMP, Column, DataType, Default, Shape, Table
from .uuids import to_text

DELETED_AT = END_TIME.name
REQUESTED = {
    "_version": pa.string(),
    "_commit_timestamp": TIMESTAMP,
    "_writer": pa.string(),
    "_revision": pa.int64(),
}
OF_ENDS = {"_ended_by": pa.string(), "_end_version": pa.string(), "_end_writer": pa.string(), "_end_revision": pa.int64()}
"""What tombstones show on request of the event that ended them."""
ENDED_BY = {End.PUT: "put", End.DELETE: "delete", End.NAMED_DELETE: "delete", End.MOVED: "move"}
_STAMP_COLUMNS = ("_kind", "_txn", "_seq")
_END_COLUMNS = ("_end_txn", "_end_seq", "_end_kind")
_UUID_CHARACTERS = 36
EVERY = "*"
"""What SQL has for all columns, and no column is called."""


def on_request(*, tombstones: bool) -> dict[str, pa.DataType]:
    """What every table shows on request of its rows, or of its tombstones."""
    return REQUESTED | OF_ENDS if tombstones else REQUESTED


def output_schema(table: Table, *, tombstones: bool = False, columns: Sequence[str] | None = None) -> pa.Schema:
    """The schema of a scan; ``InvalidOption`` where ``columns`` names what the table has not."""
    if columns is None and not tombstones:
        return table.surface_schema
    every = {field.name: field for field in table.surface_schema}
    if tombstones:
        every[DELETED_AT] = pa.field(DELETED_AT, TIMESTAMP, False)
    names = list(every) if columns is None else list(columns)
    every |= {name: pa.field(name, kind, False) for name, kind in on_request(tombstones=tombstones).items()}
    return chosen(table.name, pa.schema(list(every.values())), names)


def chosen(table: str, available: pa.Schema, columns: Sequence[str]) -> pa.Schema:
    """The columns that are asked for; ``InvalidOption`` for one that is not there, or that is asked for twice."""
    for number, name in enumerate(columns):
        if name == EVERY and name not in available.names:
            raise InvalidOption(
                f"Columns of table {table!r} are asked for by name, and {EVERY!r} is none.",
                next_step=f"Leave columns out for all that it shows by itself, or name them: {', '.join(available.names)}.",
            )
        if name not in available.names:
            raise InvalidOption(
                f"Table {table!r} has no column {name!r}.", next_step=f"Its columns are {', '.join(available.names)}."
            )
        if name in columns[:number]:
            raise InvalidOption(f"The column {name!r} is asked for twice.", next_step="Name each column once.")
    return pa.schema([available.field(name) for name in columns])


def storage_columns(table: Table, names: Iterable[str]) -> set[str]:
    """The storage columns that are needed to show these."""
    needed: set[str] = set()
    for name in names:
        column = table.by_name.get(name)
        if name == DELETED_AT:
            needed.add("_end_txn")
        elif column is None and name in OF_ENDS:
            needed.update(_END_COLUMNS)
        elif column is None:
            needed.update(_STAMP_COLUMNS)
        else:
            needed.add(column.field_name)
    return needed


def with_defaults(facts: Facts, table: Table, columns: Collection[str] | None = None) -> Facts:
    """The facts with what unset columns stand for in the rows of versions, as state has them: the times of their stamps, and zeros.

    ``columns`` are the storage columns that are asked for; no others are added.
    """
    wanted = [
        c for c in table.columns if (c.default.is_of_a_stamp or c.has_zeros) and (columns is None or c.field_name in columns)
    ]
    if not wanted or not len(facts):
        return facts
    rows, has_row = facts.rows, facts.numbers("_kind") == Kind.VERSION
    has_row &= (facts.numbers("_end_kind") == 0) | (facts.numbers("_purged") == 0)  # what is forgotten has none
    for column in wanted:
        stored = facts.stored_column(column)
        if stored.null_count or column.children:
            values = _with_times(facts, column, stored) if column.default.is_of_a_stamp else meant(column, stored)
            values = values if has_row.all() else pc.if_else(pa.array(has_row), values, stored)
            at = rows.schema.get_field_index(column.field_name)
            rows = rows.append_column(column.field_name, values) if at < 0 else rows.set_column(at, column.field_name, values)
    return replace(facts, rows=rows)


def render(facts: Facts, table: Table, schema: pa.Schema) -> pa.Table:
    """The facts as rows of ``schema``, which ``output_schema`` made."""
    return pa.table([_column(facts, table, name) for name in schema.names], schema=schema)


def _column(facts: Facts, table: Table, name: str) -> pa.Array:
    if name == DELETED_AT:
        return _time(facts, facts.numbers("_end_txn", NO_STAMP))
    column = table.by_name.get(name)
    if column is not None:
        return row_column(facts, column)
    return _of_end(facts, name) if name in OF_ENDS else _requested(facts, name)


def row_columns(facts: Facts, table: Table) -> dict[str, pa.Array]:
    """The facts' rows in storage form, with the times that defaults stand for: as they have to be put to be the same at another time."""
    columns = {}
    for column in table.columns:
        if column.default.is_of_a_stamp:
            columns[column.field_name] = row_column(facts, column)
        elif column.field_name in facts.rows.column_names:
            columns[column.field_name] = one_chunk(facts.rows.column(column.field_name))
    return columns


def row_column(facts: Facts, column: Column) -> pa.Array:
    """One row column in its surface form, defaults filled in."""
    index = facts.rows.schema.get_field_index(column.field_name)
    by_stamp = column.default.is_of_a_stamp
    if index < 0 and not by_stamp and not column.implicit:
        return pa.nulls(len(facts), column.surface_type)
    stored = facts.stored_column(column)
    return surface_array(column, _with_times(facts, column, stored) if by_stamp else stored)


def _with_times(facts: Facts, column: Column, stored: pa.Array) -> pa.Array:
    """A column whose default is a time of a stamp, with these times where it is unset."""
    if not stored.null_count:
        return stored
    own = facts.numbers("_txn", NO_STAMP)
    if column.default is Default.MODIFIED:
        row = facts.numbers("_row_txn", NO_STAMP)
        own = np.where(row == NO_STAMP, own, row)
    times = _time(facts, own)
    return times if stored.null_count == len(stored) else pc.coalesce(stored, times)


def _time(facts: Facts, position: Stamps) -> pa.Array:
    times = one_chunk(facts.transactions.column("commit_time")).cast(TIMESTAMP)
    return times.take(pa.array(position, mask=position == NO_STAMP))


def version_names(uuids: pa.Array, sequences: pa.Array) -> pa.Array:
    """``<uuid>:<sequence>``, null where the uuid is."""
    return pc.binary_join_element_wise(to_text(uuids), sequences.cast(pa.string()), ":")


def uuids_of_versions(names: pa.Array) -> pa.Array:
    """The uuids that ``version_names`` begin with, which are those of transactions, as text."""
    return pc.utf8_slice_codeunits(names, 0, _UUID_CHARACTERS)


def _requested(facts: Facts, name: str) -> pa.Array:
    if name == "_commit_timestamp":
        return _time(facts, facts.numbers("_txn", NO_STAMP))
    if name == "_version":
        return version_names(*facts.own_names())
    return one_chunk(facts.transactions.column(name.removeprefix("_"))).take(facts.column("_txn"))


def _of_end(facts: Facts, name: str) -> pa.Array:
    if name == "_ended_by":
        return symbols_of(facts.column("_end_kind").cast(pa.int32()), [(int(kind), word) for kind, word in ENDED_BY.items()])
    if name == "_end_version":
        return version_names(*facts.event_names(facts.stamps("end")))
    return one_chunk(facts.transactions.column(name.removeprefix("_end_"))).take(facts.column("_end_txn"))


def texts_of(columns: Sequence[Column], values: Sequence[pa.Array]) -> pa.MapArray:
    """For each row a map from the names of columns to its values of them, given in storage form, as text; bytes in hexadecimal."""
    count, width = len(values[0]) if values else 0, len(columns)
    texts = [
        hexadecimal(each) if column.type is DataType.BYTES else pc.cast(surface_array(column, each), pa.string())
        for column, each in zip(columns, values, strict=True)
    ]
    places = np.tile(np.arange(width), count)
    keys = pa.array([column.name for column in columns], pa.string()).take(pa.array(places))
    joined = pa.concat_arrays(texts) if texts else pa.array([], pa.string())
    items = joined.take(pa.array(np.repeat(np.arange(count), width) + places * count))
    return pa.MapArray.from_arrays(pa.array(np.arange(count + 1, dtype=np.int32) * width), keys, items)


def surface_array(column: Column, values: pa.Array) -> pa.Array:
    """A storage column as people see it."""
    if column.implicit and values.null_count:
        values = pc.fill_null(values, column.zero)
    if values.type == column.surface_type:
        return values
    if column.shape is Shape.LIST:
        return convert_list(values, partial(surface_array, column.one))
    if column.shape is Shape.MAP:
        key, item = column.children
        return convert_map(values, partial(surface_array, key), partial(surface_array, item))
    if column.type is DataType.ENUM:
        return symbols_of(values, column.symbols)
    children = [surface_array(c, values.field(i)) for i, c in enumerate(column.children)]
    fields = [pa.field(c.name, c.surface_type) for c in column.children]
    return pa.StructArray.from_arrays(children, fields=fields, mask=values.is_null() if values.null_count else None)


def symbols_of(values: pa.Array, symbols: Sequence[tuple[int, str]]) -> pa.Array:
    """The numbers of an enumeration as its symbols, as text where they have none."""
    numbers = pa.array([number for number, _ in symbols], pa.int32())
    names = pa.array([name for _, name in symbols], pa.string())
    return pc.coalesce(names.take(pc.index_in(values, value_set=numbers)), values.cast(pa.string()))
