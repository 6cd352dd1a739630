"""What a look asks of a slow store is asked several at once: as many as the store says pay, never more, and with the same outcome."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from bucketcatalog import Catalog
from bucketcatalog.store import MemoryStore, ObjectInfo, Store
from bucketcatalog.store.wrappers import Wrapped

from ...kit.world import obj

WRITERS, COMMITS = 6, 3


class Slow(Wrapped):
    """Takes a moment for each request, and notes how many were under way at once."""

    def __init__(self, inner: Store, concurrency: int) -> None:
        super().__init__(inner)
        self.at_once = concurrency
        self.most = self.under_way = 0

    @property
    def concurrency(self) -> int:
        """As the test says."""
        return self.at_once

    def get(self, name: str, *, most: int | None = None) -> bytes:
        """Slowly."""
        self._wait()
        return self.inner.get(name, most=most)

    def list(self, prefix: str, *, after: str = "", limit: int | None = None) -> Iterator[ObjectInfo]:
        """Slowly."""
        self._wait()
        return self.inner.list(prefix, after=after, limit=limit)

    def _wait(self) -> None:
        with self._lock:
            self.under_way += 1
            self.most = max(self.most, self.under_way)
        time.sleep(0.02)
        with self._lock:
            self.under_way -= 1


@pytest.fixture(scope="module")
def filled() -> MemoryStore:
    store = MemoryStore()
    for number in range(WRITERS):
        with Catalog(store).writer(f"w{number}") as writer:
            for count in range(COMMITS):
                with writer.transaction() as tx:
                    tx.put("objects", obj(f"{number}-{count}"))
    return store


@pytest.mark.parametrize("concurrency", [1, 2, 4, 32])
def test_requests_under_way_at_once_are_what_the_store_allows(filled: MemoryStore, concurrency: int) -> None:
    slow = Slow(filled, concurrency)
    snapshot = Catalog(slow).snapshot(database="default")

    assert len(snapshot.view.tail) == WRITERS * COMMITS
    assert snapshot.version == Catalog(filled).snapshot().version
    assert slow.most <= concurrency
    assert slow.most > 1 or concurrency == 1


def test_a_request_that_fails_among_many_is_the_error_of_the_look(filled: MemoryStore) -> None:
    class Failing(Slow):
        def get(self, name: str, *, most: int | None = None) -> bytes:
            if name.startswith("w3/"):
                raise PermissionError(name)
            return super().get(name, most=most)

    before = threading.active_count()
    with pytest.raises(PermissionError, match="w3/"):
        Catalog(Failing(filled, 8)).snapshot(database="default")

    assert threading.active_count() == before
