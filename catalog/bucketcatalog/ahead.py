"""Several streams read at once and handed on one after the other: what is listed in parallel comes out in order, and bounded in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import Full, Queue
from threading import Event
from typing import Generic, TypeVar

Item = TypeVar("Item")
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
