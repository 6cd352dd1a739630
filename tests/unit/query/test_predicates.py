"""Conditions as text and as expressions of pyarrow, wherever rows are read: the rows, what is not read for them, and what is refused."""

from __future__ import annotations

import datetime
import pickle
import re
from collections.abc import Callable
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from bucketcatalog import Catalog, InvalidOption, between, prefix
from bucketcatalog.query.filtered import Filtered, FilteredRows
from bucketcatalog.query.reads import Read
from bucketcatalog.query.scan import Scan
from bucketcatalog.query.snapshot import Snapshot
from bucketcatalog.query.views import Views, ViewScan

from ...kit import in_engines
from ...kit.in_engines import TABLE, UID
from ...kit.world import BUCKET, OWNER, World, obj

field = pc.field
UTC = datetime.UTC
LIVE, DELETED = TABLE, f"deleted_{TABLE}"
AS_IN_DUCKDB = """
number > 0 and text like 'a%'
not (number > 0 or text = 'a')
text in ('a', 'B', null)
text not in ('a', 'B')
text not in ('a', null)
text like '%b%' or text like '_'
text ilike 'B%'
text not ilike 'b%'
text >= 'a' and text < 'b' and text like 'a%'
text like 'b''%'
'a' = text
upper(text) = 'A'
length(text) = 1
lower(plain) <> 'p'
plain = 'p' or text = 'a' and flag
plain_flag = true or null
ratio > 1
ratio = 'nan'
not (ratio > 1)
ratio <> 0
ratio between -1.5 and 1.5
share >= 0.1
share in (0.1, 'nan')
number > share
ratio > number
number is null or flag
not flag and small > 5
(flag is null) or (flag = false)
large > 9223372036854775808
large >= 1e18
number = 2147483647.0
number < 0.5 and number > -0.5
small between 1 and 4294967295
k between 10 and 20 or k between 200 and 210
k = 3 or k = 5 or k = -7
k in (1, 2.5, 3)
k in (1, 2, 3) and k not in (2)
5 < number
"at" >= '2023-01-01' or "at" is null
"at" < created
"at" = timestamp '1970-01-01 00:00:00'
counts['a'] = 1
counts['a'] is null
within.text = 'w'
within.text is null
json like '{%'
mode in ('MODE_SLOW', '7')
mode > 'MODE_G'
plain_mode = 'MODE_UNSPECIFIED'
uid > 'b'
uid like 'a%'
words is not null
""".strip().splitlines()
EXPRESSIONS = {
    "a range": field("number") > 0,
    "the other way round": pc.scalar(0) < field("number"),
    "two ends": (field("number") >= 0) & (field("number") < 5),
    "one of them not recognised": (field("k") > 10) & pc.match_like(field("text"), "a%"),
    "or": (field("text") == "a") | field("text").is_null(),
    "not": ~((field("number") > 0) | (field("text") == "a")),
    "is in": field("text").isin(["a", "B", None]),
    "is not in": ~field("text").isin(["a", "B"]),
    "begins": pc.starts_with(field("text"), "a"),
    "begins in any case": pc.starts_with(field("text"), "A", ignore_case=True),
    "nan above": field("ratio") > 1,
    "nan neither above nor below": ~(field("ratio") > 1),
    "nan equals nothing": field("ratio") == float("nan"),
    "nan as null": field("ratio").is_null(nan_is_null=True),
    "zeros": field("ratio") == -0.0,
    "a number between two of a column": field("share") > 0.1,
    "a fraction": field("k") < 4.5,
    "a time": field("at") >= datetime.datetime(2000, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=2))),
    "a uuid": field("uid") == UID,
    "a uuid otherwise written": field("uid") == UID.upper(),
    "what is above it as text": field("uid") > UID.upper(),
    "a symbol": field("mode") == "MODE_SLOW",
    "a number without a symbol": field("mode") == "7",
    "the number of a symbol": field("mode") == "1",
    "symbols in order": field("mode") > "MODE_G",
    "bytes": field("raw") >= b"\x00\xff",
    "a truth": field("flag"),
    "no truth": ~field("flag"),
    "within": field("within", "text") == "w",
    "within a map": pc.map_lookup(field("counts"), pa.scalar("a"), "first") == 1,
    "a list": field("words").is_valid(),
    "two columns": field("at") > field("created"),
    "arithmetic": field("k") + field("small") > 9,
    "null": field("number") == pc.scalar(pa.scalar(None, pa.int32())),
}


