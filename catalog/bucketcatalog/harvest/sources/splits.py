"""Where a bucket's keys are divided, so that several listings can run at once: at prefixes, as far as a few requests show any.

Each part is listed flat, behind the end of the part before, so nothing depends on what the prefixes hold: a part may be empty, and
what lies beside the prefixes is in the part where its key sorts. ``a-b`` comes before ``a/`` there as everywhere.
"""

from __future__ import annotations

from itertools import pairwise

from ...parallel import in_order
from ...store.inventory import Inventory, Span

LEVELS = 3
ENOUGH = 4
AT_MOST = 16
"""Parts a thread: with fewer than ``ENOUGH`` the next level of prefixes is looked at; of more than ``AT_MOST`` neighbours are joined."""
_LEVEL_PAGES = 8
_PART_PAGES = 4


def whole(inventory: Inventory) -> Span:
    """All keys below the folder; the folder's own marker is none of them."""
    return Span(inventory.folder, inventory.folder)


def spans(inventory: Inventory, threads: int, *, after: str | None = None, pages: int = 0) -> list[Span]:
    """Parts that together are what comes after the key ``after`` (None: ``whole``), in order.

    ``pages`` is how many pages came up to there. The last page of a part mostly shows keys of the next part, too, which is lost work: so
    parts are made as large as will hold a few pages, judging by how many prefixes the pages so far have passed. Costs up to 8 requests
    for the first level of prefixes and one for each of them, and for each of the next, unless there are enough.
    """
    start = inventory.folder if after is None else after
    points: set[str] = set()
    below = inventory.prefixes(inventory.folder, _LEVEL_PAGES) if threads > 1 else []
    for _ in range(LEVELS):
        points.update(below)
        left = sum(point > start for point in points)
        if not below or left >= ENOUGH * threads:
            break
        open_ = [prefix for prefix in below if prefix > start or start.startswith(prefix)]
        below = [found for level in in_order(lambda p: inventory.prefixes(p, 1), open_, threads=threads) for found in level]
    to_come = sorted(point for point in points if point > start)
    step = max(1, -(-len(to_come) // (AT_MOST * threads)))
    if pages:
        step = max(step, (len(points) - len(to_come)) * _PART_PAGES // pages)
    return _between(inventory.folder, start, to_come[step - 1 :: step])


def _between(folder: str, start: str, points: list[str]) -> list[Span]:
    """The parts before, between and after the points; a point itself, which may be a key, belongs to the part before."""
    inner = [Span(_common(after, upto), after, upto) for after, upto in pairwise([start, *points])]
    return [*inner, Span(folder, points[-1] if points else start)]


def _common(after: str, upto: str) -> str:
    """What all keys between the two begin with."""
    same = next((at for at, (one, other) in enumerate(zip(after, upto, strict=False)) if one != other), len(after))
    return after[:same]
