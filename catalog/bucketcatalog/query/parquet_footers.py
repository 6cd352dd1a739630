"""Footers of Parquet files that anybody may have written, or damaged: looked through before Arrow's library makes objects of them.

That library checks part of what a footer says of a column only when it is asked for the column, and through Python that ends the process.
So all of that is checked here first, and whatever is wrong is an error. Source: Parquet's format, ``parquet.thrift``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from ..format.footers import MAGIC, TRAILER, footer_start, parquet_library
from ..format.thrift import BINARY, I32, I64, LIST, STRUCT, Known, read_known, read_list

if TYPE_CHECKING:
    from pyarrow.parquet import FileMetaData

Fetch = Callable[[int, int], bytes]
"""The bytes of a file at an offset, of a length."""
_AT_ONCE = 64 << 10
"""What is read of a file's end before it is known how long the footer is."""
_DEEPEST = 200
"""Columns within each other: the library goes from one to the next on the stack."""
_BYTE_ARRAY, _FIXED = 6, 7
_WIDTHS = {0: 1, 1: 4, 2: 8, 4: 4, 5: 8}
"""How many bytes a least or greatest value takes, by physical type; of INT96 none is decoded."""
_REQUIRED, _OPTIONAL, _REPEATED = range(3)

# What is known of each struct: what is checked, and every list, since the library takes its items for what it knows.
_TYPE, _LENGTH, _REPETITION, _CHILDREN = 1, 2, 3, 5
_ELEMENT: Known = {_TYPE: I32, _LENGTH: I32, _REPETITION: I32, _CHILDREN: I32}
_ENDS = (1, 2, 5, 6)
_STATISTICS: Known = dict.fromkeys(_ENDS, BINARY)
_UNENCODED, _REPETITION_LEVELS, _DEFINITION_LEVELS = 1, 2, 3
_SIZES: Known = {_UNENCODED: I64, _REPETITION_LEVELS: [I64], _DEFINITION_LEVELS: [I64]}
_CHUNK_STATISTICS, _CHUNK_SIZES = 12, 16
_CHUNK_METADATA: Known = {
    _TYPE: I32,
    2: [I32],
    3: [BINARY],
    8: [{}],
    _CHUNK_STATISTICS: _STATISTICS,
    13: [{}],
    _CHUNK_SIZES: _SIZES,
    17: {2: [I32]},
}
_METADATA, _CRYPTO = 3, 8
_CHUNK: Known = {_METADATA: _CHUNK_METADATA, _CRYPTO: {}}
_CHUNKS = 1
_ROW_GROUP: Known = {4: [{}]}
_SCHEMA, _ROW_GROUPS = 2, 4
_FILE: Known = {_SCHEMA: [_ELEMENT], 5: [{}], 7: [{}]}


class _Leaf(NamedTuple):
    """What the schema says of the chunks of a column: their physical type, the bytes of a value, and the largest levels."""

    kind: int
    width: int | None
    repetition: int
    definition: int


def read_metadata(fetch: Fetch, size: int, name: str, *, decoded: bool) -> FileMetaData:
    """The footer of a file of that size, as the library has it, of which every column can be asked for.

    ``decoded`` says that the least and greatest values will be, too; files of some writers have shortened ones, which cannot be.
    ``CorruptionError``, ``ValueError``, ``IndexError`` or what the library raises for one that is none.
    """
    end = fetch(size - min(size, _AT_ONCE), min(size, _AT_ONCE)) if size else b""
    start = footer_start(end[-TRAILER:], size, name)
    missing = size - start - len(end)
    footer = fetch(start, missing) + end if missing > 0 else end[-(size - start) :]
    check_footer(footer, decoded=decoded)
    return parquet_library().read_metadata(pa.BufferReader(MAGIC + footer))


