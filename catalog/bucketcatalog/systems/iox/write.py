"""Rows for data tables: brought into the form in which files hold them, divided by partition, and put as files that a commit names."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ...clock import now_us
from ...errors import BucketCatalogError, CorruptionError, InvalidOption, InvalidRows, SourceNotFound
from ...model.arrays import one_chunk, plain
from ...query.files import engine
from ...query.parquet_footers import read_metadata
from ...store.base import Store
from ...write.parts import Parts, WritePlace
from ...write.transaction import WriteTransaction
from .bloom_filters import can_be_filtered, filtered_columns, refuse_filters
from .files import CHUNK, CLOCK, OF_ROWS, About, Written, add_files, new_id, put_file
from .live import Live
from .names import DEFAULT_PARTITION, escaped, table_of
from .reading import PARTITION, PATH, newest

_AT_ONCE = 131_072
_NONSENSE = (ValueError, TypeError, ArithmeticError, LookupError, NotImplementedError)
"""What a file raises, once it is open, in which something else stands than should."""
FILE_BYTES = 256 << 20
"""As many bytes of rows in memory as become a file at once."""


class Clock:
    """A clock that rises with every question: no two writes of this process begin at the same time."""

    def __init__(self) -> None:
        self._last = 0
        self._turn = threading.Lock()

    def next(self) -> int:
        """The time in microseconds, later than any before."""
        with self._turn:
            self._last = max(now_us(), self._last + 1)
            return self._last


CLOCK_OF_WRITES = Clock()
WRITE = "write"
"""Under which name the metadata of a transaction has the ids of its writes."""


@dataclass(frozen=True)
class WriteFiles:
    """How rows are written as files, wherever that is done: in the partition that they say in a column ``_partition``, else in this one.

    A file has Bloom filters of those of the columns ``bloom_filters`` that it has and that can have any.
    """

    writer: str
    database: str
    table: str
    write: str
    began: int
    partition: str
    key_columns: tuple[str, ...]
    clock: int
    bloom_filters: tuple[str, ...] = ()

    def write_rows(self, store: Store, rows: Iterable[pa.RecordBatch]) -> list[Written]:
        """Put the rows as files; ``InvalidRows`` names a column that no file can have."""
        places = ((partition, some) for portion in _portions(rows) for partition, some in self._by_partition(portion))
        return [self._put(store, partition, some, number) for number, (partition, some) in enumerate(places)]

    def _by_partition(self, rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
        if PARTITION not in rows.column_names:
            yield self.partition, rows
            return
        values = one_chunk(pc.fill_null(rows[PARTITION], self.partition))
        rest = rows.drop_columns([PARTITION])
        codes = values.dictionary_encode()
        order = pc.sort_indices(codes.indices)
        sizes = np.bincount(np.asarray(codes.indices), minlength=len(codes.dictionary))
        ordered = rest if len(sizes) == 1 else rest.take(order)
        start = 0
        for partition, size in zip(codes.dictionary.to_pylist(), sizes.tolist(), strict=True):
            yield partition, ordered.slice(start, size)
            start += size

    def _put(self, store: Store, partition: str, rows: pa.Table, number: int) -> Written:
        chunk = new_id(self.began + number)  # later files sort after earlier ones
        about = About(
            self.write, self.writer, self.database, self.table, partition, chunk, self.clock, self.clock, self.key_columns
        )
        return put_file(store, self._distinct(rows), about, can_be_filtered(rows.schema, self.bloom_filters))

    def _distinct(self, rows: pa.Table) -> pa.Table:
        """Of rows with equal keys the last."""
        if not self.key_columns:
            return rows
        told = rows.append_column(CLOCK, pa.repeat(self.clock, len(rows))).append_column(CHUNK, pa.repeat("", len(rows)))
        return newest(told, self.key_columns).drop_columns([CLOCK, CHUNK])


@dataclass(frozen=True)
class WritePart:
    """See ``PartTask``."""

    files: WriteFiles

    def write(self, store: Store, rows: Iterable[pa.RecordBatch]) -> list[Written]:
        """Put the rows of a part."""
        stored = (checked(pa.Table.from_batches([batch]), self.files) for batch in rows)
        return self.files.write_rows(store, (batch for some in stored for batch in some.to_batches()))


class DataWrites:
    """See ``Writes``: rows for ``data.NAME``, in the partition that they say, with the key that the table has."""

    def takes(self, name: str) -> bool:
        """Whether it is the name of a data table."""
        return table_of(name) is not None

    def begin(self, place: WritePlace, name: str, schema: pa.Schema, *, bloom_filters: Sequence[str] = ()) -> Parts:
        """Begin a write; ``InvalidRows`` for a column that no file can have, ``InvalidOption`` for one without Bloom filters."""
        table = table_of(name)
        assert table is not None
        live = Live.of(place.look(), table)
        key = live.key_columns if live is not None else ()
        files = begin_write(place.writer, place.database, table, key_columns=key, bloom_filters=bloom_filters)
        refuse_filters(checked(schema.empty_table(), files).schema, bloom_filters, table)
        return Parts(WritePart(files), partial(finish, files, frozenset(live.by_schema) if live is not None else frozenset()))


def finish(files: WriteFiles, known: frozenset[str], transaction: WriteTransaction, parts: Sequence[Sequence[Written]]) -> None:
    """Name what was written in the transaction."""
    written = [transaction.metadata[WRITE]] if WRITE in transaction.metadata else []
    transaction.metadata[WRITE] = " ".join([*written, files.write])
    add_files(transaction, [written for part in parts for written in part], known)


def begin_write(
    writer: str,
    database: str,
    table: str,
    *,
    partition: str = DEFAULT_PARTITION,
    key_columns: Sequence[str] = (),
    clock: int | None = None,
    bloom_filters: Sequence[str] = (),
) -> WriteFiles:
    """A write to a data table; ``InvalidName`` for what nothing can be called, ``InvalidOption`` for a clock that is none."""
    escaped(table, "data table")
    escaped(partition, "partition")
    began = CLOCK_OF_WRITES.next()
    if clock is not None and (isinstance(clock, bool) or not isinstance(clock, int) or not 0 <= clock < 1 << 63):
        raise InvalidOption(f"{clock!r} is no logical clock.", next_step="Give a whole number from 0 on, or leave it out.")
    return WriteFiles(
        writer,
        database,
        table,
        new_id(began),
        began,
        partition,
        tuple(key_columns),
        began if clock is None else clock,
        tuple(bloom_filters),
    )


def checked(rows: pa.Table, files: WriteFiles) -> pa.Table:
    """Rows as files hold them; ``InvalidRows`` where a column has a name or a type that none can have."""
    _refuse_names(rows.column_names, files.table)
    missing = [name for name in files.key_columns if name not in rows.column_names]
    if missing:
        raise InvalidRows(
            f"Rows for data table {files.table!r} lack the column {missing[0]!r} of its key.",
            next_step=f"Give every row {', '.join(files.key_columns)}.",
        )
    columns, fields = [], []
    for field, values in zip(rows.schema, rows.columns, strict=True):
        if field.name == PARTITION:
            columns.append(_partitions(values, files))
            fields.append(pa.field(PARTITION, pa.string()))
            continue
        kind = _stored(field.type)
        if field.name in files.key_columns and (pa.types.is_nested(kind) or pa.types.is_interval(kind)):
            raise InvalidRows(
                f"Column {field.name!r} for data table {files.table!r} is of the type {kind}, and cannot be in its key.",
                next_step="Tell rows apart by columns that have an order.",
            )
        columns.append(values if kind == field.type else _converted(values, kind, field.name, files.table))
        fields.append(pa.field(field.name, kind, field.nullable))
    if not [name for name in rows.column_names if name != PARTITION]:
        raise InvalidRows(f"Rows for data table {files.table!r} have no columns.", next_step="Give each row what it holds.")
    return pa.table(columns, schema=pa.schema(fields))


def _refuse_names(names: Sequence[str], table: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in (*OF_ROWS, PATH) or name == "":
            raise InvalidRows(
                f"No column of data table {table!r} can be called {name!r}.", next_step="Give it another name; that one is taken."
            )
        if name in seen:
            raise InvalidRows(f"Rows for data table {table!r} have two columns {name!r}.", next_step="Name each once.")
        seen.add(name)


def _partitions(values: pa.ChunkedArray, files: WriteFiles) -> pa.ChunkedArray:
    try:
        found = values.cast(pa.string())
    except pa.ArrowException:
        raise InvalidRows(
            f"The column {PARTITION!r} for data table {files.table!r} is of the type {values.type}, and names no partition.",
            next_step="Make it a string.",
        ) from None
    for name in pc.unique(found).drop_null().to_pylist():
        escaped(name, "partition")
    return found


def _stored(kind: pa.DataType) -> pa.DataType:
    """The type in which files hold values: that of what encodings and views show."""
    if isinstance(kind, pa.BaseExtensionType):
        return _stored(kind.storage_type)
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return _stored(kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_large_list(kind) or pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind):
        return pa.list_(_stored(kind.value_type))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_stored(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_stored(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_stored(kind.key_type), _stored(kind.item_type))
    return kind


def _converted(values: pa.ChunkedArray, kind: pa.DataType, name: str, table: str) -> pa.ChunkedArray:
    try:
        plainly = pa.chunked_array([plain(_storage(chunk)) for chunk in values.chunks] or [pa.nulls(0, kind)])
        found = plainly if plainly.type == kind else plainly.cast(kind)
        found.validate()
        return found
    except (pa.ArrowException, NotImplementedError) as error:
        raise InvalidRows(
            f"Column {name!r} for data table {table!r}: {str(error).splitlines()[0]}.", next_step=f"Cast it to {kind}."
        ) from None


def _storage(values: pa.Array) -> pa.Array:
    """The values without what Arrow's casts leave in place: extensions, runs, and views of lists."""
    if isinstance(values, pa.ExtensionArray):
        return _storage(values.storage)
    if pa.types.is_run_end_encoded(values.type):
        return _storage(pc.run_end_decode(values))
    if pa.types.is_list_view(values.type) or pa.types.is_large_list_view(values.type):
        sizes = np.asarray(pc.fill_null(pc.list_value_length(values), 0), dtype=np.int64)
        offsets = pa.array(np.concatenate([[0], np.cumsum(sizes)]), pa.int64())
        return pa.LargeListArray.from_arrays(offsets, pc.list_flatten(values), mask=values.is_null())
    return values


