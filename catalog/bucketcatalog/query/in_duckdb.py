"""A read as a DuckDB relation: DuckDB reads the native files by itself, whenever the relation is asked, and what lies over them beside.

Of the files it reads the columns and row groups that a query needs. Which rows are left out of a file an array of bits says, joined by the
number of the file. No setting of the connection decides what is read: text is compared by its bytes, whatever its collation.

What lies over the files is read when the relation is made, and kept, where it is at most 8 MiB. Where it is more, or no file is native,
this package reads it anew for each query, with the columns that this needs: that can be as often as one likes, and nothing is held.

A file in a directory DuckDB opens itself. Any other, and one whose path has characters that it takes for wildcards, it reads through the
catalog's own store, which the connection is given as a file system that only reads: it sees no credentials, and no SQL shows any. Whoever
runs SQL on the connection can read other objects of the store so too.

It checks neither the checksums of pages nor any other: that each file is there, with its size and its footer, was checked when the relation
was made, and what is damaged since or within may go unnoticed, where a scan says so.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, reduce
from importlib import import_module
from operator import and_
from typing import Any

import numpy as np
import pyarrow as pa

from ..errors import InvalidOption
from ..format.shown import Shown
from ..model.keys import after_prefix
from ..store.base import Store
from ..store.elsewhere import as_files, local_path, path_of
from ..where.conditions import Between, Prefix
from .files import Asked, Files, NativeFile, Streamed, alike, at_hand, engine, stand_in

_FILE, _ROW, _OF, _BITS = "__file", "__row", "__of", "__bits"  # no column of a file is called so
_NUMBER_OF_FILE, _NUMBER_OF_ROW = "file_index", "file_row_number"
"""What DuckDB calls the number of a file among those of a scan, and that of a row in it; unless the file has a column of that name."""
_WILD = frozenset("*?[\\")
_log = logging.getLogger("bucketcatalog")


def duckdb_relation(connection: Any, rows: Streamed) -> Any:
    """Rows that this package reads, as a relation of the connection."""
    return _Engine.of(connection, rows.schema).streamed(rows)


def native_relation(connection: Any, files: Files, rows: Streamed, store: Store) -> Any:
    """``rows`` of a store as a relation of the connection: read from ``files``, which say the same, where DuckDB can read these.

    ``UsageError`` where DuckDB is not installed, ``InvalidOption`` for what is no connection, and where column names differ in case alone.
    """
    duckdb = _Engine.of(connection, files.schema)
    if files.why is not None or any(map(_hides_numbers, files.native)):
        return duckdb.streamed(rows)
    try:
        native = _Natively(duckdb, store).scans(files.native)
    except duckdb.package.Error as error:  # whatever keeps it from the files: of the connection, the file system, or the store
        _log.warning("DuckDB does not read the files itself: %s", error)
        return duckdb.streamed(rows)
    return reduce(lambda one, other: one.union(other), [*native, duckdb.streamed(files.overlay)])


def _hides_numbers(file: NativeFile) -> bool:
    """Whether DuckDB does not say which rows of the file are those that are left out."""
    return bool(len(file.left_out)) and not {_NUMBER_OF_FILE, _NUMBER_OF_ROW}.isdisjoint(map(str.casefold, file.schema.names))


@cache
def _again() -> type:
    """The class of what DuckDB takes for a dataset of Arrow's, which begins anew with each query, and has to be one for that.

    Nothing is called of it but this. pyarrow.dataset is imported here, since whoever reads without DuckDB does without.
    """
    dataset = import_module("pyarrow.dataset")

    class Again(dataset.Dataset):  # type: ignore[misc, name-defined]
        def __init__(self, rows: Streamed) -> None:
            self._rows = rows

        @property
        def schema(self) -> pa.Schema:
            return self._rows.schema

        def scanner(self, columns: Sequence[str] | None = None, filter: Any = None) -> Any:
            every, said = self._rows.schema.names, "" if filter is None else str(filter)
            needed = [name for name in every if columns is None or name in columns or name in said]
            return dataset.Scanner.from_batches(self._rows.only(needed).to_reader(), columns=columns, filter=filter)

    return Again


def renamed_relation(relation: Any, names: Mapping[str, str]) -> Any:
    """A relation whose columns are those of another, by their new names; ``InvalidOption`` where these differ in case alone."""
    _refuse_alike(names)
    column = engine("duckdb").ColumnExpression
    return relation.project(*(column(source).alias(name) for name, source in names.items()))


def joined_relation(connection: Any, relation: Any, tables: Sequence[pa.Table], names: Sequence[str]) -> Any:
    """Columns of a relation and of tables whose first column says of which of its rows they are; null of those that no row is of."""
    column = engine("duckdb").ColumnExpression
    for table in tables:
        key, *others = table.column_names
        other = connection.from_arrow(table.rename_columns([_OF, *others]))
        relation = relation.join(other, column(key).collate("binary") == column(_OF).collate("binary"), how="left")
    return relation.project(*map(column, names))


def _refuse_alike(names: Iterable[str]) -> None:
    """``InvalidOption`` for names that DuckDB does not tell apart."""
    first: dict[str, str] = {}
    for name in names:
        if (other := first.setdefault(name.casefold(), name)) != name:
            raise InvalidOption(
                f"DuckDB does not tell the columns {other!r} and {name!r} apart.",
                next_step="Ask for one of them: scan(TABLE, columns=[...]).",
            )


@dataclass(frozen=True)
class _Engine:
    """DuckDB's package, and a connection to show reads in."""

    package: Any
    connection: Any

    @classmethod
    def of(cls, connection: Any, schema: pa.Schema) -> _Engine:
        """That of the connection; an error where it cannot show columns of that schema."""
        package = engine("duckdb")
        if not isinstance(connection, package.DuckDBPyConnection):
            raise InvalidOption(
                f"{type(connection).__name__!r} is no connection of DuckDB's.", next_step="Give one, such as duckdb.connect()."
            )
        _refuse_alike(schema.names)
        try:
            connection.from_arrow(pa.table({"_": pa.array([], pa.int8())}))
        except package.ConnectionException as error:
            raise InvalidOption(f"DuckDB shows nothing on this connection: {error}.", next_step="Open another.") from None
        return cls(package, connection)

    def streamed(self, rows: Streamed) -> Any:
        """Rows that this package reads."""
        table = at_hand(rows.to_batches(), rows.schema)
        return self.connection.from_arrow(_again()(rows) if table is None else table)

    def kinds(self, schema: pa.Schema) -> dict[str, Any]:
        """DuckDB's types of these columns."""
        return dict(zip(schema.names, self.connection.from_arrow(schema.empty_table()).types, strict=True))

    def column(self, name: str) -> Any:
        """A column by its name."""
        return self.package.ColumnExpression(name)

    def value(self, value: Any) -> Any:
        """A constant."""
        return self.package.ConstantExpression(value)

    def function(self, name: str, *arguments: Any) -> Any:
        """What a function gives."""
        return self.package.FunctionExpression(name, *arguments)


