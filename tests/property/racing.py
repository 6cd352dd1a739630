"""What races a collection or a reaping: a catalog with data beside it, the steps that others take, and every order of these."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from bucketcatalog import Catalog, CommitUnknown, DataCollected, OutcomeUnknown, StaleRead
from bucketcatalog.log.timeline import Timeline
from bucketcatalog.maintain.gc.collect import InProcess, collect
from bucketcatalog.maintain.gc.data import Calling, Deleters
from bucketcatalog.store import Store
from bucketcatalog.store.faults import DelayedArrival
from bucketcatalog.store.memory import MemoryStore
from bucketcatalog.store.wrappers import Wrapped
from bucketcatalog.write.writer import Writer

MINUTE = 60_000_000
HOUR = 60 * MINUTE
START = 1_700_000_000_000_000
OWNER, BUCKET = (str(uuid.uuid5(uuid.NAMESPACE_OID, name)) for name in ("owner", "bucket"))
WAITS = 2
"""Ticks that a boundary is waited out in: with a little less than half of the time between them."""
TICK = 3 * HOUR + 10 * MINUTE
Step = Callable[["Yard"], None]


class Lost(AssertionError):
    """A live version has no data."""


class Hooked(Wrapped):
    """Calls ``before`` ahead of each transaction that is put."""

    def __init__(self, inner: Store, before: Callable[[], None]) -> None:
        super().__init__(inner)
        self.before = before

    def put(self, name: str, data: bytes) -> None:
        begun = self.now_us()
        if name.endswith(".txn"):
            self.before()
        if self.now_us() > begun + 5 * MINUTE:  # a put that is under way for so long does not arrive any more
            raise OutcomeUnknown("The put took too long.")
        self.inner.put(name, data)


def an_id(name: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, name))


def key(name: str) -> dict[str, Any]:
    return {"owner": OWNER, "bucket_id": BUCKET, "name": name}


@dataclass
class Yard:
    """The world of one interleaving: the time, the catalog's store, the data, and what the actors have in hand."""

    now: int = START
    held: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.store = MemoryStore(clock=self.clock)
        self.data = MemoryStore(clock=self.clock)
        self.deleted = False
        self.uploads = 0

    def clock(self) -> int:
        return self.now

    def writer(self, name: str, store: Store | None = None) -> Writer:
        return Catalog(self.store if store is None else store).writer(name, database="default", clock=self.clock)

    def commit(self, name: str, *calls: tuple[Any, ...]) -> None:
        """One transaction of a process that has read nothing before."""
        self.now += 1_000_000
        with self.writer(name) as writer, writer.transaction() as tx:
            for method, *arguments in calls:
                getattr(tx, method)("objects", *arguments)

    def upload(self, name: str, bucket: str = BUCKET) -> None:
        """New data, and the object that names it. A name that is put again gets data of its own."""
        self.uploads += 1
        row = {
            **key(name),
            "bucket_id": bucket,
            "id": an_id(name if self.uploads == 1 or bucket != BUCKET else f"{name} {self.uploads}"),
        }
        self.data.put(f"{bucket}/{row['id']}", b"data")
        self.commit("w", ("put", row))

    def rows(self, table: str) -> list[dict[str, Any]]:
        columns = ["owner", "bucket_id", "name", "id", "_version"]
        return list(Catalog(self.store).snapshot().scan(table, columns=columns).to_arrow().to_pylist())

    def version(self, name: str, table: str = "objects") -> dict[str, Any]:
        """Key and version of the latest row of a name."""
        row = [row for row in self.rows(table) if row["name"] == name][-1]
        return {column: row[column] for column in ("owner", "bucket_id", "name", "_version")}

    def named(self) -> set[str]:
        """The data that live versions name."""
        return {f"{row['bucket_id']}/{row['id']}" for row in self.rows("objects")}

    def there(self) -> set[str]:
        return {info.name for info in self.data.list("")}

    def check(self) -> None:
        lost = self.named() - self.there()
        if lost:
            raise Lost(f"the data of {len(lost)} live versions is gone")

    def deleter(self, batch: pa.Table) -> list[bool]:
        for row in batch.to_pylist():
            self.data.delete(f"{row['bucket_id']}/{row['id']}")
        self.deleted = True
        return [True] * len(batch)

    def collect(self, store: Store | None = None, deleter: Callable[[pa.Table], Any] | None = None) -> None:
        self.now += 1_000_000
        catalog = Catalog(self.store if store is None else store)
        with suppress(CommitUnknown), catalog.writer("maintainer-1", clock=self.clock) as writer:
            collect(
                catalog.database("default").look,
                writer,
                InProcess(Deleters(others=Calling(deleter or self.deleter))),
                0,
                force=False,
            )


