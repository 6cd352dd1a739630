"""Data boundaries: from when on a run may collect by one, and which one it publishes next. Functions of times in microseconds.

A boundary B says that data may be deleted of which every version ended at or before B. From the moment it can be seen no writer takes that
data for a new version, and what was taken before has landed a maximum snapshot age later: then nothing that is not seen can name the data.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import InvalidOption
from ...log.timeline import MAX_SNAPSHOT_AGE
from ...log.view import DEFAULT_LATENESS_BOUND, View
from ...model.tables import Table

GRACE = 24 * 3_600 * 1_000_000
"""Microseconds for which tombstones and data that nothing names are left alone by default (RFD 149's)."""
SAFE_GRACE = MAX_SNAPSHOT_AGE


@dataclass(frozen=True, slots=True)
class Known:
    """The latest boundary that a look has shown: how far it reaches, and when it was published. Both 0 where there is none."""

    data: int = 0
    published: int = 0

    @property
    def usable_from(self) -> int:
        """The store's time from which data may be deleted by it: it can be seen by then, and whoever had not seen it has landed."""
        return self.published + DEFAULT_LATENESS_BOUND + MAX_SNAPSHOT_AGE

    def is_usable(self, now: int) -> bool:
        """Whether data may be deleted by it at a time of the store."""
        return self.data > 0 and now >= self.usable_from


def settled(view: View) -> int:
    """Nothing with an earlier commit time, or this one, can still arrive."""
    return view.observed - max(view.lateness_bound, DEFAULT_LATENESS_BOUND) - 1


def grace_of(table: Table, grace: int) -> int:
    """For how long the table's tombstones are kept at least."""
    return table.tombstone_retention_seconds * 1_000_000 or grace


def next_boundary(view: View, grace: int) -> int:
    """How far a boundary may reach that is published now."""
    return min(settled(view), view.observed - grace)


def check_grace(grace: int, *, force: bool) -> None:
    """``InvalidOption`` for a grace period that readers and writers may need, unless forced."""
    if grace < SAFE_GRACE and not force:
        raise InvalidOption(
            f"What ended {grace / 1e6:,.0f} s ago may be in use: readers and writers count on {SAFE_GRACE / 3.6e9:g} h.",
            next_step=f"Give an age of {SAFE_GRACE / 3.6e9:g} hours or more, or force it where nobody reads or writes.",
        )
