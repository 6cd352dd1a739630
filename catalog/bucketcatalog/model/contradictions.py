"""What a table must not declare: where its options contradict its fields, or no writer could fill in what they say."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .tables import BESIDE, END_TIME, FIRST_OF_ENGINE, KEY_TYPES, Column, DataType, Default, Shape, Table

_DEFAULT_TYPES = {Default.CREATED: DataType.TIMESTAMP, Default.MODIFIED: DataType.TIMESTAMP, Default.INCARNATION: DataType.UUID}
_INTEGERS = {DataType.INT32, DataType.INT64, DataType.UINT32, DataType.UINT64}
_RANGES = {
    DataType.INT32: (-(1 << 31), (1 << 31) - 1),
    DataType.INT64: (-(1 << 63), (1 << 63) - 1),
    DataType.UINT32: (0, (1 << 32) - 1),
    DataType.UINT64: (0, (1 << 64) - 1),
}
_INTEGER = re.compile("0|-?[1-9][0-9]{0,19}", re.ASCII)
_NO_GROUPS = {DataType.MESSAGE, DataType.FLOAT, DataType.DOUBLE}


def problems(table: Table) -> Iterator[str]:
    """What contradicts itself in a declaration, each as the end of a sentence about the table."""
    if BESIDE in table.name:
        yield f"its name holds a {BESIDE!r}, which stands between a table and the name of what is kept beside it"
    if not table.key:
        yield "it has no key"
    if len(set(table.key)) < len(table.key):
        yield "its key has a field twice"
    yield from (f"it names a field {name!r} that it has not" for name in _named(table) if name not in table.by_name)
    if table.parent is not None and not table.parent.column:
        yield f"no field of it has the id of its parent in {table.parent.table!r}"
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
    done: set[int] = set()
    for column in table.columns:
        yield from _of_column(column, done)


def unfillable(table: Table) -> Iterator[str]:
    """What a writer could not fill in as a declaration says, in the same words. Tables that a log has are read and written all the same."""
    derived = [column for column in table.columns if column.default is Default.INCARNATION]
    for column in derived:
        if column.field_name not in table.fixed_columns:  # the next one is derived from the last, which a purge would forget
            yield f"its field {column.name!r} has the default INCARNATION, and is neither its id nor of its data reference"
    if len(derived) > 1:
        yield f"the default INCARNATION is for one field, and {', '.join(repr(column.name) for column in derived)} have it"


def _of_sums(table: Table) -> Iterator[str]:
    names = [total.name for total in table.sums]
    yield from (f"it has two sums {name!r}" for name in sorted(set(names)) if names.count(name) > 1)
    for total in table.sums:
        column = table.by_name.get(total.column) if total.column else None
        if column is not None and (column.type not in _INTEGERS or column.shape is not Shape.ONE):
            yield f"its sum {total.name!r} is over the field {total.column!r}, which is not an integer"
        for name in total.group:
            grouping = table.by_name.get(name)
            if grouping is not None and (grouping.type in _NO_GROUPS or grouping.shape is not Shape.ONE):
                yield f"its sum {total.name!r} is grouped by the field {name!r}, which is not a single text, number, uuid or time"


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
    yield from (name for total in table.sums for name in (*total.group, *filter(None, [total.column])))
    yield from (name for order in table.orders for name in order.columns if name != END_TIME.name)


def _of_column(column: Column, done: set[int]) -> Iterator[str]:
    if column.name.startswith("_") or column.name == END_TIME.name:
        yield f"a column cannot be called {column.name!r}"
    if column.number >= FIRST_OF_ENGINE:
        yield f"the number of its field {column.name!r} is not below {FIRST_OF_ENGINE}, and those are for what stands beside a table"
    wanted = _DEFAULT_TYPES.get(column.default)
    if wanted is not None and (column.type is not wanted or column.shape is not Shape.ONE):
        yield f"the default of its field {column.name!r} is for a {wanted.value}"
    if wanted is not None and column.implicit:
        yield f"its field {column.name!r} has a default, and cannot tell unset from zero: make it optional"
    if column.external and (column.type is not DataType.BOOL or column.shape is not Shape.ONE):
        yield f"its field {column.name!r} is external and not a single bool"
    if any(child.external for child in column.children):
        yield f"a field within {column.name!r} is external, and only a row's own can be"
    yield from _of_limits(column, done)


def _of_limits(column: Column, done: set[int]) -> Iterator[str]:
    """Messages that lie in others in many places are ``done`` once they were looked at."""
    if id(column.children) not in done:
        done.add(id(column.children))
        for child in column.children:
            yield from _of_limits(child, done)
    yield from _of_range(column)
    if column.allowed:
        yield from _of_allowed(column)


def _of_range(column: Column) -> Iterator[str]:
    for what, limit in (("minimum", column.minimum), ("maximum", column.maximum)):
        if limit is None:
            continue
        if column.type not in _INTEGERS or column.shape is Shape.MAP:
            yield f"the {what} of its field {column.name!r} is for an integer"
            continue
        least, most = _RANGES[column.type]
        is_minimum = what == "minimum"
        if limit > most if is_minimum else limit < least:
            yield f"no {column.type.value} reaches the {what} of its field {column.name!r}"
        elif column.implicit and (limit > 0 if is_minimum else limit < 0):
            side = "below" if is_minimum else "above"
            yield f"its field {column.name!r} reads as 0 where it is unset, which is {side} its {what}: make it optional"
    if column.minimum is not None and column.maximum is not None and column.minimum > column.maximum:
        yield f"the minimum of its field {column.name!r} is above its maximum"


def _of_allowed(column: Column) -> Iterator[str]:
    """Of a column that allows some values alone."""
    is_integer = column.type in _INTEGERS
    if column.shape is Shape.MAP or not (is_integer or column.type is DataType.STRING):
        yield f"its field {column.name!r} allows values, which is for a text or an integer"
        return
    if len(set(column.allowed)) < len(column.allowed):
        yield f"its field {column.name!r} allows a value twice"
    for value in column.allowed:
        why = _not_an_integer(column, value) if is_integer else _too_long(column, value)
        if why is not None:
            yield f"its field {column.name!r} allows {value!r:.100}, which {why}"
    if column.implicit and str(column.zero) not in column.allowed:
        yield f"its field {column.name!r} reads as {column.zero!r} where it is unset, which it does not allow: make it optional"


def _not_an_integer(column: Column, value: str) -> str | None:
    """Why an integer column cannot allow what it does, None where it can."""
    if _INTEGER.fullmatch(value) is None:
        return "is no integer as -1, 0 and 12 are"
    least, most = _RANGES[column.type]
    if not least <= int(value) <= most:
        return f"does not fit {column.type.value}"
    if column.minimum is not None and int(value) < column.minimum:
        return "is below its minimum"
    return "is above its maximum" if column.maximum is not None and int(value) > column.maximum else None


def _too_long(column: Column, value: str) -> str | None:
    return f"has more than its {column.max_bytes} bytes" if 0 < column.max_bytes < len(value.encode()) else None