def _portions(rows: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The rows, so many at a time as become files at once."""
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in rows:
        if waiting and batch.schema != waiting[0].schema:  # of another source
            yield pa.Table.from_batches(waiting)
            waiting, size = [], 0
        if batch.num_rows:
            waiting.append(batch)
            size += batch.nbytes
        if size >= FILE_BYTES:
            yield pa.Table.from_batches(waiting)
            waiting, size = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting)


def batches_of(source: str | os.PathLike[str]) -> Iterator[pa.RecordBatch]:
    """The rows of a file at a path, or at a URL that fsspec knows; ``InvalidRows`` for what is no Parquet file."""
    with _parquet(source) as found:
        yield from found.iter_batches(batch_size=_AT_ONCE)


def filtered_in(source: str | os.PathLike[str]) -> list[str]:
    """The columns of such a file of which it has Bloom filters, by its footer; errors as ``batches_of``."""
    with _parquet(source) as found:
        return filtered_columns(found.metadata, pa.schema([each.with_type(_stored(each.type)) for each in found.schema_arrow]))


@contextmanager
def _parquet(source: str | os.PathLike[str]) -> Iterator[Any]:
    name, is_open = os.fspath(source), False
    try:
        with engine("fsspec").open(name, "rb") as file:
            is_open = True
            metadata = read_metadata(partial(_range, file), file.seek(0, os.SEEK_END), name, decoded=False)
            with pq.ParquetFile(file, metadata=metadata) as found:
                yield found
    except FileNotFoundError:
        raise SourceNotFound(f"There is no file {name}.", next_step="Check the path.") from None
    except Exception as error:
        if isinstance(error, (pa.ArrowException, OSError, CorruptionError)) or (is_open and isinstance(error, _NONSENSE)):
            why = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
            raise InvalidRows(
                f"{name} is no Parquet file that can be read: {why}.", next_step="Check it, or write it anew."
            ) from None
        if isinstance(error, BucketCatalogError):
            raise
        raise SourceNotFound(  # whatever the library raises that knows such URLs
            f"{name} cannot be {'read' if is_open else 'opened'}: {type(error).__name__}: {error}.",
            next_step="Check the URL, and what it takes to reach it.",
        ) from error


def _range(file: Any, at: int, length: int) -> bytes:
    file.seek(at)
    found: bytes = file.read(length)
    return found


WRITES = DataWrites()
