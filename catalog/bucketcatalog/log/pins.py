"""Pins: which writer needs the history after which cut, and which of them hold it.

Each writer speaks of its own pins alone, so that of a name the entry with the latest stamp counts and nobody contradicts it. That entry is
enough to tell the same of any union of checkpoints and transactions, if it is dropped too.

A pin holds events, and neither a state nor data: no horizon is published that its cut does not contain. It says nothing of what is read.
"""

from __future__ import annotations

from collections.abc import Iterable

from .. import limits
from ..format.records import PinEntry
from ..model.names import is_maintainer
from .entries import Entries

PinKey = tuple[str, str]
"""Whose pin it is, and what it is called."""


def pins_in(view: Entries) -> dict[PinKey, PinEntry]:
    """Of every pin the entry that counts among those of the view's transactions, dropped ones included, sorted."""
    entries = [entry for checkpoint in view.checkpoints for entry in checkpoint.pins]
    return latest_pins([*entries, *(entry for transaction in view.tail for entry in transaction.pins)])


def latest_pins(entries: Iterable[PinEntry]) -> dict[PinKey, PinEntry]:
    """Of every pin the entry that counts among these, sorted."""
    by_stamp = {entry.key: entry for entry in sorted(entries, key=lambda entry: entry.stamp)}
    return {key: by_stamp[key] for key in sorted(by_stamp)}


def pins_that_hold(pins: Iterable[PinEntry], now: int, longest: int = limits.PLAIN_PIN_AGE) -> list[PinEntry]:
    """The pins that hold what was committed after their cuts, by name: a maintainer's always, of each other writer its latest ones.

    These are at most ``PLAIN_PINS`` that it gave, or gave again, within the ``longest`` time before ``now``, in microseconds.
    """
    given = [entry for entry in pins if not entry.dropped]
    holding = [entry for entry in given if is_maintainer(entry.stamp.writer)]
    by_writer: dict[str, list[PinEntry]] = {}
    for entry in sorted(given, key=lambda entry: entry.stamp, reverse=True):
        if not is_maintainer(entry.stamp.writer) and now - longest <= entry.stamp.commit_time <= now + limits.MAX_CLOCK_SKEW:
            by_writer.setdefault(entry.stamp.writer, []).append(entry)
    holding += [entry for each in by_writer.values() for entry in each[: limits.PLAIN_PINS]]
    return sorted(holding, key=lambda entry: (entry.name, entry.stamp))


def holds_until(entry: PinEntry) -> int | None:
    """Until when, in microseconds and by default, a pin holds if it is not given again; None for a maintainer's: until it is dropped."""
    return None if is_maintainer(entry.stamp.writer) else entry.stamp.commit_time + limits.PLAIN_PIN_AGE
