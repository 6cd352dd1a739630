"""Which levels of a table a checkpoint merges: a function of their sizes alone.

Level 0 is the folded state of everything below it; the others hold what came since, newer ones above older ones. New rows become a level
of their own, merged with the levels above the oldest of about their size or smaller once there are ``FAN_IN`` of these together. So a row
is written again about once for each power of ``FAN_IN`` between a checkpoint's size and the base's, and a reader meets at most
``FAN_IN - 1`` levels of each. Once all that lies over the base is a share of it, everything is merged, which a row pays for ``BASE_SHARE``
times.
"""

from __future__ import annotations

from collections.abc import Sequence

FAN_IN = 4
BASE_SHARE = 4
SMALL_ROWS = 1_024
"""Up to so many rows a table is one level: writing them again costs no more than reading another run."""


def lowest_merged(levels: Sequence[int], new: int) -> int:
    """The lowest level that is merged with ``new`` rows, by the rows of each level from 0 on; ``len(levels)`` where none is."""
    if not levels or sum(levels) + new <= SMALL_ROWS or (sum(levels[1:]) + new) * BASE_SHARE >= levels[0]:
        return 0
    at, size = len(levels), new
    while True:
        start = at
        while start > 1 and _tier(levels[start - 1]) <= _tier(size):
            start -= 1
        if at - start < FAN_IN - 1:
            return at
        size += sum(levels[start:at])
        at = start


def _tier(rows: int) -> int:
    """The power of ``FAN_IN`` that so many rows reach."""
    tier = 0
    while rows >= FAN_IN:
        rows, tier = rows // FAN_IN, tier + 1
    return tier
