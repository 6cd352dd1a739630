"""Which boundaries of what may be deleted count: for the history the one with the latest stamp, for data the one that reaches farthest.

Maintainers who do not see each other may publish data boundaries in any order; whoever deletes goes by one of them, so that whoever names
existing data has to keep out of the reach of all.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..format.boundaries import Boundary
from .view import View


@dataclass(frozen=True, slots=True)
class Boundaries:
    """The newest boundary of the history and the one of data that reaches farthest, which may be one, as far as there are any."""

    history: Boundary | None = None
    data: Boundary | None = None

    @property
    def entries(self) -> tuple[Boundary, ...]:
        """What a checkpoint has to hold of them, each once, by stamp."""
        found = {boundary.stamp: boundary for boundary in (self.history, self.data) if boundary is not None}
        return tuple(found[stamp] for stamp in sorted(found))


def boundaries_of(view: View) -> Boundaries:
    """The boundaries that count among those of the view's transactions."""
    carried = [boundary for checkpoint in view.checkpoints for boundary in checkpoint.boundaries]
    return newest_of([*carried, *(t.boundary for t in view.tail if t.boundary is not None)])


def newest_of(boundaries: Iterable[Boundary]) -> Boundaries:
    """Those that count among these."""
    ranked = sorted(boundaries, key=lambda boundary: boundary.stamp, reverse=True)
    return Boundaries(
        history=next((boundary for boundary in ranked if boundary.horizon.heads), None),
        data=max(
            (boundary for boundary in ranked if boundary.data), key=lambda boundary: (boundary.data, boundary.stamp), default=None
        ),
    )
