"""A store that is away for a while: a commit goes on for as long as it may, whichever of its requests meets that."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bucketcatalog import Catalog, clock
from bucketcatalog.errors import CommitUnknown, OutcomeUnknown, StoreUnreachable
from bucketcatalog.store import ObjectInfo
from bucketcatalog.store.wrappers import Wrapped

from ...kit.world import MINUTE, SECOND, World, names, obj


class Away(Wrapped):
    """Does not answer until the time ``until``; a request waits for half a minute, as a store's own retries do. ``asked``: what met it."""

    def __init__(self, world: World) -> None:
        super().__init__(world.store)
        self._clock = world.clock
        self.until = 0
        self.asked: list[str] = []

    def put(self, name: str, data: bytes) -> None:
        self._wait("put", OutcomeUnknown)
        self.inner.put(name, data)

    def list(self, prefix: str, *, after: str = "", limit: int | None = None) -> Iterator[ObjectInfo]:
        self._wait("list")
        return self.inner.list(prefix, after=after, limit=limit)

    def list_prefixes(self, prefix: str, *, begin: str = "") -> list[str]:
        self._wait("list_prefixes")
        return self.inner.list_prefixes(prefix, begin=begin)

    def get(self, name: str, *, most: int | None = None) -> bytes:
        self._wait("get")
        return self.inner.get(name, most=most)

    def now_us(self, below: str | None = None) -> int:
        self._wait("now_us")
        return self.inner.now_us(below)

    def _wait(self, method: str, error: type[Exception] = StoreUnreachable) -> None:
        if self._clock() < self.until:
            self.asked.append(method)
            self._clock.tick(30 * SECOND)
            raise error("The store does not answer.", next_step="Try again.")


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """A world in which waiting passes the time of all clocks."""
    world = World()
    monkeypatch.setattr(clock, "sleep", lambda seconds: world.clock.tick(int(seconds * SECOND)))
    monkeypatch.setattr(clock, "monotonic", lambda: world.clock() / SECOND)
    monkeypatch.setattr(clock, "now_us", world.clock)
    return world


FIRST = {"look": "list", "application": "now_us", "time": "now_us", "put": "put"}


@pytest.mark.parametrize("first", FIRST)
def test_a_commit_outlasts_a_store_that_is_away_for_less_than_the_commit_delay(world: World, first: str) -> None:
    store = Away(world)
    writer = Catalog(store).writer("w", clock=world.clock)
    world.commit(writer, ("put", "objects", obj("a")))
    world.clock.tick(MINUTE if first == "look" else SECOND)
    with writer.transaction(**({"app_id": "job", "app_version": 1} if first == "application" else {})) as tx:
        tx.put("objects", obj("b"))
        store.until = world.clock() + 4 * MINUTE
        if first == "put":
            store.now_us = world.store.now_us  # type: ignore[method-assign]
    assert tx.committed is not None and tx.committed.revision == 1
    assert store.asked[0] == FIRST[first] and len(store.asked) >= 4
    assert tx.committed.commit_time >= store.until or first == "put"
    world.commit(writer, ("put", "objects", obj("c")))
    assert names(world.snapshot()) == ["a", "b", "c"]


@pytest.mark.parametrize("first", ["look", "time"])
def test_a_commit_that_never_reached_its_put_ends_at_its_deadline_and_costs_nothing(world: World, first: str) -> None:
    store = Away(world)
    writer = Catalog(store).writer("w", clock=world.clock)
    world.commit(writer, ("put", "objects", obj("a")))
    world.clock.tick(MINUTE if first == "look" else SECOND)
    began, store.until = world.clock(), world.clock() + 60 * MINUTE
    with pytest.raises(StoreUnreachable):
        world.commit(writer, ("put", "objects", obj("b")))
    assert 5 * MINUTE <= world.clock() - began <= 5 * MINUTE + 35 * SECOND
    assert "put" not in store.asked
    store.until = 0
    world.commit(writer, ("put", "objects", obj("c")))
    assert names(world.snapshot()) == ["a", "c"]


def test_a_store_that_lets_one_wait_for_its_time_is_not_taken_for_a_wrong_clock(world: World) -> None:
    class Slow(Wrapped):
        def now_us(self, below: str | None = None) -> int:
            world.clock.tick(2 * MINUTE)
            return self.inner.now_us(below)

    writer = Catalog(Slow(world.store)).writer("w", clock=world.clock)
    world.commit(writer, ("put", "objects", obj("a")))
    assert names(world.snapshot()) == ["a"]


def test_a_put_that_is_never_answered_ends_the_writer_at_the_deadline(world: World) -> None:
    store = Away(world)
    store.now_us = world.store.now_us  # type: ignore[method-assign]
    writer = Catalog(store).writer("w", clock=world.clock)
    began, store.until = world.clock(), world.clock() + 60 * MINUTE
    with pytest.raises(CommitUnknown):
        world.commit(writer, ("put", "objects", obj("a")))
    assert 5 * MINUTE <= world.clock() - began <= 5 * MINUTE + 35 * SECOND
