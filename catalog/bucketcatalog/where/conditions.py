"""What a reader asks for, as key ranges to read and a mask over what was read.

``where`` maps columns to a value, a list of values, None, ``prefix(...)`` or ``between(...)``. Conditions on the leading key columns become
key ranges; all conditions are checked on the rows as well. None, alone or in a list, is the rows without a value, as people see them; as an
end of a range it is no end. Both zeros are equal, and whatever is no number equals itself and is larger than every number.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InvalidOption
from ..model.arrays import comparable
from ..model.coerce import storage_value
from ..model.keys import EVERYTHING, KeyRange, encode_keys, prefix_range
from ..model.render import OF_ENDS, REQUESTED, surface_array
from ..model.tables import END_TIME, KEY_TYPES, TIMESTAMP, Column, DataType, Shape, Table

_ORDERED = KEY_TYPES | {DataType.FLOAT, DataType.DOUBLE}
_BEGINNING = frozenset({DataType.STRING, DataType.BYTES, DataType.JSON})
OF_STAMPS = {**REQUESTED, **OF_ENDS, END_TIME.name: END_TIME.storage_type}
"""What is shown of the stamps of a row beside its columns, with the types."""
_MOST_RANGES = 256
_MOST_KEYS = 1 << 20


@dataclass(frozen=True, slots=True)
class Prefix:
    """Matches text or bytes that begin with ``text``."""

    text: str | bytes


def prefix(text: str | bytes) -> Prefix:
    """A condition for ``where``: the column begins with ``text`` (bytewise)."""
    return Prefix(text)


@dataclass(frozen=True, slots=True)
class Between:
    """Matches values from ``low`` to ``high``, where None is an open end; ``above`` and ``below`` leave out the ends themselves."""

    low: Any = None
    high: Any = None
    above: bool = False
    below: bool = False


_INCLUSIVE = {"both": (False, False), "left": (False, True), "right": (True, False), "neither": (True, True)}


def between(low: Any = None, high: Any = None, *, inclusive: str = "both") -> Between:
    """A condition for ``where``: the column's value lies from ``low`` to ``high``; None is an open end, and no row without a value matches.

    ``inclusive`` says which of the ends belong to it: "both", "left", "right" or "neither". Text compares bytewise (UTF-8).
    """
    if inclusive not in _INCLUSIVE:
        raise InvalidOption(
            f"A range cannot be inclusive={inclusive!r}, which says of no end whether it belongs to it.",
            next_step=f"Give one of {', '.join(_INCLUSIVE)}.",
        )
    above, below = _INCLUSIVE[inclusive]
    return Between(low, high, above, below)


Where = Mapping[str, Any]


StoredConditions = Mapping[str, Sequence[Any] | Between]
"""By column the values, or the range of them, that a condition allows, in storage form; columns without such a condition are absent."""


def key_ranges(table: Table, where: Where, stored: StoredConditions) -> list[KeyRange]:
    """The key ranges that can hold matching rows: as narrow as the conditions on the leading key columns allow."""
    leading: list[Sequence[Any]] = []
    last: str | bytes | Between | None = None
    for column in table.key_columns:
        condition = where.get(column.name)
        values = stored.get(column.name)
        if values is None or isinstance(values, Between):
            last = condition.text if isinstance(condition, Prefix) else values
            break
        leading.append(values)
    if math.prod(len(values) for values in leading) > _MOST_RANGES:
        return [_spanning(table, leading)]
    if not leading and not last:
        return [EVERYTHING]
    found = {_range(table, values, last) for values in itertools.product(*leading)}
    return sorted((keys for keys in found if keys is not None), key=lambda keys: keys.start)


def _range(table: Table, leading: Sequence[Any], last: str | bytes | Between | None) -> KeyRange | None:
    """The keys whose first fields equal ``leading`` and whose next one is as ``last`` says; None where there can be none."""
    if not isinstance(last, Between):
        return prefix_range(table, leading, last)
    start, stop = (keys := prefix_range(table, leading)).start, keys.stop
    if last.low is not None:
        low = prefix_range(table, [*leading, last.low])
        if last.above and low.stop is None:
            return None
        start = low.stop if last.above and low.stop is not None else low.start
    if last.high is not None:
        high = prefix_range(table, [*leading, last.high])
        stop = high.start if last.below else high.stop
    return KeyRange(start, stop) if stop is None or start < stop else None


def wanted_keys(table: Table, stored: StoredConditions) -> pa.Array | None:
    """The encoded keys that can match, sorted and distinct, where the conditions name values for the whole key."""
    leading = _key_values(table, stored)
    if leading is None:
        return None
    sizes = [len(values) for values in leading]
    places = np.indices(sizes).reshape(len(sizes), -1)
    columns = {
        column.field_name: pa.array(values, column.storage_type).take(pa.array(place, pa.int64()))
        for column, values, place in zip(table.key_columns, leading, places.tolist(), strict=True)
    }
    keys = pc.unique(encode_keys(table, columns))
    return keys.take(pc.sort_indices(keys))


def names_keys(table: Table, stored: StoredConditions) -> bool:
    """Whether ``wanted_keys`` are all that conditions on the key allow."""
    return _key_values(table, stored) is not None


def _key_values(table: Table, stored: StoredConditions) -> list[Sequence[Any]] | None:
    """The values that are named for each key column; None where one has none, or there are too many keys."""
    values = [stored.get(name) for name in table.key]
    named = [each for each in values if each is not None and not isinstance(each, Between)]
    return named if len(named) == len(table.key) and math.prod(map(len, named)) <= _MOST_KEYS else None


def _spanning(table: Table, leading: Sequence[Sequence[Any]]) -> KeyRange:
    """One range over many keys: from the smallest to the largest."""
    first = prefix_range(table, [min(values) for values in leading])
    last = prefix_range(table, [max(values) for values in leading])
    return KeyRange(first.start, last.stop)


def listed(condition: Any) -> list[Any]:
    """The values that a condition names which is no range and no prefix."""
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
        f"Column {column.name!r} of table {table.name!r} cannot hold {text!r}.",
        next_step=f"Give a value of its type, {column.type_name}.",
    )


def stored_condition(table: Table, column: Column, value: Any, *, alone: bool = False) -> Any:
    """A value that a column is compared with in storage form, or ``InvalidOption``; ``alone`` where nothing but one value can be given.

    Text is compared as it is: rows may have what writers refuse, longer text from before a limit, or no JSON where a column says nothing.
    """
    kind = DataType.STRING if column.type is DataType.JSON and isinstance(value, str) else column.type
    try:
        return storage_value(replace(column, type=kind, max_bytes=0), value)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidOption(
            f"The condition on column {column.name!r} of table {table.name!r} does not fit: {error}.",
            next_step=f"Give a value of its type, {column.type_name}."
            if alone
            else f"Compare it with {_comparable_with(column)}.",
        ) from None


def _comparable_with(column: Column) -> str:
    """The conditions that a column takes, in words."""
    words = [f"a value of its type, {column.type_name}", "a list of these"]
    words += ["prefix(...)"] if column.type in _BEGINNING else []
    words += ["between(...)"] if column.type in _ORDERED else []
    return f"{', '.join(words[:-1])} or {words[-1]}"


def check(table: Table, where: Where, schema: pa.Schema) -> StoredConditions:
    """The values that conditions allow; ``InvalidOption`` where one names a column that there is not, or does not fit it."""
    stored: dict[str, list[Any] | Between] = {}
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
            kind = schema.field(name).type
            compared = _requested_values(name, condition, kind)
            if OF_STAMPS.get(name) == kind and not isinstance(condition, Prefix):  # a view may call anything so
                values = (compared.cast(pa.int64()) if kind == TIMESTAMP else compared).to_pylist()
                stored[name] = _stored_ends(condition, values) if isinstance(condition, Between) else _without_none(values)
            continue
        if column.shape is not Shape.ONE or column.type is DataType.MESSAGE:
            raise InvalidOption(
                f"Column {name!r} cannot be compared with a value.", next_step="Compare it with None, or filter the rows."
            )
        if isinstance(condition, Prefix):
            if column.type not in _BEGINNING:
                raise InvalidOption(f"Column {name!r} has no prefixes.", next_step="Use prefix(...) on text or bytes.")
            raw_text(table, column, condition.text)
        elif isinstance(condition, Between):
            if column.type not in _ORDERED:
                raise InvalidOption(f"The values of column {name!r} have no order.", next_step="Compare it with values.")
            stored[name] = _stored_ends(condition, _stored_values(table, column, condition))
        else:
            stored[name] = _without_none(_stored_values(table, column, condition))
    return stored


def _without_none(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if value is not None]


def _stored_values(table: Table, column: Column, condition: Any) -> list[Any]:
    """What a condition names in storage form: None stays None."""
    return [None if value is None else stored_condition(table, column, value) for value in _compared(condition)]


def _stored_ends(condition: Between, ends: Sequence[Any]) -> Between:
    """The same range with its ends in storage form."""
    return replace(condition, low=ends[0], high=ends[1])


def _requested_values(name: str, condition: Any, kind: pa.DataType) -> pa.Array:
    """What a column that is not the table's own is compared with, or ``InvalidOption``."""
    try:
        if isinstance(condition, Prefix) and (kind != pa.string() or not isinstance(condition.text, str)):
            raise TypeError("it has no prefixes")
        if isinstance(condition, Between) and pa.types.is_nested(kind):
            raise TypeError("its values have no order")
        values = [condition.text] if isinstance(condition, Prefix) else _compared(condition)
        if kind == TIMESTAMP:
            values = [None if value is None else storage_value(END_TIME, value) for value in values]
        return pa.array(values, kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InvalidOption(
            f"The condition on column {name!r} does not fit: {error}.", next_step=f"Compare it with a value of its type, {kind}."
        ) from None


def _compared(condition: Any) -> list[Any]:
    """The values that a condition names: those it lists, or the two ends of its range."""
    return [condition.low, condition.high] if isinstance(condition, Between) else listed(condition)


def allowed_values(table: Table, where: Where, schema: pa.Schema) -> dict[str, pa.Array]:
    """The values that conditions name, by column, of a range its ends: made ``comparable`` once, for however many rows are checked."""
    allowed = {}
    for name, condition in where.items():
        if condition is None or isinstance(condition, Prefix):
            continue
        column = table.by_name.get(name)
        if column is None:
            found = _requested_values(name, condition, schema.field(name).type)
        else:
            stored = pa.array(_stored_values(table, column, condition), column.storage_type)
            found = surface_array(replace(column, implicit=False), stored)  # None is no value here, and no zero
        allowed[name] = comparable(found)
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
    assert allowed is not None
    if isinstance(condition, Between):
        return _within(comparable(values), condition, allowed[0], allowed[1])
    return pc.is_in(comparable(values), value_set=allowed)


def _within(values: pa.ChunkedArray, condition: Between, low: pa.Scalar, high: pa.Scalar) -> pa.ChunkedArray:
    mask = values.is_valid()
    if low.is_valid:
        mask = pc.and_(mask, (pc.greater if condition.above else pc.greater_equal)(values, low))
    if high.is_valid:
        mask = pc.and_(mask, (pc.less if condition.below else pc.less_equal)(values, high))
    return pc.fill_null(mask, False)
