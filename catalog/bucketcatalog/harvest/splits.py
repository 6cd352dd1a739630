"""Where a bucket's keys are divided, so that several listings can run at once: at prefixes, as far as a few requests show any.

Each part is listed flat, behind the end of the part before, so nothing depends on what the prefixes hold: a part may be empty, and
what lies beside the prefixes is in the part where its key sorts. ``a-b`` comes before ``a/`` there as everywhere.
"""

from __future__ import annotations

from itertools import pairwise

from ..parallel import in_order
from ..store.inventories import Inventory, Span

LEVELS = 3
ENOUGH = 4
AT_MOST = 16
"""Parts a thread: with fewer than ``ENOUGH`` the next level of prefixes is looked at; of more than ``AT_MOST`` neighbours are joined."""
_PAGES = 8


def whole(inventory: Inventory) -> Span:
    """All keys below the folder; the folder's own marker is none of them."""
    return Span(inventory.folder, inventory.folder)


def spans(inventory: Inventory, threads: int) -> list[Span]:
    """Parts that together are ``whole``, in order. Costs up to 8 requests for the first level and one for each prefix of the next two."""
    if threads < 2:
        return [whole(inventory)]
    points: set[str] = set()
    below = inventory.prefixes(inventory.folder, _PAGES)
    for _ in range(LEVELS):
        points.update(below)
        if not below or len(points) >= ENOUGH * threads:
            break
        below = [found for level in in_order(lambda p: inventory.prefixes(p, 1), below, threads=threads) for found in level]
    return _between(inventory, _thinned(sorted(points), AT_MOST * threads))


def _thinned(points: list[str], count: int) -> list[str]:
    return points if len(points) <= count else [points[at * len(points) // count] for at in range(count)]


def _between(inventory: Inventory, points: list[str]) -> list[Span]:
    """The parts before, between and after the points; a point itself, which may be a key, belongs to the part before."""
    start = inventory.folder
    inner = [Span(_folder(after, upto), after, upto) for after, upto in pairwise([start, *points])]
    return [*inner, Span(start, points[-1] if points else start)]


def _folder(after: str, upto: str) -> str:
    """What all keys between the two begin with."""
    same = next((at for at, (one, other) in enumerate(zip(after, upto, strict=False)) if one != other), len(after))
    return after[:same]
