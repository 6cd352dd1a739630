"""Where to divide a tree: names that a few listings show, from the top down, until there are enough of them.

How much lies below a directory is not known, so each name weighs the same. Directories stand with their ``/``.
"""

from __future__ import annotations

from collections.abc import Callable

from ..ranges import NameRange, evenly

SAMPLE = 131_072
"""Entries of one directory that are looked at: as a system lists them they are as good as any."""
_LISTINGS = 256
_ENOUGH = 4
"""Names a part: with fewer the directories among them are looked into."""


def points_of(names_in: Callable[[bytes], list[bytes]], within: NameRange, parts: int) -> list[bytes]:
    """Names that divide a range into about so many parts; ``names_in`` gives what is in a directory, of which the root is empty.

    Directories that hold the ends of the range are looked into, however deep they lie, and of the others one level after the other.
    """
    found: set[bytes] = set()
    level, listings = [b""], 0
    while level and listings < _LISTINGS and len(found) < _ENOUGH * parts:
        looked_into = level[: _LISTINGS - listings]
        listings += len(looked_into)
        below = {name for directory in looked_into for name in names_in(directory)}
        found |= {name for name in below if within.after < name and (within.upto is None or name < within.upto)}
        level = sorted(name for name in below if name.endswith(b"/") and within.enters(name))
    return evenly(sorted(found), parts)
