"""Pruning where transactions arrive long after all that was committed when they were has been deleted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bucketcatalog import HistoryPruned
from bucketcatalog.store.memory import MemoryStore

from ..kit.chance import searching
from ..kit.machine.driver import quiet
from ..kit.machine.everything import PRUNE
from ..kit.machine.horizons import PruningComparer
from ..kit.machine.latecomers import LATE_STEP, Latecomers
from ..kit.machine.onlooker import EngineReader
from ..kit.machine.pruning import Maintenance, Prune
from ..kit.machine.running import narrated, still_clocks
from ..kit.machine.steps import Part, Step, Wait
from ..kit.machine.world import Time


class PruningLatecomers(Latecomers):
    """A history with pruning, in which transactions arrive long after all that was committed when they were has been deleted."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._maintenance = Maintenance(self.world, self.store, self.trace.append, self._optional)
        self._comparer = PruningComparer(self.world, self.store, self._maintenance.horizon)

    def _take(self, step: Step | Prune) -> None:
        if isinstance(step, Prune):
            self.trace.append(f"{step}")
            self._now += 1
            self._maintenance.prune(step)
            if any(info.name.endswith(".ckpt") for info in self.store.list("")):
                self._checkpoints = max(self._checkpoints, 1)  # who prunes writes one where there is none
        else:
            super()._take(step)

    def _at_time(self, reader: EngineReader, number: int, just_before: bool, part: Part) -> None:
        times = self.world.times()
        time = times[number % len(times)] - just_before
        if time >= self._maintenance.horizon.time:
            super()._at_time(reader, number, just_before, part)
            return
        with pytest.raises(HistoryPruned):
            reader.snapshot(timestamp=time)


@searching("pruning")
@given(st.lists(st.one_of(*(LATE_STEP,) * 8, PRUNE, PRUNE, st.just(Wait(4_000_000_000))), min_size=24, max_size=34))
def test_what_arrives_after_its_time_was_pruned_is_seen_from_the_next_checkpoint_on(steps: list[Step]) -> None:
    time = Time()
    history = PruningLatecomers(MemoryStore(clock=time.now), time)
    with narrated(history.trace), still_clocks(time), quiet():
        history.run(steps)
