"""What a file or a part of one holds, for whoever has to be told that it is lost."""

from __future__ import annotations

from dataclasses import dataclass

from .codec.segments import BlockPlace, SegmentReference


@dataclass(frozen=True, slots=True)
class Held:
    """Rows of a ``table`` with encoded keys from ``first_key`` to ``last_key``, or transactions of a ``writer`` by revision."""

    table: str | None = None
    rows: int = 0
    first_key: bytes = b""
    last_key: bytes = b""
    writer: str | None = None
    first_revision: int = 0
    last_revision: int = 0

    def __str__(self) -> str:
        if self.table is not None:
            keys = f", keys {self.first_key!r} to {self.last_key!r}" if self.rows else ""
            return f"{self.rows} rows of {self.table}{keys}"
        if self.first_revision == self.last_revision:
            return f"revision {self.last_revision} of {self.writer}"
        return f"revisions {self.first_revision} to {self.last_revision} of {self.writer}"


def held_in_block(place: BlockPlace) -> Held:
    """What a block holds, as its index says."""
    header = place.header
    return Held(header.table, header.rows, header.first_key, header.last_key)


def held_in_segment(reference: SegmentReference) -> tuple[Held, ...]:
    """What a segment holds, as whoever refers to it says."""
    return tuple(Held(run.table, run.rows, run.first_key, run.last_key) for run in reference.runs)


def revision(writer: str, last: int, first: int | None = None) -> Held:
    """The transactions of a writer from one revision to another."""
    return Held(writer=writer, first_revision=last if first is None else first, last_revision=last)
