"""Random histories with restores among the steps: each commits exactly what the model says, and the table is what it was.

``BUCKETCATALOG_RESTORES`` says how many.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings

from bucketcatalog import bulk
from bucketcatalog.store.memory import MemoryStore

from .driver import quiet
from .restores import RestoringMachine, restoring_histories
from .steps import History
from .test_histories import ANY_SPEED, narrated, still_clocks
from .world import Time

HISTORIES = int(os.environ.get("BUCKETCATALOG_RESTORES", "400"))


@pytest.mark.parametrize("in_segments", [False, True], ids=["blocks", "segments"])
def test_a_restore_makes_a_table_what_it_was_and_leaves_all_else(in_segments: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if in_segments:
        monkeypatch.setattr(bulk, "INLINE_BYTES", 0)

    @settings(ANY_SPEED, max_examples=max(1, HISTORIES // 2))
    @given(restoring_histories())
    def search(history: History) -> None:
        time = Time()
        machine = RestoringMachine(history, MemoryStore(clock=time.now), time)
        with narrated(machine.trace), still_clocks(time), quiet():
            machine.run()

    search()
