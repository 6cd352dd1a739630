"""References to segments: where one lies and which runs it holds, as checkpoints and transactions say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..errors import UnsupportedFormat
from ..model.tables import side_table
from ..v1 import log_pb2
from .blocks import BlockClass, BlockHeader, Purpose, Side
from .records import uuid_of


@dataclass(frozen=True, slots=True)
class Run:
    """The blocks of one table and class in a segment, in sum; or with another ``purpose`` those of a run beside the table's rows."""

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
    filters_offset: int = 0
    filters_length: int = 0

    @property
    def rows_runs(self) -> tuple[Run, ...]:
        """The runs of rows, without those that lie beside them."""
        return tuple(run for run in self.runs if run.purpose is Purpose.ROWS)

    def with_levels(self, levels: Mapping[str, int]) -> SegmentReference:
        """The same with each table's runs at a level."""
        return replace(self, runs=tuple(replace(run, level=levels[run.table]) for run in self.runs))

    def below(self, levels: Mapping[str, int]) -> SegmentReference:
        """The same with those runs only that lie below a table's level; of tables without one all."""
        return replace(self, runs=tuple(run for run in self.runs if run.level < levels.get(run.table, run.level + 1)))


def runs_of(blocks: Iterable[tuple[BlockHeader, Side | None]]) -> tuple[Run, ...]:
    """The blocks with these headers in sum, by table and class."""
    runs: dict[tuple[str, BlockClass], Run] = {}
    for header, side in blocks:
        key = (header.table, header.block_class)
        run = runs.get(key)
        if run is None:
            table, purpose, name = side or Side(header.table, Purpose.ROWS, "")
            run = Run(
                table=table,
                block_class=header.block_class,
                rows=0,
                blocks=0,
                first_key=header.first_key,
                last_key=header.last_key,
                oldest=header.oldest,
                newest=header.newest,
                purpose=purpose,
                name=name,
            )
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


def segment_message(reference: SegmentReference) -> Any:
    """The reference as a message."""
    message = log_pb2.SegmentReference(
        writer=reference.writer,
        uuid=reference.uuid,
        size=reference.size,
        index_offset=reference.index_offset,
        index_length=reference.index_length,
        index_digest=reference.index_digest,
        filters_offset=reference.filters_offset,
        filters_length=reference.filters_length,
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
            purpose=run.purpose,
            name=run.name,
        )
    return message


def known_segments(messages: Any, name: str) -> tuple[SegmentReference, ...]:
    """The references that file ``name`` holds; ``UnsupportedFormat`` where they speak of what this release does not know."""
    for message in messages:
        uuid_of(message)
    try:
        return tuple(segment_of(message) for message in messages)
    except ValueError as error:
        raise UnsupportedFormat(
            f"{name} refers to rows that this release does not know: {error}.",
            next_step="Read it with a newer release of bucketcatalog.",
        ) from None


def segment_of(message: Any) -> SegmentReference:
    """The reference that a message holds; ``ValueError`` where it speaks of runs of no known class or purpose."""
    return SegmentReference(
        writer=message.writer,
        uuid=message.uuid,
        size=message.size,
        index_offset=message.index_offset,
        index_length=message.index_length,
        index_digest=message.index_digest,
        runs=tuple(map(_run_of, message.runs)),
        filters_offset=message.filters_offset,
        filters_length=message.filters_length,
    )


def _run_of(message: Any) -> Run:
    purpose = message.purpose or Purpose.ROWS
    if purpose not in set(Purpose):
        raise ValueError(f"{purpose} is not a known purpose of a run")
    return Run(
        table=message.table,
        block_class=BlockClass(getattr(message, "class")),
        rows=message.rows,
        blocks=message.blocks,
        first_key=message.first_key,
        last_key=message.last_key,
        oldest=message.oldest,
        newest=message.newest,
        level=message.level,
        purpose=Purpose(purpose),
        name=message.name,
    )
