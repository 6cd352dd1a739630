"""Row groups: the columns of a Parquet file's rows, each chunk checked before anything of it is decoded.

Parquet says where a file's chunks lie, and nothing that fixes their bytes: whoever stores the file also keeps what ``Chunk`` says of each,
and the digest of the footer. A reader fetches the chunks of the columns that it needs, neighbours in one range, and the decoder is given
these and no other byte of the file.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import import_module
from itertools import accumulate
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from ..errors import CorruptionError, TruncatedObject

if TYPE_CHECKING:
    from pyarrow.parquet import FileMetaData

MAGIC = b"PAR1"
TRAILER = 8
"""The length of the footer, and the magic number: a Parquet file ends with these."""
_NEIGHBOURS = 128 << 10
"""A gap between two chunks that is read along, rather than to ask twice."""


@cache
def parquet_library() -> Any:
    """Arrow's Parquet library, imported once somebody needs it: that takes as long as a small command that reads no segment."""
    return import_module("pyarrow.parquet")


class Chunk(NamedTuple):
    """The bytes of one column of a row group: how many there are, and their CRC-32. Chunks lie side by side in the order of the columns."""

    length: int
    checksum: int


@dataclass(frozen=True, slots=True)
class RowGroup:
    """One of the row groups of a file: its number, where its first chunk begins, all of its chunks, and the file's footer."""

    number: int
    offset: int
    chunks: tuple[Chunk, ...]
    footer: Footer


class Bounds(NamedTuple):
    """What statistics say of a column of a row group: how many of its ``rows`` are null, and that no value is below or above others.

    What is not said, or not believed, is None. Text and bytes have bytes as bounds, times numbers in the unit of their ``kind``.
    """

    kind: pa.DataType
    rows: int
    nulls: int | None
    low: bool | int | bytes | None = None
    high: bool | int | bytes | None = None


@dataclass(frozen=True)
class Layout:
    """What a footer says: the file's columns, and for each chunk of a row group the column that it is of, or is a part of."""

    metadata: FileMetaData
    schema: pa.Schema
    columns: tuple[str, ...]
    _same: dict[int, dict[str, pa.Scalar]] = field(default_factory=dict, compare=False, repr=False)

    def same(self, number: int) -> dict[str, pa.Scalar]:
        """The columns that hold one value throughout a row group, or nothing but nulls, with what they hold: they need not be read."""
        if number not in self._same:
            group = self.metadata.row_group(number)
            found = ((name, self._one_value(group.column(at), name)) for at, name in enumerate(self.columns))
            self._same[number] = {name: value for name, value in found if value is not None}
        return self._same[number]

    def _one_value(self, chunk: Any, name: str) -> pa.Scalar | None:
        said = _bounds(chunk, self.schema.field(name).type)
        if said is None or said.nulls is None:
            return None
        if said.nulls == said.rows:
            return pa.scalar(None, said.kind)
        return None if said.nulls or said.low is None or said.low != said.high else pa.scalar(said.low, said.kind)


def _bounds(chunk: Any, kind: pa.DataType) -> Bounds | None:
    """What the statistics of the only chunk of a column say, if there are any. A bound may be beyond all values."""
    said = chunk.statistics
    if said is None or pa.types.is_nested(kind):
        return None
    ends: tuple[Any, ...] = ()
    if said.has_min_max and pa.types.is_integer(kind):
        ends = said.min, said.max
    elif said.has_min_max and any(is_one(kind) for is_one in _BOUNDED):
        # As they are stored: what lies outside of the years 1 to 9999 is no datetime, and half of a letter no text.
        ends = said.min_raw, said.max_raw
    return Bounds(kind, chunk.num_values, said.null_count if said.has_null_count else None, *ends)


_BOUNDED = (
    pa.types.is_boolean,
    pa.types.is_timestamp,
    pa.types.is_string,
    pa.types.is_binary,
    pa.types.is_fixed_size_binary,
)
"""What has an order besides integers. Not numbers with a fraction: bounds leave out what is no number, and do not tell zeros apart."""


