"""Values below the minimum that a table declares for a column: refused of rows that are to be written, one by one or as whole columns.

Values are in storage form. Keys that name rows, and conditions, are not asked: what is there already can be found, deleted and put back.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InvalidRows
from .arrays import Positions
from .tables import Column, DataType, Shape, Table


def refuse_value(table: Table, column: Column, value: Any, number: int) -> None:
    """``InvalidRows`` where the value of row ``number`` is, or holds, one below a minimum."""
    if column.has_minimum and not _reaches(column, value):
        raise _below(table, column, number)


def refuse_column(table: Table, column: Column, values: pa.Array) -> None:
    """The same for all rows of a column; the error names the first."""
    rows = _rows_below(column, values) if column.has_minimum else ()
    if len(rows):
        raise _below(table, column, int(np.min(rows)))


def _below(table: Table, column: Column, number: int) -> InvalidRows:
    within = "" if column.minimum is not None else " in one of its fields"
    least = f" {column.minimum}" if column.minimum is not None else ""
    return InvalidRows(
        f"Row {number} for table {table.name!r}, column {column.name!r}: the value{within} is below the minimum{least}.",
        next_step="Give a value that the table's declaration allows, or none.",
    )


def _reaches(column: Column, value: Any) -> bool:
    if value is None:  # as lists and maps without entries are stored
        return True
    if column.shape is Shape.MAP:
        return all(_reaches(column.children[1], item) for _, item in value)
    return all(_one_reaches(column, item) for item in (value if column.shape is Shape.LIST else [value]))


def _one_reaches(column: Column, value: Any) -> bool:
    if column.type is DataType.MESSAGE:
        return all(_reaches(child, value[child.field_name]) for child in column.children if child.field_name in value)
    return column.minimum is None or value >= column.minimum


def _rows_below(column: Column, values: pa.Array) -> Positions:
    """The rows that hold a value below the minimum."""
    if column.shape is Shape.ONE:
        return _ones_below(column, values)
    if column.shape is Shape.MAP:
        items = pa.ListArray.from_arrays(values.offsets, values.items)
        return _owners(items, _rows_below(column.children[1], items.flatten()))
    return _owners(values, _ones_below(column, values.flatten()))


def _owners(lists: pa.ListArray, items: Positions) -> Positions:
    """The rows whose lists hold these items."""
    owners: Positions = np.asarray(pc.list_parent_indices(lists)).astype(np.int64)[items]
    return owners


def _ones_below(column: Column, values: pa.Array) -> Positions:
    if column.type is DataType.MESSAGE:
        children = zip(column.children, values.flatten(), strict=True)
        return np.concatenate([np.array([], dtype=np.int64), *(_rows_below(child, below) for child, below in children)])
    if column.minimum is None or column.minimum <= np.iinfo(values.type.to_pandas_dtype()).min:
        return np.array([], dtype=np.int64)
    return np.flatnonzero(np.asarray(pc.fill_null(pc.less(values, pa.scalar(column.minimum, values.type)), False)))
