"""A catalog of odd values whose lowest level is the table, and the one place that says what other engines show instead of them.

Engines read its segments as Parquet files, by themselves, and what they find is held against what scans of the catalog show.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from bucketcatalog import Catalog, between
from bucketcatalog.model.tables import Column, DataType, Shape
from bucketcatalog.model.times import FIRST_TIME, LAST_TIME
from bucketcatalog.query.snapshot import Snapshot

from .hostile import HOSTILE, TAKEN
from .storing import SOURCE, VALUES, bits, everything, rows_of
from .world import messages, proto, time_at

EVERY, BY_HAND = "every engine", "Trino 476"
NAN = "a filter where there is NaN"
UNSIGNED = "a filter of `uint64`"
CASES = "columns whose names differ in case alone"
LEFT_OUT = "a filter by a time from 5 to 14 October 1582"


class Difference(NamedTuple):
    """What an engine shows of something instead of what the catalog shows, and what helps."""

    engine: str
    what: str
    shown: str
    helps: str


DIFFERENCES = [
    Difference(EVERY, "an enumeration", "its number", ""),
    Difference(EVERY, "a message without fields", "one with the field `_`, null", ""),
    Difference("pyarrow", NAN, "no row with NaN", "`is_nan()`"),
    Difference("pyarrow", UNSIGNED, "an error", "`pa.scalar(n, pa.uint64())`"),
    Difference("DuckDB", CASES, "the second one as `NAME_1`", ""),
    Difference("Spark", CASES, "an error", "`spark.sql.caseSensitive`"),
    Difference("Spark", "`uint32`", "`bigint`", ""),
    Difference("Spark", "`uint64`", "`decimal(20,0)`", ""),
    Difference("Spark", LEFT_OUT, "not all of the rows", "`spark.sql.datetime.java8API.enabled`"),
    Difference("Spark", "a time before 1582, read as `LEGACY`", "another day", "`CORRECTED`, the default of Spark 4"),
    Difference("Spark", "a time before 1582, read as `EXCEPTION`", "an error", "`CORRECTED`, the default of Spark 4"),
    Difference(BY_HAND, CASES, "one of them", ""),
    Difference(BY_HAND, "`uint32`, `uint64` as `bigint`", "what the signed type cannot hold is negative", ""),
    Difference(BY_HAND, "a filter of `uint32`, `uint64`", "an error, or not all of the rows", ""),
    Difference(BY_HAND, "a time", "milliseconds, rounded", "`hive.timestamp-precision=MICROSECONDS`"),
    Difference(BY_HAND, NAN, "no row with NaN", "`is_nan()`"),
]
"""What stands in docs/guide/engines.md. The tests find these, each engine's and no other; of ``BY_HAND`` there is no test."""


def differences(engine: str) -> set[tuple[str, str]]:
    """What an engine shows otherwise, and what it shows."""
    return {(d.what, d.shown) for d in DIFFERENCES if d.engine in (EVERY, engine)}


def _micros(*date: int) -> int:
    return (datetime.datetime(*date, tzinfo=datetime.UTC) - time_at(0)) // datetime.timedelta(microseconds=1)


TIMES = [
    FIRST_TIME,
    _micros(1500, 2, 28),
    _micros(1500, 3, 1),
    _micros(1582, 10, 4),
    _micros(1582, 10, 10, 12, 30),  # a day that calendars left out
    _micros(1582, 10, 15),
    _micros(1899, 12, 31, 23, 59, 59, 999_999),
    -1,
    0,
    _micros(2262, 4, 12),  # nanoseconds in 64 bits end the day before
    LAST_TIME,
]
SMALL = proto(
    "message Nothing {}",
    """
    message Reading {
      option (table) = { name: "lab.readings" key: "name" };
      string name = 1;
      optional double ratio = 2;
      optional float share = 3;
      optional uint64 big = 4;
      optional uint32 wide = 5;
      optional int64 seen = 6 [(column) = {type: LOGICAL_TYPE_TIMESTAMP_MICROS}];
      optional bytes raw = 7;
      optional bytes id = 8 [(column) = {type: LOGICAL_TYPE_UUID}];
      Nothing nothing = 9;
      string text = 10;
      bytes owner = 11 [(column) = {type: LOGICAL_TYPE_UUID}];
      int64 since = 12 [(column) = {type: LOGICAL_TYPE_TIMESTAMP_MICROS}];
    }
    """,
    """
    message Twin {
      option (table) = { name: "lab.twins" key: "name" };
      string name = 1;
      optional string NAME = 2;
    }
    """,
)
ALL, FEW, TWINS = "all.types", "lab.readings", "lab.twins"
VIEWS = (ALL, f"deleted_{ALL}", FEW)
KEYS = 28
"""So many keys ``all.types`` has for rows of the values in turn."""


