"""Runs as checkpoints and transactions have them: in a segment that they refer to, or, where they are small, in the checkpoint itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import UnsupportedFormat
from ..model.tables import side_table
from ..v1 import log_pb2
from .blocks import block_place
from .bounds import check_inline, check_run, check_segment, digest_of, name_of, uuid_of
from .headers import BlockClass, BlockHeader, BlockPlace, Purpose, Side
from .sealing import field_spans

_BLOCKS_FIELD = log_pb2.InlineRun.BLOCKS_FIELD_NUMBER

_PURPOSES = {0: Purpose.ROWS} | {purpose.value: purpose for purpose in Purpose}
"""Those that are known; unset is as for rows."""


@dataclass(frozen=True, slots=True)
class Run:
    """Sorted blocks of one table and class, in sum; with another ``purpose`` than rows those of a run beside the table's rows."""

    table: str
    block_class: BlockClass
    rows: int
    blocks: int
    first_key: bytes
    last_key: bytes
    oldest: int
    newest: int
    level: int = 0
    purpose: Purpose = Purpose.ROWS
    name: str = ""

    @property
    def block_table(self) -> str:
        """What the headers of the run's blocks have as their table."""
        return self.table if self.purpose is Purpose.ROWS else side_table(self.table, self.name)

    @property
    def is_of_rows(self) -> bool:
        """Whether it holds a table's rows, and lies not beside them."""
        return self.purpose is Purpose.ROWS


@dataclass(frozen=True, slots=True)
class SegmentReference:
    """Where a segment lies and which run it holds, as a checkpoint or a transaction says; if it is ``only_of`` a writer its rows are.

    ``first_sequence`` is added to the sequence numbers of a transaction's events.
    """

    writer: str
    uuid: bytes
    size: int
    index_offset: int
    index_length: int
    index_digest: bytes
    run: Run
    filters_offset: int = 0
    filters_length: int = 0
    first_sequence: int = 0
    only_of: str = field(default="", compare=False)

    @property
    def place(self) -> tuple[str, bytes]:
        """What names the segment: two writers may call theirs the same."""
        return self.writer, self.uuid

    def at_level(self, level: int) -> SegmentReference:
        """The same with its run at a level."""
        return replace(self, run=replace(self.run, level=level))


@dataclass(frozen=True, slots=True)
class InlineRun:
    """A small run that a checkpoint holds itself. Its blocks are at hand; where they lie is known of those that were read from a file."""

    run: Run
    blocks: tuple[BlockPlace, ...]

    @property
    def size(self) -> int:
        """The bytes of its blocks."""
        return sum(place.length for place in self.blocks)

    def only_of(self, writer: str) -> InlineRun:
        """The same, whose rows count if all of them are the writer's."""
        return replace(self, blocks=tuple(replace(place, only_of=writer) for place in self.blocks))

    def at_level(self, level: int) -> InlineRun:
        """The same with its run at a level."""
        return replace(self, run=replace(self.run, level=level))


StoredPart = SegmentReference | InlineRun
"""A run, or a part of one, as a checkpoint has it."""


def run_of(headers: Sequence[BlockHeader], side: Side | None = None) -> Run:
    """The blocks with these headers, at least one and all of one table and class, in sum."""
    table, purpose, name = side or Side(headers[0].table, Purpose.ROWS, "")
    return Run(
        table=table,
        block_class=headers[0].block_class,
        rows=sum(header.rows for header in headers),
        blocks=len(headers),
        first_key=min(header.first_key for header in headers),
        last_key=max(header.last_key for header in headers),
        oldest=min(header.oldest for header in headers),
        newest=max(header.newest for header in headers),
        purpose=purpose,
        name=name,
    )


def segment_message(reference: SegmentReference) -> Any:
    """The reference as a message."""
    return log_pb2.SegmentReference(
        writer=reference.writer,
        uuid=reference.uuid,
        size=reference.size,
        index_offset=reference.index_offset,
        index_length=reference.index_length,
        index_digest=reference.index_digest,
        run=run_message(reference.run),
        filters_offset=reference.filters_offset,
        filters_length=reference.filters_length,
        first_sequence=reference.first_sequence,
    )


def inline_message(inline: InlineRun) -> Any:
    """A run with its blocks as a message."""
    blocks = [place.data for place in inline.blocks if place.data is not None]
    assert len(blocks) == len(inline.blocks)
    return log_pb2.InlineRun(run=run_message(inline.run), blocks=blocks)


def run_message(run: Run) -> Any:
    """The run as a message."""
    return log_pb2.RunSummary(
        table=run.table,
        **{"class": run.block_class},
        rows=run.rows,
        blocks=run.blocks,
        first_key=run.first_key,
        last_key=run.last_key,
        oldest=run.oldest,
        newest=run.newest,
        level=run.level,
        purpose=log_pb2.RunPurpose.Name(run.purpose),
        name=run.name,
    )


def inline_runs(messages: Sequence[Any], holder: bytes, number: int, name: str, start: int = 0) -> Iterator[InlineRun]:
    """The runs in field ``number`` of the message ``holder``, which begins at ``start`` in the file ``name``, with their blocks."""
    for (at, length), message in zip(field_spans(holder, number), messages, strict=True):
        held = holder[at : at + length]
        run, headers = known_run(message.run, name), [log_pb2.Block.FromString(block).header for block in message.blocks]
        check_inline(message.run, headers)
        spans = field_spans(held, _BLOCKS_FIELD)
        blocks = zip(spans, message.blocks, headers, strict=True)
        yield InlineRun(run, tuple(block_place(name, data, start + at + offset, of) for (offset, _), data, of in blocks))


def known_segments(messages: Iterable[Any], name: str) -> tuple[SegmentReference, ...]:
    """The references that file ``name`` holds; ``UnsupportedFormat`` where they speak of what this release does not know."""
    return tuple(_known_segment(message, name) for message in messages)


def _known_segment(message: Any, name: str) -> SegmentReference:
    reference = SegmentReference(
        writer=name_of(message.writer),
        uuid=uuid_of(message),
        size=message.size,
        index_offset=message.index_offset,
        index_length=message.index_length,
        index_digest=digest_of(message.index_digest),
        run=known_run(message.run, name),
        filters_offset=message.filters_offset,
        filters_length=message.filters_length,
        first_sequence=message.first_sequence,
    )
    check_segment(reference)
    return reference


def known_run(message: Any, name: str) -> Run:
    """The run that a message of file ``name`` describes; ``UnsupportedFormat`` where it is of no known class or purpose."""
    try:
        purpose = _PURPOSES.get(message.purpose)
        if purpose is None:
            raise ValueError(f"{message.purpose} is not a known purpose of a run")
        block_class = BlockClass(getattr(message, "class"))
    except ValueError as error:
        raise UnsupportedFormat(
            f"{name} refers to rows that this release does not know: {error}.",
            next_step="Read it with a newer release of bucketcatalog.",
        ) from None
    run = Run(
        table=message.table,
        block_class=block_class,
        rows=message.rows,
        blocks=message.blocks,
        first_key=message.first_key,
        last_key=message.last_key,
        oldest=message.oldest,
        newest=message.newest,
        level=message.level,
        purpose=purpose,
        name=message.name,
    )
    check_run(run)
    return run
