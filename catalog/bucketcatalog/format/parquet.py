"""Row groups: the columns of a Parquet file's rows, each chunk checked before anything of it is decoded.

Parquet says where a file's chunks lie, and nothing that fixes their bytes: whoever stores the file also keeps what ``Chunk`` says of each,
and the digest of the footer. A reader fetches the chunks of the columns that it needs, neighbours in one range, and the decoder is given
these and no other byte of the file.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from itertools import accumulate
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from .. import limits
from ..errors import CorruptionError, TruncatedObject
from .expanding import expanded
from .footers import check_chunks
from .pages import read_pages
from .statistics import Bounds, one_value, read_statistics

if TYPE_CHECKING:
    from pyarrow.parquet import FileMetaData

MAGIC = b"PAR1"
TRAILER = 8
"""The length of the footer, and the magic number: a Parquet file ends with these."""
_NONE = (ValueError, IndexError, KeyError, TypeError, OverflowError)
"""What reading a struct raises that is none, or is not what it should be."""
_ARROW_SCHEMA = b"ARROW:schema"
_SMALL_FOOTER = 1 << 20
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 8, "FLOAT": 4, "DOUBLE": 8, "BYTE_ARRAY": 4}
_LEVELS = 4
"""What the levels of a value take."""
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
    """One of the row groups of a file: its number, where its first chunk begins, all of its chunks, and the file's footer.

    ``statistics`` is a message about the values of the chunks, empty where nothing is known of them.
    """

    number: int
    offset: int
    chunks: tuple[Chunk, ...]
    footer: Footer
    statistics: bytes = b""


class Leaf(NamedTuple):
    """A column of values, which is a column of the file or a part of one: which, its path, and how much a value of it takes, at least.

    ``kind`` is the column's type where that has no parts.
    """

    column: str
    path: str
    width: int
    is_repeated: bool
    is_text: bool
    kind: pa.DataType | None


@dataclass(frozen=True)
class Layout:
    """What a footer says: the file's columns, and for each chunk of a row group the column that it is of, or is a part of."""

    name: str
    metadata: FileMetaData
    schema: pa.Schema
    leaves: tuple[Leaf, ...]

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The column that each chunk of a row group is of, or is a part of."""
        return tuple(leaf.column for leaf in self.leaves)


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
        """What it says; ``CorruptionError`` where it cannot be parsed, or has more in it than a segment's footer has."""
        pq = parquet_library()
        assert self._data is not None
        try:
            if len(self._data) > limits.FOOTER_BYTES:
                raise ValueError(f"it has {len(self._data)} bytes")
            if len(self._data) > _SMALL_FOOTER:
                check_chunks(self._data)
            file = pq.ParquetFile(
                pa.BufferReader(MAGIC + self._data), pre_buffer=False, thrift_container_size_limit=limits.ROW_GROUPS
            )
            if _ARROW_SCHEMA in (file.metadata.metadata or {}):
                raise ValueError(f"it says {_ARROW_SCHEMA.decode()}, by which columns have other types")
            if len({*file.schema_arrow.names}) < len(file.schema_arrow.names):
                raise ValueError("several of its columns have one name")
            return Layout(self.name, file.metadata, file.schema_arrow, tuple(_leaves(file.metadata, file.schema_arrow)))
        except (*_NONE, pa.ArrowException, OSError) as error:
            raise _unreadable(self.name, error) from None


def _leaves(metadata: Any, schema: pa.Schema) -> Iterator[Leaf]:
    for column in map(metadata.schema.column, range(metadata.num_columns)):
        width = _WIDTHS.get(column.physical_type) or column.length
        is_text = column.physical_type == "BYTE_ARRAY"
        name = column.path.partition(".")[0]
        kind = schema.field(name).type if name == column.path else None
        yield Leaf(name, column.path, width, column.max_repetition_level > 0, is_text, kind)


def _unreadable(name: str, error: Exception) -> CorruptionError:
    return CorruptionError(f"{name} has no readable footer: {_said_by(error)}.")


