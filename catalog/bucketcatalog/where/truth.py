"""Tests of rows by conditions with AND, OR and NOT: of columns of known types, evaluated by Arrow's kernels, and picklable.

They know three answers, as SQL does: what is compared with nothing is neither true nor false, and a row is kept where the whole is true.
Values compare as conditions of a scan do (``where.conditions``): zeros are equal, NaN equals itself and is the largest number.
"""

from __future__ import annotations

import functools
import operator
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..model.arrays import comparable, one_chunk, plain

_KERNELS: dict[str, Callable[..., Any]] = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {"LOWER": pc.utf8_lower, "UPPER": pc.utf8_upper}
_EXACT = pa.decimal128(20, 0)
"""Holds every integer."""
_is_of_one_size = pa.types.is_fixed_size_binary
_AS = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary(), pa.float16(): pa.float64()}
_SORTS = {
    "whole numbers": pa.types.is_integer,
    "numbers": pa.types.is_floating,
    "decimals": pa.types.is_decimal,
    "text": lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind),
    "bytes": lambda kind: (
        pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind) or _is_of_one_size(kind)
    ),
    "true or false": pa.types.is_boolean,
    "times": pa.types.is_timestamp,
    "dates": pa.types.is_date,
    "times of a day": pa.types.is_time,
}
NUMBERS = ("whole numbers", "numbers", "decimals")


def sort_of(kind: pa.DataType) -> str | None:
    """What the values of a type are, in words; None for what cannot be compared."""
    return next((sort for sort, is_one in _SORTS.items() if is_one(kind)), None)


def compared_as(kind: pa.DataType) -> pa.DataType:
    """The type as which the values of another are compared: one that holds them, and values between two of them."""
    if pa.types.is_timestamp(kind) and kind.unit in ("s", "ms"):
        return pa.timestamp("us", kind.tz)
    if pa.types.is_time32(kind):
        return pa.time64("us")
    if pa.types.is_date(kind):
        return pa.date32()
    return pa.binary() if _is_of_one_size(kind) else _AS.get(kind, kind)


@dataclass(frozen=True)
class Term:
    """A column, what lies in it, or functions of that, the innermost first. ``kind`` is the type of its values."""

    column: str
    kind: pa.DataType
    steps: tuple[str | int, ...] = ()
    functions: tuple[str, ...] = ()

    @property
    def is_a_column(self) -> bool:
        """Whether it is what a column shows, and no more has to be done."""
        return not self.steps and not self.functions

    def of(self, rows: pa.Table) -> pa.Array:
        """Its values, as they are compared."""
        values = one_chunk(rows.column(self.column))
        for step in self.steps:
            if pa.types.is_map(values.type):
                values = pc.map_lookup(values, pa.scalar(step, values.type.key_type), "first")
            else:
                values = pc.struct_field(values, step)
        values = plain(values)
        for function in self.functions:
            values = _FUNCTIONS[function](values) if function in _FUNCTIONS else _length(values)
        wanted = compared_as(self.kind)
        return values if values.type == wanted else values.cast(wanted)


def _length(values: pa.Array) -> pa.Array:
    return (pc.utf8_length if sort_of(values.type) == "text" else pc.binary_length)(values).cast(pa.int64())


class Test(ABC):
    """A condition of known types."""

    __test__ = False  # none of pytest's

    @abstractmethod
    def of(self, rows: pa.Table) -> pa.Array:
        """For each row true, false or null."""


@dataclass(frozen=True)
class Compared(Test):
    """A term compared with a value, which its type holds."""

    term: Term
    op: str
    value: Any

    def of(self, rows: pa.Table) -> pa.Array:
        """See ``Test``."""
        value = comparable(pa.array([self.value], compared_as(self.term.kind)))[0]
        return _KERNELS[self.op](comparable(self.term.of(rows)), value)


