"""Conditions on columns that no table declares: what rows meet them, and which ranges of values may hold one that does.

They are written and compared as everywhere (``where.conditions``): by the types that Arrow has of the columns, since nobody has declared
any. Whoever knows the least and the greatest value of some rows asks here whether it has to read them. A ``Comparison`` is a condition on
its own, in words that can be kept.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InvalidOption, InvalidTime
from ..model.arrays import Mask, comparable, one_chunk
from ..model.keys import after_prefix
from ..model.tables import Table
from ..model.times import datetime_of, parse_time
from ..where.conditions import Between, Prefix, Where, allowed_values, check, listed, matching
from ..where.timed import settled


@dataclass(frozen=True)
class Wanted:
    """What a condition allows of a column: ``values``, or else those from ``low`` to ``high``, and ``nothing``, which is no value.

    ``above`` and ``below`` leave out the ends themselves; an end that is None is open. Text is bytes.
    """

    values: pa.Array | None = None
    low: pa.Scalar | None = None
    high: pa.Scalar | None = None
    above: bool = False
    below: bool = False
    nothing: bool = False

    def may_lie(self, low: pa.Array, high: pa.Array) -> Mask:
        """For each range whether it may hold such a value; one of which an end is null may hold any. All are of one type."""
        unknown = np.asarray(pc.or_(low.is_null(), high.is_null()))
        low, high = comparable(one_chunk(low)), comparable(one_chunk(high))
        found = self._among(low, high) if self.values is not None else self._between(low, high)
        return unknown | found

    def _among(self, low: pa.Array, high: pa.Array) -> Mask:
        assert self.values is not None
        values = comparable(self.values.drop_null())
        if not len(values):
            return np.zeros(len(low), dtype=bool)
        values = values.take(pc.sort_indices(values))
        at = np.asarray(pc.search_sorted(values, pc.fill_null(low, values[0])))
        there: Mask = at < len(values)
        first = values.take(pa.array(np.minimum(at, len(values) - 1)))
        return there & _is_true(pc.less_equal(first, high))

    def _between(self, low: pa.Array, high: pa.Array) -> Mask:
        found = np.ones(len(low), dtype=bool)
        if self.low is not None:
            found &= _is_true((pc.greater if self.above else pc.greater_equal)(high, _comparable(self.low)))
        if self.high is not None:
            found &= _is_true((pc.less if self.below else pc.less_equal)(low, _comparable(self.high)))
        return found


class RowTest:
    """Conditions on some of the columns of a ``schema``; ``InvalidOption`` for a column that is not there, or what does not fit.

    ``name`` is what the rows are of, as errors say it. ``where`` has values of the columns' types for what was given, and times that do not
    count from ``now`` any more: given these, another test is the same.
    """

    def __init__(self, name: str, where: Where, schema: pa.Schema, now: int | None = None) -> None:
        self._table = Table(name, (), ())
        self.where: Where = {
            column: _exactly(_of_text(name, column, condition, schema), _kind(column, schema))
            for column, condition in settled(where, schema, name, now).items()
        }
        check(self._table, self.where, schema)
        for column, condition in self.where.items():
            if condition is not None and pa.types.is_nested(schema.field(column).type):
                raise InvalidOption(
                    f"Column {column!r} of {name!r} cannot be compared with a value.",
                    next_step="Compare it with None, or filter the rows.",
                )
        self.tested = pa.schema([schema.field(column) for column in self.where])

    @property
    def name(self) -> str:
        """What the rows are of."""
        return self._table.name

    @cached_property
    def allowed(self) -> Mapping[str, pa.Array]:
        """The values that conditions name, by column, of a range its ends."""
        return allowed_values(self._table, self.where, self.tested)

    def of(self, rows: pa.Table) -> pa.ChunkedArray:
        """For each row, which has at least the tested columns, whether it meets every condition, of which there is at least one."""
        return matching(rows, self.where, self.allowed)

    def met_by(self, rows: pa.Table) -> pa.Table:
        """The rows that meet every condition."""
        return rows.filter(self.of(rows)) if self.where else rows

    def wanted(self, column: str) -> Wanted:
        """What the condition on a column allows."""
        condition, kind = self.where[column], self.tested.field(column).type
        if isinstance(condition, Prefix):
            raw = condition.text.encode() if isinstance(condition.text, str) else condition.text
            after = after_prefix(raw)
            return Wanted(low=pa.scalar(raw), high=None if after is None else pa.scalar(after), below=True)
        values = _raw(pa.array([condition.low, condition.high] if isinstance(condition, Between) else listed(condition), kind))
        if isinstance(condition, Between):
            low, high = (end if end.is_valid else None for end in values)
            return Wanted(low=low, high=high, above=condition.above, below=condition.below)
        return Wanted(values.drop_null(), nothing=values.null_count > 0)


@dataclass(frozen=True)
class Comparison:
    """A condition on a column in one of the words of ``COMPARISONS``; as in SQL, a value that is null meets none but ``is null``."""

    column: str
    comparison: str
    value: Any = None

    @property
    def is_negative(self) -> bool:
        """Whether it allows what is not named."""
        return self.comparison in _NEGATIVE

    def test(self, name: str, schema: pa.Schema, now: int | None = None) -> RowTest:
        """What has to be so; of a negative one, what must not. ``InvalidOption`` where it does not fit the column."""
        return RowTest(name, {self.column: self._condition()}, schema, now)

    def of(self, name: str, rows: pa.Table) -> pa.ChunkedArray:
        """For each row whether it meets the condition."""
        found = self.test(name, rows.schema.remove_metadata()).of(rows)
        return pc.and_(pc.invert(found), rows.column(self.column).is_valid()) if self.is_negative else found

    def as_tested(self, name: str, schema: pa.Schema, now: int | None = None) -> Comparison:
        """The same with values that its column may have, of what people write; for what it has not, in another word."""
        (found,) = _said(self.column, self.test(name, schema, now).where[self.column])
        return replace(found, comparison=_OPPOSITE[found.comparison]) if self.is_negative else found

    def _condition(self) -> Any:
        if self.comparison in ("is null", "is not null"):
            return None
        if self.comparison == "starts with":
            return Prefix(self.value)
        ends = {"<": {"high": self.value, "below": True}, "<=": {"high": self.value}}
        ends |= {">": {"low": self.value, "above": True}, ">=": {"low": self.value}}
        return Between(**ends[self.comparison]) if self.comparison in ends else self.value


COMPARISONS = ("=", "!=", "<", "<=", ">", ">=", "in", "not in", "is null", "is not null", "starts with")
_COARSE = {"s": datetime.timedelta(seconds=1), "ms": datetime.timedelta(milliseconds=1)}
_OPPOSITE = {"=": "!=", "in": "not in", "is null": "is not null"}
_NEGATIVE = frozenset({"!=", "not in", "is not null"})
Conditions = Where | Sequence[tuple[str, str, Any]]
"""As a scan takes them, or column, comparison and value each."""


def comparisons(conditions: Conditions) -> tuple[Comparison, ...]:
    """The conditions, which all have to be met, one by one; ``InvalidOption`` for what is none."""
    if isinstance(conditions, Mapping):
        return tuple(each for column, condition in conditions.items() for each in _said(column, condition))
    try:
        found = tuple(Comparison(column, comparison, value) for column, comparison, value in conditions)
    except (TypeError, ValueError):
        found = (Comparison("", ""),)
    for each in found:
        if not isinstance(each.column, str) or each.comparison not in COMPARISONS:
            raise InvalidOption(
                f"{conditions!r:.200} are no conditions.",
                next_step=f'Give a mapping, or a list such as [("host", "=", "a")] with {", ".join(COMPARISONS)}.',
            )
        takes_several = each.comparison in ("in", "not in")
        if takes_several != isinstance(each.value, (list, tuple, set, frozenset)) or (
            each.value is None and "null" not in each.comparison
        ):
            raise InvalidOption(
                f"The condition on column {each.column!r} compares by {each.comparison!r} with {each.value!r}.",
                next_step="Compare by in with a list, by is null with nothing, and by anything else with one value.",
            )
    return found


def _said(column: str, condition: Any) -> list[Comparison]:
    """A condition as a scan takes it, in words."""
    if condition is None:
        return [Comparison(column, "is null")]
    if isinstance(condition, Prefix):
        return [Comparison(column, "starts with", condition.text)]
    if not isinstance(condition, Between):
        several = isinstance(condition, (list, tuple, set, frozenset))
        return [Comparison(column, "in", list(condition))] if several else [Comparison(column, "=", condition)]
    ends = [(condition.low, ">" if condition.above else ">="), (condition.high, "<" if condition.below else "<=")]
    found = [Comparison(column, word, end) for end, word in ends if end is not None]
    return found or [Comparison(column, "is not null")]


def _raw(values: pa.Array) -> pa.Array:
    return values.cast(pa.binary()) if pa.types.is_string(values.type) else values


def _comparable(value: pa.Scalar) -> pa.Scalar:
    return comparable(pa.array([value.as_py()], value.type))[0]


def _is_true(mask: Any) -> Mask:
    return np.asarray(pc.fill_null(mask, False))


def _of_text(name: str, column: str, condition: Any, schema: pa.Schema) -> Any:
    """The condition with values of its column's type where that is one that people write as text."""
    kind = _kind(column, schema)
    if not _is_written_as_text(kind) or condition is None or isinstance(condition, Prefix):
        return condition

    def value(given: Any) -> Any:
        try:
            return _value(given, kind)
        except (ValueError, ArithmeticError, InvalidTime, InvalidOption) as error:
            raise InvalidOption(
                f"The condition on column {column!r} of {name!r} does not fit: {str(error) or type(error).__name__}.",
                next_step=f"Compare it with a value of its type, {kind}.",
            ) from None

    if isinstance(condition, Between):
        return replace(condition, low=value(condition.low), high=value(condition.high))
    return [value(each) for each in listed(condition)]


