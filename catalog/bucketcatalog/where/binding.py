"""Conditions that were written as text, on columns of known types: a tree of phrases becomes a test.

What is compared has to fit, or is an ``InvalidOption``: numbers are compared with numbers, text with text, times with text that is one. A
number that no value of a column can be is no mistake, and decides the answer here.
"""

from __future__ import annotations

import datetime
from collections.abc import Collection
from decimal import Decimal
from typing import Any, NoReturn

import pyarrow as pa

from ..errors import InvalidOption, InvalidTime
from ..model.times import datetime_of, parse_time
from ..model.uuids import uuid_value
from .phrases import FLIPPED, Call, Compare, In, IsNull, Joined, Like, Literal, Operand, Path, Phrase, Truth
from .truth import (
    NUMBERS,
    Always,
    Among,
    Compared,
    Every,
    Matches,
    Missing,
    Pair,
    Some,
    Term,
    Test,
    Whatever,
    sort_of,
)

_WRITTEN = {
    "whole numbers": "a number",
    "numbers": "a number",
    "decimals": "a number",
    "text": "text in single quotes",
    "bytes": "bytes as X'0A1B'",
    "true or false": "TRUE or FALSE",
    "times": "text that is a time, such as '2024-05-01' or '2 days ago'",
    "dates": "text that is a date, such as '2024-05-01'",
    "times of a day": "text such as '12:30'",
}


class Binding:
    """What phrases mean of columns of a ``schema``, which are those of ``name``. Times that count from now count from one ``now``.

    What is compared with the columns ``uuids`` is one, in any of its forms.
    """

    def __init__(self, name: str, schema: pa.Schema, now: int, uuids: Collection[str] = ()) -> None:
        self._name = name
        self._schema = schema
        self._now = now
        self._uuids = uuids

    def test(self, phrase: Phrase) -> Test:
        """The phrase as a test."""
        if isinstance(phrase, Joined):
            parts = tuple(map(self.test, phrase.parts))
            return Some(parts) if phrase.is_or else Every(parts)
        if isinstance(phrase, Compare):
            return self._compared(phrase)
        if isinstance(phrase, Truth):
            return self._truth(phrase)
        if isinstance(phrase.of, Literal):
            raise InvalidOption(f"A condition is about {phrase.of.value!r} alone, and no column.", next_step="Name a column.")
        if isinstance(phrase, IsNull):
            return self._missing(phrase.of, is_negative=phrase.is_negative)
        term = self._term(phrase.of)
        return self._among(term, phrase) if isinstance(phrase, In) else self._matches(term, phrase)

    def _compared(self, phrase: Compare) -> Test:
        left, op, right = phrase.left, phrase.op, phrase.right
        if isinstance(left, Literal):
            left, op, right = right, FLIPPED.get(op, op), left
        if isinstance(left, Literal):
            raise InvalidOption("A condition compares two values, and no column.", next_step="Name a column.")
        term = self._term(left)
        sort = self._sort(term)
        if op in FLIPPED and sort == "true or false":
            self._refuse(term, "what is true or false has no order", "Compare it by = or !=.")
        if not isinstance(right, Literal):
            return self._pair(term, op, self._term(right))
        if right.value is None:
            return Always(None)
        value = self._value(term, sort, right, is_one=op in ("=", "!="))
        return _of_numbers(term, op, value) if sort == "whole numbers" else Compared(term, op, value)

    def _pair(self, left: Term, op: str, right: Term) -> Test:
        sorts = self._sort(left), self._sort(right)
        are_alike = sorts[0] == sorts[1] or set(sorts) <= set(NUMBERS)
        if sorts[0] == sorts[1] == "times":
            are_alike = (left.kind.tz is None) == (right.kind.tz is None)
        if not are_alike:
            self._refuse(
                left, f"its values are {sorts[0]}, and those of {right.column!r} {sorts[1]}", "Compare columns of one type."
            )
        return Pair(left, op, right)

    def _truth(self, phrase: Truth) -> Test:
        if isinstance(phrase.of, Literal):
            value = phrase.of.value
            return Always(None if value is None else bool(value) != phrase.is_negative)
        term = self._term(phrase.of)
        if self._sort(term) != "true or false":
            self._refuse(term, "it is neither true nor false", f"Compare it with {_WRITTEN[self._sort(term)]}.")
        return Compared(term, "=", not phrase.is_negative)

    def _missing(self, of: Operand, *, is_negative: bool) -> Test:
        if isinstance(of, Path) and not of.steps:
            return Missing(of.column, None, is_negative)
        term = self._term(of)
        return Missing(term.column, term, is_negative)

    def _among(self, term: Term, phrase: In) -> Test:
        sort = self._sort(term)
        values = [self._value(term, sort, each, is_one=True) for each in phrase.values if each.value is not None]
        if sort == "whole numbers":
            values = [int(value) for value in values if _is_of(term.kind, value)]
        return Among(
            term,
            tuple(values),
            len(phrase.values) > len([each for each in phrase.values if each.value is not None]),
            phrase.is_negative,
        )

    def _matches(self, term: Term, phrase: Like) -> Test:
        if self._sort(term) != "text":
            self._refuse(term, "LIKE is about text", f"Compare it with {_WRITTEN[self._sort(term)]}.")
        return Matches(term, phrase.pattern, phrase.ignores_case, phrase.is_negative)

    def _term(self, of: Operand) -> Term:
        if isinstance(of, Call):
            below = self._term(of.of)
            sort = self._sort(below)
            if sort != "text" and (of.name, sort) != ("LENGTH", "bytes"):
                self._refuse(below, f"{of.name.lower()} is about text", "Leave the function out.")
            kind = pa.int64() if of.name == "LENGTH" else below.kind
            return Term(below.column, kind, below.steps, (*below.functions, of.name))
        if isinstance(of, Literal):
            raise InvalidOption(f"A function of {of.value!r} is no condition on a column.", next_step="Name a column.")
        kind = self._schema.field(of.column).type
        for number, step in enumerate(of.steps):
            kind = self._below(Path(of.column, of.steps[:number]), kind, step)
        return Term(of.column, kind.value_type if pa.types.is_dictionary(kind) else kind, of.steps)

    def _below(self, path: Path, kind: pa.DataType, step: str | int) -> pa.DataType:
        if pa.types.is_struct(kind):
            if isinstance(step, str) and kind.get_field_index(step) >= 0:
                return kind.field(step).type
            known = ", ".join(kind.field(at).name for at in range(kind.num_fields))
            raise InvalidOption(f"{path} of {self._name!r} has no field {step!r}.", next_step=f"Its fields are {known}.")
        if pa.types.is_map(kind):
            is_text = sort_of(kind.key_type) == "text"
            if isinstance(step, str) == is_text and sort_of(kind.key_type) in ("text", "whole numbers"):
                return kind.item_type
            raise InvalidOption(
                f"{path} of {self._name!r} has no key {step!r}.", next_step=f"Its keys are of the type {kind.key_type}."
            )
        raise InvalidOption(
            f"{path} of {self._name!r} is of the type {kind}, and nothing lies in it that has a name.",
            next_step="Leave out what stands behind its name; in double quotes a column can be called anything.",
        )

    def _sort(self, term: Term) -> str:
        found = sort_of(term.kind)
        if found is None:
            self._refuse(
                term, f"values of the type {term.kind} cannot be compared", "Ask whether it IS NULL, or filter the rows."
            )
        return found

    def _value(self, term: Term, sort: str, literal: Literal, *, is_one: bool) -> Any:
        """What is written as a value of the type, of whole numbers as a number of any kind; ``is_one``: of those of the column."""
        try:
            if sort == "text" and term.is_a_column and term.column in self._uuids and isinstance(literal.value, str):
                return self._uuid(term, literal.value, is_one=is_one)
            value = _typed(term.kind, sort, literal, self._now)
            if sort not in ("whole numbers", "numbers"):
                pa.scalar(value, term.kind) if sort != "times" else pa.scalar(value)
            return value
        except InvalidTime as error:
            self._refuse(term, error.message.rstrip("."), error.next_step or "")
        except (pa.ArrowException, TypeError, ValueError, ArithmeticError) as error:
            why = str(error) if isinstance(error, TypeError) else f"{literal.value!r} is none of its values"
            self._refuse(term, why, f"Compare it with {_WRITTEN[sort]}.")

    def _uuid(self, term: Term, text: str, *, is_one: bool) -> str:
        try:
            return uuid_value(text)
        except ValueError as error:
            if not is_one:  # any text has a place in their order
                return text
            self._refuse(term, str(error), "Give a uuid, or use LIKE for what is part of one.")

    def _refuse(self, term: Term, why: str, next_step: str) -> NoReturn:
        where = str(Path(term.column, term.steps))
        raise InvalidOption(f"The condition on column {where!r} of {self._name!r} does not fit: {why}.", next_step=next_step)


