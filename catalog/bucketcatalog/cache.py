"""What was needed lately and may be needed again, up to so many bytes: the values used longest ago go first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class LruCache(Generic[Key, Value]):
    """Values by key, of at most ``most`` bytes together as ``size`` counts them, and always the last one put.

    Threads may share it; a pickle is empty, for what is needed elsewhere is read there.
    """

    def __init__(self, most: int, size: Callable[[Value], int]) -> None:
        self._most = most
        self._size = size
        self._values: OrderedDict[Key, Value] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[LruCache[Key, Value]], tuple[int, Callable[[Value], int]]]:
        return type(self), (self._most, self._size)

    def get(self, key: Key) -> Value | None:
        """The value, or None where it is not kept (any more)."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key]

    def __contains__(self, key: Key) -> bool:
        """Whether the value is kept; that is no use of it."""
        with self._lock:
            return key in self._values

    def put(self, key: Key, value: Value) -> None:
        """Keep a value, in the place of another of that key."""
        with self._lock:
            if key in self._values:
                self._bytes -= self._size(self._values.pop(key))
            self._values[key] = value
            self._bytes += self._size(value)
            while self._bytes > self._most and len(self._values) > 1:
                self._bytes -= self._size(self._values.popitem(last=False)[1])
