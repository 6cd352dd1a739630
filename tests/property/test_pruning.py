"""Random histories with pruning: whenever it happens, and wherever it dies, answers are those of the model, or refused."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bucketcatalog import Catalog
from bucketcatalog.store.memory import MemoryStore

from .driver import quiet
from .histories import histories
from .pruning import LongWait, Prune, PruningLatecomers, PruningMachine, Tag
from .steps import Compare, History, Step, Wait
from .test_histories import ANY_SPEED, narrated, still_clocks
from .test_latecomers import LATE_STEP
from .world import Time

HISTORIES = int(os.environ.get("BUCKETCATALOG_PRUNE_HISTORIES", "150"))

_PRUNE = st.builds(
    Prune,
    who=st.integers(0, 1),
    older_than=st.sampled_from((0, 0, 0, 60, 900)),
    grace=st.sampled_from((0, 0, 0, 60, 700)),
    keep=st.sampled_from((1, 1, 2)),
    dies_at=st.none() | st.integers(0, 12),
    after=st.booleans(),
)
_TAG = st.builds(Tag, name=st.sampled_from(("x", "y")), number=st.integers(0, 7), drop=st.booleans())
_LONG_WAIT = st.builds(LongWait, st.sampled_from((800_000_000, 4_000_000_000)))
_ADDED: tuple[st.SearchStrategy[Any], ...] = (_PRUNE, _PRUNE, _PRUNE, _TAG, _LONG_WAIT, _LONG_WAIT)


@st.composite
def pruned_histories(draw: st.DrawFn) -> History:
    """Histories as everywhere, with pruning, tags and long waits between their steps, and what they compare compared more often."""
    history = draw(histories(steps=14))
    steps: list[Any] = list(history.steps)
    for added in draw(st.lists(st.one_of(*_ADDED), min_size=3, max_size=9)):
        steps.insert(draw(st.integers(3, len(steps))), added)
    for _ in range(2):
        steps.insert(draw(st.integers(3, len(steps))), Compare(draw(st.booleans()), history.end.looks))
    return History(names=history.names, clocks=history.clocks, steps=steps, end=history.end)


@settings(ANY_SPEED, max_examples=HISTORIES)
@given(pruned_histories())
def test_pruning_changes_no_answer_that_does_not_lie_behind_the_horizon(history: History) -> None:
    time = Time()
    machine = PruningMachine(history, MemoryStore(clock=time.now), time)
    with narrated(machine.trace), still_clocks(time), quiet(), pytest.MonkeyPatch.context() as patch:
        patch.setitem(Catalog.prune.__kwdefaults__ or {}, "clock", time.now)
        machine.run()


@settings(ANY_SPEED, max_examples=HISTORIES)
@given(st.lists(st.one_of(*(LATE_STEP,) * 8, _PRUNE, _PRUNE, st.just(Wait(4_000_000_000))), min_size=24, max_size=34))
def test_what_arrives_after_its_time_was_pruned_is_seen_from_the_next_checkpoint_on(steps: list[Step]) -> None:
    time = Time()
    history = PruningLatecomers(MemoryStore(clock=time.now), time)
    with narrated(history.trace), still_clocks(time), quiet(), pytest.MonkeyPatch.context() as patch:
        patch.setitem(Catalog.prune.__kwdefaults__ or {}, "clock", time.now)
        history.run(steps)
