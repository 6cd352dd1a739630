"""Timing: things that are compared take turns, so that whatever else the machine does hits them alike."""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Mapping

from .results import Sample

Timed = Callable[[], float | None]
"""Does something once. Returns the seconds that count, or None: then all that it took counts."""


def in_turns(subjects: Mapping[str, Timed], rounds: int) -> dict[str, Sample]:
    """Run each subject once a round, in another order each round, the same in every run of the benchmarks.

    The orders are shuffled, not rotated: what a process finds depends on what the one before it left (pages that the machine has at hand,
    data that waits to be written), so nobody may always follow the same one.
    """
    shuffle = random.Random(rounds).shuffle
    order = list(subjects)
    values: dict[str, list[float]] = {name: [] for name in order}
    gc.collect()
    for _ in range(rounds):
        shuffle(order)
        for name in order:
            values[name].append(seconds(subjects[name]))
    return {name: Sample(tuple(found)) for name, found in values.items()}


def seconds(subject: Timed) -> float:
    """Run a subject once."""
    start = time.perf_counter()
    own = subject()
    return time.perf_counter() - start if own is None else own


def fastest(samples: Mapping[str, Sample]) -> str:
    """The subject with the smallest median."""
    return min(samples, key=lambda name: samples[name].median)
