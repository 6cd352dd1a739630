r"""Which entries of a source a harvest is about: globs, matched the same way against the source's names and the catalog's.

A glob is matched against the whole path below the source, as ``fnmatch`` does: ``*`` matches anything, ``/`` included, ``?`` one
character, ``[...]`` one of a set, ``[!...]`` one of none of it; case counts. An entry is in scope if an include matches it, or there is
none, and no exclude does. What is out of scope is left alone: it is neither added to the catalog, nor deleted from it because it was not
seen (as with ``rsync --delete`` and ``s5cmd sync --delete``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from ..model.globs import literal_beginning, pattern_of, translated


@dataclass(frozen=True)
class Scope:
    """The globs of one harvest. ``InvalidOption`` where one cannot be matched."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    _included: str | None = field(init=False, repr=False, compare=False, default=None)
    _excluded: str | None = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_included", _pattern(self.include))
        object.__setattr__(self, "_excluded", _pattern(self.exclude))

    @property
    def everything(self) -> bool:
        """Whether nothing is left out."""
        return self._included is None and self._excluded is None

    def mask(self, names: pa.Array) -> pa.Array | None:
        """Which of the names are in scope, or None where all are."""
        if self._included is None and self._excluded is None:
            return None
        inside = pc.match_substring_regex(names, self._included) if self._included is not None else None
        if self._excluded is None:
            return inside
        outside = pc.match_substring_regex(names, self._excluded)
        return pc.invert(outside) if inside is None else pc.and_not(inside, outside)

    def holds(self, name: str) -> bool:
        """Whether one name is in scope."""
        mask = self.mask(pa.array([name], pa.string()))
        return mask is None or bool(mask[0].as_py())

    def covers(self, path: str) -> bool:
        """Whether a path that cannot be catalogued is this harvest's business; one that ends in ``/`` stands for what is below."""
        return self.enters(path) if path.endswith("/") else self.holds(path)

    def enters(self, directory: str) -> bool:
        """Whether names that begin with ``directory``, which ends in ``/``, can be in scope; False only where surely none is.

        So ``--exclude 'cache/*'`` keeps a harvest from even opening ``cache``.
        """
        if self.everything:
            return True
        if self._closing is not None and self._closing.fullmatch(directory):
            return False
        return not self._openings or any(o.startswith(directory) or directory.startswith(o) for o in self._openings)

    @cached_property
    def _closing(self) -> re.Pattern[str] | None:
        """Excludes that, ending in ``*``, hold for everything below a directory that they match."""
        globs = [translated(glob) for glob in self.exclude if glob.endswith("*")]
        return re.compile(f"(?s:{'|'.join(globs)})") if globs else None

    @cached_property
    def _openings(self) -> tuple[str, ...]:
        """What the included names begin with, as far as no wildcard comes."""
        return tuple(literal_beginning(glob) for glob in self.include)


def _pattern(globs: Sequence[str]) -> str | None:
    return pattern_of(globs) if globs else None
