"""Segments: Parquet files of one run, with an index before the footer, read whole or a row group's columns at a time.

Up to its footer the file is what any Parquet writer makes of the run's rows. Between the last row group and the footer, where nobody else
looks, stand the sealed filter over its keys, if there is one, the sealed index, and the index's length. A checkpoint or transaction that
refers to a segment names its index's place and digest; the index names the checksum of each column chunk and the digests of the filters
and the footer. So one digest in the referring file fixes every byte that is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .. import limits
from ..errors import CorruptionError
from ..model.arrays import one_chunk
from ..model.bloom import Hashes, KeyFilter, hash_keys
from ..model.cuts import Cut
from ..model.facts import Facts, concat
from ..model.keys import encode_keys, key_at
from ..model.tables import Table
from ..v1 import log_pb2
from .blocks import block_header, encode_blocks
from .bounds import UNDECODABLE, name_of, uuid_of, why
from .columns import stored_rows
from .definitions import definitions_of
from .encoding import RowGroupWriter
from .footers import MAGIC, Footer, check_footer, footer_digest, footer_start
from .headers import BlockClass, BlockHeader, BlockPlace, Side, header_message, header_of
from .held import shown_segment
from .parquet import RowGroup
from .records import cut_of
from .runs import InlineRun, Run, SegmentReference, inline_message, inline_runs, known_run, run_message, run_of
from .sealing import FORMAT_VERSION, LENGTH_BYTES, check_format, digest, field_spans, seal, unseal
from .sizes import group_bytes, parts_of, refuse_large_index, refuse_large_rows

ROW_GROUP_ROWS = 16_384
_FULL = limits.CHUNKS // 2
"""Chunks with which a segment is full: what is added next may make as many again."""
_MOST_RAW = 1 << 30
"""Of the rows of a segment in memory: however well they compress, its index and footer stay small."""


@dataclass(frozen=True, slots=True)
class RunRows:
    """Some rows of a run of a ``table``, in the order of their keys. Those of a ``side``, beside the table's rows, have a ``shape``."""

    facts: Facts
    table: Table
    block_class: BlockClass
    side: Side | None = None
    shape: Table | None = None

    @property
    def of(self) -> Table:
        """The table that the rows themselves are of."""
        return self.shape or self.table


def side_rows(rows: Facts, table: Table, shape: Table, side: Side, block_class: BlockClass = BlockClass.LIVE) -> RunRows:
    """The rows of a side run, put in the order of the keys of their shape."""
    ordered = rows.take(pc.sort_indices(one_chunk(encode_keys(shape, rows.rows))))
    return RunRows(ordered, table, block_class, side, shape)


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
    except UNDECODABLE as error:
        raise CorruptionError(f"{name} has no readable filters: {why(error)}.") from None


