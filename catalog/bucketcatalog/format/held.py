"""What a file or a part of one holds, for whoever has to know what is lost with it: rows of a table by their keys, or transactions.

Errors, findings and losses say it in the same words.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from ..model.cuts import Head
from ..model.keys import shown_key
from ..model.tables import Table
from ..model.uuids import uuid_text
from .headers import BlockHeader
from .runs import SegmentReference


@dataclass(frozen=True, slots=True)
class Held:
    """Rows of a ``table`` with encoded keys from ``first_key`` to ``last_key``, or transactions of a ``writer`` by revision.

    ``shown`` are the two keys for people, where their table is known.
    """

    table: str | None = None
    rows: int = 0
    first_key: bytes = b""
    last_key: bytes = b""
    writer: str | None = None
    first_revision: int = 0
    last_revision: int = 0
    shown: tuple[str, str] | None = field(default=None, compare=False)

    def shown_by(self, table: Table) -> Held:
        """The same with its keys as the values of their columns; ``table`` is that of its rows."""
        return replace(self, shown=(shown_key(table, self.first_key), shown_key(table, self.last_key)))

    def __str__(self) -> str:
        if self.table is not None:
            first, last = self.shown or (self.first_key.hex(), self.last_key.hex())
            keys = f", keys ({first}) to ({last})" if self.rows else ""
            return f"{self.rows} {'row' if self.rows == 1 else 'rows'} of {self.table}{keys}"
        if self.first_revision == self.last_revision:
            return f"revision {self.last_revision} of {self.writer}"
        return f"revisions {self.first_revision} to {self.last_revision} of {self.writer}"


def held_in_block(header: BlockHeader, table: Table | None = None) -> Held:
    """What a block holds, as its index says; keys are shown where the table of its rows is given."""
    held = Held(header.table, header.rows, header.first_key, header.last_key)
    return held if table is None else held.shown_by(table)


def held_in_segment(reference: SegmentReference) -> tuple[Held, ...]:
    """What a segment holds, as whoever refers to it says."""
    run = reference.run
    return (Held(run.table, run.rows, run.first_key, run.last_key),) if run.is_of_rows else ()


def shown_segment(reference: SegmentReference) -> str:
    """A segment and what it holds, for messages about its loss."""
    run = reference.run
    what = "rows" if run.is_of_rows else run.purpose.name.lower()
    return (
        f"segment {uuid_text(reference.uuid)} with {run.rows} {what} of {run.table} ({run.name or run.block_class.name.lower()})"
    )


def revision(writer: str, last: int, first: int | None = None) -> Held:
    """The transactions of a writer from one revision to another."""
    return Held(writer=writer, first_revision=last if first is None else first, last_revision=last)


_SHOWN = 4


def shown_heads(heads: Collection[Head]) -> str:
    """Some transactions of one timeline, as the end of a sentence: the first few of them where they are many."""
    few = sorted(heads)[:_SHOWN] if len(heads) > _SHOWN + 1 else sorted(heads)
    texts = [f"revision {head.revision} ({uuid_text(head.uuid)})" for head in few]
    texts += [f"{len(heads) - len(few)} others"] if len(few) < len(heads) else []
    return " and ".join(texts)
