"""Random histories of everything at once: whatever maintainers do and wherever they die, answers are the model's, or refused.

``BUCKETCATALOG_EVERYTHING`` says how many.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import given, seed, settings

from bucketcatalog import bulk
from bucketcatalog.store.memory import MemoryStore

from .driver import quiet
from .everything import Everything, everything
from .steps import History
from .test_histories import ANY_SPEED, narrated, still_clocks
from .world import Time

HISTORIES = int(os.environ.get("BUCKETCATALOG_EVERYTHING", "160"))
SHARES = 4
"""So many tests share the histories, for as many processes; in every other one restores write segments."""


@pytest.mark.parametrize("share", range(SHARES))
def test_answers_never_change_except_behind_the_horizon(share: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if share % 2:
        monkeypatch.setattr(bulk, "INLINE_BYTES", 0)

    @settings(ANY_SPEED, max_examples=max(1, HISTORIES // SHARES))
    @given(everything())
    def search(history: History) -> None:
        time = Time()
        machine = Everything(history, MemoryStore(clock=time.now), time)
        with narrated(machine.trace), still_clocks(time), quiet():
            machine.run()

    if settings().derandomize:  # or every share would try the same ones
        search = seed(share)(search)
    search()
