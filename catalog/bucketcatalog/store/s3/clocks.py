"""The store's clock, as far as the ``Date`` of its answers tells.

``Date`` has whole seconds. An answer dated D to a request sent at s and received at r says that the store's clock showed between D and
D + 1 s at some moment between s and r: its offset to this machine's lies between D - r and D + 1 s - s. What the answers of half a minute
allow together is kept, and of that the smallest offset is taken: where the clocks agree it is 0, and not up to a second of rounding.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from ... import clock
from ...limits import SECOND
from ..learnt import Moment


@dataclass(frozen=True, slots=True)
class Offsets:
    """Microseconds between which the store's offset to this machine's clock lies."""

    low: int
    high: int

    @classmethod
    def of_answer(cls, date: int, sent: int, received: int) -> Offsets:
        """What one answer tells; all times in microseconds."""
        return cls(date - received, date + SECOND - sent)

    def also(self, other: Offsets) -> Offsets:
        """What both allow; where they contradict each other, a clock was set meanwhile and the other, later one is right."""
        low, high = max(self.low, other.low), min(self.high, other.high)
        return Offsets(low, high) if low <= high else other

    @property
    def smallest(self) -> int:
        """The one of them that is nearest to 0."""
        return max(self.low, min(0, self.high))


@dataclass(frozen=True, slots=True)
class _Learnt:
    """Offsets, and when they were first learnt."""

    offsets: Offsets
    since: Moment


class StoreClock:
    """What the answers of the last half minute tell of the store's time. Threads may share it."""

    def __init__(self) -> None:
        self._learnt: _Learnt | None = None
        self._sending = threading.local()

    def sending(self, **_: object) -> None:
        """A request is about to be sent by this thread."""
        self._sending.at = clock.now_us()

    def answered(self, date: str | None) -> None:
        """The answer to this thread's request has come; without a date it tells nothing."""
        received = clock.now_us()
        try:
            dated = int(parsedate_to_datetime(date).timestamp()) * SECOND if date else None
        except ValueError:
            return
        if dated is not None:
            offsets = Offsets.of_answer(dated, getattr(self._sending, "at", received), received)
            known = self._learnt
            if known is None or not self.known:
                self._learnt = _Learnt(offsets, Moment.now())
            else:
                self._learnt = _Learnt(known.offsets.also(offsets), known.since)

    @property
    def known(self) -> bool:
        """Whether an answer at most 30 s old had a date, and this machine's clock was not set since."""
        return self._learnt is not None and self._learnt.since.holds

    def learnt_since(self, moment: float) -> bool:
        """Whether an answer has had a date since a moment of the monotonic clock at which the time was not known."""
        return self._learnt is not None and self._learnt.since.at >= moment

    def now_us(self) -> int:
        """The store's time, or this machine's where no answer had any."""
        return clock.now_us() + (self._learnt.offsets.smallest if self._learnt is not None else 0)
