"""Writes that are lost on the way: of processes that are killed, and to stores that do not answer."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bucketcatalog import Catalog, OutcomeUnknown
from bucketcatalog.store.base import Store
from bucketcatalog.store.wrappers import Wrapped

from .world import HOUR, Clock

ROOT = Path(__file__).parents[2]
PATIENCE = 600.0
"""Seconds after which a child counts as stuck: nothing that goes well takes a tenth of it."""


class Child:
    """A process of a script and what it is given, with a group of its own, so that all that it has started ends with it."""

    def __init__(self, script: Path, *given: object) -> None:
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
        self._process = subprocess.Popen(
            [sys.executable, str(script), *map(str, given)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
            start_new_session=True,
        )

    def kill(self) -> str:
        """End it and all that it has started, without a word; returns what it has said."""
        os.killpg(self._process.pid, signal.SIGKILL)
        return self._process.communicate()[0]

    def finish(self) -> str:
        """Wait until it has done its work; returns what it has said."""
        try:
            output, _ = self._process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            output = self.kill()
        assert self._process.returncode == 0, output
        return output

    def kill_once(self, is_so: Callable[[], bool]) -> None:
        """Wait until something is so, and end it."""
        began = time.monotonic()
        while not is_so():
            if self._process.poll() is not None or time.monotonic() - began > PATIENCE:
                raise AssertionError(self.kill() if self._process.poll() is None else self._process.communicate()[0])
            time.sleep(0.002)
        self.kill()


@dataclass(frozen=True)
class Place:
    """A catalog in this process, where Spark's writes have one that travels."""

    store: Store

    def open(self) -> Catalog:
        return Catalog(self.store)


class NoAnswers(Wrapped):
    """A store that gives no answer to the next put of a transaction, which may have landed; and then it is late."""

    def __init__(self, inner: Store, clock: Clock, *, landed: bool, covered: bool) -> None:
        super().__init__(inner)
        self._clock, self._landed, self._covered, self._left = clock, landed, covered, 1

    def put(self, name: str, data: bytes) -> None:
        if not name.endswith(".txn") or not self._left:
            super().put(name, data)
            return
        self._left -= 1
        if self._landed:
            super().put(name, data)
        self._clock.tick(HOUR)
        if self._covered:
            with Catalog(self.inner).writer("compactor-1", clock=self._clock) as compactor:
                compactor.checkpoint(scope="all")
        raise OutcomeUnknown(f"{name}: no answer")
