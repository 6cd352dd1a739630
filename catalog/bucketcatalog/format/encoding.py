"""Stored rows as the bytes of a Parquet file: how each column is encoded, and what is to be known of its chunks once they are written."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from io import BytesIO
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ..model.arrays import one_chunk
from .footers import MAGIC, TRAILER, parquet_library
from .parquet import Chunk
from .statistics import statistics_of

_ROWS_PER_VALUE = 8
"""A column becomes a dictionary where each of its values stands in so many rows."""


class EncodedGroup(NamedTuple):
    """Where the first chunk of a row group begins, its chunks, and what is known of their values, as a message."""

    offset: int
    chunks: tuple[Chunk, ...]
    statistics: Any


class EncodedRows(NamedTuple):
    """The bytes of a Parquet file up to its footer, to be written on, the footer with all that is behind it, and the row groups."""

    body: BytesIO
    footer: bytes
    groups: list[EncodedGroup]


class RowGroupWriter:
    """Encodes rows of one schema, a row group each time. ``sorted_by`` are the columns that they are sorted by."""

    def __init__(self, first: pa.Table, sorted_by: Sequence[str]) -> None:
        pq = parquet_library()
        leaves = [leaf for field in first.schema for leaf in _leaf_types(field.name, field.type)]
        self.chunks = len(leaves)
        places = {path: at for at, (path, _) in enumerate(leaves)}
        whole = {*first.column_names}
        dictionaries = [path for path, kind in leaves if _repeats(first.column(path) if path in whole else None, kind)]
        self._file = BytesIO()  # grows in place, where Arrow's own is copied whenever it has doubled
        self._writer = pq.ParquetWriter(
            pa.PythonFile(self._file, mode="w"),
            first.schema,
            version="2.6",
            compression="zstd",
            compression_level=1,
            use_dictionary=dictionaries,
            column_encoding={path: kind for path, of in leaves if path not in dictionaries and (kind := _encoding(of))},
            write_statistics=[
                path for path, kind in leaves if not pa.types.is_floating(kind)
            ],  # they would lie about what is no number
            data_page_version="2.0",
            write_page_checksum=True,
            store_schema=False,
            sorting_columns=[pq.SortingColumn(places[name]) for name in sorted_by],
        )

    @property
    def size(self) -> int:
        """The bytes so far."""
        return self._file.tell()

    def write(self, rows: pa.Table) -> None:
        """Add a row group."""
        self._writer.write_table(rows, row_group_size=len(rows))

    def finish(self) -> EncodedRows:
        """The file; nothing is added after that."""
        pq = parquet_library()
        self._writer.close()
        with self._file.getbuffer() as data:
            at = len(data) - TRAILER - int.from_bytes(data[-TRAILER:-4], "little")
            footer = bytes(data[at:])
            metadata = pq.read_metadata(pa.BufferReader(MAGIC + footer))
            groups = [_group_of(metadata.row_group(number), data) for number in range(metadata.num_row_groups)]
        self._file.seek(at)
        self._file.truncate()
        return EncodedRows(self._file, footer, groups)


def _group_of(group: Any, file: memoryview) -> EncodedGroup:
    first, at, found = None, 0, []
    columns = [group.column(number) for number in range(group.num_columns)]
    for column in columns:
        start = column.data_page_offset if column.dictionary_page_offset is None else column.dictionary_page_offset
        assert first is None or start == at  # that chunks lie side by side is what makes an offset enough
        first = start if first is None else first
        at = start + column.total_compressed_size
        found.append(Chunk(column.total_compressed_size, zlib.crc32(file[start:at])))
    return EncodedGroup(first or 0, tuple(found), statistics_of(columns))


def _leaf_types(path: str, kind: pa.DataType) -> Iterable[tuple[str, pa.DataType]]:
    """The leaves that a column is, by their paths in the file, with their types."""
    if pa.types.is_map(kind):
        yield from _leaf_types(f"{path}.key_value.key", kind.key_type)
        yield from _leaf_types(f"{path}.key_value.value", kind.item_type)
    elif pa.types.is_list(kind):
        yield from _leaf_types(f"{path}.list.element", kind.value_type)
    elif pa.types.is_struct(kind):
        for at in range(kind.num_fields):
            yield from _leaf_types(f"{path}.{kind.field(at).name}", kind.field(at).type)
    else:
        yield path, kind


def _repeats(values: pa.ChunkedArray | None, kind: pa.DataType) -> bool:
    """Whether a leaf is to be a dictionary, judged by its first values where it is a column, and not a part of one."""
    if pa.types.is_boolean(kind) or pa.types.is_floating(kind):
        return False
    if values is None:
        return not pa.types.is_integer(kind)  # what maps and lists hold are words, as a rule
    if values.null_count == len(values):
        return False  # nothing to gain, and a dictionary has to be made all the same
    return len(pc.unique(one_chunk(values))) * _ROWS_PER_VALUE <= len(values)


def _encoding(kind: pa.DataType) -> str | None:
    """How values are encoded that are no dictionary; None: as they are."""
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return "DELTA_LENGTH_BYTE_ARRAY"
    if pa.types.is_timestamp(kind) or (pa.types.is_integer(kind) and kind.bit_width >= 32):
        return "DELTA_BINARY_PACKED"
    return None
