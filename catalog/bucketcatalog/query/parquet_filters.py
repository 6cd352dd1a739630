"""Bloom filters as Parquet files have them: which columns can have one here, what their values hash to, and the bits among a file's bytes.

What is hashed is the plain encoding of a value in the type that Parquet stores it as, so a value is looked for by the type that a file has
its column in. Where the bytes of a filter lie a footer says, and these begin with a header. Source: Parquet's format, "Bloom Filter".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from ..format.thrift import Struct, read_struct
from ..model.bloom import Hashes, KeyFilter, hash_keys

HEADER_BYTES = 64
"""More than a header takes."""
_SIZE = 1
_IN_SPLIT_BLOCKS_BY_XXH64_UNCOMPRESSED: Struct = {2: {1: {}}, 3: {1: {}}, 4: {1: {}}}
"""Algorithm, hash and compression: of each there is one, and what another release of Parquet adds is passed over."""


def stored_as(kind: pa.DataType) -> str | None:
    """What Parquet stores a column of the type as, of those that can have a filter here: whole numbers, text and bytes; None for others."""
    if pa.types.is_integer(kind):
        return "INT64" if kind.bit_width == 64 else "INT32"
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return "BYTE_ARRAY"
    return "FIXED_LEN_BYTE_ARRAY" if pa.types.is_fixed_size_binary(kind) else None


def hashes_of(values: Iterable[Any], kind: pa.DataType) -> Hashes:
    """The hashes of values in a column of the type, whole numbers or bytes; numbers that it cannot have are left out."""
    return hash_keys(pa.array(_plain(values, kind), pa.binary()))


def _plain(values: Iterable[Any], kind: pa.DataType) -> list[bytes]:
    if not pa.types.is_integer(kind):
        return list(values)
    is_signed = pa.types.is_signed_integer(kind)
    low, high = (-(1 << kind.bit_width - 1), (1 << kind.bit_width - 1) - 1) if is_signed else (0, (1 << kind.bit_width) - 1)
    size = 8 if kind.bit_width == 64 else 4
    return [value.to_bytes(size, "little", signed=is_signed) for value in values if low <= value <= high]


def parse_filter(data: bytes) -> KeyFilter | None:
    """The filter of which these are the bytes in a file, header and bits; None for any other bytes, and for one that is made otherwise."""
    try:
        header, at = read_struct(data[:HEADER_BYTES], 0)
        found = KeyFilter.parse(data[at:])
    except (ValueError, IndexError):
        return None
    return found if header == {_SIZE: len(data) - at, **_IN_SPLIT_BLOCKS_BY_XXH64_UNCOMPRESSED} else None
