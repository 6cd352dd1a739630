"""Commits: operations of threads that come together share one transaction, so that each waits for one put at most, and seldom alone.

An operation is decided, against what is known then, in the turn of whoever commits: nothing of this process comes between its decision and
its commit. One that is refused fails alone. Of two on one key the second waits for the next commit, where it sees what became of the first.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, cast

from ...clock import monotonic, sleep
from ...errors import ClosedWriter, CommitUnknown, UsageError
from ...write.commit import Committed
from ...write.intake import Rows
from ...write.transaction import WriteTransaction
from ...write.writer import Writer
from .known import Key, Row

MOST = 64
"""So many events a transaction carries as they are; of more it would make columns."""
Result = TypeVar("Result")


@dataclass(frozen=True)
class Event:
    """One event of an operation, or several alike: rows of a table, and for a put or a delete what they expect to replace or end."""

    kind: Literal["put", "update", "delete", "purge"]
    table: str
    row: Rows
    expect: str | None = None

    def add(self, transaction: WriteTransaction) -> None:
        """Add it to a transaction; ``InvalidRows`` where the row does not fit."""
        if self.kind == "put":
            transaction.put(self.table, self.row, expect=self.expect)
        elif self.kind == "update":
            transaction.update(self.table, self.row)
        elif self.kind == "delete":
            transaction.delete(self.table, self.row, expect=self.expect)
        else:
            transaction.purge(self.table, self.row)


@dataclass(frozen=True)
class Commit:
    """What an operation's event has become: the time in microseconds, and the version that a put has begun."""

    time: int
    version: str


@dataclass(frozen=True)
class Decision(Generic[Result]):
    """What an operation comes to: events, and what its caller gets once they are committed. Without events nothing is committed.

    ``outcome`` is given the commit, with the version of the first event; ``left`` says what is live then, of each key that it changes.
    """

    events: Sequence[Event]
    outcome: Callable[[Commit], Result]
    left: Callable[[Commit], Sequence[tuple[Key, Row | None]]] = lambda commit: ()


@dataclass
class Operation(Generic[Result]):
    """An operation that waits for its commit. ``keys`` are what it is about; one that is ``alone`` shares its commit with nobody.

    ``decide`` is given the moment, on the monotonic clock, from which on what it looks up has to be true.
    """

    name: str
    keys: frozenset[Key]
    decide: Callable[[float], Decision[Result]]
    alone: bool = False
    decision: Decision[Result] | None = None
    result: Result | None = None
    error: BaseException | None = None
    settled: bool = False
    done: bool = False

    @property
    def events(self) -> Sequence[Event]:
        """What it has come to, once it is decided."""
        return () if self.decision is None else self.decision.events

    def settle(self, commit: Commit) -> Sequence[tuple[Key, Row | None]]:
        """What its caller gets is known; returns what is live now of its keys."""
        assert self.decision is not None
        self.result, left = self.decision.outcome(commit), self.decision.left(commit)
        self.settled = True
        return left


