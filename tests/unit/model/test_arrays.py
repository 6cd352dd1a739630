"""A value that stands in many rows takes memory once, and what is kept of such values is bounded."""

from __future__ import annotations

import pyarrow as pa
import pytest

from bucketcatalog.cache import LruCache
from bucketcatalog.model import arrays
from bucketcatalog.model.arrays import repeated

MANY = 5_000
VALUES = [
    pa.scalar("owner"),
    pa.scalar(b"owner"),
    pa.scalar(None, pa.string()),
    pa.scalar(None, pa.int64()),
    pa.scalar(1, pa.int32()),
    pa.scalar(1, pa.int64()),
    pa.scalar(1, pa.timestamp("us")),
    pa.scalar(1, pa.timestamp("us", "UTC")),
    pa.scalar(True),
]


def test_rows_of_a_value_share_memory_and_those_of_another_or_of_another_type_do_not() -> None:
    for count in (1, MANY, MANY + 1):
        made = [repeated(value, count) for value in VALUES]
        assert [(one.type, len(one), one.to_pylist()) for one in made] == [(v.type, count, [v.as_py()] * count) for v in VALUES]
    assert all(repeated(value, MANY) is repeated(value, MANY) for value in VALUES)


def test_little_is_kept_however_many_values_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: LruCache[tuple[pa.Scalar, int], pa.Array] = LruCache(100_000, arrays._repetitions._size)
    monkeypatch.setattr(arrays, "_repetitions", kept)
    for number in range(2_000):
        repeated(pa.scalar(number), 1)
        repeated(pa.scalar(None, pa.null()), MANY + number)
    assert 1 < len(kept._values) <= 100
