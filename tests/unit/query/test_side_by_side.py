"""Several catalogs read as one: every row of each and whose it is, versions that name all, and one catalog's trouble told by its url."""

from __future__ import annotations

import json
import pickle
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bucketcatalog import (
    Catalog,
    CatalogNotFound,
    DatabaseNotFound,
    HistoryPruned,
    IncompatibleTable,
    InvalidOption,
    InvalidVersion,
    UnknownTable,
    between,
    prefix,
)
from bucketcatalog.federation import Federation
from bucketcatalog.query.members import of_each
from bucketcatalog.query.side_by_side import SideBySide
from bucketcatalog.store import LocalStore

from ...kit.world import BUCKET, OTHER, OWNER, obj


def put(catalog: Catalog, table: str, *given: dict[str, Any], writer: str = "w", database: str = "default") -> str:
    with catalog.writer(writer, database=database) as held, held.transaction() as tx:
        tx.put(table, list(given))
    assert tx.committed is not None
    return tx.committed.version


@pytest.fixture
def places(tmp_path: Path) -> list[str]:
    """Two catalogs whose writers are called alike, and that have one key in common."""
    found = [str(tmp_path / name) for name in ("north", "south")]
    put(Catalog(found[0]), "objects", obj("both", content_length=1), obj("n/1", content_length=2), obj("n/2"))
    put(Catalog(found[1]), "objects", obj("both", content_length=10), obj("s/1", content_length=20), obj("n/3"))
    return found


@pytest.fixture
def both(places: list[str]) -> Federation:
    opened: Any = Catalog(places)
    assert isinstance(opened, Federation)
    return opened


def urls(both: Federation) -> list[str]:
    return [member.url for member in both.members]


def shown(read: SideBySide) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in read.to_arrow().to_pylist()]


def test_rows_of_each_are_there_with_whose_they_are(both: Federation) -> None:
    north, south = urls(both)
    read = both.snapshot().scan("objects", columns=["name", "content_length", "_catalog"])
    assert sorted(shown(read)) == sorted(
        [
            ("both", 1, north),
            ("n/1", 2, north),
            ("n/2", None, north),
            ("both", 10, south),
            ("n/3", None, south),
            ("s/1", 20, south),
        ]
    )
    assert "_catalog" not in both.snapshot().scan("objects").schema.names
    assert read.to_pandas()["content_length"].sum() == 33


def test_conditions_hold_for_each_and_name_catalogs(both: Federation) -> None:
    north, south = urls(both)
    snapshot = both.snapshot()
    where = {"owner": OWNER, "bucket_id": BUCKET, "name": prefix("n/")}
    assert sorted(shown(snapshot.scan("objects", columns=["name"], where=where))) == [("n/1",), ("n/2",), ("n/3",)]
    assert shown(snapshot.scan("objects", columns=["name"], where={**where, "_catalog": south})) == [("n/3",)]
    assert len(shown(snapshot.scan("objects", columns=["_catalog"], where={"_catalog": [north, south]}))) == 6
    for wrong in ("elsewhere", [], prefix("n"), [south, "elsewhere"], None, [None], 5):
        with pytest.raises(InvalidOption, match="None of the catalogs"):
            snapshot.scan("objects", where={"_catalog": wrong})


def test_engines_read_all_of_it(both: Federation) -> None:
    import duckdb

    with duckdb.connect() as connection:
        relation = both.snapshot().scan("objects", columns=["content_length", "_catalog"]).to_duckdb(connection)
        assert relation.aggregate("sum(content_length), count(distinct _catalog)").fetchall() == [(33, 2)]
    frame = both.snapshot().scan("objects", columns=["content_length"]).to_polars()
    assert frame.collect()["content_length"].sum() == 33


def test_a_version_names_the_cut_of_each_and_reads_the_same_again(both: Federation, places: list[str]) -> None:
    before = both.snapshot()
    put(both.members[1], "objects", obj("later"))
    assert json.loads(before.version) == {url: s.version for url, s in before.members.items()}
    then, now = both.snapshot(version=before.version), both.snapshot()
    assert then.version == before.version and len(shown(then.scan("objects"))) == 6 and len(shown(now.scan("objects"))) == 7
    assert before.watermark == min(s.watermark for s in before.members.values()) and before.missing == ()
    other_order: Any = Catalog(places[::-1])
    assert len(shown(other_order.snapshot(version=before.version).scan("objects"))) == 6


