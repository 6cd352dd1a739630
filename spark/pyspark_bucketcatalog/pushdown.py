"""Spark's filters as conditions of a scan, where the two mean exactly the same.

A filter that does not translate stays Spark's. Text is compared as text, so a uuid is taken only in the form in which it is shown;
numbers with a fraction are left to Spark, whose equality of NaN and zeros is its own.
"""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
    StringStartsWith,
)

from bucketcatalog import between, prefix
from bucketcatalog.filters import Between
from bucketcatalog.tables import END_TIME, Column, DataType, Shape, Table

_TEXT = frozenset({DataType.STRING, DataType.JSON})
_NUMBERS = {
    DataType.INT32: (-(1 << 31), (1 << 31) - 1),
    DataType.INT64: (-(1 << 63), (1 << 63) - 1),
    DataType.UINT32: (0, (1 << 32) - 1),
}
_ORDERED = frozenset({DataType.STRING, DataType.BYTES, DataType.UUID, DataType.TIMESTAMP, *_NUMBERS})
_LOW, _HIGH = (GreaterThan, GreaterThanOrEqual), (LessThan, LessThanOrEqual)
_MOST_VALUES = 1_000


def condition(pushed: Filter, table: Table, taken: Mapping[str, Any]) -> tuple[str, Any] | None:
    """The column and condition that mean the same as the filter, or None; a column in ``taken`` has its condition already.

    Where that is a range, a further one narrows it. Nobody asks for ``deleted_at`` where the rows are no tombstones.
    """
    path: tuple[str, ...] = getattr(pushed, "attribute", ())
    column = _column(table, path[0]) if len(path) == 1 else None
    if column is None or column.shape is not Shape.ONE:
        return None
    if isinstance(pushed, (*_LOW, *_HIGH)):
        found = _narrowed(pushed, column, taken.get(column.name, between()))
        return None if found is None else (column.name, found)
    if column.name in taken:
        return None
    if isinstance(pushed, StringStartsWith):
        return (column.name, prefix(pushed.value)) if column.type in _TEXT else None
    if isinstance(pushed, EqualNullSafe) and pushed.value is None:
        return column.name, None
    if isinstance(pushed, (EqualTo, EqualNullSafe)):
        values: tuple[Any, ...] = (pushed.value,)
    elif isinstance(pushed, In):
        values = tuple(value for value in pushed.value if value is not None)
    else:
        return None
    if not 0 < len(values) <= _MOST_VALUES or not all(_means_the_same(column, value) for value in values):
        return None
    return column.name, list(values)


def _column(table: Table, name: str) -> Column | None:
    return END_TIME if name == END_TIME.name else table.by_name.get(name)


def _narrowed(
    pushed: GreaterThan | GreaterThanOrEqual | LessThan | LessThanOrEqual, column: Column, taken: Any
) -> Between | None:
    """What a filter leaves of the range that is ``taken``, or None where it does not mean the same here, or no range is."""
    if not isinstance(taken, Between) or column.type not in _ORDERED or not _means_the_same(column, pushed.value):
        return None
    is_open = isinstance(pushed, (GreaterThan, LessThan))
    if isinstance(pushed, _LOW):
        wider = taken.low is None or (taken.low, taken.above) < (pushed.value, is_open)
        return replace(taken, low=pushed.value, above=is_open) if wider else taken
    wider = taken.high is None or (pushed.value, not is_open) < (taken.high, not taken.below)
    return replace(taken, high=pushed.value, below=is_open) if wider else taken


def _means_the_same(column: Column, value: Any) -> bool:
    if column.type in _TEXT:
        return isinstance(value, str)
    if column.type is DataType.UUID:
        return isinstance(value, str) and _is_shown_uuid(value)
    if column.type in _NUMBERS:
        low, high = _NUMBERS[column.type]
        return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
    if column.type is DataType.TIMESTAMP:
        return isinstance(value, datetime.datetime) and value.tzinfo is not None
    if column.type is DataType.BYTES:
        return isinstance(value, bytes)
    return column.type is DataType.BOOL and isinstance(value, bool)


def _is_shown_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False
