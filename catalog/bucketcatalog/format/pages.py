"""The headers of the pages of a column chunk: what decoding it takes, known before anything of it is decoded.

A decoder believes page headers. Pages can be a thousand times as large as their bytes once they are decompressed, and so can dictionaries
that are expanded, and prefixes that are used again and again.
"""

from __future__ import annotations

from typing import NamedTuple

from .thrift import Data, Struct, read_struct

_TYPE, _UNCOMPRESSED, _COMPRESSED = 1, 2, 3
_DATA, _DICTIONARY, _DATA_V2 = 0, 2, 3
_HEADERS = {_DATA: (5, 2), _DICTIONARY: (7, 2), _DATA_V2: (8, 4)}
"""Of each type of page the field that is its own header, and where that has the encoding."""
_LONGEST = 1 << 20
"""Of the headers of pages, which have statistics in them."""
_VALUES = 1
_DELTA_BYTE_ARRAY = 7


class Pages(NamedTuple):
    """What the pages of a chunk say: their bytes without compression, their values, and whether they have a dictionary."""

    uncompressed: int
    values: int
    has_dictionary: bool


def read_pages(chunk: Data) -> Pages:
    """What the pages of a chunk say; ``ValueError`` or ``IndexError`` where it is not made of pages, or of some that are not read."""
    at = uncompressed = values = 0
    has_dictionary = False
    while at < len(chunk):
        header, length = read_struct(chunk[at : at + _LONGEST], 0)
        at += length
        kind, size, length = (_number(header, field) for field in (_TYPE, _UNCOMPRESSED, _COMPRESSED))
        if kind not in _HEADERS:
            raise ValueError(f"a page is of type {kind}")
        field, encoding = _HEADERS[kind]
        of = header[field]
        if kind == _DICTIONARY:
            has_dictionary = True
        else:
            values += _number(of, _VALUES)
        if of.get(encoding) == _DELTA_BYTE_ARRAY:
            raise ValueError("it has the encoding DELTA_BYTE_ARRAY, of which nobody can say how much it comes to")
        uncompressed += size
        at += length
    if at != len(chunk):
        raise ValueError("its last page is cut off")
    return Pages(uncompressed, values, has_dictionary)


def _number(of: Struct, field: int) -> int:
    value = of[field]
    if not isinstance(value, int) or not 0 <= value < 1 << 31:
        raise ValueError(f"a page claims {value!r}")
    return value
