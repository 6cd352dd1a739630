"""What a condition that is written as text says, as a tree: no columns are known yet, and no types.

NOT is left in nothing but what is negative itself: whatever is false becomes true by it, and what is unknown stays so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

OPPOSITE = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
"""What is true of two values of which a comparison is false."""
FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""Comparisons in order, with the two values exchanged."""


@dataclass(frozen=True)
class Literal:
    """A value as it is written; ``is_time`` where DATE or TIMESTAMP stands before it."""

    value: bool | int | Decimal | str | bytes | None
    is_time: bool = False


@dataclass(frozen=True)
class Path:
    """A column, or what lies in it: below fields, or under the key of a map."""

    column: str
    steps: tuple[str | int, ...] = ()

    def __str__(self) -> str:
        return self.column + "".join(f"[{step!r}]" for step in self.steps)


@dataclass(frozen=True)
class Call:
    """A function of one operand."""

    name: str
    of: Operand


Operand = Literal | Path | Call


@dataclass(frozen=True)
class Compare:
    """Two operands compared."""

    left: Operand
    op: str
    right: Operand


@dataclass(frozen=True)
class In:
    """Whether an operand is one of several values."""

    of: Operand
    values: tuple[Literal, ...]
    is_negative: bool = False


@dataclass(frozen=True)
class Like:
    """Whether text is as a pattern says: its parts are text, None for any text, and True for any one character."""

    of: Operand
    pattern: tuple[str | bool | None, ...]
    ignores_case: bool = False
    is_negative: bool = False


@dataclass(frozen=True)
class IsNull:
    """Whether an operand has no value."""

    of: Operand
    is_negative: bool = False


@dataclass(frozen=True)
class Truth:
    """An operand that is true or false itself."""

    of: Operand
    is_negative: bool = False


@dataclass(frozen=True)
class Joined:
    """Phrases that all have to be true, or of which one has to be."""

    parts: tuple[Phrase, ...]
    is_or: bool = False


Phrase = Compare | In | Like | IsNull | Truth | Joined


def negated(phrase: Phrase) -> Phrase:
    """What is true where the phrase is false, false where it is true, and unknown where it is unknown."""
    if isinstance(phrase, Compare):
        return Compare(phrase.left, OPPOSITE[phrase.op], phrase.right)
    if isinstance(phrase, Joined):
        return Joined(tuple(map(negated, phrase.parts)), not phrase.is_or)
    twin = {**vars(phrase), "is_negative": not phrase.is_negative}
    return type(phrase)(**twin)


def operands(phrase: Phrase) -> Iterator[Operand]:
    """What a phrase is about."""
    if isinstance(phrase, Joined):
        for part in phrase.parts:
            yield from operands(part)
    elif isinstance(phrase, Compare):
        yield from (phrase.left, phrase.right)
    else:
        yield phrase.of


def columns_of(phrase: Phrase) -> tuple[str, ...]:
    """The columns that a phrase is about, each once, in their order."""
    found: dict[str, None] = {}
    for operand in operands(phrase):
        while isinstance(operand, Call):
            operand = operand.of
        if isinstance(operand, Path):
            found[operand.column] = None
    return tuple(found)


def conjuncts(phrase: Phrase) -> tuple[Phrase, ...]:
    """The phrases that all have to be true."""
    return phrase.parts if isinstance(phrase, Joined) and not phrase.is_or else (phrase,)
