"""A write of a DataFrame's rows: put by tasks as segments, and committed once by whoever has what all tasks have put.

A task that Spark runs again, or twice at once, puts its rows again under other names: only what is handed to ``commit`` becomes part of the
catalog, and the rest is part of nothing. Nothing is ever deleted here: when Spark gives a write up whose commit had no answer, that commit
may count.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from bucketcatalog import Catalog, CommitUnknown, InvalidOption, InvalidRows
from bucketcatalog.format.transactions import Transaction
from bucketcatalog.model.events import EventKind
from bucketcatalog.model.names import NAME, host_writer, writer_id
from bucketcatalog.model.parents import name_column
from bucketcatalog.model.tables import DataType, Table
from bucketcatalog.model.uuids import uuid_text
from bucketcatalog.query.database import Database
from bucketcatalog.store import Store
from bucketcatalog.write.commit import Committed
from bucketcatalog.write.host_turn import host_turn
from bucketcatalog.write.intake import VERSION_COLUMN, checked
from bucketcatalog.write.naming import columns_with_ids
from bucketcatalog.write.shares import ShareTask, portions, share_task
from bucketcatalog.write.staging import WrittenShare
from bucketcatalog.write.transaction import WriteTransaction

from ..executors import CatalogPlace
from ..options import OPERATIONS, WRITER_PREFIX, WriteOptions
from ..types import arrow_schema

OPERATION = "operation"
"""The column that says what each row is, where no option does and the table has none of that name."""
_KINDS = {name: EventKind[name.upper()] for name in OPERATIONS}
_OF_KEYS = (EventKind.DELETE, EventKind.PURGE)
_MADE_SINCE = 64
"""The most commits of a writer that others can have made between one and the look for it."""


@dataclass(frozen=True)
class Write:
    """How rows are written: as events of the kinds that ``tasks`` has, one, or with ``by_column`` as the column of that name says.

    It is picklable, and the same for all tasks and for the commit; ``operation`` is what the log calls it.
    """

    place: CatalogPlace
    asked: WriteOptions
    tasks: Mapping[EventKind, ShareTask]
    by_column: bool
    operation: str = "spark write"

    @property
    def writer(self) -> str:
        """Who writes."""
        return next(iter(self.tasks.values())).writer

    def of_application(self, name: str) -> Write:
        """The same for an application, under a writer of its own unless one was named."""
        writer = self.writer if self.asked.writer is not None else application_writer(name)
        tasks = {kind: replace(task, writer=writer) for kind, task in self.tasks.items()}
        return replace(self, asked=replace(self.asked, app_id=name), tasks=tasks)

    def numbered(self, version: int) -> Write:
        """The same as the application's commit of that number."""
        return replace(self, asked=replace(self.asked, app_version=version))

    def put(self, rows: Iterable[pa.RecordBatch]) -> tuple[WrittenShare, ...]:
        """Put the rows of one task; ``InvalidRows`` names row and column of what does not fit the table."""
        store = self.place.open().store
        if not self.by_column:
            ((_, task),) = self.tasks.items()
            batches = (batch for some in rows for batch in _stored_as(pa.Table.from_batches([some]), task.table).to_batches())
            return _some(task.write(store, batches))
        return tuple(share for some in portions(rows) for share in self._by_operation(store, some))

    def _by_operation(self, store: Store, rows: pa.Table) -> Iterator[WrittenShare]:
        said = pc.fill_null(pc.utf8_lower(rows.column(OPERATION)), "put")
        unknown = [name for name in pc.unique(said).to_pylist() if name not in _KINDS]
        if unknown:
            raise InvalidRows(
                f"The column {OPERATION!r} holds {unknown[0]!r}, which is no operation.",
                next_step=f"Let it say {', '.join(OPERATIONS)}, or nothing for put.",
            )
        for name, kind in _KINDS.items():
            task = self.tasks[kind]
            some = rows.filter(pc.equal(said, name)).drop_columns([OPERATION])
            kept = some.select([column for column in some.column_names if _takes(task.table, kind, column)])
            if len(kept):
                yield from _some(task.write(store, _stored_as(kept, task.table).to_batches()))

    def commit(self, shares: Sequence[WrittenShare]) -> Committed | None:
        """Commit what the tasks have put, once; None where an application has committed a later number of its own already.

        Where the store gives no answer in time, the commit is looked for: ``CommitUnknown`` where it is not there.
        """
        put = {segment.place for share in shares for segment in share.segments}
        return committed_once(
            self.place,
            self.asked,
            self.writer,
            self.operation,
            lambda tx: tx.adopt(shares),
            lambda transaction: any(segment.place in put for segment in transaction.segments),
        )


def committed_once(
    place: CatalogPlace,
    asked: WriteOptions,
    writer: str,
    operation: str,
    fill: Callable[[WriteTransaction], None],
    is_this: Callable[[Transaction], bool],
) -> Committed | None:
    """A transaction that ``fill`` fills, committed once; see ``Write.commit``. ``is_this`` knows it where its answer was lost."""
    catalog = place.open()
    named = writer if asked.writer is not None else None
    with host_turn(catalog.store, asked.database, named=named, default=writer_id(writer)) as chosen:
        try:
            with catalog.writer(chosen, database=asked.database) as held:
                # An application may write to several tables by one number, as in foreachBatch.
                application = None if asked.app_id is None else f"{asked.app_id}:{asked.table}"
                with held.transaction(operation=operation, app_id=application, app_version=asked.app_version) as tx:
                    fill(tx)
            return tx.committed
        except CommitUnknown:
            landed = _landed(place.open(), asked.database, chosen, is_this)
            if landed is None:
                raise
            return landed


