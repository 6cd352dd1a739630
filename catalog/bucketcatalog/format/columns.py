"""The columns of a block between rows and bytes: an Arrow IPC stream that leaves out what need not be said.

Row columns keep their field numbers as names; columns that say nothing are left out, and so is a column that equals another one,
bit for bit, throughout (an object's ``modified``, as a rule, equals its ``created``).
"""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa

from ..errors import UnsupportedFormat
from ..model.arrays import identical, one_chunk
from ..model.facts import FACT_COLUMNS
from ..model.tables import Table
from .packing import packed

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
    strange = [n for n in names if n.startswith("_") and n not in FACT_COLUMNS]
    if strange:
        raise UnsupportedFormat(
            f"{name} holds a block with the unknown column {strange[0]!r}.",
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