class Commits:
    """Takes operations from any thread and commits them by one writer, in the order in which they came as far as they share keys.

    ``opened`` opens the writer, for the first commit and after one whose outcome nobody knows, which ``doubts`` is told of; ``took`` is
    told what commits leave of keys. Invariant: of the threads that wait one at most commits, and whoever has an outcome waits no more.
    """

    def __init__(
        self,
        opened: Callable[[], Writer],
        took: Callable[[Sequence[tuple[Key, Row | None]]], None],
        doubts: Callable[[], None],
    ) -> None:
        self._opened = opened
        self._took = took
        self._doubts = doubts
        self._writer: Writer | None = None
        self._closed = False
        self._waiting: deque[Operation[Any]] = deque()
        self._changed = threading.Condition()
        self._is_led = False

    def close(self) -> None:
        """End the writer; what waits fails, and so does what comes."""
        self._closed = True
        if self._writer is not None:
            self._writer.close()

    def run(self, operation: Operation[Result]) -> Result:
        """Decide and commit the operation; what refuses it, or fails its commit, is raised."""
        with self._changed:
            self._waiting.append(operation)
        while self._leads(operation):
            try:
                self._await_company()
                self._commit(self._next())
            finally:
                with self._changed:
                    self._is_led = False
                    self._changed.notify_all()
        if operation.error is not None:
            raise operation.error
        return cast(Result, operation.result)

    def _leads(self, operation: Operation[Any]) -> bool:
        """Whether this thread is to commit what waits; if not, its operation has its outcome."""
        with self._changed:
            try:
                self._changed.wait_for(lambda: operation.done or not self._is_led)
            except BaseException:
                with suppress(ValueError):
                    self._waiting.remove(operation)  # nobody waits for it any more, unless it is being committed
                raise
            if not operation.done:
                self._is_led = True
            return not operation.done

    def _await_company(self) -> None:
        """Let whoever is about to come do so: the threads that the last commit has answered bring their next operations now."""
        waiting = 0
        while waiting < (now := len(self._waiting)):
            waiting = now
            sleep(0)  # another thread's turn, of those that can run

    def _next(self) -> list[Operation[Any]]:
        """Those to commit together: the first that waits, and what follows it as long as there is room and no key is shared."""
        taken: list[Operation[Any]] = []
        passed: deque[Operation[Any]] = deque()
        keys: set[Key] = set()
        with self._changed:
            while self._waiting and len(taken) < MOST // 2:
                operation = self._waiting.popleft()
                is_free = keys.isdisjoint(operation.keys) and not (operation.alone and (taken or passed))
                (taken if is_free else passed).append(operation)
                keys |= operation.keys
                if operation.alone:
                    break
            self._waiting.extendleft(reversed(passed))
        return taken

    def _commit(self, operations: Sequence[Operation[Any]]) -> None:
        began = monotonic()
        try:
            for operation in operations:
                self._decide(operation, began)
            self._publish([operation for operation in operations if operation.events])
        except BaseException as error:
            told = error if isinstance(error, Exception) else _interrupted()
            for operation in operations:
                if not operation.settled:
                    operation.error = operation.error or told
            if told is not error:
                raise
        finally:
            for operation in operations:
                operation.done = True

    def _decide(self, operation: Operation[Any], began: float) -> None:
        try:
            operation.decision = operation.decide(began)
        except Exception as error:
            operation.error = error
        else:
            if not operation.events:
                operation.settle(Commit(0, ""))

    def _publish(self, operations: Sequence[Operation[Any]]) -> None:
        """Commit them in one transaction; where a row of one does not fit, which publishes nothing, each in its own."""
        if not operations:
            return
        try:
            committed = self._put(operations)
        except UsageError as error:
            if len(operations) == 1:
                operations[0].error = error
            else:
                for operation in operations:
                    self._publish([operation])
            return
        first = 0
        left: list[tuple[Key, Row | None]] = []
        for operation in operations:
            left += operation.settle(Commit(committed.commit_time, f"{committed.uuid}:{first}"))
            first += len(operation.events)
        self._took(left)

    def _put(self, operations: Sequence[Operation[Any]]) -> Committed:
        writer = self._open()
        names = {operation.name for operation in operations}
        transaction = writer.transaction(operation=names.pop() if len(names) == 1 else "operations")
        try:
            with transaction:
                for operation in operations:
                    for event in operation.events:
                        event.add(transaction)
        except (CommitUnknown, KeyboardInterrupt, SystemExit):  # one that is opened anew looks what has become of it
            self._writer = None
            writer.close()
            self._doubts()
            raise
        assert transaction.committed is not None
        return transaction.committed

    def _open(self) -> Writer:
        if not self._closed and self._writer is None:
            self._writer = self._opened()
        if self._closed or self._writer is None:
            self.close()
            raise ClosedWriter("The node was closed.", next_step="Open another.")
        return self._writer


def _interrupted() -> CommitUnknown:
    """For who shared a commit with a thread that was interrupted."""
    return CommitUnknown(
        "The thread that was to commit this with others was interrupted.",
        next_step="Look whether it was, and do it again if not.",
    )
