"""``bcs.delete``, ``update`` and ``purge``: what SQL's statements do elsewhere, which Spark hands to no Python source.

Rows are read at one cut, with their versions, and each event names the version that it was read with. So what somebody else commits
meanwhile stays as it is: a row that was put again is another version. Spark reads, filters and computes; executors put segments; the
driver commits once.
"""

from __future__ import annotations

import os
import pickle
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it

from bucketcatalog import BucketCatalogError, InvalidOption, InvalidRows
from bucketcatalog.model.parents import name_column
from bucketcatalog.model.render import DELETED_AT
from bucketcatalog.model.tables import Default, Table
from bucketcatalog.query.changes import changed_table
from bucketcatalog.query.snapshot import DELETED_PREFIX
from bucketcatalog.write.intake import VERSION_COLUMN
from bucketcatalog.write.staging import WrittenShare

from ..executors import sent
from ..options import given_options
from ..reading.frames import Natively, frame_of
from ..reading.relation import open_relation
from ..types import quoted, spark_schema
from .write import Write, plan_write

_QUOTED, _EVERY_COLUMN = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""), re.compile(r"(?:^|[(,.])\s*\*")
"""Texts within Spark SQL, and the star that is no multiplication: the version that a row is read with is a column, too."""
_OF_DATA = "22"
"""What the SQL states of errors begin with that values are the cause of."""


@dataclass(frozen=True)
class Changed:
    """What was changed: how many rows, as which version, of those at the version that was read. Without rows nothing is committed."""

    rows: int
    version: str | None
    read: str


def delete(
    spark: SparkSession,
    path: str | os.PathLike[str],
    database: str | None = None,
    table: str = "objects",
    *,
    where: str | Column,
    writer: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    native: bool | None = None,
    native_root: str | None = None,
) -> Changed:
    """Delete the rows of a table that a condition of Spark SQL is true of, in one transaction that names the versions it saw.

    Without a ``writer`` it is this machine's own; ``native`` and ``native_root`` are as of ``read``. ``InvalidOption`` for a condition that
    Spark cannot apply to the table's rows.
    """
    change = _Change(spark, given_options(path, database, storage_options, {"table": table}), "delete", writer, where)
    return change.run(Natively.of(native, native_root), {})


def update(
    spark: SparkSession,
    path: str | os.PathLike[str],
    database: str | None = None,
    table: str = "objects",
    *,
    set: Mapping[str, Any],
    where: str | Column,
    writer: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    native: bool | None = None,
    native_root: str | None = None,
) -> Changed:
    """Update the rows of a table that a condition of Spark SQL is true of, in one transaction that names the versions it saw.

    ``set`` has an expression for each column that changes, of the columns as they were, or a value that is no text. A version stays the
    same, so that its key, its id and where its data lies cannot change; ``modified`` becomes the commit time unless it is set. The rest is
    as of ``delete``.
    """
    change = _Change(spark, given_options(path, database, storage_options, {"table": table}), "update", writer, where)
    return change.run(Natively.of(native, native_root), set)


def purge(
    spark: SparkSession,
    path: str | os.PathLike[str],
    database: str | None = None,
    table: str = "objects",
    *,
    where: str | Column,
    writer: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    native: bool | None = None,
    native_root: str | None = None,
) -> Changed:
    """Forget the tombstones of a table that a condition of Spark SQL is true of, in one transaction; it may name ``deleted_at``.

    Their data stays where it is, and nobody comes back for it: who wants it deleted has ``jobs.gc`` do both. The rest is as of ``delete``.
    """
    change = _Change(spark, given_options(path, database, storage_options, {"table": table}), "purge", writer, where)
    return change.run(Natively.of(native, native_root), {})


