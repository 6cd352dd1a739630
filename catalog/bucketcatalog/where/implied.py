"""What a test demands of single columns: conditions as a scan takes them, by which it reads less.

They are true of every row of which the test is; where they are true of no other row they say all of it, and the rows need no second look.
What cannot be said so is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..model.uuids import uuid_value
from .conditions import Between, Prefix
from .truth import Among, Compared, Every, Matches, Missing, Some, Test, Whatever, orderable

_NUMBER = re.compile("-?[0-9]+", re.ASCII)
_Allowed = list[Any] | Between | Prefix
"""Values, with None for rows without one, a range, or what text begins with."""


@dataclass(frozen=True)
class Implied:
    """Conditions by column, and whether they say all of what they are implied by."""

    where: Mapping[str, _Allowed] = field(default_factory=dict)
    is_exact: bool = False

    @property
    def conditions(self) -> dict[str, Any]:
        """The same as a scan takes them."""
        return {column: _shown(allowed) for column, allowed in self.where.items()}


def _shown(allowed: _Allowed) -> Any:
    return allowed[0] if isinstance(allowed, list) and len(allowed) == 1 else allowed


def implied_by(test: Test) -> Implied:
    """What a test demands of single columns."""
    if isinstance(test, Every):
        return of_every(map(implied_by, test.parts))
    if isinstance(test, Some):
        return of_some([implied_by(part) for part in test.parts])
    if isinstance(test, Missing):
        allowed: _Allowed = Between() if test.is_negative else [None]
        return Implied({test.column: allowed}, is_exact=True) if test.term is None else Implied()
    if not isinstance(test, Among | Compared | Matches | Whatever) or not test.term.is_a_column:
        return Implied()
    found = _of_one(test)
    if found is None:
        return Implied()
    are_meant = all(map(_is_meant, _values(found)))
    if not are_meant and not isinstance(found, list):  # in the order of uuids another form of one stands elsewhere than its text
        return Implied()
    # As a uuid a value takes the rows that it takes as text, which are none, and others.
    is_exact = are_meant and (not isinstance(test, Matches) or _is_all(test, found))
    return Implied({test.term.column: found}, is_exact and not (isinstance(found, list) and any(map(_may_be_a_number, found))))


def _of_one(test: Among | Compared | Matches | Whatever) -> _Allowed | None:
    """The values of a column that a test takes, and perhaps others; None where that cannot be said."""
    if isinstance(test, Whatever):
        return Between() if test.answer else []
    if isinstance(test, Among):
        return None if test.is_negative else list(test.values)
    if isinstance(test, Matches):
        return None if test.is_negative or test.ignores_case else _of_pattern(test.pattern)
    ends = {"<": Between(high=test.value, below=True), "<=": Between(high=test.value)}
    ends |= {">": Between(low=test.value, above=True), ">=": Between(low=test.value)}
    return [test.value] if test.op == "=" else ends.get(test.op)


def _of_pattern(pattern: tuple[str | bool | None, ...]) -> _Allowed | None:
    if not pattern:
        return [""]
    first = pattern[0]
    if not isinstance(first, str):
        return Prefix("") if pattern == (None,) else None
    return [first] if len(pattern) == 1 else Prefix(first)


def _is_all(test: Matches, found: _Allowed) -> bool:
    return isinstance(found, list) or len(test.pattern) == 1 or test.pattern[1:] == (None,)


def _is_meant(value: Any) -> bool:
    """Whether a condition takes the value for itself: other forms of a uuid's text mean the uuid, and are other text to a test."""
    if not isinstance(value, str):
        return True
    try:
        return uuid_value(value) == value
    except ValueError:
        return True


def _may_be_a_number(value: Any) -> bool:
    """Whether the text may be the number of a value of an enumeration, and so mean what is shown by its name."""
    return isinstance(value, str) and _NUMBER.fullmatch(value) is not None


def _values(allowed: _Allowed) -> list[Any]:
    if isinstance(allowed, Prefix):
        return []
    return allowed if isinstance(allowed, list) else [allowed.low, allowed.high]


