"""Steps of a trace: operations whose arguments say in general what each side has in particular, such as the right entity tag.

Every step can be taken after every other one, so that Hypothesis may put a pause in the place of whichever it likes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

OWNERS = ("1a1a1a1a-1111-4111-8111-111111111111", "2b2b2b2b-2222-4222-8222-222222222222")
NO_BUCKET = "33333333-3333-4333-8333-333333333333"
"""The id of a bucket that nobody has made; it may have objects all the same."""
NO_OBJECT = "44444444-4444-4444-8444-444444444444"
"""An entity tag that no object has."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Nothing."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A compactor makes a checkpoint of all that the system has committed; PostgreSQL has nothing like it."""


@dataclass(frozen=True, slots=True)
class OfBucket:
    """An operation on an owner's buckets, by its name."""

    operation: str
    owner: int
    arguments: Mapping[str, Any]


Tag = Literal["right", "quoted", "weak", "wrong", "*"]


@dataclass(frozen=True, slots=True)
class Tags:
    """Entity tags: that of the object as it is, as it is or as HTTP may have it, and others; as one text, or as several."""

    tags: tuple[Tag, ...]
    as_text: bool = False


@dataclass(frozen=True, slots=True)
class When:
    """A time, so many microseconds after the object's last modification; HTTP's are of whole seconds."""

    later: int
    form: Literal["datetime", "iso", "http"] = "datetime"


@dataclass(frozen=True, slots=True)
class OfObject:
    """An operation on objects of a bucket: the ``bucket``-th of those made last, or one that nobody has made."""

    operation: str
    bucket: int
    arguments: Mapping[str, Any]
    conditions: tuple[tuple[str, Tags | When], ...] = ()


Step = Pause | Checkpoint | OfBucket | OfObject


@dataclass(frozen=True, slots=True, repr=False)
class Trace:
    """What is done, in this order, by nodes of the system that take turns; ``questions`` decides which pages are compared."""

    zero_byte_tombstones: bool
    nodes: int
    questions: int
    names: tuple[str, ...]
    steps: list[Step]

    def __repr__(self) -> str:
        """On several lines; the places of steps that do nothing are kept, for they decide which node takes which step."""
        lines = [
            f"zero_byte_tombstones={self.zero_byte_tombstones},",
            f"nodes={self.nodes},",
            f"questions={self.questions},",
            f"names={self.names!r},",
            "steps=[",
            *(f"    {line}," for line in self._told()),
            "],",
        ]
        return "\n".join(["Trace(", *(f"    {line}" for line in lines), ")"])

    def _told(self) -> Iterator[str]:
        for step, alike in groupby(self.steps):
            count = len(list(alike))
            yield from [f"*[{step}] * {count}"] if isinstance(step, Pause) and count > 1 else [str(step)] * count

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """The same where Hypothesis prints it."""
        printer.text(repr(self))
