"""Storage accounting: who uses how much, what a deletion would free and where, and how that has grown.

By owner and by bucket live objects are counted from the sums that checkpoints keep, without a look at the objects. By content type and by
shark, below a prefix, and of what is deleted, the rows are read, a batch at a time. In Spark the views ``manta_usage_...`` answer the same,
and ``manta_garbage_...`` what collection will free.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ... import prefix as beginning_with
from ...errors import InvalidOption
from ...model.arrays import one_chunk
from ...query.snapshot import Snapshot
from .names import uuid_text

BY = {"owner": ("owner",), "bucket": ("owner", "bucket_id"), "content_type": ("owner", "content_type"), "shark": ("shark",)}
"""What is counted by, and the columns of it."""
_COUNTS = ("objects", "bytes")
_MOST_PARTS = 64


def usage(
    snapshot: Snapshot,
    by: str,
    *,
    deleted: bool = False,
    owner: str | None = None,
    bucket_id: str | None = None,
    prefix: str = "",
) -> pa.Table:
    """How many ``objects`` and ``bytes`` there are by ``owner``, ``bucket``, ``content_type`` or ``shark``, in the order of these.

    Of live objects that is what they use, and what their deletion would free; of ``deleted`` ones what their collection frees. By shark
    each copy counts where it lies. A bucket is told with its owner, and the prefix of names within a bucket.
    """
    names = _columns(by)
    owner = None if owner is None else uuid_text("owner", owner)
    bucket_id = None if bucket_id is None else uuid_text("bucket_id", bucket_id)
    if (bucket_id is not None and owner is None) or (prefix and bucket_id is None):
        raise InvalidOption(
            "A bucket is told with its owner, and a prefix with its bucket.", next_step="Give owner, bucket_id and prefix."
        )
    if by in ("owner", "bucket") and not deleted and bucket_id is None:
        return _ordered(_of_sums(snapshot, names, owner), names)
    where = {"owner": owner, "bucket_id": bucket_id, "name": beginning_with(prefix) if prefix else None}
    conditions = {name: value for name, value in where.items() if value is not None}
    return _ordered(_of_rows(snapshot, by, names, "deleted_objects" if deleted else "objects", conditions), names)


def growth(earlier: Snapshot | None, later: Snapshot, by: str) -> pa.Table:
    """What live objects use at two moments, and the difference, for whatever there is at either; without an ``earlier`` one, of nothing.

    ``objects`` and ``bytes`` are those of the later one, ``objects_grown`` and ``bytes_grown`` what they are more than before.
    """
    names = _columns(by)
    now = usage(later, by)
    before = usage(earlier, by) if earlier is not None else now.slice(0, 0)
    grown = [_renamed(now, 1), _renamed(before, -1)]
    totals = _summed(grown, names, (*_COUNTS, *(f"{name}_grown" for name in _COUNTS)))
    return _ordered(totals, names)


def _columns(by: str) -> tuple[str, ...]:
    if by not in BY:
        raise InvalidOption(f"Nothing is counted by {by!r}.", next_step=f"Choose of {', '.join(BY)}.")
    return BY[by]


def _of_sums(snapshot: Snapshot, names: Sequence[str], owner: str | None) -> pa.Table:
    """Counts by columns of the groups that sums are kept by."""
    sums = snapshot.scan("sums", where={"table": "objects"}).to_arrow()
    parts = []
    for count in _COUNTS:
        rows = sums.filter(pc.equal(sums["name"], count))
        groups = {name: pc.map_lookup(rows["group"].combine_chunks(), pa.scalar(name), "first") for name in BY["bucket"]}
        values = {each: rows["value"] if each == count else pa.repeat(0, len(rows)) for each in _COUNTS}
        parts.append(pa.table({**groups, **{name: pc.cast(value, pa.int64()) for name, value in values.items()}}))
    joined = pa.concat_tables(parts)
    if owner is not None:
        joined = joined.filter(pc.equal(joined["owner"], owner))
    return _summed([joined], names, _COUNTS)


def _of_rows(snapshot: Snapshot, by: str, names: Sequence[str], table: str, where: dict[str, Any]) -> pa.Table:
    columns = ["sharks" if name == "shark" else name for name in names]
    parts: list[pa.Table] = []
    for counted in _counted(snapshot, by, names, [*columns, "content_length"], table, where):
        parts.append(counted)
        if len(parts) == _MOST_PARTS:
            parts = [_summed(parts, names, _COUNTS)]
    empty = pa.table(
        {**{name: pa.array([], pa.string()) for name in names}, **{name: pa.array([], pa.int64()) for name in _COUNTS}}
    )
    return _summed([empty, *parts], names, _COUNTS)


def _counted(
    snapshot: Snapshot, by: str, names: Sequence[str], columns: Sequence[str], table: str, where: dict[str, Any]
) -> Iterator[pa.Table]:
    """Batch by batch the groups of rows, each with 1 and its bytes."""
    for batch in snapshot.scan(table, columns=columns, where=where).to_batches():
        rows = pa.Table.from_batches([batch])
        lengths = pc.fill_null(one_chunk(rows["content_length"]), 0)
        if by == "shark":
            sharks = one_chunk(rows["sharks"])
            groups = {"shark": pc.list_flatten(sharks)}
            lengths = lengths.take(pc.list_parent_indices(sharks))
        else:
            groups = {name: rows[name] for name in names}
        ones = pa.repeat(pa.scalar(1, pa.int64()), len(lengths))
        yield _summed([pa.table({**groups, "objects": ones, "bytes": lengths})], names, _COUNTS)


def _renamed(counts: pa.Table, sign: int) -> pa.Table:
    """Counts of one moment: they are those of now, or add to what has grown alone."""
    zero = pa.repeat(pa.scalar(0, pa.int64()), len(counts))
    for name in _COUNTS:
        counts = counts.append_column(f"{name}_grown", pc.multiply(counts[name], sign))
        if sign < 0:
            counts = counts.set_column(counts.schema.get_field_index(name), name, zero)
    return counts


def _summed(parts: Sequence[pa.Table], names: Sequence[str], counts: Sequence[str]) -> pa.Table:
    joined = pa.concat_tables(parts)
    grouped = joined.group_by(list(names)).aggregate([(count, "sum") for count in counts])
    return grouped.select([*names, *(f"{count}_sum" for count in counts)]).rename_columns([*names, *counts])


def _ordered(counts: pa.Table, names: Sequence[str]) -> pa.Table:
    return counts.sort_by([(name, "ascending") for name in names])