@pytest.fixture(scope="module", params=[in_engines.merged, in_engines.changed], ids=["merged", "changed"])
def snapshot(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    made: Catalog = request.param(tmp_path_factory.mktemp("lake") / "lake")
    return made.snapshot()


def keys(read: Any) -> list[int]:
    return [row["k"] for row in read.to_arrow().select(["k"]).to_pylist()]


@pytest.mark.parametrize("table", [LIVE, DELETED])
def test_text_is_true_of_the_rows_of_which_it_is_in_duckdb(snapshot: Snapshot, table: str) -> None:
    whole = snapshot.scan(table).to_arrow()
    plain = [pa.field(each.name, pa.timestamp("us")) if pa.types.is_timestamp(each.type) else each for each in whole.schema]
    with duckdb.connect() as connection:
        connection.register("rows", whole.cast(pa.schema(plain)))  # of zones DuckDB knows nothing without an extension
        for text in AS_IN_DUCKDB:
            expected = connection.sql(f"SELECT k FROM rows WHERE {text} ORDER BY k").fetchall()
            assert keys(snapshot.scan(table, columns=["k"], where=text)) == [k for (k,) in expected], text


@pytest.mark.parametrize("table", [LIVE, DELETED])
def test_an_expression_is_true_of_the_rows_of_which_it_is_in_arrow(snapshot: Snapshot, table: str) -> None:
    whole = snapshot.scan(table).to_arrow()
    for name, expression in EXPRESSIONS.items():
        read = snapshot.scan(table, columns=["k"], where=expression)
        expected = whole.filter(expression)["k"].to_pylist()
        assert keys(read) == expected, name
        assert isinstance(read, Read)
        tasks = pickle.loads(pickle.dumps(read.tasks(50)))
        assert [k for task in tasks for rows in task.read(snapshot.files.store) for k in rows["k"].to_pylist()] == expected, name
        assert read.count() == len(expected), name
        assert read.head(1)["k"].to_pylist() == expected[:1], name


@pytest.mark.parametrize(
    ("given", "where"),
    [
        ("k = 3", {"k": 3}),
        ("k in (3, 5) and k > 3", {"k": 5}),
        ("k > 3 and k >= 4 and k <= 9 and k < 90", {"k": between(4, 9)}),
        ("not (k <= 3 or k >= 9)", {"k": between(3, 9, inclusive="neither")}),
        ("number < 0.5", {"number": between(None, 0)}),
        ("k = 3 or k is null or k in (3, 4)", {"k": [3, None, 4]}),
        ("text like 'a%' and text is not null", {"text": prefix("a")}),
        ("text like 'a' and flag", {"text": "a", "flag": True}),
        ("ratio > 1", {"ratio": between(1.0, None, inclusive="right")}),
        ("number is null", {"number": None}),
        ("number > 1e30", {"number": []}),
        (field("k") == 3, {"k": 3}),
        ((field("k") > 3) & (field("text") == "a"), {"k": between(3, None, inclusive="right"), "text": "a"}),
        (~(field("k") <= 3), {"k": between(3, None, inclusive="right")}),
        (field("text").isin(["a", "B"]), {"text": ["a", "B"]}),
        (pc.starts_with(field("text"), "a"), {"text": prefix("a")}),
        (field("raw").is_null(), {"raw": None}),
        (field("flag"), {"flag": True}),
        (f"uid > '{UID.upper()}' and k = 1", {"uid": between(UID, None, inclusive="right"), "k": 1}),
    ],
    ids=str,
)
def test_what_columns_say_by_themselves_is_read_as_of_a_mapping(snapshot: Snapshot, given: Any, where: Any) -> None:
    read, same = snapshot.scan(TABLE, where=given), snapshot.scan(TABLE, where=where)
    assert isinstance(read, Scan) and isinstance(same, Scan)
    assert dict(read.task.where) == where and read.explain() == same.explain() and read.files().why == same.files().why


@pytest.mark.parametrize(
    ("given", "where"),
    [
        ("k > 300 and length(text) > 0", {"k": between(300, None, inclusive="right")}),
        ("text like 'a_%'", {"text": prefix("a")}),
        ("(k = 1 and flag) or (k = 2 and number > 3)", {"k": [1, 2]}),
        ("(k between 1 and 2 and flag) or (k > 5 and k < 8 and number > 3) or k = 7", {"k": between(1, 8)}),
        ("k > 3 and mode > 'MODE_G' and text != 'a'", {"k": between(3, None, inclusive="right")}),
        ("mode = '1'", {"mode": "1"}),
        ("uid > 'b' and k = 1", {"k": 1}),
        ((field("k") > 300) & (field("k") + 1 > 0), {"k": between(300, None, inclusive="right")}),
        (field("ratio") > 1, {"ratio": between(1.0, None, inclusive="right")}),
        (~(field("ratio") > 1), {}),
        (field("share") > 0.1, {}),
        (field("k") < 4.5, {}),
    ],
    ids=str,
)
def test_what_cannot_be_said_of_columns_narrows_by_what_can(snapshot: Snapshot, given: Any, where: Any) -> None:
    read = snapshot.scan(TABLE, columns=["k"], where=given)
    assert isinstance(read, Filtered) and isinstance(read.source, Scan)
    assert dict(read.source.task.where) == where
    assert read.schema.names == ["k"] and read.to_arrow().schema == read.schema
    assert read.files().why == "its condition has to be checked on the rows" and not read.files().native
    lines = read.explain().splitlines()
    assert lines[-1].startswith("checked on the rows: ") and "not natively: its condition has to be checked on the rows" in lines


@pytest.fixture(scope="module")
def large() -> World:
    """Four blocks of objects, which lie in a checkpoint."""
    world = World.counting()
    with world.writer() as w:
        world.commit(w, ("put", "buckets", {"owner": OWNER, "name": "pets", "id": BUCKET}))
        rows = [obj(f"{n:06}", content_length=n, tags={"team": "ab"[n % 2]}) for n in range(60_000)]
        world.commit(w, ("put", "objects", pa.Table.from_pylist(rows)))
        w.checkpoint()
    return world


@pytest.mark.parametrize("rest", ["length(name) = 6", "tags['team'] = 'a'"])
def test_blocks_are_left_out_also_where_rows_have_to_be_tested(large: World, rest: str) -> None:
    for where in (f"content_length < 100 and {rest}", f"name < '000100' and {rest}"):
        read = large.snapshot().scan("objects", columns=["name"], where=where)
        skipped = re.search(r"([0-9]+) blocks skipped", read.explain())
        assert skipped is not None and int(skipped[1]) >= 2
        assert 0 < read.to_arrow().num_rows <= 100


def test_the_order_of_many_rows_is_kept(large: World) -> None:
    names = (
        large.snapshot().scan("objects", columns=["name"], where=field("content_length") * 2 >= 0).to_arrow()["name"].to_pylist()
    )
    assert names == [f"{n:06}" for n in range(60_000)]


def test_names_in_place_of_ids_go_with_any_condition(large: World) -> None:
    snapshot = large.snapshot()
    for where in ("content_length < 3", "lower(name) <= '000002'", field("content_length") < 3):
        found = snapshot.scan("objects", columns=["name"], where=where, bucket="pets", prefix="00000")
        assert [row["name"] for row in found.to_arrow().to_pylist()] == ["000000", "000001", "000002"], where
    twice = snapshot.scan("objects", columns=["name"], where="name < '000009' and name != '000001'", prefix="00000").to_arrow()
    assert len(twice) == 8
    for where in ("bucket = 'pets' and content_length = 5", "bucket like 'p%' and content_length = 5", field("bucket") == "pets"):
        rows = snapshot.scan("objects", columns=["bucket", "name"], where=where).to_arrow().to_pylist()
        assert {row["bucket"] for row in rows} == {"pets"} and (len(rows) == 1 or not isinstance(where, str)), where


def test_views_and_tables_about_the_catalog_are_asked_alike(snapshot: Snapshot) -> None:
    views = Views("system", {"renamed": in_engines.NAMED_OTHERWISE, "computed": in_engines.COMPUTED}, {}, lambda _: True)
    shown = Snapshot(snapshot.files, snapshot.view, snapshot.definitions, reads=lambda: [views])
    for name, given, where in (
        ("renamed", "plain = 'a' and text = 'p'", {"plain": "a", "text": "p"}),
        ("computed", field("length") > 1, {"length": between(1, None, inclusive="right")}),
    ):
        read, same = shown.scan(name, where=given), shown.scan(name, where=where)
        assert isinstance(read, ViewScan) and read.to_arrow().equals(same.to_arrow()) and len(same.to_arrow()), name
    rest = shown.scan("computed", columns=["text"], where="length > 1 and text not like '%b'")
    assert isinstance(rest, Filtered) and {*rest.to_arrow()["text"].to_pylist()} == {"a\x00b", "b'\"", "é\U0010ffff"} - {"a\x00b"}
    with pytest.raises(InvalidOption, match=r"Table 'renamed' has no column 'flag' to filter by.*text, plain, again"):
        shown.scan("renamed", where="flag")
    log = shown.scan("log", columns=["revision"], where="writer = 'node-1' and revision in (0, 1)").to_arrow()
    assert log["revision"].to_pylist() == [0, 1]
    some = shown.scan("log", columns=["writer"], where=(field("revision") + 0 == 1) & (field("writer") == "node-1"))
    assert type(some) is FilteredRows and some.to_arrow().to_pylist() == [{"writer": "node-1"}] and some.count() == 1
    assert "checked on the rows" in some.explain()


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("nothing = 1", "Table 'my.rows' has no column 'nothing' to filter by. Next: Its columns are k, text, .*_revision"),
        (field("nothing") == 1, "has no column 'nothing' to filter by"),
        ('text = "a"', "has no column 'a' to filter by"),
        (
            "number = 'x'",
            "on column 'number' of 'my.rows' does not fit: its values are whole numbers, and it is compared with 'x'",
        ),
        ("text > 5", "its values are text, and it is compared with 5. Next: Compare it with text in single quotes"),
        ("text = timestamp '2024-01-01'", "its values are text, and it is compared with a time"),
        ("at > 5", "its values are times"),
        ("at > 'gestern'", "'gestern' is not a time"),
        ("raw = 'a'", "its values are bytes.* Next: Compare it with bytes as X'0A1B'"),
        ("flag = 1", "its values are true or false"),
        ("flag > true", "what is true or false has no order"),
        ("text", "it is neither true nor false"),
        ("number like 'a'", "LIKE is about text"),
        ("lower(number) = 'a'", "lower is about text"),
        ("words = 'x'", "values of the type list<item: string> cannot be compared. Next: Ask whether it IS NULL"),
        ("within.none = 'x'", "within of 'my.rows' has no field 'none'. Next: Its fields are text, numbers"),
        ("counts[1] = 1", "counts of 'my.rows' has no key 1. Next: Its keys are of the type string"),
        ("text.x = 1", "text of 'my.rows' is of the type string, and nothing lies in it"),
        ("text = number", "its values are text, and those of 'number' whole numbers"),
        ("1 = 1", "The condition '1 = 1' is about no column"),
        ("true", "is about no column"),
        ("1 = 1 and k = 1", "A condition compares two values, and no column"),
        ("lower('A') = text", r"A function of 'A' is no condition on a column"),
        ("5 in (5) or k = 1", "A condition is about 5 alone"),
        (pc.scalar(value=True), "is about no column"),
        (field(0) > 1, "cannot be handed on: .* Next: Name columns by their names"),
        (field("number") > "x", "does not fit the columns of 'my.rows': .*Next: Compare columns .*number is int32"),
        (field("number"), "does not fit the columns of 'my.rows': .*bool"),
        (field("at") > datetime.datetime(2024, 1, 1), "does not fit the columns of 'my.rows': .*timezone"),  # noqa: DTZ001
        (["number > 1"], "is not a condition. Next: Map columns"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused(snapshot: Snapshot, where: Any, message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        snapshot.scan(TABLE, where=where)


def test_what_cannot_be_evaluated_of_a_value_is_the_conditions_fault(snapshot: Snapshot) -> None:
    read = snapshot.scan(TABLE, where=field("number") + 1 > 3)
    with pytest.raises(InvalidOption, match=r"The condition .* cannot be evaluated: overflow"):
        read.to_arrow()


def test_times_that_count_from_now_do_so_once(large: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bucketcatalog.clock.now_us", lambda: large.clock.now)
    read = large.snapshot().scan("objects", columns=["name"], where="modified > '1 day ago' and length(name) = 6")
    sent = pickle.loads(pickle.dumps(read.tasks(1 << 20)))  # type: ignore[union-attr]
    monkeypatch.setattr("bucketcatalog.clock.now_us", lambda: large.clock.now + 10 * 86_400_000_000)
    assert read.count() == sum(len(rows) for task in sent for rows in task.read(large.store)) == 60_000
    again = large.snapshot().scan("objects", columns=["name"], where="modified > '1 day ago' and length(name) = 6")
    assert again.count() == 0


def test_columns_that_are_asked_for_are_told_as_ever(snapshot: Snapshot) -> None:
    for where in ("k = 1", "length(text) = 1"):
        with pytest.raises(InvalidOption, match="has no column 'nothing'"):
            snapshot.scan(TABLE, columns=["nothing"], where=where)
        with pytest.raises(InvalidOption, match="The column 'k' is asked for twice"):
            snapshot.scan(TABLE, columns=["k", "k"], where=where)
        shown = snapshot.scan(TABLE, where=where)
        assert shown.schema == snapshot.scan(TABLE).schema == shown.to_arrow().schema


FORMS = {"upper": str.upper, "bare": lambda text: text.replace("-", ""), "braces": lambda text: f"{{{text}}}"}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_ids_are_met_in_any_form_as_by_a_mapping(snapshot: Snapshot, form: Callable[[str], str]) -> None:
    same = snapshot.scan(TABLE, where={"uid": form(UID)})
    assert isinstance(same, Scan) and same.count() > 0
    for text in (f"uid = '{form(UID)}'", f"uid in ('{form(UID)}')", f"'{form(UID)}' = uid"):
        read = snapshot.scan(TABLE, where=text)
        assert isinstance(read, Scan) and read.only(["k"]).to_arrow().equals(same.only(["k"]).to_arrow())
    others = snapshot.scan(TABLE, where=f"uid != '{form(UID)}'").count()
    assert others + same.count() == snapshot.scan(TABLE, where="uid is not null").count()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("uid = 'bob'", "'bob' is not a uuid"),
        ("text = 'a", "at character 8: the text that begins here has no end"),
        ("k > 10MB", "at character 5: what begins here is no number; sizes are in bytes"),
        ("k > 1e99999999999999999999", "at character 5: no number has as many digits"),
        ('text = "a/p1"', "A value stands in single quotes: 'a/p1'."),
        ("at > yesterday", "A value stands in single quotes: 'yesterday'."),
    ],
)
def test_a_likely_mistake_is_told_as_what_it_is(snapshot: Snapshot, text: str, why: str) -> None:
    with pytest.raises(InvalidOption, match=re.escape(why)):
        snapshot.scan(TABLE, where=text)


def test_a_long_number_for_a_name_is_found_where_it_lies() -> None:
    digest = "8f14e45fceea167a5a36dedd4bea2543"
    world = World()
    with world.writer() as w:
        world.commit(w, ("put", "objects", [obj(f"{n:032x}") for n in range(50)] + [obj(digest)]))
    read = world.snapshot().scan("objects", where=f"name = '{digest}'")
    assert read.count() == 1
    source = read.source if isinstance(read, Filtered) else read
    assert isinstance(source, Scan) and dict(source.task.where) == {"name": digest}
