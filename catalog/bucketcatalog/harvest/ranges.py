"""Ranges of names, into which a source is divided: each lies behind the one before, and together they are all names.

A range begins behind a name and ends with one, as listings of object stores do: who stopped somewhere goes on behind the last name that it
has seen. Names are bytes, below the source, in the order of the catalog's keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from typing import TypeVar

from ..model.keys import after_prefix


@dataclass(frozen=True, slots=True)
class NameRange:
    """The names after ``after`` and up to ``upto``, this one included; without an ``upto`` to the end. No name is empty."""

    after: bytes = b""
    upto: bytes | None = None

    @property
    def everything(self) -> bool:
        """Whether every name is in it."""
        return not self.after and self.upto is None

    def holds(self, name: bytes) -> bool:
        """Whether a name is in it."""
        return self.after < name and (self.upto is None or name <= self.upto)

    def enters(self, directory: bytes) -> bool:
        """Whether names that begin with ``directory``, which ends in ``/`` or is empty, can be in it."""
        end = after_prefix(directory)
        return (end is None or self.after < end) and (self.upto is None or directory < self.upto)

    def covers(self, directory: bytes) -> bool:
        """Whether all names that begin with ``directory`` are in it."""
        end = after_prefix(directory)
        return self.after <= directory and (self.upto is None or (end is not None and end <= self.upto))

    def below(self, directory: bytes) -> NameRange:
        """The same for names below a directory of which some are in the range, without what these begin with."""
        after, upto = self.after.startswith(directory), self.upto is not None and self.upto.startswith(directory)
        start = len(directory)
        return NameRange(self.after[start:] if after else b"", self.upto[start:] if upto and self.upto is not None else None)

    def divided(self, points: Iterable[bytes]) -> list[NameRange]:
        """The ranges between these names, as far as they lie within; each name belongs to the range before it."""
        inner = sorted({point for point in points if self.after < point and (self.upto is None or point < self.upto)})
        return [NameRange(after, upto) for after, upto in pairwise([self.after, *inner, self.upto]) if after is not None]

    def behind(self, first: bytes, last: bytes) -> list[NameRange]:
        """What is left where names from ``first`` on were met and ``last`` was the last of them.

        The directory that these lie in has proven large: what is left of it is a range of its own.
        """
        levels = zip(first.split(b"/")[:-1], last.split(b"/")[:-1], strict=False)
        shared = takewhile(lambda names: names[0] == names[1], levels)
        end = after_prefix(b"".join(name + b"/" for name, _ in shared))
        return NameRange(last, self.upto).divided([] if end is None else [end])


ALL_NAMES = NameRange()


Point = TypeVar("Point", bytes, str)


def evenly(points: Sequence[Point], parts: int) -> list[Point]:
    """Of sorted points those that leave about as many of them in each of so many parts."""
    if len(points) < parts:
        return list(points)
    return [points[len(points) * part // parts] for part in range(1, parts)]
