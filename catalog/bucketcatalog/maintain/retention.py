"""Which checkpoint becomes the horizon: how many are kept, and how old what goes has to be. Functions of values alone.

A horizon is a checkpoint of every writer's cut. Everything from its newest commit time on stays readable, so its age is that of its cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..errors import InvalidOption
from ..format.checkpoints import Checkpoint
from ..log.timeline import MAX_SNAPSHOT_AGE
from ..log.view import DEFAULT_LATENESS_BOUND

DEFAULT_GRACE = 24 * 3_600_000_000
SAFE_GRACE = MAX_SNAPSHOT_AGE + DEFAULT_LATENESS_BOUND
"""Microseconds: what is published can be seen by then by whoever looks, and who had looked before is done."""


@dataclass(frozen=True, slots=True)
class Retention:
    """What is kept: ``keep`` checkpoints of everyone, everything younger than ``older_than``, and all tags.

    What may go is deleted ``grace`` after that was published. Times are in microseconds.
    """

    older_than: int
    keep: int = 1
    grace: int = DEFAULT_GRACE

    def check(self, lateness_bound: int, *, force: bool) -> None:
        """``InvalidOption`` for what cannot be, and unless forced for what writers or readers under way may still need."""
        if self.keep < 1 or self.older_than < 0 or self.grace < 0:
            raise InvalidOption("At least one checkpoint is kept, and ages are not negative.", next_step="Give --keep 1 or more.")
        if not force and self.older_than < lateness_bound:
            raise InvalidOption(
                f"What is {self.older_than / 1e6:,.0f} s old may still be joined by transactions that are under way.",
                next_step=f"Give an age of {lateness_bound / 1e6:,.0f} s or more, or --force where no writer runs.",
            )
        if not force and self.grace < SAFE_GRACE:
            raise InvalidOption(
                f"Readers, and merges under way, may need what they began to read {self.grace / 1e6:,.0f} s ago.",
                next_step=f"Give a grace period of {SAFE_GRACE / 6e7:.0f}m or more, or --force where nobody reads or merges.",
            )


def of_everyone(checkpoints: Iterable[Checkpoint], began: Mapping[str, int]) -> list[Checkpoint]:
    """Those that cover every writer that had ``began`` to commit by then, oldest first; of equal cuts one."""
    covering = [c for c in checkpoints if not c.reads.heads and all(w in c.cut.heads or t > _time(c) for w, t in began.items())]
    by_cut = {c.cut: c for c in sorted(covering, key=lambda c: c.uuid, reverse=True)}
    return sorted(by_cut.values(), key=lambda c: (_time(c), c.uuid))


def chosen_horizon(checkpoints: Iterable[Checkpoint], began: Mapping[str, int], now: int, policy: Retention) -> Checkpoint | None:
    """The newest checkpoint of everyone that is old enough and has ``keep`` less one newer ones, if there is one."""
    covering = of_everyone(checkpoints, began)
    eligible = covering[: len(covering) - (policy.keep - 1)]
    return next((c for c in reversed(eligible) if not policy.older_than or now - _time(c) >= policy.older_than), None)


def _time(checkpoint: Checkpoint) -> int:
    return checkpoint.as_of
