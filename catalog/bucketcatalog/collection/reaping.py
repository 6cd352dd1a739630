"""Reaping: rows whose parent has ended are ended, each by a DELETE that names its version.

A row that has been overwritten meanwhile is not touched, for its version has ended; reaping it twice ends nothing more. A parent must have
ended a grace period ago, and everything that could still show it to be live must have arrived.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from ..facts import Facts
from ..merge import Part
from ..references import ids
from ..render import output_schema, render
from ..snapshot import Snapshot
from ..tables import Table
from ..writer import Writer
from .boundary import next_boundary
from .candidates import VERSION, batches, owner_column
from .parents import parent_ids, states

BATCH = 1 << 16
"""Versions that a transaction ends."""
OPERATION = "reap"


@dataclass(frozen=True, slots=True)
class Reaped:
    """What reaping did, or in a dry run would do: rows that were ended, by table, and parents that these belonged to or that own none."""

    database: str
    dry_run: bool
    rows: dict[str, int]
    parents: int


Find: TypeAlias = Callable[[Snapshot, Table, pa.Array], Iterable[pa.Table]]
"""Finds the keys and versions of a table's live rows whose parents have these ids, so many at a time."""


def reap(look: Callable[[], Snapshot], writer: Writer | None, grace: int, find: Find | None = None) -> Reaped:
    """End the rows of every table whose parents ended at least ``grace`` microseconds ago; without a writer, count them.

    ``find`` finds them, by default in this process.
    """
    snapshot = look()
    limit = next_boundary(snapshot.view, grace)
    ended: dict[str, pa.Array] = {}
    rows = {}
    for table in children_of(snapshot):
        assert table.parent is not None
        if table.parent.table not in ended:
            ended[table.parent.table] = parent_ids(snapshot, table.parent.table, limit).ended
        rows[table.name] = 0
        for some in (find or orphaned)(snapshot, table, ended[table.parent.table]):
            rows[table.name] += len(some)
            if writer is not None:
                with writer.transaction(operation=OPERATION) as tx:
                    tx.delete(table.name, some)
    return Reaped(snapshot.database, writer is None, rows, sum(len(found) for found in ended.values()))


def children_of(snapshot: Snapshot) -> list[Table]:
    """The tables whose rows have parents."""
    return [table for table in snapshot.definitions.usable() if table.parent is not None]


def orphaned(snapshot: Snapshot, table: Table, ended: pa.Array) -> Iterator[pa.Table]:
    """Keys and versions of the table's live rows whose parent is one of these."""
    if len(ended):
        for facts in states(snapshot.base(table.name), Part.LIVE, [owner_column(table), *table.key_columns]):
            found = orphaned_in(facts, table, ended)
            yield from batches(found, BATCH)


def orphaned_in(facts: Facts, table: Table, ended: pa.Array) -> pa.Table:
    """Keys and versions of the live rows whose parent is one of these."""
    mask = pc.is_in(ids(facts, owner_column(table)), value_set=ended)
    return render(facts.filter(mask), table, output_schema(table, columns=[*table.key, VERSION]))
