"""Writes of rows for names that are no tables: their system writes parts of them, each in a task of Spark's, and one commit names all.

As with rows of tables, a part of a task that is lost or done twice is named by no commit, and is an orphan.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructType

from bucketcatalog import InvalidOption
from bucketcatalog.format.transactions import Transaction
from bucketcatalog.write.commit import Committed
from bucketcatalog.write.parts import Parts, WritePlace
from bucketcatalog.write.transaction import WriteTransaction

from ..executors import CatalogPlace
from ..options import WriteOptions
from ..types import arrow_schema
from .write import application_writer, asked_of, committed_once, writer_of


@dataclass(frozen=True)
class PartsWrite:
    """How rows are written as parts: picklable, and the same for all tasks and for the commit. ``began`` is the store's time before any."""

    place: CatalogPlace
    asked: WriteOptions
    parts: Parts
    writer: str
    began: int

    def of_application(self, name: str) -> PartsWrite:
        """The same for an application; ``InvalidOption`` where the parts lie with a writer that would be another on another machine."""
        if self.asked.writer is None and self.writer != application_writer(name):
            raise InvalidOption(
                f"A stream of rows for {self.asked.table!r} needs a name: its parts are written before it is known.",
                next_step="Give the query a txnAppId, or a writer.",
            )
        return replace(self, asked=replace(self.asked, app_id=name))

    def numbered(self, version: int) -> PartsWrite:
        """The same as the application's commit of that number."""
        return replace(self, asked=replace(self.asked, app_version=version))

    def put(self, rows: Iterable[pa.RecordBatch]) -> tuple[Any, ...]:
        """Write the rows of one task as a part, if there are any."""
        some = (batch for batch in rows if batch.num_rows)
        first = next(some, None)
        return () if first is None else (self.parts.task.write(self.place.open().store, chain([first], some)),)

    def commit(self, written: Sequence[Any]) -> Committed | None:
        """Commit what the tasks have written, once; see ``Write.commit``."""
        told: dict[str, str] = {}

        def fill(transaction: WriteTransaction) -> None:
            transaction.rests_on(written_from=self.began)
            self.parts.finish(transaction, written)
            told.update(transaction.metadata)

        def is_this(transaction: Transaction) -> bool:
            return bool(told) and told.items() <= dict(transaction.metadata).items()

        return committed_once(self.place, self.asked, self.writer, "spark write", fill, is_this)


def plan_parts(given: Mapping[str, str], schema: StructType, *, overwrite: bool = False) -> PartsWrite | None:
    """The write of rows for a name that is no table; None where it is one, or nobody takes rows for it."""
    asked = asked_of(given, overwrite=overwrite)
    place = CatalogPlace.of(asked.path, asked.storage)
    catalog = place.open()
    taken = catalog.registry.writes(asked.table)
    if taken is None:
        return None
    database = catalog.database(asked.database)
    if asked.table in database.look().definitions:
        return None
    if asked.operation not in (None, "put"):
        raise InvalidOption(
            f"Rows for {asked.table!r} are put, and cannot be {asked.operation}d.", next_step="Leave the option operation out."
        )
    writer = writer_of(asked)
    began = database.files.time_for(writer)
    at = WritePlace(catalog.store, writer, asked.database, database.look)
    return PartsWrite(place, asked, taken.begin(at, asked.table, arrow_schema(schema), **asked.of_parts), writer, began)
