"""Files: rows of a partition as one Parquet file, what it says of itself, and what the catalog says of it.

A file says whose write it is of before anything is committed, so whoever has nothing but files can tell what they are (persistence
document, section 2.6). Rows that somebody adds are stored as they came, with their columns and no others. A file that compaction makes has
beside them the columns ``_chunk``, which says in which file a row was added, and where the table has a key ``_clock``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ...clock import uuid7
from ...errors import CorruptionError, InvalidRows
from ...model.arrays import leaves
from ...store.base import Store
from ...store.retry import put_retrying
from ...write.transaction import WriteTransaction
from .bloom_filters import Fetch, filtered_columns, read_filters
from .names import file_path
from .statistics import TABLE as STATISTICS
from .statistics import statistics_of

FILES, SCHEMAS = "iox.parquet_files", "iox.schemas"
CHUNK, CLOCK = "_chunk", "_clock"
OF_ROWS = (CHUNK, CLOCK)
"""What a compacted file says of each row."""
SAYS = b"bucketcatalog.data"
"""Under which key of its metadata a file says what it is."""
ROW_GROUP_ROWS = 131_072
_FALSE_POSITIVES = 0.01
_FEW_ROWS = 64
_LOOKED_AT, _REPEATED = 4_096, 4
"""Of how many values it is looked how many differ, and how often each has to come for them to be written as a dictionary."""


@dataclass(frozen=True)
class About:
    """What a file says of itself. ``origins`` and ``applied`` are those of a file that compaction has made."""

    write: str
    writer: str
    database: str
    table: str
    partition: str
    chunk: str
    first_clock: int
    last_clock: int
    key_columns: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    applied: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """Where it lies."""
        return file_path(self.writer, self.database, self.partition, self.table, self.chunk)

    def encoded(self) -> bytes:
        """As the file's metadata has it."""
        return json.dumps({"version": 1, **asdict(self)}, ensure_ascii=False, sort_keys=True).encode()

    @classmethod
    def parse(cls, metadata: Mapping[bytes, bytes] | None, name: str) -> About:
        """What the metadata of the file of that name says; ``CorruptionError`` where that is nothing that a file says."""
        try:
            said: dict[str, Any] = json.loads((metadata or {})[SAYS])
            if said.pop("version") != 1:
                raise ValueError("it was written by a later release")
            fields: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in said.items()}
            return cls(**fields)
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise CorruptionError(f"{name} does not say which file of a data table it is: {error}.") from None


@dataclass(frozen=True)
class Written:
    """A file that was put: its row in ``iox.parquet_files``, those in ``iox.statistics``, and its schema. Picklable."""

    row: Mapping[str, Any]
    statistics: pa.Table = field(repr=False)
    schema: pa.Schema = field(repr=False)


def new_id(time: int) -> str:
    """An id that nothing else has: of a write, a chunk or a predicate that begins at that time in microseconds."""
    return str(uuid7(time))


def put_file(store: Store, rows: pa.Table, about: About, bloom_filters: Sequence[str] = ()) -> Written:
    """Put a file with these rows, and Bloom filters of some columns; ``InvalidRows`` where Parquet cannot have them."""
    data, metadata = _encoded(rows, about, bloom_filters)
    put_retrying(store, about.path, data)
    return described(about, metadata, rows.schema, len(data), lambda at, length: data[at : at + length])


def described(about: About, metadata: Any, stored: pa.Schema, size: int, fetch: Fetch | None) -> Written:
    """What the catalog says of a file of that ``size``, given its footer's ``metadata`` and the schema of what is ``stored`` in it.

    ``fetch`` gives bytes of the file, of Bloom filters alone; without it these are left out.
    """
    schema = bare(stored)
    filtered = filtered_columns(metadata, schema)
    filters = read_filters(metadata, schema, filtered, size, fetch) if filtered and fetch is not None else {}
    row = {
        "table": about.table,
        "partition": about.partition,
        "chunk": about.chunk,
        "path": about.path,
        "size": size,
        "rows": metadata.num_rows,
        "row_groups": metadata.num_row_groups,
        "schema": schema_id(schema),
        "key_columns": list(about.key_columns),
        "first_clock": about.first_clock,
        "last_clock": about.last_clock,
        "write": about.write,
        "origins": list(about.origins),
        "applied": list(about.applied),
        "bloom_filters": filtered,
    }
    place = {name: row[name] for name in ("table", "partition", "chunk")}
    return Written(row, statistics_of(metadata, schema, place, filters), schema)


