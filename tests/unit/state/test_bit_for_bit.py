"""The sign of a zero and the bits of what is no number: rows keep them, whatever is left out, folded, restored or compared on the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bucketcatalog import Catalog
from bucketcatalog.format.definitions import tables_of
from bucketcatalog.format.headers import BlockClass
from bucketcatalog.maintain.restore import restore
from bucketcatalog.maintain.verify.deep import differing_keys
from bucketcatalog.model.arrays import same_values
from bucketcatalog.model.events import Event, EventKind, facts_of_events
from bucketcatalog.model.facts import Facts, transaction_table
from bucketcatalog.model.tables import Table
from bucketcatalog.query.snapshot import Snapshot

from ...kit.storing import NAN, OTHER_NAN, bits, contents, facts_with, through_block, through_segment
from ...kit.world import START, World, messages

TABLE = """
syntax = "proto3";
import "bucketcatalog/v1/options.proto";
message Point {
  message Place {
    double x = 1;
    optional double y = 2;
    repeated float more = 3;
  }
  option (bucketcatalog.v1.table) = { name: "lab.points" key: "k" };
  int32 k = 1;
  double a = 2;
  double b = 3;
  optional double c = 4;
  optional double d = 5;
  float e = 6;
  optional float f = 7;
  repeated double g = 8;
  repeated double h = 9;
  map<string, double> i = 10;
  map<string, double> j = 11;
  Place m = 12;
  Place n = 13;
  repeated Place o = 14;
  repeated Place p = 15;
}
"""
KIND = "lab.points"
PAIRS = [(0.0, -0.0), (-0.0, 0.0), (NAN, OTHER_NAN), (-0.0, -0.0), (NAN, NAN)]


def place(value: float) -> dict[str, Any]:
    return {"x": value, "y": value, "more": [value]}


def row(k: int, one: float, other: float) -> dict[str, Any]:
    """A row whose columns differ in pairs in nothing but bits."""
    return {
        "k": k,
        "a": one,
        "b": other,
        "c": one,
        "d": other,
        "e": one,
        "f": other,
        "g": [one, 1.5],
        "h": [other, 1.5],
        "i": [("x", one)],
        "j": [("x", other)],
        "m": place(one),
        "n": place(other),
        "o": [place(one)],
        "p": [place(other)],
    }


def shown(snapshot: Snapshot) -> list[Any]:
    return [bits(one) for one in snapshot.scan(KIND).to_arrow().to_pylist()]


def declared() -> Table:
    (table,) = tables_of(messages(TABLE)["Point"])
    return table


def catalog(world: World) -> Catalog:
    made = Catalog(world.store)
    made.register(messages(TABLE)["Point"])
    return made


@pytest.mark.parametrize("pair", PAIRS, ids=str)
@pytest.mark.parametrize("count", [1, 3, 200], ids="{} rows".format)
@pytest.mark.parametrize("as_arrow", [False, True], ids=["rows", "columns"])
def test_rows_are_bit_for_bit_what_was_put_before_and_after_a_checkpoint(
    pair: tuple[float, float], count: int, as_arrow: bool
) -> None:
    world = World()
    given: Any = [row(k, *pair) for k in range(count)]
    expected = [bits(one) for one in given]
    with world.writer(catalog=catalog(world)) as writer:
        world.commit(writer, ("put", KIND, pa.Table.from_pylist(given, declared().surface_schema) if as_arrow else given))
        assert shown(world.snapshot()) == expected
        writer.checkpoint()
        assert shown(world.snapshot()) == expected
    assert [f for f in world.catalog().verify(deep=True) if f.severity.value == "error"] == []


@pytest.mark.parametrize("through", [through_segment, through_block])
def test_no_number_is_stored_as_another_however_alike_its_column_looks(through: Callable[..., Facts]) -> None:
    """Columns in which one number stands throughout, or two that compare as equal, which statistics and dictionaries may take for one."""
    table = declared()
    for one, other in PAIRS:
        for values in ([one] * 3, [one, other, one], [None, one, None], [None] * 3):
            rows = [
                {"1": k, "2": n, "4": n, "7": n, "8": [n, 0.0], "10": [("x", n)], "12": {"1": n, "3": [n]}, "14": [{"2": n}, {}]}
                for k, n in enumerate(values)
            ]
            given = facts_with(table, rows)
            assert bits(given.rows["2"].to_pylist()) == bits(values)
            assert contents(through(given, table, BlockClass.LIVE), table) == contents(given, table)


@pytest.mark.parametrize(
    "kind",
    [pa.float32(), pa.float64(), pa.list_(pa.float64()), pa.map_(pa.string(), pa.float32()), pa.struct([("x", pa.float64())])],
)
def test_values_are_the_same_where_every_bit_is(kind: pa.DataType) -> None:
    numbers = [0.0, -0.0, NAN, OTHER_NAN, 1.0, None]
    if pa.types.is_map(kind):
        values = pa.array([None if n is None else [("a", n)] for n in numbers], kind)
    elif pa.types.is_list(kind):
        values = pa.array([None if n is None else [n] for n in numbers], kind)
    elif pa.types.is_struct(kind):
        values = pa.array([{"x": n} for n in numbers], kind)
    else:
        values = pa.array(numbers, kind)
    for at in range(len(numbers)):
        one = pa.concat_arrays([values.slice(at, 1)] * len(numbers))
        assert np.flatnonzero(same_values(one, values)).tolist() == [at]


def test_two_states_differ_where_a_bit_does_and_nowhere_else() -> None:
    table = declared()

    def facts(*pairs: tuple[float, float]) -> Facts:
        rows = [{"1": k, "8": [one, other], "10": [("x", one)], "14": [{"1": other}]} for k, (one, other) in enumerate(pairs)]
        events = [(0, k, Event(KIND, EventKind.PUT, one)) for k, one in enumerate(rows)]
        return facts_of_events(table, events, transaction_table([(START, "w", 1, bytes(16))]))

    kept = facts(*PAIRS)
    assert len(differing_keys(kept, facts(*PAIRS), table)) == 0
    assert len(differing_keys(kept, facts(*((other, one) for one, other in PAIRS)), table)) == 3


def test_a_restore_brings_back_the_sign_of_a_zero() -> None:
    world = World()
    made = catalog(world)
    with world.writer(catalog=made) as writer:
        first = world.commit(writer, ("put", KIND, [row(0, 0.0, -0.0), row(1, NAN, NAN)]))
        world.commit(writer, ("update", KIND, [row(0, -0.0, 0.0), row(1, NAN, NAN)]))
    world.clock.tick()
    with world.writer("m", catalog=catalog(world)) as maintainer:
        done = restore(world.catalog().database("default"), maintainer, KIND, None, first.version, skip_collected=False)
    assert (done.put, done.updated, done.deleted) == (0, 1, 0)
    assert shown(world.snapshot()) == [bits(row(0, 0.0, -0.0)), bits(row(1, NAN, NAN))]