def _said_by(error: Exception) -> str:
    return f"{error} is missing" if isinstance(error, KeyError) else str(error).strip().rstrip(".")


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

    ``whole``: every chunk is fetched and checked, and nothing is taken from statistics, which must be true.
    """
    layout, name = group.footer.layout, group.footer.name
    same = {} if whole else _same(group, frozenset(columns))
    needed = [column for column in columns if column not in same]
    chunks = _fetched(_chunks_to_read(group, None if whole else frozenset(needed)), fetch, name, held)
    rows = _rows_of(group, layout)
    arrays: dict[str, Any] = {column: pa.repeat(same[column], rows) for column in columns if column in same}
    if needed:
        arrays |= _decoded(group, chunks, needed, rows, held)
    for column, said, kind in _said(group, needed if whole else ()):
        if not Bounds.of(said, kind, rows).allow(arrays[column]):
            raise CorruptionError(f"{name} has statistics of the column {column!r} that are not of {held()}.")
    return pa.table([arrays[column] for column in columns], schema=pa.schema([layout.schema.field(column) for column in columns]))


def _said(group: RowGroup, columns: Collection[str]) -> Iterator[tuple[str, Any, pa.DataType]]:
    """What statistics say of each of these columns of a row group that has no parts, and its type."""
    try:
        said = read_statistics(group.statistics)
    except ValueError as error:
        raise CorruptionError(f"{group.footer.name} has no readable statistics: {error}.") from None
    for leaf, one in zip(group.footer.layout.leaves, said, strict=False):
        if leaf.kind is not None and leaf.column in columns:
            yield leaf.column, one, leaf.kind


def _same(group: RowGroup, columns: Collection[str]) -> dict[str, pa.Scalar]:
    """Those of the columns that hold one value throughout a row group, or nothing but nulls, with what they hold: they need not be read."""
    rows = _rows_of(group, group.footer.layout)
    found = ((name, one_value(said, kind, rows)) for name, said, kind in _said(group, columns))
    return {name: value for name, value in found if value is not None}


def _rows_of(group: RowGroup, layout: Layout) -> int:
    """How many rows a row group has; ``CorruptionError`` where there is none, or it has more than any has."""
    if group.number >= layout.metadata.num_row_groups:
        raise CorruptionError(
            f"{layout.name} has {layout.metadata.num_row_groups} row groups in its footer, and more in its index."
        )
    rows = layout.metadata.row_group(group.number).num_rows
    if not 0 < rows <= limits.GROUP_ROWS:
        raise CorruptionError(f"{layout.name} claims a row group of {rows} rows; it may have {limits.GROUP_ROWS}.")
    return int(rows)


def ranges_to_read(group: RowGroup, columns: Collection[str]) -> list[tuple[int, int]]:
    """From where to where the file is read for these columns of a row group."""
    same = _same(group, columns)
    return _ranges(_chunks_to_read(group, [column for column in columns if column not in same]))


def bounds(group: RowGroup, column: str) -> Bounds | None:
    """What statistics say of a column of a row group; None where they are of its parts, or there are none."""
    rows = _rows_of(group, group.footer.layout)
    return next((Bounds.of(said, kind, rows) for _, said, kind in _said(group, [column])), None)


def _chunks_to_read(group: RowGroup, columns: Collection[str] | None) -> dict[int, Chunk]:
    """The chunks of these columns, or of all, by where they begin; ``CorruptionError`` where the index knows of others than the footer."""
    layout, name = group.footer.layout, group.footer.name
    if len(group.chunks) != len(layout.leaves):
        raise CorruptionError(f"{name} has {len(layout.leaves)} columns in its footer, and {len(group.chunks)} in its index.")
    placed = zip(layout.leaves, _starts(group), group.chunks, strict=False)
    return {at: chunk for leaf, at, chunk in placed if columns is None or leaf.column in columns}


def _starts(group: RowGroup) -> Iterator[int]:
    """Where each chunk begins, and where the last one ends."""
    return accumulate((chunk.length for chunk in group.chunks), initial=group.offset)


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
    group: RowGroup, chunks: Mapping[int, memoryview], columns: Sequence[str], rows: int, held: Callable[[], str]
) -> dict[str, Any]:
    """These columns of a row group from the checked bytes of its chunks, once it is known that they are not more than a row group has."""
    pq, layout, footer = parquet_library(), group.footer.layout, group.footer
    try:
        texts, dictionaries = _measured(group, chunks, frozenset(columns), rows)
        source = pa.PythonFile(_Chunks(chunks, footer.offset + footer.length), mode="r")
        with pq.ParquetFile(source, metadata=layout.metadata, pre_buffer=False, read_dictionary=dictionaries) as file:
            read = file.read_row_group(group.number, columns=columns, use_threads=False)
        return expanded(read, layout.schema, texts)
    except (*_NONE, pa.ArrowException, OSError) as error:
        raise CorruptionError(f"{footer.name} holds {held()}, which cannot be read: {_said_by(error)}.") from None


def _measured(
    group: RowGroup, chunks: Mapping[int, memoryview], columns: frozenset[str], rows: int
) -> tuple[set[str], list[str]]:
    """Which of these columns have texts or bytes in them, and the paths of those whose dictionaries may come to much.

    ``ValueError`` where all else comes to more than a row group does.
    """
    texts, dictionaries, total, expanded_size = set(), [], 0, 0
    for leaf, at in zip(group.footer.layout.leaves, _starts(group), strict=False):
        if leaf.column not in columns:
            continue
        pages = read_pages(chunks[at])
        if not leaf.is_repeated and pages.values != rows:
            raise ValueError(f"{leaf.path} has {pages.values} values in {rows} rows")
        total += pages.uncompressed + pages.values * (leaf.width + _LEVELS)
        if total > limits.GROUP_BYTES:
            raise ValueError(f"it comes to {total} bytes, and no row group to more than {limits.GROUP_BYTES}")
        if leaf.is_text:
            texts.add(leaf.column)
            largest = pages.dictionary * pages.values  # as if one text were all of the dictionary
            if expanded_size + largest > limits.GROUP_BYTES // 4:
                dictionaries.append(leaf.path)
            else:
                expanded_size += largest
    return texts, dictionaries


class _Chunks:
    """The checked chunks of a file as a file object that has nothing else: a footer that points elsewhere reads nothing."""

    closed = False

    def __init__(self, chunks: Mapping[int, memoryview], size: int) -> None:
        self._starts = sorted(chunks)
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
        place = bisect_right(self._starts, self._at) - 1
        if place >= 0:
            start, data = self._starts[place], self._chunks[self._starts[place]]
            if length >= 0 and self._at + length <= start + len(data):
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
