"""The option ``where``: conditions on columns as JSON, or as text.

In JSON a column is mapped to a value, a list of values, null, ``{"prefix": ...}``, or ends of a range such as ``{">=": ..., "<": ...}``.
Any other text is a condition as a scan in Python takes it. An expression of pyarrow travels in a form of its own.
"""

from __future__ import annotations

import base64
import datetime
import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bucketcatalog import InvalidOption, prefix
from bucketcatalog.where.conditions import Between, Prefix, Where
from bucketcatalog.where.given import Condition, Predicate, understood

_EXPRESSION = "arrow:"
_ENDS = {">": ("low", "above"), ">=": ("low", ""), "<": ("high", "below"), "<=": ("high", "")}


def where_of(text: str | None) -> Where | Predicate:
    """The conditions that the option says; none without it."""
    if text is None:
        return {}
    if text.startswith(_EXPRESSION):
        return understood(_expression(text.removeprefix(_EXPRESSION)))
    if not text.lstrip().startswith("{"):
        return understood(text)
    try:
        said = json.loads(text)
        return {str(column): _condition(condition) for column, condition in said.items()}
    except (ValueError, AttributeError, TypeError, KeyError):
        raise InvalidOption(
            f"The option where is {text!r:.200}.",
            next_step='Give JSON, such as {"host": ["a", "b"], "time": {">=": "2024-01-01"}, "name": {"prefix": "x"}}, '
            "or a condition such as host in ('a', 'b') and name like 'x%'.",
        ) from None


def _expression(text: str) -> Any:
    try:
        return pc.Expression._deserialize(pa.py_buffer(base64.b64decode(text, validate=True)))
    except (pa.ArrowException, ValueError):
        raise InvalidOption(
            "The option where is to be an expression of pyarrow, and is none.",
            next_step="Give one to bcs.read, which writes it down.",
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


def where_text(where: Condition) -> str:
    """Conditions as the option ``where`` carries them."""
    if isinstance(where, str):
        return where
    if isinstance(where, pc.Expression):
        understood(where)  # or nothing can carry it
        _, (buffer,) = where.__reduce__()
        return _EXPRESSION + base64.b64encode(buffer).decode()
    if not isinstance(where, Mapping):
        raise InvalidOption(f"{where!r} is not a condition.", next_step="Give a mapping, text, or an expression of pyarrow.")
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
