"""Transactions that arrive after twice the lateness bound: with them or without them until the next checkpoint, with them from then on."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bucketcatalog.store.memory import MemoryStore

from ..kit.chance import searching
from ..kit.machine.driver import quiet
from ..kit.machine.latecomers import LATE_STEP, Latecomers
from ..kit.machine.running import narrated, still_clocks
from ..kit.machine.steps import Step
from ..kit.machine.world import Time


@searching("late")
@given(st.lists(LATE_STEP, min_size=20, max_size=30))
def test_what_arrives_too_late_is_seen_from_the_next_checkpoint_on(steps: list[Step]) -> None:
    time = Time()
    history = Latecomers(MemoryStore(clock=time.now), time)
    with narrated(history.trace), still_clocks(time), quiet():
        history.run(steps)
