"""``who``: who has deleted and overwritten what, as tombstones tell: by writer and operation, or object by object.

What was collected has no tombstone any more. The catalog knows writers and their operations, and not who asked a store for what: a harvest
sees that something is gone, and not by whose hand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InvalidOption
from ..log.versions import Version
from ..model.arrays import one_chunk
from ..model.render import DELETED_AT, uuids_of_versions
from ..model.tables import TIMESTAMP
from ..model.times import Moment, Time, datetime_of, parse_time, refuse_reversed_times
from ..query.operations import Operations
from ..where.conditions import between
from .asking import BUCKET, NAME, OWNER, SIZE, Asked, Owner, Source, asked
from .finding import NameOrTag, of_name, tested
from .grouping import BYTES, COUNT, Totals, narrow

DID, WRITER, REVISION, OPERATION, FIRST, LAST, VERSION = "did", "writer", "revision", "operation", "first", "last", "version"
WORDS = {"put": "overwrote", "delete": "deleted", "move": "moved"}
"""What is said of what ended a version."""
_BY, _WHO, _REVISION, _EVENT = "_ended_by", "_end_writer", "_end_revision", "_end_version"
_KEYS = [
    pa.field(_WHO, pa.string()),
    pa.field(_REVISION, pa.int64()),
    pa.field(_EVENT, pa.string()),
    pa.field(_BY, pa.string()),
    pa.field(DELETED_AT, TIMESTAMP),
]
_OBJECT = {
    DELETED_AT: DELETED_AT,
    _BY: DID,
    _WHO: WRITER,
    _REVISION: REVISION,
    "_end_operation": OPERATION,
    OWNER: OWNER,
    BUCKET: BUCKET,
    NAME: NAME,
    SIZE: SIZE,
    "_version": VERSION,
}


def who(
    source: Source,
    *,
    since: Time | None = None,
    until: Time | None = None,
    by: str | None = None,
    name: str | None = None,
    bucket: str | None = None,
    owner: Owner = None,
    prefix: str | None = None,
    as_of: Time | Version | None = None,
    database: str | None = None,
    ignore_corruption: bool = False,
) -> pa.Table:
    """Who has ended versions of objects from ``since`` up to ``until``, and how: overwrote, deleted, or moved.

    ``by="writer"``, the default: for each writer, operation and way how many versions and bytes, and the first and the last time; the
    last to do so first. The operation is null where its transaction was pruned. One request for each transaction that ended any.

    ``by="object"``, the default with a ``name``: each version with when, how, by whom (the writer, and its revision), its size and its
    name as a version, the newest end first. All of them are held: narrow them down where they are many. ``name`` is a glob, as ``find``
    has it.
    """
    how = by if by is not None else "object" if name is not None else "writer"
    if how not in ("writer", "object"):
        raise InvalidOption(f"It cannot be told by {how!r}.", next_step='Give by="writer" or by="object".')
    about = asked(
        source, as_of=as_of, database=database, bucket=bucket, owner=owner, prefix=prefix, ignore_corruption=ignore_corruption
    )
    refuse_reversed_times(Moment.of(since, about.now), Moment.of(until, about.now))
    window = [None if time is None else datetime_of(parse_time(time, about.now)) for time in (since, until)]
    where: dict[str, Any] = {} if window == [None, None] else {DELETED_AT: between(*window)}
    tests: list[NameOrTag] = []
    if name is not None:
        test, narrower = of_name(name, prefix)
        tests.append(test)
        where |= narrower
    return _by_object(about, where, tests) if how == "object" else _by_writer(about, where, tests)


def _by_object(about: Asked, where: Mapping[str, Any], tests: Sequence[NameOrTag]) -> pa.Table:
    rows = tested(about, list(_OBJECT), where, tests, ended=True).to_arrow().rename_columns(list(_OBJECT.values()))
    rows = rows.take(pc.sort_indices(rows.select([DELETED_AT]), sort_keys=[(DELETED_AT, "descending")]))
    return rows.set_column(rows.column_names.index(DID), DID, _told(rows[DID]))


def _by_writer(about: Asked, where: Mapping[str, Any], tests: Sequence[NameOrTag]) -> pa.Table:
    of_transactions, columns = Totals(_KEYS), [*(field.name for field in _KEYS), SIZE]
    for batch in tested(about, columns, where, tests, ended=True).in_any_order().to_batches():
        keys = {field.name: batch[field.name] for field in _KEYS}
        keys[_EVENT] = uuids_of_versions(keys[_EVENT])
        of_transactions.add(keys, {BYTES: batch[SIZE]})
    ended = of_transactions.exact().combine_chunks()
    operations, _ = Operations.of_ends(about.snapshot.database).made(ended, about.snapshot.files.store)
    told = pa.table(
        {
            WRITER: ended[_WHO],
            OPERATION: operations,
            DID: _told(ended[_BY]),
            COUNT: ended[COUNT],
            BYTES: ended[BYTES],
            FIRST: ended[DELETED_AT],
            LAST: ended[DELETED_AT],
        }
    )
    grouped = told.group_by([WRITER, OPERATION, DID]).aggregate([(COUNT, "sum"), (BYTES, "sum"), (FIRST, "min"), (LAST, "max")])
    names = {f"{COUNT}_sum": COUNT, f"{BYTES}_sum": BYTES, f"{FIRST}_min": FIRST, f"{LAST}_max": LAST}
    found = narrow(
        grouped.select([WRITER, OPERATION, DID, *names]).rename_columns([WRITER, OPERATION, DID, *names.values()]), [COUNT, BYTES]
    )
    order = [(LAST, "descending"), (WRITER, "ascending"), (OPERATION, "ascending"), (DID, "ascending")]
    return found.sort_by(order)


def _told(ended_by: pa.ChunkedArray) -> pa.Array:
    words, kinds = pa.array(list(WORDS.values())), pa.array(list(WORDS))
    return words.take(pc.index_in(one_chunk(ended_by), value_set=kinds))
