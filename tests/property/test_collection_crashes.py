"""Every store call and every deletion of a collection, a reaping and a search for orphans is a crash point, before and after the call.

After each crash the live rows are the same and have their data, nothing is purged whose data is there, and later runs finish the work; that
is looked at once for all crashes that have left the same. The same where several runs do it at once, as threads and with the same look.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

import pyarrow as pa
import pytest

from bucketcatalog import Catalog
from bucketcatalog.log.entries import boundaries_of
from bucketcatalog.maintain.gc.collect import InProcess, collect
from bucketcatalog.maintain.gc.data import DataPlace, Deleters, Deleting, Deletions, Template
from bucketcatalog.maintain.gc.orphans import namer_of, orphans
from bucketcatalog.maintain.gc.reap import reap
from bucketcatalog.store import Store
from bucketcatalog.store.faults import Failing, SimulatedCrash
from bucketcatalog.store.memory import MemoryStore

from .racing import BUCKET, HOUR, OWNER, START, an_id, key

TEMPLATE = Template.parse("/data/{owner}/{bucket_id}/{id}")
NAMES = [f"{number:02}" for number in range(6)]
DEAD, SHARED, KEPT = NAMES[:3], NAMES[3:4], NAMES[4:]


class Yard:
    """A catalog with objects that ended, one whose data another names, and live ones; an orphan; a bucket that ended."""

    def __init__(self) -> None:
        self.now = START
        self.store, self.data = MemoryStore(clock=self.clock), MemoryStore(clock=self.clock)
        for name in (*NAMES, "orphan"):
            self.data.put(self.place_of(name), b"data")
        with self.catalog().writer("w", clock=self.clock) as writer:
            with writer.transaction() as tx:
                tx.put("buckets", {"owner": OWNER, "name": "cats", "id": BUCKET})
                tx.put("objects", [{**key(name), "id": an_id(name)} for name in NAMES])
            self.now += 1_000_000
            with writer.transaction() as tx:
                tx.put("objects", [{**key(f"again {name}"), "id": an_id(name)} for name in SHARED])
                tx.delete("objects", [key(name) for name in DEAD + SHARED])
            writer.checkpoint()
        self.now += 25 * HOUR

    def clock(self) -> int:
        return self.now

    def place_of(self, name: str) -> str:
        return f"{OWNER}/{BUCKET}/{an_id(name)}"

    def catalog(self, store: Store | None = None) -> Catalog:
        return Catalog(self.store if store is None else store)

    def collect(self, store: Store, data: Store) -> None:
        catalog = self.catalog(store)
        with catalog.writer("maintainer-1", clock=self.clock) as writer:
            collect(
                catalog.database("default").look,
                writer,
                InProcess(Deleters(others=Deleting(DataPlace(TEMPLATE, store.url, given=data)))),
                24 * HOUR,
                force=False,
            )

    def reap(self, store: Store, data: Store) -> None:
        catalog = self.catalog(store)
        with catalog.writer("maintainer-1", clock=self.clock) as writer:
            reap(catalog.database("default").look, writer, 24 * HOUR)

    def orphans(self, store: Store, data: Store) -> None:
        look = self.catalog(store).database("default").look
        namer = namer_of(DataPlace(TEMPLATE, store.url, given=data), self.catalog(store).database("default").files, look())
        list(orphans(look, namer, 24 * HOUR, "maintainer-1"))

    def names(self, table: str = "objects") -> list[str]:
        return list(self.catalog().snapshot().scan(table, columns=["name"]).to_arrow()["name"].to_pylist())

    def there(self) -> list[str]:
        stored = {info.name for info in self.data.list("")}
        return [name for name in (*NAMES, "orphan") if self.place_of(name) in stored]

    def check(self) -> None:
        """Nothing is lost: what is live has its data, what is purged without being shared has none."""
        assert self.names() == [*KEPT, *(f"again {name}" for name in SHARED)]
        assert set(KEPT + SHARED) <= set(self.there())
        assert {name for name in DEAD if name in self.there()} <= set(self.names("deleted_objects"))


Work = Callable[[Yard, Store, Store], None]


def published(yard: Yard) -> None:
    """A boundary has been published, and waited out."""
    yard.collect(yard.store, yard.data)
    yard.now += 7 * HOUR


def bucket_ended(yard: Yard) -> None:
    """The objects' bucket ended, long ago."""
    with yard.catalog().writer("w", clock=yard.clock) as writer, writer.transaction() as tx:
        tx.delete("buckets", {"owner": OWNER, "name": "cats"})
    yard.now += 25 * HOUR


