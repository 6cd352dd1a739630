"""Row groups: the columns of a Parquet file's rows, each chunk checked before anything of it is decoded.

Parquet says where a file's chunks lie, and nothing that fixes their bytes: whoever stores the file also keeps what ``Chunk`` says of each,
and the digest of the footer. A reader fetches the chunks of the columns that it needs, neighbours in one range, and the decoder is given
these and no other byte of the file.
"""

from __future__ import annotations

import os
import zlib
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import Any, NamedTuple

import pyarrow as pa

from .. import limits
from ..errors import CorruptionError, TruncatedObject
from ..model.arrays import repeated
from .expanding import expanded
from .footers import MISREAD, Fetch, Footer, parquet_library, said_by
from .pages import read_pages
from .statistics import ColumnStatistics, Statistics, one_value

_LEVELS = 4
"""What the levels of a value take."""
_NEIGHBOURS = 128 << 10
"""A gap between two chunks that is read along, rather than to ask twice."""


class Chunk(NamedTuple):
    """The bytes of one column of a row group: how many there are, and their CRC-32. Chunks lie side by side in the order of the columns."""

    length: int
    checksum: int


@dataclass(frozen=True, slots=True)
class RowGroup:
    """One of the row groups of a file: its number, where its first chunk begins, and what the index says of all of its chunks."""

    number: int
    offset: int
    lengths: tuple[int, ...]
    checksums: tuple[int, ...]
    footer: Footer
    statistics: Statistics

    @classmethod
    def of(cls, number: int, entry: Any, footer: Footer) -> RowGroup:
        """The one that an entry of an index is about."""
        statistics = Statistics(entry.statistics.SerializeToString())
        return cls(number, entry.offset, tuple(entry.lengths), tuple(entry.checksums), footer, statistics)


def read_row_groups(
    groups: Sequence[RowGroup], columns: Collection[str], fetch: Fetch, held: Callable[[], str], *, whole: bool = False
) -> pa.Table:
    """These columns of row groups of one file, fetched, checked and decoded; ``held`` is what errors say that they are.

    Those side by side of which the same columns have to be read are decoded together, and count as one where it is bounded what they
    come to. ``whole``: every chunk is fetched and checked, and nothing is taken from statistics, which must be true.
    """
    layout = groups[0].footer.layout
    schema = pa.schema([layout.schema.field(column) for column in columns])
    known = [{} if whole else _same(group, frozenset(columns)) for group in groups]
    tables = []
    for _, alike in groupby(zip(groups, known, strict=True), key=lambda each: each[1].keys()):
        some, same = zip(*alike, strict=True)
        arrays = _read_alike(some, columns, same, fetch, held, whole=whole)
        tables.append(pa.table([arrays[column] for column in columns], schema=schema))
    return tables[0] if len(tables) == 1 else pa.concat_tables(tables)


def _read_alike(
    groups: Sequence[RowGroup],
    columns: Collection[str],
    same: Sequence[Mapping[str, pa.Scalar]],
    fetch: Fetch,
    held: Callable[[], str],
    *,
    whole: bool,
) -> dict[str, Any]:
    """The columns of row groups, which of some hold the ``same`` value throughout, whatever that is in each."""
    name = groups[0].footer.name
    rows = [rows_of(group) for group in groups]
    needed = [column for column in columns if column not in same[0]]
    known = sum(_size(value) * count for each, count in zip(same, rows, strict=True) for value in each.values())
    if known > limits.GROUP_BYTES:
        raise CorruptionError(f"{name} holds {held()}, which by its statistics come to {known} bytes: no row group has so many.")
    chunks: dict[int, memoryview] = {}
    for group in groups:
        chunks |= _fetched(_chunks_to_read(group, None if whole else frozenset(needed)), fetch, name, held)
    arrays: dict[str, Any] = {column: _throughout([each[column] for each in same], rows) for column in same[0]}
    if needed:
        arrays |= _decoded(groups, chunks, needed, rows, known, held)
    if whole:
        for group, start, count in zip(groups, accumulate(rows, initial=0), rows, strict=False):
            for column, said, kind in _said(group, needed):
                if not ColumnStatistics.of(said, kind, count).allow(arrays[column].slice(start, count)):
                    raise CorruptionError(f"{name} has statistics of the column {column!r} that are not of {held()}.")
    return arrays


def _size(value: pa.Scalar) -> int:
    """What a row has of a value that all have."""
    return int(pa.repeat(value, 1).nbytes)


def _throughout(values: Sequence[pa.Scalar], rows: Sequence[int]) -> pa.Array:
    """Each of the values for so many rows."""
    if all(value == values[0] for value in values):
        return repeated(values[0], sum(rows))
    return pa.concat_arrays(list(map(repeated, values, rows)))


