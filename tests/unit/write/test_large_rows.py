"""Rows that are too large are refused when they are given: whatever is committed can be merged, and what is merged anybody reads."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pyarrow as pa
import pytest

from bucketcatalog import InvalidRows, limits
from bucketcatalog.format.definitions import tables_of
from bucketcatalog.write.writer import Writer

from ...kit.world import World, messages, proto, rows

RATIO = 1024
"""Rows may be so many times smaller here, as all that readers take is."""
GIVEN = limits.ROW_BYTES // RATIO
SOURCE = proto(
    """message Nothing {}
    message Inner {
      bytes uid = 1 [(column) = {type: LOGICAL_TYPE_UUID}];
      string text = 2;
      int64 n = 3;
      repeated Nothing some = 4;
    }
    message Row {
      option (table) = { name: "lab.large" key: "k" data_reference: "place" };
      int64 k = 1;
      optional string a = 2;
      optional string place = 3;
      repeated bool flags = 5;
      repeated int32 numbers = 6;
      repeated Inner inners = 7;
      map<int64, int64> pairs = 8;
      map<string, Inner> named = 9;
      repeated string words = 10;
      repeated Nothing nothings = 11;
      optional int64 created = 12 [(column) = {type: LOGICAL_TYPE_TIMESTAMP_MICROS default: COLUMN_DEFAULT_CREATED}];
    }"""
)
SHAPES: dict[str, Callable[[int], dict[str, Any]]] = {
    "text": lambda n: {"a": "x" * n},
    "flags": lambda n: {"flags": [True] * n},
    "numbers": lambda n: {"numbers": [1] * n},
    "messages that say nothing": lambda n: {"inners": [{}] * n},
    "messages with messages": lambda n: {"inners": [{"some": [{}, {}]}] * n},
    "messages without fields": lambda n: {"nothings": [{}] * n},
    "pairs": lambda n: {"pairs": dict.fromkeys(range(n), 0)},
    "messages by name": lambda n: {"named": {f"{at:x}": {} for at in range(n)}},
    "words": lambda n: {"words": [""] * n},
}


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ROW_BYTES", "WRITTEN_BYTES", "GROUP_BYTES"):
        monkeypatch.setattr(limits, name, getattr(limits, name) // RATIO)
    monkeypatch.setattr("bucketcatalog.checkpoint.plan.INLINE_BYTES", 0)


@pytest.fixture
def world() -> World:
    return World()


def writer_of(world: World) -> Writer:
    catalog = world.catalog()
    catalog.register(messages(SOURCE)["Row"])
    return world.writer(catalog=catalog)


@pytest.fixture
def writer(world: World) -> Writer:
    return writer_of(world)


@cache
def schema() -> pa.Schema:
    """The columns as people give them."""
    (table,) = tables_of(messages(SOURCE)["Row"])
    return table.surface_schema


def checkpointed(world: World, writer: Writer) -> list[dict[str, Any]]:
    """The rows before a checkpoint, which its files have as well."""
    before = rows(world.snapshot(), "lab.large")
    writer.checkpoint()
    after = world.snapshot()
    assert not after.view.tail and rows(after, "lab.large") == before
    return before


def is_given(world: World, writer: Writer, row: dict[str, Any], *, as_columns: bool = False) -> bool:
    """Whether a row that is put is taken, one by one or as columns."""
    given: Any = row
    if as_columns:
        shown = schema()
        given = pa.Table.from_pylist([row], pa.schema([shown.field(name) for name in row]))
    try:
        world.commit(writer, ("put", "lab.large", given))
    except InvalidRows:
        return False
    return True


def largest(world: World, writer: Writer, shape: Callable[[int], dict[str, Any]], *, as_columns: bool = False) -> int:
    """About how much a row of a shape may have; one of so much is there, under that key."""
    fits, too_many = 1, limits.ROW_BYTES
    assert is_given(world, writer, {"k": fits, **shape(fits)}) and not is_given(world, writer, {"k": too_many, **shape(too_many)})
    while too_many - fits > 1 + fits // 50:
        middle = (fits + too_many) // 2
        if is_given(world, writer, {"k": middle, **shape(middle)}, as_columns=as_columns):
            fits = middle
        else:
            too_many = middle
    return fits


class TestRows:
    @pytest.mark.parametrize("shape", SHAPES)
    def test_the_largest_that_is_written_is_read(
        self, world: World, writer: Writer, shape: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What a writer counts is at least a half of what a reader counts, and stays so when unset columns are filled in."""
        monkeypatch.setattr(limits, "ROW_BYTES", limits.WRITTEN_BYTES - 4_096)
        most = largest(world, writer, SHAPES[shape])
        assert most > 500
        assert max(row["k"] for row in checkpointed(world, writer)) == most

    @pytest.mark.parametrize("shape", ["text", "messages that say nothing", "flags"])
    def test_it_is_the_same_however_it_is_given(self, world: World, writer: Writer, shape: str) -> None:
        most = largest(world, writer, SHAPES[shape])
        other = World()
        assert abs(largest(other, writer_of(other), SHAPES[shape], as_columns=True) - most) <= most // 25

    def test_a_row_is_refused_before_anything_is_written(self, world: World, writer: Writer) -> None:
        world.commit(writer, ("put", "lab.large", {"k": 1}))
        files = [info.name for info in world.store.list("")]
        for row in ({"flags": [True] * (GIVEN // 4)}, {"inners": [{}] * (GIVEN // 60)}):
            with pytest.raises(
                InvalidRows, match=rf"^.*The row \(k=2\) of table 'lab\.large' comes to \d+ bytes .* more than {GIVEN}\."
            ):
                world.commit(writer, ("put", "lab.large", {"k": 2, **row}))
        assert [info.name for info in world.store.list("")] == files

    def test_an_update_and_what_it_leaves_may_come_to_twice_as_much(self, world: World, writer: Writer) -> None:
        """The data reference of what was put stays, whatever an update says."""
        put = largest(world, writer, lambda n: {"place": "x" * n})
        said = largest(World(), writer_of(World()), SHAPES["messages that say nothing"])
        world.commit(writer, ("update", "lab.large", {"k": put, "inners": [{}] * said}))
        row = max(checkpointed(world, writer), key=lambda row: row["k"])
        assert len(row["place"]) == put and len(row["inners"]) == said

    def test_what_a_merge_cannot_write_is_named_with_what_helps(
        self, writer: Writer, monkeypatch: pytest.MonkeyPatch, world: World
    ) -> None:
        """As a foreign writer may give it."""
        world.commit(writer, ("put", "lab.large", [{"k": 1, "a": "x" * 20_000}, {"k": 2}]))
        monkeypatch.setattr(limits, "WRITTEN_BYTES", 10_000)
        with pytest.raises(
            InvalidRows, match=r"The row \(k=1\) of table 'lab\.large' comes to \d+ bytes .* more than 10000\."
        ) as caught:
            writer.checkpoint()
        assert caught.value.next_step == "Make it smaller by an update; a version that has ended, purge."
        assert [len(row["a"] or "") for row in rows(world.snapshot(), "lab.large")] == [20_000, 0]
        world.commit(writer, ("update", "lab.large", {"k": 1, "a": "small"}))
        assert [row["a"] for row in checkpointed(world, writer)] == ["small", None]
