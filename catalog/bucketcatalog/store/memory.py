"""A store in the memory of this process, for tests, notebooks and catalogs that need not last."""

from __future__ import annotations

import builtins
import os
import threading
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator
from itertools import islice
from weakref import WeakValueDictionary

from .. import clock as machine_clock
from ..errors import ObjectNotFound, TruncatedObject, UnsupportedStore
from .base import ObjectInfo, UnfinishedPut
from .object_names import check_most, check_name, check_prefix, check_range

_PAGE = 256
_AFTER_SLASH = chr(ord("/") + 1)


class _Objects:
    """The objects of one name: data and time of each, and their names in order."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.names: list[str] = []
        self.values: dict[str, tuple[bytes, int]] = {}


_named: dict[str, _Objects] = {}
_anonymous: WeakValueDictionary[str, _Objects] = WeakValueDictionary()
_open: WeakValueDictionary[int, MemoryStore] = WeakValueDictionary()


class MemoryStore:
    """The objects that this process holds under ``name``; without a name, a place of its own that goes with its last store.

    ``clock`` gives the store's time in microseconds. Unpickled in the same process it reaches the same objects by the same clock;
    in another process that is an error, not an empty store.
    """

    def __init__(self, name: str | None = None, *, clock: Callable[[], int] = machine_clock.now_us) -> None:
        if name is None:
            self._name, self._objects = machine_clock.random_token(), _Objects()
            _anonymous[self._name] = self._objects
        else:
            self._name = name
            self._objects = _anonymous.get(name) or _named.setdefault(name, _Objects())
        self._clock = clock
        self.url = f"memory://{self._name}"
        _open[id(self)] = self

    def __repr__(self) -> str:
        return f"MemoryStore({self._name!r})"

    def __reduce__(self) -> tuple[Callable[[str, int, int], MemoryStore], tuple[str, int, int]]:
        return _reopen, (self._name, os.getpid(), id(self))

    @property
    def concurrency(self) -> int:
        """One: nothing here waits."""
        return 1

    def put(self, name: str, data: bytes) -> None:
        """Atomic; lasts as long as the process."""
        check_name(name)
        value = (bytes(data), self._clock())
        objects = self._objects
        with objects.lock:
            if name not in objects.values:
                insort(objects.names, name)
            objects.values[name] = value

    def get(self, name: str, *, most: int | None = None) -> bytes:
        """All bytes of the object or its first ``most``, or ``ObjectNotFound``."""
        check_most(most)
        return self._value(name)[0][:most]

    def get_range(self, name: str, offset: int, length: int) -> bytes:
        """Exactly ``length`` bytes from ``offset``, or ``TruncatedObject``; negative offsets count from the end."""
        check_range(length)
        data = self._value(name)[0]
        if offset < 0:
            offset = max(0, len(data) + offset)
            length = min(length, len(data) - offset)
        if offset + length > len(data):
            raise TruncatedObject(
                f"{name!r} in {self.url} has {len(data)} bytes, fewer than the {offset + length} that are read from it.",
            )
        return data[offset : offset + length]

    def list(self, prefix: str, *, after: str = "", limit: int | None = None) -> Iterator[ObjectInfo]:
        """Every object below ``prefix`` that sorts after ``after``, a page at a time."""
        check_prefix(prefix)
        return islice(self._list(prefix, after, _PAGE if limit is None else max(1, min(limit, _PAGE))), limit)

    def list_prefixes(self, prefix: str, *, begin: str = "") -> builtins.list[str]:
        """The distinct next parts of names below ``prefix`` that ``begin`` so, in byte order."""
        check_prefix(prefix)
        names, found = self._objects.names, []
        with self._objects.lock:
            at = bisect_left(names, prefix + begin)
            while at < len(names) and names[at].startswith(prefix + begin):
                part, slash, _ = names[at][len(prefix) :].partition("/")
                if slash:
                    found += [part] if part.startswith(begin) else []
                    at = bisect_left(names, prefix + part + _AFTER_SLASH, at)
                else:
                    at += 1
        return sorted(found)

    def head(self, name: str) -> ObjectInfo:
        """Size and time of the object, or ``ObjectNotFound``."""
        data, modified_us = self._value(name)
        return ObjectInfo(name, len(data), modified_us)

    def delete(self, name: str) -> None:
        """The object is gone on return."""
        check_name(name)
        objects = self._objects
        with objects.lock:
            if objects.values.pop(name, None) is not None:
                del objects.names[bisect_left(objects.names, name)]

    def unfinished_puts(self) -> Iterator[UnfinishedPut]:
        """None: a put is one assignment."""
        return iter(())

    def discard(self, put: UnfinishedPut) -> None:
        """Nothing is left of any put."""

    def now_us(self, below: str | None = None) -> int:
        """What the clock of this store says."""
        return self._clock()

    def _value(self, name: str) -> tuple[bytes, int]:
        check_name(name)
        try:
            return self._objects.values[name]
        except KeyError:
            raise ObjectNotFound(
                f"There is no object {name!r} in {self.url}.", next_step="List what is there, or check the name."
            ) from None

    def _list(self, prefix: str, after: str, length: int) -> Iterator[ObjectInfo]:
        names, values = self._objects.names, self._objects.values
        first = True
        while True:
            with self._objects.lock:
                at = bisect_left(names, prefix) if first and after < prefix else bisect_right(names, after)
                page = [(name, values[name]) for name in names[at : at + length] if name.startswith(prefix)]
            for name, (data, modified_us) in page:
                yield ObjectInfo(name, len(data), modified_us)
            if len(page) < length:
                return
            first, after = False, page[-1][0]


def _reopen(name: str, process: int, identity: int) -> MemoryStore:
    """The store that was pickled, or one of the same objects if it is gone by now."""
    if process != os.getpid():
        raise UnsupportedStore(
            f"memory://{name} lives in another process.", next_step="Use a path or an object store to share a catalog."
        )
    found = _open.get(identity)
    return found if found is not None and found._name == name else MemoryStore(name)