@dataclass(frozen=True)
class Pair(Test):
    """Two terms compared."""

    left: Term
    op: str
    right: Term

    def of(self, rows: pa.Table) -> pa.Array:
        """See ``Test``."""
        left, right = self.left.of(rows), self.right.of(rows)
        if left.type != right.type and (common := _common(left.type, right.type)) is not None:
            left, right = left.cast(common, safe=False), right.cast(common, safe=False)
        return _KERNELS[self.op](comparable(left), comparable(right))


def _common(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """What numbers of two types are compared as."""
    sorts = {sort_of(left), sort_of(right)}
    if sorts == {"whole numbers"}:
        return _EXACT
    return pa.float64() if "numbers" in sorts else None


@dataclass(frozen=True)
class Among(Test):
    """Whether a term is one of several values; ``or_unknown`` where null was among them, which nothing is known to equal."""

    term: Term
    values: tuple[Any, ...]
    or_unknown: bool = False
    is_negative: bool = False

    def of(self, rows: pa.Table) -> pa.Array:
        """See ``Test``."""
        values = comparable(self.term.of(rows))
        found = pc.is_in(values, value_set=comparable(pa.array(self.values, compared_as(self.term.kind))))
        unknown = pa.scalar(None, pa.bool_())
        if self.or_unknown:
            found = pc.if_else(found, True, unknown)
        found = pc.if_else(values.is_valid(), found, unknown)
        return pc.invert(found) if self.is_negative else found


@dataclass(frozen=True)
class Matches(Test):
    """Whether text is as a pattern of LIKE says: its parts are text, None for any text, True for any one character."""

    term: Term
    pattern: tuple[str | bool | None, ...]
    ignores_case: bool = False
    is_negative: bool = False

    def of(self, rows: pa.Table) -> pa.Array:
        """See ``Test``."""
        said = "".join(re.escape(part) if isinstance(part, str) else ".*" if part is None else "." for part in self.pattern)
        found = pc.match_substring_regex(self.term.of(rows), rf"(?s)\A(?:{said})\z", ignore_case=self.ignores_case)
        return pc.invert(found) if self.is_negative else found


@dataclass(frozen=True)
class Missing(Test):
    """Whether there is no value; of what cannot be compared too."""

    column: str
    term: Term | None = None
    is_negative: bool = False

    def of(self, rows: pa.Table) -> pa.Array:
        """See ``Test``."""
        values = one_chunk(rows.column(self.column)) if self.term is None else self.term.of(rows)
        return values.is_valid() if self.is_negative else values.is_null()


@dataclass(frozen=True)
class Whatever(Test):
    """One answer for every value of a term, which is null where there is none."""

    term: Term
    answer: bool

    def of(self, rows: pa.Table) -> pa.Array:
        """See ``Test``."""
        return pc.if_else(self.term.of(rows).is_valid(), self.answer, pa.scalar(None, pa.bool_()))


@dataclass(frozen=True)
class Always(Test):
    """One answer for all rows."""

    answer: bool | None

    def of(self, rows: pa.Table) -> pa.Array:
        """See ``Test``."""
        return pa.repeat(pa.scalar(self.answer, pa.bool_()), len(rows))


@dataclass(frozen=True)
class Every(Test):
    """All of several."""

    parts: Sequence[Test]

    def of(self, rows: pa.Table) -> pa.Array:
        """See ``Test``."""
        return functools.reduce(pc.and_kleene, (part.of(rows) for part in self.parts))


@dataclass(frozen=True)
class Some(Test):
    """One of several."""

    parts: Sequence[Test]

    def of(self, rows: pa.Table) -> pa.Array:
        """See ``Test``."""
        return functools.reduce(pc.or_kleene, (part.of(rows) for part in self.parts))


def orderable(value: Any) -> tuple[bool, Any]:
    """A value as what Python orders and takes for equal as tests do, among those of one type."""
    is_nan = isinstance(value, float) and operator.ne(value, value)
    return (True, 0.0) if is_nan else (False, value)