def _landed(catalog: Catalog, database: str, writer: str, is_this: Callable[[Transaction], bool]) -> Committed | None:
    """The commit of a writer that is this one, if it is there, be it covered by a checkpoint by now or not."""
    files = catalog.database(database).files
    for head in reversed(list(files.transactions(writer))[-_MADE_SINCE:]):
        t = files.transaction(writer, head)
        if is_this(t):
            return Committed(t.revision, uuid_text(t.uuid), t.commit_time, f"{writer}@{t.revision}")
    return None


def asked_of(given: Mapping[str, str], *, overwrite: bool) -> WriteOptions:
    """The options of a write; ``InvalidOption`` for what they cannot be, and where rows are to replace the table."""
    asked = WriteOptions.parse(given)
    if overwrite:
        raise InvalidOption(
            f"The table {asked.table!r} cannot be overwritten as a whole: its history would seem to end.",
            next_step='Write with mode("append"); Catalog.restore puts a table back to what it was.',
        )
    return asked


def plan_write(given: Mapping[str, str], schema: StructType, *, overwrite: bool = False) -> Write:
    """The write of rows of this schema; a typed error where the table does not take such rows, or they are to replace it."""
    asked = asked_of(given, overwrite=overwrite)
    if asked.bloom_filters is not None:
        raise InvalidOption(f"Rows of {asked.table!r} are no data table's.", next_step="Leave the option bloomFilters out.")
    place = CatalogPlace.of(asked.path, asked.storage)
    writer = writer_of(asked)
    rows = arrow_schema(schema)
    database = place.open().database(asked.database)
    put = share_task(database, writer, asked.table, EventKind.PUT)
    by_column = asked.operation is None and OPERATION in rows.names and OPERATION not in put.table.by_name
    if by_column and not pa.types.is_string(rows.field(OPERATION).type):
        raise InvalidRows(
            f"The column {OPERATION!r} is of the type {rows.field(OPERATION).type}, and says no operation.",
            next_step=f"Make it a string that says {', '.join(OPERATIONS)}, or give the option operation, or rename it.",
        )
    kinds = [_KINDS[name] for name in OPERATIONS] if by_column else [_KINDS[asked.operation or "put"]]
    tasks = {kind: put if kind is EventKind.PUT else share_task(database, writer, asked.table, kind) for kind in kinds}
    for kind in kinds:
        if not by_column or kind is EventKind.PUT:
            columns = [name for name in rows.names if not by_column or name not in (OPERATION, VERSION_COLUMN)]
            shown = _stored_as(rows.empty_table().select(columns), put.table)
            checked(put.table, kind, columns_with_ids(put.table, shown, lambda table: _parent_of(database, table, writer)))
    return Write(place, asked, tasks, by_column)


def _parent_of(database: Database, table: Table, writer: str) -> Table:
    assert table.parent is not None
    return database.definition(table.parent.table, by=writer)


def writer_of(asked: WriteOptions) -> str:
    """Who writes: who was named, else the application's own, else this machine's."""
    if asked.writer is not None:
        return writer_id(asked.writer)
    return host_writer(WRITER_PREFIX) if asked.app_id is None else application_writer(asked.app_id)


def application_writer(name: str) -> str:
    """The writer of an application that names none: the same on every machine, for it alone knows what it has committed."""
    text = f"{WRITER_PREFIX}{name}"
    if re.fullmatch(NAME, text, re.ASCII):
        return text
    return f"{WRITER_PREFIX}{hashlib.sha256(name.encode()).hexdigest()[:32]}"


def _some(share: WrittenShare) -> tuple[WrittenShare, ...]:
    return (share,) if share.events else ()


def _takes(table: Table, kind: EventKind, column: str) -> bool:
    """Whether rows of that kind can have the column."""
    if column == VERSION_COLUMN:
        return kind is not EventKind.PUT
    return kind not in _OF_KEYS or column in (*table.key, name_column(table)) or (column == table.id and kind is EventKind.DELETE)


def _stored_as(rows: pa.Table, table: Table) -> pa.Table:
    """Rows of Spark's with the numbers that it has no type for: 64 bits without a sign are decimals there."""
    for at, given in enumerate(rows.schema):
        column = table.by_name.get(given.name)
        if column is not None and column.type is DataType.UINT64 and pa.types.is_decimal(given.type):
            try:
                numbers: Any = rows.column(at).cast(pa.uint64())
            except pa.ArrowInvalid as error:
                raise InvalidRows(
                    f"Column {given.name!r} for table {table.name!r}: {str(error).splitlines()[0]}.",
                    next_step="Give whole numbers from 0 to 18446744073709551615.",
                ) from None
            rows = rows.set_column(at, given.name, numbers)
    return rows