class Footer:
    """The footer of a file: where it lies and its digest. It is fetched and parsed once it is needed, and a pickle has neither."""

    def __init__(self, name: str, offset: int, length: int, digest: bytes, data: bytes | None = None) -> None:
        self.name = name
        self.offset = offset
        self.length = length
        self._digest = digest
        self._data = data
        self._lock = Lock()

    def __reduce__(self) -> tuple[type[Footer], tuple[str, int, int, bytes]]:
        return Footer, (self.name, self.offset, self.length, self._digest)

    def needs(self) -> bool:
        """Whether it has to be given its bytes before anything is read."""
        return self._data is None

    def obtain(self, fetch: Fetch) -> None:
        """Have its bytes fetched where it has none, once, however many threads need it; see ``give``."""
        with self._lock:
            if self.needs():
                self.give(fetch(self.offset, self.length))

    def give(self, data: bytes) -> None:
        """Its bytes; ``CorruptionError`` where they are not those that the digest is of."""
        check_footer(data, self._digest, self.name)
        self._data = data

    @cached_property
    def layout(self) -> Layout:
        """What it says; ``CorruptionError`` where it cannot be parsed."""
        pq = parquet_library()
        assert self._data is not None
        try:
            metadata = pq.read_metadata(pa.BufferReader(MAGIC + self._data))
            columns = tuple(metadata.schema.column(at).path.partition(".")[0] for at in range(metadata.num_columns))
            return Layout(metadata, metadata.schema.to_arrow_schema(), columns)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise CorruptionError(f"{self.name} has no readable footer: {error}.") from None


def footer_digest(footer: bytes) -> bytes:
    """What fixes a footer and all that is behind it."""
    return hashlib.sha256(footer).digest()


def check_footer(footer: bytes, digest: bytes, name: str) -> None:
    """``CorruptionError`` where these bytes are not the footer that the digest is of."""
    if footer_digest(footer) != digest:
        raise CorruptionError(f"{name} is damaged: its footer is not the one that its index names.")


def footer_start(end: bytes, size: int, name: str) -> int:
    """Where the footer of a file of that size begins, by its last eight bytes; ``CorruptionError`` where it is no Parquet file."""
    start = size - TRAILER - int.from_bytes(end[:4], "little")
    if len(end) != TRAILER or end[4:] != MAGIC or start < len(MAGIC):
        raise CorruptionError(f"{name} does not end as a Parquet file does.")
    return start


Fetch = Callable[[int, int], bytes]
"""Gives the bytes of the file from an offset on, so many."""


def read_row_group(
    group: RowGroup, columns: Collection[str], fetch: Fetch, held: Callable[[], str], *, whole: bool = False
) -> pa.Table:
    """These columns of a row group, fetched, checked and decoded; ``held`` is what errors say that it is.

    ``whole``: every chunk is fetched and checked, and nothing is taken from statistics.
    """
    layout, name = group.footer.layout, group.footer.name
    same = {} if whole else layout.same(group.number)
    needed = [column for column in columns if column not in same]
    source = _Chunks(
        _fetched(_chunks_to_read(group, None if whole else needed), fetch, name, held), group.footer.offset + group.footer.length
    )
    rows = layout.metadata.row_group(group.number).num_rows
    arrays: dict[str, Any] = {column: pa.repeat(same[column], rows) for column in columns if column in same}
    if needed:
        read = _decoded(source, layout, group.number, needed, name, held)
        arrays |= dict(zip(read.column_names, read.columns, strict=True))
    return pa.table([arrays[column] for column in columns], schema=pa.schema([layout.schema.field(column) for column in columns]))


def ranges_to_read(group: RowGroup, columns: Collection[str]) -> list[tuple[int, int]]:
    """From where to where the file is read for these columns of a row group."""
    same = group.footer.layout.same(group.number)
    return _ranges(_chunks_to_read(group, [column for column in columns if column not in same]))


