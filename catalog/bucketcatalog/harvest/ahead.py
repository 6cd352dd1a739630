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


def ahead(streams: Sequence[Callable[[], Iterable[Item]]], *, threads: int, depth: int) -> Iterator[Item]:
    """The items of the streams, in the order of the streams; so many of these are read at once.

    At most ``depth`` items of each stream that is being read wait to be taken: ``threads * depth`` in all. The first error ends it.
    """
    stop = Event()
    queues: list[Queue[Item | _End[Item]]] = [Queue(depth) for _ in streams]

    def hand_on(queue: Queue[Item | _End[Item]], item: Item | _End[Item]) -> None:
        while not stop.is_set():
            try:
                queue.put(item, timeout=_LOOK_S)
                return
            except Full:
                continue

    def read(number: int) -> None:
        end: _End[Item] = _End()
        try:
            for item in streams[number]():
                hand_on(queues[number], item)
                if stop.is_set():
                    return
        except BaseException as error:
            end = _End(error)
        hand_on(queues[number], end)

    with ThreadPoolExecutor(max(1, min(threads, len(streams))), thread_name_prefix="harvest-list") as pool:
        waiting = [pool.submit(read, number) for number in range(len(streams))]
        try:
            for queue in queues:
                while not isinstance(item := queue.get(), _End):
                    yield item
                if item.error is not None:
                    raise item.error
        finally:
            stop.set()
            for future in waiting:
                future.cancel()