@dataclass(frozen=True)
class _Natively:
    """Files of a store, read by DuckDB."""

    duckdb: _Engine
    store: Store

    def scans(self, files: Sequence[NativeFile]) -> list[Any]:
        """The rows of the files that meet the conditions and are not left out; an error of DuckDB's where it does not read the first."""
        if not files:
            return []
        found = self._parquet(files[:1]).aggregate("count(*)").fetchall()
        if found != [(files[0].rows,)]:
            raise self.duckdb.package.IOException(f"{files[0].name} has {found} rows, and not {files[0].rows}")
        scans = [[file for file in each if bool(len(file.left_out)) is some] for each in alike(files) for some in (False, True)]
        return [self._scan(each) for each in scans if each]

    def _scan(self, files: Sequence[NativeFile]) -> Any:
        rows, made, asked = self._parquet(files), _Made(self.duckdb, files[0].asked), files[0].asked
        if len(files[0].left_out):
            rows = self._kept(rows, files)
        for name in asked.where:
            rows = rows.filter(made.meets(name, files[0].columns[name]))
        kinds = self.duckdb.kinds(asked.schema)
        return rows.project(*(made.column(files[0].columns[name]).cast(kinds[name]).alias(name) for name in asked.schema.names))

    def _parquet(self, files: Sequence[NativeFile]) -> Any:
        """All rows of the files. What of them is not asked for is not read."""
        paths = list(map(self._path, files))
        return self.duckdb.connection.read_parquet(paths, binary_as_string=False, hive_partitioning=False, union_by_name=False)

    def _kept(self, rows: Any, files: Sequence[NativeFile]) -> Any:
        """The needed columns of the rows that are not left out of the files."""
        column = self.duckdb.column
        bits = []
        for file in files:
            left_out = np.zeros(file.rows, dtype=np.uint8)
            left_out[file.left_out] = 1
            bits.append(np.packbits(left_out).tobytes())
        table = pa.table({_OF: pa.array(range(len(files)), pa.int64()), _BITS: pa.array(bits, pa.large_binary())})
        of_files = self.duckdb.connection.from_arrow(table).project(column(_OF), column(_BITS).cast("BIT").alias(_BITS))
        numbers = column(_NUMBER_OF_FILE).alias(_FILE), column(_NUMBER_OF_ROW).cast("INTEGER").alias(_ROW)
        numbered = rows.project(*map(column, files[0].stored), *numbers)
        is_left_out = self.duckdb.function("get_bit", column(_BITS), column(_ROW))
        joined = numbered.join(of_files, column(_FILE) == column(_OF), how="inner")
        return joined.filter(is_left_out == self.duckdb.value(0))

    def _path(self, file: NativeFile) -> str:
        path = local_path(self.store, file.name)
        return path_of(self._protocol, file.name, file.size) if path is None or not _WILD.isdisjoint(path) else path

    @cached_property
    def _protocol(self) -> str:
        """What the connection calls the store, which it keeps from now on: while it does no other store has this one's number."""
        protocol = f"bucketcatalog{id(self.store):x}"
        if not self.duckdb.connection.filesystem_is_registered(protocol):
            self.duckdb.connection.register_filesystem(as_files(self.store, protocol))
        return protocol