def bounds(group: RowGroup, column: str) -> Bounds | None:
    """What statistics say of a column of a row group; None where they are of its parts, or there are none."""
    layout = group.footer.layout
    chunk = layout.metadata.row_group(group.number).column(layout.columns.index(column))
    return _bounds(chunk, layout.schema.field(column).type)


def _chunks_to_read(group: RowGroup, columns: Collection[str] | None) -> dict[int, Chunk]:
    """The chunks of these columns, or of all, by where they begin; ``CorruptionError`` where the index knows of others than the footer."""
    layout, name = group.footer.layout, group.footer.name
    if len(group.chunks) != len(layout.columns):
        raise CorruptionError(f"{name} has {len(layout.columns)} columns in its footer, and {len(group.chunks)} in its index.")
    starts = accumulate((chunk.length for chunk in group.chunks), initial=group.offset)
    placed = zip(layout.columns, starts, group.chunks, strict=False)
    return {at: chunk for column, at, chunk in placed if columns is None or column in columns}


def check_row_group(group: RowGroup, fetch: Fetch, held: Callable[[], str]) -> None:
    """``CorruptionError`` where a chunk of a row group is not the one that its checksum is of."""
    _fetched(_chunks_to_read(group, None), fetch, group.footer.name, held)


def _fetched(chunks: Mapping[int, Chunk], fetch: Fetch, name: str, held: Callable[[], str]) -> dict[int, memoryview]:
    """The bytes of chunks by where they begin, each as its checksum says."""
    found: dict[int, memoryview] = {}
    for start, stop in _ranges(chunks):
        data = memoryview(fetch(start, stop - start))
        if len(data) != stop - start:
            raise TruncatedObject(f"{name} ends within {held()}.")
        for at, chunk in chunks.items():
            if start <= at < stop:
                part = data[at - start : at - start + chunk.length]
                if zlib.crc32(part) != chunk.checksum:
                    raise CorruptionError(f"{name} is damaged: the checksum of {held()} does not match.")
                found[at] = part
    return found


def _ranges(chunks: Mapping[int, Chunk]) -> list[tuple[int, int]]:
    ranges: list[tuple[int, int]] = []
    for at, chunk in sorted(chunks.items()):
        if ranges and at - ranges[-1][1] <= _NEIGHBOURS:
            ranges[-1] = (ranges[-1][0], at + chunk.length)
        else:
            ranges.append((at, at + chunk.length))
    return ranges


def _decoded(
    source: _Chunks, layout: Layout, number: int, columns: Sequence[str], name: str, held: Callable[[], str]
) -> pa.Table:
    pq = parquet_library()
    try:
        with pq.ParquetFile(pa.PythonFile(source, mode="r"), metadata=layout.metadata, pre_buffer=False) as file:
            return file.read_row_group(number, columns=columns, use_threads=False)
    except (pa.ArrowException, OSError, ValueError, IndexError) as error:
        raise CorruptionError(f"{name} holds {held()}, which cannot be read: {error}.") from None


class _Chunks:
    """The checked chunks of a file as a file object that has nothing else: a footer that points elsewhere reads nothing."""

    closed = False

    def __init__(self, chunks: Mapping[int, memoryview], size: int) -> None:
        self._chunks = chunks
        self._size = size
        self._at = 0

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to an offset from the start, or from the end of the file."""
        self._at = offset + (self._size if whence == os.SEEK_END else 0)
        return self._at

    def tell(self) -> int:
        """Where it is."""
        return self._at

    def read(self, length: int = -1) -> memoryview:
        """The next bytes, of one chunk."""
        for start, data in self._chunks.items():
            if start <= self._at and self._at + length <= start + len(data) and length >= 0:
                part = data[self._at - start : self._at - start + length]
                self._at += length
                return part
        raise OSError(f"{length} bytes at {self._at} are not of the chunks that were asked for")

    def close(self) -> None:
        """Nothing is open."""

    def readable(self) -> bool:
        """Yes."""
        return True

    def seekable(self) -> bool:
        """Yes."""
        return True

    def writable(self) -> bool:
        """No."""
        return False
