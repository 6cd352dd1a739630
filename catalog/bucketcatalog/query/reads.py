"""Reads: rows that somebody asked for, as this package gives them to anybody, whatever they are rows of.

A read is planned before anything of it is read, and may be read as often as one likes, here or in parts by other processes.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa

from ..errors import InvalidOption
from ..model.public import public
from ..store.base import Store
from .files import Files
from .in_duckdb import duckdb_relation
from .in_files import CSV, JSON_LINES, PARQUET, write_file
from .in_html import read_html
from .in_polars import polars_frame

BATCH_ROWS = 65_536
_FEW_COLUMNS = 6
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


@public(
    *("count", "head", "only", "schema", "to_arrow", "to_batches", "to_csv", "to_duckdb", "to_jsonl", "to_pandas", "to_parquet"),
    *("to_polars", "to_reader"),
)
class InBatches(ABC):
    """What is read batch by batch, or all at once. Nothing is read before a ``to_`` method is called."""

    def __repr__(self) -> str:
        columns = self.schema.names
        shown = ", ".join(columns[:_FEW_COLUMNS]) + (
            f" and {len(columns) - _FEW_COLUMNS} more" if len(columns) > _FEW_COLUMNS else ""
        )
        return f"{type(self).__name__}({self._of_what()}columns: {shown})"

    def _of_what(self) -> str:
        """What the rows are of, for ``repr``; empty, or with a comma behind it."""
        return ""

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

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The same for libraries that take any Arrow stream, as pandas, Polars, DuckDB, pyarrow and deltalake do."""
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> Any:
        """All rows as a pandas DataFrame; needs pandas. Maps and messages are dicts, with values as exact as they were."""
        rows = self.to_arrow()
        whole = {
            name: rows[name].to_pylist(maps_as_pydicts="strict")
            for name in rows.column_names
            if pa.types.is_struct(rows[name].type)
        }
        found = rows.drop_columns(list(whole)).to_pandas(maps_as_pydicts="strict")
        for name, values in whole.items():  # of integers in them pandas would make fractions where one is missing
            found.insert(rows.schema.get_field_index(name), name, values)
        return found

    def count(self) -> int:
        """How many rows there are, read with as few columns as can be, or not at all where that is known."""
        return sum(map(len, self.only(self.schema.names[:1]).in_any_order().to_batches()))

    def head(self, rows: int = 10) -> pa.Table:
        """The first rows; no more batches are read than have them."""
        if not isinstance(rows, int) or isinstance(rows, bool) or rows < 0:
            raise InvalidOption(f"The first {rows!r} rows are none.", next_step="Give a whole number, 0 or more.")
        found: list[pa.RecordBatch] = []
        wanted = rows
        batches = self.to_batches() if rows else iter(())
        for batch in batches:
            found.append(batch.slice(0, wanted))
            wanted -= len(found[-1])
            if not wanted:
                break
        return pa.Table.from_batches(found, self.schema)

    def only(self, columns: Sequence[str]) -> InBatches:
        """The same rows with these of their columns alone, where that makes them cheaper to read; with all of them elsewhere."""
        return self

    def in_any_order(self) -> InBatches:
        """The same rows in whatever order they are cheapest to read, for who counts or sums them; elsewhere in their own."""
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

    def to_parquet(
        self, path: str | os.PathLike[str], *, partition_by: Iterable[str] | None = None, compression: str = "zstd"
    ) -> int:
        """The rows as a Parquet file of this machine, in their order, which replaces one that is there; how many they are.

        It appears whole or not at all, and memory does not grow with the rows. With ``partition_by`` the path is a new directory, with a
        directory a value of these columns as Hive has them: text, integers, booleans or times. A message without fields has the field
        ``_``. ``InvalidOption`` for what is no such path, column or compression; ``TargetNotEmpty`` for a directory that is there.
        """
        return write_file(self, path, PARQUET, partition_by=partition_by, compression=compression)

    def to_csv(
        self, path: str | os.PathLike[str], *, partition_by: Iterable[str] | None = None, compression: str | None = None
    ) -> int:
        """The same as CSV with the columns' names first, compressed where the path ends in ``.gz`` or ``compression`` is ``"gzip"``.

        Text stands in quotes, what is null is nothing, times are ISO 8601, bytes hexadecimal, lists, maps and messages JSON.
        """
        return write_file(self, path, CSV, partition_by=partition_by, compression=compression)

    def to_jsonl(
        self, path: str | os.PathLike[str], *, partition_by: Iterable[str] | None = None, compression: str | None = None
    ) -> int:
        """The same as lines of JSON, an object a row, as ``--json`` prints them; compressed as CSV is."""
        return write_file(self, path, JSON_LINES, partition_by=partition_by, compression=compression)


@public("available", "explain", "files")
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

    def asked_again(self, columns: Sequence[str] | None, where: Mapping[str, Any]) -> Read | None:
        """The same read of other columns and conditions, made of what was read to plan this one; None where that spares nothing."""
        return None

    @property
    def lies_in_files(self) -> bool:
        """Whether its rows are those of Parquet files, which engines may read by themselves; if not, ``files`` has none."""
        return False

    def files(self) -> Files:
        """The read as Parquet files that any engine reads, and what lies over them.

        Planned for what it takes to read nearly all rows natively; where that cannot be, ``why`` says so and the overlay has all rows.
        """
        return Files(self.schema, (), self, why=IN_NO_FILES)
