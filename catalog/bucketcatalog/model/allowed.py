"""Values that a table's declaration does not allow, below a minimum, above a maximum or none of a list: refused of rows to be written.

They are refused one by one or as whole columns, in storage form. Keys that name rows, and conditions, are not asked: what is there already
can be found, deleted and put back.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InvalidRows
from .arrays import Mask, Positions
from .tables import Column, DataType, Shape, Table

_SHOWN = 20
"""The most values that an error lists."""


def refuse_value(table: Table, column: Column, value: Any, number: int) -> None:
    """``InvalidRows`` where the value of row ``number`` is, or holds, one that is not allowed."""
    found = next(_refused(column, value), None) if column.is_limited else None
    if found is not None:
        raise _not_allowed(table, column, *found, number)


def refuse_column(table: Table, column: Column, values: pa.Array) -> None:
    """The same for all rows of a column; the error names the first."""
    rows = _rows_refused(column, values) if column.is_limited else ()
    if len(rows):
        first = int(np.min(rows))
        refuse_value(table, column, values[first].as_py(), first)


def _not_allowed(table: Table, column: Column, within: Column, value: Any, number: int) -> InvalidRows:
    what = "the value" if within.sensitive else f"the value {value!r:.100}"
    place = "" if within.number == column.number and within.name == column.name else f" in its field {within.name!r}"
    if within.minimum is not None and value < within.minimum:
        why = f"is below the minimum {within.minimum}"
    elif within.maximum is not None and value > within.maximum:
        why = f"is above the maximum {within.maximum}"
    else:
        why = "is none of those that are allowed"
    return InvalidRows(
        f"Row {number} for table {table.name!r}, column {column.name!r}: {what}{place} {why}.",
        next_step=f"Give {_described(within)}{'' if column.name in table.key else ', or none'}.",
    )


def _described(column: Column) -> str:
    """What a column allows, in words."""
    if column.allowed:
        shown = [repr(value) if column.type is DataType.STRING else value for value in column.allowed[:_SHOWN]]
        return f"one of {', '.join(shown)}{', ...' if len(column.allowed) > _SHOWN else ''}"
    if column.minimum is not None and column.maximum is not None:
        return f"a value from {column.minimum} to {column.maximum}"
    return f"a value of at least {column.minimum}" if column.maximum is None else f"a value of at most {column.maximum}"


def _refused(column: Column, value: Any) -> Iterator[tuple[Column, Any]]:
    """What of a value, or of what lies in it, is not allowed, each with the column that does not allow it."""
    if value is None:  # as lists and maps without entries are stored
        return
    if column.shape is Shape.MAP:
        for _, item in value:
            yield from _refused(column.children[1], item)
        return
    for one in value if column.shape is Shape.LIST else [value]:
        if column.type is DataType.MESSAGE:
            for child in column.children if one is not None else ():
                yield from _refused(child, one.get(child.field_name))
        elif not _is_allowed(column, one):
            yield column, one


def _is_allowed(column: Column, value: Any) -> bool:
    if column.minimum is not None and value < column.minimum:
        return False
    if column.maximum is not None and value > column.maximum:
        return False
    return not column.allowed or value in column.allowed_set


def _rows_refused(column: Column, values: pa.Array) -> Positions:
    """The rows that hold a value that is not allowed."""
    if column.shape is Shape.ONE:
        return _ones_refused(column, values)
    if column.shape is Shape.MAP:
        items = pa.ListArray.from_arrays(values.offsets, values.items)
        return _owners(items, _rows_refused(column.children[1], items.flatten()))
    return _owners(values, _ones_refused(column, values.flatten()))


def _owners(lists: pa.ListArray, items: Positions) -> Positions:
    """The rows whose lists hold these items."""
    owners: Positions = np.asarray(pc.list_parent_indices(lists)).astype(np.int64)[items]
    return owners


def _ones_refused(column: Column, values: pa.Array) -> Positions:
    if column.type is DataType.MESSAGE:
        children = zip(column.children, values.flatten(), strict=True)
        limited = [_rows_refused(child, below) for child, below in children if child.is_limited]
        return np.concatenate([np.array([], dtype=np.int64), *limited])
    refused: Mask = np.zeros(len(values), dtype=bool)
    if column.minimum is not None and column.minimum > np.iinfo(values.type.to_pandas_dtype()).min:
        refused |= _true(pc.less(values, pa.scalar(column.minimum, values.type)))
    if column.maximum is not None and column.maximum < np.iinfo(values.type.to_pandas_dtype()).max:
        refused |= _true(pc.greater(values, pa.scalar(column.maximum, values.type)))
    if column.allowed:
        refused |= _true(pc.and_(values.is_valid(), pc.invert(pc.is_in(values, value_set=column.allowed_values))))
    return np.flatnonzero(refused)


def _true(found: pa.Array) -> Mask:
    """Where it is true, which null is not."""
    return np.asarray(pc.fill_null(found, False))
