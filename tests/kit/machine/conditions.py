"""Conditions at random on columns of tables at random, and what meets them, as plainly as that can be said.

Nothing here is shared with the engine but the values that conditions are given as.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from bucketcatalog import between, prefix
from bucketcatalog.where.conditions import Between, Prefix

from .declaring import KINDS, Column, rank

INCLUSIVE = ("both", "left", "right", "neither")


def condition(column: Column, random: Random, seen: Sequence[Any]) -> Any:
    """A condition on a column, mostly of values that there are."""
    if not column.is_single or random.random() < 0.1:
        return None
    kind = KINDS[column.kind]
    known = [value for value in seen if value is not None]

    def value() -> Any:
        return random.choice(known) if known and random.random() < 0.7 else column.shown(random.choice(kind.values))

    forms = ["value", "list", *(["range"] * 3 if kind.orders else []), *(["prefix"] if kind.prefixes else [])]
    form = random.choice(forms)
    if form == "value":
        return _asked(value())
    if form == "list":
        return [None if random.random() < 0.15 else _asked(value()) for _ in range(random.randint(0, 4))]
    if form == "prefix":
        whole = value()
        return prefix(whole[: random.randint(0, 2)] if len(whole) < 10_000 or random.random() < 0.5 else whole)
    ends = [None if random.random() < 0.3 else value() for _ in range(2)]
    return between(*ends, inclusive=random.choice(INCLUSIVE))


def _asked(value: Any) -> Any:
    """A symbol that there is none of is asked for by its number."""
    return 77 if value == "77" else value


def allows(asked: Any, value: Any) -> bool:
    """Whether a value, as it is shown, meets a condition."""
    if asked is None or isinstance(asked, list):
        return any(_equal(one, value) for one in (asked if isinstance(asked, list) else [None]))
    if isinstance(asked, Prefix):
        start, whole = (text.encode() if isinstance(text, str) else text for text in (asked.text, value or ""))
        return value is not None and whole.startswith(start)
    if not isinstance(asked, Between):
        return _equal(asked, value)
    if value is None:
        return False
    above = asked.low is None or (rank(value) > rank(asked.low) if asked.above else rank(value) >= rank(asked.low))
    below = asked.high is None or (rank(value) < rank(asked.high) if asked.below else rank(value) <= rank(asked.high))
    return above and below


def _equal(asked: Any, value: Any) -> bool:
    if asked is None or value is None:
        return asked is value
    return bool(rank(str(asked) if asked == 77 and isinstance(value, str) else asked) == rank(value))