def check_footer(footer: bytes, *, decoded: bool) -> None:
    """``ValueError`` or ``IndexError`` for a footer of which not every column can be asked for; see ``read_metadata``."""
    head, at = read_known(footer, 0, _FILE, before=_ROW_GROUPS)
    leaves = list(_leaves(head.get(_SCHEMA, [])))
    count, at = _structs(footer, at)
    for number in range(count):
        _, at = read_known(footer, at, _ROW_GROUP, before=_CHUNKS)
        columns, at = _structs(footer, at)
        if columns != len(leaves):
            raise ValueError(f"row group {number} has {columns} columns, and the schema {len(leaves)}")
        for place, leaf in enumerate(leaves):
            chunk, at = read_known(footer, at, _CHUNK)
            at += 1
            if (why := _wrong(chunk, leaf, decoded=decoded)) is not None:
                raise ValueError(f"column {place} of row group {number} {why}")
        _, at = read_known(footer, at, _ROW_GROUP, after=_CHUNKS)
        at += 1
    read_known(footer, at, _FILE, after=_ROW_GROUPS)


def _structs(data: bytes, at: int) -> tuple[int, int]:
    """How many structs a field that begins there is a list of, and where the first one begins."""
    kind, count, start = read_list(data, at + 1)
    if not data[at] >= 16 or data[at] & 15 != LIST or (count and kind != STRUCT):
        raise ValueError("what should be a list is none")
    return count, start


def _leaves(elements: Sequence[dict[int, Any]]) -> Iterator[_Leaf]:
    """The columns of values, in the order in which row groups have their chunks; ``ValueError`` for a schema that is no tree."""
    left = [elements[0].get(_CHILDREN, 0) if elements else 0]
    levels = [(0, 0)]  # largest levels of repetition and definition within each that is not complete
    for element in elements[1:]:
        while left and left[-1] == 0:
            left.pop()
            levels.pop()
        if not left:
            raise ValueError("its schema has columns that are within none")
        left[-1] -= 1
        repetition, definition = levels[-1]
        kind = element.get(_REPETITION, _REQUIRED)
        if kind not in (_REQUIRED, _OPTIONAL, _REPEATED):
            raise ValueError("its schema has a column that is neither required nor optional nor repeated")
        repetition, definition = repetition + (kind == _REPEATED), definition + (kind != _REQUIRED)
        children = element.get(_CHILDREN, 0)
        if not children and _TYPE in element:
            width = element.get(_LENGTH) if element[_TYPE] == _FIXED else _WIDTHS.get(element[_TYPE])
            yield _Leaf(element[_TYPE], width, repetition, definition)
            continue
        left.append(children)
        levels.append((repetition, definition))
        if len(left) > _DEEPEST:
            raise ValueError(f"its schema has more than {_DEEPEST} levels")
    if any(left):
        raise ValueError("its schema lacks columns")


def _wrong(chunk: dict[int, Any], leaf: _Leaf, *, decoded: bool) -> str | None:
    """What of a chunk would end the process, if anything."""
    if _CRYPTO in chunk:
        return "is encrypted"
    says = chunk.get(_METADATA, {})
    if says.get(_TYPE) != leaf.kind:
        return f"has the physical type {says.get(_TYPE)}, and in the schema {leaf.kind}"
    sizes = says.get(_CHUNK_SIZES, {})
    for name, levels, largest in (
        ("repetition", sizes.get(_REPETITION_LEVELS), leaf.repetition),
        ("definition", sizes.get(_DEFINITION_LEVELS), leaf.definition),
    ):
        if levels and levels != largest + 1:
            return f"counts {levels} {name} levels, not {largest + 1}"
    if _UNENCODED in sizes and leaf.kind != _BYTE_ARRAY:
        return "has a number of bytes in values that are no bytes"
    if decoded and leaf.width is not None and (statistics := says.get(_CHUNK_STATISTICS)):
        for end in statistics.values():
            if len(end) != leaf.width:
                return f"has a least or greatest value of {len(end)} bytes, not {leaf.width}"
    return None
