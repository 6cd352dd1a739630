"""Pages of a bucket's listing as Arrow columns, and versions made whole.

A bucket lists the versions of a key from the newest to the oldest, which is the only place where their order is known: times may be
equal, and ids say nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from urllib.parse import unquote_to_bytes

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import UnsupportedStore
from ...model.keys import lower_bound
from ...model.tables import TIMESTAMP
from ...store.inventory import IS_DELETE_MARKER, ListedPage, Span

_TEXT = pa.string()
_LISTED = pa.struct(
    [
        ("Key", _TEXT),
        ("LastModified", _TEXT),
        ("ETag", _TEXT),
        ("Size", pa.int64()),
        ("StorageClass", _TEXT),
        ("ChecksumAlgorithm", pa.list_(_TEXT)),
        ("VersionId", _TEXT),
        ("IsLatest", pa.bool_()),
        (IS_DELETE_MARKER, pa.bool_()),
    ]
)
_PARTS = r"^[0-9a-fA-F]{32}-(?P<parts>[0-9]{1,9})$"
_NEXT_STEP = (
    "Harvest a bucket that lists in the order of the keys' bytes. What was committed before this point stays, and may hold deletions of "
    "objects that are there."
)


def page_batch(page: ListedPage, span: Span) -> pa.RecordBatch:
    """The entries of the span: ``key`` as bytes, the listed columns as the table ``objects`` calls them, and those of versions."""
    listed = pa.array(page.entries, _LISTED)
    key, time, etag, size, kind, algorithms, version, latest, marker = listed.flatten()
    etag = pc.utf8_trim(etag, '"')
    batch = pa.record_batch(
        {
            "key": decoded_keys(key) if page.is_encoded else key.cast(pa.binary()),
            "content_length": size,
            "modified": time.cast(TIMESTAMP),
            "etag": etag,
            "storage_class": kind,
            "checksum_algorithm": pc.binary_join(algorithms, ","),
            "parts": pc.struct_field(pc.extract_regex(etag, _PARTS), "parts").cast(pa.int32()),
            "version_id": version,
            "is_latest": latest,
            "is_delete_marker": pc.fill_null(marker, False),
        }
    )
    keys = batch.column("key")
    if span.upto is None or not len(batch) or keys[-1].as_py() <= span.upto.encode():
        return batch
    return batch.slice(0, lower_bound(keys, span.upto.encode() + b"\x00"))


def decoded_keys(keys: pa.Array) -> pa.Array:
    """Percent-encoded keys as bytes; a space may stand as ``+``."""
    if not pc.any(pc.match_substring_regex(keys, "[%+]"), min_count=0).as_py():
        return keys.cast(pa.binary())
    return pa.array([unquote_to_bytes(key.replace("+", " ")) for key in keys.to_pylist()], pa.binary())


def checked_order(
    batches: Iterable[pa.RecordBatch], shown: str, *, repeats: bool, after: bytes | None = None
) -> Iterator[pa.RecordBatch]:
    """The batches, as long as their keys rise from ``after`` on, or with ``repeats`` never fall; ``UnsupportedStore`` else.

    A merge with what the catalog has would take rows for deleted that come out of turn; where keys were left out to come later, it has
    taken them so up to here. Only the end of the listing could tell, and nothing is held back until then.
    """
    rises = pc.less_equal if repeats else pc.less
    last = after
    for batch in batches:
        keys = batch.column("key")
        if not len(keys):
            continue
        first = keys[0].as_py()
        fits = last is None or last < first or (repeats and last == first)
        if not fits or not pc.all(rises(keys[:-1], keys[1:]), min_count=0).as_py():
            raise UnsupportedStore(f"{shown} lists its keys out of order.", next_step=_NEXT_STEP)
        last = keys[-1].as_py()
        yield batch


def combined(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """The batches joined until they have so many rows; none is empty."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting += [batch] if len(batch) else []
        if sum(map(len, waiting)) >= rows:
            yield pa.concat_batches(waiting)
            waiting = []
    if waiting:
        yield pa.concat_batches(waiting)


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
