"""The option ``where``: conditions on columns as JSON.

A column is mapped to a value, a list of values, null, ``{"prefix": ...}``, or ends of a range such as ``{">=": ..., "<": ...}``: what a
scan in Python takes as ``where``.
"""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from typing import Any

from bucketcatalog import InvalidOption, prefix
from bucketcatalog.state.conditions import Between, Prefix, Where

_ENDS = {">": ("low", "above"), ">=": ("low", ""), "<": ("high", "below"), "<=": ("high", "")}


def where_of(text: str | None) -> Where:
    """The conditions that the option says; none without it."""
    if text is None:
        return {}
    try:
        said = json.loads(text)
        return {str(column): _condition(condition) for column, condition in said.items()}
    except (ValueError, AttributeError, TypeError, KeyError):
        raise InvalidOption(
            f"The option where is {text!r:.200}.",
            next_step='Give JSON, such as {"host": ["a", "b"], "time": {">=": "2024-01-01"}, "name": {"prefix": "x"}}.',
        ) from None


def _condition(said: Any) -> Any:
    if not isinstance(said, dict):
        return said
    if list(said) == ["prefix"]:
        return prefix(said["prefix"])
    ends: dict[str, Any] = {}
    for word, value in said.items():
        end, leaves_out = _ENDS[word]
        if end in ends:
            raise ValueError(f"two ends at one side: {word}")
        ends |= {end: value} | ({leaves_out: True} if leaves_out else {})
    return Between(**ends)


def where_text(where: Where) -> str:
    """Conditions as the option ``where`` carries them."""
    try:
        return json.dumps({column: _said(condition) for column, condition in where.items()}, default=_text, ensure_ascii=False)
    except TypeError as error:
        raise InvalidOption(
            f"The option where cannot say this: {error}.", next_step="Compare with text, numbers or times."
        ) from None


def _text(value: Any) -> str:
    """A value that people write as text."""
    if isinstance(value, (datetime.date, datetime.time, Decimal)):
        return str(value)
    raise TypeError(f"{value!r} is of the type {type(value).__name__}, which JSON has not")


def _said(condition: Any) -> Any:
    if isinstance(condition, Prefix):
        return {"prefix": condition.text}
    if not isinstance(condition, Between):
        return sorted(condition, key=repr) if isinstance(condition, (set, frozenset)) else condition
    low, high = ">" if condition.above else ">=", "<" if condition.below else "<="
    return {word: end for word, end in ((low, condition.low), (high, condition.high)) if end is not None}
