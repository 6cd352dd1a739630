"""What rows must be before they count as facts, where a right checksum does not say it.

Looked at is what is read, a few microseconds a column. Whether rows are in order, and what their header says, ``verify`` looks at.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .. import limits
from ..model.arrays import leaves, one_chunk
from ..model.facts import Facts, Kind, commit_times
from ..model.names import is_name
from ..model.tables import DataType, Shape, Table
from ..model.times import FIRST_TIME, LAST_TIME
from ..model.uuids import are_shown, may_be_text
from .columns import are_facts
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
    revisions = np.asarray(facts.transactions.column("revision"))
    if len(times) and not (revisions.min() >= 0 and revisions.max() < limits.REVISIONS):
        yield "has stamps with revisions that no timeline has"
    if not all(map(is_name, pc.unique(facts.transactions.column("writer")).to_pylist())):
        yield "has stamps of writers who can have no such name"
    named = commit_times(facts.column("_name_uuid")) if "_name_uuid" in rows.column_names else times
    if len(named) and not (named.min() >= FIRST_TIME and named.max() <= LAST_TIME):
        yield "names versions of times that no calendar has"
    of_stamps = ["_seq"] if block_class is BlockClass.EVENTS else ["_txn", "_seq"]
    if are_facts(table, block_class) and (columns is None or {"_kind", *of_stamps} <= {*columns}):
        parts = [facts.column(name) for name in of_stamps]
        if not any(part.null_count for part in parts):
            return
        stamped = np.all([np.asarray(part.is_valid()) for part in parts], axis=0)
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
        has_times = column.type is DataType.TIMESTAMP or column.children
        if has_times and column.field_name in rows.column_names and not _are_in_calendar(rows.column(column.field_name)):
            yield f"has times outside of the years 1 to 9999 in the column {column.name!r}"
    for name in _NUMBERS:
        if name in rows.column_names and (pc.min(rows.column(name)).as_py() or 0) < 0:
            yield f"has numbers below 0 in the column {name!r}"


def _are_in_calendar(values: pa.ChunkedArray) -> bool:
    """Whether the times among the values, and in their messages, lists and maps, are such that anybody can show them."""
    for leaf in leaves(one_chunk(values)):
        bounds = pc.min_max(leaf) if pa.types.is_timestamp(leaf.type) else {}
        if any(bound.is_valid and not FIRST_TIME <= bound.value <= LAST_TIME for bound in bounds.values()):
            return False
    return True
