"""What rows must be before they count as facts, where a right checksum does not say it; and how large they may be to be written.

Looked at is what is read, a few microseconds a column. Whether rows are in order, and what their header says, ``verify`` looks at.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .. import limits
from ..errors import InvalidRows
from ..model.arrays import one_chunk
from ..model.facts import FACT_COLUMNS, Facts, Kind
from ..model.tables import DataType, Shape, Table, split_side
from ..model.times import FIRST_TIME, LAST_TIME
from ..model.uuids import are_shown, may_be_text
from .headers import BlockClass

_NUMBERS = ("_seq", "_row_seq", "_end_seq", "_name_seq", "_expects_seq", "_end_expects_seq")


def problems_of_rows(facts: Facts, block_class: BlockClass, table: Table, columns: Collection[str] | None) -> Iterator[str]:
    """What rows of a class are that they cannot be, each as the end of a sentence; they have ``columns``, without these all there are."""
    rows = facts.rows
    yield from _problems_of_columns(rows, table)
    if any(column.null_count for column in facts.transactions.columns):
        yield "has stamps that are not whole"
    times = np.asarray(facts.transactions.column("commit_time"))
    if len(times) and not (times.min() >= FIRST_TIME and times.max() <= LAST_TIME):
        yield "has stamps with times that no calendar has"
    is_folded = block_class is not BlockClass.EVENTS and split_side(table.name)[1] is None
    if is_folded and (columns is None or {"_kind", "_txn", "_seq"} <= {*columns}):
        positions, sequences = facts.column("_txn"), facts.column("_seq")
        if not positions.null_count and not sequences.null_count:
            return
        stamped = np.asarray(positions.is_valid()) & np.asarray(sequences.is_valid())
        if not (stamped | (facts.numbers("_kind") == Kind.NAMED)).all():
            yield "has versions without a stamp"


def _problems_of_columns(rows: pa.Table, table: Table) -> Iterator[str]:
    for column in table.key_columns:
        if column.field_name in rows.column_names and rows.column(column.field_name).null_count:
            yield f"has rows without {column.name!r}, which is of the key"
    for column in table.columns:
        if column.type is DataType.UUID and column.shape is Shape.ONE and column.field_name in rows.column_names:
            values = one_chunk(rows.column(column.field_name)).drop_null()
            if not (are_shown(values) if column.name in table.key else may_be_text(values)):
                yield f"has no uuids, or not as they are spelled, in the column {column.name!r}"
    for name in _NUMBERS:
        if name in rows.column_names and (pc.min(rows.column(name)).as_py() or 0) < 0:
            yield f"has numbers below 0 in the column {name!r}"


_OF_A_VALUE = 5
"""What a value takes to be read beside its bytes, at least: its levels, and a bit that becomes a byte."""
_MOST_TO_READ = limits.GROUP_BYTES // 2


def _bytes_to_read(facts: Facts, table: Table) -> int:
    """What a reader may need for the facts as a row group, which has more columns than say anything."""
    values = sum(_values_in(one_chunk(column)) for column in facts.rows.columns)
    return int(facts.rows.nbytes) + _OF_A_VALUE * (values + len(facts) * (len(table.columns) + len(FACT_COLUMNS)))


def _values_in(values: pa.Array) -> int:
    """How many values, and places for some, a column has, and what lies in it."""
    kind = values.type
    if pa.types.is_struct(kind):
        return len(values) + sum(_values_in(values.field(at)) for at in range(kind.num_fields))
    if pa.types.is_map(kind) or pa.types.is_list(kind):
        first, last = values.offsets[0].as_py(), values.offsets[-1].as_py()
        below = (values.keys, values.items) if pa.types.is_map(kind) else (values.values,)
        return len(values) + sum(_values_in(each.slice(first, last - first)) for each in below)
    return len(values)


def parts_of(facts: Facts, table: Table, most: int) -> Iterator[Facts]:
    """The facts in halves, and these again, until none has more bytes than that, or than anybody reads, or it is one row."""
    if len(facts) > 1 and (facts.rows.nbytes > most or _bytes_to_read(facts, table) > _MOST_TO_READ):
        middle = len(facts) // 2
        yield from parts_of(facts.slice(0, middle), table, most)
        yield from parts_of(facts.slice(middle, len(facts)), table, most)
    else:
        yield facts


def refuse_large_rows(facts: Facts, table: Table) -> None:
    """``InvalidRows`` where a row has more bytes than anybody would read."""
    for part in parts_of(facts, table, limits.ROW_BYTES):
        if len(part) == 1 and (part.rows.nbytes > limits.ROW_BYTES or _bytes_to_read(part, table) > _MOST_TO_READ):
            raise too_large(part.rows.nbytes, table)


def too_large(size: int, table: Table) -> InvalidRows:
    """The error of a row that is larger than what is read."""
    return InvalidRows(
        f"A row of table {table.name!r} has {size} bytes, and none may have more than {limits.ROW_BYTES}.",
        next_step="Store what is so large as data, and let the row name it.",
    )
