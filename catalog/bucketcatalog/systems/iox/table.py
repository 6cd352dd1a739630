"""A data table as Python has it: ``cat.data(NAME)``.

Every change is one transaction of one writer. While the table is open as a context it holds its writer; else each call opens one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import Any, Self, cast

import pyarrow as pa
import pyarrow.compute as pc

from ... import clock
from ...catalog import DEFAULT_DATABASE, Catalog
from ...clock import now_us
from ...errors import InvalidOption, NotFound, UnknownTable
from ...model.arrays import one_chunk
from ...model.names import host_writer, is_compactor, names_given, writer_id
from ...model.times import Time
from ...query.filtered import Condition
from ...query.reads import Read
from ...query.row_tests import Conditions, comparisons
from ...query.snapshot import Snapshot, asked_for
from ...write.commit import Committed
from ...write.host_turn import host_turn
from ...write.intake import Rows, as_arrow
from ...write.transaction import WriteTransaction
from ...write.writer import Writer
from .bloom_filters import refuse_filters
from .compact import Compacted
from .files import FILES, add_files
from .live import Live
from .names import BEGINS, DEFAULT_PARTITION, escaped
from .plan import may_have
from .predicates import delete_rows, settled
from .read import DataRead
from .restore import Restored, restore
from .schemas import on_conflict
from .write import CLOCK_OF_WRITES, WriteFiles, batches_of, begin_write, checked, filtered_in

WRITER_PREFIX = "data-"
Given = Rows | str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""What is appended: rows, or the paths or URLs of Parquet files."""


