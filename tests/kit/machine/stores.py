"""One process's view of the shared store: it records PUTs and lets one of them go wrong.

What the process has put but what is still under way is hidden from everybody, the process itself included, until ``deliver``.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass

from bucketcatalog.errors import OutcomeUnknown, StoreUnavailable
from bucketcatalog.store.base import Store
from bucketcatalog.store.faults import SimulatedCrash, Wrapped
from bucketcatalog.v1 import log_pb2

from .steps import Fault

_TRANSACTION = re.compile(r"(?P<writer>[^/]+)/[^/]+/transactions/(?P<revision>[0-9]{20})/(?P<uuid>[0-9a-f-]{36})\.txn")

_SILENCE = frozenset({Fault.SILENCE_AFTER, Fault.SILENCE_BEFORE, Fault.SILENCE_LATE})
_LASTING = _SILENCE | {Fault.LATE}
_UNKNOWN = _SILENCE | {Fault.LOST_RESPONSE, Fault.LOST_REQUEST}
_LANDS = frozenset({Fault.LOST_RESPONSE, Fault.SILENCE_AFTER, Fault.CRASH_AFTER})
_IS_LATE = frozenset({Fault.LATE, Fault.SILENCE_LATE, Fault.CRASH_LATE})


@dataclass(frozen=True, slots=True)
class Published:
    """A transaction that the process put: where it stands, as its name tells, and whether it is in the store or under way."""

    writer: str
    revision: int
    uuid: str
    arrived: bool
    data: bytes

    @property
    def commit_time(self) -> int:
        """The microseconds since the epoch that its uuid holds: 48 bits of milliseconds, then 12 of microseconds in these."""
        number = int(self.uuid.replace("-", ""), 16)
        return (number >> 80) * 1_000 + (number >> 64 & 0xFFF)


def published(name: str, data: bytes, *, arrived: bool = True) -> Published | None:
    """What the name of an object tells of the transaction in it, if it is one."""
    match = _TRANSACTION.fullmatch(name)
    return match and Published(match["writer"], int(match["revision"]), match["uuid"], arrived, data)


def parents_of(transaction: bytes) -> frozenset[str]:
    """The uuids of the transactions that a transaction, as it lies in the store, follows."""
    return frozenset(str(uuid.UUID(bytes=parent.uuid)) for parent in log_pb2.Transaction.FromString(transaction).parents)


def voids_of(transaction: bytes) -> frozenset[str]:
    """The uuids of the transactions that a transaction, as it lies in the store, voids."""
    return frozenset(str(uuid.UUID(bytes=link.uuid)) for link in log_pb2.Transaction.FromString(transaction).voids)


def data_boundary_of(transaction: bytes) -> int:
    """Up to when data must have ended that may be deleted, as a transaction publishes it; 0 where it does not."""
    return int(log_pb2.Transaction.FromString(transaction).boundary.data)


def reads_of(transaction: bytes) -> frozenset[str]:
    """The uuids of the transactions of others that a transaction, as it lies in the store, names as read."""
    reads = log_pb2.Transaction.FromString(transaction).reads
    return frozenset(str(uuid.UUID(bytes=head.uuid)) for entry in reads for head in entry.heads)


def segments_of(checkpoint: bytes) -> frozenset[str]:
    """The uuids of the segments that a checkpoint, as it lies in the store, refers to."""
    return frozenset(str(uuid.UUID(bytes=segment.uuid)) for segment in log_pb2.Checkpoint.FromString(checkpoint).segments)


def segments_of_transaction(transaction: bytes) -> frozenset[str]:
    """The uuids of the segments that a transaction, as it lies in the store, refers to."""
    return frozenset(str(uuid.UUID(bytes=segment.uuid)) for segment in log_pb2.Transaction.FromString(transaction).segments)


class View(Wrapped):
    """A store as one process sees it, with the history's time. ``arm`` makes one of its next PUTs go wrong."""

    def __init__(self, store: Store, now: Callable[[], int]) -> None:
        super().__init__(store)
        self._now = now
        self._fault = Fault.NONE
        self._pass = 0
        self._of_segments = True
        self._dead = False
        self._attempts: dict[str, bytes] = {}
        self._arrived: set[str] = set()
        self.under_way: dict[str, bytes] = {}
        self.under_way_since = 0

    def arm(self, fault: Fault, *, after: int = 0, of_segments: bool = True) -> None:
        """Let ``after`` PUTs pass, then let the fault happen, once; a late PUT delays all that follow it. Or of segments all pass."""
        self._fault, self._pass, self._of_segments = fault, after, of_segments
        self._attempts.clear()

    def disarm(self) -> list[Published]:
        """Let all go well again; returns the transactions that were put since ``arm``, except those that never land."""
        self._fault = Fault.NONE
        tried = [published(name, data, arrived=name in self._arrived) for name, data in self._attempts.items()]
        there = {name for name in self._attempts if name in self._arrived or name in self.under_way}
        return [found for name, found in zip(self._attempts, tried, strict=True) if found is not None and name in there]

    def deliver(self) -> list[str]:
        """What is under way reaches the store, in its order; returns the uuids of the transactions among it."""
        arrived = []
        for name, data in self.under_way.items():
            self._land(name, data)
            if match := _TRANSACTION.fullmatch(name):
                arrived.append(match["uuid"])
        self.under_way.clear()
        return arrived

    def put(self, name: str, data: bytes) -> None:
        """As the fault has it."""
        if self._dead:
            raise SimulatedCrash(f"{name} was put after the crash")
        known = self._attempts.setdefault(name, data)
        assert known == data, f"other bytes were put again as {name}"
        if not self._of_segments and name.endswith(".parquet"):
            self._land(name, data)
        elif self._fault is Fault.NONE or self._pass > 0:
            self._pass -= 1
            self._land(name, data)
        else:
            fault = self._fault
            if fault not in _LASTING:
                self._fault = Fault.NONE
            self._go_wrong(fault, name, data)

    def now_us(self, below: str | None = None) -> int:
        """The history's time, whatever the clock of the shared store."""
        return self._now()

    def _go_wrong(self, fault: Fault, name: str, data: bytes) -> None:
        if fault in _LANDS:
            self._land(name, data)
        if fault in _IS_LATE:
            self._hold(name, data)
        if fault in _UNKNOWN:
            raise OutcomeUnknown(f"The response to putting {name!r} was lost.", next_step="Put the same bytes again.")
        if fault is Fault.REFUSED:
            raise StoreUnavailable(f"{name!r} was not put.", next_step="Try again.")
        if fault is not Fault.LATE:
            self._dead = True
            raise SimulatedCrash(name)

    def _land(self, name: str, data: bytes) -> None:
        self.inner.put(name, data)
        self._arrived.add(name)

    def _hold(self, name: str, data: bytes) -> None:
        if not self.under_way:
            self.under_way_since = self._now()
        self.under_way[name] = data
