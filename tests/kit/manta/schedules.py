"""In which order operations that race look and commit, each by a node of its own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

Schedule = Sequence[tuple[str, int]]
"""Steps of operations by their numbers: ``look``, ``begin``, ``finish``. One that begins without having looked before looks then."""


def of_two() -> Iterator[Schedule]:
    """One after the other; both before either commits, begun in either order; and one that has looked, and begins after the other."""
    whole = [[("begin", at), ("finish", at)] for at in range(2)]
    yield [*whole[0], *whole[1]]
    for first, second in ((0, 1), (1, 0)):
        yield [("begin", first), ("begin", second), ("finish", 0), ("finish", 1)]
    yield [("look", 1), *whole[0], *whole[1]]


def of_three() -> Iterator[Schedule]:
    """They commit in their order; each looks before any of those that commit before it, or after them."""
    for slots in itertools.product(range(1), range(2), range(3)):
        steps: list[tuple[str, int]] = []
        for at in range(3):
            steps += [("look", other) for other in range(at, 3) if slots[other] == at]
            steps += [("begin", at), ("finish", at)]
        yield steps


def begun_of_three() -> Iterator[Schedule]:
    """All three are under way before any arrives; they begin in any order."""
    for order in itertools.permutations(range(3)):
        yield [*(("begin", at) for at in order), *(("finish", at) for at in range(3))]
