"""The store's clock, as far as the ``Date`` of its answers tells.

``Date`` has whole seconds. An answer dated D to a request sent at s and received at r says that the store's clock was between D and D + 1 s
at some moment between s and r, so that its offset to this machine's lies between D - r and D + 1 s - s. Of the offsets that fit, the
smallest is taken: where clocks agree it is 0, and not up to a second of rounding.
"""

from __future__ import annotations

import threading
from email.utils import parsedate_to_datetime

from bucketcatalog import clock

LASTS = 30.0
_SECOND = 1_000_000


def offset_us(date_us: int, sent_us: int, received_us: int) -> int:
    """Microseconds to add to this machine's time so that it fits what the answer says."""
    return max(date_us - received_us, min(0, date_us + _SECOND - sent_us))


class StoreClock:
    """What the answers so far tell of the store's time. Threads may share it."""

    def __init__(self) -> None:
        self._learnt: tuple[float, int] | None = None
        self._sending = threading.local()

    def sending(self, **_: object) -> None:
        """A request is about to be sent by this thread."""
        self._sending.at = clock.now_us()

    def answered(self, date: str | None) -> None:
        """The answer to this thread's request has come."""
        received = clock.now_us()
        try:
            dated = int(parsedate_to_datetime(date).timestamp()) * _SECOND if date else None
        except ValueError:
            dated = None
        if dated is not None:
            self._learnt = clock.monotonic(), offset_us(dated, getattr(self._sending, "at", received), received)

    @property
    def known(self) -> bool:
        """Whether an answer at most 30 s old has told."""
        return self._learnt is not None and clock.monotonic() - self._learnt[0] <= LASTS

    def now_us(self) -> int:
        """The store's time, or this machine's where no answer has told any."""
        return clock.now_us() + (self._learnt[1] if self._learnt is not None else 0)
