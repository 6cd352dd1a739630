"""Where the listing of a bucket is divided: at prefixes, and where there are none between keys.

Each part is listed flat, behind the end of the part before, so nothing depends on what the prefixes hold: a part may be empty, and
what lies beside the prefixes is in the part where its key sorts. ``a-b`` comes before ``a/`` there as everywhere.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise

from ...parallel import in_order
from ...store.inventory import Inventory, Span
from ..ranges import evenly

LEVELS = 3
ENOUGH = 4
AT_MOST = 16
"""Parts a thread: with fewer than ``ENOUGH`` the next level of prefixes is looked at; of more than ``AT_MOST`` neighbours are joined."""
_LEVEL_PAGES = 8
_PART_PAGES = 4


def spans(inventory: Inventory, threads: int, *, after: str | None = None, pages: int = 0) -> list[Span]:
    """Parts that together are what comes after the key ``after`` (None: everything), in order.

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
    inner = [Span(common(after, upto), after, upto) for after, upto in pairwise([start, *points])]
    return [*inner, Span(folder, points[-1] if points else start)]


def common(after: str, upto: str) -> str:
    """What all keys between the two begin with."""
    same = next((at for at, (one, other) in enumerate(zip(after, upto, strict=False)) if one != other), len(after))
    return after[:same]


_LAST = "\U0010ffff"
_PROBES = 512
"""Requests for single keys, about, after which nothing more is divided."""


def dividing(inventory: Inventory, span: Span, parts: int, *, threads: int) -> list[str]:
    """Keys that divide a span into about so many parts, in order; fewer where it holds less.

    Prefixes of up to three levels, as far as a few pages show them; where too few of these lie in the span, what its keys begin with. Such
    a key costs a request.
    """
    points: set[str] = set()
    below = inventory.prefixes(inventory.folder, _LEVEL_PAGES)
    for _ in range(LEVELS):
        points.update(prefix for prefix in below if _is_inside(prefix, span))
        if not below or len(points) >= parts:
            break
        open_ = [prefix for prefix in below if _is_inside(prefix, span) or span.after.startswith(prefix)]
        below = [found for level in in_order(lambda p: inventory.prefixes(p, 1), open_, threads=threads) for found in level]
    if len(points) < parts:
        points.update(_beginnings(inventory, span, parts, threads=threads))
    return evenly(sorted(points), parts)


def _is_inside(point: str, span: Span) -> bool:
    return span.after < point and (span.upto is None or point < span.upto)  # text compares as its UTF-8 bytes do


def _beginnings(inventory: Inventory, span: Span, parts: int, *, threads: int) -> list[str]:
    """What the keys of a span begin with, a character more each time, until there are enough of them."""
    stems, probes = _common_stem(inventory, span), 0
    while stems and len(stems) < parts and probes < _PROBES:
        found = list(in_order(partial(_branches, inventory, span), stems, threads=threads))
        probes += sum(len(branches) + 1 for branches in found)
        longer = [branch for branches in found for branch in branches]
        if longer == stems:
            break
        stems = longer
    return [stem for stem in stems if _is_inside(stem, span)]


def _common_stem(inventory: Inventory, span: Span) -> list[str]:
    """What all keys of a span begin with; nothing where there are none. A few requests, however long it is."""
    first = inventory.first(span)
    if first is None:
        return []
    shortest, longest = len(span.prefix), len(first)
    while shortest < longest:
        middle = (shortest + longest + 1) // 2
        if inventory.first(Span(span.prefix, first[:middle] + _LAST, span.upto)) is None:
            shortest = middle
        else:
            longest = middle - 1
    return [first[:shortest]]


def _branches(inventory: Inventory, span: Span, stem: str) -> list[str]:
    """What the keys of the span that begin with ``stem`` begin with, one character more, and the stem where that is a key."""
    found: list[str] = []
    after = span.after
    while (key := inventory.first(Span(stem, after, span.upto))) is not None:
        branch = key[: len(stem) + 1]
        if found and branch == found[-1]:  # keys that go on with the last character there is
            break
        found.append(branch)
        after = branch + _LAST if len(branch) > len(stem) else branch
    return found
