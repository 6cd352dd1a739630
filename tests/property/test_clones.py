"""Random histories, then a clone: it shows what the model says of the cut, and goes on.

``BUCKETCATALOG_CLONES`` says how many.
"""

from __future__ import annotations

import os

from hypothesis import given, settings

from bucketcatalog import Catalog
from bucketcatalog.cloning import clone
from bucketcatalog.store.memory import MemoryStore

from .comparing import Comparer, check
from .driver import DATABASE, EngineReader, quiet
from .histories import histories
from .machine import Machine
from .restores import RestoringMachine
from .steps import PROCESSES, History, Part
from .test_histories import ANY_SPEED, narrated, still_clocks
from .world import Time

HISTORIES = int(os.environ.get("BUCKETCATALOG_CLONES", "100"))


class CloningMachine(RestoringMachine):
    """Clones what there is in the end."""

    def run(self) -> None:
        """Take every step, then clone, compare, and compare again after a checkpoint of the clone."""
        Machine.run(self)
        cut = self._timelines.visible()
        if not cut:
            return
        now = self._world.time.now
        target = MemoryStore(clock=now)
        source = Catalog(self._store)
        with source.writer("maintainer-1", database=DATABASE, clock=now) as held:
            made = clone(source.database(DATABASE), held, target, None, None, now=now)
        self._say(f"cloned {made.version}")
        for scope in (None, "all"):
            if scope is not None:
                with Catalog(target).writer("compactor-2", database=DATABASE, clock=now) as compactor:
                    compactor.checkpoint(scope=scope)
            snapshot = EngineReader(target, now=now).snapshot()
            for part in Part:
                Comparer(self._world, target).part(f"in the clone, checkpoint {scope}", part, snapshot, cut)
        for writer in sorted({*PROCESSES.values()}):
            self._go_on(writer, target)

    def _go_on(self, writer: str, target: MemoryStore) -> None:
        """Each writer's next commit has the next revision, wherever its timeline has one end."""
        heads = [self._timelines.transactions[uuid] for uuid in self._timelines.heads(writer)]
        if len(heads) == 1:
            with Catalog(target).writer(writer, database=DATABASE, clock=self._world.time.now) as held:
                with held.transaction() as tx:
                    pass
                assert tx.committed is not None
                check(f"the next revision of {writer} in the clone", heads[0].revision + 1, tx.committed.revision)


@settings(ANY_SPEED, max_examples=HISTORIES)
@given(histories())
def test_a_clone_shows_what_the_model_says_and_goes_on(history: History) -> None:
    time = Time()
    machine = CloningMachine(history, MemoryStore(clock=time.now), time)
    with narrated(machine.trace), still_clocks(time), quiet():
        machine.run()
