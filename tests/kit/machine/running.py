"""How a history is run: with clocks that show its time, and in words where it fails."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
from hypothesis import note

from bucketcatalog import clock
from bucketcatalog.store.base import Store

from .driver import quiet
from .machine import Machine
from .steps import History
from .world import Time


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


def run(history: History, store: Store, time: Time) -> Machine:
    """Run the history and, where it fails, tell what happened in words."""
    machine = Machine(history, store, time)
    with narrated(machine.trace), still_clocks(time), quiet():
        machine.run()
    return machine
