"""The columns of a block between rows and bytes: an Arrow IPC stream that leaves out what need not be said, in the cheapest types.

Row columns keep their field numbers as names. Left out are columns that say nothing, and one that equals another bit for bit throughout
(an object's ``modified``, as a rule, equals its ``created``). Few distinct values become a dictionary; text and bytes of one width lose
their offsets, also below lists, maps and structs: a cast to the column's type brings the values back.
"""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import UnsupportedFormat
from ..model.arrays import convert_list, convert_map, identical, one_chunk
from ..model.facts import FACT_COLUMNS
from ..model.tables import Table

_WORTHWHILE_ROWS = 1_024
_ROWS_PER_VALUE = 8
_INDICES = ((1 << 7, pa.int8()), (1 << 15, pa.int16()), (1 << 31, pa.int32()))


def packed(values: pa.Array) -> pa.Array:
    """The values in the cheapest type; short arrays stay as they are, for a dictionary has its price too."""
    if len(values) < _WORTHWHILE_ROWS or values.null_count == len(values):
        return values
    kind = values.type
    if pa.types.is_map(kind):
        return convert_map(values, packed, packed)
    if pa.types.is_list(kind):
        return convert_list(values, packed)
    if pa.types.is_struct(kind):
        return _packed_struct(values)
    if pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return _flat(values)
    return values


def _packed_struct(values: pa.StructArray) -> pa.StructArray:
    children = [packed(values.field(at)) for at in range(values.type.num_fields)]
    fields = [pa.field(field.name, child.type) for field, child in zip(values.type, children, strict=True)]
    return pa.StructArray.from_arrays(children, fields=fields, mask=values.is_null() if values.null_count else None)


def _flat(values: pa.Array) -> pa.Array:
    encoded = values.dictionary_encode()
    distinct = len(encoded.dictionary)
    if distinct * _ROWS_PER_VALUE <= len(values):
        narrow = next(kind for limit, kind in _INDICES if distinct <= limit)
        return pa.DictionaryArray.from_arrays(encoded.indices.cast(narrow), encoded.dictionary)
    if pa.types.is_fixed_size_binary(values.type):
        return values
    widths = pc.min_max(pc.binary_length(values)).as_py()
    return values.cast(pa.binary(widths["min"])) if widths["min"] == widths["max"] and widths["min"] else values


SameColumns = tuple[tuple[str, str], ...]
"""Columns that are left out, each with the one that it equals."""

_WRITE = pa.ipc.IpcWriteOptions(compression=pa.Codec("zstd", compression_level=1))


def distinct_columns(rows: pa.Table, table: Table) -> tuple[pa.Table, SameColumns]:
    """The columns that say something, and which of the others equal which of these."""
    kept: dict[str, pa.Array] = {}
    same = []
    for name in rows.column_names:
        values = one_chunk(rows.column(name))
        if values.null_count == len(values) and name not in table.fixed_columns:
            continue
        twin = next((other for other, seen in kept.items() if identical(seen, values)), None)
        if twin is None or name in table.fixed_columns:
            kept[name] = values
        else:
            same.append((name, twin))
    return pa.table({name: packed(values) for name, values in kept.items()}), tuple(same)


def stream_of(rows: pa.Table) -> bytes:
    """The rows as a compressed stream of one batch."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=_WRITE) as writer:
        writer.write_batch(
            rows.combine_chunks().to_batches()[0] if len(rows) else pa.RecordBatch.from_pylist([], schema=rows.schema)
        )
    return bytes(sink.getvalue())


def stored_rows(data: bytes, same: SameColumns, columns: Collection[str] | None, name: str) -> pa.Table:
    """The rows as they are stored, or of their columns those asked for and the ones that stand for them."""
    names = pa.ipc.read_schema(pa.py_buffer(data)).names
    unknown = [n for n in names if n.startswith("_") and n not in FACT_COLUMNS]
    if unknown:
        raise UnsupportedFormat(
            f"{name} holds a block with the unknown column {unknown[0]!r}.",
            next_step="Read it with a newer release of bucketcatalog.",
        )
    if columns is None:
        rows = read_stream(data)
    else:
        wanted = {*columns, *(twin for left_out, twin in same if left_out in columns)}
        rows = read_stream(data, [place for place, n in enumerate(names) if n in wanted])
    for left_out, twin in same:
        if twin in rows.column_names:
            rows = rows.append_column(left_out, rows.column(twin))
    return rows


def read_stream(data: bytes, places: list[int] | None = None) -> pa.Table:
    """The rows of a stream, with the columns at ``places`` only where given."""
    options = pa.ipc.IpcReadOptions(use_threads=False, included_fields=places)
    with pa.ipc.open_stream(pa.py_buffer(data), options=options) as reader:
        return reader.read_all()
