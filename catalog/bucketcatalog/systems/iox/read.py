"""Reads of data tables: ``data.NAME`` wherever a table is read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from ...query.reads import BATCH_ROWS, Read, ReadTask
from ...query.snapshot import Snapshot
from .files import SCHEMAS
from .live import Live
from .names import BEGINS, table_of
from .plan import available_of, plan
from .schemas import OnConflict, on_conflict

_TASK_ROWS = 1 << 20


class DataRead(Read):
    """The rows of a data table at a snapshot's cut: planned from the catalog alone, with no file opened."""

    def __init__(
        self, snapshot: Snapshot, live: Live, columns: Sequence[str] | None, where: Mapping[str, Any], on: OnConflict = "cast"
    ) -> None:
        self._snapshot = snapshot
        self.plan = plan(snapshot, live, columns, where, on)

    @property
    def schema(self) -> pa.Schema:
        """The columns that were asked for."""
        return self.plan.asked.schema

    @property
    def available(self) -> pa.Schema:
        """The columns of all files together, and what every data table shows on request."""
        return available_of(self.plan.asked.columns)

    def tasks(self, most_rows: int) -> list[ReadTask]:
        """Files, and parts of large ones."""
        return list(self.plan.tasks(most_rows))

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows by partition and file, or where the table has a key by partition and key."""
        for task in self.plan.tasks(_TASK_ROWS):
            for rows in task.read(self._snapshot.files.store):
                yield from rows.combine_chunks().to_batches(max_chunksize=BATCH_ROWS)

    def explain(self) -> str:
        """How many files and row groups are read, and what is left out."""
        parts, asked = self.plan.parts, self.plan.asked
        touched = sum(not part.is_whole for part in parts)
        groups = f"{self.plan.read_groups:,} of {self.plan.row_groups:,} row groups"
        lines = [f"data table {asked.table}: {len(parts):,} of {self.plan.total:,} files, {groups}"]
        if asked.key_columns:
            lines.append(f"of rows with equal {', '.join(asked.key_columns)} the newest")
        if touched:
            lines.append(f"rows of {touched:,} files are left out: deleted, or counted in another file")
        if self.plan.skipped:
            lines.append(f"{self.plan.skipped:,} files are left out: their columns do not go together with those of others")
        return "\n".join(lines)


class DataReads:
    """See ``Reads``: every data table to which a file was ever added."""

    def names(self, snapshot: Snapshot) -> Iterable[str]:
        """``data.NAME`` of each, in order."""
        if SCHEMAS not in snapshot.definitions:
            return []
        tables = snapshot.scan(SCHEMAS, columns=["table"]).to_arrow()["table"].unique()
        return [f"{BEGINS}{table}" for table in tables.to_pylist()]

    def read(
        self,
        snapshot: Snapshot,
        name: str,
        columns: Sequence[str] | None,
        where: Mapping[str, Any],
        *,
        on_schema_conflict: str = "cast",
    ) -> DataRead | None:
        """The read of a data table; None where there is none of that name."""
        table = table_of(name)
        live = None if table is None else Live.of(snapshot, table)
        return None if live is None else DataRead(snapshot, live, columns, where, on_conflict(on_schema_conflict))


READS = DataReads()
