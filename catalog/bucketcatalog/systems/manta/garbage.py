"""Garbage: records of what was deleted or overwritten, in batches for whoever frees the space, and what removes them afterwards.

A batch by age is the RFD's query. The service's batch is one for all of its nodes, the same until it is deleted: a row of the table
``manta.garbage_batch`` names it, by an id, the cut at which it was put together, and how many records it has. The row has one key, so there
is one batch at a time; where two nodes make one at once the later counts, and to delete it by the id of the other deletes nothing.

No record is handed out as long as a tag has its object live, or where the bucket's data is somebody else's: what becomes of those the
engine's collection decides. Nor is that of an object, or a bucket, whose id the live one of its name has: what was created again with the
id that it had, as by a client that did not hear the answer, is that object still, and its content is in use.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from ...catalog import Catalog
from ...clock import random_uuid
from ...errors import HistoryPruned
from ...model.times import Age, age_micros, datetime_of
from ...query.snapshot import Snapshot
from .commits import Commits, Decision, Event, Operation
from .errors import BucketNotEmpty
from .known import Known, Row
from .payloads import BUCKET, BUCKET_KEY, OBJECT, OBJECT_KEY, bucket_payload, object_payload

TABLE = "manta.garbage_batch"
OF = "objects"
BATCH = 1_000
"""So many records the service's batch has."""
Result = TypeVar("Result")


class Garbage:
    """What a node knows of garbage, and removes of it. ``grace`` is how long ago what is in the service's batch has ended at least."""

    def __init__(self, catalog: Catalog, database: str, known: Known, commits: Commits, grace: Age) -> None:
        self._catalog = catalog
        self._database = database
        self._known = known
        self._commits = commits
        self._grace = age_micros(grace)
        self._rows: tuple[str, pa.Table] | None = None
        self._external: tuple[str, pa.Array] | None = None

    def buckets(self, older_than: Age, limit: int) -> list[Row]:
        """The records of deleted buckets that ended first, of those that ended so long ago; each a payload with ``deleted_at``."""
        snapshot = self._known.snapshot()
        columns = [*BUCKET, "deleted_at"]
        free = _of_no_live_row("buckets", BUCKET_KEY)
        found = _page(snapshot, "buckets", columns, self._before(snapshot, older_than), limit, [free])
        return [{**bucket_payload(row), "deleted_at": row["deleted_at"]} for row in found.to_pylist()]

    def objects(self, older_than: Age, limit: int) -> list[Row]:
        """The same of deleted and overwritten objects."""
        snapshot = self._known.snapshot()
        found = self._page(snapshot, self._before(snapshot, older_than), limit)
        return [_garbage_payload(row) for row in found.to_pylist()]

    def batch(self) -> Row:
        """The service's batch: its id and its records; no id where there is no garbage."""

        def decide(since: float) -> Decision[Row]:
            snapshot = self._known.snapshot(since)
            row = self._current(snapshot)
            if row is not None and (rows := self._records(row)) is not None:
                return Decision([], lambda commit: _batch_payload(row["id"], rows))
            before = self._before(snapshot, self._grace)
            rows = self._page(snapshot, before, BATCH)
            if not len(rows):
                return Decision([], lambda commit: _batch_payload(None, rows))
            id_ = str(random_uuid())
            self._rows = (id_, rows)
            new = {"of": OF, "id": id_, "cut": snapshot.version, "before": before, "records": len(rows)}
            event = Event("put", TABLE, new, expect=row["_version"] if row is not None else "absent")
            return Decision([event], lambda commit: _batch_payload(id_, rows))

        return self._run("getgcbatch", decide)

    def delete_batch(self, batch_id: str) -> str:
        """Remove the records of the service's batch, and the batch; nothing where another one is the batch by now. It is ``ok`` always."""

        def decide(since: float) -> Decision[str]:
            snapshot = self._known.snapshot(since)
            row = self._current(snapshot)
            if row is None or row["id"] != str(batch_id).lower() or (rows := self._records(row)) is None:
                return Decision([], lambda commit: "ok")
            purge = Event("purge", OF, rows.select([*OBJECT_KEY, "_version"]))
            return Decision([purge, Event("delete", TABLE, {"of": OF, "_version": row["_version"]})], lambda commit: "ok")

        return self._run("deletegcbatch", decide)

    def remove_bucket(self, key: Mapping[str, str], id_: str) -> int:
        """Remove the records of a deleted bucket, and say how many; none of a live one's id.

        ``BucketNotEmpty`` while there are objects of it, or their records.
        """

        def decide(since: float) -> Decision[int]:
            snapshot = self._known.snapshot(since)
            live = snapshot.get_all("buckets", [key], columns=["id"])[0]
            if live is not None and live["id"] == id_:
                return Decision([], lambda commit: 0)
            below = {"owner": key["owner"], "bucket_id": id_}
            if _is_any(snapshot, "objects", below) or _is_any(snapshot, "deleted_objects", below):
                raise BucketNotEmpty(
                    f"The bucket {key['name']!r} has ended, and objects of it or records of such have not been removed.",
                    next_step="Remove these first.",
                )
            return _removing(snapshot, "buckets", BUCKET_KEY, key, id_)

        return self._run("removedeletedbucket", decide)

    def remove_object(self, key: Mapping[str, str], id_: str) -> int:
        """Remove the records of a deleted object: all that have this name and id; and say how many."""
        return self._run(
            "removedeletedobject", lambda since: _removing(self._known.snapshot(since), "objects", OBJECT_KEY, key, id_)
        )

    def _run(self, name: str, decide: Callable[[float], Decision[Result]]) -> Result:
        return self._commits.run(Operation(name, frozenset(), decide, alone=True))

    def _before(self, snapshot: Snapshot, age: Age) -> datetime.datetime | None:
        """The time before which what has such an age has ended; None of no age: all that a snapshot shows has ended."""
        micros = age_micros(age)
        return datetime_of(snapshot.view.observed - micros) if micros else None

    def _current(self, snapshot: Snapshot) -> Row | None:
        if TABLE not in snapshot.definitions:
            return None
        return snapshot.get_all(TABLE, [{"of": OF}], columns=["id", "cut", "before", "records", "_version"])[0]

    def _records(self, row: Row) -> pa.Table | None:
        """The records of a batch, the same whenever it is asked; None where its cut cannot be read any more."""
        if self._rows is None or self._rows[0] != row["id"]:
            try:
                then = self._catalog.snapshot(database=self._database, version=row["cut"])
                self._rows = (row["id"], self._page(then, row["before"], row["records"]))
            except HistoryPruned:
                return None
        return self._rows[1]

    def _page(self, snapshot: Snapshot, before: datetime.datetime | None, limit: int) -> pa.Table:
        columns = [*OBJECT, "deleted_at", "_version"]
        tagged = [self._of_tag(tag) for tag in _tags(snapshot)]
        return _page(snapshot, OF, columns, before, limit, [self._of_own_buckets, _of_no_live_row(OF, OBJECT_KEY), *tagged])

    def _of_own_buckets(self, snapshot: Snapshot, rows: pa.Table) -> pa.Array:
        """Which records are of buckets whose data is not somebody else's; those who have such buckets are looked for once a cut."""
        if self._external is None or self._external[0] != snapshot.version:
            tables = ("buckets", "deleted_buckets")
            parts = [snapshot.scan(name, columns=["id"], where={"external": True}).to_arrow()["id"] for name in tables]
            theirs = pa.concat_arrays([pa.array([], pa.string()), *(chunk for part in parts for chunk in part.chunks)])
            self._external = (snapshot.version, theirs)
        return pc.invert(pc.is_in(rows["bucket_id"], value_set=self._external[1])).combine_chunks()

    def _of_tag(self, tag: str) -> Callable[[Snapshot, pa.Table], pa.Array]:
        """Which records are not of what is live at a tag."""

        def is_free(snapshot: Snapshot, rows: pa.Table) -> pa.Array:
            then = self._catalog.snapshot(database=self._database, version=tag)
            keys = rows.select(list(OBJECT_KEY)).to_pylist()
            live = then.get_all(OF, keys, columns=["_version"]) if OF in then.definitions else [None] * len(keys)
            versions = pa.array([None if row is None else row["_version"] for row in live], pa.string())
            return pc.fill_null(pc.not_equal(versions, rows["_version"].combine_chunks()), True)

        return is_free


