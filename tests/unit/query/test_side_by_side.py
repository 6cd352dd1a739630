"""Several catalogs read as one: every row of each and whose it is, versions that name all, and one catalog's trouble told by its url."""

from __future__ import annotations

import json
import pickle
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
    prefix,
)
from bucketcatalog.federation import Federation
from bucketcatalog.query.side_by_side import SideBySide

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
    for wrong in ("elsewhere", [], prefix("n"), [south, "elsewhere"]):
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