def _named(column: Column, value: Any) -> Any:
    """A value in storage form as users give it; lists and maps have no nulls."""
    if column.shape is Shape.MAP:
        key, item = column.children
        return {_named(key, name): _named(item, one) for name, one in value if one is not None}
    if column.shape is Shape.LIST:
        return [_named(column.one, one) for one in value if one is not None]
    return _fields(column.children, value) if column.type is DataType.MESSAGE else value


def _fields(columns: tuple[Column, ...], row: dict[str, Any]) -> dict[str, Any]:
    return {c.name: _named(c, value) for c in columns if (value := row.get(c.field_name)) is not None}


def _of_every_type() -> list[dict[str, Any]]:
    rows = [_fields(everything().columns, row) for row in rows_of(everything(), KEYS)]
    return [row | {"a_time": TIMES[at % len(TIMES)]} for at, row in enumerate(rows)]


def _readings() -> list[dict[str, Any]]:
    """Rows of hostile names, of which neighbours have the same values, so that the statistics of a row group say much."""
    names = sorted({case.name for case in HOSTILE if case.as_name == TAKEN}, key=str.encode)
    columns = {
        "ratio": VALUES[DataType.DOUBLE],
        "share": VALUES[DataType.FLOAT],
        "big": VALUES[DataType.UINT64],
        "wide": VALUES[DataType.UINT32],
        "seen": TIMES,
        "raw": VALUES[DataType.BYTES],
        "id": sorted(VALUES[DataType.UUID]),
    }
    rows = [
        {"name": name, "nothing": {}} | {column: of[at * len(of) // len(names)] for column, of in columns.items()}
        for at, name in enumerate(names)
    ]
    return [*(row | {"text": row["name"], "owner": row["id"], "since": row["seen"]} for row in rows), {"name": "with zeros"}]


def build(path: Path) -> None:
    """A catalog in a folder, merged whole, whose live rows and whose tombstones each have every value of every type."""
    catalog = Catalog(path)
    catalog.register(messages(SOURCE)["Everything"])
    rows, key = _of_every_type(), everything().key
    ended = [row | {"number": 7, "name": f"{at:02} {row['name']}"} for at, row in enumerate(rows)]
    again = [rows[(at + 1) % KEYS] | {name: row[name] for name in key} for at, row in enumerate(rows)]
    with catalog.writer("compactor-1") as writer:
        with writer.transaction() as tx:
            tx.put(ALL, rows + ended)
        with writer.transaction() as tx:
            tx.put(ALL, again)
            tx.delete(ALL, [{name: row[name] for name in key} for row in ended])
        writer.checkpoint(scope="all", full=True)


def build_small(path: Path, message: str, rows: list[dict[str, Any]]) -> None:
    """A catalog in a folder of one table of ``SMALL``, merged whole, whose row groups have four rows."""
    catalog = Catalog(path)
    (table,) = catalog.register(messages(SMALL)[message])
    with pytest.MonkeyPatch.context() as patch, catalog.writer("compactor-1") as writer:
        patch.setattr("bucketcatalog.format.segments.ROW_GROUP_ROWS", 4)
        with writer.transaction() as tx:
            tx.put(table, rows)
        writer.checkpoint(scope="all", full=True)


class Condition(NamedTuple):
    """A condition on a column of ``lab.readings``, and what it is an example of."""

    what: str
    column: str
    operator: str
    value: Any


CONDITIONS = [
    Condition(NAN, "ratio", "=", math.nan),
    Condition(NAN, "ratio", ">", 5.0),
    Condition(NAN, "share", ">", 5.0),
    Condition("a filter of zero", "ratio", "=", 0.0),
    Condition("a filter of zero", "share", "=", -0.0),
    Condition("a filter of numbers", "share", "<", 1.0),
    Condition("a filter of `uint32`", "wide", ">", 2**31 - 1),
    Condition("a filter of `uint32`", "wide", "=", 2**32 - 1),
    Condition(UNSIGNED, "big", ">", 2**63 - 1),
    Condition(UNSIGNED, "big", "<", 2**63 + 1),
    Condition(UNSIGNED, "big", "=", 2**64 - 1),
    *(Condition("a filter of text", "name", "=", name) for name in ("", "\x00", "a\x00b", "\U0010ffff")),
    Condition("a filter of text", "name", "<", "a\x00b"),
    Condition("a filter of text", "name", ">", "\uffff"),
    *(Condition("a filter of times", "seen", "=", time_at(at)) for at in (FIRST_TIME, TIMES[2], TIMES[3], LAST_TIME)),
    *(Condition("a filter of times", "seen", operator, time_at(TIMES[5])) for operator in "<>"),
    *(Condition(LEFT_OUT, "seen", operator, time_at(TIMES[4])) for operator in "=>"),
    Condition("a filter of bytes", "raw", "=", b"\x00\xff\xfe"),
    Condition("a filter of bytes", "raw", ">", b"\x7f"),
    Condition("a filter of uuids", "id", "=", VALUES[DataType.UUID][1]),
]


class Lake:
    """These catalogs: what they show, which is read once, and the files of the lowest level, to be read by engines."""

    def __init__(self, path: Path) -> None:
        build(path / ALL)
        build_small(path / FEW, "Reading", _readings())
        build_small(path / TWINS, "Twin", [{"name": "a", "NAME": "b"}])
        self._path = path
        self._snapshots = {table: Catalog(path / table).snapshot() for table in (ALL, FEW, TWINS)}
        self._scans = {view: self._scan(view) for view in VIEWS}
        self._shown = {view: _exact(scan.to_pydict()) for view, scan in self._scans.items()}
        self._chosen = [self._choose(condition) for condition in CONDITIONS]

    def catalog(self, view: str) -> tuple[str, Snapshot]:
        """Where the catalog of a table, or its tombstones, is, and what it holds."""
        return str(self._path / _table_of(view)), self._snapshots[_table_of(view)]

    def files(self, view: str) -> list[str]:
        """The segments that are a table, or its tombstones."""
        table = _table_of(view)
        classes = ["live"] if view == table else ["ended", "superseded"]
        found = self._snapshots[table].scan("segments", where={"class": classes, "purpose": "rows"}).to_arrow()
        assert set(found["level"].to_pylist()) == {0}
        assert all(name.endswith(".parquet") for name in found["name"].to_pylist())
        return [str(self._path / table / name) for name in found["name"].to_pylist()]

    def _scan(self, view: str) -> pa.Table:
        snapshot = self._snapshots[_table_of(view)]
        stamp = ["_version", "_commit_timestamp", "_writer", "_revision"]
        return snapshot.scan(view, columns=[*snapshot.scan(view).schema.names, *stamp]).to_arrow()

    def _choose(self, condition: Condition) -> set[str]:
        value = condition.value
        ranges = {">": between(value, inclusive="neither"), "<": between(None, value, inclusive="neither"), "=": value}
        found = self._snapshots[FEW].scan(FEW, columns=["name"], where={condition.column: ranges[condition.operator]})
        return set(found.to_arrow()["name"].to_pylist())

    def shown_otherwise(self, view: str, read: pa.Table, named: Callable[[pa.DataType], str] = str) -> set[tuple[str, str]]:
        """What an engine shows otherwise than the catalog, types and values, each value bit for bit.

        ``read`` is all that the engine reads of the files, ``named`` gives its own name of a type.
        """
        columns = {column.name: column for column in self._snapshots[_table_of(view)].table(_table_of(view)).columns}
        said = {name: read[name].to_pylist() for name in read.column_names}
        said |= {"_commit_timestamp": said["_commit_time"]}
        said |= {"_version": [f"{uuid}:{seq}" for uuid, seq in zip(said["_uuid"], said["_seq"], strict=True)]}
        assert sorted(said["_version"]) == sorted(self._shown[view]["_version"])
        order = {version: at for at, version in enumerate(said["_version"])}
        found = {
            difference for name, column in columns.items() for difference in _types(column, read.schema.field(name).type, named)
        }
        for name, expected in self._shown[view].items():
            values = [said[name][order[version]] for version in self._shown[view]["_version"]]
            shown = _exact([_as_scanned(columns[name], value) for value in values] if name in columns else values)
            found |= {(name, f"{one} for {other}") for one, other in zip(shown, expected, strict=True) if one != other}
        return found

    def named_otherwise(
        self, read: Callable[[list[str]], list[str]], errors: tuple[type[Exception], ...] = ()
    ) -> set[tuple[str, str]]:
        """What becomes of names that differ in case alone, by those of an engine's columns."""
        known = {("name", "NAME"): set(), ("name", "NAME_1"): {(CASES, "the second one as `NAME_1`")}}
        try:
            return known[tuple(name for name in read(self.files(TWINS)) if not name.startswith("_"))]
        except errors:
            return {(CASES, "an error")}

    def chosen_otherwise(
        self, choose: Callable[[Condition], list[str]], errors: tuple[type[Exception], ...] = ()
    ) -> set[tuple[str, str]]:
        """What an engine's filters of the readings choose otherwise than the catalog's, and what they choose."""
        no_numbers = {
            row["name"] for row in self._scans[FEW].to_pylist() for name in ("ratio", "share") if row[name] != row[name]
        }
        found: dict[str, set[str]] = {}
        for condition, expected in zip(CONDITIONS, self._chosen, strict=True):
            try:
                names = choose(condition)
            except errors:
                outcome = "an error"
            else:
                assert len(set(names)) == len(names)
                known = {
                    "the same": expected,
                    "no row with NaN": expected - no_numbers,
                    "not all of the rows": expected & set(names),
                }
                outcome = next((said for said, rows in known.items() if rows == set(names)), f"{names} for {condition}")
            found.setdefault(condition.what, set()).add(outcome)
        return {(what, outcome) for what, outcomes in found.items() if outcomes != {"the same"} for outcome in outcomes}


def _table_of(view: str) -> str:
    return view.removeprefix("deleted_")


def _exact(value: Any) -> Any:
    """Bits for fractions; decimals are the integers that they are."""
    if isinstance(value, Decimal):
        return int(value)
    if isinstance(value, dict):
        return {name: _exact(item) for name, item in value.items()}
    return [_exact(item) for item in value] if isinstance(value, (list, tuple)) else bits(value)


def _as_scanned(column: Column, value: Any) -> Any:
    """What a scan shows for an enumeration's number and for a message without fields; anything else as it is."""
    if value is None:
        return None
    if column.shape is Shape.MAP:
        key, item = column.children
        return [(_as_scanned(key, name), _as_scanned(item, one)) for name, one in value]
    if column.shape is Shape.LIST:
        return [_as_scanned(column.one, one) for one in value]
    if column.type is DataType.MESSAGE:
        assert column.children or value == {"_": None}
        return {child.name: _as_scanned(child, value[child.name]) for child in column.children}
    return dict(column.symbols).get(value, str(value)) if column.type is DataType.ENUM else value


_ARROW = {
    DataType.STRING: pa.string(),
    DataType.JSON: pa.string(),
    DataType.CUT: pa.string(),
    DataType.UUID: pa.string(),
    DataType.BYTES: pa.binary(),
    DataType.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    DataType.BOOL: pa.bool_(),
    DataType.INT32: pa.int32(),
    DataType.INT64: pa.int64(),
    DataType.UINT32: pa.uint32(),
    DataType.UINT64: pa.uint64(),
    DataType.FLOAT: pa.float32(),
    DataType.DOUBLE: pa.float64(),
}
_ALIKE = {
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
}


def _types(column: Column, kind: pa.DataType, named: Callable[[pa.DataType], str]) -> Iterator[tuple[str, str]]:
    """What of a column has another type than a scan gives it."""
    if column.shape is Shape.MAP:
        assert pa.types.is_map(kind), (column.name, kind)
        for child, of in zip(column.children, (kind.key_type, kind.item_type), strict=True):
            yield from _types(child, of, named)
    elif column.shape is Shape.LIST:
        assert pa.types.is_list(kind) or pa.types.is_large_list(kind), (column.name, kind)
        yield from _types(column.one, kind.value_type, named)
    elif column.type is DataType.MESSAGE:
        assert [field.name for field in kind] == ([child.name for child in column.children] or ["_"]), (column.name, kind)
        for child in column.children:
            yield from _types(child, kind.field(child.name).type, named)
        if not column.children:
            yield "a message without fields", "one with the field `_`, null"
    elif column.type is DataType.ENUM:
        assert pa.types.is_int32(kind), (column.name, kind)
        yield "an enumeration", "its number"
    elif _ALIKE.get(kind, kind) != _ARROW[column.type]:
        yield f"`{column.type.value}`", f"`{named(kind)}`"