def of_every(parts: Iterable[Implied]) -> Implied:
    """What is demanded where each of them is."""
    where: dict[str, _Allowed] = {}
    is_exact = True
    for part in parts:
        is_exact &= part.is_exact
        for column, allowed in part.where.items():
            if column not in where:
                where[column] = allowed
                continue
            both = _both(where[column], allowed)
            is_exact &= both is not None
            where[column] = where[column] if both is None else both
    return Implied(where, is_exact)


def of_some(parts: Sequence[Implied]) -> Implied:
    """What is demanded where one of them is, which all have in common: of one column alone that may be all there is to say."""
    where: dict[str, _Allowed] = {}
    for column in parts[0].where:
        each = [part.where[column] for part in parts if column in part.where]
        if len(each) == len(parts) and (one := _either(each)) is not None:
            where[column] = one
    are_lists = all(isinstance(allowed, list) for part in parts for allowed in part.where.values())
    is_exact = are_lists and len(where) == 1 and all(part.is_exact and len(part.where) == 1 for part in parts)
    return Implied(where, is_exact)


def _both(one: _Allowed, other: _Allowed) -> _Allowed | None:
    """What two conditions on a column both allow; None where that is no condition."""
    if isinstance(other, list):
        one, other = other, one
    if isinstance(one, list):
        return [value for value in one if _allows(other, value)]
    if isinstance(one, Between) and isinstance(other, Between):
        low, above = _tighter((one.low, one.above), (other.low, other.above), is_low=True)
        high, below = _tighter((one.high, one.below), (other.high, other.below), is_low=False)
        return Between(low, high, above, below)
    for prefix, rest in ((one, other), (other, one)):
        if isinstance(prefix, Prefix) and rest == Between():
            return prefix
        if isinstance(prefix, Prefix) and isinstance(rest, Prefix) and str(prefix.text).startswith(str(rest.text)):
            return prefix
    return [] if isinstance(one, Prefix) and isinstance(other, Prefix) else None


def _tighter(one: tuple[Any, bool], other: tuple[Any, bool], *, is_low: bool) -> tuple[Any, bool]:
    """Of two ends, each with whether it is left out itself, the one that allows less."""
    if one[0] is None or other[0] is None:
        return one if other[0] is None else other
    first, second = orderable(one[0]), orderable(other[0])
    if first == second:
        return one[0], one[1] or other[1]
    return one if (first > second) == is_low else other


def _allows(allowed: _Allowed, value: Any) -> bool:
    """Whether a condition allows a value."""
    if isinstance(allowed, list):
        return any(
            value is None if each is None else value is not None and orderable(each) == orderable(value) for each in allowed
        )
    if value is None:
        return False
    if isinstance(allowed, Prefix):
        return isinstance(value, str) and value.startswith(str(allowed.text))
    found = orderable(value)
    if allowed.low is not None and not (
        found > orderable(allowed.low) or (found == orderable(allowed.low) and not allowed.above)
    ):
        return False
    return allowed.high is None or found < orderable(allowed.high) or (found == orderable(allowed.high) and not allowed.below)


def _either(each: list[_Allowed]) -> _Allowed | None:
    """What one of several conditions on a column allows, and perhaps more; None where nothing can be said."""
    if all(isinstance(allowed, list) for allowed in each):
        values = [value for allowed in each if isinstance(allowed, list) for value in allowed]
        return [value for at, value in enumerate(values) if not _allows(values[:at], value)]
    if any(isinstance(allowed, Prefix) or (isinstance(allowed, list) and None in allowed) for allowed in each):
        return None
    found = [_hull(allowed) for allowed in each if allowed != []]
    low, high = found[0].low, found[0].high
    for other in found[1:]:
        low = None if low is None or other.low is None else min(low, other.low, key=orderable)
        high = None if high is None or other.high is None else max(high, other.high, key=orderable)
    return Between(low, high)


def _hull(allowed: _Allowed) -> Between:
    """A range of all that is allowed."""
    if isinstance(allowed, Between):
        return allowed
    assert isinstance(allowed, list)
    return Between(min(allowed, key=orderable), max(allowed, key=orderable))