def _typed(kind: pa.DataType, sort: str, literal: Literal, now: int) -> Any:
    """The value that is meant; ``TypeError`` where what is written is something else."""
    value = literal.value
    is_number = isinstance(value, int | Decimal) and not isinstance(value, bool)
    is_text = isinstance(value, str)
    if literal.is_time and sort not in ("times", "dates"):
        raise TypeError(f"its values are {sort}, and it is compared with a time")
    if sort == "numbers" and is_text:
        return float(value)  # type: ignore[arg-type] # 'nan' and 'inf' have no other form
    fits = {"bytes": isinstance(value, bytes), "true or false": isinstance(value, bool)}
    fits |= dict.fromkeys(NUMBERS, is_number)
    if not fits.get(sort, is_text):
        raise TypeError(f"its values are {sort}, and it is compared with {value!r}")
    if sort == "numbers":
        return float(value)  # type: ignore[arg-type]
    if sort == "decimals":
        return Decimal(value)  # type: ignore[arg-type]
    if sort == "times":
        moment = datetime_of(parse_time(value, now))  # type: ignore[arg-type]
        return moment if kind.tz is not None else moment.replace(tzinfo=None)
    if sort == "dates":
        return datetime.date.fromisoformat(value)  # type: ignore[arg-type]
    if sort == "times of a day":
        return datetime.time.fromisoformat(value)  # type: ignore[arg-type]
    return value


def _ends(kind: pa.DataType) -> tuple[int, int]:
    bits, is_signed = kind.bit_width, pa.types.is_signed_integer(kind)
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if is_signed else (0, (1 << bits) - 1)


def _is_of(kind: pa.DataType, value: int | Decimal) -> bool:
    """Whether a number is a value of an integer type."""
    low, high = _ends(kind)
    return low <= value <= high and value == int(value)


def _of_numbers(term: Term, op: str, value: int | Decimal) -> Test:
    """Whole numbers compared with any number."""
    low, high = _ends(term.kind)
    if value > high or value < low:
        return Whatever(term, op == "!=" or op in ((">", ">=") if value < low else ("<", "<=")))
    whole = int(value // 1) if isinstance(value, Decimal) else value
    if whole > value:
        whole -= 1  # towards zero is up, below it
    if whole == value:
        return Compared(term, op, whole)
    if op in ("=", "!="):
        return Whatever(term, op == "!=")
    if whole < low:
        return Whatever(term, op in (">", ">="))
    return Compared(term, "<=" if op in ("<", "<=") else ">", whole)
