"""How large what is written may be: rows, row groups, and a segment's index and footer, so that whoever reads them takes them.

A reader counts the pages of a row group without compression, and for each of their values its width and four bytes. Before anything is
encoded the same is counted from rows as they are in memory: each of their bytes, five more for each value, and what is filled in where a
row says nothing. That may be little more than a half of what a reader counts, so a half of what a reader takes is written. A row that is
given has less than a half of that again: a merge makes one of two, an update and the fixed columns of what was put.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

import pyarrow as pa

from .. import limits
from ..errors import InvalidRows
from ..model.arrays import one_chunk
from ..model.facts import FACT_COLUMNS, Facts
from ..model.keys import encode_keys, shown_key
from ..model.tables import Column, DataType, Shape, Table
from .headers import BlockClass

ROW_GROUP_BYTES = 8 << 20
"""Of the rows of a row group in memory, about; one row may have more."""
_CHUNK_BYTES = 32 << 10
"""Of a row group in memory for each of its chunks: rows with many columns do not become many row groups."""
_OF_A_VALUE = 5
"""What a value takes to be read beside its bytes, at least: its levels, and a bit that becomes a byte."""
_WIDEST = 8
"""The bytes of a value in memory that is no text, or of where a text ends."""
_UUID = 36
"""The text of a uuid, which an unset one without presence becomes."""


def bytes_to_read(facts: Facts, table: Table) -> int:
    """What a reader may need for the facts as a row group, which has more columns than say anything, with what stands for unset ones."""
    size = int(facts.rows.nbytes) + _OF_A_VALUE * len(facts) * (len(table.columns) + len(FACT_COLUMNS))
    for name, values in zip(facts.rows.column_names, facts.rows.columns, strict=True):
        column = table.by_number.get(name)
        size += _OF_A_VALUE * len(values) if column is None else _beside(column, one_chunk(values))
    return size


def _beside(column: Column, values: pa.Array) -> int:
    """What a column takes to be read beside its bytes in memory: for each value, and place for one, that lies in it."""
    size = _OF_A_VALUE * len(values)
    if column.shape is not Shape.ONE:
        first, last = values.offsets[0].as_py(), values.offsets[-1].as_py()
        is_map = column.shape is Shape.MAP
        below = zip(column.children, (values.keys, values.items), strict=True) if is_map else ((column.one, values.values),)
        return size + sum(_beside(child, each.slice(first, last - first)) for child, each in below)
    if column.type is DataType.MESSAGE:
        return size + sum(_beside(child, values.field(at)) for at, child in enumerate(column.children))
    return size + (_UUID * values.null_count if column.implicit and column.type is DataType.UUID else 0)


def is_surely_given(table: Table, size: int) -> bool:
    """Whether a row can be given whose message has so many bytes, whatever stands in it; else only a look at the row can tell."""
    itself, byte = _at_most(table)
    return itself + size * byte <= limits.ROW_BYTES


@lru_cache(maxsize=256)
def _at_most(table: Table) -> tuple[int, int]:
    """What a row of nothing takes to be read at most, and what each byte of its message adds: an entry of a list has one, or two."""
    itself = sum(map(_of_one, table.columns)) + _OF_A_VALUE * len(FACT_COLUMNS)
    return itself, max([_OF_A_VALUE + _WIDEST, *map(_of_an_entry, table.columns)])


def _of_one(column: Column) -> int:
    """What a place for a value of a column takes, with places for what lies in it."""
    own = _OF_A_VALUE + _WIDEST + (_UUID if column.type is DataType.UUID else 0)
    return own + (sum(map(_of_one, column.children)) if column.shape is Shape.ONE else 0)


def _of_an_entry(column: Column) -> int:
    """What an entry takes at most of the largest list or map in a column; 0 without any."""
    own = 0 if column.shape is Shape.ONE else _OF_A_VALUE + _WIDEST + _UUID + sum(map(_of_one, column.children))
    return max([own, *map(_of_an_entry, column.children)])


def group_bytes(table: Table) -> int:
    """The most that a row group of a table has in memory, about."""
    columns = len(table.columns) + len(FACT_COLUMNS)
    return max(ROW_GROUP_BYTES, min(_CHUNK_BYTES * columns, limits.WRITTEN_BYTES))


def parts_of(facts: Facts, table: Table, most: int) -> Iterator[Facts]:
    """The facts in halves, and these again, until none has more bytes in memory than that, or than are written, or it is one row."""
    return _halved(facts, lambda part: part.rows.nbytes <= most and bytes_to_read(part, table) <= limits.WRITTEN_BYTES)


def _halved(facts: Facts, is_small: Callable[[Facts], bool]) -> Iterator[Facts]:
    if len(facts) > 1 and not is_small(facts):
        middle = len(facts) // 2
        yield from _halved(facts.slice(0, middle), is_small)
        yield from _halved(facts.slice(middle, len(facts)), is_small)
    else:
        yield facts


def refuse_large_rows(facts: Facts, table: Table, block_class: BlockClass) -> None:
    """``InvalidRows`` where a row is larger than is given in an event, or, of another class, than a merge may make of several."""
    given = block_class is BlockClass.EVENTS
    most = limits.ROW_BYTES if given else limits.WRITTEN_BYTES
    for part in _halved(facts, lambda part: bytes_to_read(part, table) <= most):
        if len(part) == 1 and (size := bytes_to_read(part, table)) > most:
            key = shown_key(table, encode_keys(table, part.rows)[0].as_py())
            raise InvalidRows(
                f"The row ({key}) of table {table.name!r} comes to {size} bytes for its readers, and none may be more than {most}.",
                next_step="Store what is so large as data, and let the row name it."
                if given
                else "Make it smaller by an update; a version that has ended, purge.",
            )


def refuse_large_index(table: str, index: bytes, footer: bytes) -> None:
    """``InvalidRows`` where nobody would read the index, or the footer, of a segment of a table's rows."""
    if len(index) > limits.INDEX_BYTES or len(footer) > limits.FOOTER_BYTES:
        raise InvalidRows(
            f"Rows of table {table!r} would make a segment with an index of {len(index)} bytes and a footer of "
            f"{len(footer)}, and nobody reads more than {limits.INDEX_BYTES} and {limits.FOOTER_BYTES}.",
            next_step="Store long texts as data, or declare fewer columns.",
        )
