"""Stores around a store: the one that passes everything on, and the one that counts what is asked."""

from __future__ import annotations

import builtins
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

from .base import ObjectInfo, Store, UnfinishedPut


class Wrapped:
    """The store ``inner``, unchanged."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.inner!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.Lock())

    @property
    def url(self) -> str:
        """The inner store's."""
        return self.inner.url

    @property
    def concurrency(self) -> int:
        """One, so that calls come in the same order each time."""
        return 1

    def put(self, name: str, data: bytes) -> None:
        """As the inner store."""
        self.inner.put(name, data)

    def get(self, name: str, *, most: int | None = None) -> bytes:
        """As the inner store."""
        return self.inner.get(name, most=most)

    def get_range(self, name: str, offset: int, length: int) -> bytes:
        """As the inner store."""
        return self.inner.get_range(name, offset, length)

    def list(self, prefix: str, *, after: str = "", limit: int | None = None) -> Iterator[ObjectInfo]:
        """As the inner store."""
        return self.inner.list(prefix, after=after, limit=limit)

    def list_prefixes(self, prefix: str, *, begin: str = "") -> builtins.list[str]:
        """As the inner store."""
        return self.inner.list_prefixes(prefix, begin=begin)

    def head(self, name: str) -> ObjectInfo:
        """As the inner store."""
        return self.inner.head(name)

    def delete(self, name: str) -> None:
        """As the inner store."""
        self.inner.delete(name)

    def unfinished_puts(self) -> Iterator[UnfinishedPut]:
        """As the inner store."""
        return self.inner.unfinished_puts()

    def discard(self, put: UnfinishedPut) -> None:
        """As the inner store."""
        self.inner.discard(put)

    def now_us(self, below: str | None = None) -> int:
        """As the inner store."""
        return self.inner.now_us(below)


class Counting(Wrapped):
    """Counts what is asked of the inner store.

    ``requests`` counts calls by the method's name (a listing is one call, however long), ``names`` by method and object or prefix;
    ``bytes_read``, ``bytes_written`` and ``objects_listed`` add up what went over the seam. Failed calls count too.
    """

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.reset()

    @property
    def concurrency(self) -> int:
        """The inner store's: counting does not depend on the order."""
        return self.inner.concurrency

    def reset(self) -> None:
        """Count from zero again."""
        self.requests: Counter[str] = Counter()
        self.names: Counter[tuple[str, str]] = Counter()
        self.bytes_read = self.bytes_written = self.objects_listed = 0

    def put(self, name: str, data: bytes) -> None:
        """Counted."""
        self._count("put", name, written=len(data))
        self.inner.put(name, data)

    def get(self, name: str, *, most: int | None = None) -> bytes:
        """Counted."""
        self._count("get", name)
        return self._read(self.inner.get(name, most=most))

    def get_range(self, name: str, offset: int, length: int) -> bytes:
        """Counted."""
        self._count("get_range", name)
        return self._read(self.inner.get_range(name, offset, length))

    def list(self, prefix: str, *, after: str = "", limit: int | None = None) -> Iterator[ObjectInfo]:
        """Counted when called, its objects as they are taken."""
        self._count("list", prefix)
        return self._listed(self.inner.list(prefix, after=after, limit=limit))

    def list_prefixes(self, prefix: str, *, begin: str = "") -> builtins.list[str]:
        """Counted."""
        self._count("list_prefixes", prefix)
        return self.inner.list_prefixes(prefix, begin=begin)

    def head(self, name: str) -> ObjectInfo:
        """Counted."""
        self._count("head", name)
        return self.inner.head(name)

    def delete(self, name: str) -> None:
        """Counted."""
        self._count("delete", name)
        self.inner.delete(name)

    def _count(self, kind: str, name: str, *, written: int = 0) -> None:
        with self._lock:
            self.requests[kind] += 1
            self.names[kind, name] += 1
            self.bytes_written += written

    def _read(self, data: bytes) -> bytes:
        with self._lock:
            self.bytes_read += len(data)
        return data

    def _listed(self, found: Iterator[ObjectInfo]) -> Iterator[ObjectInfo]:
        for info in found:
            with self._lock:
                self.objects_listed += 1
            yield info
