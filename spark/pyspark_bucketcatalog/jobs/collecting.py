"""``jobs.gc``: the executors judge, join and delete, the driver publishes the boundary and purges what is gone.

Candidates and references that are needed are DataFrames, and the proof that data is garbage is an anti-join of the two. References that
are garbage go to the deleter on the executors, each once a run; a task that is done again deletes again, which changes nothing.
"""

from __future__ import annotations

import os
import pickle
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import coalesce, col, count, first, lit, when

from bucketcatalog import limits
from bucketcatalog.maintain.gc.boundaries import DataBoundary
from bucketcatalog.maintain.gc.candidates import (
    EXTERNAL,
    ID,
    REFERENCE,
    VERSION,
    Rules,
    candidate_schema,
    candidates_in,
    count_waiting,
    needed_in,
    needing_columns,
    parent_column,
    parents_in,
    read_columns,
)
from bucketcatalog.maintain.gc.collect import BATCH, OPERATION, Collected
from bucketcatalog.maintain.gc.data import Callback, Deleter, Deleters
from bucketcatalog.maintain.gc.spaces import Space, spaces
from bucketcatalog.model.tables import Table
from bucketcatalog.model.times import Age
from bucketcatalog.query.snapshot import Snapshot
from bucketcatalog.state.plan import Part
from bucketcatalog.state.shares import Share
from bucketcatalog.write.writer import Writer

from ..executors import CatalogPlace, ended_shares, every_share, frame, on_executors, packed_rows, read_states, sent
from ..failing import ours_first

# No column of a table begins with an underscore.
_LIVE, _OWNS, _NEEDED, _STATE, _GONE, _LEFT, _SAID = "_live", "_owns", "_needed", "_state", "_gone", "_left", "_said"
_ANSWER = f"{REFERENCE} binary, {_GONE} boolean, {_LEFT} boolean, {_SAID} string"
_REFERENCES = pa.schema([(REFERENCE, pa.binary())])
_IDS = pa.schema([(ID, pa.binary())])
_OWNER, _EXTERNAL, _DATALESS, _SHARED, _GARBAGE = "owner", "external", "dataless", "shared", "garbage"
_AT_ONCE = (_EXTERNAL, _DATALESS, _SHARED)
_MOST_TASKS = 4_096


@dataclass(frozen=True)
class CollectOnExecutors:
    """Does the work of a collection on Spark's executors; see ``bucketcatalog.maintain.gc.collect.GcWorkers``."""

    spark: SparkSession
    place: CatalogPlace
    deleters: Deleters

    def waiting(self, snapshot: Snapshot, limits: Mapping[str, int], known: DataBoundary) -> tuple[int, int]:
        """How many tombstones ended at or before the tables' limits, and how many of these the boundary does not reach."""
        place = self.place  # a session cannot travel

        def count(task: Share) -> tuple[int, int]:
            limit = limits[task.table.name]
            found = [count_waiting(facts, limit, known) for facts in read_states(task, place.open().store, ())]
            return sum(waiting for waiting, _ in found), sum(beyond for _, beyond in found)

        tasks = [task for name, limit in limits.items() for task in ended_shares(snapshot.state(name), limit)]
        counts = on_executors(self.spark, count, tasks)
        return sum(waiting for waiting, _ in counts), sum(beyond for _, beyond in counts)

    def collect(self, snapshot: Snapshot, rules: Rules, writer: Writer | None, done: Collected) -> Collected:
        """Collect every table, a space after the other."""
        tables = [snapshot.table(name) for name in rules.limits]
        divided = list(spaces(tables, self.deleters))
        counts = self._count(snapshot, rules, divided)
        done = done.plus(waiting=sum(map(sum, counts.values())), tagged=sum(tagged for _, tagged in counts.values()))
        for space in divided:
            found = [table for table in space.tables if counts[table.name][0]]
            if found:
                done = _InSpace(self, snapshot, rules, space, found).collect(writer, done)
        return done

    def _count(self, snapshot: Snapshot, rules: Rules, divided: Sequence[Space]) -> dict[str, tuple[int, int]]:
        """For each table how many candidates it has, and how many tombstones a tag alone keeps."""
        place, of = self.place, {table.name: space for space in divided for table in space.tables}

        def count(task: Share) -> tuple[str, int, int]:
            states = read_states(task, place.open().store, read_columns(task.table))
            found = [candidates_in(facts, task.table, rules, of[task.table.name]) for facts in states]
            return task.table.name, sum(len(rows) for rows, _ in found), sum(tagged for _, tagged in found)

        counts = dict.fromkeys(of, (0, 0))
        tasks = [task for name in of for task in ended_shares(snapshot.state(name), rules.limits[name])]
        for name, found, tagged in on_executors(self.spark, count, tasks):
            counts[name] = (counts[name][0] + found, counts[name][1] + tagged)
        return counts


