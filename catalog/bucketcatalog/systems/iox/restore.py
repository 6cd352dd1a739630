"""Restoring: one transaction that makes a data table what it was at another cut, its files, what is deleted of them, and their statistics.

Files that were there are named again, and files that were not are ended, each with what is known of it. A compaction that was planned
before and lands afterwards may have left rows out that count again. So files that it can have read begin a new version, which it
does not end, and its file is said to have none of their rows, by a removal that all others have applied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from ...clock import now_us
from ...errors import UnknownTable
from ...model.arrays import one_chunk
from ...query.snapshot import Snapshot
from ...write.writer import Writer
from .files import FILES
from .live import Live
from .predicates import PREDICATES, Predicate, delete_rows
from .statistics import TABLE as STATISTICS

_OF_VERSIONS = ("table", "partition", "chunk", "_version")


@dataclass(frozen=True)
class Restored:
    """What a restore has come to, or would: files that are there again, files that ended, and deletions that hold again or no more.

    ``version`` is the commit; None where nothing is to be done, and of a dry run.
    """

    table: str
    files_put: int
    files_ended: int
    deletions_put: int
    deletions_ended: int
    version: str | None


def restore(writer: Writer | None, then: Snapshot, now: Snapshot, table: str) -> Restored:
    """Make a data table what it was ``then``, or without a writer say what that takes; nothing is committed where it is that ``now``.

    ``DataCollected`` where a file that was there may have been deleted since, ``UnknownTable`` where there was no such table.
    """
    was, live = Live.of(then, table), Live.of(now, table)
    if was is None or live is None:
        raise UnknownTable(f"There was no data table {table!r} at that version.", next_step="Restore it to a later one.")
    back, gone = _only_in(was.files, live.files), _only_in(live.files, was.files)
    held, over = _ids(was, live, was), _ids(live, was, was)
    if writer is None or not (len(back) or len(gone) or held or over):
        return Restored(table, len(back), len(gone), len(held), len(over), None)
    store, place = now.files.store, (writer.id, writer.database)
    with writer.transaction(operation="restore", metadata={"table": table, "version": then.version}) as tx:
        tx.rests_on(now)
        again = _left_out_since(was, live, over)
        applied = delete_rows(tx, store, place, table, again, time=now_us(), is_told=False)
        if len(back):
            rows = _rows(then, FILES, table, "chunk", one_chunk(back["chunk"]))
            tx.put(FILES, _with(applied, rows).drop_columns(["_version"]), data_of=rows.select(_OF_VERSIONS))
            tx.put(STATISTICS, _rows(then, STATISTICS, table, "chunk", one_chunk(back["chunk"])).drop_columns(["_version"]))
        kept = _kept(was, live, again)
        if len(kept):
            rows = _rows(now, FILES, table, "chunk", kept)
            tx.put(FILES, _with(applied, rows).drop_columns(["_version"]), data_of=rows.select(_OF_VERSIONS))
        if len(gone):
            live.end(tx, gone)
            ended = pa.array(live.where_added(gone), pa.string())
            counted = pc.is_in(ended, value_set=one_chunk(was.claims["chunk"]))
            delete_rows(tx, store, place, table, ended.filter(pc.invert(counted)).to_pylist(), time=now_us())
        if held:
            rows = _rows(then, PREDICATES, table, "id", pa.array(held))
            tx.put(PREDICATES, rows.drop_columns(["_version"]), data_of=rows.select(["table", "id", "_version"]))
        if over:
            tx.delete(PREDICATES, [{"table": table, "id": id_} for id_ in over])
    version = None if tx.committed is None else tx.committed.version
    return Restored(table, len(back), len(gone), len(held), len(over), version)


def _left_out_since(was: Live, live: Live, over: Sequence[str]) -> list[str]:
    """Where rows were added that count again, and that whoever compacts now may leave out of what he makes."""
    if was.key_columns:  # newer rows may have replaced any
        return sorted(one_chunk(was.claims["chunk"]).unique().to_pylist())
    spoken = [was.concerned_by(each)["chunk"] for each in live.predicates if each.id in over]
    return sorted({chunk for chunks in spoken for chunk in chunks.to_pylist()})


def _kept(was: Live, live: Live, chunks: Sequence[str]) -> pa.Array:
    """The files that were there, still are, and have rows of these: named anew, since who compacts now ends them as he has read them."""
    claims = live.claims.filter(pc.is_in(live.claims["chunk"], value_set=pa.array(chunks, pa.string())))
    files = live.files["chunk"].take(claims["file"]).unique()
    return files.filter(pc.is_in(files, value_set=one_chunk(was.files["chunk"])))


def _with(applied: Sequence[str], rows: pa.Table) -> pa.Table:
    """Rows of files as ones to which these predicates have been applied, where compaction has made them."""
    if not applied:
        return rows
    said = [
        [*(before or ()), *applied] if origins else before
        for before, origins in zip(rows["applied"].to_pylist(), rows["origins"].to_pylist(), strict=True)
    ]
    at = rows.schema.get_field_index("applied")
    return rows.set_column(at, rows.schema.field(at), pa.array(said, rows.schema.field(at).type))


def _only_in(one: pa.Table, other: pa.Table) -> pa.Table:
    return one.filter(pc.invert(pc.is_in(one["chunk"], value_set=one_chunk(other["chunk"]))))


def _ids(one: Live, other: Live, of: Live) -> list[str]:
    """The deletions that one has and the other has not, of those that keep rows that a third one has from counting."""
    there = {each.id for each in other.predicates}
    return [each.id for each in one.predicates if each.id not in there and _concerns(each, one, of)]


def _concerns(predicate: Predicate, said: Live, of: Live) -> bool:
    """Whether rows of a file do not count for a predicate; none of those that already say that they are without them."""
    files = of.concerned_by(predicate)["file"]
    if predicate.is_removal:
        files = files.filter(of.is_compacted.take(files))
    left = pc.invert(pc.is_in(of.files["chunk"].take(files), value_set=said.without_rows_of(predicate)))
    return bool(pc.any(left, min_count=0).as_py())


def _rows(snapshot: Snapshot, name: str, table: str, column: str, values: pa.Array) -> pa.Table:
    """The rows of a table about some files or deletions, whole, with their versions."""
    columns = [*snapshot.scan(name).schema.names, "_version"]
    found = snapshot.scan(name, columns=columns, where={"table": table}).to_arrow()
    return found.filter(pc.is_in(found[column], value_set=values))
