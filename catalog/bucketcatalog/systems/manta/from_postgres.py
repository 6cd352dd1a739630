"""Import: the four tables of the RFD from a PostgreSQL server into the core tables of a database of its own.

Rows are read in batches, each by one COPY in the order of an index of the server's, shaped into JSON by the server and parsed by Arrow.
Each batch is one transaction, whose metadata says up to where the tables have been read. Source: RFD 149, the four tables.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from ...catalog import Catalog
from ...errors import InvalidOption, InvalidRows, StaleBatch
from ...query.snapshot import Snapshot
from ...write.writer import Writer
from .garbage import TABLE as GARBAGE_TABLE
from .placement import TABLE as PLACEMENT_TABLE
from .postgres import TABLES, TYPES, RfdTable, columns_of, connected, find_by_name
from .postgres_rows import EMPTY, NULL_VALUES, mapped, parsed, refuse, selection, to_core

if TYPE_CHECKING:
    from .postgres import Connection

APP = "manta-import:"
"""What the application of a batch is called, with the table's name behind it."""
HstoreNulls = Literal["refuse", "empty"]
Key = Sequence[str]


@dataclass(frozen=True)
class Imported:
    """What an import has done: ``rows`` of each table of the RFD, in ``batches``, after those of earlier runs where it has ``resumed``.

    ``mapped`` counts what PostgreSQL has and the catalog has not: empty lists and maps, which became none, and NULL values of headers,
    which became empty text.
    """

    rows: Mapping[str, int]
    mapped: Mapping[str, int]
    batches: int
    resumed: bool


def import_database(
    catalog: Catalog,
    dsn: str,
    *,
    database: str,
    writer: str,
    schema: str = "public",
    batch: int = 10_000,
    hstore_nulls: HstoreNulls = "refuse",
    progress: Callable[[int], None] | None = None,
) -> Imported:
    """Import the four tables of a schema; what was imported of it already is not read again. ``progress`` is told of rows so far.

    It is all as of one moment, where no run has died: the server keeps that moment for as long as the import takes. The next run goes on
    after the last batch, and of what has changed by then before that place it sees nothing: live rows that were overwritten or deleted stay
    as they were, and new ones are missing, as are deletions that a transaction begun earlier has told late. Where deleted rows have come
    after live ones were imported that is ``InvalidOption``. So stop the service, or import a copy of its database, where a run may die.

    A deleted row ends when it is imported, and its age as garbage counts from there; when it was deleted is kept (``user_metadata`` of
    objects and ``properties`` of buckets, ``deleted_at``), and an export gives that. Several schemas of distinct keys, such as those of
    virtual nodes, can be imported into one database; one is known by its server's system identifier, its database and its name, so that a
    dump restored elsewhere is another. ``InvalidOption`` where the catalog's database has buckets or objects that no import put there, and
    for tables that are not the RFD's; ``InvalidRows`` names the first row of a batch that the catalog cannot hold, and nothing of the batch
    is committed.
    """
    if batch < 1:
        raise InvalidOption(f"A batch cannot have {batch} rows.", next_step="Give 1 or more, such as 10000.")
    if hstore_nulls not in ("refuse", "empty"):
        raise InvalidOption(f"hstore_nulls cannot be {hstore_nulls!r}.", next_step="Give refuse or empty.")
    with connected(dsn, schema, read_only=True) as connection:
        columns = columns_of(connection, schema)
        for table in TABLES:
            if table.name not in columns:
                raise InvalidOption(
                    f"The schema {schema!r} has no table {table.name}, or none that may be read.",
                    next_step="Name the schema of the four tables, or let the user of the DSN SELECT from them.",
                )
        find_by_name(connection, schema)
        source = _identity(connection, schema)
        past = _Past.of(catalog.database(database).look(), source, database, writer)
        with catalog.writer(writer, database=database) as held:
            held.declare([GARBAGE_TABLE, PLACEMENT_TABLE])  # by which readers of the database find that it is a Manta's
            reader = _Reader(connection, columns, batch, hstore_nulls == "empty")
            run = _Import(held, reader, source, past, catalog.database(database).look, progress or (lambda rows: None))
            for table in TABLES:
                run.take(table)
    return Imported(run.rows, run.mapped, run.batches, bool(past.markers))


def _identity(connection: Connection, schema: str) -> str:
    """What tells this schema from others, as JSON: markers are of one alone."""
    may_ask = connection.execute("SELECT has_function_privilege('pg_control_system()', 'execute')").fetchone()
    if may_ask is None or not may_ask[0]:
        raise InvalidOption(
            "The server does not say which one it is, so that an import of another one could be taken for a part of this.",
            next_step="Let an administrator run: GRANT EXECUTE ON FUNCTION pg_control_system() TO the user of the DSN.",
        )
    query = "SELECT system_identifier::text, current_database()::text FROM pg_control_system()"
    found = connection.execute(query.encode()).fetchone()
    assert found is not None
    return json.dumps({"server": found[0], "database": found[1], "schema": schema}, sort_keys=True)


