"""Deleters: who deletes the data of references that are garbage, and says which of it is gone.

A deleter is given the data reference, never a bare name, so that it cannot hit what now lives under that name. Data that is not there is
gone: a deletion is repeated after a crash, and by runs that do not know of each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from ...errors import BucketCatalogError, InvalidOption
from ...parallel import in_order
from .data import Place
from .pins import Mask


@dataclass(frozen=True)
class Deletions:
    """For each reference of a batch whether its data is gone, and what went wrong with the others, the first few."""

    gone: Mask
    problems: tuple[str, ...] = ()


class Deleter(Protocol):
    """Deletes the data of references: a table with a column for each of a reference's columns, as people see them, each row once."""

    def delete(self, batch: pa.Table) -> Deletions:
        """Delete; says which of the data is gone, as the store has acknowledged. Raises nothing that one reference causes."""
        ...


Callback = Callable[[pa.Table], Any]
"""A user's own: takes a batch of references, returns a boolean for each: whether its data is gone."""
_FEW = 3


@dataclass(frozen=True)
class Calling:
    """Asks a callable. What it raises is a failure of the whole batch, which the next run tries again."""

    call: Callback

    def delete(self, batch: pa.Table) -> Deletions:
        """What the callable says; nothing is gone where it raises, or answers something else than a boolean for each row."""
        nothing = np.zeros(len(batch), dtype=bool)
        try:
            answer = self.call(batch)
        except Exception as error:  # whatever a user's own code raises, the rest of the run goes on
            return Deletions(nothing, (f"the deleter raised {type(error).__name__}: {error}",))
        try:
            values = answer.combine_chunks() if isinstance(answer, pa.ChunkedArray) else pa.array(answer, pa.bool_())
            gone = np.asarray(values.cast(pa.bool_()).fill_null(False), dtype=bool)
        except (pa.ArrowException, TypeError, ValueError) as error:
            return Deletions(nothing, (f"the deleter's answer holds no booleans: {error}",))
        if len(gone) != len(batch):
            return Deletions(nothing, (f"the deleter's answer has {len(gone)} values for {len(batch)} references",))
        missed = len(batch) - int(gone.sum())
        return Deletions(gone, (f"the deleter left the data of {missed} references",) if missed else ())


@dataclass(frozen=True)
class Deleting:
    """Deletes objects of a place, one request each."""

    place: Place

    def delete(self, batch: pa.Table) -> Deletions:
        """Gone is what the store has deleted or has not."""
        names = self.place.template.names(batch).to_pylist()
        problems = list(in_order(self._delete, names, threads=self.place.store.concurrency))
        gone = np.array([problem is None for problem in problems], dtype=bool)
        return Deletions(gone, tuple(problem for problem in problems if problem is not None)[:_FEW])

    def _delete(self, name: str) -> str | None:
        """Delete an object; says why that failed."""
        if not self.place.is_data(name):
            return f"{name!r} lies where a catalog keeps no data"
        try:
            self.place.store.delete(name)
        except BucketCatalogError as error:
            return error.message
        return None


@dataclass(frozen=True)
class Pretending:
    """Deletes nothing and says that all is gone, for a dry run of another one."""

    of: Deleter

    def delete(self, batch: pa.Table) -> Deletions:
        """All of it."""
        return Deletions(np.ones(len(batch), dtype=bool))


def deleter_for(deleter: Deleter | None, columns: Sequence[str]) -> Deleter | None:
    """The deleter, if it can find data by references of these columns: one at a URL by those that stand in it alone."""
    asked = deleter.of if isinstance(deleter, Pretending) else deleter
    if isinstance(asked, Deleting) and sorted(asked.place.template.columns) != sorted(columns):
        return None
    return deleter


def deleter_of(given: Callback | None, place: Place | None) -> Deleter | None:
    """The deleter that a user gave, as a callable or as a place; ``InvalidOption`` where it is both, or no callable."""
    if given is not None and place is not None:
        raise InvalidOption("Data is deleted by a deleter or at a URL, not by both.", next_step="Give one of them.")
    if given is not None and not callable(given):
        raise InvalidOption(f"{given!r} deletes nothing.", next_step="Give a callable that takes a table of references.")
    return Calling(given) if given is not None else Deleting(place) if place is not None else None
