"""Hashes of rows are alike where the rows are, wherever they stand, and of different rows differ."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bucketcatalog.model.row_hashes import hash_rows

VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "text": (pa.string(), [None, "", "a", "ab", "b" * 100]),
    "bytes": (pa.binary(), [None, b"", b"\x00", b"\x00\x00", b"a"]),
    "numbers": (pa.int64(), [None, 0, 1, -1, 10, 2**62]),
    "floats": (pa.float64(), [None, 0.0, 1.0, -1.5, 1e300, float("inf"), 0.1]),
    "large": (pa.uint64(), [None, 0, 2**64 - 1]),
    "flags": (pa.bool_(), [None, True, False]),
    "times": (pa.timestamp("us", "UTC"), [None, 0, 1, -1]),
    "lists": (pa.list_(pa.string()), [None, [], [""], ["", ""], ["a", "b"], ["b", "a"], ["ab"], [None]]),
    "maps": (pa.map_(pa.string(), pa.string()), [None, [], [("a", "b")], [("b", "a")], [("a", "")], [("a", "b"), ("c", "d")]]),
    "empty messages": (pa.struct([("_", pa.bool_())]), [None, {}]),
    "messages": (
        pa.struct([("x", pa.int32()), ("y", pa.list_(pa.int32()))]),
        [None, {}, {"x": 1}, {"y": [1]}, {"x": 1, "y": [1, 2]}, {"x": 1, "y": [2, 1]}],
    ),
}


def hashes(values: list[Any], kind: pa.DataType) -> list[int]:
    return list(hash_rows([pa.array(values, kind)], len(values)).tolist())


@pytest.mark.parametrize("name", VALUES)
def test_different_values_differ_and_equal_ones_do_not_wherever_they_stand(name: str) -> None:
    kind, values = VALUES[name]
    found = hashes(values, kind)
    assert len({*found}) == len(values)
    assert hashes(values[::-1] * 3, kind) == found[::-1] * 3
    cut = pa.array([*values, *values], kind).slice(len(values) - 1, len(values))
    assert hash_rows([cut], len(values)).tolist() == [found[-1], *found[:-1]]
    assert hash_rows([pa.chunked_array([cut.slice(0, 2), cut.slice(2)])], len(values)).tolist() == [found[-1], *found[:-1]]


def test_what_stands_in_another_column_is_another_row() -> None:
    columns = [list(pair) for pair in zip(*itertools.product(["", "a", "b", None], repeat=2), strict=True)]
    assert len({*hash_rows(map(pa.array, columns), 16).tolist()}) == 16
    assert hash_rows([pa.array(columns[0]).dictionary_encode()], 16).tolist() == hash_rows([pa.array(columns[0])], 16).tolist()
    assert hash_rows([pa.nulls(3)], 3).tolist() == hash_rows([pa.nulls(3, pa.int64())], 3).tolist()
    assert hash_rows([], 0).dtype == np.uint64