@dataclass(frozen=True)
class _Past:
    """What earlier imports have left: up to where each table of this source was read, the last batch of each, whether other sources have
    rows here too."""

    markers: Mapping[str, Key]
    versions: Mapping[str, int]
    by_others: int
    has_others: bool

    @classmethod
    def of(cls, snapshot: Snapshot, source: str, database: str, writer: str) -> _Past:
        """What the log says of them; ``InvalidOption`` where the database has rows of somebody else's."""
        log = snapshot.scan("log").to_arrow()
        is_import = pc.fill_null(pc.starts_with(log["app_id"], APP), False)
        imports = log.filter(is_import).sort_by([("commit_timestamp", "ascending"), ("revision", "ascending")]).to_pylist()
        if not imports or pc.any(pc.greater(log.filter(pc.invert(is_import))["events"], 0), min_count=0).as_py():
            _refuse_others(snapshot, {(row["writer"], row["revision"]) for row in imports}, database)
        versions: dict[str, int] = {}
        for row in imports:
            versions[row["app_id"]] = max(row["app_version"], versions.get(row["app_id"], 0))
        has_others = any(dict(row["metadata"] or ()).get("source") != source for row in imports)
        return cls(_markers(imports, source), versions, batches_of_others(snapshot, writer), has_others)


def batches_of_others(snapshot: Snapshot, writer: str) -> int:
    """How many batches others than a writer have committed: as many as before, as long as no other run is under way."""
    log = snapshot.scan("log", columns=["writer", "app_id"]).to_arrow()
    is_theirs = pc.and_(pc.fill_null(pc.starts_with(log["app_id"], APP), False), pc.not_equal(log["writer"], writer))
    return int(pc.sum(is_theirs, min_count=0).as_py())


def _markers(imports: Sequence[Mapping[str, Any]], source: str) -> dict[str, Key]:
    """Up to where each table of a source has been read by the last of these batches that are of it."""
    said = (dict(row["metadata"] or ()) for row in reversed(imports))
    return next((json.loads(each["markers"]) for each in said if each.get("source") == source), {})


def _refuse_others(snapshot: Snapshot, imports: set[tuple[str, int]], database: str) -> None:
    for table in ("buckets", "objects"):
        for name in (table, f"deleted_{table}") if table in snapshot.definitions else ():
            for batch in snapshot.scan(name, columns=["_writer", "_revision"]).to_batches():
                commits = pa.Table.from_batches([batch]).group_by(["_writer", "_revision"]).aggregate([])
                if not {tuple(row.values()) for row in commits.to_pylist()} <= imports:
                    strangers = {tuple(row.values()) for row in commits.to_pylist()} - imports
                    raise InvalidOption(
                        f"The database {database!r} has {name} that no import put there, or whose log was pruned: those of the commit "
                        "{}@{}.".format(*min(strangers)),
                        next_step="Import into a database of its own, and let nobody write there before it is done.",
                    )


@dataclass
class _Import:
    """One run: table by table, batch by batch."""

    writer: Writer
    reader: _Reader
    source: str
    past: _Past
    look: Callable[[], Snapshot]
    progress: Callable[[int], None]
    rows: dict[str, int] = field(default_factory=dict)
    mapped: dict[str, int] = field(default_factory=lambda: {EMPTY: 0, NULL_VALUES: 0})
    batches: int = 0

    def __post_init__(self) -> None:
        self._markers = dict(self.past.markers)
        self._versions = dict(self.past.versions)

    def take(self, table: RfdTable) -> None:
        """Import what lies behind the marker of a table."""
        self.rows[table.name] = 0
        while True:
            marker = self._markers.get(table.name)
            last = self.reader.last(table, marker)
            found = self.reader.rows(table, marker, last)
            if len(found):
                if table.live in self._markers:
                    raise _too_late(table)
                self._commit(table, found)
            if last is None:
                return

    def _commit(self, table: RfdTable, found: pa.Table) -> None:
        refuse(table, found)
        now = self.look()
        self._refuse_another_run(table, now)
        rows = to_core(table, found)
        if self.past.has_others:
            _refuse_known(table, now, rows.select(list(table.primary_key)).to_pylist())
        end = found.slice(len(found) - 1).select(list(table.key)).to_pylist()[0]
        self._markers[table.name] = list(end.values())
        app = f"{APP}{table.name}"
        self._versions[app] = self._versions.get(app, 0) + 1
        metadata = {"source": self.source, "markers": json.dumps(self._markers, sort_keys=True)}
        with self.writer.transaction(operation="import", metadata=metadata, app_id=app, app_version=self._versions[app]) as tx:
            tx.put(table.of, rows)
            if table.live is not None:
                tx.delete(table.of, rows.select(list(table.primary_key)).group_by(list(table.primary_key)).aggregate([]))
        if tx.committed is None:
            raise _another_run(table)
        self.batches += 1
        self.rows[table.name] += len(found)
        new = mapped(found)
        self.mapped = {name: count + new[name] for name, count in self.mapped.items()}
        self.progress(sum(self.rows.values()))

    def _refuse_another_run(self, table: RfdTable, now: Snapshot) -> None:
        """``StaleBatch`` where a run on another machine, under another writer, imports the same: each row would end what that has put."""
        if batches_of_others(now, self.writer.id) != self.past.by_others:
            raise _another_run(table)


