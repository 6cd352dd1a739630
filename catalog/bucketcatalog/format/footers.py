"""The footer of a Parquet file: where it lies, whether it is the one that was meant, and what it says of the file's columns.

A large one is looked through before a library makes objects of it: of a chunk of three bytes it makes one of several hundred.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from .. import limits
from ..errors import CorruptionError
from .thrift import LIST, STRUCT, read_fields, read_list, read_struct, skip_fields

if TYPE_CHECKING:
    from pyarrow.parquet import FileMetaData

MAGIC = b"PAR1"
TRAILER = 8
"""The length of the footer, and the magic number: a Parquet file ends with these."""
MISREAD = (ValueError, IndexError, KeyError, TypeError, OverflowError)
"""What reading a struct raises that is none, or is not what it should be."""
_ARROW_SCHEMA = b"ARROW:schema"
_SMALL_FOOTER = 1 << 20
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 8, "FLOAT": 4, "DOUBLE": 8, "BYTE_ARRAY": 4}
_SCHEMA, _ROW_GROUPS = 2, 4
_CHILDREN = 5
_COLUMNS = 1
Fetch = Callable[[int, int], bytes]
"""Gives the bytes of the file from an offset on, so many."""


@cache
def parquet_library() -> Any:
    """Arrow's Parquet library, imported once somebody needs it: that takes as long as a small command that reads no segment."""
    return import_module("pyarrow.parquet")


class Leaf(NamedTuple):
    """A column of values, which is a column of the file or a part of one: of which, its path, and how much a value takes, at least.

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

    @cached_property
    def places(self) -> dict[str, int]:
        """Which leaf each column is that has no parts."""
        return {leaf.column: at for at, leaf in enumerate(self.leaves) if leaf.kind is not None}


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
                _check_chunks(self._data)
            file = pq.ParquetFile(
                pa.BufferReader(MAGIC + self._data), pre_buffer=False, thrift_container_size_limit=limits.ROW_GROUPS
            )
            if _ARROW_SCHEMA in (file.metadata.metadata or {}):
                raise ValueError(f"it says {_ARROW_SCHEMA.decode()}, by which columns have other types")
            if len({*file.schema_arrow.names}) < len(file.schema_arrow.names):
                raise ValueError("several of its columns have one name")
            return Layout(self.name, file.metadata, file.schema_arrow, tuple(_leaves(file.metadata, file.schema_arrow)))
        except (*MISREAD, pa.ArrowException, OSError) as error:
            raise _unreadable(self.name, error) from None


def _leaves(metadata: Any, schema: pa.Schema) -> Iterator[Leaf]:
    for column in map(metadata.schema.column, range(metadata.num_columns)):
        width = _WIDTHS.get(column.physical_type) or column.length
        is_text = column.physical_type == "BYTE_ARRAY"
        name = column.path.partition(".")[0]
        kind = schema.field(name).type if name == column.path else None
        yield Leaf(name, column.path, width, column.max_repetition_level > 0, is_text, kind)


def _unreadable(name: str, error: Exception) -> CorruptionError:
    return CorruptionError(f"{name} has no readable footer: {said_by(error)}.")


def said_by(error: Exception) -> str:
    """What the error says, as the end of a sentence."""
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


def _check_chunks(footer: bytes) -> None:
    """``ValueError`` or ``IndexError`` where a footer has not so many chunks as its schema says, or more than a segment has."""
    _, at = read_fields(footer, 0, before=_SCHEMA)
    elements, at = _structs(footer, at)
    columns = 0
    for _ in range(elements):
        element, at = read_struct(footer, at)
        columns += not element.get(_CHILDREN)
    _, at = read_fields(footer, at, after=_SCHEMA, before=_ROW_GROUPS)
    row_groups, at = _structs(footer, at)
    if row_groups * columns > limits.CHUNKS:
        raise ValueError(f"{row_groups} row groups of {columns} columns are more than a segment has")
    for number in range(row_groups):
        _, at = read_fields(footer, at, before=_COLUMNS)
        count, at = _structs(footer, at)
        if count != columns:
            raise ValueError(f"row group {number} has {count} columns, and the schema {columns}")
        for _ in range(count):
            at = skip_fields(footer, at)
        at = skip_fields(footer, at)


def _structs(data: bytes, at: int) -> tuple[int, int]:
    """How many structs a field that begins there is a list of, and where the first one begins."""
    kind, count, start = read_list(data, at + 1)
    if data[at] & 15 != LIST or kind != STRUCT:
        raise ValueError("what should be a list is none")
    if count > limits.COLUMNS:
        raise ValueError(f"a list has {count} items")
    return count, start