def add_files(transaction: WriteTransaction, written: Sequence[Written], known: Iterable[str]) -> None:
    """Name files of one data table in a transaction; the schemas that are ``known``, by their ids, are not told again."""
    if not written:
        return
    table = written[0].row["table"]
    transaction.put(FILES, [dict(each.row) for each in written])
    transaction.put(STATISTICS, _as_given(pa.concat_tables([each.statistics for each in written])))
    schemas = {each.row["schema"]: each.schema for each in written}
    new = [schema_row(table, schema) for name, schema in schemas.items() if name not in known]
    if new:
        transaction.put(SCHEMAS, new)


def _as_given(statistics: pa.Table) -> pa.Table | list[dict[str, Any]]:
    """Few rows one by one, as which a transaction carries them in less time and fewer bytes; many as they are."""
    if len(statistics) > _FEW_ROWS:
        return statistics
    return [{name: value for name, value in row.items() if value is not None} for row in statistics.to_pylist()]


def schema_id(schema: pa.Schema) -> str:
    """What a schema is called: equal ones alike."""
    return hashlib.sha256(schema.serialize().to_pybytes()).hexdigest()[:32]


def schema_row(table: str, schema: pa.Schema) -> dict[str, Any]:
    """The row of ``iox.schemas`` about a schema."""
    fields = [{"name": each.name, "type": str(each.type), "nullable": each.nullable} for each in schema]
    return {"table": table, "schema": schema_id(schema), "fields": fields, "arrow": schema.serialize().to_pybytes()}


def bare(schema: pa.Schema) -> pa.Schema:
    """The columns alone, without metadata and without what compaction says of rows."""
    return pa.schema([pa.field(each.name, each.type, each.nullable) for each in schema if each.name not in OF_ROWS])


def _encoded(rows: pa.Table, about: About, bloom_filters: Sequence[str]) -> tuple[bytes, Any]:
    """The bytes of a file, and its footer as pyarrow has it."""
    sink, found = pa.BufferOutputStream(), list[Any]()
    wanted = {"ndv": max(1, min(len(rows), ROW_GROUP_ROWS)), "fpp": _FALSE_POSITIVES}  # folded to what the values need
    told = rows.replace_schema_metadata({**(rows.schema.metadata or {}), SAYS: about.encoded()})
    try:
        pq.write_table(
            told,
            sink,
            row_group_size=ROW_GROUP_ROWS,
            compression="zstd",
            compression_level=1,
            use_dictionary=_with_dictionary(rows),
            write_statistics=_with_statistics(rows),
            write_page_checksum=True,
            bloom_filter_options=dict.fromkeys(bloom_filters, wanted) or None,
            metadata_collector=found,
        )
    except (pa.ArrowException, NotImplementedError) as error:
        raise InvalidRows(
            f"Rows for data table {about.table!r} cannot be a Parquet file: {str(error).splitlines()[0]}.",
            next_step="Cast the column to a type that Parquet has.",
        ) from None
    return sink.getvalue().to_pybytes(), found[0]


def _with_dictionary(rows: pa.Table) -> bool | list[str]:
    """The columns that have a dictionary: all but those of numbers and moments that are few or mostly differ; there it only takes time."""
    if any(pa.types.is_nested(each.type) for each in rows.schema):
        return True
    return [name for name, column in zip(rows.column_names, rows.columns, strict=True) if not _mostly_differs(column)]


def _mostly_differs(column: pa.ChunkedArray) -> bool:
    kind, some = column.type, column.slice(0, _LOOKED_AT)
    is_number = pa.types.is_integer(kind) or pa.types.is_timestamp(kind) or kind in (pa.float32(), pa.float64())
    return is_number and (len(some) < _LOOKED_AT or pc.count_distinct(some).as_py() * _REPEATED > len(some))


def _with_statistics(rows: pa.Table) -> bool | list[str]:
    """The columns that have statistics: those with what is no number have none, for engines would not find it by them."""
    without = {name for name, column in zip(rows.column_names, rows.columns, strict=True) if _has_no_number(column)}
    if not without:
        return True
    return [each.name for each in rows.schema if each.name not in without and not pa.types.is_nested(each.type)]


def _has_no_number(column: pa.ChunkedArray) -> bool:
    return any(
        pa.types.is_floating(leaf.type) and bool(pc.any(pc.is_nan(leaf)).as_py())
        for chunk in column.chunks
        for leaf in leaves(chunk)
    )
