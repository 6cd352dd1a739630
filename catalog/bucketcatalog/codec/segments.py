"""Segments: files of blocks with an index behind them, read whole or one block at a time.

The file is one protobuf message byte for byte: ``blocks`` fields, the ``index`` field, and last, always nine bytes, ``index_offset``. A
checkpoint or transaction that refers to a segment names its index's place and digest, and the index names each block's checksum, so one
digest in the referring file fixes every byte that is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from google.protobuf.message import DecodeError

from ..cut import Cut
from ..errors import CorruptionError, UnsupportedFormat
from ..paths import uuid_text
from ..tables import Table
from ..v1 import log_pb2
from .blocks import BlockClass, BlockHeader, EncodedBlock, header_message, header_of
from .seal import FORMAT_VERSION, check_format, digest, seal, unseal
from .wire import field_spans

MAX_SEGMENT_BYTES = 1 << 30
_BLOCK_TAG, _INDEX_TAG, _OFFSET_TAG = b"\x0a", b"\x12", b"\x19"


@dataclass(frozen=True, slots=True)
class Run:
    """The blocks of one table and class in a segment, in sum."""

    table: str
    block_class: BlockClass
    rows: int
    blocks: int
    first_key: bytes
    last_key: bytes
    oldest: int
    newest: int
    level: int = 0


@dataclass(frozen=True, slots=True)
class SegmentReference:
    """Where a segment lies and what it holds, as a checkpoint or a transaction says."""

    writer: str
    uuid: bytes
    size: int
    index_offset: int
    index_length: int
    index_digest: bytes
    runs: tuple[Run, ...]

    def with_levels(self, levels: Mapping[str, int]) -> SegmentReference:
        """The same with each table's runs at a level."""
        return replace(self, runs=tuple(replace(run, level=levels[run.table]) for run in self.runs))

    def below(self, levels: Mapping[str, int]) -> SegmentReference:
        """The same with those runs only that lie below a table's level; of tables without one all."""
        return replace(self, runs=tuple(run for run in self.runs if run.level < levels.get(run.table, run.level + 1)))


@dataclass(frozen=True, slots=True)
class BlockPlace:
    """One block of a segment: where it lies and what its index entry says of it."""

    name: str
    offset: int
    length: int
    checksum: int
    header: BlockHeader


class SegmentBuilder:
    """Collects encoded blocks, in the order of table, class and key, into one segment's bytes."""

    def __init__(self) -> None:
        self.size = 0
        self._parts: list[bytes] = []
        self._entries: list[Any] = []
        self._headers: list[BlockHeader] = []

    def add(self, block: EncodedBlock) -> None:
        """Append a block."""
        prefix = _BLOCK_TAG + _varint(len(block.data))
        offset = self.size + len(prefix)
        header = header_message(block.header)
        self._entries.append(log_pb2.BlockEntry(offset=offset, length=len(block.data), header=header, checksum=block.checksum))
        self._headers.append(block.header)
        self._parts += [prefix, block.data]
        self.size = offset + len(block.data)

    def finish(
        self, *, writer: str, database: str, uuid: bytes, cut: Cut | None = None, tables: Sequence[Table] = ()
    ) -> tuple[bytes, SegmentReference]:
        """The segment's bytes, and what refers to it."""
        index = log_pb2.SegmentIndex(
            format_version=FORMAT_VERSION, writer=writer, database=database, uuid=uuid, entries=self._entries
        )
        for table in tables:
            index.tables.add().MergeFromString(table.definition)
        for name, heads in (cut.heads if cut else {}).items():
            index.cut.writers.add(writer=name, heads=[log_pb2.Head(revision=h.revision, uuid=h.uuid) for h in heads])
        sealed = seal(index.SerializeToString(deterministic=True))
        prefix = _INDEX_TAG + _varint(len(sealed))
        trailer = _OFFSET_TAG + self.size.to_bytes(8, "little")
        data = b"".join([*self._parts, prefix, sealed, trailer])
        place = self.size + len(prefix)
        reference = SegmentReference(writer, uuid, len(data), place, len(sealed), digest(sealed), _runs(self._headers))
        return data, reference


TRAILER_BYTES = len(_OFFSET_TAG) + 8


def index_start(trailer: bytes, name: str) -> int:
    """Where the index begins, from the last bytes of the segment ``name``; ``CorruptionError`` where they do not say."""
    if len(trailer) != TRAILER_BYTES or trailer[:1] != _OFFSET_TAG:
        raise CorruptionError(f"{name} does not end as a segment does.", next_step=_REMEDY)
    return int.from_bytes(trailer[1:], "little")


