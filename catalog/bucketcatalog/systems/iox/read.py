"""Reads of data tables: ``data.NAME`` wherever a table is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from ...errors import UnknownTable
from ...model.render import chosen
from ...query.files import Asked, Files, NativeFile, plain_file
from ...query.filtered import filtered
from ...query.in_duckdb import native_relation
from ...query.in_polars import native_frame
from ...query.reads import BATCH_ROWS, Read, ReadTask
from ...query.snapshot import Snapshot
from ...store.base import Store
from ...wording import either
from .files import FILES, SCHEMAS
from .live import Live
from .names import BEGINS, table_of
from .plan import Plan, available_of, plan
from .reading import REQUESTED, FilePart
from .schemas import OnConflict, on_conflict

_TASK_ROWS = 1 << 20
Again = Callable[[Sequence[str] | None, Mapping[str, Any]], Read]
"""Makes a read of the same files, with other columns and conditions."""


class DataRead(Read):
    """The rows of a data table at a snapshot's cut: planned from the catalog alone, with no file opened."""

    def __init__(self, store: Store, planned: Plan, again: Again | None = None) -> None:
        self._store = store
        self.plan = planned
        self._again = again

    @classmethod
    def of(
        cls,
        snapshot: Snapshot,
        live: Live,
        columns: Sequence[str] | None = None,
        where: Mapping[str, Any] | None = None,
        on: OnConflict = "cast",
    ) -> DataRead:
        """The read of these columns of rows that meet the conditions; errors as ``plan``."""

        def again(columns: Sequence[str] | None, where: Mapping[str, Any]) -> DataRead:
            return cls.of(snapshot, live, columns, where, on)

        return cls(snapshot.files.store, plan(snapshot, live, columns, where or {}, on), again)

    @classmethod
    def meeting(cls, snapshot: Snapshot, live: Live, columns: Sequence[str] | None, where: Any, on: OnConflict) -> Read:
        """The same for any condition that ``asked_for`` gives."""
        if isinstance(where, Mapping):
            return cls.of(snapshot, live, columns, where, on)
        whole = cls.of(snapshot, live, on=on)
        found: Read = filtered(whole.plan.asked.name, where, whole.available, columns, whole.asked_again)
        return found

    def asked_again(self, columns: Sequence[str] | None, where: Mapping[str, Any]) -> Read | None:
        """See ``Read.asked_again``: which files there are is not read again."""
        return None if self._again is None else self._again(columns, where)

    @property
    def schema(self) -> pa.Schema:
        """The columns that were asked for."""
        return self.plan.asked.schema

    @property
    def available(self) -> pa.Schema:
        """The columns of all files together, and what every data table shows on request."""
        return available_of(self.plan.asked.columns)

    def only(self, columns: Sequence[str]) -> DataRead:
        """The same rows with these columns alone."""
        schema = chosen(self.plan.asked.name, self.available, columns)
        return DataRead(self._store, replace(self.plan, asked=replace(self.plan.asked, schema=schema)))

    def tasks(self, most_rows: int) -> list[ReadTask]:
        """Files, and parts of large ones."""
        return list(self.plan.tasks(most_rows))

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows by partition and file, or where the table has a key by partition and key."""
        for task in self.plan.tasks(_TASK_ROWS):
            for rows in task.read(self._store):
                yield from rows.combine_chunks().to_batches(max_chunksize=BATCH_ROWS)

    @property
    def lies_in_files(self) -> bool:
        """All of them."""
        return True

    def files(self) -> Files:
        """See ``Read.files``: files all of whose rows count are read natively, the others by this package."""
        asked = self.plan.asked
        if of_place := [name for name in [*asked.schema.names, *asked.test.where] if name in REQUESTED]:
            return Files(self.schema, (), self, why=f"no file has the column {of_place[0]!r}")
        said = Asked.of_columns(asked.schema, asked.test)
        native: list[NativeFile] = []
        for part in self.plan.alone:
            found = plain_file(part.path, part.size, part.rows, asked.schema_of(part), said, self._store.url)
            if isinstance(found, str):
                return Files(self.schema, (), self, why=f"{found}, in {part.path}")
            native.append(found)
        rest = self._of({part.path for part in self.plan.parts} - {file.name for file in native})
        return Files(self.schema, tuple(native), rest, sum(part.rows_read for part in rest.plan.parts))

    def _of(self, paths: set[str]) -> DataRead:
        """The read of some of the files."""
        parts: list[FilePart] = [part for part in self.plan.parts if part.path in paths]
        return DataRead(self._store, replace(self.plan, parts=parts))

    def to_duckdb(self, connection: Any) -> Any:
        """See ``InBatches.to_duckdb``: DuckDB reads the files itself, where it can."""
        return native_relation(connection, self.files(), self, self._store)

    def to_polars(self) -> Any:
        """See ``InBatches.to_polars``: Polars reads the files itself, where it can."""
        return native_frame(self.files(), self, self._store)

    def explain(self) -> str:
        """How many files and row groups are read, and what is left out."""
        parts, asked = self.plan.parts, self.plan.asked
        touched = sum(not part.is_whole for part in parts)
        groups = f"{self.plan.read_groups:,} of {self.plan.row_groups:,} row groups"
        lines = [f"data table {asked.table}: {len(parts):,} of {self.plan.total:,} files, {groups}"]
        if asked.key_columns:
            lines.append(f"of rows with equal {', '.join(asked.key_columns)} the newest")
        if touched:
            lines.append(f"left out: rows of {touched:,} of the files, deleted or counted in another file")
        if self.plan.skipped:
            lines.append(f"left out: {self.plan.skipped:,} whose columns do not go together with those of others")
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
        return None if live is None else DataRead.of(snapshot, live, columns, where, on_conflict(on_schema_conflict))

    def no_table(self, name: str) -> UnknownTable | None:
        """What to tell who takes a data table, or what is to be one, for a table."""
        table = table_of(name)
        if table is None:
            return None
        return UnknownTable(
            f"There is no table {name!r}: names that begin with {BEGINS!r} are data tables, which are read where files were added to them.",
            next_step=either(
                f"snapshot.scan({FILES!r}) shows those there are. They are changed, restored and compacted as cat.data({table!r}).",
                "bucketcatalog iox files CATALOG shows those there are. They are changed, restored and compacted by bucketcatalog iox.",
            ),
        )


READS = DataReads()
