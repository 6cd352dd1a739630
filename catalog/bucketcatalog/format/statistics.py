"""What the index of a segment says of the values of a column chunk: how many are null, and the bounds of the others.

They are those of the footer, which a reader leaves to others: what Arrow's library does with a forged one is to end the process.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.message import DecodeError

from .. import limits
from ..v1 import log_pb2

_WIDTHS = {"INT32": 4, "INT64": 8}
_FRACTIONS = ("FLOAT", "DOUBLE")


class Statistics:
    """What an index says of the chunks of a row group. The message is parsed once, when it is asked for; a pickle is of its bytes."""

    def __init__(self, message: bytes = b"") -> None:
        self._message = message

    def __reduce__(self) -> tuple[type[Statistics], tuple[bytes]]:
        return Statistics, (self._message,)

    @cached_property
    def chunks(self) -> Sequence[Any]:
        """What is said of each chunk, as messages; none where nothing is known, ``ValueError`` where these are none."""
        try:
            return log_pb2.RowGroupStatistics.FromString(self._message).chunks
        except DecodeError as error:
            raise ValueError(str(error)) from None


class ColumnStatistics(NamedTuple):
    """What statistics say of a column of a row group: how many of its ``rows`` are null, and that no value is below or above its bounds.

    What is not said, or not believed, is None. Text and bytes have bytes as bounds, times numbers in the unit of their ``kind``.
    """

    kind: pa.DataType
    rows: int
    nulls: int | None
    low: bool | int | bytes | None = None
    high: bool | int | bytes | None = None

    @classmethod
    def of(cls, said: Any, kind: pa.DataType, rows: int) -> ColumnStatistics:
        """What a message says of a column of that type."""
        nulls = said.nulls if said.HasField("nulls") else None
        if not said.HasField("low") or not said.HasField("high"):
            return cls(kind, rows, nulls)
        low, high = _bound(said.low, kind), _bound(said.high, kind)
        return cls(kind, rows, nulls) if low is None or high is None else cls(kind, rows, nulls, low, high)

    def allow(self, values: pa.ChunkedArray) -> bool:
        """Whether the column can be these."""
        if self.nulls is not None and self.nulls != values.null_count:
            return False
        if self.low is None or values.null_count == len(values):
            return True
        stored = values.cast(pa.binary()) if pa.types.is_string(self.kind) else values
        stored = values.cast(pa.int64()) if pa.types.is_timestamp(self.kind) else stored
        found = pc.min_max(stored)
        return bool(self.low <= found["min"].as_py() and found["max"].as_py() <= self.high)


def statistics_of(chunks: Iterable[Any]) -> Any:
    """The message about the chunks of a row group, of which a library that has written them says what they hold."""
    message = log_pb2.RowGroupStatistics()
    for chunk in chunks:
        said, one = chunk.statistics, message.chunks.add()
        if said is not None and said.has_null_count:
            one.nulls = said.null_count
        if said is not None and said.has_min_max and chunk.physical_type not in _FRACTIONS:
            low, high = (_plain(bound, chunk.physical_type) for bound in (said.min_raw, said.max_raw))
            if max(len(low), len(high)) <= limits.STATISTICS_BYTES:
                one.low, one.high = low, high
    return message


def one_value(said: Any, kind: pa.DataType, rows: int) -> pa.Scalar | None:
    """The value that a column of so many rows has throughout by a message, which may be null; None where nobody knows of one."""
    if said.nulls == rows:
        return pa.scalar(None, kind)
    if said.nulls or said.low != said.high or not all(map(said.HasField, ("nulls", "low", "high"))):
        return None
    low = _bound(said.low, kind) if len(said.low) <= limits.STATISTICS_BYTES else None  # each row would have a copy
    try:
        return None if low is None else pa.scalar(low, kind)
    except (ValueError, OverflowError):
        return None  # it says what cannot be of the type: what the chunk says counts


def _plain(value: bool | int | bytes, physical: str) -> bytes:
    if isinstance(value, bytes):
        return value
    return value.to_bytes(_WIDTHS.get(physical, 1), "little", signed=physical in _WIDTHS)


def _bound(raw: bytes, kind: pa.DataType) -> bool | int | bytes | None:
    """A bound as it is compared; None where it is none.

    Numbers with a fraction have none: what is no number is left out of bounds, and zeros are not told apart.
    """
    if pa.types.is_integer(kind) or pa.types.is_timestamp(kind):
        number = int.from_bytes(raw, "little", signed=not pa.types.is_unsigned_integer(kind))
        return number if len(raw) == max(kind.bit_width // 8, 4) else None
    if pa.types.is_boolean(kind):
        return raw == b"\1"
    return raw if pa.types.is_string(kind) or pa.types.is_binary(kind) else None
