"""What happened between two sets of events, as plainly as it can be said. Nothing here is shared with the engine."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from .model import Event, Key, State


class Change(Enum):
    """What became of a key between two states, as the net difference calls it."""

    CREATED = "created"
    OVERWRITTEN = "overwritten"
    MODIFIED = "modified"
    DELETED = "deleted"


def changes(before: Iterable[Event], after: Iterable[Event]) -> list[Event]:
    """The raw change events between two sets: those in ``after`` and not in ``before``, in the order of their stamps."""
    known = {event.stamp for event in before}
    return sorted((event for event in after if event.stamp not in known), key=lambda event: event.stamp)


def diff(before: State, after: State, table: str) -> dict[Key, Change]:
    """The net difference of one table: what became of each key whose live version or its row is another one."""
    old, new = before.live(table), after.live(table)
    result = {}
    for key in old.keys() | new.keys():
        if key not in old:
            result[key] = Change.CREATED
        elif key not in new:
            result[key] = Change.DELETED
        elif old[key].name != new[key].name:
            result[key] = Change.OVERWRITTEN
        elif old[key].row_stamp != new[key].row_stamp:
            result[key] = Change.MODIFIED
    return result
