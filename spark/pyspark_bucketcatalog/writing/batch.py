"""Spark's writer of a batch: each task puts segments of its own, and what they put is committed once, when all have ended.

A task that Spark runs again, or twice at once, puts its rows again under other names: only what the messages name that Spark hands to
``commit`` becomes part of the catalog, and the rest is part of nothing. Nothing is ever deleted here: when Spark calls ``abort`` after a
commit whose answer was lost, that commit counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from bucketcatalog import InvalidOption, InvalidRows
from bucketcatalog.model.events import EventKind
from bucketcatalog.model.names import host_writer, writer_id
from bucketcatalog.model.tables import DataType, Table
from bucketcatalog.store import Store
from bucketcatalog.write.host_turn import host_turn
from bucketcatalog.write.intake import VERSION_COLUMN, checked
from bucketcatalog.write.shares import ShareTask, portions, share_task
from bucketcatalog.write.staging import WrittenShare
from bucketcatalog.write.writer import Writer

from ..executors import CatalogPlace
from ..options import OPERATIONS, WriteOptions
from ..types import arrow_schema

OPERATION = "operation"
"""The column that says what each row is, where no option does and the table has none of that name."""
WRITER_PREFIX = "spark-"
_KINDS = {name: EventKind[name.upper()] for name in OPERATIONS}
_OF_KEYS = (EventKind.DELETE, EventKind.PURGE)


@dataclass
class Written(WriterCommitMessage):
    """What a task has put."""

    shares: tuple[WrittenShare, ...]


def make_writer(given: Mapping[str, str], schema: StructType, *, overwrite: bool) -> DataSourceArrowWriter:
    """The writer of rows of this schema; a typed error where the table does not take such rows, or they are to replace it."""
    asked = WriteOptions.parse(given)
    if overwrite:
        raise InvalidOption(
            f"The table {asked.table!r} cannot be overwritten as a whole: its history would seem to end.",
            next_step='Write with mode("append"); bucketcatalog restore puts a table back to what it was.',
        )
    place = CatalogPlace.of(asked.path, asked.storage)
    writer = writer_id(asked.writer) if asked.writer is not None else host_writer(WRITER_PREFIX)
    rows = arrow_schema(schema)
    database = place.open().database(asked.database)
    tasks = {EventKind.PUT: share_task(database, writer, asked.table, EventKind.PUT)}
    table = tasks[EventKind.PUT].table
    by_column = asked.operation is None and OPERATION in rows.names and OPERATION not in table.by_name
    kinds = [_KINDS[name] for name in OPERATIONS] if by_column else [_KINDS[asked.operation or "put"]]
    tasks = {kind: share_task(database, writer, asked.table, kind) for kind in kinds}
    for kind in kinds:
        if not by_column or kind is EventKind.PUT:
            columns = [name for name in rows.names if not by_column or name not in (OPERATION, VERSION_COLUMN)]
            checked(table, kind, _stored_as(rows.empty_table().select(columns), table))
    return BatchWriter(place, asked, writer, tasks, by_column=by_column)


class BatchWriter(DataSourceArrowWriter):
    """Writes rows as events of the kinds that ``tasks`` has, one, or with ``by_column`` as the column of that name says."""

    def __init__(
        self, place: CatalogPlace, asked: WriteOptions, writer: str, tasks: Mapping[EventKind, ShareTask], *, by_column: bool
    ) -> None:
        self._place, self._asked, self._writer = place, asked, writer
        self._tasks, self._by_column = dict(tasks), by_column

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Put the rows of one task."""
        store = self._place.open().store
        if not self._by_column:
            ((_, task),) = self._tasks.items()
            batches = (batch for rows in iterator for batch in _stored_as(pa.Table.from_batches([rows]), task.table).to_batches())
            return Written(_some(task.write(store, batches)))
        return Written(tuple(share for rows in portions(iterator) for share in self._by_operation(store, rows)))

    def _by_operation(self, store: Store, rows: pa.Table) -> Iterator[WrittenShare]:
        said = pc.fill_null(pc.utf8_lower(rows.column(OPERATION)), "put")
        unknown = [name for name in pc.unique(said).to_pylist() if name not in _KINDS]
        if unknown:
            raise InvalidRows(
                f"The column {OPERATION!r} holds {unknown[0]!r}, which is no operation.",
                next_step=f"Let it say {', '.join(OPERATIONS)}, or nothing for put.",
            )
        for name, kind in _KINDS.items():
            task = self._tasks[kind]
            some = rows.filter(pc.equal(said, name)).drop_columns([OPERATION])
            kept = some.select([column for column in some.column_names if _takes(task.table, kind, column)])
            if len(kept):
                yield from _some(task.write(store, _stored_as(kept, task.table).to_batches()))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Commit what the tasks have put, once; nothing where that is nothing, unless an application numbers it."""
        shares = [share for message in messages if isinstance(message, Written) for share in message.shares]
        if not shares and self._asked.app_id is None:
            return
        catalog = self._place.open()
        named = self._writer if self._asked.writer is not None else None
        with (
            host_turn(catalog.store, self._asked.database, named=named, default=writer_id(self._writer)) as chosen,
            catalog.writer(chosen, database=self._asked.database) as writer,
        ):
            self._commit(writer, shares)

    def _commit(self, writer: Writer, shares: Sequence[WrittenShare]) -> None:
        with writer.transaction(operation="spark write", app_id=self._asked.app_id, app_version=self._asked.app_version) as tx:
            tx.adopt(shares)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Nothing: what was put is named by no commit, or by one whose answer was lost."""


def _some(share: WrittenShare) -> tuple[WrittenShare, ...]:
    return (share,) if share.events else ()


def _takes(table: Table, kind: EventKind, column: str) -> bool:
    """Whether rows of that kind can have the column."""
    if column == VERSION_COLUMN:
        return kind is not EventKind.PUT
    return kind not in _OF_KEYS or column in table.key or (column == table.id and kind is EventKind.DELETE)


def _stored_as(rows: pa.Table, table: Table) -> pa.Table:
    """Rows of Spark's with the numbers that it has no type for: 64 bits without a sign are decimals there."""
    for at, field in enumerate(rows.schema):
        column = table.by_name.get(field.name)
        if column is not None and column.type is DataType.UINT64 and pa.types.is_decimal(field.type):
            try:
                numbers: Any = rows.column(at).cast(pa.uint64())
            except pa.ArrowInvalid as error:
                raise InvalidRows(
                    f"Column {field.name!r} for table {table.name!r}: {str(error).splitlines()[0]}.",
                    next_step="Give whole numbers from 0 to 18446744073709551615.",
                ) from None
            rows = rows.set_column(at, field.name, numbers)
    return rows
