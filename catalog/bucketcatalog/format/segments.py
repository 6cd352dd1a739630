"""Segments: files of blocks with an index behind them, read whole or one block at a time.

The file is one protobuf message byte for byte: ``blocks`` fields, the ``filters`` field where there are any, the ``index`` field, and last,
always nine bytes, ``index_offset``. A checkpoint or transaction that refers to a segment names its index's place and digest, and the index
names the checksum of each block and of the filters, so one digest in the referring file fixes every byte that is read.

The filters of a segment's runs as a sealed message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from google.protobuf.message import DecodeError

from ..errors import CorruptionError
from ..model.bloom import Hashes, KeyFilter
from ..model.cuts import Cut
from ..model.tables import Table, split_side
from ..v1 import log_pb2
from .blocks import BlockClass, BlockHeader, EncodedBlock, Side, header_message, header_of
from .definitions import parse_definition
from .held import held_in_block, shown_segment
from .records import cut_of, uuid_of
from .sealing import FORMAT_VERSION, check_format, digest, field_spans, seal, unseal
from .segment_refs import SegmentReference, runs_of


def encode_filters(hashes: Mapping[tuple[str, BlockClass], Sequence[Hashes]]) -> bytes:
    """A filter over the keys of each table and class, by their hashes."""
    message = log_pb2.KeyFilters()
    for (table, block_class), parts in hashes.items():
        message.filters.add(table=table, **{"class": block_class}, words=KeyFilter.of(np.concatenate(parts)).data)
    return seal(message.SerializeToString(deterministic=True))


def decode_filters(sealed: bytes, name: str, known: bytes) -> dict[tuple[str, BlockClass], KeyFilter]:
    """The filters that file ``name`` holds by table and class; ``CorruptionError`` where their digest is not the ``known`` one."""
    body = unseal(sealed, name, "the filters of a segment")
    if digest(sealed) != known:
        raise CorruptionError(f"{name} is damaged: its filters are not those that its index names.")
    try:
        message = log_pb2.KeyFilters.FromString(body)
        return {(entry.table, BlockClass(getattr(entry, "class"))): KeyFilter.parse(entry.words) for entry in message.filters}
    except (DecodeError, ValueError) as error:
        raise CorruptionError(f"{name} has no readable filters: {error}.") from None


_INDEX_FIELD = log_pb2.Segment.INDEX_FIELD_NUMBER
_BLOCK_TAG, _INDEX_TAG, _OFFSET_TAG, _FILTERS_TAG = b"\x0a", b"\x12", b"\x19", b"\x22"


@dataclass(frozen=True, slots=True)
class BlockPlace:
    """One block of a segment: where it lies and what its index entry says of it."""

    name: str
    offset: int
    length: int
    checksum: int
    header: BlockHeader


@dataclass(frozen=True, slots=True)
class Origin:
    """For which checkpoint, named by its uuid, a segment was written: which task's it is and its number among these.

    The checkpoint also refers to the ``kept`` segments; the rows of those that it ``replaces`` went into the task's.
    """

    checkpoint: bytes
    tasks: int = 1
    task: int = 0
    part: int = 0
    last: bool = False
    kept: tuple[bytes, ...] = ()
    replaces: tuple[bytes, ...] = ()


class SegmentFile(NamedTuple):
    """What a segment says of itself, with a reference to it as its writer's checkpoint would have it, all runs at level 0."""

    reference: SegmentReference
    database: str
    cut: Cut
    tables: tuple[Table, ...]
    origin: Origin | None
    places: tuple[BlockPlace, ...]


class SegmentBuilder:
    """Collects encoded blocks, in the order of table, class and key, into one segment's bytes."""

    def __init__(self) -> None:
        self.size = 0
        self._parts: list[bytes] = []
        self._entries: list[Any] = []
        self._blocks: list[tuple[BlockHeader, Side | None]] = []
        self._hashes: dict[tuple[str, BlockClass], list[Hashes]] = {}
        self._last_keys: dict[tuple[str, BlockClass], bytes] = {}

    def can_hold(self, header: BlockHeader) -> bool:
        """Whether a block can come next: in a segment those of one table and class are in the order of their keys."""
        return self._last_keys.get((header.table, header.block_class), b"") <= header.first_key

    def add(self, block: EncodedBlock) -> None:
        """Append a block."""
        prefix = _BLOCK_TAG + _varint(len(block.data))
        offset = self.size + len(prefix)
        header = header_message(block.header)
        self._entries.append(log_pb2.BlockEntry(offset=offset, length=len(block.data), header=header, checksum=block.checksum))
        self._blocks.append((block.header, block.side))
        self._last_keys[block.header.table, block.header.block_class] = block.header.last_key
        if block.hashes is not None:
            self._hashes.setdefault((block.header.table, block.header.block_class), []).append(block.hashes)
        self._parts += [prefix, block.data]
        self.size = offset + len(block.data)

    def finish(
        self,
        *,
        writer: str,
        database: str,
        uuid: bytes,
        cut: Cut | None = None,
        tables: Sequence[Table] = (),
        origin: Origin | None = None,
    ) -> tuple[bytes, SegmentReference]:
        """The segment's bytes, and what refers to it."""
        index = log_pb2.SegmentIndex(
            format_version=FORMAT_VERSION, writer=writer, database=database, uuid=uuid, entries=self._entries
        )
        for table in tables:
            index.tables.add().MergeFromString(table.definition)
        for name, heads in (cut.heads if cut else {}).items():
            index.cut.writers.add(writer=name, heads=[log_pb2.Head(revision=h.revision, uuid=h.uuid) for h in heads])
        if origin is not None:
            _set_origin(index, origin)
        filters = encode_filters(self._hashes) if self._hashes else b""
        index.filters_digest = digest(filters) if filters else b""
        before = _FILTERS_TAG + _varint(len(filters)) if filters else b""
        sealed = seal(index.SerializeToString(deterministic=True))
        index_offset = self.size + len(before) + len(filters)
        prefix = _index_prefix(len(sealed))
        trailer = _OFFSET_TAG + index_offset.to_bytes(8, "little")
        data = b"".join([*self._parts, before, filters, prefix, sealed, trailer])
        reference = SegmentReference(
            writer=writer,
            uuid=uuid,
            size=len(data),
            index_offset=index_offset + len(prefix),
            index_length=len(sealed),
            index_digest=digest(sealed),
            runs=runs_of(self._blocks),
            filters_offset=self.size + len(before) if filters else 0,
            filters_length=len(filters),
        )
        return data, reference


