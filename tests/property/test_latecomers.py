"""Transactions that arrive after twice the lateness bound: with them or without them until the next checkpoint, with them from then on."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bucketcatalog.store.memory import MemoryStore

from ..chance import searching
from .machine.driver import quiet
from .machine.histories import AT_TIME, AT_VERSION, BETWEEN, KEPT, STATED_ACTION
from .machine.latecomers import WRITERS, Latecomers
from .machine.steps import Checkpoint, Commit, Compare, Deliver, Fault, Leave, Read, Step, Wait
from .machine.world import Time
from .test_histories import narrated, still_clocks

_MINUTE = 60_000_000
_WHO = st.sampled_from(("alpha",) * 3 + ("beta",) * 2 + ("gamma",))
_ANYBODY = st.sampled_from(tuple(WRITERS)[:4])
_ACTIONS = st.lists(STATED_ACTION, min_size=1, max_size=3).map(tuple)
_WAIT = st.sampled_from((_MINUTE, 11 * _MINUTE, 12 * _MINUTE + 1, 13 * _MINUTE, 13 * _MINUTE))
_CHECKPOINT = st.builds(
    Checkpoint, _ANYBODY, st.booleans(), st.sampled_from((Fault.NONE,) * 4 + (Fault.LATE,)), st.integers(1, 3)
)
_STEPS: tuple[st.SearchStrategy[Step], ...] = (
    *(st.builds(Wait, _WAIT),) * 4,
    *(st.builds(Commit, _WHO, _ACTIONS),) * 4,
    *(st.builds(Commit, _WHO, _ACTIONS, st.just(Fault.CRASH_LATE)),) * 3,
    *(_CHECKPOINT,) * 4,
    *(st.builds(Deliver, st.integers(0, 3)),) * 3,
    st.builds(Read, _WHO),
    st.builds(Leave, _WHO),
    *(st.builds(Compare, st.just(True), st.tuples(AT_TIME, AT_VERSION, KEPT, BETWEEN)),) * 2,
)
LATE_STEP = st.integers(0, len(_STEPS) - 1).flatmap(lambda number: _STEPS[number])


@searching("late")
@given(st.lists(LATE_STEP, min_size=20, max_size=30))
def test_what_arrives_too_late_is_seen_from_the_next_checkpoint_on(steps: list[Step]) -> None:
    time = Time()
    history = Latecomers(MemoryStore(clock=time.now), time)
    with narrated(history.trace), still_clocks(time), quiet():
        history.run(steps)
