"""Random histories on the memory store and on disk: the engine says what the model says, whatever happened.

Where one fails, the shortest that does is printed as its steps and as what happened in each.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
from hypothesis import given, note

from bucketcatalog import clock
from bucketcatalog.store.base import Store
from bucketcatalog.store.local import LocalStore
from bucketcatalog.store.memory import MemoryStore

from ..chance import SEARCHES, searching
from .machine.driver import quiet
from .machine.histories import histories
from .machine.machine import Machine
from .machine.steps import History
from .machine.world import Time


@contextmanager
def still_clocks(time: Time) -> Iterator[None]:
    """The machine's clocks show the history's time, waiting passes it, and ids are the same each time a history runs."""
    chance = random.Random(0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clock, "now_us", time.now)
        patch.setattr(clock, "monotonic", lambda: time.now() / 1_000_000)
        patch.setattr(clock, "sleep", lambda seconds: time.pass_by(int(seconds * 1_000_000)))
        patch.setattr("os.urandom", chance.randbytes)
        yield


@contextmanager
def narrated(trace: Sequence[str]) -> Iterator[None]:
    """What goes wrong in here is told with all that has happened, in words."""
    try:
        yield
    except BaseException:
        note("\n".join(["What happened:", *trace]))
        raise


def run(history: History, store: Store, time: Time) -> None:
    """Run the history and, where it fails, tell what happened in words."""
    machine = Machine(history, store, time)
    with narrated(machine.trace), still_clocks(time), quiet():
        machine.run()


@pytest.mark.parametrize("share", range(SEARCHES["histories"].shares))
def test_histories_in_memory_end_as_the_model_says(share: int) -> None:
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