@dataclass(frozen=True)
class _InSpace:
    """A space at one cut, and those of its tables that have candidates."""

    workers: CollectOnExecutors
    snapshot: Snapshot
    rules: Rules
    space: Space
    found: Sequence[Table]

    def collect(self, writer: Writer | None, done: Collected) -> Collected:
        """Judge the candidates, have garbage deleted, purge what needs no deletion and what is gone."""
        judged = {table.name: self._judged(table).persist() for table in self.found}
        try:
            counts = {name: _counted(rows, _STATE) for name, rows in judged.items()}
            for table in self.found:
                of = counts[table.name]
                done = done.plus(owners=of[_OWNER], external=of[_EXTERNAL], shared=of[_SHARED])
                at_once = judged[table.name].filter(col(_STATE).isin(*_AT_ONCE))
                done = self._purge(writer, table, at_once, sum(of[state] for state in _AT_ONCE), done)
            garbage = {name: of[_GARBAGE] for name, of in counts.items() if of[_GARBAGE]}
            return self._delete(writer, judged, garbage, done) if garbage else done
        finally:
            for rows in judged.values():
                rows.unpersist()

    def _delete(
        self, writer: Writer | None, judged: Mapping[str, DataFrame], counts: Mapping[str, int], done: Collected
    ) -> Collected:
        """Have the data of garbage deleted, of which each table has so many tombstones, and purge those whose data is gone."""
        names = self.space.tables[0].data_reference
        garbage = {name: judged[name].filter(col(_STATE) == _GARBAGE) for name in counts}
        references = _union([rows.select(*names, REFERENCE) for rows in garbage.values()]).dropDuplicates([REFERENCE])
        spread = references.repartition(_tasks(sum(counts.values()), BATCH))  # else little data is one task, which deletes it all
        deletion = _deletion(self.workers.deleters.of(self.space.tables), names, dry_run=writer is None)
        answers = spread.mapInArrow(deletion, _ANSWER).persist()
        try:
            done = _with_answers(answers, done)
            gone = answers.filter(col(_GONE)).select(REFERENCE)
            for table in self.found:
                if table.name in counts:
                    rows = garbage[table.name].join(gone, REFERENCE, "left_semi")
                    about = counts[table.name] if writer is not None else rows.count()
                    done = self._purge(writer, table, rows, about, done)
            return done
        finally:
            answers.unpersist()

    def _purge(self, writer: Writer | None, table: Table, rows: DataFrame, about: int, done: Collected) -> Collected:
        """Forget versions, of which there are about so many, so many in a transaction; without a writer count them."""
        if writer is None or not about:
            return done.plus(purged=about)
        columns = [*table.key, VERSION]
        for some in packed_rows(rows.coalesce(_tasks(about, 4 * BATCH)), columns, BATCH):
            with writer.transaction(operation=OPERATION) as tx:
                tx.purge(table.name, some)
            done = done.plus(purged=len(some))
        return done

    def _judged(self, table: Table) -> DataFrame:
        """The candidates of a table, each with what becomes of it."""
        found = self._candidates(table)
        found = found.join(self._needed(), REFERENCE, "left") if table.data_reference else found.withColumn(_NEEDED, lit(False))
        owner = lit(False)
        if table.name in self.rules.children:
            found = found.join(self._owned(table), ID, "left")
            owner = coalesce(col(_OWNS), lit(False)) & ~col(_LIVE)
        state = when(owner, _OWNER).when(col(EXTERNAL), _EXTERNAL).when(col(REFERENCE).isNull(), _DATALESS)
        return found.withColumn(_STATE, state.when(col(_NEEDED), _SHARED).otherwise(_GARBAGE))

    def _candidates(self, table: Table) -> DataFrame:
        place, rules, space = self.workers.place, self.rules, self.space
        live = rules.parents[table.name].live if table.name in rules.children else pa.array([], pa.binary())

        def find(task: Share) -> Iterator[pa.Table]:
            for facts in read_states(task, place.open().store, read_columns(task.table)):
                rows, _ = candidates_in(facts, task.table, rules, space)
                yield rows.append_column(_LIVE, pc.is_in(rows[ID], value_set=live))

        schema = candidate_schema(table).append(pa.field(_LIVE, pa.bool_()))
        tasks = ended_shares(self.snapshot.state(table.name), rules.limits[table.name])
        return frame(self.workers.spark, find, tasks, schema)

    def _needed(self) -> DataFrame:
        """Every reference in the space that some version needs, each once."""
        place, rules, space = self.workers.place, self.rules, self.space

        def find(task: Share) -> Iterator[pa.Table]:
            for facts in read_states(task, place.open().store, needing_columns(task.table)):
                yield pa.table([needed_in(facts, task.table, rules, space)], schema=_REFERENCES)

        tasks = [task for table in space.named_by for task in every_share(self.snapshot.state(table.name), Part.EVERYTHING)]
        return frame(self.workers.spark, find, tasks, _REFERENCES).distinct().withColumn(_NEEDED, lit(True))

    def _owned(self, table: Table) -> DataFrame:
        """The ids of the table's rows that own rows which are not purged."""
        place = self.workers.place

        def find(task: Share) -> Iterator[pa.Table]:
            for facts in read_states(task, place.open().store, [parent_column(task.table)]):
                yield pa.table([parents_in(facts, task.table)], schema=_IDS)

        children = self.rules.children[table.name]
        tasks = [task for child in children for task in every_share(self.snapshot.state(child.name), Part.EVERYTHING)]
        return frame(self.workers.spark, find, tasks, _IDS).distinct().withColumn(_OWNS, lit(True))