class DataTable:
    """A table of rows in Parquet files, in one database of a catalog.

    ``writer`` is who commits, by default this machine's. Opening it reads nothing and creates nothing: the first file makes the table.
    """

    def __init__(
        self,
        catalog: Catalog,
        table: str,
        *,
        database: str | None = None,
        writer: str | None = None,
        clock: Callable[[], int] = now_us,
    ) -> None:
        escaped(table, "data table")
        self.name = table
        self._catalog = catalog
        self._clock = clock
        self._database = database
        self._named = None if writer is None else writer_id(writer)
        self._stack: ExitStack | None = None
        self._writer: Writer | None = None
        self._schemas: frozenset[str] = frozenset()
        self._key: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        return f"DataTable({self.name!r}, {self._catalog.url!r})"

    def append(
        self,
        rows: Given,
        *,
        partition: str = DEFAULT_PARTITION,
        key: Sequence[str] | None = None,
        clock: int | None = None,
        app_id: str | None = None,
        app_version: int | None = None,
        bloom_filters: Sequence[str] | None = None,
    ) -> Committed | None:
        """Add rows, or those of Parquet files, which are written anew, in one commit; None where there is nothing to add.

        Rows that have a column ``_partition`` go to the partition that it names, others to ``partition``. ``key`` are the columns that tell
        rows apart: of rows of a partition that are equal there the one with the newest logical ``clock`` counts, by default the time of
        the write. It is the table's as long as it has files. With ``app_id`` and ``app_version`` rows are added once, however often that is
        called. ``bloom_filters`` are columns of text, bytes or whole numbers, by whose values row groups are found; without them what
        comes from files has filters of the columns of which one of these has any.

        ``InvalidRows`` for what no file can have, ``InvalidOption`` for a key that is not the table's, or a column without filters.
        """
        with self._open() as writer:
            written_from = self._catalog.store.now_us()
            columns = self._key_for(writer, key)
            files = begin_write(
                writer.id,
                writer.database,
                self.name,
                partition=partition,
                key_columns=columns,
                clock=clock,
                bloom_filters=_filtered(rows, bloom_filters),
            )
            of_table = None if app_id is None else f"{app_id}:{BEGINS}{self.name}"  # as Spark numbers it
            transaction = writer.transaction(
                operation="append", metadata={"write": files.write}, app_id=of_table, app_version=app_version
            )
            is_done = of_table is not None and app_version is not None and writer.has_committed(of_table, app_version)
            written = [] if is_done else files.write_rows(self._catalog.store, self._given(rows, files, bloom_filters or ()))
            if not written and app_id is None:
                return None
            with transaction as tx:
                tx.rests_on(written_from=written_from)
                add_files(tx, written, self._schemas)
            if not is_done:
                self._schemas |= {each.row["schema"] for each in written}
            self._key = columns
        return tx.committed

    def remove(self, files: Sequence[str] | None = None, *, partition: str | None = None) -> Committed | None:
        """Remove files, by their chunks or paths, or all of a partition; their rows count no more. None for a partition without files.

        ``NotFound`` names a file that is not there, and then none is removed.
        """
        if (files is None) is (partition is None):
            raise InvalidOption("Either files are removed, or a partition.", next_step="Give files=[...] or partition=...")
        with self._changing() as (writer, live, snapshot):
            if files is None:
                found = live.files.filter(pc.equal(live.files["partition"], partition))
            else:
                named = pa.array(names_given(files, "files", "files=[CHUNK]"), pa.string())
                is_one = pc.or_(pc.is_in(live.files["chunk"], value_set=named), pc.is_in(live.files["path"], value_set=named))
                found = live.files.filter(is_one)
                self._refuse_unknown(named, found)
            if not len(found):
                return None
            with writer.transaction(operation="remove") as tx:
                tx.rests_on(snapshot)
                live.end(tx, found)
                self._delete(tx, writer, live.where_added(found))
            self._key = None  # of a table without files it may become another
            return tx.committed

    def delete_where(self, where: Conditions) -> Committed | None:
        """Delete the rows that meet every condition, of the files that are there now; None where no file may have such rows.

        ``where`` maps columns to conditions as a scan takes them, or lists column, comparison and value, such as
        ``[("host", "!=", "a"), ("time", "<", T)]``; a value that is null meets none but ``is null``. No file is opened or written: what is
        deleted is left out by whoever reads, and gone with the next compaction. Of a table with a key the conditions are on its columns.
        """
        conditions = comparisons(where)
        if not conditions:
            raise InvalidOption("Nothing says which rows are deleted.", next_step="Give a condition, or remove the files.")
        with self._changing() as (writer, live, snapshot):
            live.refuse_outside_of_key(conditions)
            columns = live.merged("cast").schema
            now = clock.now_us()
            conditions = tuple(settled(each, self.name, columns, now) for each in conditions)
            found = may_have(snapshot, live, conditions, columns)
            if not len(found):
                return None
            with writer.transaction(operation="delete where") as tx:
                tx.rests_on(snapshot)
                delete_rows(
                    tx,
                    self._catalog.store,
                    (writer.id, writer.database),
                    self.name,
                    live.where_added(found),
                    conditions,
                    time=CLOCK_OF_WRITES.next(),
                )
            return tx.committed

    def compact(self, *, partition: str | None = None, writer: str | None = None, **options: Any) -> Compacted:
        """Make large files of small ones, in this process; see ``Compaction`` for ``options``, and Spark's ``jobs.compact_data``.

        A compactor commits it: ``writer``, else the table's own if that is one, else this machine's.
        """
        if writer is None and self._named is not None and is_compactor(self._named):
            writer = self._named
        database = self._catalog.resolve_database(self._database)
        found = self._catalog.run_job(
            "iox.compact", database=database, writer=writer, clock=self._clock, table=self.name, partition=partition, **options
        )
        assert isinstance(found, Compacted)
        return found

    def restore(self, *, timestamp: Time | None = None, version: str | int | None = None, dry_run: bool = True) -> Restored:
        """Make the table what it was at a time or version, in one transaction: files, deletions and statistics; see ``restore``.

        Without ``dry_run=False`` nothing is written, and it says what would be.
        """
        if timestamp is None and version is None:
            raise InvalidOption("A restore needs a time or a version.", next_step="Say which state the table is to have again.")
        if dry_run:
            now = self._snapshot(None, None)
            then = self._catalog.snapshot(database=now.database, timestamp=timestamp, version=version)
            return restore(None, then, now, self.name)
        with self._changing() as (writer, _, now):
            then = self._catalog.snapshot(database=writer.database, timestamp=timestamp, version=version)
            self._key = None
            return restore(writer, then, now, self.name)

    def files(self, *, timestamp: Time | None = None, version: str | int | None = None) -> pa.Table:
        """The files that the table has, as ``iox.parquet_files`` has them."""
        snapshot = self._snapshot(timestamp, version)
        self._live(snapshot)  # an error of its own where there is none
        return snapshot.scan(FILES, where={"table": self.name}).to_arrow()

    def scan(
        self,
        *,
        columns: Sequence[str] | None = None,
        where: Condition | None = None,
        timestamp: Time | None = None,
        version: str | int | None = None,
        on_schema_conflict: str = "cast",
    ) -> Read:
        """The rows now, at a time, or at a version; see ``Snapshot.scan``.

        ``on_schema_conflict``: ``cast`` shows what files of different columns have in common types, ``error`` takes no difference, ``skip``
        leaves out the files that do not go together with older ones. ``UnknownTable`` where no file was ever added.
        """
        snapshot = self._snapshot(timestamp, version)
        names, conditions = asked_for(columns, where)
        return DataRead.meeting(snapshot, self._live(snapshot), names, conditions, on_conflict(on_schema_conflict))

    def close(self) -> None:
        """Give the writer up."""
        if self._stack is not None:
            self._stack.close()
        self._stack = self._writer = None

    def __enter__(self) -> Self:
        self._stack = ExitStack()
        self._writer = self._stack.enter_context(self._opened(self._database or DEFAULT_DATABASE))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _given(self, rows: Given, files: WriteFiles, filtered: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Rows in batches as files hold them; sources are read one after the other. All have to have the columns ``filtered``."""
        if (sources := _sources(rows)) is not None:
            found: Iterator[pa.Table] = (pa.Table.from_batches([batch]) for source in sources for batch in batches_of(source))
        else:
            found = iter([as_arrow(f"{BEGINS}{self.name}", cast(Rows, rows))])
        for some in found:
            stored = checked(some, files)
            refuse_filters(stored.schema, filtered, self.name)
            yield from stored.to_batches()

    def _refuse_unknown(self, named: pa.Array, found: pa.Table) -> None:
        known = pa.concat_arrays([one_chunk(found["chunk"]), one_chunk(found["path"])])
        unknown = named.filter(pc.invert(pc.is_in(named, value_set=known)))
        if len(unknown):
            raise NotFound(
                f"Data table {self.name!r} has no file {unknown[0].as_py()!r} now.",
                next_step="Look what files it has: a compaction may have made larger ones of them.",
            )

    def _key_for(self, writer: Writer, key: Sequence[str] | None) -> tuple[str, ...]:
        """The table's key, which the first rows say; what is known is not looked up again."""
        known = self._key
        if known is None:
            live = Live.of(self._catalog.database(writer.database).look(), self.name)
            if live is not None:
                self._schemas = frozenset(live.by_schema)
                known = live.key_columns if len(live.left) else None  # one without files takes any
        given = None if key is None else names_given(key, "columns", "key=['host', 'time']")
        if known is None:
            return given or ()
        if given is not None and given != known:
            raise InvalidOption(
                f"The key of data table {self.name!r} is {', '.join(known) or 'none'}, and not {', '.join(given) or 'none'}.",
                next_step="Leave key out, or append to another table.",
            )
        return known

    def _delete(self, tx: WriteTransaction, writer: Writer, chunks: Sequence[str]) -> None:
        place = writer.id, writer.database
        delete_rows(tx, self._catalog.store, place, self.name, chunks, time=CLOCK_OF_WRITES.next())

    @contextmanager
    def _changing(self) -> Iterator[tuple[Writer, Live, Snapshot]]:
        """A writer, and what the table has now."""
        with self._open(self._catalog.resolve_database) as writer:
            snapshot = self._catalog.database(writer.database).look()
            yield writer, self._live(snapshot), snapshot

    def _live(self, snapshot: Snapshot) -> Live:
        live = Live.of(snapshot, self.name)
        if live is None:
            raise UnknownTable(
                f"Database {snapshot.database!r} has no data table {self.name!r}.",
                next_step="Append rows to it, and it is there.",
            )
        return live

    def _snapshot(self, timestamp: Time | None, version: str | int | None) -> Snapshot:
        return self._catalog.snapshot(database=self._database, timestamp=timestamp, version=version)

    @contextmanager
    def _open(self, resolved: Callable[[str | None], str] = lambda database: database or DEFAULT_DATABASE) -> Iterator[Writer]:
        """The writer: that of the context, else one of its own, in the database that ``resolved`` says."""
        if self._writer is not None:
            yield self._writer
            return
        with self._opened(resolved(self._database)) as writer:
            yield writer

    @contextmanager
    def _opened(self, database: str) -> Iterator[Writer]:
        with (
            host_turn(self._catalog.store, database, named=self._named, default=host_writer(WRITER_PREFIX)) as chosen,
            self._catalog.writer(chosen, database=database, clock=self._clock) as writer,
        ):
            yield writer


def _sources(rows: Given) -> Sequence[str | os.PathLike[str]] | None:
    """The paths or URLs that are given; None for rows."""
    if isinstance(rows, (str, os.PathLike)):
        return [rows]
    if isinstance(rows, (list, tuple)) and rows and all(isinstance(each, (str, os.PathLike)) for each in rows):
        return cast(Sequence[str | os.PathLike[str]], rows)
    return None


def _filtered(rows: Given, named: Sequence[str] | None) -> tuple[str, ...]:
    """The columns that are to have Bloom filters: those that are named, else those that the files have which are given."""
    if named is not None:
        return names_given(named, "columns", "bloom_filters=['host']")
    return tuple({name: None for source in _sources(rows) or () for name in filtered_in(source)})
