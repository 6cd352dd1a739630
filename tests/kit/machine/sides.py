"""Two catalogues side by side, of which a forger writes to one, at a moment that can be chosen to a request."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from bucketcatalog.store.memory import MemoryStore
from bucketcatalog.store.wrappers import Wrapped

from ..world import Clock, World
from .forgeries import PREFIX


class Meddled(Wrapped):
    """A store in which something happens once, right before a request; those of her files do not count, which are others in each."""

    act: Callable[[], None] | None = None
    after = 0

    def _request(self, name: str) -> None:
        if self.act is not None and not name.startswith(PREFIX):
            self.after -= 1
            if self.after < 0:
                self.happen()

    def happen(self) -> None:
        """Let it happen, if it has not yet."""
        act, self.act = self.act, None
        if act is not None:
            act()

    def put(self, name: str, data: bytes) -> None:
        self._request(name)
        super().put(name, data)

    def get(self, name: str, *, most: int | None = None) -> bytes:
        self._request(name)
        return super().get(name, most=most)

    def list(self, prefix: str, *, after: str = "", limit: int | None = None) -> Iterator[Any]:
        self._request(prefix)
        return super().list(prefix, after=after, limit=limit)

    def delete(self, name: str) -> None:
        self._request(name)
        super().delete(name)


@dataclass
class Side:
    """One of the two catalogues."""

    world: World
    deleted: set[str] = field(default_factory=set)

    @property
    def store(self) -> Meddled:
        store = self.world.store
        assert isinstance(store, Meddled)
        return store

    def files(self) -> dict[str, bytes]:
        """What is in the store."""
        return {info.name: self.store.inner.get(info.name) for info in self.store.inner.list("")}


def a_side(clock: Clock) -> Side:
    world = World(Meddled(MemoryStore(clock=clock)))
    world.clock = clock
    return Side(world)
