"""``du``: how many objects there are, and how many bytes, by bucket or by what names begin with.

By bucket it is answered from the sums that checkpoints keep, where they do: then no row is read but those that were written since, and
what these replace. By prefix names and sizes are read, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..log.versions import Version
from ..model.arrays import EXACT, one_chunk
from ..model.times import Time
from ..query.snapshot import Snapshot
from ..state.sums import kept_sums_of, sum_runs
from ..where.conditions import listed
from .asking import BUCKET, BUCKET_ID, BUCKETS, NAME, OBJECTS, OWNER, SIZE, Asked, Owner, Source, asked, whole_number
from .grouping import BYTES, COUNT, Totals, narrow, prefixes

PREFIX = "prefix"
OF_BUCKETS = [pa.field(OWNER, pa.string()), pa.field(BUCKET_ID, pa.string())]
_KEPT = {"objects": COUNT, "bytes": BYTES}
"""The sums that the table of objects declares, by name, and what they are here."""


def du(
    source: Source,
    *,
    bucket: str | None = None,
    owner: Owner = None,
    prefix: str | None = None,
    depth: int | None = None,
    as_of: Time | Version | None = None,
    database: str | None = None,
    ignore_corruption: bool = False,
) -> pa.Table:
    """Objects and bytes of each bucket, of those without any object too; or, with ``prefix`` or ``depth``, of each prefix.

    A prefix ends with the ``depth``-th ``/`` behind ``prefix``; 0, which is meant where only that is given, is ``prefix`` itself. What lies
    less deep counts for the prefix that it lies in, so each object counts once. An object of unknown size counts no bytes.

    Columns: owner, bucket, bucket_id, with a prefix that, objects, bytes. ``as_of`` is a time or a version.
    """
    about = asked(
        source, as_of=as_of, database=database, bucket=bucket, owner=owner, prefix=prefix, ignore_corruption=ignore_corruption
    )
    found = about.with_names(narrow(usage(about, depth_of(about, depth)), [COUNT, BYTES]))
    return found.sort_by([(name, "ascending") for name in (BUCKET, OWNER, BUCKET_ID, PREFIX) if name in found.column_names])


def depth_of(about: Asked, depth: int | None) -> int | None:
    """How deep prefixes are, None where buckets are meant as a whole; ``InvalidOption`` for what is no depth."""
    if depth is not None:
        return whole_number("depth", depth, 0)
    return None if about.place.prefix is None else 0


def usage(about: Asked, depth: int | None) -> pa.Table:
    """Objects and bytes, as decimals, by owner, bucket_id and, unless the depth is None, prefix; in their order."""
    if depth is None:
        return _by_bucket(about).exact()
    keys = [*OF_BUCKETS, pa.field(PREFIX, pa.string())]
    totals, of_prefix = Totals(keys), PrefixesOf(about, depth)
    for batch in about.scan([OWNER, BUCKET_ID, NAME, SIZE]).in_any_order().to_batches():
        groups = {OWNER: batch[OWNER], BUCKET_ID: batch[BUCKET_ID], PREFIX: of_prefix(batch[NAME])}
        totals.add_runs(groups, batch[SIZE])
    return totals.exact()


class PrefixesOf:
    """Names as the prefixes that they count for."""

    def __init__(self, about: Asked, depth: int) -> None:
        self._skip, self._depth = len((about.place.prefix or "").encode()), depth

    def __call__(self, names: pa.Array) -> pa.Array:
        """The prefix of each name."""
        return prefixes(names, self._skip, self._depth)


def _by_bucket(about: Asked) -> Totals:
    totals = Totals(OF_BUCKETS)
    kept = _kept_sums(about)
    if kept is not None:
        for name, summed in _KEPT.items():
            totals.add_sums(_as_totals(kept.filter(pc.equal(kept["name"], name)), summed))
    else:
        for batch in about.scan([OWNER, BUCKET_ID, SIZE]).in_any_order().to_batches():
            totals.add({OWNER: batch[OWNER], BUCKET_ID: batch[BUCKET_ID]}, {BYTES: batch[SIZE]})
    buckets = about.snapshot.scan(BUCKETS, columns=[OWNER, "id"], where=_of_buckets(about.where)).to_arrow()
    nothing = pa.repeat(pa.scalar(0), len(buckets)).cast(EXACT)
    totals.add_sums(pa.table({OWNER: buckets[OWNER], BUCKET_ID: buckets["id"], COUNT: nothing, BYTES: nothing}))
    return totals


def _of_buckets(where: Mapping[str, Any]) -> dict[str, Any]:
    """Conditions on rows of objects as ones on their buckets."""
    return {"id" if name == BUCKET_ID else name: condition for name, condition in where.items()}


def _kept_sums(about: Asked) -> pa.Table | None:
    """What is kept of the objects that are meant, with the columns owner, bucket_id, name and value; None where something is not."""
    sums = kept_sums_of(about.snapshot.state(OBJECTS), _KEPT) if _are_declared(about.snapshot) else None
    if sums is None:
        return None
    rows = pa.table(
        {
            **{name: pc.map_lookup(one_chunk(sums["group"]), name, "first") for name in (OWNER, BUCKET_ID)},
            "name": sums["name"],
            "value": sums["value"],
        }
    )
    for name, condition in about.where.items():
        rows = rows.filter(pc.is_in(rows[name], value_set=pa.array(listed(condition), pa.string())))
    return rows


def _are_declared(snapshot: Snapshot) -> bool:
    """Whether the sums are what they are here: a table may declare others under their names."""
    totals = {run.total.name: run.total for run in sum_runs(snapshot.table(OBJECTS))}
    return all(
        name in totals and (totals[name].group, totals[name].column) == ((OWNER, BUCKET_ID), SIZE if name == BYTES else None)
        for name in _KEPT
    )


def _as_totals(rows: pa.Table, summed: str) -> pa.Table:
    nothing = pa.repeat(pa.scalar(0), len(rows)).cast(EXACT)
    values = {COUNT: nothing, BYTES: nothing, summed: rows["value"]}
    return pa.table({OWNER: rows[OWNER], BUCKET_ID: rows[BUCKET_ID], **values})
