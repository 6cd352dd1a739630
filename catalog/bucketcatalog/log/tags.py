"""Which cut each tag names: of several entries of one name the one with the latest stamp counts.

What a view knows of a name is a function of the transactions in its cut. A checkpoint holds two entries of a name, which is enough to
tell the same of any union of checkpoints and transactions: the latest one, and the latest that names another cut than this.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..format.records import TagEntry
from .view import View


@dataclass(frozen=True, slots=True)
class TagState:
    """The entry of a name that counts, and the latest one before it that names another cut: what it replaced."""

    latest: TagEntry
    replaced: TagEntry | None = None

    @property
    def entries(self) -> tuple[TagEntry, ...]:
        """What a checkpoint has to hold of the name."""
        return (self.latest,) if self.replaced is None else (self.replaced, self.latest)


def tags_of(view: View) -> dict[str, TagState]:
    """Every name that was ever given to a cut, dropped ones included, sorted."""
    entries = [entry for checkpoint in view.checkpoints for entry in checkpoint.tags]
    return states_of([*entries, *(entry for transaction in view.tail for entry in transaction.tags)])


def states_of(entries: Iterable[TagEntry]) -> dict[str, TagState]:
    """What these entries say of each name, sorted."""
    by_name: dict[str, list[TagEntry]] = {}
    for entry in entries:
        by_name.setdefault(entry.name, []).append(entry)
    return {name: _state(by_name[name]) for name in sorted(by_name)}


def _state(entries: Iterable[TagEntry]) -> TagState:
    *earlier, latest = sorted(entries, key=lambda entry: entry.stamp)
    return TagState(latest, next((entry for entry in reversed(earlier) if entry.cut != latest.cut), None))
