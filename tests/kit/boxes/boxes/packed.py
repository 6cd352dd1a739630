"""``packed.NAME``: the rows in a box. They lie in Parquet files below the data of whoever packed them; the table of parts names these."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bucketcatalog import InvalidOption, clock
from bucketcatalog.model.render import chosen
from bucketcatalog.query.reads import BATCH_ROWS, Read, ReadTask
from bucketcatalog.query.snapshot import Snapshot
from bucketcatalog.store.base import Store
from bucketcatalog.write.parts import Parts, WritePlace
from bucketcatalog.write.transaction import WriteTransaction

BEGINS = "packed."


@dataclass(frozen=True)
class FileTask:
    """The rows of one file."""

    path: str
    rows: int
    columns: tuple[str, ...]

    def read(self, store: Store) -> Iterator[pa.Table]:
        """All of them."""
        yield pq.read_table(pa.BufferReader(store.get(self.path)), columns=list(self.columns))


class PackedRead(Read):
    """The rows of a box, file by file."""

    def __init__(self, snapshot: Snapshot, parts: pa.Table, columns: Sequence[str] | None) -> None:
        self._store = snapshot.files.store
        self._parts = parts
        first = self._store.get(parts["path"][0].as_py())
        self._available = pq.read_schema(pa.BufferReader(first))
        self._schema = self._available if columns is None else chosen("packed", self._available, columns)

    @property
    def schema(self) -> pa.Schema:
        """Those of the box's first file that were asked for."""
        return self._schema

    @property
    def available(self) -> pa.Schema:
        """Those of the box's first file."""
        return self._available

    def tasks(self, most_rows: int) -> list[ReadTask]:
        """One a file."""
        columns = tuple(self._schema.names)
        return [FileTask(part["path"], part["rows"], columns) for part in self._parts.to_pylist()]

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """File by file."""
        for task in self.tasks(BATCH_ROWS):
            for rows in task.read(self._store):
                yield from rows.to_batches(max_chunksize=BATCH_ROWS)

    def explain(self) -> str:
        """How many files are read."""
        return f"{len(self._parts)} files"


class PackedReads:
    """Answers for boxes that have something in them."""

    def names(self, snapshot: Snapshot) -> Iterable[str]:
        """One a box."""
        if "boxes.parts" not in snapshot.definitions:
            return []
        return [f"{BEGINS}{box}" for box in snapshot.scan("boxes.parts", columns=["box"]).to_arrow()["box"].unique().to_pylist()]

    def read(self, snapshot: Snapshot, name: str, columns: Sequence[str] | None, where: Any) -> Read | None:
        """See ``Reads``."""
        if not name.startswith(BEGINS):
            return None
        if where:
            raise InvalidOption(f"What is in {name!r} cannot be filtered.", next_step="Read it, and filter the rows.")
        parts = snapshot.scan("boxes.parts", where={"box": name.removeprefix(BEGINS)}).to_arrow()
        return PackedRead(snapshot, parts, columns) if len(parts) else None


@dataclass(frozen=True)
class PackTask:
    """Writes one file."""

    prefix: str
    schema: pa.Schema

    def write(self, store: Store, rows: Iterable[pa.RecordBatch]) -> dict[str, Any]:
        """What the table of parts has of a file."""
        table = pa.Table.from_batches(list(rows), self.schema)
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink)
        path = f"{self.prefix}{clock.random_token()}.parquet"
        store.put(path, sink.getvalue().to_pybytes())
        return {"path": path, "rows": len(table)}


class PackedWrites:
    """Takes rows for boxes."""

    def takes(self, name: str) -> bool:
        """Whether it is a box."""
        return name.startswith(BEGINS)

    def begin(self, place: WritePlace, name: str, schema: pa.Schema) -> Parts:
        """See ``Writes``."""
        return Parts(PackTask(place.prefix, schema), partial(finish, name.removeprefix(BEGINS)))


def finish(box: str, transaction: WriteTransaction, parts: Sequence[Any]) -> None:
    """Name the files in the transaction."""
    transaction.put("boxes.parts", [{"box": box, **part} for part in parts])


READS = PackedReads()
WRITES = PackedWrites()