@dataclass(frozen=True)
class _Made:
    """What is asked of a read, made of stored columns."""

    duckdb: _Engine
    asked: Asked

    def column(self, made: Shown) -> Any:
        """A column as people see it, but for its type."""
        columns = list(map(self.duckdb.column, made.stored))
        if made.is_joined:
            return reduce(lambda one, other: self._with_colon(one, other), columns)
        if made.otherwise is not None:
            columns.append(self.duckdb.value(stand_in(made)))
        value = self.duckdb.package.CoalesceOperator(*columns) if columns else self.duckdb.value(None)
        if not made.symbols:
            return value
        (first, symbol), *others = made.symbols
        cases = self.duckdb.package.CaseExpression(value == self.duckdb.value(first), self.duckdb.value(symbol))
        for number, symbol in others:
            cases = cases.when(value == self.duckdb.value(number), self.duckdb.value(symbol))
        return cases.otherwise(value.cast("VARCHAR"))

    def _with_colon(self, one: Any, other: Any) -> Any:
        both = self.duckdb.function("||", one, self.duckdb.value(":"))
        return self.duckdb.function("||", both, other.cast("VARCHAR"))

    def meets(self, name: str, made: Shown) -> Any:
        """Whether the condition on a column holds."""
        condition, value, kind = self.asked.where[name], self.duckdb.value, self.asked.tested.field(name).type
        shown = self.column(made).cast(self.duckdb.kinds(self.asked.tested)[name])
        if condition is None:
            return shown.isnull()
        if pa.types.is_string(kind):
            shown = shown.collate("binary")
        if isinstance(condition, Prefix):
            return self._begins(shown, condition.text, kind)
        values = self.asked.compared[name]
        if isinstance(condition, Between):
            low, high = values.to_pylist()
            ends = [] if low is None else [shown > value(low) if condition.above else shown >= value(low)]
            ends += [] if high is None else [shown < value(high) if condition.below else shown <= value(high)]
            return reduce(and_, ends, shown.isnotnull())
        named = values.drop_null().to_pylist()
        found = shown.isin(*map(value, named)) if named else value(False)
        return found | shown.isnull() if values.null_count else found

    def _begins(self, shown: Any, text: str | bytes, kind: pa.DataType) -> Any:
        if pa.types.is_string(kind):
            return self.duckdb.function("starts_with", shown, self.duckdb.value(text))
        raw = text.encode() if isinstance(text, str) else text
        after, begun = after_prefix(raw), shown >= self.duckdb.value(raw)
        return begun if after is None else begun & (shown < self.duckdb.value(after))
