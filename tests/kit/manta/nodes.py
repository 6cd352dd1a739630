"""Nodes of the service in a world, and a store whose commits wait, so that operations gather behind one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bucketcatalog.store.wrappers import Wrapped
from bucketcatalog.systems.manta.operations import Manta
from bucketcatalog.systems.manta.payloads import Listing

from ..world import BUCKET, OWNER, SECOND, World, rows

ID_3, ID_4 = "aaaaaaaa-0000-4000-8000-000000000003", "aaaaaaaa-0000-4000-8000-000000000004"
MD5 = "xzY5jJbR9rcrMRhlcmi/8g=="
PATIENCE = 30.0


def node_of(world: World, name: str = "node-1", **options: Any) -> Manta:
    """A node that has read nothing, with the world's clock, a second after its tables were declared, which its first commit else does."""
    with world.writer(name) as writer:
        writer.declare(["manta.garbage_batch", "manta.placement"])
    node = Manta(world.catalog(), writer=name, clock=world.clock, **options)
    world.clock.tick(SECOND)
    return node


def after_a_second(world: World, call: Callable[..., Any], **payload: Any) -> Any:
    """What an operation answers a second later."""
    world.clock.tick(SECOND)
    return call(**payload)


def listed(node: Manta, bucket_id: str = BUCKET, **options: Any) -> list[str]:
    """The names on a page of a bucket's objects."""
    return [row["name"] for row in node.listobjects(owner=OWNER, bucket_id=bucket_id, **options).rows]


def pages(node: Manta, **options: Any) -> Iterator[Listing]:
    """The pages of a bucket's objects, each begun at the marker that the one before gave."""
    marker = None
    while True:
        page = node.listobjects(owner=OWNER, bucket_id=BUCKET, marker=marker, **options)
        yield page
        if page.next_marker is None:
            return
        assert page.next_marker != marker
        marker = page.next_marker


def events(world: World) -> list[int]:
    """How many events each commit has had, in their order; that of a node which is opened has none, and is left out."""
    return [row["events"] for row in operations(world)]


def operations(world: World) -> list[dict[str, Any]]:
    """The commits of the log that have events, in their order."""
    log = sorted(rows(world.snapshot(), "log"), key=lambda row: row["commit_timestamp"])
    return [row for row in log if row["events"]]


def tombstones(world: World, *columns: str) -> list[tuple[Any, ...]]:
    """What is recorded of objects that ended, by the time of their end."""
    found = rows(world.snapshot(), "deleted_objects", [*columns, "deleted_at"])
    return [tuple(row[name] for name in columns) for row in sorted(found, key=lambda row: row["deleted_at"])]


class Gate(Wrapped):
    """A store whose puts wait while it is shut; ``before`` and ``after`` are called around each."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self.open = threading.Event()
        self.open.set()
        self.reached = threading.Event()
        self.before: Callable[[], None] = lambda: None
        self.after: Callable[[], None] = lambda: None

    def put(self, name: str, data: bytes) -> None:
        self.reached.set()
        assert self.open.wait(PATIENCE)
        self.before()
        self.inner.put(name, data)
        self.after()


class Gated:
    """A world with a gate before its store, and a node in it."""

    def __init__(self, **options: Any) -> None:
        self.world = World()
        self.gate = Gate(self.world.store)
        self.world.store = self.gate
        self.node = node_of(self.world, **options)

    def behind(self, first: Callable[[], Any], *others: Callable[[], Any]) -> list[Any]:
        """What ``others`` answer, or raise, that came in this order while the commit of ``first`` was under way."""
        self.gate.reached.clear()
        self.gate.open.clear()
        with ThreadPoolExecutor(1 + len(others)) as pool:
            futures = [pool.submit(first)]
            try:
                assert self.gate.reached.wait(PATIENCE)
                for count, other in enumerate(others, start=1):
                    futures.append(pool.submit(other))
                    self._wait_for(count)
            finally:
                self.gate.open.set()
            return [future.exception(PATIENCE) or future.result() for future in futures][1:]

    def _wait_for(self, count: int) -> None:
        """Until so many operations wait for the one that is under way."""
        end = time.monotonic() + PATIENCE
        while len(self.node._commits._waiting) < count:
            assert time.monotonic() < end
            time.sleep(0.001)
