"""What is said of stored rows: their table and class, their range of keys and of stamps, and where they lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any, NamedTuple

from ..v1 import log_pb2
from .parquet import RowGroup


class BlockClass(IntEnum):
    """What the rows of a block are; the numbers are the format's."""

    EVENTS = log_pb2.BLOCK_CLASS_EVENTS
    LIVE = log_pb2.BLOCK_CLASS_LIVE
    ENDED = log_pb2.BLOCK_CLASS_ENDED
    STUBS = log_pb2.BLOCK_CLASS_STUBS
    SUPERSEDED = log_pb2.BLOCK_CLASS_SUPERSEDED


@dataclass(frozen=True, slots=True)
class BlockHeader:
    """What a block holds: its rows' keys from ``first_key`` to ``last_key`` and commit times of all stamps, oldest to newest."""

    table: str
    block_class: BlockClass
    rows: int
    first_key: bytes
    last_key: bytes
    oldest: int
    newest: int
    expectations: int = 0
    late_updates: int = 0


def joined(headers: Sequence[BlockHeader]) -> BlockHeader:
    """What a block would say that has the rows of these, which are of one class and follow each other."""
    return replace(
        headers[0],
        rows=sum(header.rows for header in headers),
        last_key=headers[-1].last_key,
        oldest=min(header.oldest for header in headers),
        newest=max(header.newest for header in headers),
        expectations=sum(header.expectations for header in headers),
        late_updates=sum(header.late_updates for header in headers),
    )


@dataclass(frozen=True, slots=True)
class BlockPlace:
    """Where a block lies in a file, and what is said there of it.

    It is a message of its own, with a ``checksum``, and ``data`` is the block itself where who read the file has kept it; or it is a
    ``row_group`` of a segment. Where it is ``only_of`` a writer, stamps of anybody else in it are damage.
    """

    name: str
    offset: int
    length: int
    checksum: int
    header: BlockHeader
    data: bytes | None = field(default=None, compare=False, repr=False)
    row_group: RowGroup | None = field(default=None, compare=False, repr=False)
    only_of: str = field(default="", compare=False)

    @property
    def is_at_hand(self) -> bool:
        """Whether it can be read without a request."""
        return self.data is not None


TOMBSTONES = frozenset({BlockClass.ENDED, BlockClass.SUPERSEDED})
"""The classes of versions that have ended."""
FOLDED = TOMBSTONES | {BlockClass.LIVE}
"""The classes of versions with their rows."""


class Purpose(IntEnum):
    """What a run is for; the numbers are the format's."""

    ROWS = log_pb2.RUN_PURPOSE_ROWS
    ORDER = log_pb2.RUN_PURPOSE_ORDER
    SUMS = log_pb2.RUN_PURPOSE_SUMS


class Side(NamedTuple):
    """What a run beside a table's rows is: of which table, for what, and its name."""

    table: str
    purpose: Purpose
    name: str


def header_message(header: BlockHeader) -> Any:
    """The header as a message."""
    return log_pb2.BlockHeader(
        table=header.table,
        **{"class": header.block_class},
        rows=header.rows,
        first_key=header.first_key,
        last_key=header.last_key,
        oldest=header.oldest,
        newest=header.newest,
        expectations=header.expectations,
        late_updates=header.late_updates,
    )


def header_of(message: Any) -> BlockHeader:
    """The header that a message holds."""
    return BlockHeader(
        message.table,
        BlockClass(getattr(message, "class")),
        message.rows,
        message.first_key,
        message.last_key,
        message.oldest,
        message.newest,
        message.expectations,
        message.late_updates,
    )