def _deletion(deleter: Deleter, names: Sequence[str], *, dry_run: bool) -> Any:
    """What a task does: hand references to the deleter, and say for each whether its data is gone, whether it is left, or why not."""

    packed = sent(deleter)

    def delete(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        deleter: Deleter = pickle.loads(packed)
        for batch in batches:
            if len(batch):
                rows = pa.Table.from_batches([batch])
                with ours_first():
                    deletions = deleter.delete(rows.select(list(names)), dry_run=dry_run)
                gone, left = pa.array(deletions.gone), pa.array(deletions.is_left)
                why = pc.if_else(left, "; ".join(deletions.reasons), "; ".join(deletions.problems))
                said = pc.if_else(gone, pa.scalar(None, pa.string()), why)
                yield pa.record_batch([batch.column(REFERENCE), gone, left, said], names=[REFERENCE, _GONE, _LEFT, _SAID])

    return delete


def _counted(rows: DataFrame, column: str) -> Counter[str]:
    """How many rows have each value of a column."""
    return Counter({row[column]: row["count"] for row in rows.groupBy(column).count().collect()})


def _with_answers(answers: DataFrame, done: Collected) -> Collected:
    """What deleters said, counted."""
    for row in answers.groupBy(_GONE, _LEFT).agg(count(lit(1)).alias("count"), first(_SAID, True).alias(_SAID)).collect():
        came = "deleted" if row[_GONE] else "left" if row[_LEFT] else "failed"
        said = [row[_SAID]] if row[_SAID] else []
        done = done.plus(garbage=row["count"], **{came: row["count"]})
        done = done.with_answers([], said) if row[_LEFT] else done.with_answers(said, [])
    return done


def _tasks(rows: int, size: int) -> int:
    """Into how many tasks to divide rows, so many in each."""
    return min(-(-rows // size), _MOST_TASKS) or 1


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    return reduce(DataFrame.unionByName, frames)


def gc(
    spark: SparkSession,
    catalog: str | os.PathLike[str],
    database: str | None = None,
    *,
    older_than: Age = limits.COLLECTION_GRACE,
    deleter: Callback | None = None,
    data_url: str | None = None,
    data_options: Mapping[str, Any] | None = None,
    dry_run: bool = True,
    force: bool = False,
    pin_age: Age = limits.PLAIN_PIN_AGE,
    writer: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Collected:
    """Forget tombstones and delete their data where nothing needs it, on the executors; see ``Catalog.collect``.

    ``deleter`` is pickled and called on the executors, with Arrow tables of references. The driver holds the ids of parents and, in
    batches, of what it purges.
    """
    place = CatalogPlace.of(catalog, storage_options)
    return place.open().collect(
        database=database,
        older_than=older_than,
        deleter=deleter,
        data_url=data_url,
        data_options=data_options,
        dry_run=dry_run,
        force=force,
        pin_age=pin_age,
        writer=writer,
        workers=lambda deleters: CollectOnExecutors(spark, place, deleters),
    )
