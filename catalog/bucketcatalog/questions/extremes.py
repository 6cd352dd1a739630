"""``top``: the largest, the oldest or the newest objects.

One column is read whole, of which the best values are kept batch by batch. Then the rows of these are read: statistics leave out the blocks
that have none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InvalidOption
from ..log.versions import Version
from ..model.arrays import one_chunk
from ..model.names import names_given
from ..model.times import Time
from ..where.conditions import between
from .asking import BUCKET, CLASS, MODIFIED, NAME, OWNER, SIZE, Asked, Owner, Source, asked, whole_number

SHOWN = (BUCKET, NAME, SIZE, MODIFIED, CLASS, OWNER)
_HELD = 1 << 16


@dataclass(frozen=True)
class _Order:
    column: str
    order: str

    def best(self, values: pa.Array, count: int) -> pa.Array:
        """The best values, at most so many, the best first."""
        table = pa.table({self.column: values})
        return values.take(pc.select_k_unstable(table, count, [(self.column, self.order)]))

    def no_worse_than(self, value: Any) -> Any:
        """The condition of a value and whatever comes before it."""
        return between(value, None) if self.order == "descending" else between(None, value)


ORDERS: Mapping[str, _Order] = {
    "largest": _Order(SIZE, "descending"),
    "oldest": _Order(MODIFIED, "ascending"),
    "newest": _Order(MODIFIED, "descending"),
}


def top(
    source: Source,
    by: str = "largest",
    n: int = 10,
    *,
    bucket: str | None = None,
    owner: Owner = None,
    prefix: str | None = None,
    columns: Sequence[str] = SHOWN,
    as_of: Time | Version | None = None,
    database: str | None = None,
    ignore_corruption: bool = False,
) -> pa.Table:
    """The ``n`` objects that are ``"largest"``, ``"oldest"`` or ``"newest"`` (by ``modified``), the first first; equal ones by their keys.

    Objects of unknown size are none of the largest. ``columns`` are as of a scan, ``bucket`` among them.
    """
    if by not in ORDERS:
        raise InvalidOption(f"Objects cannot be ordered by {by!r}.", next_step=f"Give one of {', '.join(ORDERS)}.")
    count, order = whole_number("n", n, 1), ORDERS[by]
    wanted = names_given(columns, "columns", "columns=['name']")
    about = asked(
        source, as_of=as_of, database=database, bucket=bucket, owner=owner, prefix=prefix, ignore_corruption=ignore_corruption
    )
    read = list(dict.fromkeys([*wanted, order.column]))
    best = _best(about, order, count)
    if not len(best):
        return about.scan(read).head(0).select(list(wanted))
    found = _rows_of(about, read, order, best)
    stable = pc.sort_indices(found.select([order.column]), sort_keys=[(order.column, order.order)])
    return found.take(stable).select(list(wanted))


def _best(about: Asked, order: _Order, count: int) -> pa.Array:
    """The values of the objects that are asked for, the first first."""
    held: list[pa.Array] = []
    for batch in about.scan([order.column]).in_any_order().to_batches():
        held.append(batch.column(0).drop_null())
        if sum(map(len, held)) > _HELD + 2 * count:
            held = [order.best(pa.concat_arrays(held), count)]
    return order.best(one_chunk(pa.chunked_array(held)), count) if held else pa.array([], pa.int64())


def _rows_of(about: Asked, columns: Sequence[str], order: _Order, best: pa.Array) -> pa.Table:
    """The rows that have these values: all that are better than the last one, and of those that have it the first ones by key."""
    last = best[-1]
    wanted = len(best) - int(pc.sum(pc.not_equal(best, last)).as_py())
    scan = about.scan(columns, {order.column: order.no_worse_than(last.as_py())})
    parts: list[pa.RecordBatch] = []
    for batch in scan.to_batches():
        is_last = np.asarray(pc.equal(one_chunk(batch[order.column]), last))
        kept = ~is_last
        kept[np.flatnonzero(is_last)[:wanted]] = True
        wanted -= int(np.count_nonzero(kept & is_last))
        parts.append(batch.filter(pa.array(kept)))
    return pa.Table.from_batches(parts, scan.schema)