def _said(group: RowGroup, columns: Collection[str]) -> Iterator[tuple[str, Any, pa.DataType]]:
    """What statistics say of each of these columns of a row group that has no parts, and its type."""
    layout, name = group.footer.layout, group.footer.name
    try:
        said = group.statistics.chunks
    except ValueError as error:
        raise CorruptionError(f"{name} has no readable statistics: {error}.") from None
    if not said:
        return
    if len(said) != len(layout.leaves):
        raise CorruptionError(
            f"{name} has {len(layout.leaves)} columns in its footer, and statistics of {len(said)} in its index."
        )
    for column in columns:
        at = layout.places.get(column)
        if at is not None:
            kind = layout.leaves[at].kind
            assert kind is not None
            yield column, said[at], kind


def _same(group: RowGroup, columns: Collection[str]) -> dict[str, pa.Scalar]:
    """Those of the columns that hold one value throughout a row group, or nothing but nulls, with what they hold: they need not be read."""
    rows = rows_of(group)
    found = ((name, one_value(said, kind, rows)) for name, said, kind in _said(group, columns))
    return {name: value for name, value in found if value is not None}


def rows_of(group: RowGroup) -> int:
    """How many rows a row group has; ``CorruptionError`` where there is none, or it has more than any has."""
    layout = group.footer.layout
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


def column_statistics(group: RowGroup, column: str) -> ColumnStatistics | None:
    """What statistics say of a column of a row group; None where they are of its parts, or there are none."""
    rows = rows_of(group)
    return next((ColumnStatistics.of(said, kind, rows) for _, said, kind in _said(group, [column])), None)


def _chunks_to_read(group: RowGroup, columns: Collection[str] | None) -> dict[int, Chunk]:
    """The chunks of these columns, or of all, by where they begin; ``CorruptionError`` where the index knows of others than the footer."""
    layout, name = group.footer.layout, group.footer.name
    if not len(group.lengths) == len(group.checksums) == len(layout.leaves):
        raise CorruptionError(f"{name} has {len(layout.leaves)} columns in its footer, and {len(group.lengths)} in its index.")
    placed = zip(layout.leaves, _starts(group), group.lengths, group.checksums, strict=False)
    return {at: Chunk(*said) for leaf, at, *said in placed if columns is None or leaf.column in columns}


def _starts(group: RowGroup) -> Iterator[int]:
    """Where each chunk begins, and where the last one ends."""
    return accumulate(group.lengths, initial=group.offset)


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
    groups: Sequence[RowGroup],
    chunks: Mapping[int, memoryview],
    columns: Sequence[str],
    rows: Sequence[int],
    known: int,
    held: Callable[[], str],
) -> dict[str, Any]:
    """These columns of row groups from the checked bytes of their chunks, once it is known that they, and what is ``known``, are not more
    bytes than a row group has.
    """
    pq, footer = parquet_library(), groups[0].footer
    layout = footer.layout
    try:
        texts, dictionaries = _measured(groups, chunks, frozenset(columns), rows, known)
        source = pa.PythonFile(_Chunks(chunks, footer.offset + footer.length), mode="r")
        with pq.ParquetFile(source, metadata=layout.metadata, pre_buffer=False, read_dictionary=dictionaries) as file:
            read = file.read_row_groups([group.number for group in groups], columns=columns, use_threads=False)
        return expanded(read, layout.schema, texts)
    except (*MISREAD, pa.ArrowException, OSError) as error:
        raise CorruptionError(f"{footer.name} holds {held()}, which cannot be read: {said_by(error)}.") from None


def _measured(
    groups: Sequence[RowGroup], chunks: Mapping[int, memoryview], columns: frozenset[str], rows: Sequence[int], known: int
) -> tuple[set[str], list[str]]:
    """Which of these columns have texts or bytes in them, and the paths of those whose dictionaries may come to much.

    ``ValueError`` where all else comes, with what is ``known``, to more than a row group does.
    """
    texts: set[str] = set()
    dictionaries: set[str] = set()
    total, expanded_size = known, 0
    for group, count in zip(groups, rows, strict=True):
        for leaf, at in zip(group.footer.layout.leaves, _starts(group), strict=False):
            if leaf.column not in columns:
                continue
            pages = read_pages(chunks[at])
            if not leaf.is_repeated and pages.values != count:
                raise ValueError(f"{leaf.path} has {pages.values} values in {count} rows")
            total += pages.uncompressed + pages.values * (leaf.width + _LEVELS)
            if total > limits.GROUP_BYTES:
                raise ValueError(f"it comes to {total} bytes, and no row group to more than {limits.GROUP_BYTES}")
            if leaf.is_text:
                texts.add(leaf.column)
                largest = pages.dictionary * pages.values  # as if one text were all of the dictionary
                if expanded_size + largest > limits.GROUP_BYTES // 4:
                    dictionaries.add(leaf.path)
                else:
                    expanded_size += largest
    return texts, sorted(dictionaries)


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
