"""Spark's writers: of a batch, and of a stream, where each batch is one commit, whoever commits it and however often.

Spark makes a stream's writer anew for each batch and each commit, so nothing that one of them draws says which query it is of. The query's
id, which stays in its checkpoint, travels to the tasks, and with what they have put to the commit. That is an application's commit,
numbered by the batch: one that is in the catalog already is done.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from bucketcatalog import InvalidOption, StaleBatch

from ..failing import ours_first
from .parts import PartsWrite, plan_parts
from .write import Write, plan_write

_QUERY_ID = "sql.streaming.queryId"
_OF_QUERIES = ("checkpointlocation", "queryname")
"""Options of a query that Spark hands on."""


@dataclass
class Written(WriterCommitMessage):
    """What a task has put, as who commits it knows it, and for which query."""

    shares: tuple[Any, ...]
    query: str | None = None


class BatchWriter(DataSourceArrowWriter):
    """Writes the rows of a DataFrame as one transaction."""

    def __init__(self, write: Write | PartsWrite) -> None:
        self._write = write

    @ours_first()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Put the rows of one task."""
        return Written(self._write.put(iterator))

    @ours_first()
    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Commit what the tasks have put, once; nothing where that is nothing, unless an application numbers it."""
        shares = _shares(messages)
        if shares or self._write.asked.app_id is not None:
            self._write.commit(shares)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Nothing: what was put is named by no commit, or by one whose answer was lost."""


class StreamWriter(DataSourceStreamArrowWriter):
    """Writes each batch of a query as a commit of one application: the query, or ``txnAppId``. Nothing is committed for no rows."""

    def __init__(self, write: Write | PartsWrite) -> None:
        self._write = write

    @ours_first()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Put the rows of one task."""
        context = TaskContext.get()
        query = None if context is None else context.getLocalProperty(_QUERY_ID)
        return Written(self._of(query).put(iterator), query)

    def _of(self, query: str | None) -> Write | PartsWrite:
        """The write, for the application that numbers the batches."""
        if self._write.asked.app_id is not None:
            return self._write
        if query is None:
            raise InvalidOption("Spark does not say of which query this batch is.", next_step="Give the query a txnAppId.")
        return self._write.of_application(query)

    @ours_first()
    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Commit what the tasks have put, once; ``StaleBatch`` where a later batch of the query was committed already."""
        shares = _shares(messages)
        if not shares:
            return
        write = self._of(next(message.query for message in messages if isinstance(message, Written))).numbered(batchId)
        if write.commit(shares) is None:
            raise StaleBatch(
                f"Batch {batchId} of {write.asked.app_id!r} comes after a later one was committed to {write.asked.table!r}.",
                next_step="Stop this query where another has taken its place. Where its checkpoint was copied, give it a "
                "txnAppId of its own.",
            )

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Nothing: what was put is named by no commit, or by one whose answer was lost."""


def make_writer(given: Mapping[str, str], schema: StructType, *, overwrite: bool) -> BatchWriter:
    """The writer of a batch; errors as ``plan_write``."""
    return BatchWriter(_plan(given, schema, overwrite=overwrite))


def make_stream_writer(given: Mapping[str, str], schema: StructType, *, overwrite: bool) -> StreamWriter:
    """The writer of a stream's batches; errors as ``plan_write``, and ``InvalidOption`` where they are numbered by whoever writes."""
    if any(name.lower() == "txnversion" for name in given):
        raise InvalidOption("A stream numbers its batches itself.", next_step="Leave txnVersion out.")
    own = {name: value for name, value in given.items() if name.lower() not in _OF_QUERIES}
    if any(name.lower() == "txnappid" for name in given):
        own["txnVersion"] = "0"  # until there is a batch
    return StreamWriter(_plan(own, schema, overwrite=overwrite))


def _plan(given: Mapping[str, str], schema: StructType, *, overwrite: bool) -> Write | PartsWrite:
    return plan_parts(given, schema, overwrite=overwrite) or plan_write(given, schema, overwrite=overwrite)


def _shares(messages: list[WriterCommitMessage | None]) -> list[Any]:
    return [share for message in messages if isinstance(message, Written) for share in message.shares]
