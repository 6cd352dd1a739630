"""What a reader asks for, as key ranges to read and a mask over what was read.

``where`` maps columns to a value, a list of values, None, or ``prefix(...)``. Conditions on the leading key columns become key ranges;
all conditions are checked on the rows as well.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .errors import InvalidOption
from .keys import EVERYTHING, KeyRange, encode_keys, prefix_range
from .surface import storage_value, surface_array
from .tables import Column, DataType, Shape, Table

_MOST_RANGES = 256
_MOST_KEYS = 1 << 20


@dataclass(frozen=True, slots=True)
class Prefix:
    """Matches text or bytes that begin with ``text``."""

    text: str | bytes


def prefix(text: str | bytes) -> Prefix:
    """A condition for ``where``: the column begins with ``text`` (bytewise)."""
    return Prefix(text)


Where = Mapping[str, Any]


Stored = Mapping[str, Sequence[Any]]
"""By column the values that a condition allows, in storage form; columns without such a condition are absent."""


def key_ranges(table: Table, where: Where, stored: Stored) -> list[KeyRange]:
    """The key ranges that can hold matching rows: as narrow as the conditions on the leading key columns allow."""
    leading: list[Sequence[Any]] = []
    last: str | bytes | None = None
    for column in table.key_columns:
        condition = where.get(column.name)
        if isinstance(condition, Prefix):
            last = condition.text
            break
        if column.name not in stored:
            break
        leading.append(stored[column.name])
    if math.prod(len(values) for values in leading) > _MOST_RANGES:
        return [_spanning(table, leading)]
    ranges = {prefix_range(table, values, last) for values in itertools.product(*leading)} if leading or last else {EVERYTHING}
    return sorted(ranges, key=lambda keys: keys.start)


def wanted_keys(table: Table, stored: Stored) -> pa.Array | None:
    """The encoded keys that can match, sorted and distinct, where the conditions name values for the whole key."""
    if any(name not in stored for name in table.key):
        return None
    leading = [stored[name] for name in table.key]
    sizes = [len(values) for values in leading]
    if math.prod(sizes) > _MOST_KEYS:
        return None
    places = np.indices(sizes).reshape(len(sizes), -1)
    columns = {
        column.field_name: pa.array(values, column.storage_type).take(pa.array(place))
        for column, values, place in zip(table.key_columns, leading, places, strict=True)
    }
    keys = pc.unique(encode_keys(table, columns))
    return keys.take(pc.sort_indices(keys))


def _spanning(table: Table, leading: Sequence[Sequence[Any]]) -> KeyRange:
    """One range over many keys: from the smallest to the largest."""
    first = prefix_range(table, [min(values) for values in leading])
    last = prefix_range(table, [max(values) for values in leading])
    return KeyRange(first.start, last.stop)


def _listed(condition: Any) -> list[Any]:
    return list(condition) if isinstance(condition, (list, tuple, set, frozenset)) else [condition]


def raw_text(table: Table, column: Column, text: Any) -> bytes:
    """What a prefix, marker or delimiter is compared as; ``InvalidOption`` where it cannot be a part of the column's values."""
    try:
        if isinstance(text, str):
            return text.encode()
        if isinstance(text, bytes) and column.type is DataType.BYTES:
            return text
    except UnicodeEncodeError:
        pass
    raise InvalidOption(
        f"Column {column.name!r} of table {table.name!r} cannot hold {text!r}.", next_step=f"Give a {column.type.value}."
    )


def stored_condition(table: Table, column: Column, value: Any) -> Any:
    """A value that a column is compared with in storage form, or ``InvalidOption``."""
    try:
        return storage_value(column, value)
    except (TypeError, ValueError) as error:
        raise InvalidOption(
            f"The condition on column {column.name!r} of table {table.name!r} does not fit: {error}.",
            next_step=f"Compare it with a {column.type.value}, a list of these, or prefix(...).",
        ) from None


def check(table: Table, where: Where, schema: pa.Schema) -> Stored:
    """The values that conditions allow; ``InvalidOption`` where one names a column that there is not, or does not fit it."""
    stored: dict[str, list[Any]] = {}
    if not isinstance(where, Mapping):
        raise InvalidOption(f"{where!r} is no condition.", next_step="Map columns to values, lists of values, or prefix(...).")
    for name, condition in where.items():
        if not isinstance(name, str) or schema.get_field_index(name) < 0:
            raise InvalidOption(
                f"Table {table.name!r} has no column {name!r} to filter by.",
                next_step=f"Its columns are {', '.join(schema.names)}.",
            )
        column = table.by_name.get(name)
        if condition is None:
            continue
        if column is None:
            _check_requested(name, condition, schema.field(name).type)
            continue
        if column.shape is not Shape.ONE or column.type is DataType.MESSAGE:
            raise InvalidOption(
                f"Column {name!r} cannot be compared with a value.", next_step="Compare it with None, or filter the rows."
            )
        if isinstance(condition, Prefix):
            if column.type not in (DataType.STRING, DataType.BYTES, DataType.JSON) or column.shape is not Shape.ONE:
                raise InvalidOption(f"Column {name!r} has no prefixes.", next_step="Use prefix(...) on text or bytes.")
            raw_text(table, column, condition.text)
        else:
            stored[name] = [stored_condition(table, column, value) for value in _listed(condition)]
    return stored


def _check_requested(name: str, condition: Any, kind: pa.DataType) -> None:
    """The same for a column that is not the table's own."""
    try:
        if isinstance(condition, Prefix) and (kind != pa.string() or not isinstance(condition.text, str)):
            raise TypeError("it has no prefixes")
        pa.array([condition.text] if isinstance(condition, Prefix) else _listed(condition), kind)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InvalidOption(
            f"The condition on column {name!r} does not fit: {error}.", next_step=f"Compare it with a {kind}."
        ) from None


def allowed_values(table: Table, where: Where, schema: pa.Schema) -> dict[str, pa.Array]:
    """The surface values that conditions with values allow, by column: converted once, for however many rows they are checked on."""
    allowed = {}
    for name, condition in where.items():
        if condition is None or isinstance(condition, Prefix):
            continue
        column = table.by_name.get(name)
        wanted = _listed(condition)
        if column is None:
            allowed[name] = pa.array(wanted, schema.field(name).type)
        else:
            stored = pa.array([stored_condition(table, column, value) for value in wanted], column.storage_type)
            allowed[name] = surface_array(column, stored)
    return allowed


def matching(rows: pa.Table, where: Where, allowed: Mapping[str, pa.Array]) -> pa.ChunkedArray:
    """For each row (of surface columns) whether it meets every condition, of which there is at least one."""
    return functools.reduce(
        pc.and_, [_mask(rows.column(name), condition, allowed.get(name)) for name, condition in where.items()]
    )


def _mask(values: pa.ChunkedArray, condition: Any, allowed: pa.Array | None) -> pa.ChunkedArray:
    if condition is None:
        return values.is_null()
    if isinstance(condition, Prefix):
        text = condition.text.encode() if isinstance(condition.text, str) else condition.text
        return pc.fill_null(pc.starts_with(values.cast(pa.binary()), pattern=text), False)
    return pc.is_in(values, value_set=allowed)
