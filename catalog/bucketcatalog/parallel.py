"""Work on several items at once, results in the order of the items.

Reading a slice waits for the store and then decompresses outside of the interpreter's lock, so threads help with both.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

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