class Index(NamedTuple):
    """What a segment's index says: the places of its blocks, and the digest of its filters where it has any."""

    places: tuple[BlockPlace, ...]
    filters_digest: bytes


def decode_index(sealed: bytes, name: str, reference: SegmentReference) -> Index:
    """The sealed index of a segment, file ``name``; ``CorruptionError`` where it is not the one referred to."""
    held = shown_segment(reference)
    body = unseal(sealed, name, f"the index of {held}")
    if digest(sealed) != reference.index_digest:
        raise CorruptionError(f"{name} is not the file that was referred to. It should hold {held}.")
    try:
        message = log_pb2.SegmentIndex.FromString(body)
        check_format(message, name)
        places = tuple(BlockPlace(name, e.offset, e.length, e.checksum, header_of(e.header)) for e in message.entries)
        return Index(places, message.filters_digest)
    except (DecodeError, ValueError) as error:
        raise CorruptionError(f"{name} has no readable index: {error}.") from None


def _set_origin(index: Any, origin: Origin) -> None:
    message = index.origin
    message.checkpoint, message.tasks, message.task = origin.checkpoint, origin.tasks, origin.task
    message.part, message.last = origin.part, origin.last
    message.kept.extend(origin.kept)
    index.replaces.extend(origin.replaces)


def _origin_of(index: Any) -> Origin | None:
    if not index.HasField("origin"):
        return None
    of = index.origin
    return Origin(of.checkpoint, of.tasks, of.task, of.part, of.last, tuple(of.kept), tuple(index.replaces))


def index_place(tail: bytes, size: int, name: str) -> int:
    """Where the index field of a segment of that size begins, by its last nine bytes; ``CorruptionError`` where these are none."""
    offset = int.from_bytes(tail[1:], "little")
    if len(tail) != 9 or tail[:1] != _OFFSET_TAG or not 0 <= offset < size - 9:
        raise CorruptionError(f"{name} does not end as a segment does.")
    return offset


def decode_segment_file(data: bytes, offset: int, size: int, name: str) -> SegmentFile:
    """What a segment says of itself, from its index field ``data``, which begins at ``offset`` in the file ``name`` of that size."""
    try:
        ((start, length),) = field_spans(data, _INDEX_FIELD)
        sealed = data[start : start + length]
        message = log_pb2.SegmentIndex.FromString(unseal(sealed, name, "the index of a segment"))
        check_format(message, name)
        places = tuple(BlockPlace(name, e.offset, e.length, e.checksum, header_of(e.header)) for e in message.entries)
        tables = tuple(parse_definition(table.SerializeToString(deterministic=True)) for table in message.tables)
        uuid, cut, origin = uuid_of(message), cut_of(message.cut.writers), _origin_of(message)
    except (DecodeError, ValueError) as error:
        raise CorruptionError(f"{name} has no readable index: {error}.") from None
    rows = [(place.header, None) for place in places if split_side(place.header.table)[1] is None]
    reference = SegmentReference(
        writer=message.writer,
        uuid=uuid,
        size=size,
        index_offset=offset + start,
        index_length=length,
        index_digest=digest(sealed),
        runs=runs_of(rows),
    )
    return SegmentFile(reference, message.database, cut, tables, origin, places)


def check_between(data: bytes, name: str, reference: SegmentReference) -> None:
    """``CorruptionError`` where these are not the bytes that stand between the filters and the index."""
    if data != _index_prefix(reference.index_length):
        raise CorruptionError(f"{name} is damaged between its filters and its index.")


def _index_prefix(length: int) -> bytes:
    return _INDEX_TAG + _varint(length)


def check_sealed_block(data: bytes, place: BlockPlace, table: Table) -> None:
    """``CorruptionError`` where these bytes are not those that the index speaks of; ``table`` is that of the block's rows."""
    if data[-4:] != place.checksum.to_bytes(4, "little"):
        held = held_in_block(place.header, table)
        raise CorruptionError(f"{place.name} is damaged: the checksum of {held} does not match.")


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
