"""A data table and the parties that change it: writers have catalogs of their own, and compactions end when they are told to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bucketcatalog import Catalog
from bucketcatalog.query.snapshot import Snapshot
from bucketcatalog.store import Store
from bucketcatalog.store.memory import MemoryStore
from bucketcatalog.systems.iox.compact import Compacted, Compaction
from bucketcatalog.systems.iox.files import FILES
from bucketcatalog.systems.iox.live import Live
from bucketcatalog.systems.iox.predicates import PREDICATES
from bucketcatalog.systems.iox.read import DataRead
from bucketcatalog.systems.iox.table import DataTable

TABLE = "t"


class Planned:
    """A compaction that has been planned, with a writer of its own that nobody else has."""

    def __init__(self, catalog: Catalog, name: str, **options: Any) -> None:
        self._store = catalog.store
        self._writer = catalog.writer(f"compactor-{name}")
        self.job = Compaction(self._writer.begin_work(), self._writer, table=TABLE, **options)

    def made(self) -> list[Any]:
        """What the tasks come to."""
        return [task.run(self._store) for task in self.job.tasks]

    def finish(self) -> Compacted:
        """Do the tasks, and commit what they have made."""
        try:
            return self.job.finish(self.made())
        finally:
            self._writer.close()


class Lake:
    """The data table ``t`` in a store of its own."""

    def __init__(self, store: Store | None = None) -> None:
        self.store = MemoryStore() if store is None else store
        self._reader, self._compacting = Catalog(self.store), Catalog(self.store)
        self._tables: dict[str, DataTable] = {}

    def catalog(self) -> Catalog:
        """One that has read nothing."""
        return Catalog(self.store)

    def look(self) -> Snapshot:
        """What there is now, be it nothing."""
        return self._reader.database("default").look()

    def table(self, writer: str = "w") -> DataTable:
        """The table as that writer changes it, whose catalog is its own."""
        if writer not in self._tables:
            self._tables[writer] = self.catalog().data(TABLE, writer=writer)
        return self._tables[writer]

    def append(self, *values: Any, by: str = "w", **options: Any) -> str:
        """Add a file with rows ``v``, or as they are given; returns its chunk."""
        rows: Any = [value if isinstance(value, Mapping) else {"v": value} for value in values]
        return self.append_table(pa.Table.from_pylist(rows), by=by, **options)

    def append_table(self, rows: pa.Table, *, by: str = "w", **options: Any) -> str:
        """Add a file with these rows; returns its chunk."""
        before = {*self.chunks()}
        self.table(by).append(rows, **options)
        (chunk,) = {*self.chunks()} - before
        return chunk

    def plan(self, by: str = "a", **options: Any) -> Planned:
        """A compaction that has read what there is now."""
        return Planned(self._compacting, by, **options)

    def compact(self, by: str = "z", **options: Any) -> Compacted:
        """A compaction from beginning to end."""
        return self.plan(by, **options).finish()

    def scan(self, **options: Any) -> DataRead:
        """A read by who writes nothing."""
        found: DataRead = self._reader.data(TABLE).scan(**options)
        return found

    def rows(self, **options: Any) -> list[dict[str, Any]]:
        """The rows that count."""
        found: list[dict[str, Any]] = self.scan(**options).to_arrow().to_pylist()
        return found

    def values(self, **options: Any) -> list[Any]:
        """Their column ``v``, in order."""
        return sorted((row["v"] for row in self.rows(**options)), key=lambda value: (value is None, value))

    def files(self) -> list[dict[str, Any]]:
        """What the catalog says of the table's files."""
        snapshot = self.look()
        if FILES not in snapshot.definitions:
            return []
        found: list[dict[str, Any]] = snapshot.scan(FILES, where={"table": TABLE}).to_arrow().to_pylist()
        return found

    def chunks(self) -> list[str]:
        """The chunks of its files."""
        return [row["chunk"] for row in self.files()]

    def predicates(self) -> list[dict[str, Any]]:
        """What it says of deletions."""
        snapshot = self.look()
        found: list[dict[str, Any]] = (
            snapshot.scan(PREDICATES).to_arrow().to_pylist() if PREDICATES in snapshot.definitions else []
        )
        return found

    def live(self) -> Live:
        """What counts now."""
        found = Live.of(self.look(), TABLE)
        assert found is not None
        return found

    def stored(self, row: Mapping[str, Any]) -> pa.Table:
        """A file as it is, row for row."""
        return pq.read_table(pa.BufferReader(self.store.get(row["path"])))


def of(values: Sequence[Any], kind: pa.DataType, name: str = "v") -> pa.Table:
    """One column of that type."""
    return pa.table({name: pa.array(values, kind)})
