"""Tables to be read in engines, in a directory, and how what these show is held against what scans show."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from secrets import token_hex
from shutil import copytree
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from bucketcatalog import Catalog, between, prefix
from bucketcatalog.query.scan import Scan
from bucketcatalog.query.views import Computed, View, ViewScan
from bucketcatalog.store import Store

from .fields import AT, SYMBOLS
from .fields import FIELDS as COMMON
from .natively import in_some_order
from .world import messages, proto, time_at

TABLE = "my.rows"
IN = "message In { optional string text = 1; repeated int64 numbers = 2; }"
FIELDS = f"""{COMMON}
  optional float share = 18;
  int64 plain_at = 19 [{AT}}}];
  bytes plain_uid = 20 [(column) = {{type: LOGICAL_TYPE_UUID}}];
  bytes plain_raw = 21;
  bool plain_flag = 22;
  optional string json = 23 [(column) = {{type: LOGICAL_TYPE_JSON}}];
  In within = 24;
  repeated In several = 25;
"""
FIRST, LAST = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The first and the last microsecond of the years 1 to 9999."""
UID = "aaaaaaaa-0000-4000-8000-000000000001"
_VALUES: dict[str, list[Any]] = {
    "text": ["", "a", "a\x00b", "B", "b'\"", "é\U0010ffff", "A"],
    "plain": ["p", "", "q"],
    "number": [-(2**31), 0, 2**31 - 1],
    "small": [0, 2**32 - 1, 7],
    "large": [2**64 - 1, 0, 2**63],
    "raw": [b"", b"\x00", b"\x00\xff", b"\xff", b"\xff\xff", b"a"],
    "uid": [UID, "00000000-0000-0000-0000-000000000000"],
    "at": [time_at(FIRST), time_at(LAST), time_at(-1), time_at(0), time_at(1_700_000_000_000_000)],
    "flag": [True, False],
    "mode": ["MODE_SLOW", "MODE_FAST", "7"],
    "plain_mode": ["MODE_FAST"],
    "ratio": [math.nan, -0.0, 0.0, math.inf, -math.inf, 1.5, -1.5],
    "share": [0.1, math.nan, -0.0, 2.5],
    "words": [["x", ""], ["y"]],
    "counts": [{"a": 1}, {"b": -1, "": 0}],
    "created": [time_at(5)],
    "modified": [time_at(6)],
    "plain_at": [time_at(7)],
    "plain_uid": [UID],
    "plain_raw": [b"r"],
    "plain_flag": [True],
    "json": ["{}", '{"a": [1]}'],
    "within": [{"text": "w", "numbers": [1]}, {}],
    "several": [[{"text": "s"}, {"numbers": [2, 3]}]],
}
KEYS = range(-40, 360)


def row(k: int) -> dict[str, Any]:
    """A row in which each column has one of its values in turn, or none, and from 200 on some always have one."""
    found: dict[str, Any] = {"k": k}
    for at, (name, values) in enumerate(_VALUES.items()):
        turn = (k + 40 + 3 * at) % (len(values) + 1)
        if turn < len(values):
            found[name] = values[turn]
        elif k >= 200 and name in ("plain", "created", "plain_mode"):
            found[name] = values[0]
    return found


