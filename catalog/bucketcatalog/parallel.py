"""Work on several items or streams at once, results in the order of the items, bounded in memory.

Reading a slice waits for the store and then decompresses outside of the interpreter's lock, so threads help with both.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Full, Queue
from threading import Event
from typing import Generic, TypeVar

import pyarrow as pa

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_order(function: Callable[[Item], Result], items: Sequence[Item], *, threads: int | None = None) -> Iterator[Result]:
    """``function`` of each item, with so many threads; by default as many as Arrow uses (``pyarrow.set_cpu_count``).

    At most one result a thread waits to be taken, so what is held does not grow with the number of items. The first error ends it.
    """
    threads = min(pa.cpu_count() if threads is None else threads, len(items))
    if threads < 2:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="bucketcatalog") as pool:
        waiting: deque[Future[Result]] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


_LOOK_S = 0.2


class _End(Generic[Item]):
    """What a stream ended with: an error, or nothing."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


class _Stream(Generic[Item]):
    """A stream that one thread reads, and what of it waits for another to take it."""

    def __init__(self, items: Callable[[], Iterable[Item]], depth: int, stop: Event) -> None:
        self._items = items
        self._waiting: Queue[Item | _End[Item]] = Queue(depth)
        self._stop = stop

    def read(self) -> None:
        """Read it to its end, or until nobody wants more."""
        end: _End[Item] = _End()
        try:
            for item in self._items():
                self._hand_on(item)
                if self._stop.is_set():
                    return
        except BaseException as error:
            end = _End(error)
        self._hand_on(end)

    def _hand_on(self, item: Item | _End[Item]) -> None:
        while not self._stop.is_set():
            try:
                self._waiting.put(item, timeout=_LOOK_S)
                return
            except Full:
                continue

    def taken(self) -> Iterator[Item]:
        """What was read, as it comes; raises what reading has raised."""
        while not isinstance(item := self._waiting.get(), _End):
            yield item
        if item.error is not None:
            raise item.error


def ahead(streams: Sequence[Callable[[], Iterable[Item]]], *, threads: int, depth: int) -> Iterator[Item]:
    """The items of the streams, in the order of the streams; of those not handed on to the end so many are read at once.

    At most ``depth`` items of each wait to be taken: ``threads * depth`` in all. The first error ends it.
    """
    stop = Event()
    every = [_Stream(items, depth, stop) for items in streams]
    width = max(1, threads)
    with ThreadPoolExecutor(width, thread_name_prefix="harvest-list") as pool:
        waiting = [pool.submit(stream.read) for stream in every[:width]]
        try:
            for number, stream in enumerate(every):
                yield from stream.taken()
                # Not before: what a stream that has ended leaves behind waits as well.
                waiting += [pool.submit(later.read) for later in every[number + width : number + width + 1]]
        finally:
            stop.set()
            for future in waiting:
                future.cancel()
