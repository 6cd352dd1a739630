"""What a table's declaration must not say, found before anything is written with it."""

from __future__ import annotations

from collections.abc import Iterator

from .tables import END_TIME, FIRST_OF_ENGINE, KEY_TYPES, Column, DataType, Default, Shape, Table

_DEFAULT_TYPES = {
    Default.CREATED: DataType.TIMESTAMP,
    Default.MODIFIED: DataType.TIMESTAMP,
    Default.INCARNATION: DataType.UUID,
}
_INTEGERS = {DataType.INT32, DataType.INT64, DataType.UINT32, DataType.UINT64}
_LARGEST = {DataType.INT32: (1 << 31) - 1, DataType.UINT32: (1 << 32) - 1}
_NO_GROUPS = {DataType.MESSAGE, DataType.FLOAT, DataType.DOUBLE}
_BESIDE = "#"


def problems(table: Table) -> Iterator[str]:
    """What contradicts itself in a declaration, each as the end of a sentence about the table."""
    if _BESIDE in table.name:
        yield f"its name holds a {_BESIDE!r}, which stands between a table and the name of what is kept beside it"
    if not table.key:
        yield "it has no key"
    if len(set(table.key)) < len(table.key):
        yield "its key has a field twice"
    for name in _named(table):
        if name not in table.by_name:
            yield f"it names a field {name!r} that it has not"
    for name in table.key:
        column = table.by_name.get(name)
        if column is not None and (column.type not in KEY_TYPES or column.shape is not Shape.ONE):
            yield f"its key field {name!r} has no order"
    for name in table.data_reference:
        column = table.by_name.get(name)
        if column is not None and (column.type not in KEY_TYPES or column.shape is not Shape.ONE):
            yield f"the field {name!r} of its data reference cannot be compared"
    yield from _of_sums(table)
    yield from _of_orders(table)
    for column in table.columns:
        yield from _of_column(column)


def _of_sums(table: Table) -> Iterator[str]:
    names = [total.name for total in table.sums]
    yield from (f"it has two sums {name!r}" for name in sorted(set(names)) if names.count(name) > 1)
    for total in table.sums:
        column = table.by_name.get(total.column) if total.column else None
        if column is not None and (column.type not in _INTEGERS or column.shape is not Shape.ONE):
            yield f"its sum {total.name!r} is over the field {total.column!r}, which is no integer"
        for name in total.group:
            grouping = table.by_name.get(name)
            if grouping is not None and (grouping.type in _NO_GROUPS or grouping.shape is not Shape.ONE):
                yield f"its sum {total.name!r} is grouped by the field {name!r}, which is no single text, number, uuid or time"


def _of_orders(table: Table) -> Iterator[str]:
    names = [order.name for order in table.orders]
    yield from (f"it has two orders {name!r}" for name in sorted(set(names)) if names.count(name) > 1)
    for order in table.orders:
        if not order.columns:
            yield f"its order {order.name!r} is by no field"
        if len(set(order.columns)) < len(order.columns):
            yield f"its order {order.name!r} has a field twice"
        if END_TIME.name in order.columns and not order.of_tombstones:
            yield f"its order {order.name!r} is by {END_TIME.name}, which only tombstones have"
        for name in order.columns:
            column = table.by_name.get(name)
            if column is not None and (column.type not in KEY_TYPES or column.shape is not Shape.ONE):
                yield f"the field {name!r} of its order {order.name!r} has no order"


def _named(table: Table) -> Iterator[str]:
    yield from (*table.key, *table.data_reference)
    yield from (name for name in (table.id, table.parent.column if table.parent else None) if name)
    for total in table.sums:
        yield from (*total.group, *([total.column] if total.column else []))
    for order in table.orders:
        yield from (name for name in order.columns if name != END_TIME.name)


def _of_column(column: Column) -> Iterator[str]:
    if column.name.startswith("_") or column.name == END_TIME.name:
        yield f"a column cannot be called {column.name!r}"
    if column.number >= FIRST_OF_ENGINE:
        yield f"the number of its field {column.name!r} is not below {FIRST_OF_ENGINE}, and those are for what stands beside a table"
    wanted = _DEFAULT_TYPES.get(column.default)
    if wanted is not None and (column.type is not wanted or column.shape is not Shape.ONE):
        yield f"the default of its field {column.name!r} is for a {wanted.value}"
    if wanted is not None and column.implicit:
        yield f"its field {column.name!r} has a default, and cannot tell unset from zero: make it optional"
    yield from _of_minimum(column)


def _of_minimum(column: Column) -> Iterator[str]:
    for child in column.children:
        yield from _of_minimum(child)
    if column.minimum is None:
        return
    if column.type not in _INTEGERS or column.shape is Shape.MAP:
        yield f"the minimum of its field {column.name!r} is for an integer"
    elif column.minimum > _LARGEST.get(column.type, column.minimum):
        yield f"no {column.type.value} reaches the minimum of its field {column.name!r}"
    elif column.implicit and column.minimum > 0:
        yield f"its field {column.name!r} reads as 0 where it is unset, which is below its minimum: make it optional"
