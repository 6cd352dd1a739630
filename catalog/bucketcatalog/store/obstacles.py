"""A store for who reads on: listings go past what cannot be looked into, and what lies under one name and may not be read is damaged.

A store says of an error by ``in_the_way`` that it is about one name alone. By default that stops whoever meets it, so that nothing is
missing silently; here it is told instead, once, and everything beside it is there as ever.
"""

from __future__ import annotations

import builtins
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice

from ..errors import CorruptionError, InvalidName, ObjectNotFound, StoreError
from .base import ObjectInfo, Store
from .object_names import check_prefix
from .wrappers import Wrapped

_AFTER_SLASH = chr(ord("/") + 1)
_MANY = 64
"""With so many in the way in one directory that is gone past itself: each makes it be listed from there on again."""


class Obstacles:
    """What is in the way of listings, by name, each with the error that says why. Threads may add to it."""

    def __init__(self) -> None:
        self._met: dict[str, StoreError] = {}
        self._told = 0

    def add(self, name: str, error: StoreError) -> None:
        """Note it, if it has not been yet."""
        self._met.setdefault(name, error)

    def untold(self) -> builtins.list[tuple[str, StoreError]]:
        """What has been noted since this was asked last."""
        new = builtins.list(self._met.items())[self._told :]
        self._told += len(new)
        return new

    def tell_again(self) -> None:
        """Whoever asks next is told everything, as one who looks at everything again has to be."""
        self._told = 0


class PastObstacles(Wrapped):
    """The store ``inner``; ``tell`` is called with the name of what is in the way of a listing, and the error that says why.

    An object that may not be read is a ``CorruptionError``, which whoever reads past damage goes on after.
    """

    def __init__(self, inner: Store, tell: Callable[[str, StoreError], object]) -> None:
        super().__init__(inner)
        self._tell = tell

    @property
    def concurrency(self) -> int:
        """The inner store's."""
        return self.inner.concurrency

    def get(self, name: str, *, most: int | None = None) -> bytes:
        """As the inner store, or ``CorruptionError``."""
        return self._reading(lambda: self.inner.get(name, most=most))

    def get_range(self, name: str, offset: int, length: int) -> bytes:
        """As the inner store, or ``CorruptionError``."""
        return self._reading(lambda: self.inner.get_range(name, offset, length))

    def head(self, name: str) -> ObjectInfo:
        """As the inner store; ``ObjectNotFound`` for what it cannot look at, which no listing shows."""
        try:
            return self.inner.head(name)
        except StoreError as error:
            if not error.in_the_way:
                raise
            raise ObjectNotFound(error.message, next_step=error.next_step) from None

    def list(self, prefix: str, *, after: str = "", limit: int | None = None) -> Iterator[ObjectInfo]:
        """Every object below ``prefix`` that sorts after ``after`` and can be listed."""
        check_prefix(prefix)
        return islice(self._list(prefix, after, limit), limit)

    def list_prefixes(self, prefix: str, *, begin: str = "") -> builtins.list[str]:
        """The distinct next parts of what can be listed below ``prefix``, in byte order; one by one where something is in the way."""
        try:
            return self.inner.list_prefixes(prefix, begin=begin)
        except StoreError as error:
            if not error.in_the_way:
                raise
        found, after = [], ""
        while (first := next(self.list(prefix, after=after, limit=1), None)) is not None:
            part, slash, _ = first.name[len(prefix) :].partition("/")
            found += [part] if slash and part.startswith(begin) else []
            after = f"{prefix}{part}{_AFTER_SLASH}" if slash else first.name
        return sorted(found)

    def _list(self, prefix: str, after: str, limit: int | None) -> Iterator[ObjectInfo]:
        met: Counter[str] = Counter()
        while True:
            try:
                yield from self.inner.list(prefix, after=after, limit=limit)
            except StoreError as error:
                if not error.in_the_way:
                    raise
                name = error.in_the_way.rstrip("/")
                self._tell(name, error)
                after, folder = error.in_the_way, name.rpartition("/")[0]
                met[folder] += 1
                if folder and met[folder] == _MANY:
                    self._tell(folder, error)
                    after = f"{folder}/"
            else:
                return
            if after.endswith("/"):  # go on behind all that is below: right there may be one object, which is not after itself
                after = after[:-1] + _AFTER_SLASH
                yield from self._of_name(after, prefix)

    def _of_name(self, name: str, prefix: str) -> Iterator[ObjectInfo]:
        """The object of that name, if it is below the prefix and there; what is in the way may have a longer name than objects can."""
        if name.startswith(prefix):
            with suppress(ObjectNotFound, InvalidName):
                yield self.head(name)

    def _reading(self, read: Callable[[], bytes]) -> bytes:
        try:
            return read()
        except StoreError as error:
            if not error.in_the_way:
                raise
            raise CorruptionError(error.message, next_step=error.next_step) from None