CONDITIONS: list[Mapping[str, Any]] = [
    {"k": between(10, 250)},
    {"k": between(10, 250, inclusive="neither"), "flag": True},
    {"text": "a"},
    {"text": ["a", "B", "b'\"", None]},
    {"text": [f"word {number}" for number in range(2_000)] + ["a\x00b"]},
    {"text": []},
    {"text": None},
    {"text": prefix("a")},
    {"text": prefix("")},
    {"text": between("A", "a")},
    {"text": between("B", None, inclusive="right")},
    {"text": between(None, "b", inclusive="left")},
    {"text": between()},
    {"plain": ["", "q"]},
    {"plain": None},
    {"json": prefix('{"')},
    {"raw": prefix(b"\x00")},
    {"raw": prefix(b"\xff")},
    {"raw": prefix("a")},
    {"raw": [b"", None]},
    {"raw": between(b"\x00\x00", b"\xff")},
    {"number": [-(2**31), 2**31 - 1]},
    {"number": between(None, 0, inclusive="neither")},
    {"small": 2**32 - 1},
    {"large": [2**64 - 1, 2**63]},
    {"large": between(2**63)},
    {"uid": UID},
    {"plain_uid": "00000000-0000-0000-0000-000000000000"},
    {"at": [time_at(FIRST), time_at(LAST), None]},
    {"at": between(time_at(-1), time_at(LAST), inclusive="left")},
    {"plain_at": time_at(0)},
    {"created": time_at(5)},
    {"modified": between(None, time_at(6))},
    {"flag": [True, None]},
    {"plain_flag": False},
    {"mode": ["MODE_SLOW", "7"]},
    {"mode": None},
    {"plain_mode": "MODE_UNSPECIFIED"},
    {"ratio": math.nan},
    {"ratio": [0.0, None]},
    {"ratio": -0.0},
    {"ratio": between(1.5)},
    {"ratio": between(None, math.inf)},
    {"ratio": between(-0.0, math.nan, inclusive="neither")},
    {"share": [0.1, math.nan]},
    {"share": between(0.1, 2.5)},
    {"words": None},
    {"_writer": prefix("nod")},
    {"_writer": "Node-1"},
    {"_revision": between(0, 1)},
    {"_commit_timestamp": between(time_at(FIRST), time_at(LAST))},
    {"_version": prefix("0"), "number": 0},
]


def declared(fields: str, *beside: str) -> Any:
    """The table with these fields."""
    body = f'message Row {{ option (table) = {{ name: "{TABLE}" key: "k" }}; {fields} }}'
    return messages(proto(SYMBOLS, IN, *beside, body))["Row"]


def put(catalog: Catalog, rows: list[dict[str, Any]], fields: str = FIELDS, *beside: str, writer: str = "node-1") -> None:
    """Rows of the table with these fields."""
    catalog.register(declared(fields, *beside))
    with catalog.writer(writer) as w, w.transaction() as tx:
        tx.put(TABLE, rows)


def without_rows(folder: Path) -> Catalog:
    """A catalog with the table, of which no row was ever put."""
    catalog = Catalog(folder)
    catalog.register(declared(FIELDS))
    with catalog.writer("node-1") as w, w.transaction() as tx:
        tx.delete(TABLE, {"k": 1})
    return catalog


def merge(catalog: Catalog, segment_bytes: int = 16_000) -> None:
    """All that there is, in a few files of a few row groups."""
    with pytest.MonkeyPatch.context() as patch, catalog.writer("compactor-1") as w:
        patch.setattr("bucketcatalog.log.segments.INLINE_RUN_BYTES", 0)
        patch.setattr("bucketcatalog.log.segments.TARGET_SEGMENT_BYTES", segment_bytes)
        patch.setattr("bucketcatalog.log.segments.ROW_GROUP_ROWS", 50)
        patch.setattr("bucketcatalog.format.segments.ROW_GROUP_ROWS", 50)
        w.checkpoint(scope="all", full=True)


def merged(place: Path | str | Store) -> Catalog:
    """A catalog of a few files; some rows have been overwritten, others deleted."""
    catalog = Catalog(place)
    put(catalog, [row(k) for k in KEYS])
    with catalog.writer("node-1") as w, w.transaction() as tx:
        tx.put(TABLE, [row(k) | {"plain": "again"} for k in KEYS[::7]])
        tx.delete(TABLE, [{"k": k} for k in KEYS[::5]])
    merge(catalog)
    return Catalog(place)


def changed(place: Path | str | Store) -> Catalog:
    """The same with changes since, in some of its files."""
    merged(place)
    catalog = Catalog(place)
    with catalog.writer("node-2") as w, w.transaction() as tx:
        tx.put(TABLE, [row(k + 1) | {"k": k} for k in (-40, 1, 2, 3, 99, 1_000)])
        tx.delete(TABLE, [{"k": k} for k in (4, 6, 7)])
    return Catalog(place)


