"""Conditions as they are typed: ``COLUMN OP VALUE``, of which the column's type says what the value is.

What is deleted by mistake is gone, so whatever could be read in two ways is refused: of text only one word stands there bare, the rest in
quotes, and what looks like a second condition is none.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from .... import clock
from ....errors import InvalidOption
from ....model.times import datetime_of, parse_time
from ....query.row_tests import COMPARISONS, Comparison

_SIGNS = sorted((each for each in COMPARISONS if not each[0].isalpha()), key=len, reverse=True)
_WORDS = sorted((each for each in COMPARISONS if each[0].isalpha()), key=len, reverse=True)
_SPELLED = "|".join(each.replace(" ", r"\s+") for each in _WORDS)
_OPERATOR = re.compile(rf"\s*(?P<sign>{'|'.join(_SIGNS)})|\s+(?P<word>{_SPELLED})(?=[\s('\"]|$)", re.IGNORECASE)
_QUOTED = r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\""
_ONE = re.compile(rf"\s*(?:(?P<quoted>{_QUOTED})|(?P<bare>.*?))\s*", re.DOTALL)
_NEXT = re.compile(rf"\s*(?:(?P<quoted>{_QUOTED})|(?P<bare>[^,'\"]+?))\s*(?:,|$)")
_BARE = re.compile(r"[^\s'\"(),=<>!][^\s'\"(),]*")


@dataclass(frozen=True)
class _Written:
    """A value as it was typed, without its quotes."""

    text: str
    is_quoted: bool


def condition(text: str, table: str, columns: pa.Schema) -> Comparison:
    """The condition that is typed so on a column of a data table with these ``columns``; ``InvalidOption`` where it is none."""
    column, comparison, rest = _divided(text, table, columns)
    if "null" in comparison:
        if rest.strip():
            raise InvalidOption(
                f"{text!r} compares by {comparison!r} with something.", next_step=f"Write {column} {comparison} and no value."
            )
        return Comparison(column, comparison)
    kind = columns.field(column).type
    if comparison == "starts with" and not pa.types.is_string(kind):
        raise InvalidOption(
            f"Column {column!r} is {kind}, and only text starts with something.", next_step="Compare it in another way."
        )
    written = _several(rest, text) if comparison.endswith("in") else _one(rest, text)
    values = [_typed(each, column, kind) for each in written]
    return _fitting(Comparison(column, comparison, values if comparison.endswith("in") else values[0]), table, columns)


def in_range(column: str, since: str | None, until: str | None, table: str, columns: pa.Schema) -> list[Comparison]:
    """The conditions that a column of times lies from ``since`` on and before ``until``, each unless it is None."""
    if columns.get_field_index(column) < 0:
        raise InvalidOption(
            f"Data table {table!r} has no column {column!r} of times.",
            next_step=f"Give --time-column, one of {', '.join(columns.names)}.",
        )
    kind = columns.field(column).type
    ends = [(comparison, end) for comparison, end in ((">=", since), ("<", until)) if end is not None]
    now = clock.now_us()
    return [
        _fitting(Comparison(column, each, _typed(_Written(end, True), column, kind, now)), table, columns) for each, end in ends
    ]


def _fitting(found: Comparison, table: str, columns: pa.Schema) -> Comparison:
    found.test(f"data.{table}", columns)
    return found


def _divided(text: str, table: str, columns: pa.Schema) -> tuple[str, str, str]:
    """Column, comparison and the rest. Columns can be called anything, so it is theirs that say where a name ends."""
    found = []
    for name in columns.names:
        begun = text if text.startswith(name) else text.lstrip()
        operator = _OPERATOR.match(begun, len(name)) if begun.startswith(name) else None
        if operator is not None:
            found.append((name, " ".join(operator[0].split()).lower(), begun[operator.end() :]))
    if len(found) == 1:
        return found[0]
    if found:
        names = " and ".join(repr(name) for name, *_ in found)
        raise InvalidOption(
            f"{text!r} can be read as a condition on {names}.", next_step="Delete in Python: cat.data(TABLE).delete_where([...])."
        )
    raise InvalidOption(
        f"{text!r} is no condition on a column of data table {table!r}.",
        next_step=f"Write COLUMN OP VALUE: one of {', '.join(columns.names)}, then one of {' '.join(_SIGNS)}, {', '.join(_WORDS)}.",
    )


def _one(rest: str, text: str) -> list[_Written]:
    found = _ONE.fullmatch(rest)
    assert found is not None  # whatever is not quoted is bare
    written = _written(found)
    if not written.text and not written.is_quoted:
        raise InvalidOption(f"{text!r} compares with nothing.", next_step="Write the value behind it; '' is empty text.")
    return [written]


def _several(rest: str, text: str) -> list[_Written]:
    inner = rest.strip()
    if inner.startswith("(") and inner.endswith(")"):
        inner = inner[1:-1]
    found = list(_listed(inner))
    if not found or any(each is None for each in found):
        raise InvalidOption(f"{text!r} has no list of values.", next_step="Write them as in ('a', 'b').")
    return [each for each in found if each is not None]


def _listed(text: str) -> Iterator[_Written | None]:
    """The values between commas; None where there is none."""
    at = 0
    while at < len(text):
        found = _NEXT.match(text, at)
        if found is None:
            yield None
            return
        yield _written(found)
        at = found.end()


def _written(found: re.Match[str]) -> _Written:
    quoted = found["quoted"]
    if quoted is None:
        return _Written(found["bare"], False)
    return _Written(quoted[1:-1].replace(quoted[0] * 2, quoted[0]), True)


def _typed(written: _Written, column: str, kind: pa.DataType, now: int | None = None) -> Any:
    """The value as the type has it; ``InvalidOption`` where it has none that is written so."""
    made = next((make for is_one, make in _MADE if is_one(kind)), None)
    if made is None:
        raise InvalidOption(
            f"Column {column!r} is {kind}, which nothing is compared with here.",
            next_step="Delete by another column, or in Python.",
        )
    text = written.text
    if pa.types.is_string(kind) and not written.is_quoted and (_BARE.fullmatch(text) is None or text.lower() == "null"):
        raise InvalidOption(
            f"The text {text!r} that column {column!r} is compared with has to be in quotes.",
            next_step=f'Write "{column} OP \'TEXT\'", one condition in each --where; for what is null "{column} is null".',
        )
    try:
        return datetime_of(parse_time(text, now)) if pa.types.is_timestamp(kind) else made(text)
    except (ValueError, ArithmeticError):
        raise InvalidOption(
            f"Column {column!r} is {kind}, and {text!r} is none.", next_step=f"Write one, such as {_example(kind)}."
        ) from None


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind))


_MADE: tuple[tuple[Callable[[pa.DataType], bool], Callable[[str], Any]], ...] = (
    (pa.types.is_string, str),
    (pa.types.is_boolean, _boolean),
    (pa.types.is_integer, int),
    (pa.types.is_floating, float),
    (pa.types.is_decimal, Decimal),
    (pa.types.is_timestamp, lambda text: datetime_of(parse_time(text))),
    (pa.types.is_date, datetime.date.fromisoformat),
    (pa.types.is_time, datetime.time.fromisoformat),
    (_is_bytes, bytes.fromhex),
)
_EXAMPLES = (
    (pa.types.is_boolean, "true"),
    (pa.types.is_integer, "7"),
    (pa.types.is_date, "2026-01-31"),
    (pa.types.is_time, "12:00:00"),
    (_is_bytes, "00ff, two hexadecimal digits a byte"),
)


def _example(kind: pa.DataType) -> str:
    return next((example for is_one, example in _EXAMPLES if is_one(kind)), "0.5")