Free = Callable[[Snapshot, pa.Table], pa.Array]
"""Which of some records may be handed out."""


def _page(
    snapshot: Snapshot, table: str, columns: Sequence[str], before: datetime.datetime | None, limit: int, frees: Sequence[Free]
) -> pa.Table:
    """The records that ended first and that everybody says may be handed out: as many as are asked for, if there are so many."""
    key = ["deleted_at", *snapshot.table(table).key]
    found, free, asked, after = None, [], limit, None
    while found is None or (len(found) == asked // 2 and sum(map(len, free)) < limit):
        found = snapshot.ended(table, before=before, after=after, limit=asked, columns=columns)
        after = found.select(key).slice(len(found) - 1).to_pylist()[0] if len(found) else after
        some, asked = found, 2 * asked
        for is_free in frees:
            some = some.filter(is_free(snapshot, some)) if len(some) else some
        free.append(some)
    return pa.concat_tables(free).slice(0, limit)


def _of_no_live_row(table: str, key: Sequence[str]) -> Free:
    """Which records have an id that the live row of their key has not."""

    def is_free(snapshot: Snapshot, rows: pa.Table) -> pa.Array:
        live = snapshot.get_all(table, rows.select(list(key)).to_pylist(), columns=["id"])
        ids = pa.array([None if row is None else row["id"] for row in live], pa.string())
        return pc.fill_null(pc.not_equal(ids, rows["id"].combine_chunks()), True)

    return is_free


def _tags(snapshot: Snapshot) -> list[str]:
    """The cuts of the tags as the snapshot knows them, whatever becomes of a tag later."""
    rows = snapshot.scan("tags", columns=["version", "dropped"]).to_arrow().to_pylist()
    return [row["version"] for row in rows if not row["dropped"]]


def _is_any(snapshot: Snapshot, table: str, where: Mapping[str, str]) -> bool:
    return any(batch.num_rows for batch in snapshot.scan(table, columns=["name"], where=dict(where)).to_batches())


def _removing(snapshot: Snapshot, table: str, key: Sequence[str], named: Mapping[str, str], id_: str) -> Decision[int]:
    columns = [*key, "_version"]
    found = snapshot.scan(f"deleted_{table}", columns=columns, where={**named, "id": id_}).to_arrow()
    return Decision([Event("purge", table, found)] if len(found) else [], lambda commit: len(found))


def _garbage_payload(row: Mapping[str, Any]) -> Row:
    return {**object_payload(row), "deleted_at": row["deleted_at"]}


def _batch_payload(id_: str | None, rows: pa.Table) -> Row:
    return {"batch_id": id_, "garbage": [_garbage_payload(row) for row in rows.to_pylist()]}
