"""Export: the four tables of the RFD, from a cut of a database into a schema of a PostgreSQL server.

Rows are read in batches and made lines of COPY by Arrow, column by column; all of it is one transaction of the server's. Source: RFD 149,
the four tables and their indexes, and PostgreSQL's text format of COPY.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...catalog import Catalog
from ...errors import InvalidOption, InvalidRows
from ...model.arrays import convert_list, convert_map, hexadecimal, one_chunk
from ...model.times import Time
from ...query.snapshot import Snapshot
from .postgres import OPTIONAL, REQUIRED, TABLES, TYPES, RfdTable, columns_of, connected, driver, find_by_name, shown_key
from .postgres_rows import iso_texts

if TYPE_CHECKING:
    from .postgres import Connection

DELETED_AT = "deleted_at of an import"
_ROWS = 8_192
"""So many rows are made text at once: one array of it holds 2 GiB."""
_INDEXES = {"manta_bucket_deleted_bucket": ("id", "deleted_at"), "manta_bucket_deleted_object": ("id", "deleted_at")}
_KEPT = r'^(?:\{"deleted_at":")?(?P<time>[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z)(?:"\})?$'
"""When something was deleted, as an import keeps it of objects and of buckets."""
_CONTROLS = [chr(code) for code in range(1, 32)]


@dataclass(frozen=True)
class Exported:
    """What an export has written: ``rows`` of each table, headers as ``hstore`` or else as jsonb.

    ``mapped`` counts the tombstones whose time is not that of the catalog, but the one before their import.
    """

    rows: Mapping[str, int]
    mapped: Mapping[str, int]
    hstore: bool


def export_database(
    catalog: Catalog,
    dsn: str,
    *,
    database: str,
    schema: str = "public",
    timestamp: Time | None = None,
    version: str | None = None,
    progress: Callable[[int], None] | None = None,
) -> Exported:
    """Write what is live and what has ended at a cut, by default that of now, into the four tables of a schema; those missing are made.

    It is all there at once, or nothing is. ``InvalidOption`` where a table has rows, or is not the RFD's; ``InvalidRows`` names a row that
    PostgreSQL cannot hold: one without an id or a time, or with a NUL. Lists and maps without entries are NULL. What the core's tables have
    beyond the RFD's columns is left out. What ended before it was imported has the time of then. ``progress`` is told of rows so far.
    """
    snapshot = catalog.snapshot(database=database, timestamp=timestamp, version=version)
    with connected(dsn, schema, read_only=False) as connection:
        columns = _prepared(connection, schema)
        export = _Export(snapshot, connection, columns, progress or (lambda rows: None))
        for table in TABLES:
            export.write(table)
    return Exported(export.rows, export.mapped, columns["manta_bucket_object"]["headers"] == "hstore")


def _prepared(connection: Connection, schema: str) -> Mapping[str, Mapping[str, str]]:
    """The columns of the four tables, which are there and empty from now on."""
    found = columns_of(connection, schema)
    if not {table.name for table in TABLES if table.of == "objects"} <= set(found):
        _make_hstore(connection)
    hstore = find_by_name(connection, schema)
    for table in TABLES:
        if table.name not in found:
            for statement in definition(table, "hstore" if hstore else "jsonb"):
                connection.execute(statement.encode())
        elif connection.execute(f"SELECT 1 FROM {table.name} LIMIT 1".encode()).fetchone() is not None:
            raise InvalidOption(
                f"The table {table.name} of the schema {schema!r} has rows.", next_step="Export into an empty schema."
            )
    return columns_of(connection, schema)


def _make_hstore(connection: Connection) -> None:
    """Have the type of the RFD's headers, where the server comes with it and the user may."""
    with suppress(driver().Error), connection.transaction():
        connection.execute("CREATE EXTENSION IF NOT EXISTS hstore")


def definition(table: RfdTable, headers: str) -> Iterator[str]:
    """The statements that make a table as the RFD has it, with its indexes; ``headers`` is the type of those."""
    lines = []
    for column in table.columns:
        default = column == "deleted_at" or (table.live is None and column in ("created", "modified"))
        kind = headers if column == "headers" else TYPES[column]
        lines.append(
            f"{column} {kind}{' DEFAULT current_timestamp' if default else ''}{' NOT NULL' if column in REQUIRED else ''}"
        )
    if table.live is None:
        lines.append(f"PRIMARY KEY ({', '.join(table.primary_key)})")
    yield f"CREATE TABLE {table.name} ({', '.join(lines)})"
    for column in _INDEXES.get(table.name, ()):
        yield f"CREATE INDEX {table.name}_{column}_idx ON {table.name} ({column})"