@pytest.mark.parametrize("wrong", ["w@0", "{}", "[1]", ":", '{"a": "b"}', "3"])
def test_a_version_of_something_else_is_refused(both: Federation, wrong: str) -> None:
    with pytest.raises(InvalidVersion, match="does not name a version of each"):
        both.snapshot(version=wrong)


def test_a_tag_that_each_has_is_a_version(both: Federation) -> None:
    for member in both.members:
        member.tag("monthly")
    put(both.members[0], "objects", obj("later"))
    assert len(shown(both.snapshot(version="monthly").scan("objects"))) == 6
    both.members[1].drop_tag("monthly")
    with pytest.raises(InvalidVersion, match=both.members[1].url):
        both.snapshot(version="monthly")


def test_a_look_up_gives_the_row_of_the_one_that_has_it(both: Federation) -> None:
    snapshot = both.snapshot()
    found = snapshot.get("objects", **obj("s/1"))
    assert found is not None and found["content_length"] == 20 and snapshot.get("objects", **obj("none")) is None
    with pytest.raises(InvalidOption, match=f"{urls(both)[0]} and in {urls(both)[1]}"):
        snapshot.get("objects", **obj("both"))


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_pages_have_every_name_once_in_order_and_rows_of_one_name_together(both: Federation, limit: int) -> None:
    for number, member in enumerate(both.members):
        put(member, "objects", *(obj(f"z{n:02}") for n in range(number, 20, 2)), obj("z07"), obj("\u00e9"), obj("\U0001f600"))
    snapshot, met, marker = both.snapshot(), list[tuple[str, str]](), None
    for _ in range(100):
        page = snapshot.list("objects", owner=OWNER, bucket_id=BUCKET, marker=marker, limit=limit)
        rows = page.rows.select(["name", "_catalog"]).to_pylist()
        assert len({row["name"] for row in rows}) <= limit
        met += [(row["name"], row["_catalog"]) for row in rows]
        if (marker := page.next_marker) is None:
            break
    every = [
        (row["name"], row["_catalog"]) for row in snapshot.scan("objects", columns=["name", "_catalog"]).to_arrow().to_pylist()
    ]
    assert [name for name, _ in met] == sorted((name for name, _ in every), key=str.encode)
    assert sorted(met) == sorted(every)


def test_groups_of_several_are_one(both: Federation) -> None:
    page = both.snapshot().list("objects", owner=OWNER, bucket_id=BUCKET, delimiter="/")
    assert page.groups == ["n/", "s/"] and page.rows["name"].to_pylist() == ["both", "both"] and page.next_marker is None
    first = both.snapshot().list("objects", owner=OWNER, bucket_id=BUCKET, delimiter="/", limit=2)
    assert first.groups == ["n/"] and first.next_marker == "n/"


def test_what_changed_is_told_of_each(both: Federation) -> None:
    before = both.snapshot().version
    for member in both.members:
        put(member, "objects", obj("later"))
    changed = both.changes(start=before)
    assert [row["name"] for row in changed.to_arrow().to_pylist()] == ["later", "later"]
    assert sorted(shown(both.diff(start=before).only(["_change_type", "_catalog"]))) == [("created", url) for url in urls(both)]
    assert len(both.changes().to_arrow()) == 8


def test_columns_that_one_lacks_are_null_and_types_are_widened_without_loss(places: list[str]) -> None:
    one, two = map(Catalog, places)
    one.create_table("app.rows", pa.schema([("id", pa.string()), ("n", pa.int32()), ("only", pa.string())]), key=["id"])
    two.create_table("app.rows", pa.schema([("id", pa.string()), ("extra", pa.bool_()), ("n", pa.int64())]), key=["id"])
    put(one, "app.rows", {"id": "a", "n": 1, "only": "x"})
    put(two, "app.rows", {"id": "b", "n": 1 << 40, "extra": True})
    both: Any = Catalog(places)
    read = both.snapshot().scan("app.rows")
    assert read.schema.field("n").type == pa.int64()
    assert sorted(map(str, shown(read))) == sorted(map(str, [("a", 1, "x", None), ("b", 1 << 40, None, True)]))
    with pytest.raises(InvalidOption, match="no column 'none' in any"):
        both.snapshot().scan("app.rows", columns=["none"])


