"""Random histories on the memory store and on disk: the engine says what the model says, whatever happened.

Where one fails, the shortest that does is printed as its steps and as what happened in each.
"""

from __future__ import annotations

import tempfile

import pytest
from hypothesis import given

from bucketcatalog.store.local import LocalStore
from bucketcatalog.store.memory import MemoryStore
from bucketcatalog.write import staging

from ..kit.chance import SEARCHES, searching
from ..kit.machine.histories import histories
from ..kit.machine.running import run
from ..kit.machine.steps import History
from ..kit.machine.world import Time


@pytest.mark.parametrize("share", range(SEARCHES["histories"].shares))
def test_histories_in_memory_end_as_the_model_says(share: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In every other share what is more than two events goes into segments."""
    if share % 2:
        monkeypatch.setattr(staging, "INLINE_ROWS", 2)

    @searching("histories", share)
    @given(histories())
    def search(history: History) -> None:
        time = Time()
        run(history, MemoryStore(clock=time.now), time)

    search()


@searching("disk")
@given(histories())
def test_histories_on_disk_end_as_the_model_says(history: History) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run(history, LocalStore(folder), Time())
