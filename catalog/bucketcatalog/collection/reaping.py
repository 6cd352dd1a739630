"""Reaping: rows whose parent has ended are ended, each by a DELETE that names its version.

A row that has been overwritten meanwhile is not touched, for its version has ended; reaping it twice ends nothing more. A parent must have
ended a grace period ago, and everything that could still show it to be live must have arrived.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..merge import Part
from ..references import ids
from ..render import output_schema, render
from ..snapshot import Snapshot
from ..tables import Table
from ..writer import Writer
from .boundary import next_boundary
from .candidates import VERSION, batches
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


def reap(look: Callable[[], Snapshot], writer: Writer | None, grace: int) -> Reaped:
    """End the rows of every table whose parents ended at least ``grace`` microseconds ago; without a writer, count them."""
    snapshot = look()
    limit = next_boundary(snapshot.view, grace)
    ended: dict[str, pa.Array] = {}
    rows = {}
    for table in children_of(snapshot):
        assert table.parent is not None
        if table.parent.table not in ended:
            ended[table.parent.table] = parent_ids(snapshot, table.parent.table, limit).ended
        rows[table.name] = 0
        for some in orphaned(snapshot, table, ended[table.parent.table]):
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
    assert table.parent is not None
    column = table.by_name[table.parent.column]
    schema = output_schema(table, columns=[*table.key, VERSION])
    if not len(ended):
        return
    for facts in states(snapshot.base(table.name), Part.LIVE, [column, *table.key_columns]):
        mask = np.asarray(pc.is_in(ids(facts, column), value_set=ended))
        if mask.any():
            yield from batches(render(facts.filter(pa.array(mask)), table, schema), BATCH)
