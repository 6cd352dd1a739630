"""Compaction that goes on by itself: now and then a look at what no checkpoint covers, and a checkpoint where a policy finds it due.

It holds its writer between rounds, alone on its machine where nobody named it. A store that is away for a while, a look that another
process has overtaken, or a writer that is open elsewhere ends a round and not the compaction; a checkpoint that is under way when it is
stopped is given up, which changes no answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Protocol

from .. import clock
from ..checkpoint.publish import CheckpointResult
from ..errors import (
    BucketCatalogError,
    ClosedWriter,
    CommitError,
    InvalidOption,
    MissingObject,
    OutcomeUnknown,
    StoreUnavailable,
)
from ..log.view import LogView
from ..model.names import COMPACTOR_PREFIX, host_writer, writer_id
from ..query.database import Database
from ..store import Store
from ..write.host_turn import host_turn
from ..write.writer import Writer

PASSING = (StoreUnavailable, OutcomeUnknown, CommitError, MissingObject)
"""What may be over by the next round: the store is away, a commit's outcome is unknown, the writer is open in another process, a file was
pruned while it was looked for."""
_MOMENT = 0.2
"""Seconds after which whoever waits looks whether it was stopped: a signal's handler may only set a flag."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """What readers replay because no checkpoint covers it: transactions that say something, their bytes, and the oldest one's age.

    ``age`` is in microseconds by the store's clock, 0 where there is none.
    """

    transactions: int = 0
    bytes: int = 0
    age: int = 0


@dataclass(frozen=True, slots=True)
class Policy:
    """When a checkpoint is due: once so many transactions wait, so many bytes, or one for so long (microseconds); without any, at once."""

    transactions: int | None = None
    bytes: int | None = None
    age: int | None = None

    def __post_init__(self) -> None:
        """``InvalidOption`` for a limit below 1."""
        for name in ("transactions", "bytes", "age"):
            limit = getattr(self, name)
            if limit is not None and limit < 1:
                raise InvalidOption(f"A checkpoint cannot be due at {limit} {name}.", next_step="Give a number above 0, or none.")

    def due(self, waiting: Waiting) -> str | None:
        """Why a checkpoint is due, as the name of the limit that is reached; None where it is not."""
        if not waiting.transactions:
            return None
        limits = {"transactions": self.transactions, "bytes": self.bytes, "age": self.age}
        given = {name: limit for name, limit in limits.items() if limit is not None} or {"transactions": 1}
        return next((name for name, limit in given.items() if getattr(waiting, name) >= limit), None)


@dataclass(frozen=True, slots=True)
class Round:
    """What one round of a compaction found, why a checkpoint was due, and what came of it."""

    number: int
    waiting: Waiting = Waiting()
    due: str | None = None
    result: CheckpointResult | None = None
    error: BucketCatalogError | None = None


def waiting_in(view: LogView) -> Waiting:
    """What a view's tail makes readers do. What compactors note does not count: two of them would keep each other busy."""
    tail = [transaction for transaction in view.tail if transaction.events or transaction.tags]
    in_segments = sum(segment.size for transaction in tail for segment in transaction.segments)
    oldest = min((transaction.commit_time for transaction in tail), default=view.observed)
    return Waiting(len(tail), in_segments + sum(transaction.size for transaction in tail), max(view.observed - oldest, 0))


class Opener(Protocol):
    """What opens databases and writers of one catalog, as ``Catalog`` does."""

    store: Store

    def database(self, name: str) -> Database: ...
    def writer(self, writer: str, *, database: str) -> Writer: ...


class Compactor:
    """Writes checkpoints of every writer's cut where ``policy`` finds them due, each ``every`` seconds, until it is stopped."""

    def __init__(
        self,
        catalog: Opener,
        database: str,
        *,
        policy: Policy,
        every: float,
        writer: str | None = None,
        sleep: Callable[[float], None] = clock.sleep,
    ) -> None:
        self.writer = host_writer(COMPACTOR_PREFIX) if writer is None else writer_id(writer)
        self._named = writer
        self._catalog = catalog
        self._database = database
        self._policy = policy
        self._every = every
        self._sleep = sleep
        self._held: Writer | None = None
        self._turn = ExitStack()
        self._stopped = False

    def stop(self) -> None:
        """End the rounds: a checkpoint that is under way is given up at its next step. Takes no lock: a signal's handler may call it."""
        self._stopped = True
        self._let_go()

    def rounds(self) -> Iterator[Round]:
        """A round after the other until ``stop``; errors that will not pass by themselves are raised."""
        number = 0
        try:
            while not self._stopped:
                number += 1
                done = self._round(number)
                if done is not None:
                    yield done
                self._pause()
        finally:
            self._end_turn()

    def _round(self, number: int) -> Round | None:
        """One round; None where it was stopped in the middle."""
        waiting, due = Waiting(), None
        try:
            waiting = waiting_in(self._catalog.database(self._database).view())
            due = self._policy.due(waiting)
            return Round(number, waiting, due, self._checkpoint() if due is not None else None)
        except (*PASSING, ClosedWriter) as error:
            self._end_turn()
            if self._stopped:
                return None
            if isinstance(error, ClosedWriter):
                raise
            return Round(number, waiting, due, error=error)

    def _checkpoint(self) -> CheckpointResult | None:
        if self._held is None:
            store, default = self._catalog.store, self.writer
            # Who finds the writer open does not wait: the next round looks again.
            self._turn.enter_context(host_turn(store, self._database, named=self._named, default=default, patience=0))
            self._held = self._catalog.writer(default, database=self._database)
            if self._stopped:  # before the writer was there to be closed
                raise ClosedWriter("The compaction was stopped.", next_step="Start it again.")
        return self._held.checkpoint(scope="all")

    def _end_turn(self) -> None:
        """Nothing is under way any more: let another process of this machine have the writer."""
        self._let_go()
        self._turn.close()

    def _let_go(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            held.close()

    def _pause(self) -> None:
        remaining = self._every
        while remaining > 0 and not self._stopped:
            self._sleep(min(remaining, _MOMENT))
            remaining -= _MOMENT
