"""How long what a store has told of its time holds: half a minute, and no longer than the clock of this machine is left alone."""

from __future__ import annotations

from dataclasses import dataclass

from .. import clock, limits

_SET = limits.SECOND
"""A change of the wall clock against the monotonic one by so much was made by somebody, or the machine has slept."""


@dataclass(frozen=True, slots=True)
class Moment:
    """When something was learnt: seconds of the monotonic clock, and by how many microseconds the wall clock was ahead of that."""

    at: float
    ahead: float

    @classmethod
    def now(cls) -> Moment:
        """This one."""
        return cls(clock.monotonic(), _ahead())

    @property
    def holds(self) -> bool:
        """Whether an offset of the store's clock to this machine's that was learnt then can be gone by still."""
        return self.is_within(limits.LEARNT_TIME_LASTS)

    def is_within(self, micros: int) -> bool:
        """Whether it is no longer ago than so many microseconds, of which the machine has slept none and its clock was not set."""
        is_recent = clock.monotonic() - self.at <= micros / limits.SECOND
        return is_recent and abs(_ahead() - self.ahead) < _SET


def _ahead() -> float:
    return clock.now_us() - clock.monotonic() * limits.SECOND