def scan(catalog: Catalog, table: str = TABLE, **options: Any) -> Scan:
    """A scan of the newest snapshot."""
    found = catalog.snapshot().scan(table, **options)
    assert isinstance(found, Scan)
    return found


NAMED_OTHERWISE = View("renamed", TABLE, {"text": "plain", "plain": "text", "again": "text"}, {"k": between(0, 300)})


def lengths(text: pa.Array) -> pa.Array:
    """A kernel of one column."""
    return pc.utf8_length(text)


COMPUTED = View("computed", TABLE, {"text": "text", "length": Computed(pa.int32(), ("text",), lengths)}, {"k": between(0, 300)})


def viewed(catalog: Catalog, view: View, **where: Any) -> ViewScan:
    """A scan of the newest snapshot as a view shows it."""
    return ViewScan(view, catalog.snapshot(), None, where, system="odd")


def same(shown: pa.Table, read: Any) -> bool:
    """Whether an engine shows the rows of a read, and their columns, in whatever order."""
    expected = read.to_arrow()
    assert shown.schema.names == expected.schema.names
    return in_some_order(shown.cast(expected.schema)) == in_some_order(expected)


def asked_columns(patch: pytest.MonkeyPatch) -> list[list[str]]:
    """The columns that scans are asked for alone, from now on."""
    asked, only = list[list[str]](), Scan.only

    def noted(read: Scan, columns: Sequence[str]) -> Scan:
        asked.append(sorted(columns))
        return only(read, columns)

    patch.setattr(Scan, "only", noted)
    return asked


def without(name: str, patch: pytest.MonkeyPatch) -> None:
    """As where that package is not installed."""
    patch.setitem(sys.modules, name, None)


CHANGES = {
    "another name": {"optional string text = 2;": "optional string called = 2;"},
    "wider": {"optional int32 number = 4;": "optional int64 number = 4;"},
    "declared later": {"repeated string words = 14;": "repeated string words = 14; optional string later = 40;"},
    "declared later, without presence": {
        "string plain = 3;": "string plain = 3; int32 zero = 41; Mode first = 42; bytes none = 43; string empty = 44;"
    },
    "declared later, with a time": {
        "optional bool flag = 10;": f"optional bool flag = 10; optional int64 since = 45 [{AT} default: COLUMN_DEFAULT_CREATED}}]; "
        f"int64 never = 46 [{AT}}}];"
    },
}
"""What takes the place of what in the fields of the table."""


def redeclared(place: Path, change: str) -> Catalog:
    """A catalog whose files are of an older definition than one that lies over them."""
    merged(place)
    fields = FIELDS
    for old, new in CHANGES[change].items():
        assert old in fields
        fields = fields.replace(old, new)
    put(Catalog(place), [{"k": 1_001}], fields, writer="maintainer-1")
    return Catalog(place)


def wide(store: Store) -> Catalog:
    """A catalog of 500 rows, merged into one file, whose texts are most of it."""
    texts = [token_hex(5_000) for _ in range(500)]
    put(Catalog(store), [{"k": k, "text": text, "number": k % 7} for k, text in enumerate(texts)])
    merge(Catalog(store), 1 << 30)
    return Catalog(store)


ODD = ["a [b]c", "st*r", "qu?y", "{a,b}", "per%20cent", "a=b", 'it\'s "so"', "back\\slash", "#é~", "w[i]de*\\"]
"""What a directory may be called."""


def decoys(path: Path) -> None:
    """Copies of a directory beside it, called so that its name would be a pattern that they match."""
    for name in {path.name.replace(wild, by) for wild in "*?" for by in ("", "x", "xx")} - {path.name} | {"wide", "a bc", "a"}:
        copytree(path, path.parent / name, dirs_exist_ok=True)