def bucket_ended_and_published(yard: Yard) -> None:
    """The same, and a boundary has been published that has seen it, and waited out."""
    bucket_ended(yard)
    yard.reap(yard.store, yard.data)
    yard.now += 7 * HOUR


def nothing(yard: Yard) -> None:
    """As it is."""


def crashes(setup: Callable[[Yard], None], work: Work, *, in_data: bool) -> Iterator[Yard]:
    """The yard after a crash before, or after, a call of the work; of the catalog's store, or of the store of the data.

    It dies at every call. A yard in which there is as much as in one that was shown already is not shown again.
    """

    def run(at: int | None, after: bool) -> tuple[Yard, Failing]:
        yard = Yard()
        setup(yard)
        failing = Failing(yard.data if in_data else yard.store, at=at, after=after)
        with suppress(SimulatedCrash):
            work(yard, yard.store if in_data else failing, failing if in_data else yard.data)
        return yard, failing

    calls = len(run(None, False)[1].calls)
    assert calls > 0
    shown: set[tuple[int, ...]] = set()
    for at in range(calls):
        for after in (False, True):
            yard, failing = run(at, after)
            assert failing.crashed
            left = tuple(len([*store.list("")]) for store in (yard.store, yard.data))
            if left not in shown:
                shown.add(left)
                yield yard


@pytest.mark.parametrize(("setup", "in_data"), [(nothing, False), (published, False), (published, True)])
def test_a_collection_that_dies_anywhere_is_finished_by_later_ones(setup: Callable[[Yard], None], in_data: bool) -> None:
    for yard in crashes(setup, Yard.collect, in_data=in_data):
        yard.check()
        for _ in range(2):
            yard.now += 7 * HOUR
            yard.collect(yard.store, yard.data)
        yard.check()
        assert yard.there() == [*SHARED, *KEPT, "orphan"] and yard.names("deleted_objects") == []


@pytest.mark.parametrize("setup", [bucket_ended, bucket_ended_and_published])
def test_a_reaping_that_dies_anywhere_is_finished_by_a_later_one(setup: Callable[[Yard], None]) -> None:
    for yard in crashes(setup, Yard.reap, in_data=False):
        ended = set(yard.names("deleted_objects")) - set(DEAD + SHARED)
        assert ended in (set(), {*KEPT, *(f"again {name}" for name in SHARED)})
        for _ in range(2):
            yard.reap(yard.store, yard.data)
            yard.now += 7 * HOUR
        assert yard.names() == [] and len(yard.there()) == len(NAMES) + 1


@pytest.mark.parametrize("in_data", [False, True])
def test_a_search_for_orphans_that_dies_anywhere_deletes_nothing_else(in_data: bool) -> None:
    for yard in crashes(nothing, Yard.orphans, in_data=in_data):
        yard.check()
        assert set(NAMES) <= set(yard.there())
        yard.orphans(yard.store, yard.data)
        assert yard.there() == NAMES


def test_collections_at_once_do_the_same_work_twice_and_no_other() -> None:
    yard = Yard()
    published(yard)
    meet = threading.Barrier(3)
    errors: list[BaseException] = []

    def one(number: int) -> None:
        class Together(Deleting):
            def delete(self, batch: pa.Table, *, dry_run: bool = False) -> Deletions:
                meet.wait(30)  # all have looked, and nobody has purged
                return super().delete(batch, dry_run=dry_run)

        try:
            catalog = yard.catalog()
            with catalog.writer(f"maintainer-{number}", clock=yard.clock) as writer:
                deleter = Together(DataPlace(TEMPLATE, yard.store.url, given=yard.data))
                done = collect(
                    catalog.database("default").look, writer, InProcess(Deleters(others=deleter)), 24 * HOUR, force=False
                )
            assert (done.purged, done.deleted, done.shared) == (4, 3, 1)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    yard.check()
    assert yard.there() == [*SHARED, *KEPT, "orphan"] and yard.names("deleted_objects") == []
    assert yard.catalog().snapshot().scan("conflicts").to_arrow().num_rows == 0


def test_boundaries_published_at_once_make_one_wait() -> None:
    yard = Yard()
    stale = yard.catalog().database("default").look()
    for number in range(2):
        with yard.catalog().writer(f"maintainer-{number}", clock=yard.clock) as writer:
            collect(lambda: stale, writer, InProcess(), 24 * HOUR, force=False)
        yard.now += 60_000_000
    found = boundaries_of(yard.catalog().snapshot().view).data
    assert found is not None and found.stamp[1] == "maintainer-1"
    yard.now += 7 * HOUR
    yard.collect(yard.store, yard.data)
    yard.check()
    assert yard.names("deleted_objects") == []