def covers_a_cut(end: bytes, name: str) -> bool:
    """Whether the rows of the segment ``name`` cover a cut, from its bytes from the index on; else they are a transaction's events."""
    try:
        (span,) = field_spans(end, 2)
        return log_pb2.SegmentIndex.FromString(unseal(end[span[0] : sum(span)], name, "the index of a segment")).HasField("cut")
    except (DecodeError, ValueError) as error:
        raise CorruptionError(f"{name} has no readable index: {error}.", next_step=_REMEDY) from None


def _runs(headers: Sequence[BlockHeader]) -> tuple[Run, ...]:
    runs: dict[tuple[str, BlockClass], Run] = {}
    for header in headers:
        key = (header.table, header.block_class)
        run = runs.get(key)
        if run is None:
            run = Run(*key, 0, 0, header.first_key, header.last_key, header.oldest, header.newest)
        runs[key] = replace(
            run,
            rows=run.rows + header.rows,
            blocks=run.blocks + 1,
            first_key=min(run.first_key, header.first_key),
            last_key=max(run.last_key, header.last_key),
            oldest=min(run.oldest, header.oldest),
            newest=max(run.newest, header.newest),
        )
    return tuple(runs.values())


def decode_index(sealed: bytes, name: str, reference: SegmentReference) -> tuple[BlockPlace, ...]:
    """The places of a segment's blocks, from the sealed index of file ``name``; ``CorruptionError`` where it is not the one referred to."""
    held = held_by_segment(reference)
    body = unseal(sealed, name, f"the index of {held}")
    if digest(sealed) != reference.index_digest:
        raise CorruptionError(f"{name} is not the file that was referred to. It should hold {held}.", next_step=_REMEDY)
    try:
        message = log_pb2.SegmentIndex.FromString(body)
        check_format(message, name)
        return tuple(BlockPlace(name, e.offset, e.length, e.checksum, header_of(e.header)) for e in message.entries)
    except (DecodeError, ValueError) as error:
        raise CorruptionError(f"{name} has no readable index: {error}.", next_step=_REMEDY) from None


def check_block(data: bytes, place: BlockPlace) -> None:
    """``CorruptionError`` where these bytes are not those that the index speaks of."""
    if data[-4:] != place.checksum.to_bytes(4, "little"):
        held = held_by_block(place)
        raise CorruptionError(f"{place.name} is damaged: the checksum of {held} does not match.", next_step=_REMEDY)


def segment_message(reference: SegmentReference) -> Any:
    """The reference as a message."""
    message = log_pb2.SegmentReference(
        writer=reference.writer,
        uuid=reference.uuid,
        size=reference.size,
        index_offset=reference.index_offset,
        index_length=reference.index_length,
        index_digest=reference.index_digest,
    )
    for run in reference.runs:
        message.runs.add(
            table=run.table,
            **{"class": run.block_class},
            rows=run.rows,
            blocks=run.blocks,
            first_key=run.first_key,
            last_key=run.last_key,
            oldest=run.oldest,
            newest=run.newest,
            level=run.level,
        )
    return message


def known_segments(messages: Any, name: str) -> tuple[SegmentReference, ...]:
    """The references that file ``name`` holds; ``UnsupportedFormat`` where they speak of what this release does not know."""
    try:
        return tuple(segment_of(message) for message in messages)
    except ValueError as error:
        raise UnsupportedFormat(
            f"{name} refers to rows that this release does not know: {error}.",
            next_step="Read it with a newer release of bucketcatalog.",
        ) from None


def segment_of(message: Any) -> SegmentReference:
    """The reference that a message holds; ``ValueError`` where it speaks of runs that are no rows, or of no known class."""
    strange = [run.purpose for run in message.runs if run.purpose > log_pb2.RUN_PURPOSE_ROWS]
    if strange:
        raise ValueError(f"{strange[0]} is no known purpose of a run")
    runs = tuple(
        Run(r.table, BlockClass(getattr(r, "class")), r.rows, r.blocks, r.first_key, r.last_key, r.oldest, r.newest, r.level)
        for r in message.runs
    )
    return SegmentReference(
        message.writer, message.uuid, message.size, message.index_offset, message.index_length, message.index_digest, runs
    )


def held_by_segment(reference: SegmentReference) -> str:
    """What a segment holds, for messages about its loss."""
    parts = (f"{run.rows} rows of {run.table} ({run.block_class.name.lower()})" for run in reference.runs)
    return f"segment {uuid_text(reference.uuid)}: {', '.join(parts)}"


def held_by_block(place: BlockPlace) -> str:
    """What a block holds, for messages about its loss."""
    header = place.header
    return f"{header.rows} rows of table {header.table!r}, keys {header.first_key!r} to {header.last_key!r}"


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


_REMEDY = "Restore the file from a copy of the store."
