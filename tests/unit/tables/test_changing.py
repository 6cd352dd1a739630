"""Columns added, renamed and removed between commits: rows, the past, look-ups, tombstones and changes, whatever checkpoints there are."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bucketcatalog import Catalog, CatalogWarning, IncompatibleTable, InvalidRows, UnknownTable
from bucketcatalog.format.compiled import tables_in

from ...kit.pruning import GRACE, keep_time, prune
from ...kit.pruning import checkpoint as compacted
from ...kit.world import OWNER, World, compiled, messages, proto, rows, stored

NAME = "jobs.runs"
FIRST = pa.schema(
    [("id", pa.string()), ("n", pa.int32()), ("note", pa.string()), ("config", pa.struct([("x", pa.int64()), ("y", pa.int64())]))]
)
SECOND = pa.schema(
    [
        ("id", pa.string()),
        ("count", pa.int64()),
        ("config", pa.struct([("x", pa.int64()), ("z", pa.string())])),
        ("tags", pa.map_(pa.string(), pa.string())),
    ]
)
MANY = 300
"""Rows enough for columns of Arrow data in a transaction."""


def first_row(at: int) -> dict[str, Any]:
    return {"id": f"old{at:03}", "n": at, "note": f"note {at}", "config": {"x": at, "y": -at}}


def second_row(at: int) -> dict[str, Any]:
    return {"id": f"new{at:03}", "count": (1 << 40) + at, "config": {"x": at, "z": "z"}, "tags": [("at", str(at))]}


def old_as_shown(at: int) -> dict[str, Any]:
    """What a row of before looks like since."""
    return {"id": f"old{at:03}", "count": at, "config": {"x": at, "z": None, "y": -at}, "tags": None}


def new_as_shown(at: int) -> dict[str, Any]:
    return {**second_row(at), "config": {"x": at, "z": "z", "y": None}}


def put(catalog: Catalog, given: list[dict[str, Any]], *, bucket: str, writer: str = "node-1") -> str:
    """Rows, and a bucket beside them, in one transaction; its version."""
    with catalog.writer(writer) as opened, opened.transaction() as tx:
        tx.put(NAME, given)
        tx.put("buckets", {"owner": OWNER, "name": bucket})
    assert tx.committed is not None
    return tx.committed.version


def checkpoint(catalog: Catalog, kinds: str) -> None:
    for kind in kinds.split():
        writer = "node-1" if kind == "own" else "compactor-1"
        with catalog.writer(writer) as opened:
            opened.checkpoint(scope="own" if kind == "own" else "all", full=kind == "full")


@pytest.mark.parametrize("count", [2, MANY])
@pytest.mark.parametrize(
    ("between", "after"), [("", ""), ("own", ""), ("all", ""), ("", "all"), ("all", "full"), ("own", "own"), ("full", "all full")]
)
def test_rows_of_before_and_after_are_read_together_and_the_past_as_it_was(
    tmp_path: Path, count: int, between: str, after: str
) -> None:
    catalog = Catalog(tmp_path)
    catalog.create_table(NAME, FIRST, key=["id"])
    before = put(catalog, [first_row(at) for at in range(count)], bucket="one")
    with catalog.writer("node-1") as writer, writer.transaction() as tx:
        tx.delete(NAME, {"id": "old000"})
    checkpoint(catalog, between)
    made = catalog.create_table(NAME, SECOND, key=["id"], rename={"n": "count"}, remove=["note"])
    assert (made.added, made.removed) == (("tags",), ("note",))
    assert made.committed is not None and "reserved 3;" in made.proto and 'reserved "note";' in made.proto
    since = put(Catalog(tmp_path), [second_row(at) for at in range(count)], bucket="two")
    checkpoint(catalog, after)

    now = Catalog(tmp_path).snapshot()
    live = [*(new_as_shown(at) for at in range(count)), *(old_as_shown(at) for at in range(1, count))]
    assert rows(now, NAME) == live
    assert now.scan(NAME).schema.names == ["id", "count", "config", "tags"]
    assert [row["name"] for row in rows(now, "buckets")] == ["one", "two"]
    (ended,) = rows(now, f"deleted_{NAME}")
    assert ended.pop("deleted_at") is not None and ended == old_as_shown(0)
    assert now.get(NAME, id="old001") == old_as_shown(1) and now.get(NAME, id="new000") == new_as_shown(0)
    assert [row["id"] for row in now.scan(NAME, where={"count": [1, 1 << 40]}).to_arrow().to_pylist()] == ["new000", "old001"]
    with pytest.raises(Exception, match="no column 'note'"):
        now.scan(NAME, columns=["note"])

    past = Catalog(tmp_path).snapshot(version=before)
    assert rows(past, NAME) == [first_row(at) for at in range(count)] and past.get(NAME, id="old001") == first_row(1)
    assert [row["name"] for row in rows(past, "buckets")] == ["one"]

    events = Catalog(tmp_path).changes(table=NAME).to_arrow()
    assert events.column_names[7:] == ["id", "count", "config", "tags"]
    kinds = events["_change_type"].to_pylist()
    assert kinds == [*["put"] * count, "delete", *["put"] * count]
    assert events["count"].to_pylist() == [*range(count), None, *((1 << 40) + at for at in range(count))]
    net = Catalog(tmp_path).diff(table=NAME, start=before, end=since).to_arrow().to_pylist()
    assert [(row["_change_type"], row["id"], row["count"]) for row in net] == [
        *(("created", f"new{at:03}", (1 << 40) + at) for at in range(count)),
        ("deleted", "old000", 0),
    ]
    assert [finding for finding in Catalog(tmp_path).verify(deep=True) if finding.severity.value == "error"] == []


def test_an_update_of_an_old_row_and_a_restore_of_it(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    catalog.create_table(NAME, FIRST, key=["id"])
    before = put(catalog, [first_row(1)], bucket="one")
    catalog.create_table(NAME, SECOND, key=["id"], rename={"n": "count"}, remove=["note"])
    with catalog.writer("node-1") as writer, writer.transaction() as tx:
        tx.update(NAME, {"id": "old001", "count": 7})
    assert rows(catalog.snapshot(), NAME) == [{"id": "old001", "count": 7, "config": None, "tags": None}]
    catalog.restore(NAME, version=before, dry_run=False)
    assert rows(catalog.snapshot(), NAME) == [old_as_shown(1)]


def test_what_was_removed_takes_no_values_and_comes_back_with_its_number(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    catalog.create_table(NAME, FIRST, key=["id"])
    put(catalog, [first_row(1)], bucket="one")
    catalog.create_table(NAME, FIRST.remove(2), key=["id"], remove=["note"])
    for opened in (catalog, Catalog(tmp_path)):
        with opened.writer("node-1") as writer, writer.transaction() as tx, pytest.raises(InvalidRows, match="'note'"):
            tx.put(NAME, {"id": "x", "note": "n"})
    assert "note" not in rows(catalog.snapshot(), NAME)[0]
    (listed,) = (row for row in rows(catalog.snapshot(), "tables") if row["table"] == NAME)
    assert listed["columns"] == ["id", "n", "config"]
    catalog.create_table(NAME, FIRST, key=["id"])
    assert rows(catalog.snapshot(), NAME) == [first_row(1)]

    other = FIRST.set(2, pa.field("note", pa.int64()))
    with pytest.raises(IncompatibleTable, match=r"'note'.*is string, and cannot become int64"):
        catalog.create_table(NAME, other, key=["id"])
    catalog.create_table(NAME, FIRST.remove(2), key=["id"], remove=["note"])
    assert "int64 note = 5;" in catalog.create_table(NAME, other, key=["id"]).proto, "another column that is called so"
    assert rows(catalog.snapshot(), NAME) == [{**first_row(1), "note": None}]
    assert "reserved 3, 5;" in catalog.create_table(NAME, FIRST.remove(2), key=["id"], remove=["note"]).proto
    put(catalog, [{"id": "a", "n": 1}], bucket="two")
    checkpoint(catalog, "all")
    assert [row["id"] for row in rows(catalog.snapshot(), NAME)] == ["a", "old001"]


def test_the_same_again_commits_nothing_whoever_says_it(tmp_path: Path) -> None:
    made = Catalog(tmp_path).create_table(NAME, FIRST, key=["id"])
    files = sorted(tmp_path.rglob("*.txn"))
    again = Catalog(tmp_path).create_table(NAME, FIRST, key=["id"])
    assert (again.committed, again.proto) == (None, made.proto)
    assert Catalog(tmp_path).create_table(NAME, FIRST, key=["id"], writer="node-7").committed is None
    shown = Catalog(tmp_path).snapshot().scan(NAME).schema
    assert Catalog(tmp_path).create_table(NAME, shown, key=["id"]).committed is None, "as its readers have it"
    narrow = FIRST.set(1, pa.field("n", pa.int8()))
    assert Catalog(tmp_path).create_table(NAME, narrow, key=["id"]).committed is None
    renamed = FIRST.set(1, pa.field("count", pa.int32()))
    assert Catalog(tmp_path).create_table(NAME, renamed, key=["id"], rename={"n": "count"}).committed is not None
    assert Catalog(tmp_path).create_table(NAME, renamed, key=["id"], rename={"n": "count"}).committed is None
    assert len(sorted(tmp_path.rglob("*.txn"))) == len(files) + 1
    other = Catalog(tmp_path)
    other.create_table(NAME, FIRST, key=["id"], rename={"count": "n"})
    assert Catalog(tmp_path).create_table(NAME, renamed, key=["id"], rename={"n": "count"}).committed is not None


REFUSED = {
    "what is left out": (
        {"schema": FIRST.remove(3).remove(2)},
        "leaves out its columns note, config",
    ),
    "a part of what is left out": ({"schema": FIRST.remove(3).remove(2), "remove": ["note"]}, "leaves out its columns config"),
    "a removal of what is there": ({"remove": ["note"]}, "'note' of table 'jobs.runs' cannot be removed: it is in its schema"),
    "a removal of nothing": ({"remove": ["nope"]}, "'nope' of table 'jobs.runs' cannot be removed: it is none of its columns"),
    "another type": (
        {"schema": FIRST.set(1, pa.field("n", pa.string()))},
        "'n' of table 'jobs.runs' is int32, and cannot become string",
    ),
    "a shape": ({"schema": FIRST.set(1, pa.field("n", pa.list_(pa.int32())))}, "cannot become list of int32"),
    "a type within": (
        {"schema": FIRST.set(3, pa.field("config", pa.struct([("x", pa.string())])))},
        "'config.x' of table 'jobs.runs' is int64, and cannot become string",
    ),
    "without a sign": ({"schema": FIRST.set(1, pa.field("n", pa.uint32()))}, "cannot become uint32"),
    "another key": ({"key": ["note"]}, "two keys"),
    "a longer key": ({"key": ["id", "note"]}, "two keys"),
    "an id": ({"id": "note"}, "two ids"),
    "dropped tombstones": ({"keep_tombstones": False}, "to keep tombstones, and to drop them"),
    "a rename of nothing": ({"rename": {"m": "x"}, "schema": FIRST.append(pa.field("x", pa.int8()))}, "the table has neither"),
    "a rename to what is there": ({"rename": {"n": "note"}}, "the table has both"),
    "a rename to nothing": ({"rename": {"n": "m"}}, "no column of the schema"),
    "two renames to one": (
        {"rename": {"n": "m", "note": "m"}, "schema": pa.schema([("id", pa.string()), ("m", pa.int32())])},
        "two columns would be that",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_a_table_cannot_become_is_refused_and_nothing_is_written(tmp_path: Path, what: str) -> None:
    Catalog(tmp_path).create_table(NAME, FIRST, key=["id"])
    files = sorted(tmp_path.rglob("*"))
    options, says = REFUSED[what]
    with pytest.raises(IncompatibleTable) as caught:
        Catalog(tmp_path).create_table(**{"name": NAME, "schema": FIRST, "key": ["id"], **options})
    assert says in caught.value.message and caught.value.next_step
    assert sorted(tmp_path.rglob("*")) == files


def test_columns_exchange_their_names_and_the_key_has_another(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    plain = pa.schema([("id", pa.string()), ("a", pa.int64()), ("b", pa.int64())])
    catalog.create_table(NAME, plain, key=["id"], id="id")
    put(catalog, [{"id": "x", "a": 1, "b": 2}], bucket="one")
    exchanged = pa.schema([("run", pa.string()), ("a", pa.int64()), ("b", pa.int64())])
    catalog.create_table(NAME, exchanged, key=["run"], rename={"a": "b", "b": "a", "id": "run"})
    assert rows(Catalog(tmp_path).snapshot(), NAME) == [{"run": "x", "b": 1, "a": 2}]
    assert Catalog(tmp_path).snapshot().get(NAME, run="x") == {"run": "x", "b": 1, "a": 2}


def test_who_did_not_make_a_table_adds_columns_alone_unless_a_maintainer(tmp_path: Path) -> None:
    Catalog(tmp_path).create_table(NAME, FIRST, key=["id"], writer="node-1")
    wider = FIRST.append(pa.field("more", pa.int64()))
    assert Catalog(tmp_path).create_table(NAME, wider, key=["id"], writer="node-2").committed is not None
    renamed = wider.set(1, pa.field("count", pa.int32()))
    for given, options, what in (
        (renamed, {"rename": {"n": "count"}}, "count"),
        (wider.remove(2), {"remove": ["note"]}, "note"),
        (wider, {"tombstone_retention": "1h"}, "tombstone_retention_seconds"),
    ):
        with pytest.raises(IncompatibleTable, match=f"'node-2' cannot say what becomes of {what}.*'node-1'") as caught:
            Catalog(tmp_path).create_table(NAME, given, key=["id"], writer="node-2", **options)
        assert "maintainer-" in caught.value.next_step
    assert Catalog(tmp_path).create_table(NAME, renamed, key=["id"], rename={"n": "count"}, writer="node-1").committed is not None
    assert (
        Catalog(tmp_path).create_table(NAME, wider.remove(2), key=["id"], rename={"count": "n"}, remove=["note"]).committed
        is not None
    )
    with pytest.raises(IncompatibleTable, match=r"'node-1' cannot say what becomes of note.*: maintainers can"):
        Catalog(tmp_path).create_table(NAME, wider, key=["id"], writer="node-1")
    assert Catalog(tmp_path).snapshot().scan(NAME).schema.names == ["id", "n", "config", "more"]


def test_a_removal_by_who_does_not_decide_takes_nothing_away_and_is_told(tmp_path: Path) -> None:
    Catalog(tmp_path).create_table(NAME, FIRST, key=["id"])
    other = Catalog(tmp_path)
    body = 'message R { option (table) = { name: "jobs.runs" key: "id" }; reserved 3; string id = 1; optional int32 n = 2; }'
    other.register(messages(proto(body))["R"])
    with pytest.warns(CatalogWarning, match="counts for its new columns alone: note are for maintainers"):
        put(other, [{"id": "x", "n": 1}], bucket="one", writer="node-2")
    assert rows(Catalog(tmp_path).snapshot(), NAME) == [{"id": "x", "n": 1, "note": None, "config": None}]


def test_what_no_schema_says_stays_with_the_proto(tmp_path: Path) -> None:
    head = '(table) = { name: "jobs.runs" key: "id"'
    for at, (options, field) in enumerate(
        {
            'sums: {name: "rows"}': "optional int32 n = 2;",
            'data_reference: "id"': "optional int32 n = 2;",
            "": "optional int64 n = 2 [(column) = {type: LOGICAL_TYPE_TIMESTAMP_MICROS default: COLUMN_DEFAULT_CREATED}];",
            " ": "enum E { E_NONE = 0; } optional E n = 2;",
        }.items()
    ):
        catalog = Catalog(tmp_path / str(at))
        catalog.register(messages(proto(f"message R {{ option {head} {options} }}; string id = 1; {field} }}"))["R"])
        catalog.declare([NAME])
        with pytest.raises(IncompatibleTable, match="which no schema says") as caught:
            catalog.create_table(NAME, catalog.snapshot().scan(NAME).schema, key=["id"])
        assert ".proto" in caught.value.next_step


def test_a_table_of_a_proto_goes_on_as_one_of_a_schema_and_back(tmp_path: Path) -> None:
    body = (
        'message R { option (table) = { name: "jobs.runs" key: "id" }; reserved 7 to 9; string id = 1; optional sint32 n = 4; }'
    )
    catalog = Catalog(tmp_path)
    catalog.register(messages(proto(body))["R"])
    assert catalog.declare([NAME]) is not None and catalog.declare([NAME]) is None
    put(catalog, [{"id": "x", "n": -3}], bucket="one")
    made = catalog.create_table(NAME, {"id": pa.string(), "n": pa.int64(), "more": pa.bool_()}, key=["id"])
    assert (
        "optional sint64 n = 4;" in made.proto and "optional bool more = 10;" in made.proto and "reserved 7 to 9;" in made.proto
    )
    assert rows(Catalog(tmp_path).snapshot(), NAME) == [{"id": "x", "n": -3, "more": None}]
    other = Catalog(tmp_path)
    other.register(tables_in(compiled(made.proto), "compiled"))
    put(other, [{"id": "y", "n": 1 << 40, "more": True}], bucket="two", writer="node-2")
    assert [row["n"] for row in rows(Catalog(tmp_path).snapshot(), NAME)] == [-3, 1 << 40]


def test_only_tables_that_were_made_known_are_declared(tmp_path: Path) -> None:
    with Catalog(tmp_path).writer("node-1") as writer, pytest.raises(UnknownTable, match=r"'jobs\.runs' was made known"):
        writer.declare([NAME])
    assert not list(tmp_path.rglob("*.txn"))


def test_a_table_without_rows_outlives_the_transaction_that_declares_it(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    keep_time(world, monkeypatch)
    for fields in ("optional string gone = 2;", "reserved 2; optional int32 n = 3;"):
        catalog = world.catalog()
        body = f'message R {{ option (table) = {{ name: "jobs.runs" key: "id" }}; string id = 1; {fields} }}'
        catalog.register(messages(proto(body))["R"])
        with world.writer("maintainer-decides", catalog=catalog) as writer:
            world.clock.tick()
            assert writer.declare([NAME]) is not None and writer.declare([NAME]) is None
    declared = stored(world, ".txn")
    for _ in range(3):
        for name in ("maintainer-decides", "node-1"):
            world.commit(world.writer(name), ("put", "buckets", {"owner": OWNER, "name": "b"}))
        world.clock.tick(GRACE)
        compacted(world)
        world.clock.tick(GRACE)
        prune(world)
    assert len(declared) == 2 and not {*declared} & {*stored(world)}
    assert world.snapshot().scan(NAME).schema.names == ["id", "n"]
    with world.writer("maintainer-decides", catalog=catalog) as writer:
        assert writer.declare([NAME]) is None
    world.commit(world.writer("node-1"), ("put", NAME, {"id": "x", "n": 1}))
    assert rows(world.snapshot(), NAME) == [{"id": "x", "n": 1}]


def test_a_clone_has_tables_without_rows(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path / "lake")
    catalog.create_table(NAME, FIRST, key=["id"])
    put(catalog, [], bucket="b")
    catalog.create_table(NAME, FIRST.remove(2), key=["id"], remove=["note"])
    catalog.clone(tmp_path / "copy")
    copied = Catalog(tmp_path / "copy")
    assert copied.snapshot().scan(NAME).schema.names == ["id", "n", "config"]
    assert copied.create_table(NAME, FIRST.remove(2), key=["id"], remove=["note"], writer="node-9").committed is None


CHILD = """
import json, sys
from bucketcatalog import Catalog
catalog = Catalog(sys.argv[1])
found = catalog.snapshot().scan("jobs.runs")
with catalog.writer("node-2") as writer, writer.transaction() as tx:
    tx.put("jobs.runs", json.loads(sys.argv[2]))
print(json.dumps({"columns": found.schema.names, "rows": found.to_arrow().to_pylist()}))
"""


def test_another_process_that_knows_the_url_alone_reads_and_writes_it_at_once(tmp_path: Path) -> None:
    def child(row: dict[str, Any]) -> Any:
        done = subprocess.run(
            [sys.executable, "-c", CHILD, tmp_path, json.dumps(row)], capture_output=True, text=True, check=True
        )
        return json.loads(done.stdout)

    catalog = Catalog(tmp_path)
    catalog.create_table(NAME, FIRST.remove(3), key=["id"])
    assert child({"id": "x", "n": 1, "note": "y"}) == {"columns": ["id", "n", "note"], "rows": []}
    catalog.create_table(
        NAME,
        pa.schema([("id", pa.string()), ("count", pa.int64()), ("ok", pa.bool_())]),
        key=["id"],
        rename={"n": "count"},
        remove=["note"],
    )
    found = child({"id": "y", "count": 1 << 40, "ok": True})
    assert found == {"columns": ["id", "count", "ok"], "rows": [{"id": "x", "count": 1, "ok": None}]}
    assert [row["count"] for row in rows(catalog.snapshot(), NAME)] == [1, 1 << 40]