_ORIGIN_FIELD = log_pb2.SegmentIndex.ORIGIN_FIELD_NUMBER
_RUNS_FIELD = log_pb2.SegmentOrigin.RUNS_FIELD_NUMBER


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
    """Collects one run of a table, in the order of its keys: for a segment, or for the checkpoint itself.

    Rows wait until they are a row group, now ``rows_waiting``; until then nothing is encoded, and the run can be inline.
    """

    def __init__(self, first: RunRows) -> None:
        self._run_table = first.table
        self._table = first.of
        self._class = first.block_class
        self._side = first.side
        self._waiting: list[Facts] = []
        self._bytes = 0
        self._raw = 0
        self.rows_waiting = 0
        self._last_key = b""
        self._writer: RowGroupWriter | None = None
        self._headers: list[BlockHeader] = []
        self._hashes: list[Hashes] = []
        self.add(first.facts)

    @property
    def size(self) -> int:
        """The bytes that it comes to so far, those of rows that wait as they are in memory."""
        return self._bytes if self._writer is None else self._writer.size + self._bytes

    def add(self, facts: Facts) -> bool:
        """Append facts; or else, where they begin before the last ones end, or nothing more should be added, leave them and say False."""
        if self._writer is not None and (len(self._headers) * self._writer.chunks >= _FULL or self._raw >= _MOST_RAW):
            return False
        first, last = (key_at(self._table, facts.rows, row) for row in (0, len(facts) - 1))
        if first < self._last_key:
            return False
        self._last_key = last
        self._waiting.append(facts)
        self._bytes += int(facts.rows.nbytes)
        self._raw += int(facts.rows.nbytes)
        self.rows_waiting += len(facts)
        if self.rows_waiting >= ROW_GROUP_ROWS:
            self._write(self.rows_waiting - self.rows_waiting % ROW_GROUP_ROWS)
        return True

    def _write(self, count: int) -> None:
        """Encode the first ``count`` rows that wait as row groups."""
        waiting = concat(self._waiting)
        for start in range(0, count, ROW_GROUP_ROWS):
            group = waiting.slice(start, min(start + ROW_GROUP_ROWS, count))
            refuse_large_rows(group, self._table, self._class)
            for part in parts_of(group, self._table, group_bytes(self._table)):
                self._encode(part)
        self.rows_waiting -= count
        # A slice would keep all that it was cut from, a take keeps its rows alone.
        self._waiting = [waiting.take(pa.array(np.arange(count, len(waiting))))] if self.rows_waiting else []
        self._bytes = sum(int(facts.rows.nbytes) for facts in self._waiting)

    def _encode(self, facts: Facts) -> None:
        rows = stored_rows(facts, self._table, self._class)
        if self._writer is None:
            self._writer = RowGroupWriter(rows, self._table.key)
        self._writer.write(rows)
        self._headers.append(block_header(facts, self._table, self._class))
        if self._class is not BlockClass.EVENTS and self._side is None:
            self._hashes.append(hash_keys(one_chunk(encode_keys(self._table, facts.rows))))

    def inline(self, most: int) -> InlineRun | None:
        """The run as a checkpoint holds it itself; None where it would have more than so many bytes."""
        if self._writer is not None:
            return None
        blocks = list(encode_blocks(concat(self._waiting), self._table, self._class))
        places = tuple(BlockPlace("", 0, len(block.data), block.checksum, block.header, block.data) for block in blocks)
        inline = InlineRun(run_of([block.header for block in blocks], self._side), places)
        return inline if inline.size <= most else None

    def segment(
        self, *, writer: str, database: str, uuid: bytes, cut: Cut | None = None, origin: Origin | None = None
    ) -> tuple[bytes, SegmentReference]:
        """A segment's bytes, and what refers to it."""
        if self.rows_waiting:
            self._write(self.rows_waiting)
        assert self._writer is not None
        encoded, run = self._writer.finish(), run_of(self._headers, self._side)
        index = log_pb2.SegmentIndex(format_version=FORMAT_VERSION, writer=writer, database=database, uuid=uuid)
        for header, group in zip(self._headers, encoded.groups, strict=True):
            lengths, checksums = zip(*group.chunks, strict=True)
            entry = index.entries.add(offset=group.offset, header=header_message(header), lengths=lengths, checksums=checksums)
            entry.statistics.CopyFrom(group.statistics)
        index.run.CopyFrom(run_message(run))
        tables = {table.name: table for table in (self._run_table, *(origin.tables if origin is not None else ()))}
        for _, table in sorted(tables.items()):
            index.tables.add().MergeFromString(table.definition)
        for name, heads in (cut.heads if cut else {}).items():
            index.cut.writers.add(writer=name, heads=[log_pb2.Head(revision=h.revision, uuid=h.uuid) for h in heads])
        if origin is not None:
            _set_origin(index, origin)
        filters = encode_filters({(run.block_table, run.block_class): self._hashes}) if self._hashes else b""
        index.filters_digest = digest(filters) if filters else b""
        index.footer_digest = footer_digest(encoded.footer)
        sealed = seal(index.SerializeToString(deterministic=True))
        refuse_large_index(self._run_table.name, sealed, encoded.footer)
        start = encoded.body.tell()
        encoded.body.writelines([filters, sealed, len(sealed).to_bytes(LENGTH_BYTES, "little"), encoded.footer])
        data = encoded.body.getvalue()
        reference = SegmentReference(
            writer=writer,
            uuid=uuid,
            size=len(data),
            index_offset=start + len(filters),
            index_length=len(sealed),
            index_digest=digest(sealed),
            run=run,
            filters_offset=start if filters else 0,
            filters_length=len(filters),
        )
        return data, reference


class Index(NamedTuple):
    """What a segment's index says: the places of its blocks, which are its row groups, and the digest of its filters if it has any."""

    places: tuple[BlockPlace, ...]
    filters_digest: bytes


def decode_end(data: bytes, name: str, reference: SegmentReference) -> Index:
    """The index of a segment, file ``name``, from all that is in there from the index on.

    ``CorruptionError`` where this is not what the reference says.
    """
    sealed, footer = data[: reference.index_length], data[reference.index_length + LENGTH_BYTES :]
    held = shown_segment(reference)
    _check_length(sealed, name)
    body = unseal(sealed, name, f"the index of {held}")
    if digest(sealed) != reference.index_digest:
        raise CorruptionError(f"{name} is not the file that was referred to. It should hold {held}.")
    try:
        message = log_pb2.SegmentIndex.FromString(body)
        check_format(message, name)
        start = reference.index_offset + reference.index_length + LENGTH_BYTES
        places = tuple(replace(place, only_of=reference.only_of) for place in _places(message, footer, start, name))
        _check_run(reference, known_run(message.run, name), places)
        return Index(places, message.filters_digest)
    except UNDECODABLE as error:
        raise CorruptionError(f"{name} has no readable index: {why(error)}.") from None


