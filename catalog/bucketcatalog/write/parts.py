"""Rows of names that are no tables: written by whoever declares such names, as parts, and told of in one commit.

A system may keep rows by itself, such as in files below a writer's ``data/``, and only what is known of them in the catalog's tables. Such
rows are written as parts, each by itself and wherever they are; what came of all of them becomes rows of its tables, in one transaction.
A task that is done twice writes two parts: the one that is in no commit is data that nothing names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from ..errors import UnknownTable
from ..model.paths import data_prefix
from ..query.snapshot import Snapshot
from ..store.base import Store
from .draft import Draft
from .intake import Rows, as_arrow
from .transaction import WriteTransaction


@dataclass(frozen=True)
class WritePlace:
    """Where rows are written: the catalog's store, and for which writer of which database. ``look`` gives a snapshot of now."""

    store: Store
    writer: str
    database: str
    look: Callable[[], Snapshot]

    @property
    def prefix(self) -> str:
        """Below which the writer's data lies."""
        return data_prefix(self.writer, self.database)


class PartTask(Protocol):
    """How one part is written, by one process, wherever it runs: picklable."""

    def write(self, store: Store, rows: Iterable[pa.RecordBatch]) -> Any:
        """Write the rows under a name that no other part has; returns what a commit has to know of them, picklable."""
        ...


@dataclass(frozen=True)
class Parts:
    """A write that has begun: the task that writes its parts, and what puts what came of them into a transaction."""

    task: PartTask
    finish: Callable[[WriteTransaction, Sequence[Any]], None]


class Writes(Protocol):
    """Who takes rows for names that are no tables."""

    def takes(self, name: str) -> bool:
        """Whether it is one of these names."""
        ...

    def begin(self, place: WritePlace, name: str, schema: pa.Schema, **options: Any) -> Parts:
        """Begin to write rows of this schema; ``InvalidRows`` where rows cannot be of it, ``InvalidOption`` for an option."""
        ...


@dataclass(frozen=True)
class Taken:
    """A name that is no table, and who takes rows for it from a writer; ``now`` is the store's time in microseconds."""

    name: str
    writes: Writes
    place: WritePlace
    now: Callable[[], int]

    def put(self, rows: Rows, *, into: WriteTransaction, draft: Draft) -> None:
        """Write rows as one part, and put what is to be said of it into the transaction; nothing for no rows."""
        table = as_arrow(self.name, rows)
        if len(table):
            draft.writes_from(self.now())
            parts = self.writes.begin(self.place, self.name, table.schema)
            parts.finish(into, [parts.task.write(self.place.store, table.to_batches())])

    def refuse(self, what: str) -> None:
        """``UnknownTable`` for what can be done with rows of tables alone: ``what`` a transaction cannot do, such as "update them"."""
        raise UnknownTable(
            f"{self.name!r} is no table of the catalog: its rows are put, and a transaction cannot {what}.",
            next_step="Use the operations of the system that keeps them.",
        )
