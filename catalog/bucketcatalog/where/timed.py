"""Conditions on columns of times, with text for the times: it is parsed once, when a read is made.

Some of it counts from now. Whoever evaluates a read's conditions again, later or in another process, has to see the same rows, so what
is kept of them is datetimes.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa

from .. import clock
from ..errors import InvalidOption, InvalidTime
from ..model.times import datetime_of, is_relative, parse_time
from .conditions import Between, Prefix, Where, listed


def settled(where: Where, schema: pa.Schema, name: str, now: int | None = None) -> Where:
    """The conditions with datetimes for text and dates on columns of timestamps; what is on other columns stays as it is.

    All that count from now count from one ``now``. ``name`` is what the rows are of. ``InvalidOption`` for what is no time.
    """
    kinds = {
        column: kind for column, condition in where.items() if (kind := _kind_of_times(schema, column)) and _is_to_do(condition)
    }
    if not kinds:
        return where
    now = clock.now_us() if now is None else now
    return {**where, **{column: _settled(name, column, where[column], kind, now) for column, kind in kinds.items()}}


def counts_from_now(where: Where) -> bool:
    """Whether some of the conditions may mean something else later, if they are on columns of times."""
    compared = (value for condition in where.values() if not isinstance(condition, Prefix) for value in _values(condition))
    return any(map(is_relative, compared))


def _kind_of_times(schema: pa.Schema, column: Any) -> pa.DataType | None:
    """The type of a column of timestamps; None for any other, and for what is no column: whoever checks conditions refuses that."""
    at = schema.get_field_index(column) if isinstance(column, str) else -1
    kind = schema.field(at).type if at >= 0 else None
    return kind if kind is not None and pa.types.is_timestamp(kind) else None


def _is_to_do(condition: Any) -> bool:
    return not isinstance(condition, Prefix) and any(map(_is_written, _values(condition)))


def _values(condition: Any) -> list[Any]:
    return [condition.low, condition.high] if isinstance(condition, Between) else listed(condition)


def _settled(name: str, column: str, condition: Any, kind: pa.DataType, now: int) -> Any:
    def moment(value: Any) -> Any:
        if not _is_written(value):
            return value
        try:
            found = datetime_of(parse_time(value, now))
        except InvalidTime as error:
            raise InvalidOption(
                f"The condition on column {column!r} of {name!r} does not fit: {error.message}", next_step=error.next_step
            ) from None
        return found if kind.tz is not None else found.replace(tzinfo=None)

    return _each(condition, moment)


def _each(condition: Any, make: Callable[[Any], Any]) -> Any:
    """The condition with what is made of each of its values."""
    if isinstance(condition, Between):
        return replace(condition, low=make(condition.low), high=make(condition.high))
    if isinstance(condition, (list, tuple, set, frozenset)):
        return [make(value) for value in condition]
    return make(condition)


def _is_written(value: Any) -> bool:
    """Whether it is a time that is no datetime yet; whole numbers are microseconds, and stay."""
    return isinstance(value, (str, datetime.date, datetime.timedelta)) and not isinstance(value, datetime.datetime)