def test_types_that_do_not_go_together_name_both_catalogs(places: list[str]) -> None:
    one, two = map(Catalog, places)
    one.create_table("app.rows", pa.schema([("id", pa.string()), ("n", pa.int32())]), key=["id"])
    two.create_table("app.rows", pa.schema([("id", pa.string()), ("n", pa.string())]), key=["id"])
    both: Any = Catalog(places)
    with pytest.raises(IncompatibleTable, match=r"'n' of table 'app.rows' is int32 in .*north and string in .*south"):
        both.snapshot().scan("app.rows")


def test_a_table_of_one_alone_is_read_and_one_of_none_is_unknown(both: Federation) -> None:
    put(both.members[0], "buckets", {"owner": OTHER, "name": "b"})
    assert len(shown(both.snapshot().scan("buckets", columns=["name"]))) == 1
    with pytest.raises(UnknownTable):
        both.snapshot().scan("none.such")
    with pytest.raises(UnknownTable):
        both.snapshot().list("none.such")
    assert {row[0] for row in shown(both.snapshot().scan("writers", columns=["_catalog"]))} == set(urls(both))


def test_data_tables_are_read_as_one_and_keys_tell_rows_apart_within_a_catalog(both: Federation) -> None:
    for number, member in enumerate(both.members):
        with member.data("cpu", writer="w") as table:
            table.append([{"host": "a", "v": number}], key=["host"])
            table.append([{"host": "a", "v": number + 10}])
    scan = both.data("cpu").scan(columns=["host", "v", "_catalog"])
    assert sorted(shown(scan)) == [("a", 10, urls(both)[0]), ("a", 11, urls(both)[1])]
    before = both.snapshot().version
    both.members[0].data("cpu", writer="w").delete_where({"host": "a"})
    assert [row[1] for row in shown(both.data("cpu").scan(columns=["host", "v"]))] == [11]
    assert len(shown(both.data("cpu").scan(version=before))) == 2
    assert not hasattr(both.data("cpu"), "append")
    with pytest.raises(InvalidOption, match=r"members\[0\]\.data\('cpu'\)\.append"):
        both.data("cpu").append([{"host": "b"}])


def test_a_catalog_that_is_not_there_or_lacks_the_database_is_named(places: list[str], tmp_path: Path) -> None:
    missing: Any = Catalog([*places, str(tmp_path / "none")])
    with pytest.raises(CatalogNotFound, match="none"):
        missing.snapshot(database="default")
    put(Catalog(places[0]), "objects", obj("x"), database="photos")
    both: Any = Catalog(places)
    with pytest.raises(DatabaseNotFound, match="several databases"):
        both.snapshot()
    with pytest.raises(DatabaseNotFound, match="south"):
        both.snapshot(database="photos")


def test_what_is_pruned_in_one_is_told_with_its_url(both: Federation) -> None:
    then = both.snapshot().version
    north = both.members[0]
    for _ in range(2):
        put(north, "objects", obj("more"))
        north.prune("0s", grace="0s", dry_run=False, force=True, writer="maintainer-1")
    with pytest.raises(HistoryPruned, match=north.url):
        both.snapshot(version=then)
    assert len(shown(both.snapshot().scan("objects"))) == 7


@pytest.mark.parametrize("name", ["writer", "prune", "collect", "tag", "info", "restore"])
def test_what_writes_or_maintains_is_done_to_one(both: Federation, name: str) -> None:
    with pytest.raises(InvalidOption, match="by itself") as told:
        getattr(both, name)
    assert told.value.next_step == f"Use one of them: members[0].{name}."
    assert not hasattr(both, "nothing_such")


