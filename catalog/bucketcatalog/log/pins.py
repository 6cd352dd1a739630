"""Pins: which writer needs the history after which cut, and which of them hold it.

Each writer speaks of its own pins alone, so that of a name the entry with the latest stamp counts and nobody contradicts it. That entry is
enough to tell the same of any union of checkpoints and transactions, if it is dropped too. Of a plain writer some names count, those with
the latest entries: what is left out for that is older than as many others in any union, so it comes back in none.

A pin holds events, and neither a state nor data: no horizon is published that its cut does not contain. It says nothing of what is read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from .. import limits
from ..format.records import PinEntry
from ..model.names import is_maintainer
from .entries import Entries

PinKey = tuple[str, str]
"""Whose pin it is, and what it is called."""


def pins_in(view: Entries) -> dict[PinKey, PinEntry]:
    """Of every pin the entry that counts among those of the view's transactions, dropped ones included, sorted."""
    entries = [entry for checkpoint in view.checkpoints for entry in checkpoint.pins]
    return latest_pins([*entries, *(t.pin for t in view.tail if t.pin is not None)])


def latest_pins(entries: Iterable[PinEntry]) -> dict[PinKey, PinEntry]:
    """Of every pin the entry that counts among these, sorted."""
    latest = {entry.key: entry for entry in sorted(entries, key=lambda entry: entry.stamp)}
    kept = _latest_of_each(latest.values(), limits.PLAIN_PIN_NAMES)
    return {entry.key: entry for entry in sorted(kept, key=lambda entry: entry.key)}


def _latest_of_each(entries: Iterable[PinEntry], most: int) -> Iterator[PinEntry]:
    """Of each plain writer so many at most, those with the latest stamps, and all of maintainers."""
    of = Counter[str]()
    for entry in sorted(entries, key=lambda entry: entry.stamp, reverse=True):
        of[entry.stamp.writer] += 1
        if of[entry.stamp.writer] <= most or is_maintainer(entry.stamp.writer):
            yield entry


def pins_that_hold(pins: Iterable[PinEntry], now: int, longest: int = limits.PLAIN_PIN_AGE) -> list[PinEntry]:
    """The pins that hold what was committed after their cuts, by name: a maintainer's always, of each other writer its latest ones.

    These are at most ``PLAIN_PINS`` that it gave, or gave again, within the ``longest`` time before ``now``, in microseconds.
    """
    times = range(now - longest, now + limits.MAX_CLOCK_SKEW + 1)
    given = [e for e in pins if not e.dropped and (is_maintainer(e.stamp.writer) or e.stamp.commit_time in times)]
    return sorted(_latest_of_each(given, limits.PLAIN_PINS), key=lambda entry: (entry.name, entry.stamp))


def holds_until(entry: PinEntry) -> int | None:
    """Until when, in microseconds and by default, a pin holds if it is not given again; None for a maintainer's: until it is dropped."""
    return None if is_maintainer(entry.stamp.writer) else entry.stamp.commit_time + limits.PLAIN_PIN_AGE
