"""The headers of the pages of a column chunk: what decoding it takes, known before anything of it is decoded.

A decoder believes page headers. Pages can be a thousand times as large as their bytes once they are decompressed, and so can dictionaries
that are expanded, and prefixes that are used again and again.
"""

from __future__ import annotations

from typing import NamedTuple

from .thrift import STRUCT, Data, read_fields, skip_fields

_TYPE, _UNCOMPRESSED, _COMPRESSED = 1, 2, 3
_DATA, _DICTIONARY, _DATA_V2 = 0, 2, 3
_HEADERS = {_DATA: (5, 2), _DICTIONARY: (7, 2), _DATA_V2: (8, 4)}
"""Of each type of page the field that is its own header, and where that has the encoding."""
_FIRST_OWN = 5
_USUAL, _LONGEST = 256, 1 << 20
"""How long the headers of pages are, which may have texts in them."""
_VALUES = 1
_DELTA_BYTE_ARRAY = 7


class Pages(NamedTuple):
    """What the pages of a chunk say: their bytes without compression, those of the dictionary alone, and how many values they have."""

    uncompressed: int
    dictionary: int
    values: int


def read_pages(chunk: Data) -> Pages:
    """What the pages of a chunk say; ``ValueError`` or ``IndexError`` where it is not made of pages, or of some that are not read."""
    at = uncompressed = dictionary = values = 0
    while at < len(chunk):
        try:
            kind, size, count, length = _read_header(bytes(chunk[at : at + _USUAL]))
        except (ValueError, IndexError):
            kind, size, count, length = _read_header(bytes(chunk[at : at + _LONGEST]))
        uncompressed += size
        if kind == _DICTIONARY:
            dictionary += size
        else:
            values += count
        at += length
    if at != len(chunk):
        raise ValueError("its last page is cut off")
    return Pages(uncompressed, dictionary, values)


def _read_header(data: bytes) -> tuple[int, int, int, int]:
    """Type, size without compression, and values of the page that begins so, and its length with this header."""
    header, at = read_fields(data, 0, before=_FIRST_OWN)
    kind = header[_TYPE]
    if kind not in _HEADERS:
        raise ValueError(f"a page is of type {kind}")
    field, encoding = _HEADERS[kind]
    if data[at] != (field - max(header)) << 4 | STRUCT:
        raise ValueError("a page does not say what is in it")
    own, at = read_fields(data, at + 1, before=encoding + 1)
    if own[encoding] == _DELTA_BYTE_ARRAY:
        raise ValueError("it has the encoding DELTA_BYTE_ARRAY, of which nobody can say how much it comes to")
    stop = skip_fields(data, skip_fields(data, at))
    size, length, values = header[_UNCOMPRESSED], header[_COMPRESSED], own[_VALUES]
    for number in (size, length, values):
        if not isinstance(number, int) or not 0 <= number < 1 << 31:
            raise ValueError(f"a page claims {number!r}")
    return kind, size, values, stop + length
