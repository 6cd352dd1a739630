"""Parents: by which columns rows can belong to others.

A row is a child of the rows in its table's parent whose id equals what a column of its own holds (docs/spec/collection.md, "Parents").
"""

from __future__ import annotations

from .tables import KEY_TYPES, Column, DataType, Shape

_COMPARABLE = KEY_TYPES | {DataType.ENUM, DataType.JSON, DataType.CUT}


def is_comparable(column: Column) -> bool:
    """Whether values of the column can be told to equal others: single ones, but no fractions, truths or messages."""
    return column.shape is Shape.ONE and column.type in _COMPARABLE
