"""Segments: files of blocks with an index behind them, read whole or one block at a time.

The file is one protobuf message byte for byte: ``blocks`` fields, the ``filters`` field where there are any, the ``index`` field, and last,
always nine bytes, ``index_offset``. A checkpoint or transaction that refers to a segment names its index's place and digest, and the index
names the checksum of each block and of the filters, so one digest in the referring file fixes every byte that is read.

Its filter over keys is a sealed message before the index.
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
from ..model.tables import Table
from ..v1 import log_pb2
from .blocks import BlockClass, BlockHeader, BlockPlace, EncodedBlock, header_message, header_of
from .definitions import parse_definition
from .held import held_in_block, shown_segment
from .records import cut_of, uuid_of
from .runs import InlineRun, Run, SegmentReference, inline_message, inline_runs, known_run, run_message, run_of
from .sealing import FORMAT_VERSION, check_format, digest, field_spans, seal, unseal


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
_ORIGIN_FIELD = log_pb2.SegmentIndex.ORIGIN_FIELD_NUMBER
_RUNS_FIELD = log_pb2.SegmentOrigin.RUNS_FIELD_NUMBER
_BLOCK_TAG, _INDEX_TAG, _OFFSET_TAG, _FILTERS_TAG = b"\x0a", b"\x12", b"\x19", b"\x22"


@dataclass(frozen=True, slots=True)
class Origin:
    """For which checkpoint, named by its uuid, a segment was written: which task's it is and its number among these.

    The checkpoint also refers to the ``kept`` segments; the rows of those that it ``replaces`` went into the task's. The ``last`` one has
    once more the ``runs`` that the checkpoint holds itself, and the definitions of their ``tables``.
    """

    checkpoint: bytes
    tasks: int = 1
    task: int = 0
    part: int = 0
    last: bool = False
    kept: tuple[bytes, ...] = ()
    replaces: tuple[bytes, ...] = ()
    runs: tuple[InlineRun, ...] = ()
    tables: tuple[Table, ...] = ()


class SegmentFile(NamedTuple):
    """What a segment says of itself, with a reference to it as its writer's checkpoint would have it, its run at level 0."""

    reference: SegmentReference
    database: str
    cut: Cut
    tables: tuple[Table, ...]
    origin: Origin | None
    places: tuple[BlockPlace, ...]


class RunBuilder:
    """Collects the encoded blocks of one run of a table, in the order of their keys: for a segment, or for the checkpoint itself."""

    def __init__(self, table: Table) -> None:
        self.size = 0
        self._table = table
        self._blocks: list[EncodedBlock] = []

    def can_hold(self, header: BlockHeader) -> bool:
        """Whether a block can come next: those of a run are in the order of their keys."""
        return not self._blocks or self._blocks[-1].header.last_key <= header.first_key

    def add(self, block: EncodedBlock) -> None:
        """Append a block."""
        self._blocks.append(block)
        self.size += len(block.data)

    @property
    def _run(self) -> Run:
        return run_of([block.header for block in self._blocks], self._blocks[0].side)

    def inline(self) -> InlineRun:
        """The run as a checkpoint holds it itself."""
        places = (BlockPlace("", 0, len(block.data), block.checksum, block.header, block.data) for block in self._blocks)
        return InlineRun(self._run, tuple(places))

    def segment(
        self, *, writer: str, database: str, uuid: bytes, cut: Cut | None = None, origin: Origin | None = None
    ) -> tuple[bytes, SegmentReference]:
        """A segment's bytes, and what refers to it."""
        run = self._run
        index = log_pb2.SegmentIndex(format_version=FORMAT_VERSION, writer=writer, database=database, uuid=uuid)
        parts: list[bytes] = []
        offset = 0
        for block in self._blocks:
            prefix = _BLOCK_TAG + _varint(len(block.data))
            offset += len(prefix)
            header = header_message(block.header)
            index.entries.add(offset=offset, length=len(block.data), header=header, checksum=block.checksum)
            parts += [prefix, block.data]
            offset += len(block.data)
        index.run.CopyFrom(run_message(run))
        tables = {table.name: table for table in (self._table, *(origin.tables if origin is not None else ()))}
        for _, table in sorted(tables.items()):
            index.tables.add().MergeFromString(table.definition)
        for name, heads in (cut.heads if cut else {}).items():
            index.cut.writers.add(writer=name, heads=[log_pb2.Head(revision=h.revision, uuid=h.uuid) for h in heads])
        if origin is not None:
            _set_origin(index, origin)
        hashes = [block.hashes for block in self._blocks if block.hashes is not None]
        filters = encode_filters({(run.block_table, run.block_class): hashes}) if hashes else b""
        index.filters_digest = digest(filters) if filters else b""
        before = _FILTERS_TAG + _varint(len(filters)) if filters else b""
        sealed = seal(index.SerializeToString(deterministic=True))
        index_offset = offset + len(before) + len(filters)
        prefix = _index_prefix(len(sealed))
        trailer = _OFFSET_TAG + index_offset.to_bytes(8, "little")
        data = b"".join([*parts, before, filters, prefix, sealed, trailer])
        reference = SegmentReference(
            writer=writer,
            uuid=uuid,
            size=len(data),
            index_offset=index_offset + len(prefix),
            index_length=len(sealed),
            index_digest=digest(sealed),
            run=run,
            filters_offset=offset + len(before) if filters else 0,
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
    message.runs.extend(map(inline_message, origin.runs))
    index.replaces.extend(origin.replaces)


def _origin_of(index: Any, tables: tuple[Table, ...], body: bytes, start: int, name: str) -> Origin | None:
    """The origin in an index that defines these tables, and whose bytes lie at ``start`` in the file ``name``."""
    if not index.HasField("origin"):
        return None
    of = index.origin
    ((at, length),) = field_spans(body, _ORIGIN_FIELD)
    runs = inline_runs(of.runs, body[at : at + length], _RUNS_FIELD, name, start + at)
    return Origin(of.checkpoint, of.tasks, of.task, of.part, of.last, tuple(of.kept), tuple(index.replaces), tuple(runs), tables)


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
        body = unseal(sealed, name, "the index of a segment")
        message = log_pb2.SegmentIndex.FromString(body)
        check_format(message, name)
        places = tuple(BlockPlace(name, e.offset, e.length, e.checksum, header_of(e.header)) for e in message.entries)
        tables = tuple(parse_definition(table.SerializeToString(deterministic=True)) for table in message.tables)
        uuid, cut, origin = uuid_of(message), cut_of(message.cut.writers), _origin_of(message, tables, body, offset + start, name)
        run = known_run(message.run, name)
    except (DecodeError, ValueError) as error:
        raise CorruptionError(f"{name} has no readable index: {error}.") from None
    reference = SegmentReference(
        writer=message.writer,
        uuid=uuid,
        size=size,
        index_offset=offset + start,
        index_length=length,
        index_digest=digest(sealed),
        run=run,
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