def _check_run(reference: SegmentReference, run: Run, places: Sequence[BlockPlace]) -> None:
    """``ValueError`` where the blocks do not come to the run that the index tells, or whoever refers to it tells another."""
    if not places or run != replace(reference.run, level=0):
        raise ValueError("it holds another run than the one that it was referred to for")
    headers, side = [place.header for place in places], Side(run.table, run.purpose, run.name)
    if run_of(headers, side) != run or any(
        (header.table, header.block_class) != (run.block_table, run.block_class) for header in headers
    ):
        raise ValueError("its blocks do not come to the run that it tells")


def _check_length(sealed: bytes, name: str) -> None:
    if len(sealed) > limits.INDEX_BYTES:
        raise CorruptionError(
            f"{name} has an index of {len(sealed)} bytes: no segment has one of more than {limits.INDEX_BYTES}."
        )


def _places(index: Any, footer: bytes, start: int, name: str) -> tuple[BlockPlace, ...]:
    """Where an index says that its row groups lie; ``footer`` begins at ``start``. ``ValueError`` where it contradicts itself."""
    check_footer(footer, index.footer_digest, name)
    of = Footer(name, start, len(footer), index.footer_digest, footer)
    if len(index.entries) > limits.ROW_GROUPS or sum(len(entry.lengths) for entry in index.entries) > limits.CHUNKS:
        raise ValueError(f"its {len(index.entries)} row groups have more chunks than a segment has")
    places = []
    for number, entry in enumerate(index.entries):
        if len(entry.lengths) != len(entry.checksums):
            raise ValueError(f"{len(entry.lengths)} chunks have {len(entry.checksums)} checksums")
        stop = entry.offset + sum(entry.lengths)
        if entry.offset < len(MAGIC) or stop > start or stop - entry.offset > limits.GROUP_BYTES:
            raise ValueError(f"row group {number} is said to lie from {entry.offset} to {stop}")
        group = RowGroup.of(number, entry, of)
        places.append(BlockPlace(name, entry.offset, stop - entry.offset, 0, header_of(entry.header), row_group=group))
    return tuple(places)


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


def check_end(size: int, name: str) -> None:
    """``CorruptionError`` where what a segment has from its index on is more than can be."""
    if not 0 < size <= limits.INDEX_BYTES + LENGTH_BYTES + limits.FOOTER_BYTES:
        raise CorruptionError(f"{name} would have {size} bytes of index and footer: no segment has so many.")


def index_span(before: bytes, footer: int, name: str) -> tuple[int, int]:
    """Where the index lies, from and up to, in a file whose footer begins at that offset, by the four bytes before that.

    ``CorruptionError`` where there is none.
    """
    stop = footer - LENGTH_BYTES
    length = int.from_bytes(before, "little")
    if len(before) != LENGTH_BYTES or not 0 < length < stop:
        raise CorruptionError(f"{name} has no index before its footer: it is no segment.")
    return stop - length, stop


def decode_segment_file(data: bytes, offset: int, size: int, name: str) -> SegmentFile:
    """What a segment says of itself, from its index on, which begins at ``offset`` in the file ``name`` of that size."""
    try:
        footer = footer_start(data[-8:], size, name) - offset
        sealed = data[: footer - LENGTH_BYTES]
        _check_length(sealed, name)
        body = unseal(sealed, name, "the index of a segment")
        message = log_pb2.SegmentIndex.FromString(body)
        check_format(message, name)
        places = _places(message, data[footer:], offset + footer, name)
        tables = definitions_of(message.tables)
        uuid, cut, origin = uuid_of(message), cut_of(message.cut.writers), _origin_of(message, tables, body, offset, name)
        run, writer, database = known_run(message.run, name), name_of(message.writer), name_of(message.database)
    except UNDECODABLE as error:
        raise CorruptionError(f"{name} has no readable index: {why(error)}.") from None
    reference = SegmentReference(
        writer=writer,
        uuid=uuid,
        size=size,
        index_offset=offset,
        index_length=len(sealed),
        index_digest=digest(sealed),
        run=run,
    )
    return SegmentFile(reference, database, cut, tables, origin, places)