@dataclass(frozen=True)
class _Change:
    spark: SparkSession
    given: Mapping[str, str]
    operation: str
    writer: str | None
    where: str | Column

    def run(self, natively: Natively, new: Mapping[str, Any]) -> Changed:
        """Read, filter, compute, put and commit."""
        relation = open_relation(self.given)
        snapshot = relation.snapshot
        table = changed_table(snapshot, relation.options.table)
        _refuse_fixed(table, new)
        shown = {**self.given, "table": f"{DELETED_PREFIX}{table.name}"} if self.operation == "purge" else self.given
        own = {name: value for name, value in self.given.items() if name == "path" or name.startswith("storage.")}
        own |= {"database": snapshot.database, "table": table.name, "operation": self.operation}
        own |= {} if self.writer is None else {"writer": self.writer}
        needed = self._needed(table, new)
        columns = open_relation(shown).available if shown is not self.given else relation.available
        write = plan_write(own, spark_schema(pa.schema([columns.field(name) for name in self._written(table, needed)])))
        # What is read now is no older than what the write says that it rests on.
        relation = open_relation({**shown, "columns": ",".join(needed)})
        rows = self._changed(frame_of(self.spark, relation, natively), table, new)
        write = replace(write, operation=self.operation)
        shares = [share for each in _put(rows, write) for share in each]
        committed = write.commit(shares) if shares else None
        version = None if committed is None else committed.version
        return Changed(sum(share.events for share in shares), version, relation.snapshot.version)

    def _needed(self, table: Table, new: Mapping[str, Any]) -> list[str]:
        """The columns that are read: of a deletion each that the condition can name, since it is part of its text."""
        text = self.where.lower() if isinstance(self.where, str) else None
        if text is not None and _EVERY_COLUMN.search(_QUOTED.sub("", text)):
            raise InvalidOption(
                "A condition cannot speak of all columns by *.", next_step=f"Name them: {', '.join(table.by_name)}."
            )
        bucket = [name for name in _bucket(table) if _may_name(name, [self.where, *new.values()])]
        if self.operation == "update":
            return [*table.by_name, VERSION_COLUMN, *bucket]
        every = [*table.by_name, *([DELETED_AT] if self.operation == "purge" else [])]
        named = [name for name in every if text is None or name.lower() in text]
        return [*dict.fromkeys([*table.key, *named, VERSION_COLUMN]), *bucket]

    def _written(self, table: Table, needed: list[str]) -> list[str]:
        kept = [*table.by_name] if self.operation == "update" else table.key
        return [name for name in needed if name in (*kept, VERSION_COLUMN)]

    def _changed(self, rows: DataFrame, table: Table, new: Mapping[str, Any]) -> DataFrame:
        """The rows that change, as the events have them."""
        kinds = {field.name: field.dataType for field in rows.schema.fields}
        times = [c.name for c in table.columns if c.default is Default.MODIFIED and c.name in kinds]
        fresh: dict[str, Column] = {name: F.lit(None) for name in times} if self.operation == "update" else {}
        fresh |= {name: _expression(name, value) for name, value in new.items()}
        try:
            found = rows.where(self.where)
            kept = self._written(table, rows.columns)
            shown = [fresh[name].cast(kinds[name]).alias(name) if name in fresh else F.col(quoted(name)) for name in kept]
            found = found.select(*shown)
            _ = found.schema  # Spark Connect looks at the columns no sooner
        except AnalysisException as error:
            raise InvalidOption(
                f"Spark cannot do this to rows of {table.name!r}: {_first_line(error)}",
                next_step=f"Write where and set as Spark SQL, of the columns {', '.join([*table.by_name, *_bucket(table)])}.",
            ) from None
        return found


def _put(rows: DataFrame, write: Write) -> Iterator[tuple[WrittenShare, ...]]:
    """What the tasks have put; one that Spark does again puts again, and is counted once.

    ``InvalidRows`` for values that the table cannot hold, or that Spark cannot compute.
    """
    packed = sent(write)

    def put(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task: Write = pickle.loads(packed)
        outcome: tuple[WrittenShare, ...] | BucketCatalogError
        try:
            outcome = task.put(batches)
        except BucketCatalogError as error:  # doing it again changes nothing, and Spark would only bury what it says
            outcome = error
        yield pa.record_batch({"outcome": pa.array([pickle.dumps(outcome)], pa.binary())})

    try:
        found = rows.mapInArrow(put, "outcome binary").collect()
    except PySparkException as error:
        if not (error.getSqlState() or "").startswith(_OF_DATA):
            raise
        raise InvalidRows(
            f"Spark cannot compute this for all rows of {write.asked.table!r}: {_first_line(error)}",
            next_step="Leave such rows out by the condition, or use the form of the function that gives null for them, as try_cast does.",
        ) from None
    for row in found:
        outcome = pickle.loads(row.outcome)
        if isinstance(outcome, BucketCatalogError):
            raise outcome
        yield outcome


def _first_line(error: PySparkException) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)


def _bucket(table: Table) -> list[str]:
    """The name of a row's bucket as a column, where rows have one."""
    name = name_column(table)
    return [] if name is None else [name]


def _may_name(column: str, given: Sequence[Any]) -> bool:
    """Whether an expression of Spark's can be about a column, be it in text, where it is a word, or a Column."""
    word = re.compile(rf"\b{re.escape(column)}\b", re.IGNORECASE)
    return any(isinstance(each, Column) or (isinstance(each, str) and word.search(each) is not None) for each in given)


def _expression(name: str, value: Any) -> Column:
    if isinstance(value, Column):
        return value
    try:
        return F.expr(value) if isinstance(value, str) else F.lit(value)
    except (AttributeError, TypeError, ValueError, PySparkException):
        raise InvalidOption(
            f"Column {name!r} cannot be set to {value!r:.100}.",
            next_step="Give text that is Spark SQL, a Column of Spark's, or a value that Spark has a type for.",
        ) from None


def _refuse_fixed(table: Table, new: Mapping[str, Any]) -> None:
    """``InvalidOption`` for a column that the table has not, or that no update of a version can change."""
    for name in new:
        if name not in table.by_name and name != name_column(table):
            raise InvalidOption(
                f"Table {table.name!r} has no column {name!r}.", next_step=f"Set some of {', '.join(table.by_name)}."
            )
        if name not in table.by_name or table.by_name[name].field_name in table.fixed_columns:
            raise InvalidOption(
                f"Column {name!r} of table {table.name!r} is part of what a version is, and no update changes it.",
                next_step="Put rows with other keys, and delete these.",
            )