def _refuse_known(table: RfdTable, now: Snapshot, keys: Sequence[Mapping[str, Any]]) -> None:
    """``InvalidRows`` for a row under whose key another schema has brought a live one, which it would end."""
    live = now.get_all(table.of, keys, columns=list(table.primary_key)) if table.of in now.definitions else []
    if (known := next((row for row in live if row is not None), None)) is not None:
        raise InvalidRows(
            f"{table.name} has a row of the key {tuple(known.values())!r}, which another schema has brought too.",
            next_step="Import schemas that share keys into databases of their own.",
        )


def _another_run(table: RfdTable) -> StaleBatch:
    return StaleBatch(
        f"Another import has committed a batch of {table.name} meanwhile.", next_step="Let one run at a time import."
    )


def _too_late(table: RfdTable) -> InvalidOption:
    """To put them would end what is live by now, and nobody knows of which live rows they were the earlier ones."""
    return InvalidOption(
        f"{table.name} has got rows since rows of {table.live} were imported.",
        next_step="Import into a new database, and let nothing change the tables until it is done.",
    )


@dataclass(frozen=True)
class _Reader:
    """Reads batches of so many rows, and of whole ties."""

    connection: Connection
    columns: Mapping[str, Mapping[str, str]]
    batch: int
    nulls_are_empty: bool

    def last(self, table: RfdTable, marker: Key | None) -> Key | None:
        """The key of the last row of the batch after the marker; None where it is not full, and the last."""
        where, values = _range(table, marker, None)
        if table.live is not None:
            # Of their key the index has the time alone: what is sorted is what ended by the time of the last row, and not all the rest.
            after = "" if marker is None else f"WHERE deleted_at > %s::{TYPES['deleted_at']}"
            nth = f"SELECT deleted_at FROM {table.name} {after} ORDER BY deleted_at OFFSET {self.batch - 1} LIMIT 1"
            where += f" {'AND' if where else 'WHERE'} deleted_at <= coalesce(({nth}), 'infinity')"
            values += [] if marker is None else [marker[0]]
        key = ", ".join(table.key)
        texts = ", ".join(f"{name}::text" for name in table.key)
        found = f"SELECT {key} FROM {table.name} {where} ORDER BY {key} OFFSET {self.batch - 1} LIMIT 1"
        return self.connection.execute(f"SELECT {texts} FROM ({found}) k".encode(), values).fetchone()

    def rows(self, table: RfdTable, marker: Key | None, last: Key | None) -> pa.Table:
        """The rows after the marker up to the last one, or all that are left."""
        types = self.columns[table.name]
        select = selection(table, types, nulls_are_empty=self.nulls_are_empty)
        where, values = _range(table, marker, last)
        shaped = f"{select} {where} ORDER BY {', '.join(table.key)}"
        # JSON has neither control characters nor line breaks: with such as quote and delimiter what comes is JSON, line by line.
        query = rf"COPY (SELECT row_to_json(r) FROM ({shaped}) r) TO STDOUT (FORMAT csv, QUOTE E'\x01', DELIMITER E'\x02')"
        with self.connection.cursor().copy(query.encode(), values) as copy:
            data = b"".join(copy)
        if len(data) >= 1 << 31:
            raise InvalidOption(
                f"{self.batch} rows of {table.name} are too many at once.", next_step="Import in smaller batches."
            )
        return parsed(data, {name: types[name] for name in table.columns if name in types})


def _range(table: RfdTable, marker: Key | None, last: Key | None) -> tuple[str, list[str]]:
    """The condition that rows lie after the marker and not after the last one, by the server's own order, and its values."""
    key = ", ".join(table.key)
    values = ", ".join(f"%s::{TYPES[name]}" for name in table.key)
    ends = [(sign, end) for sign, end in ((">", marker), ("<=", last)) if end is not None]
    conditions = " AND ".join(f"({key}) {sign} ({values})" for sign, _ in ends)
    return f"WHERE {conditions}" if ends else "", [value for _, end in ends for value in end]
