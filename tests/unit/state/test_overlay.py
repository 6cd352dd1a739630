"""An overlay says by itself what is live of a key where it holds nothing but later PUTs and DELETEs of it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from bucketcatalog.model.facts import End, Facts, Kind, SortedFacts, transaction_table
from bucketcatalog.model.keys import encode_key, shared_columns, without_leading
from bucketcatalog.model.tables import Column, DataType, Table
from bucketcatalog.state.overlay import apply, split
from bucketcatalog.state.plan import Part

KEY = Column(1, "k", DataType.STRING)
TABLE = Table("t", (KEY, Column(2, "v", DataType.STRING)), ("k",))
TIMES = transaction_table([(time, "w", time, bytes([time]) * 16) for time in range(10)])
PUT, DELETE = Kind.VERSION, Kind.DELETE


def facts(*rows: tuple[str, Kind, int, int | None, End]) -> Facts:
    """Facts of a key, a kind, a commit time from 0 to 9, and the time and kind of an end."""
    keys, kinds, times, ended, ends = zip(*rows, strict=True)
    columns = {
        "1": pa.array(keys),
        "2": pa.array([f"{key}{time}" for key, time in zip(keys, times, strict=True)]),
        "_kind": pa.array(kinds, pa.uint8()),
        "_txn": pa.array(times, pa.int32()),
        "_seq": pa.array([0] * len(keys), pa.int32()),
        "_end_txn": pa.array(ended, pa.int32()),
        "_end_seq": pa.array([None if end is None else 0 for end in ended], pa.int32()),
        "_end_kind": pa.array(ends, pa.uint8()),
    }
    return Facts(TIMES, pa.table(columns))


def put(key: str, time: int, ended: int | None = None, end: End = End.NONE) -> tuple[str, Kind, int, int | None, End]:
    return key, PUT, time, ended, end


def delete(key: str, time: int) -> tuple[str, Kind, int, int | None, End]:
    return key, DELETE, time, None, End.NONE


def live(base: Facts, overlay: Facts, newest: int) -> tuple[list[str], list[str]]:
    """What is live, and the keys that had to be folded."""
    parted = split(SortedFacts.of(overlay, TABLE), TABLE, Part.LIVE, newest)
    found = apply(base, parted, TABLE, Part.LIVE)
    return found.rows["2"].to_pylist(), parted.rest.facts.rows["1"].to_pylist()


@pytest.mark.parametrize(
    ("overlay", "expected", "folded"),
    [
        ([put("a", 5)], ["a5", "b1"], []),
        ([put("a", 5), put("a", 7)], ["a7", "b1"], []),
        ([put("a", 7), put("a", 5), put("a", 6)], ["a7", "b1"], []),
        ([put("a", 5), delete("a", 7)], ["b1"], []),
        ([delete("a", 5), put("a", 7)], ["a7", "b1"], []),
        ([put("c", 5), put("c", 6)], ["a1", "b1", "c6"], []),
        ([delete("a", 5), delete("b", 5)], [], []),
        ([put("a", 2), put("b", 5)], ["a2", "b5"], ["a"]),
        ([delete("a", 5), put("b", 2), put("b", 3)], ["b3"], ["b", "b"]),
    ],
)
def test_the_last_put_or_delete_of_a_key_tells_unless_it_is_no_later_than_the_base(
    overlay: list[tuple[str, Kind, int, int | None, End]], expected: list[str], folded: list[str]
) -> None:
    assert live(facts(put("a", 1), put("b", 1)), facts(*overlay), newest=2) == (expected, folded)


def test_a_delete_that_ended_an_earlier_put_in_another_checkpoint_ends_a_later_put_too() -> None:
    elsewhere = [put("a", 5, ended=8, end=End.DELETE), put("a", 7)]
    assert live(facts(put("a", 1), put("b", 1)), facts(*elsewhere), newest=2) == (["b1"], ["a", "a"])


def test_a_put_that_two_checkpoints_hold_has_ended_if_it_has_in_one_of_them() -> None:
    twice = [put("a", 7, ended=8, end=End.NAMED_DELETE), put("a", 7)]
    assert live(facts(put("a", 1), put("b", 1)), facts(*twice), newest=2) == (["b1"], ["a", "a"])


@pytest.mark.parametrize(
    ("first", "last", "shared"),
    [
        (("x", 1, "a"), ("x", 1, "b"), 2),
        (("x", 1, "a"), ("x", 2, "a"), 1),
        (("x", 1, "a"), ("xx", 1, "a"), 0),
        (("x\0\x01", 1, "a"), ("x\0\x01", 1, "a"), 2),
        (("x\0", 1, "a"), ("x\0\x01", 1, "a"), 0),
        (("x", 1, "a"), ("x", 1, "a"), 2),
    ],
)
def test_leading_key_columns_are_shared_where_a_range_has_one_value_of_them(
    first: tuple[str, int, str], last: tuple[str, int, str], shared: int
) -> None:
    columns = (Column(1, "a", DataType.STRING), Column(2, "b", DataType.INT32), Column(3, "c", DataType.STRING))
    table = Table("t", columns, ("a", "b", "c"))
    keys = [encode_key(table, dict(zip(table.key, key, strict=True))) for key in (first, last)]
    assert shared_columns(table, *keys) == shared
    assert [column.name for column in without_leading(table, shared).key_columns] == ["a", "b", "c"][shared:]