@dataclass
class _Export:
    """One run, table by table."""

    snapshot: Snapshot
    connection: Connection
    columns: Mapping[str, Mapping[str, str]]
    progress: Callable[[int], None]
    rows: dict[str, int] = field(default_factory=dict)
    mapped: dict[str, int] = field(default_factory=lambda: {DELETED_AT: 0})

    def write(self, table: RfdTable) -> None:
        """Copy the rows of one table."""
        self.rows[table.name] = 0
        if table.of not in self.snapshot.definitions:
            return
        types = self.columns[table.name]
        names = [name for name in table.columns if name in types]
        with self.connection.cursor().copy(f"COPY {table.name} ({', '.join(names)}) FROM STDIN".encode()) as copy:
            for rows in self._batches(table):
                _refuse_unset(table, rows, [name for name in OPTIONAL if name not in types])
                copy.write(copy_lines(table, rows, names, types))
                self.rows[table.name] += len(rows)
                self.progress(sum(self.rows.values()))

    def _batches(self, table: RfdTable) -> Iterator[pa.Table]:
        kept = "user_metadata" if table.of == "objects" else "properties"
        columns = [*table.columns, kept] if table.live is not None else None
        source = table.name if table.live is None else f"deleted_{table.of}"
        for batch in self.snapshot.scan(source, columns=columns).to_batches():
            for first in range(0, len(batch), _ROWS):
                rows = pa.table(batch.slice(first, _ROWS))
                yield rows if columns is None else self._dated(rows, kept)

    def _dated(self, rows: pa.Table, kept: str) -> pa.Table:
        """Tombstones with the time before the import in place of that of the import."""
        texts = one_chunk(rows[kept])
        if pa.types.is_map(texts.type):
            texts = pc.map_lookup(texts, pa.scalar("deleted_at"), "first")
        before = pc.struct_field(pc.extract_regex(texts, _KEPT), "time")
        self.mapped[DELETED_AT] += len(before) - before.null_count
        ended = pc.coalesce(before, iso_texts(one_chunk(rows["deleted_at"])))
        return rows.set_column(rows.schema.get_field_index("deleted_at"), "deleted_at", ended)


def _refuse_unset(table: RfdTable, rows: pa.Table, lacking: Sequence[str]) -> None:
    """``InvalidRows`` for a row without what the RFD's tables always have, or with what these tables lack."""
    for name in table.columns:
        if name in REQUIRED:
            _refuse(table, rows, rows[name].is_null(), f"has no {name}", "Export another version, or give it one.")
    for name in set(lacking) & set(rows.column_names):
        next_step = "Add the column, or export into a schema without tables."
        _refuse(table, rows, rows[name].is_valid(), f"has {name}, for which there is no column", next_step)


def _refuse(table: RfdTable, rows: pa.Table, wrong: pa.ChunkedArray, what: str, next_step: str) -> None:
    at = pc.index(wrong, True).as_py()
    if at >= 0:
        row = rows.slice(at, 1).to_pylist()[0]
        raise InvalidRows(f"A row for {table.name} {what} ({shown_key(table, row)}).", next_step=next_step)


def copy_lines(table: RfdTable, rows: pa.Table, names: Sequence[str], types: Mapping[str, str]) -> bytes:
    """Rows in the text format of COPY. ``InvalidRows`` for one with a NUL, which no text of PostgreSQL's has."""
    fields = [pc.fill_null(_escaped(_field(one_chunk(rows[name]), name, types[name])), r"\N") for name in names]
    lines = pc.binary_join_element_wise(*fields, "\t")
    nul = pc.match_substring(lines, "\0")
    _refuse(table, rows, nul, "has a NUL, which PostgreSQL does not take", "Rename it, or leave that out, in the catalog.")
    whole = pc.binary_join_element_wise(lines, "", "\n")
    offsets = np.frombuffer(whole.buffers()[1], dtype=np.int32, count=len(whole) + 1, offset=4 * whole.offset)
    return bytes(memoryview(whole.buffers()[2])[offsets[0] : offsets[-1]]) if len(whole) else b""


def _field(values: pa.Array, name: str, kind: str) -> pa.Array:
    """A column as the texts that PostgreSQL reads as its values."""
    if name == "headers":
        return _as_hstore(values) if kind == "hstore" else _as_json(values)
    if pa.types.is_list(values.type):
        return _within("{", pc.binary_join(convert_list(values, _quoted), ","), "}")
    if pa.types.is_binary(values.type):
        return _within(r"\x", hexadecimal(values), "")
    return iso_texts(values) if pa.types.is_timestamp(values.type) else values.cast(pa.string())


def _as_hstore(values: pa.Array) -> pa.Array:
    return pc.binary_join(_pairs(convert_map(values, _quoted, _quoted), "=>"), ",")


def _as_json(values: pa.Array) -> pa.Array:
    return _within("{", pc.binary_join(_pairs(convert_map(values, _json_text, _json_text), ":"), ","), "}")


def _pairs(maps: pa.Array, between: str) -> pa.Array:
    """Maps of text as lists of pairs."""
    pairs = pc.binary_join_element_wise(maps.keys, maps.items, between)
    return pa.ListArray.from_arrays(maps.offsets, pairs, mask=maps.is_null())


def _within(before: str, values: pa.Array, after: str) -> pa.Array:
    return pc.binary_join_element_wise(before, values, after, "")


def _quoted(values: pa.Array) -> pa.Array:
    """Text as an element of an array, or of hstore."""
    return _within('"', _replaced(values, {"\\": r"\\", '"': r"\""}), '"')


def _json_text(values: pa.Array) -> pa.Array:
    text = _replaced(values, {"\\": r"\\", '"': r"\""})
    if pc.any(pc.match_substring_regex(text, "[\x01-\x1f]"), min_count=0).as_py():
        text = _replaced(text, {control: f"\\u{ord(control):04x}" for control in _CONTROLS})
    return _within('"', text, '"')


def _escaped(values: pa.Array) -> pa.Array:
    """Text as a field of COPY."""
    return _replaced(values, {"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"})


def _replaced(values: pa.Array, replacements: Mapping[str, str]) -> pa.Array:
    for found, replacement in replacements.items():
        values = pc.replace_substring(values, found, replacement)
    return values
