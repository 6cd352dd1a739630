"""The catalog itself: what a place, or several, are opened as."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from ..errors import InvalidOption
from ..store.open import store_at
from .maintaining import Maintaining
from .opened import Place
from .reading import Reading
from .writing import Writing

Options = Mapping[str, Any] | None
"""What its store is reached with."""
Places = Sequence[Place] | Mapping[str, Place]
"""Where several catalogs are, which may have names."""
OptionsOfEach = Sequence[Options] | Mapping[str, Options]
"""What the stores of several are reached with, in their order or by their names."""


class Catalog(Reading, Writing, Maintaining):
    """A catalog in an object store, given by a path, any fsspec URL, or a ``Store``; several of these are read as one, by a ``Federation``.

    Opening one reads nothing and creates nothing. Whatever deletes is a dry run unless it is told otherwise.
    An age is text such as ``24h``, a timedelta, or a whole number of microseconds.
    """

    def __new__(cls, url: Place | Places = "", *, storage_options: Options | OptionsOfEach = None) -> Any:
        """A catalog, or of a list of places, or of a mapping of names to places, a federation of catalogs.

        Each of these has its options where they are a list too, or a mapping by the names.
        """
        if isinstance(url, (list, tuple, Mapping)):
            from ..federation import Federation, each_given

            given = each_given(url, storage_options)
            return Federation.of(given, [cls(each.place, storage_options=each.options) for each in given])
        if not isinstance(storage_options, Mapping | None):
            raise InvalidOption(
                f"The storage options of a catalog cannot be a {type(storage_options).__name__}.",
                next_step="Map the names of options to their values.",
            )
        return super().__new__(cls)

    def __init__(self, url: Place | Places, *, storage_options: Options | OptionsOfEach = None) -> None:
        super().__init__(store_at(cast(Place, url), cast(Options, storage_options)))

    def __repr__(self) -> str:
        return f"Catalog({self.url!r})"
