"""Parents: by which columns rows can belong to others.

A row is a child of the rows in its table's parent whose id equals what a column of its own holds (docs/spec/collection.md, "Parents").
"""

from __future__ import annotations

from collections.abc import Iterator

from .tables import KEY_TYPES, Column, DataType, Shape, Table

_NUMBERS = {DataType.INT32, DataType.INT64, DataType.UINT32, DataType.UINT64, DataType.ENUM}
_TEXTS = {DataType.STRING, DataType.JSON, DataType.CUT}
_COMPARABLE = KEY_TYPES | _NUMBERS | _TEXTS
_ALIKE = (_NUMBERS, _TEXTS | {DataType.BYTES}, {DataType.BYTES, DataType.UUID}, {DataType.TIMESTAMP})
"""Types of which values can equal each other: as numbers, else by their bytes."""
_ID = "_id"


def is_comparable(column: Column) -> bool:
    """Whether values of the column can be told to equal others: single ones, but no fractions, truths or messages."""
    return column.shape is Shape.ONE and column.type in _COMPARABLE


def never_unset(table: Table) -> Iterator[tuple[str, Column]]:
    """The ``id``, and the field of the ``parent``, where they have no presence: of a row that does not say them nobody could tell that."""
    for what, name in (("id", table.id), ("parent", table.parent.column if table.parent is not None else None)):
        if name is not None and table.by_name[name].implicit:
            yield what, table.by_name[name]


def name_column(table: Table) -> str | None:
    """What the name of a row's parent is called as a column, ``bucket`` where it is referred to by ``bucket_id``; None without one."""
    if table.parent is None or not table.parent.column.endswith(_ID):
        return None
    name = table.parent.column.removesuffix(_ID)
    return None if not name or name in table.by_name else name


def misfit(child: Table, parent: Table | None) -> str | None:
    """Why no row of the one table can belong to a row of the other, its declared parent, which nobody may know; None where they can."""
    assert child.parent is not None
    name = child.parent.column
    if parent is None:
        return f"nobody has written or registered the table that its field {name!r} names rows of"
    if parent.id is None:
        return f"{parent.name!r} has no id that the field {name!r} could equal"
    field, own = child.by_name[name], parent.by_name[parent.id]
    if is_comparable(field) and is_comparable(own) and any({field.type, own.type} <= types for types in _ALIKE):
        return None
    return f"the field {name!r} ({_described(field)}) never equals the id {parent.id!r} ({_described(own)})"


def _described(column: Column) -> str:
    if column.shape is Shape.MAP:
        return "map"
    return f"list of {column.type.value}" if column.shape is Shape.LIST else column.type.value
