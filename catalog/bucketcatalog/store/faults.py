"""Stores that misbehave on purpose, for tests of what is built on a store; each wraps any other.

::

    Wrapped             passes every call on; the base of the others
    ├── Counting        counts requests by kind, and bytes
    ├── Failing         fails at the n-th call, before or after it takes effect: enumerate n to try every crash
    ├── LostResponses   puts whose answer is lost, carried out or not
    ├── DelayedArrival  puts that arrive when the test says so
    └── Truncating      objects or listings of which only a part is there

They pickle if what they wrap does; a copy counts for itself.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Collection, Iterator
from itertools import islice
from typing import TypeVar

from ..errors import OutcomeUnknown, TruncatedObject
from .base import ObjectInfo, Store
from .object_names import check_most
from .wrappers import Counting, Wrapped

__all__ = ["Counting", "DelayedArrival", "Failing", "LostResponses", "SimulatedCrash", "Truncating", "Wrapped"]

Result = TypeVar("Result")


class SimulatedCrash(BaseException):
    """The process is meant to have died here; no ``except Exception`` survives it, as none survives a kill."""


class Failing(Wrapped):
    """Fails at call number ``at`` (from 0; None: never), ``after`` it took effect or before.

    Raises ``error``, or ``SimulatedCrash``, and then for every later call too, since the dead ask nothing. ``calls`` lists the
    calls so far as ``(method, name)``: run once without a failure, then once for every number below ``len(calls)``, before and
    after. ``methods`` says which calls are counted and may fail; a listing is carried out at once.
    """

    def __init__(
        self,
        inner: Store,
        *,
        at: int | None = None,
        after: bool = False,
        error: Exception | None = None,
        methods: Collection[str] = ("put", "get", "get_range", "list", "list_prefixes", "head", "delete"),
    ) -> None:
        super().__init__(inner)
        self.at = at
        self.after = after
        self.error = error
        self.methods = frozenset(methods)
        self.calls: list[tuple[str, str]] = []
        self.crashed = False

    def put(self, name: str, data: bytes) -> None:
        """May fail."""
        self._call("put", name, lambda: self.inner.put(name, data))

    def get(self, name: str, *, most: int | None = None) -> bytes:
        """May fail."""
        return self._call("get", name, lambda: self.inner.get(name, most=most))

    def get_range(self, name: str, offset: int, length: int) -> bytes:
        """May fail."""
        return self._call("get_range", name, lambda: self.inner.get_range(name, offset, length))

    def list(self, prefix: str, *, after: str = "", limit: int | None = None) -> Iterator[ObjectInfo]:
        """May fail."""
        return iter(self._call("list", prefix, lambda: [*self.inner.list(prefix, after=after, limit=limit)]))

    def list_prefixes(self, prefix: str, *, begin: str = "") -> builtins.list[str]:
        """May fail."""
        return self._call("list_prefixes", prefix, lambda: self.inner.list_prefixes(prefix, begin=begin))

    def head(self, name: str) -> ObjectInfo:
        """May fail."""
        return self._call("head", name, lambda: self.inner.head(name))

    def delete(self, name: str) -> None:
        """May fail."""
        self._call("delete", name, lambda: self.inner.delete(name))

    def _call(self, method: str, name: str, carry_out: Callable[[], Result]) -> Result:
        if self.crashed:
            raise SimulatedCrash(f"{method} {name!r} was called after the crash.")
        if method not in self.methods:
            return carry_out()
        with self._lock:
            fails = len(self.calls) == self.at
            self.calls.append((method, name))
        if not fails:
            return carry_out()
        if self.after:
            carry_out()
        if self.error is not None:
            raise self.error
        self.crashed = True
        raise SimulatedCrash(f"{'after' if self.after else 'before'} call {self.at}: {method} {name!r}")


class LostResponses(Wrapped):
    """The puts numbered in ``puts`` (from 0; None: every one) raise ``OutcomeUnknown``, carried out if ``landed``, else not."""

    def __init__(self, inner: Store, *, landed: bool, puts: Collection[int] | None = None) -> None:
        super().__init__(inner)
        self.landed = landed
        self.lost = None if puts is None else frozenset(puts)
        self.puts = 0

    def put(self, name: str, data: bytes) -> None:
        """Carried out or not, and the answer lost or not, by its number."""
        with self._lock:
            number, self.puts = self.puts, self.puts + 1
        lost = self.lost is None or number in self.lost
        if self.landed or not lost:
            self.inner.put(name, data)
        if lost:
            raise OutcomeUnknown(f"The answer to put {number}, of {name!r}, was lost.", next_step="Put the same bytes again.")


class DelayedArrival(Wrapped):
    """Puts whose name ``picks`` (all, by default) are held back until ``deliver``; the writer is told of success or not.

    With ``acknowledge`` the put returns as if all were well, which only a broken store does; without, it raises ``OutcomeUnknown``,
    as where a request outlives the connection that sent it. ``held`` is what has not arrived yet, in the order of the puts.
    """

    def __init__(self, inner: Store, *, acknowledge: bool, picks: Callable[[str], bool] | None = None) -> None:
        super().__init__(inner)
        self.acknowledge = acknowledge
        self.picks = picks
        self.held: list[tuple[str, bytes]] = []

    def put(self, name: str, data: bytes) -> None:
        """Held back, or passed on if its name is not picked."""
        if self.picks is not None and not self.picks(name):
            self.inner.put(name, data)
            return
        with self._lock:
            self.held.append((name, bytes(data)))
        if not self.acknowledge:
            raise OutcomeUnknown(f"The put of {name!r} is still on its way.", next_step="Put the same bytes again.")

    def deliver(self, count: int | None = None) -> builtins.list[str]:
        """Let the first ``count`` held puts arrive, or all; gives their names."""
        with self._lock:
            arriving, self.held = self.held[:count], [] if count is None else self.held[count:]
        for name, data in arriving:
            self.inner.put(name, data)
        return [name for name, _ in arriving]


class Truncating(Wrapped):
    """Of objects whose name ``picks`` (all, by default) only the first ``keep`` of the bytes are there, whichever way they are read.

    With ``listings`` it is the listings instead that end early: the first ``keep`` of their objects, sizes and bytes untouched.
    """

    def __init__(
        self, inner: Store, *, keep: float = 0.5, picks: Callable[[str], bool] | None = None, listings: bool = False
    ) -> None:
        super().__init__(inner)
        self.keep = keep
        self.picks = picks
        self.listings = listings

    def get(self, name: str, *, most: int | None = None) -> bytes:
        """The beginning of the object."""
        check_most(most)
        data = self.inner.get(name)
        return data[: self._kept(name, len(data))][:most]

    def get_range(self, name: str, offset: int, length: int) -> bytes:
        """As of a store that holds the beginning only, so ``TruncatedObject`` behind its end."""
        size = self._kept(name, self.inner.head(name).size)
        if offset < 0:
            offset = max(0, size + offset)
            length = min(length, size - offset)
        if offset + length > size:
            raise TruncatedObject(f"{name!r} has {size} bytes, fewer than {offset + length}.")
        return self.inner.get_range(name, offset, length)

    def list(self, prefix: str, *, after: str = "", limit: int | None = None) -> Iterator[ObjectInfo]:
        """The objects with the sizes that are left, or the beginning of the listing."""
        found = self.inner.list(prefix, after=after, limit=limit)
        if self.listings:
            whole = [*found]
            return islice(whole, int(len(whole) * self.keep))
        return map(self._shortened, found)

    def head(self, name: str) -> ObjectInfo:
        """The size that is left."""
        return self._shortened(self.inner.head(name))

    def _kept(self, name: str, size: int) -> int:
        hit = not self.listings and (self.picks is None or self.picks(name))
        return int(size * self.keep) if hit else size

    def _shortened(self, info: ObjectInfo) -> ObjectInfo:
        return ObjectInfo(info.name, self._kept(info.name, info.size), info.modified_us)
