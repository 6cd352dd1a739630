"""Versions of objects as a bucket lists them: whole names, their order as numbers, and which of them are current.

A bucket lists the versions of a key from the newest to the oldest, which is the only place where their order is told: times may be
equal, and ids say nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...model.keys import lower_bound

ONLY_VERSIONS = ("ordinal", "is_latest", "is_delete_marker")
"""Columns of versions that objects do not have."""


def whole_names(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches, sorted by ``key``, cut anew so that no key is in two: held are a batch and the versions of one key."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        keys = batch.column("key")
        last = keys[-1].as_py()
        if held and held[0].column("key")[0].as_py() != keys[0].as_py():
            yield pa.concat_batches(held)
            held = []
        at = lower_bound(keys, last)
        if at:
            yield pa.concat_batches([*held, batch.slice(0, at)])
            held = []
        held.append(batch.slice(at))
    if held:
        yield pa.concat_batches(held)


def with_ordinals(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with ``ordinal``: of each key, from the oldest version up, its time in microseconds, or one more than the one before.

    It depends on what is listed alone: the same versions have the same ordinals each time, and a new one has a larger one.
    """
    times = np.asarray(batch.column("modified").cast(pa.int64()))[::-1]
    names = np.asarray(batch.column("key").dictionary_encode().indices)[::-1]
    ordinals = _rising(times, names)[::-1]
    return batch.append_column("ordinal", pa.array(ordinals))


def _rising(times: npt.NDArray[np.int64], names: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Within each run of one name ``max(time, the one before + 1)``."""
    count = len(times)
    if count < 2 or np.all((times[1:] > times[:-1]) | (names[1:] != names[:-1])):
        return times
    places = np.arange(count, dtype=np.int64)
    _, ranks = np.unique(times - places, return_inverse=True)
    group = np.cumsum(np.append(0, names[1:] != names[:-1]))
    # A cumulative maximum that begins anew with each name: the name's number is the leading digit.
    best = np.maximum.accumulate(group * count + ranks) - group * count
    values = np.unique(times - places)
    result: npt.NDArray[np.int64] = values[best] + places
    return result


def current(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The objects that a listing without versions would show."""
    shown = pc.and_not(batch.column("is_latest"), batch.column("is_delete_marker"))
    return batch.filter(shown).drop_columns([name for name in ONLY_VERSIONS if name in batch.schema.names])
