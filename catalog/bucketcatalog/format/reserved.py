"""What a message reserves: numbers and names that no field of it has any more.

Who decides what a table is takes a column away by reserving its number; definitions that still have the field are put together with that
one. There may be very many spans, in any order: nothing in here looks at each of them for each field.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Any

from google.protobuf import descriptor_pb2

_BEYOND = 1 << 32
"""More than the number of any field."""
Spans = list[tuple[int, int]]
"""Numbers from the first of each pair up to the second, which is not one of them."""


class Reserved:
    """The numbers that a message reserves. They are what it reserved when it was asked, whatever becomes of it."""

    def __init__(self, message: Any) -> None:
        self.spans = _joined((span.start, span.end) for span in message.reserved_range)

    def __contains__(self, number: int) -> bool:
        at = bisect_right(self.spans, (number, _BEYOND)) - 1
        return at >= 0 and number < self.spans[at][1]

    def without(self, numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
        """The spans without these numbers, in order."""
        ordered, at = sorted(numbers), 0
        for first, end in self.spans:
            start = first
            while at < len(ordered) and ordered[at] < end:
                if ordered[at] >= start:
                    if start < ordered[at]:
                        yield start, ordered[at]
                    start = ordered[at] + 1
                at += 1
            if start < end:
                yield start, end


def reserves(item: Any) -> bool:
    """Whether it is a message that reserves anything."""
    return isinstance(item, descriptor_pb2.DescriptorProto) and bool(item.reserved_range or item.reserved_name)


def release(message: Any) -> None:
    """Take the numbers and names of its fields from what a message reserves: none has a field and reserves it too."""
    kept = list(Reserved(message).without(field.number for field in message.field))
    del message.reserved_range[:]
    for start, end in kept:
        message.reserved_range.add(start=start, end=end)
    names = {field.name for field in message.field}
    message.reserved_name[:] = [name for name in message.reserved_name if name not in names]


def _joined(spans: Iterable[tuple[int, int]]) -> Spans:
    """The same numbers in order, in spans of which no two touch."""
    found: Spans = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found
