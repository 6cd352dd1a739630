"""Reads: rows that somebody asked for, as this package gives them to anybody, whatever they are rows of.

A read is planned before anything of it is read, and may be read as often as one likes, here or in parts by other processes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa

from ..errors import InvalidOption
from ..store.base import Store
from .files import Files
from .in_duckdb import duckdb_relation
from .in_html import read_html
from .in_polars import polars_frame

BATCH_ROWS = 65_536
IN_NO_FILES = "only tables, their tombstones, and views of these lie in files"
"""Why other reads are of no files."""


def refuse_options(name: str, options: Mapping[str, Any]) -> None:
    """``InvalidOption`` for options of a read that has none."""
    for option in options:
        raise InvalidOption(f"A read of {name!r} takes no option {option!r}.", next_step="Leave it out.")


class ReadTask(Protocol):
    """A part of a read that one process does by itself, wherever it runs: picklable, without a store and without rows of other parts.

    Scans, changes and tables about the catalog are read so. ``rows`` is an upper bound of the rows that are read.
    """

    @property
    def rows(self) -> int:
        """See the class."""
        ...

    def read(self, store: Store) -> Iterator[pa.Table]:
        """The rows, as tables with at least the columns that were asked for; nothing else is read."""
        ...


class InBatches(ABC):
    """What is read batch by batch, or all at once. Nothing is read before a ``to_`` method is called."""

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The columns of what is returned."""

    @abstractmethod
    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows in batches."""

    def _repr_html_(self) -> str:
        """For notebooks: the columns, and the plan where there is one. No row is read."""
        return read_html(self.schema, getattr(self, "explain", None))

    def to_arrow(self) -> pa.Table:
        """All rows as one table."""
        return pa.Table.from_batches(list(self.to_batches()), self.schema)

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream that other libraries take; batches are read as they are asked for."""
        return pa.RecordBatchReader.from_batches(self.schema, self.to_batches())

    def only(self, columns: Sequence[str]) -> InBatches:
        """The same rows with these of their columns alone, where that makes them cheaper to read; with all of them elsewhere."""
        return self

    def to_duckdb(self, connection: Any) -> Any:
        """The rows as a relation of a DuckDB connection, in no particular order: read when it is asked, each time anew; needs duckdb.

        Rows of at most 8 MiB are read now, and kept. A scan has DuckDB read the files of the table itself, where it can.
        """
        return duckdb_relation(connection, self)

    def to_polars(self) -> Any:
        """The rows as a LazyFrame of Polars, in no particular order: read when it is collected, each time anew; needs polars.

        Rows of at most 8 MiB are read now, and kept. A scan has Polars read the files of the table itself, where it can.
        """
        return polars_frame(self)


class Read(InBatches):
    """Rows that somebody asked for, planned but not read."""

    @property
    @abstractmethod
    def available(self) -> pa.Schema:
        """The columns that can be asked for, those of ``schema`` among them."""

    @abstractmethod
    def tasks(self, most_rows: int) -> list[ReadTask]:
        """The read in parts of at most about so many rows, for other processes; none where there is nothing to read."""

    @abstractmethod
    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows in batches of at most 65,536; memory does not grow with their number."""

    @abstractmethod
    def explain(self) -> str:
        """What is read and what is skipped, in a few lines."""

    @property
    def lies_in_files(self) -> bool:
        """Whether its rows are those of Parquet files, which engines may read by themselves; if not, ``files`` has none."""
        return False

    def files(self) -> Files:
        """The read as Parquet files that any engine reads, and what lies over them.

        Planned for what it takes to read nearly all rows natively; where that cannot be, ``why`` says so and the overlay has all rows.
        """
        return Files(self.schema, (), self, why=IN_NO_FILES)

    def to_pandas(self) -> Any:
        """All rows as a pandas DataFrame; needs pandas."""
        return self.to_arrow().to_pandas()