# Each actor is a list of steps, which happen in this order.


def naming(actor: str, name: str, *, source: str, table: str = "objects", move: bool = False, slow: bool = False) -> Step:
    """Begin to put an object that names the data of another one, and with ``move`` to end that one; ``slow``: over a slow network."""

    def step(yard: Yard) -> None:
        with suppress(IndexError, DataCollected):  # it is not there any more, or its data may not be
            of = yard.version(source, table)
            store = DelayedArrival(yard.store, acknowledge=True, picks=lambda name: name.endswith(".txn")) if slow else yard.store
            tx = yard.writer(actor, store).transaction(operation=actor)
            tx.__enter__()
            tx.put("objects", {**key(name), "id": an_id("a")}, data_of=of)
            if move:
                tx.delete("objects", of, moved=True)
            yard.held[actor] = (tx, store)

    return step


def commit(actor: str) -> Step:
    """Commit what the actor holds open, unless that was refused, or is by now."""

    def step(yard: Yard) -> None:
        tx, store = yard.held.pop(actor, (None, None))
        if tx is not None:
            yard.now += 1_000_000
            with suppress(StaleRead):
                tx.__exit__(None, None, None)
                yard.held[actor] = (yard.now, store)

    return step


def arrive(actor: str) -> Step:
    """What was sent over a slow network arrives, if it is not later than its writer has promised."""

    def step(yard: Yard) -> None:
        sent, store = yard.held.pop(actor, (0, None))
        if store is not None and yard.now <= sent + 6 * MINUTE:
            store.deliver()

    return step


def delete(name: str, *, minutes: int = 0) -> Step:
    """End an object, blindly, as another process does; then time passes."""

    def step(yard: Yard) -> None:
        yard.commit("d", ("delete", key(name)))
        yard.now += minutes * MINUTE

    return step


def passing(minutes: int) -> Step:
    """Time passes."""

    def step(yard: Yard) -> None:
        yard.now += minutes * MINUTE

    return step


def both(first: Step, second: Step) -> Step:
    """Two steps at once."""

    def step(yard: Yard) -> None:
        first(yard)
        second(yard)

    return step


def recreate(yard: Yard) -> None:
    """Create the bucket again: it is another one by now."""
    yard.now += 1_000_000
    with yard.writer("b") as writer, writer.transaction() as tx:
        tx.put("buckets", {"owner": OWNER, "name": "cats"})


def interleavings(actors: Sequence[int], slots: int) -> Iterator[list[list[int]]]:
    """Every way in which the steps of actors, so many each, fall into the slots: for each slot the actors whose turn it is, in order."""
    for order in sorted(set(itertools.permutations([number for number, steps in enumerate(actors) for _ in range(steps)]))):
        for places in itertools.combinations_with_replacement(range(slots), len(order)):
            yield [[actor for actor, place in zip(order, places, strict=True) if place == slot] for slot in range(slots)]


def wait(yard: Yard, others: Callable[[], None]) -> None:
    """A boundary is waited out, while others go on."""
    for _ in range(WAITS):
        yard.now += TICK
        others()


def commit_whenever(patch: pytest.MonkeyPatch) -> None:
    """Transactions land however long ago they looked."""
    patch.setattr(Timeline, "refuse_stale", lambda *_: None)
