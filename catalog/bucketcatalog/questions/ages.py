"""``age``: how much has lain unchanged for how long, by storage class: what nobody has touched."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InvalidOption
from ..log.versions import Version
from ..model.arrays import one_chunk
from ..model.times import Age, Time, age_micros, shown_age
from .asking import CLASS, MODIFIED, SIZE, Owner, Source, asked
from .grouping import BYTES, COUNT, Totals

EDGES: tuple[Age, ...] = ("1d", "7d", "30d", "90d", "180d", "365d", "730d")
FROM, BELOW = "from_age", "below_age"
_AT = "at"


def age(
    source: Source,
    *,
    edges: Sequence[Age] = EDGES,
    bucket: str | None = None,
    owner: Owner = None,
    prefix: str | None = None,
    as_of: Time | Version | None = None,
    database: str | None = None,
    ignore_corruption: bool = False,
) -> pa.Table:
    """Objects and bytes by storage class and by the age of ``modified``, between each of the ``edges`` and the next.

    Columns: storage_class, from_age and below_age (text; the last has no end), objects, bytes. Of each class there is a row for each age,
    also for those of which it has nothing. Ages count from now, or from ``as_of``; what was modified later counts as new.
    """
    bounds = _ascending(edges)
    about = asked(
        source, as_of=as_of, database=database, bucket=bucket, owner=owner, prefix=prefix, ignore_corruption=ignore_corruption
    )
    totals = Totals([pa.field(CLASS, pa.string()), pa.field(_AT, pa.int64())])
    for batch in about.scan([CLASS, MODIFIED, SIZE]).in_any_order().to_batches():
        ages = about.now - np.asarray(pc.fill_null(one_chunk(batch[MODIFIED]).cast(pa.int64()), about.now))
        at = np.searchsorted(np.array(bounds, dtype=np.int64), ages, side="right")
        totals.add({CLASS: batch[CLASS], _AT: pa.array(at.astype(np.int64))}, {BYTES: batch[SIZE]})
    return _histogram(totals, _shown(edges))


def _shown(edges: Sequence[Age]) -> list[str]:
    """The edges as they were given, where that is text."""
    return [edge if isinstance(edge, str) else shown_age(age_micros(edge)) for edge in edges]


def _ascending(edges: Sequence[Age]) -> list[int]:
    """The edges in microseconds; ``InvalidOption`` where there is none, or where they do not ascend."""
    if not isinstance(edges, (list, tuple)) or not edges:
        raise InvalidOption(f"The edges {edges!r} are no list of ages.", next_step="Give some, such as ['30d', '365d'].")
    bounds = [age_micros(edge) for edge in edges]
    if bounds[0] <= 0 or any(low >= high for low, high in pairwise(bounds)):
        raise InvalidOption(
            f"The edges {', '.join(_shown(edges))} do not ascend.", next_step="Begin with the youngest age, above 0."
        )
    return bounds


def _histogram(totals: Totals, shown: Sequence[str]) -> pa.Table:
    """A row for each class and age, in that order, a class that is unknown last."""
    ages = len(shown) + 1
    classes = pc.unique(totals.exact()[CLASS])
    zeros = pa.repeat(pa.scalar(0), len(classes) * ages)
    every = {
        CLASS: classes.take(pa.array(np.repeat(np.arange(len(classes)), ages))),
        _AT: pa.array(np.tile(np.arange(ages), len(classes))),
    }
    totals.add_sums(pa.table({**every, COUNT: zeros, BYTES: zeros}))
    found = totals.rows()
    from_age, below = pa.array(["0s", *shown]), pa.array([*shown, None], pa.string())
    at = one_chunk(found[_AT])
    return pa.table(
        {
            CLASS: found[CLASS],
            FROM: from_age.take(at),
            BELOW: below.take(at),
            COUNT: found[COUNT],
            BYTES: found[BYTES],
        }
    )