def _kind(column: str, schema: pa.Schema) -> pa.DataType:
    at = schema.get_field_index(column) if isinstance(column, str) else -1
    return schema.field(at).type if at >= 0 else pa.null()


def _exactly(condition: Any, kind: pa.DataType) -> Any:
    """The condition as it is said of a type whose values are coarser than what it names: Arrow would round that, and compare with it.

    What lies between two values of the type equals none; what is below it is at most the lower one, and what is above it is larger.
    """
    if condition is None or isinstance(condition, Prefix):
        return condition
    if not isinstance(condition, Between):
        values = listed(condition)
        exact = [value for value in values if _lower(value, kind) is None]
        return condition if len(exact) == len(values) else exact
    low, high = (_lower(end, kind) for end in (condition.low, condition.high))
    if low is not None:
        condition = replace(condition, low=low, above=True)
    return condition if high is None else replace(condition, high=high, below=False)


def _lower(value: Any, kind: pa.DataType) -> Any:
    """Of a value that lies between two of a type the lower of these; None for any other."""
    if isinstance(value, float) and pa.types.is_integer(kind):
        return math.floor(value) if math.isfinite(value) and not value.is_integer() else None
    if isinstance(value, datetime.datetime) and pa.types.is_date(kind):
        return value.date() if value.time() != datetime.time() else None
    has_unit = pa.types.is_timestamp(kind) or pa.types.is_time(kind) or pa.types.is_duration(kind)
    unit = _COARSE.get(kind.unit) if has_unit else None
    if unit is None:
        return None
    if isinstance(value, datetime.timedelta):
        return value // unit * unit if value % unit else None
    if not isinstance(value, (datetime.datetime, datetime.time)):
        return None
    rest = value.microsecond % (unit // datetime.timedelta(microseconds=1))
    return value.replace(microsecond=value.microsecond - rest) if rest else None


def _is_written_as_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_temporal(kind) or pa.types.is_decimal(kind) or pa.types.is_floating(kind))


def _value(given: Any, kind: pa.DataType) -> Any:
    if pa.types.is_timestamp(kind) and isinstance(given, datetime.datetime):
        moment = datetime_of(parse_time(given))
        return moment if kind.tz is not None else moment.replace(tzinfo=None)
    if not isinstance(given, str):
        return given
    if pa.types.is_date(kind):
        return datetime.date.fromisoformat(given)
    if pa.types.is_time(kind):
        return datetime.time.fromisoformat(given)
    if pa.types.is_decimal(kind):
        return Decimal(given)
    return float(given) if pa.types.is_floating(kind) else given
