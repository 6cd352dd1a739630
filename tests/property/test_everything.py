"""Random histories of everything at once: whatever maintainers do and wherever they die, answers are the model's, or refused."""

from __future__ import annotations

import pytest
from hypothesis import given

from bucketcatalog.store.memory import MemoryStore
from bucketcatalog.write import staging

from ..kit.chance import SEARCHES, searching
from ..kit.machine.driver import quiet
from ..kit.machine.everything import Everything, everything, maintenance
from ..kit.machine.running import narrated, still_clocks
from ..kit.machine.steps import History
from ..kit.machine.world import Time

pytestmark = pytest.mark.long


@pytest.mark.parametrize("share", range(SEARCHES["everything"].shares))
def test_answers_never_change_except_behind_the_horizon(share: int, in_segments: None) -> None:
    @searching("everything", share)
    @given(everything())
    def search(history: History) -> None:
        take(history)

    search()


@pytest.mark.parametrize("share", range(SEARCHES["maintenance"].shares))
def test_nothing_is_lost_where_much_is_damaged_repaired_and_pruned(share: int, in_segments: None) -> None:
    @searching("maintenance", share)
    @given(maintenance())
    def search(history: History) -> None:
        take(history)

    search()


@pytest.fixture
def in_segments(share: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In every other share all events go into segments, those of commits as those of restores."""
    if share % 2:
        monkeypatch.setattr(staging, "INLINE_ROWS", 0)


def take(history: History) -> None:
    """Take the history's steps in a store of its own."""
    time = Time()
    machine = Everything(history, MemoryStore(clock=time.now), time)
    with narrated(machine.trace), still_clocks(time), quiet():
        machine.run()
