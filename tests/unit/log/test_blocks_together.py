"""Row groups that lie side by side are read together: what comes of it, and what is said of damage, is what each by itself gives."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from bucketcatalog import CorruptionError, limits
from bucketcatalog.format import segments as format_segments
from bucketcatalog.format.definitions import core_tables
from bucketcatalog.format.headers import BlockClass, BlockPlace
from bucketcatalog.format.segments import RunRows
from bucketcatalog.log import blocks, segments
from bucketcatalog.log.blocks import read_block, read_blocks, side_by_side
from bucketcatalog.model.facts import concat
from bucketcatalog.model.keys import EVERYTHING, KeyRange
from bucketcatalog.model.tables import Table
from bucketcatalog.store.faults import Counting
from bucketcatalog.store.memory import MemoryStore

from ...kit.storing import Written, contents, everything, facts_with, rows_of, written

ALL = everything()
WORDS = core_tables()["harvest_errors"]
STEP, GROUPS = 8, 4


@pytest.fixture(autouse=True)
def small_row_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (format_segments, segments):
        monkeypatch.setattr(module, "ROW_GROUP_ROWS", STEP)


def words(count: int = STEP * GROUPS) -> Written:
    """Rows whose first column is constant in all row groups but the last, and the same in the first two."""
    sources = ["a", "a", "b", "cd"]
    rows = [
        {"1": (s := sources[n // STEP % GROUPS])[n % len(s) :][:1] or s[-1], "2": f"{n:04}", "4": f"{n % 3}"}
        for n in range(count)
    ]
    return written(RunRows(facts_with(WORDS, rows), WORDS, BlockClass.LIVE))


def every_type() -> Written:
    return written(RunRows(facts_with(ALL, rows_of(ALL, STEP * 3)), ALL, BlockClass.LIVE))


def stored(segment: Written) -> Counting:
    store = Counting(MemoryStore())
    store.put(segment.places[0].name, segment.data)
    return store


def same_both_ways(segment: Written, table: Table, columns: Collection[str] | None, keys: KeyRange = EVERYTHING) -> int:
    """How many rows are read, which are the same together and one by one, and take as many requests."""
    together, alone = stored(segment), stored(segment)
    places = [p for p in segment.places if keys.overlaps(p.header.first_key, p.header.last_key)]
    found = concat([read_blocks(together, some, table, columns, keys) for some in side_by_side(places, keys)])
    expected = concat([read_block(alone, place, table, columns, keys) for place in places])
    assert contents(found, table, columns) == contents(expected, table, columns)
    assert together.requests == alone.requests
    return len(found)


@pytest.mark.parametrize("columns", [None, {"1"}, {"1", "2"}, {"4"}, {"5"}])
def test_rows_are_the_same_where_some_columns_are_constant_in_some_of_the_row_groups(columns: set[str] | None) -> None:
    segment = words()
    assert same_both_ways(segment, WORDS, columns) == STEP * GROUPS
    bounds = [keys for place in segment.places for keys in (place.header.first_key, place.header.last_key)]
    for start, stop in [*pairwise(bounds), (bounds[1], bounds[4]), (bounds[3], bounds[-1])]:
        assert same_both_ways(segment, WORDS, columns, KeyRange(start, stop))


def test_rows_of_every_type_are_the_same() -> None:
    segment = every_type()
    for columns in (None, *({column.field_name} for column in ALL.columns[::7])):
        assert same_both_ways(segment, ALL, columns) == STEP * 3


def test_damage_is_told_of_the_block_that_has_it() -> None:
    segment = words()
    for place in segment.places:
        store = stored(segment)
        damaged = bytearray(segment.data)
        damaged[place.offset + place.length // 2] ^= 1
        store.put(place.name, bytes(damaged))
        with pytest.raises(CorruptionError) as alone:
            read_block(store, place, WORDS, whole=True)
        with pytest.raises(CorruptionError) as together:
            read_blocks(store, segment.places, WORDS)
        assert str(together.value) == str(alone.value)


def test_row_groups_of_other_sizes_than_their_headers_say_are_refused_though_the_sum_is_right() -> None:
    segment = words()
    rows = [STEP + 2, STEP - 2, *[STEP] * (GROUPS - 2)]
    places = [replace(p, header=replace(p.header, rows=count)) for p, count in zip(segment.places, rows, strict=True)]
    store = stored(segment)
    with pytest.raises(CorruptionError, match=f"a block of {STEP} rows that claims {STEP + 2}"):
        read_block(store, places[0], WORDS)
    with pytest.raises(CorruptionError, match=f"a block of {STEP} rows that claims {STEP + 2}"):
        read_blocks(store, places, WORDS)


def test_what_statistics_tell_counts_towards_what_a_row_group_comes_to(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"1": "s" * 1_000, "2": f"{n:04}", "4": "t" * 1_000} for n in range(STEP)]
    segment = written(RunRows(facts_with(WORDS, rows), WORDS, BlockClass.LIVE))
    (place,) = segment.places
    monkeypatch.setattr(limits, "GROUP_BYTES", 15_000)
    assert len(read_block(stored(segment), place, WORDS, {"1"})) == STEP
    for columns in ({"1", "4"}, {"1", "4", "2"}):
        with pytest.raises(CorruptionError, match=r"come to \d+ bytes: no row group has so many"):
            read_block(stored(segment), place, WORDS, columns)
    with pytest.raises(CorruptionError, match="15000 bytes"):
        read_block(stored(segment), place, WORDS, {"1", "4"}, whole=True)


def test_what_comes_to_too_much_together_is_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    segment, decoded = words(), []
    read = blocks.read_row_groups

    def noted(groups: Sequence[Any], *arguments: Any, **options: Any) -> Any:
        decoded.append(len(groups))
        return read(groups, *arguments, **options)

    monkeypatch.setattr(blocks, "read_row_groups", noted)
    most = 1 << 20
    while not decoded or decoded == [GROUPS]:
        decoded.clear()
        most = most * 9 // 10
        monkeypatch.setattr(limits, "GROUP_BYTES", most)
        assert len(read_blocks(stored(segment), segment.places, WORDS, {"2"})) == STEP * GROUPS
    assert decoded == [GROUPS] + [1] * GROUPS


def sizes(places: Collection[BlockPlace]) -> list[int]:
    return [len(together) for together in side_by_side(places)]


def test_together_is_what_follows_each_other_in_one_file_up_to_so_many_rows_and_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    places = words().places
    assert sizes(places) == [GROUPS]
    first, last = places[1].header.first_key, places[-1].header.first_key
    assert [len(some) for some in side_by_side(places, KeyRange(first, last))] == [1, GROUPS - 2, 1]
    assert [len(some) for some in side_by_side(places[1:], KeyRange(first + b"\0", None))] == [1, GROUPS - 2]
    assert sizes([]) == [] and sizes(places[:1]) == [1]
    assert sizes([*places[:2], *places[3:]]) == [2, 1]
    assert sizes([places[1], places[0], *places[1:3]]) == [1, 3]
    other = [BlockPlace("other", p.offset, p.length, 0, p.header, row_group=p.row_group) for p in places]
    assert sizes([*places[:2], *other[2:]]) == [2, 2]
    messages = [BlockPlace(p.name, p.offset, p.length, 0, p.header, b"") for p in places]
    assert sizes([*places[:2], *messages[2:]]) == [2, 1, 1]
    more = words(STEP * (GROUPS + 2)).places
    assert sizes(more) == [GROUPS, 2]
    monkeypatch.setattr(blocks, "_TOGETHER_ROWS", 3 * STEP)
    assert sizes(places) == [3, 1]
    monkeypatch.setattr(blocks, "_TOGETHER_BYTES", max(place.length for place in places))
    assert sizes(places) == [1] * GROUPS