def test_each_has_its_options_and_is_given_once(places: list[str]) -> None:
    for given, options in [
        ([], None),
        (places, [{}]),
        ([places[0], places[0]], None),
        ([places[0], f"file://{places[0]}"], None),
    ]:
        with pytest.raises(InvalidOption):
            Catalog(given, storage_options=options)
    with pytest.raises(InvalidOption, match="nonsense"):
        Catalog(places, storage_options=[None, {"nonsense": 1}])


def test_it_can_be_pickled_and_shown(both: Federation) -> None:
    again = pickle.loads(pickle.dumps(both))
    assert repr(again) == repr(both) == f"Catalog({urls(both)!r})"
    assert pickle.loads(pickle.dumps(both.members[0])).url == both.members[0].url
    assert urls(both)[1] in both.snapshot()._repr_html_() and urls(both)[0] in repr(both.snapshot())
    assert urls(both)[0] in both.snapshot().scan("objects").explain()


class OneUrl(LocalStore):
    """A store whose url is that of another one too, as those of two endpoints are."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.url = "s3://lake/inv"


def declared(place: str, table: str, *rows: dict[str, Any], **columns: pa.DataType) -> None:
    """A table of a catalog with the key ``id`` and these columns, and rows of it."""
    catalog = Catalog(place)
    catalog.create_table(table, pa.schema([("id", pa.string()), *columns.items()]), key=["id"])
    put(catalog, table, *rows)


def test_a_data_table_of_one_alone_is_read_with_its_options_and_one_of_none_is_unknown(both: Federation) -> None:
    both.members[1].data("cpu", writer="w").append(pa.table({"host": ["a"], "v": [1]}))
    for options in ({}, {"on_schema_conflict": "error"}):
        assert shown(both.data("cpu").scan(columns=["host", "_catalog"], **options)) == [("a", urls(both)[1])]
        with pytest.raises(UnknownTable):
            both.data("none").scan(**options)
    with pytest.raises(UnknownTable):
        both.members[0].snapshot().scan("data.cpu", on_schema_conflict="error")
    with pytest.raises(InvalidOption, match="takes no option 'on_schema_conflict'"):
        both.snapshot().scan("objects", on_schema_conflict="error")


def test_catalogs_with_names_are_told_apart_by_them_whatever_their_urls(places: list[str]) -> None:
    stores = {"south": OneUrl(Path(places[1])), "north": OneUrl(Path(places[0]))}
    both: Any = Catalog(stores)
    assert both.names == ("south", "north") and [member.store for member in both.members] == [*stores.values()]
    snapshot = both.snapshot()
    assert list(snapshot.members) == ["south", "north"] and json.loads(snapshot.version).keys() == {"north", "south"}
    assert shown(both.snapshot(version=snapshot.version).scan("objects", columns=["_catalog"], where={"name": "s/1"})) == [
        ("south",)
    ]
    assert len(shown(snapshot.scan("objects", where={"_catalog": "north"}))) == 3
    assert repr(both) == "Catalog({'south': 's3://lake/inv', 'north': 's3://lake/inv'})"
    with pytest.raises(InvalidOption, match="in south and in north") as told:
        snapshot.get("objects", **obj("both"))
    assert told.value.next_step == "Ask one of them: members['south'].get(...)."
    assert snapshot.members["south"].get("objects", **obj("both"))["content_length"] == 10
    with pytest.raises(InvalidOption, match="Two of the catalogs are at s3://lake/inv") as told:
        Catalog([*stores.values()])
    assert "Give them names" in told.value.next_step


@pytest.mark.parametrize("by_name", [True, False])
def test_stores_of_one_url_have_each_its_options(by_name: bool) -> None:
    urls, ends = ["s3://lake/inv"] * 2, [{"endpoint_url": f"http://{name}.example"} for name in ("north", "south")]
    names = dict(zip(("north", "south"), urls, strict=True))
    both: Any = Catalog(names, storage_options=dict(zip(reversed(names), reversed(ends), strict=True)) if by_name else ends)
    assert [member.store.server for member in both.members] == ["north.example", "south.example"]
    with pytest.raises(InvalidOption, match="Give them names"):
        Catalog(urls, storage_options=ends)
    for given in (names, urls):
        with pytest.raises(InvalidOption, match="given twice"):
            Catalog(given, storage_options=ends[0])


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        ([["a"], "b"], None, "is not one catalog"),
        ([{"a": "b"}, "b"], None, "is not one catalog"),
        ({}, None, "No catalog is named"),
        ({"": "a", "b": "c"}, None, "No catalog can be called ''"),
        ({5: "a", "b": "c"}, None, "No catalog can be called 5"),
        (["a", "b"], 5, "several catalogs cannot be a int"),
        (["a", "b"], "secret", "several catalogs cannot be a str"),
        (["a", "b"], [5, {}], "a catalog cannot be a int"),
        (["a", "b"], [{}], "cannot have the storage options of 1"),
        ({"a": "a", "b": "b"}, {"a": {}}, "options of a are given, and the catalogs are a, b"),
        ({"a": "a", "b": "b"}, {"a": {}, "b": {}, "c": None}, "options of a, b, c are given"),
        ("a", [{}], "a catalog cannot be a list"),
        ("a", 5, "a catalog cannot be a int"),
    ],
)
def test_places_and_options_that_do_not_go_together_are_refused_and_not_shown(given: Any, options: Any, message: str) -> None:
    with pytest.raises(InvalidOption, match=message) as told:
        Catalog(given, storage_options=options)
    assert told.value.next_step and "secret" not in str(told.value)


def test_columns_that_nobody_asks_for_need_not_go_together(places: list[str]) -> None:
    declared(places[0], "app.rows", {"id": "a", "n": 1}, n=pa.int32())
    declared(places[1], "app.rows", {"id": "b", "n": "x"}, n=pa.string())
    snapshot = Catalog(places).snapshot()
    assert sorted(shown(snapshot.scan("app.rows", columns=["id"]))) == [("a",), ("b",)]
    with pytest.raises(IncompatibleTable):
        snapshot.scan("app.rows", columns=["n"])


@pytest.mark.parametrize(
    ("condition", "found"),
    [(5, ["b"]), ([5, None], ["a", "b", "c"]), (None, ["a", "c"]), (between(1, 9), ["b"]), (between(), ["b"]), ([], [])],
)
def test_a_condition_on_a_column_that_one_lacks_takes_it_for_null_there(
    places: list[str], condition: Any, found: list[str]
) -> None:
    declared(places[0], "app.rows", {"id": "a"}, other=pa.string())
    declared(places[1], "app.rows", {"id": "b", "n": 5}, {"id": "c"}, n=pa.int64())
    snapshot = Catalog(places).snapshot()
    assert sorted(row[0] for row in shown(snapshot.scan("app.rows", columns=["id"], where={"n": condition}))) == found
    assert shown(snapshot.scan("app.rows", columns=["id", "n"], where={"n": 5, "id": prefix("b")})) == [("b", 5)]


def test_a_condition_on_a_column_that_none_has_is_refused(both: Federation, places: list[str]) -> None:
    declared(places[0], "app.rows", {"id": "a"}, other=pa.string())
    declared(places[1], "app.rows", {"id": "b"}, n=pa.int64())
    snapshot = both.snapshot()
    with pytest.raises(InvalidOption, match="no column 'none' to filter by in any") as told:
        snapshot.scan("app.rows", where={"none": None})
    assert "other" in told.value.next_step and "n" in told.value.next_step
    with pytest.raises(InvalidOption, match="does not fit"):
        snapshot.scan("app.rows", where={"n": "text"})
    assert "no column n" in snapshot.scan("app.rows", where={"n": 1}).explain()
    for number, member in enumerate(both.members):
        member.data("cpu", writer="w").append(pa.table({"host": ["a"], f"v{number}": [1]}))
    assert shown(both.data("cpu").scan(columns=["v1", "_catalog"], where={"v1": 1})) == [(1, urls(both)[1])]


@pytest.mark.parametrize("version", [5, b"x", ["w@1"], "[" * 200_000])
def test_what_is_no_version_of_all_is_refused_in_few_words(both: Federation, version: Any) -> None:
    reads: list[Callable[[], object]] = [
        lambda: both.snapshot(version=version),
        lambda: both.snapshot(version=both.members[0].snapshot().cut),  # type: ignore[arg-type]
        lambda: both.changes(start=version),
        lambda: both.data("cpu").scan(version=version),
    ]
    for read in reads:
        with pytest.raises(InvalidVersion, match="does not name a version of each") as told:
            read()
        assert len(str(told.value)) < 1000 and told.value.next_step


def test_mistaken_arguments_are_typed_errors(both: Federation) -> None:
    given: Any = both
    for read in (
        lambda: given.snapshot().scan("objects", where=["a"]),
        lambda: given.snapshot().scan("objects", where=5),
        lambda: given.snapshot().scan("objects", columns=[]),
        lambda: given.snapshot().scan(["objects"]),
        lambda: given.snapshot().list(["objects"]),
        lambda: given.snapshot().scan("objects", nonsense=1),
        lambda: given.changes(nonsense=1),
        lambda: given.changes(where=["a"]),
        lambda: given.diff(nonsense=1),
        lambda: given.diff(where={"none": 1}),
    ):
        with pytest.raises(InvalidOption) as told:
            read()
        assert told.value.next_step


def test_a_value_that_a_widened_type_does_not_hold_is_told_with_its_column_and_catalog(both: Federation) -> None:
    for member, unit, year in zip(both.members, ("ns", "s"), (2020, 9000), strict=True):
        rows = pa.table(
            {"time": pa.array([datetime(year, 1, 1, tzinfo=UTC)], pa.timestamp("s", "UTC")).cast(pa.timestamp(unit, "UTC"))}
        )
        member.data("cpu", writer="w").append(rows)
    with pytest.raises(IncompatibleTable, match=f"'time' has values in {urls(both)[1]} that timestamp.ns") as told:
        both.data("cpu").scan().to_arrow()
    assert told.value.next_step and "That is so in" not in told.value.message


def test_a_column_that_is_called_as_what_tells_catalogs_apart_is_refused(both: Federation) -> None:
    for member in both.members:
        member.data("cpu", writer="w").append(pa.table({"_catalog": ["mine"], "v": [1]}))
    for asked in ({}, {"columns": ["_catalog"]}, {"columns": ["v"]}, {"where": {"_catalog": urls(both)[0]}}):
        with pytest.raises(IncompatibleTable, match="has a column '_catalog' of its own") as told:
            both.data("cpu").scan(**asked)
        assert "one by one" in told.value.next_step
    assert both.members[0].data("cpu").scan().to_arrow()["_catalog"].to_pylist() == ["mine"]


@pytest.mark.parametrize("columns", [["name", "name"], ["_catalog", "_catalog"]])
def test_a_column_that_is_asked_for_twice_is_refused(both: Federation, columns: list[str]) -> None:
    with pytest.raises(InvalidOption, match="is asked for twice"):
        both.snapshot().scan("objects", columns=columns)


def test_changes_and_differences_are_of_those_that_have_the_table(both: Federation) -> None:
    before = both.snapshot().version
    put(both.members[1], "buckets", {"owner": OTHER, "name": "b"})
    for read in (both.changes, both.diff):
        assert [row["name"] for row in read(table="buckets", start=before).to_arrow().to_pylist()] == ["b"]
        with pytest.raises(UnknownTable):
            read(table="none.such")
        assert len(read(where={"_catalog": urls(both)[0]}).to_arrow()) == 3
        with pytest.raises(InvalidOption, match="only tables of rows have changes"):
            read(table="log")


def test_what_one_alone_can_do_is_no_attribute_of_several(both: Federation) -> None:
    for name in ("url", "writer", "nothing_such"):
        assert not hasattr(both, name) and getattr(both, name, None) is None
    with pytest.raises(InvalidOption) as told:
        _ = both.url
    assert isinstance(pickle.loads(pickle.dumps(told.value)), AttributeError)


def test_so_many_catalogs_are_asked_at_once_and_no_more() -> None:
    running, most, lock = set[str](), 0, threading.Lock()

    def ask(name: str, _: int) -> str:
        nonlocal most
        with lock:
            running.add(name)
            most = max(most, len(running))
        threading.Event().wait(0.01)
        with lock:
            running.discard(name)
        return name

    names = [str(number) for number in range(100)]
    assert of_each(dict.fromkeys(names, 0), ask) == dict(zip(names, names, strict=True)) and 1 < most <= 16
