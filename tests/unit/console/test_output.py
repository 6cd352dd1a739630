"""Output: names on one line without control characters, exact JSON, sizes for people."""

from __future__ import annotations

import datetime
import json

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from bucketcatalog.console.output import plain, rows_of, size, to_json, visible_name


@given(st.text(max_size=20))
def test_names_are_shown_on_one_line_without_control_characters(name: str) -> None:
    assert visible_name(name).isprintable()


@given(st.text(max_size=6), st.text(max_size=6))
def test_no_two_names_look_the_same(one: str, other: str) -> None:
    assert (visible_name(one) == visible_name(other)) is (one == other)


@given(st.text(max_size=20))
def test_json_is_exact_and_safe_for_a_terminal(name: str) -> None:
    line = to_json({"name": name})
    assert json.loads(line) == {"name": name}
    assert not any(char in line for char in "\n\r\x00\x1b\x7f\x9b\u202e\u2028")


def test_values_are_plain_in_json() -> None:
    table = pa.table(
        {
            "time": pa.array([0], pa.timestamp("us", tz="UTC")),
            "bytes": pa.array([b"\x00\xff"], pa.binary()),
            "map": pa.array([[("k", "v")]], pa.map_(pa.string(), pa.string())),
            "list": pa.array([["a", "b"]], pa.list_(pa.string())),
            "null": pa.nulls(1),
            "sum": pa.array([-(1 << 80)], pa.decimal128(38, 0)),
            "no numbers": pa.array([[float("nan"), float("inf"), float("-inf"), -0.0]]),
        }
    )
    (row,) = rows_of([table])
    expected = {"time": "1970-01-01T00:00:00.000000Z", "bytes": "00ff", "map": {"k": "v"}, "list": ["a", "b"], "null": None}
    assert row == {**expected, "sum": -(1 << 80), "no numbers": ["NaN", "Infinity", "-Infinity", 0.0]}
    assert f'"sum":{-(1 << 80)},"no numbers":["NaN","Infinity","-Infinity",-0.0]' in to_json(row)
    assert plain(datetime.datetime(1, 1, 1, tzinfo=datetime.UTC)) == "0001-01-01T00:00:00.000000Z"


def test_maps_are_objects_wherever_they_lie() -> None:
    words = pa.map_(pa.string(), pa.string())
    message = pa.struct([("map", words), ("deeper", pa.struct([("maps", pa.list_(words))]))])
    row = {"map": [("k", "v")], "deeper": {"maps": [[("a", "b")], []]}}
    table = pa.table(
        {
            "message": pa.array([row], message),
            "list": pa.array([[row, None]], pa.list_(message)),
            "map": pa.array([[("m", row)]], pa.map_(pa.string(), message)),
            "maps": pa.array([[("m", [("k", "v")])]], pa.map_(pa.string(), words)),
        }
    )
    shown = {"map": {"k": "v"}, "deeper": {"maps": [{"a": "b"}, {}]}}
    assert list(rows_of([table])) == [{"message": shown, "list": [shown, None], "map": {"m": shown}, "maps": {"m": {"k": "v"}}}]


def test_sizes_are_rounded_for_people() -> None:
    assert [size(n) for n in (0, 999, 1_000, 1_234_567, 10**15)] == ["0 B", "999 B", "1.0 kB", "1.2 MB", "1.0 PB"]
