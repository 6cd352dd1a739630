"""Bloom filters of files: which columns are to have one, what a file has of them, and which row groups they rule out.

A file has them as Parquet does, for engines that read it by themselves. The catalog has a copy of those that are not large, so that a plan
asks no file. Parquet has no checksum over them, so one that is to be believed has to be whole, and has to have the least and the greatest
value that the footer says: damage makes it none. Source: persistence document, section 1.1, "Statistics".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import InvalidOption
from ...model.arrays import Mask, one_chunk
from ...model.bloom import Hashes, KeyFilter, may_hold_any
from ...query.parquet_filters import HEADER_BYTES, hashes_of, parse_filter, stored_as
from .statistics import Sought, columns_of, numbered

LARGEST = 32 << 10
"""A filter of more bytes stays in the file alone: about 20,000 different values of a row group come to so many."""
LARGEST_OF_COLUMN = 1 << 20
"""What the catalog has of a file's column at most; the filters of later row groups stay in the file."""
LARGEST_OF_FILE = 16 << 20
"""And of all its columns, so that a footer which says that filters lie over each other costs no more."""
MOST_VALUES = 256
"""For more values filters are not asked: among so many one passes in nearly every row group."""
Fetch = Callable[[int, int], bytes]
"""The bytes of a file at an offset, of a length."""
_Place = tuple[int, int]


def refuse_filters(schema: pa.Schema, columns: Iterable[str], table: str) -> None:
    """``InvalidOption`` for a column that rows do not have, or of a type of which there are no filters here."""
    for name in columns:
        at = schema.get_field_index(name)
        if at < 0:
            raise InvalidOption(
                f"Rows for data table {table!r} have no column {name!r} to make Bloom filters of.",
                next_step="Name columns that all rows have.",
            )
        if stored_as(schema.field(at).type) is None:
            raise InvalidOption(
                f"Column {name!r} for data table {table!r} is of the type {schema.field(at).type}, of which there are no Bloom filters.",
                next_step="Name columns of text, bytes or whole numbers; least and greatest values are known of the others.",
            )
        if name not in columns_of(schema):
            raise InvalidOption(
                f"Column {name!r} for data table {table!r} is called as one within another: Parquet cannot tell them apart.",
                next_step="Leave it out, or give it another name.",
            )


def can_be_filtered(schema: pa.Schema, columns: Iterable[str]) -> tuple[str, ...]:
    """Those of the columns that the schema has and that can have filters, each once and in order; called as in ``columns_of``."""
    known = columns_of(schema)
    return tuple(sorted({name for name in columns if name in known and stored_as(known[name][1]) is not None}))


def filtered_columns(metadata: Any, schema: pa.Schema) -> list[str]:
    """The columns of which a file with this footer says that it has filters, of one row group or more."""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    return [
        name
        for name, (at, kind) in columns_of(schema).items()
        if stored_as(kind) is not None and any(group.column(at).bloom_filter_offset is not None for group in groups)
    ]


def read_filters(metadata: Any, schema: pa.Schema, columns: Sequence[str], size: int, fetch: Fetch) -> dict[str, Sequence[bytes]]:
    """Of columns of a file of that ``size`` the filter of each row group, as bits; empty bytes for one that is none, or is too large."""
    known = columns_of(schema)
    chunks = {
        name: [metadata.row_group(number).column(known[name][0]) for number in range(metadata.num_row_groups)] for name in columns
    }
    places: dict[str, list[_Place | None]] = {}
    left = LARGEST_OF_FILE
    for name, found in chunks.items():
        places[name] = _places(found, known[name][1], size, min(left, LARGEST_OF_COLUMN))
        left -= sum(place[1] for place in places[name] if place is not None)
    stored = _fetched({place for found in places.values() for place in found if place is not None}, fetch)
    read: dict[str, Sequence[bytes]] = {}
    for name, found in chunks.items():
        kind = known[name][1]
        bits = [
            b"" if place is None else _believed(stored[place], chunk.statistics, kind)
            for chunk, place in zip(found, places[name], strict=True)
        ]
        if any(bits):
            read[name] = bits
    return read


def _places(chunks: Sequence[Any], kind: pa.DataType, size: int, left: int) -> list[_Place | None]:
    """Offset and length of the filter of each chunk of a column, ``left`` bytes together; None where there is none that is to be read."""
    found: list[_Place | None] = []
    for chunk in chunks:
        at, length = chunk.bloom_filter_offset, chunk.bloom_filter_length
        place = None
        if at is not None and length is not None and chunk.physical_type == stored_as(kind):
            is_within = at >= 0 and 0 < length <= min(LARGEST + HEADER_BYTES, left) and at + length <= size
            place = (at, length) if is_within else None
        left -= 0 if place is None else place[1]
        found.append(place)
    return found


def _fetched(places: Iterable[_Place], fetch: Fetch) -> Mapping[_Place, bytes]:
    """The bytes at the places: of those that follow on each other, as they do where Parquet is written, with one request."""
    ordered = sorted(places)
    breaks = [at for at, (one, next_) in enumerate(pairwise(ordered), 1) if next_[0] != sum(one)]
    found: dict[_Place, bytes] = {}
    for start, stop in pairwise([0, *breaks, len(ordered)]):
        run = ordered[start:stop]
        if run:
            first = run[0][0]
            data = fetch(first, sum(run[-1]) - first)
            found |= {(at, length): data[at - first : at - first + length] for at, length in run}
    return found


def _believed(data: bytes, statistics: Any, kind: pa.DataType) -> bytes:
    """The bits of a filter; none where it is damaged, as far as that can be seen."""
    found = parse_filter(data)
    if found is None or not _is_sound(found):
        return b""
    if statistics is None or not statistics.has_min_max:
        return found.data
    ends = (statistics.min_raw, statistics.max_raw)
    if pa.types.is_unsigned_integer(kind):
        ends = tuple(end & ((1 << kind.bit_width) - 1) for end in ends)
    return found.data if found.may_hold(hashes_of(ends, kind)).all() else b""


def _is_sound(found: KeyFilter) -> bool:
    """Whether every value can have set one bit in each word of its block."""
    is_set = found.words != 0
    return bool((is_set.all(axis=1) | ~is_set.any(axis=1)).all())


def values_asked(sought: Sought) -> list[Any] | None:
    """The values of which filters can tell that a row group has none; None for what is no list of a few values, or may be null."""
    values = sought.wanted.values
    if values is None or sought.wanted.nothing or not 0 < len(values) <= MOST_VALUES or stored_as(sought.kind) is None:
        return None
    found: list[Any] = values.to_pylist()
    return found


def with_filters(files: pa.Table, column: str) -> Mask:
    """For each file whether it has filters of the column."""
    lists = one_chunk(files["bloom_filters"])
    found = np.zeros(len(lists), dtype=bool)
    found[np.asarray(pc.list_parent_indices(lists))[np.asarray(pc.equal(pc.list_flatten(lists), column))]] = True
    return found


def groups_without(filters: pa.Table, row_groups: pa.Array, hashes: Hashes) -> pa.Table:
    """The row groups that have none of the hashed values: ``chunk`` and ``row_group``.

    ``filters`` are rows about a column of files with so many ``row_groups`` each; those that tell of another number of them tell nothing.
    """
    lists = one_chunk(filters["bloom_filters"])
    is_told = pc.fill_null(pc.equal(pc.list_value_length(lists), row_groups), False)
    lists = lists.filter(is_told)
    groups = numbered(one_chunk(filters["chunk"]).filter(is_told), lists)
    return groups.filter(pa.array(~may_hold_any(pc.list_flatten(lists), hashes)))
