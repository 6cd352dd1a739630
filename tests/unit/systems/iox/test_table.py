"""``cat.data(NAME)``: rows appended, removed, deleted and read, by several writers and at other times."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bucketcatalog import Catalog, CatalogWarning, NotFound, between, prefix
from bucketcatalog.errors import CatalogNotFound, InvalidOption, InvalidRows, UnknownTable
from bucketcatalog.store.memory import MemoryStore
from bucketcatalog.systems.iox.errors import KeyConflict

from ....kit.data_tables import TABLE, Lake, of
from ....kit.world import obj

MOMENT = datetime.datetime(1969, 12, 31, 23, 59, 58, 500_000, tzinfo=datetime.UTC)
DELETED: list[tuple[pa.DataType, Any, Any, Any]] = [
    (pa.int8(), 1, 2, 1),
    (pa.int64(), 1, 2, np.int64(1)),
    (pa.int64(), 1, 2, 1.0),
    (pa.uint64(), (1 << 64) - 1, 2, (1 << 64) - 1),
    (pa.float16(), 0.5, 2, 0.5),
    (pa.float32(), 0.1, 2, 0.1),
    (pa.float64(), 0.1, 2, np.float64(0.1)),
    (pa.float64(), float("nan"), 2, float("nan")),
    (pa.float64(), float("-inf"), 2, float("-inf")),
    (pa.decimal128(10, 2), Decimal("1.50"), Decimal(2), Decimal("1.5")),
    (pa.decimal256(60, 2), Decimal("1.50"), Decimal(2), Decimal("1.5")),
    (pa.bool_(), True, False, True),
    (pa.string(), "é\x00", "b", "é\x00"),
    (pa.string(), "a", "b", b"a"),
    (pa.binary(), b"\xff", b"b", b"\xff"),
    (pa.binary(), b"a", b"b", "a"),
    (pa.binary(2), b"ab", b"cd", b"ab"),
    (pa.date32(), MOMENT.date(), datetime.date(1, 1, 1), MOMENT.date()),
    (pa.date64(), MOMENT.date(), datetime.date(1, 1, 1), "1969-12-31"),
    (pa.timestamp("s"), MOMENT.replace(tzinfo=None, microsecond=0), None, "1969-12-31T23:59:58Z"),
    (pa.timestamp("us", "UTC"), MOMENT, datetime.datetime.max.replace(tzinfo=datetime.UTC), MOMENT),
    (pa.timestamp("us", "Europe/Amsterdam"), MOMENT, None, MOMENT),
    (pa.timestamp("ns"), MOMENT.replace(tzinfo=None), None, MOMENT),
    (pa.time32("ms"), datetime.time(1, 2, 3), None, datetime.time(1, 2, 3)),
    (pa.time64("ns"), datetime.time(1, 2, 3, 4), None, datetime.time(1, 2, 3, 4)),
    (pa.duration("us"), datetime.timedelta(microseconds=-5), datetime.timedelta(5), datetime.timedelta(microseconds=-5)),
]


@pytest.fixture
def lake() -> Lake:
    return Lake()


def test_rows_of_several_writers_are_one_table(lake: Lake) -> None:
    lake.append(1, by="a")
    lake.append(2, by="b", partition="p")
    assert lake.values() == [1, 2]
    assert {row["path"].partition("/")[0] for row in lake.files()} == {"a", "b"}
    assert lake.values(where={"_partition": "p"}) == [2]
    (path,) = [row["path"] for row in lake.files() if row["partition"] == "p"]
    assert lake.values(where={"_path": path}) == [2]


def test_what_is_shown_on_request_says_where_a_row_was_added(lake: Lake) -> None:
    chunks = [lake.append(1, clock=5), lake.append(2, clock=3)]
    before = lake.rows(columns=["v", "_chunk"])
    assert before == [{"v": 1, "_chunk": chunks[0]}, {"v": 2, "_chunk": chunks[1]}]
    lake.compact()
    assert sorted(row["_chunk"] for row in lake.rows(columns=["v", "_chunk"])) == chunks


def test_nothing_is_there_before_the_first_file(lake: Lake) -> None:
    with pytest.raises(CatalogNotFound):
        lake.scan()
    lake.catalog().data("other", writer="w").append([{"v": 1}])
    for call in (lake.scan, lambda: lake.table().remove(["x"]), lambda: lake.table().delete_where({"v": 1}), lake.plan):
        with pytest.raises(UnknownTable, match="no data table 't'"):
            call()
    assert lake.files() == []


def test_a_replayed_append_adds_its_rows_once(lake: Lake) -> None:
    first = lake.table().append([{"v": 1}], app_id="job", app_version=1)
    again = lake.table("w").append([{"v": 1}], app_id="job", app_version=1)
    assert first == again
    assert lake.values() == [1]
    assert lake.table().append([{"v": 2}], app_id="job", app_version=2) != first
    assert lake.table().append([{"v": 1}], app_id="job", app_version=1) is None
    assert lake.values() == [1, 2]


def test_columns_of_an_append_that_was_not_committed_are_said_by_the_next(lake: Lake) -> None:
    lake.table().append([{"v": 1}], app_id="job", app_version=1)
    lake.table().append([{"x": 2}], app_id="job", app_version=1)
    lake.table().append([{"x": 3}])
    assert lake.rows() == [{"v": 1, "x": None}, {"v": None, "x": 3}]


def test_one_writer_holds_the_table_while_it_is_open(lake: Lake) -> None:
    with lake.catalog().data(TABLE, writer="w") as table:
        versions = [table.append([{"v": value}]).revision for value in range(3)]
    assert versions == [versions[0], versions[0] + 1, versions[0] + 2]
    assert lake.values() == [0, 1, 2]
    assert repr(table) == f"DataTable('t', {lake.catalog().url!r})"


def test_removed_files_count_no_more_whether_named_by_chunk_or_path(lake: Lake) -> None:
    lake.append(1)
    lake.append(2)
    lake.append(3)
    one, other, _ = lake.files()
    assert lake.table("x").remove([one["chunk"]]) is not None
    assert lake.table("x").remove([other["path"]]) is not None
    assert len(lake.values()) == 1
    with pytest.raises(NotFound, match=one["chunk"]):
        lake.table("x").remove([one["chunk"]])
    assert lake.table("x").remove(partition="elsewhere") is None


def test_a_removal_says_either_files_or_a_partition(lake: Lake) -> None:
    lake.append(1)
    for options in ({}, {"files": ["x"], "partition": "p"}):
        with pytest.raises(InvalidOption, match="Either files are removed, or a partition"):
            lake.table().remove(**options)
    with pytest.raises(InvalidOption):
        lake.table().remove(7)
    with pytest.raises(NotFound, match="no file 'one chunk'"):
        lake.table().remove("one chunk")


def test_a_removed_partition_can_be_filled_again(lake: Lake) -> None:
    lake.append(1, partition="p")
    lake.append(2, partition="q")
    lake.table().remove(partition="p")
    lake.append(3, partition="p")
    assert lake.values() == [2, 3]


@pytest.mark.parametrize(("kind", "one", "other", "value"), DELETED, ids=lambda each: str(each)[:20])
def test_a_value_of_any_type_is_deleted_by_it_and_stays_deleted(
    lake: Lake, kind: pa.DataType, one: Any, other: Any, value: Any
) -> None:
    lake.append_table(of([one, other, None], kind))
    kept = of([other, None], kind)["v"].to_pylist()
    assert lake.table().delete_where([("v", "=", value)]) is not None
    assert lake.scan().to_arrow()["v"].to_pylist() == kept
    lake.compact(least=1)
    assert lake.scan().to_arrow()["v"].to_pylist() == kept


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ([("v", "!=", 2)], [2, None]),
        ([("v", "<", 2)], [2, 3, None]),
        ([("v", "<=", 2)], [3, None]),
        ([("v", ">", 2)], [1, 2, None]),
        ([("v", ">=", 2)], [1, None]),
        ([("v", "in", [1, 3])], [2, None]),
        ([("v", "in", [1, None])], [2, 3]),
        ([("v", "not in", [1, 3])], [1, 3, None]),
        ([("v", "is null", None)], [1, 2, 3]),
        ([("v", "is not null", None)], [None]),
        ([("v", ">", 1), ("v", "<", 3)], [1, 3, None]),
        ({"v": between(2, None)}, [1, None]),
        ({"v": [1, 2]}, [3, None]),
        ({"v": None}, [1, 2, 3]),
        ({"v": 1, "w": "a"}, [2, 3, None]),
        ({"w": prefix("a")}, []),
        ([("v", "<", 1.5)], [2, 3, None]),
        ([("v", ">", 2.5)], [1, 2, None]),
        ([("v", ">=", 2.5)], [1, 2, None]),
        ([("v", "!=", 2.5)], [None]),
        ([("v", "not in", [2.5, 1])], [1, None]),
    ],
)
def test_every_condition_deletes_what_meets_it(lake: Lake, where: Any, kept: list[Any]) -> None:
    lake.append_table(pa.table({"v": pa.array([1, 2, 3, None], pa.int32()), "w": ["a"] * 4}))
    assert lake.table().delete_where(where) is not None
    assert lake.values() == kept
    lake.compact(least=1)
    assert (lake.values() if kept else lake.rows()) == kept


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (pa.timestamp("s"), datetime.datetime(1970, 1, 1, 0, 0, 1, 5, tzinfo=datetime.UTC), [0, 1]),
        (pa.timestamp("ms"), datetime.datetime(1970, 1, 1, 0, 0, 0, 1_500, tzinfo=datetime.UTC), [0, 1]),
        (pa.time32("s"), datetime.time(0, 0, 1, 5), [0, 1]),
        (pa.duration("s"), datetime.timedelta(milliseconds=1_500), [0, 1]),
        (pa.duration("s"), datetime.timedelta(milliseconds=-500), []),
        (pa.date32(), datetime.datetime(1970, 1, 2, 5, tzinfo=datetime.UTC), [0, 1]),
        (pa.int8(), 1.5, [0, 1]),
        (pa.int8(), -0.5, []),
    ],
)
def test_a_value_between_two_of_a_column_s_type_is_not_rounded(
    lake: Lake, kind: pa.DataType, value: Any, expected: list[int]
) -> None:
    lake.append_table(of([0, 1, 2], kind))
    rest = [number for number in range(3) if number not in expected]
    shown = of([0, 1, 2], kind)["v"].to_pylist()

    def found(condition: Any) -> list[int]:
        return [shown.index(each) for each in lake.scan(where={"v": condition}).to_arrow()["v"].to_pylist()]

    assert found(between(None, value)) == found(between(None, value, inclusive="neither")) == expected
    assert found(between(value, None)) == found(between(value, None, inclusive="neither")) == rest
    assert found(value) == found([value]) == []
    lake.table().delete_where([("v", "=", value)])
    assert len(lake.rows()) == 3
    lake.table().delete_where([("v", "<", value)])
    assert [shown.index(each) for each in lake.scan().to_arrow()["v"].to_pylist()] == rest


def test_a_deletion_touches_only_files_that_were_there_and_may_have_such_rows(lake: Lake) -> None:
    lake.append(1)
    lake.append(5)
    lake.table().delete_where([("v", "<", 3)])
    lake.append(2)
    assert lake.values() == [2, 5]
    (predicate,) = lake.predicates()
    assert len(predicate["chunks"]) == 1
    assert lake.table().delete_where([("v", "=", 9)]) is None
    assert len(lake.predicates()) == 1


def test_a_deletion_stays_what_it_was_when_the_column_s_type_becomes_another(lake: Lake) -> None:
    lake.append_table(of([0.1, 2.0], pa.float32()))
    lake.table().delete_where([("v", "=", 0.1)])
    lake.append_table(of([0.1], pa.float64()))
    assert lake.values() == [0.1, 2]
    wider = lake.append_table(of([1.5, 9.5], pa.float64()), partition="p")
    lake.append_table(of([1, 2], pa.int16()), partition="q")
    lake.table().delete_where([("v", "<", 1.7)])
    lake.table().remove([chunk for chunk in lake.chunks() if chunk == wider])
    lake.table().remove(partition="default")
    assert lake.values() == [2]


def test_a_deletion_by_large_numbers_stays_when_the_column_s_type_becomes_narrower(lake: Lake) -> None:
    lake.append_table(of([1, 2], pa.int8()))
    wide = lake.append_table(of([1 << 40], pa.int64()))
    lake.table().delete_where([("v", "<", 1 << 30)])
    lake.table().remove([wide])
    assert lake.values() == []


def test_a_deletion_by_moments_stays_when_their_unit_becomes_another(lake: Lake) -> None:
    lake.append_table(of([0, 10], pa.timestamp("s")))
    fine = lake.append_table(of([5_500_000], pa.timestamp("us")))
    lake.table().delete_where([("v", "<", "1970-01-01T00:00:05.000001Z")])
    lake.table().remove([fine])
    assert lake.scan().to_arrow()["v"].cast(pa.int64()).to_pylist() == [10]
    lake.append_table(of([1], pa.timestamp("ns")))
    assert len(lake.rows()) == 2


@pytest.mark.parametrize(
    "where",
    [
        [],
        {},
        [("w", "=", 1)],
        [("v", "like", 1)],
        [("v", "=", "x")],
        [("v", "=", None)],
        [("v", "in", 1)],
        [("v", "starts with", "a")],
        [("_partition", "=", "p")],
        [("v", "=")],
        "v = 1",
        {"v": 1 << 40},
    ],
)
def test_conditions_that_do_not_fit_are_refused_and_nothing_is_deleted(lake: Lake, where: Any) -> None:
    lake.append_table(of([1], pa.int8()))
    with pytest.raises(InvalidOption):
        lake.table().delete_where(where)
    assert lake.predicates() == []
    assert [*lake.store.list("w/default/data/.deleted/")] == []


def test_a_read_at_an_old_version_or_time_is_what_it_was(lake: Lake) -> None:
    kept = []
    for change in (
        lambda: lake.append(1, 2),
        lambda: lake.table().delete_where({"v": 1}),
        lambda: lake.append(3),
        lake.compact,
        lambda: lake.table().remove(partition="default"),
    ):
        change()
        now = lake.look()
        kept.append((now.version, lake.values() if len(kept) < 4 else []))
    assert [values for _, values in kept] == [[1, 2], [2], [2, 3], [2, 3], []]
    for version, values in kept:
        assert lake.values(version=version) == values
    assert len(lake.table().files(version=kept[2][0])) == 2
    assert len(lake.table().files()) == 0


@pytest.mark.parametrize("compacted", [False, True])
def test_of_equal_keys_the_newest_clock_counts_then_the_last_file_then_the_last_row(lake: Lake, compacted: bool) -> None:
    lake.append(
        {"k": 1, "v": "old"}, {"k": 2, "v": "x"}, {"k": 2, "v": "last row"}, {"k": None, "v": "first"}, key=["k"], clock=5
    )
    lake.append({"k": 1, "v": "newest"}, {"k": 3, "v": "a"}, clock=9)
    lake.append({"k": 1, "v": "older"}, {"k": 3, "v": "b"}, {"k": None, "v": "null"}, clock=7)
    lake.append({"k": 3, "v": "last file"}, clock=9)
    lake.append({"k": 1, "v": "other partition"}, partition="p")
    if compacted:
        lake.compact()
    found = {(row["_partition"], row["k"]): row["v"] for row in lake.rows(columns=["_partition", "k", "v"])}
    assert found == {
        ("default", 1): "newest",
        ("default", 2): "last row",
        ("default", 3): "last file",
        ("default", None): "null",
        ("p", 1): "other partition",
    }
    assert len(lake.rows()) == len(found)


def test_conditions_never_show_a_row_that_a_newer_one_has_replaced(lake: Lake) -> None:
    lake.append({"k": 1, "v": 1}, key=["k"])
    (old,) = lake.files()
    lake.append({"k": 1, "v": 2})
    for where in ({"v": 1}, {"_path": old["path"]}, {"_chunk": old["chunk"]}, {"_clock": old["first_clock"]}):
        assert lake.rows(where=where) == []
    assert lake.rows(where={"k": 1}) == [{"k": 1, "v": 2}]


def test_of_a_table_with_a_key_rows_are_deleted_by_its_columns(lake: Lake) -> None:
    lake.append({"k": 1, "v": 1}, {"k": 2, "v": 1}, key=["k"])
    lake.append({"k": 1, "v": 2})
    with pytest.raises(InvalidOption, match="'v' is none of these"):
        lake.table().delete_where({"v": 2})
    lake.table().delete_where({"k": 1})
    assert lake.values() == [1]


def test_a_table_of_which_everything_was_removed_takes_rows_with_a_key_again(lake: Lake) -> None:
    lake.append({"k": 1, "v": 1}, key=["k"])
    lake.table().remove(partition="default")
    lake.append({"k": 1, "v": 2}, key=["k"], by="other")
    lake.append({"k": 1, "v": 3}, by="third")
    assert lake.values() == [3]


def test_a_key_is_the_table_s_as_long_as_it_has_files(lake: Lake) -> None:
    lake.append({"k": 1, "v": 1}, key=["k"])
    for key in ([], ["v"], ["k", "v"]):
        with pytest.raises(InvalidOption, match="The key of data table 't' is k"):
            lake.table("other").append([{"k": 1, "v": 1}], key=key)
    with pytest.raises(InvalidRows, match="lack the column 'k'"):
        lake.table().append([{"v": 1}])
    lake.append({"k": 2, "v": 2}, key=["k"], by="other")
    assert {tuple(row["key_columns"]) for row in lake.files()} == {("k",)}


def test_two_writers_that_give_different_keys_at_once_are_told_of_both_files(lake: Lake) -> None:
    one, other = lake.table("a"), lake.table("b")
    lake.append({"k": 1, "v": 1}, by="c", partition="gone")
    lake.table("c").remove(partition="gone")
    for table, key in ((one, ["k"]), (other, ["v"])):
        table._key = tuple(key)  # each had looked before the other committed
        table.append([{"k": 1, "v": 1}], key=key)
    with pytest.raises(KeyConflict) as caught:
        lake.rows()
    assert all(row["path"] in caught.value.message for row in lake.files())
    lake.table().remove([lake.chunks()[0]])
    assert len(lake.rows()) == 1


@pytest.mark.parametrize(("kind", "one", "other"), [(kind, one, other) for kind, one, other, _ in DELETED], ids=str)
def test_rows_are_told_apart_by_any_type_that_has_an_order(lake: Lake, kind: pa.DataType, one: Any, other: Any) -> None:
    keys = [one, other, None, one]
    for number in (0, 4):
        lake.append_table(of(keys, kind, "k").append_column("v", pa.array(range(number, number + 4))), key=["k"])
    assert lake.values() == ([5, 6, 7] if other is not None else [6, 7])
    lake.compact()
    assert lake.values() == ([5, 6, 7] if other is not None else [6, 7])
    assert lake.values(where={"k": None}) == [6]


@pytest.mark.parametrize("kind", [pa.list_(pa.int8()), pa.struct([("a", pa.int8())]), pa.map_(pa.int8(), pa.int8())])
def test_columns_without_an_order_are_no_key(lake: Lake, kind: pa.DataType) -> None:
    with pytest.raises(InvalidRows, match="'k'"):
        lake.table().append(pa.table({"k": pa.nulls(2, kind)}), key=["k"])
    assert lake.files() == []


@pytest.mark.parametrize("clock", [-1, 1 << 63, 1.5, "1", True])
def test_what_is_no_clock_is_refused(lake: Lake, clock: Any) -> None:
    with pytest.raises(InvalidOption, match="no logical clock"):
        lake.table().append([{"v": 1}], clock=clock)


def test_what_compaction_moves_stays_as_old_as_it_is_for_who_leaves_out_what_differs(lake: Lake) -> None:
    for value in (1, 2, 3):
        lake.append(value)
    lake.table("w").append([{"v": "three"}])
    assert lake.values(on_schema_conflict="skip") == [1, 2, 3]
    lake.table("w").compact(writer="compactor-1")
    assert lake.values(on_schema_conflict="skip") == [1, 2, 3]


def test_an_application_numbers_its_appends_to_each_table(lake: Lake) -> None:
    catalog = lake.catalog()
    numbered = {"app_id": "nightly", "app_version": 7}
    for _ in range(2):
        for name in ("orders", "refunds"):
            catalog.data(name, writer="etl").append([{"id": name}], **numbered)
    for name in ("orders", "refunds"):
        assert catalog.data(name).scan().to_arrow()["id"].to_pylist() == [name]


def test_frames_are_appended_as_the_arrow_data_that_they_are(lake: Lake) -> None:
    import pandas as pd
    import polars as pl

    lake.table("w").append(pd.DataFrame({"v": [1, 2]}, index=[7, 8]).reset_index(drop=True))
    lake.table("w").append(pl.DataFrame({"v": [3]}))
    assert lake.values() == [1, 2, 3]
    with pytest.raises(InvalidRows, match="DataFrame is no Arrow data"):
        lake.table("w").append(pd.DataFrame({"v": [1, "a"]}))


@pytest.mark.parametrize("values", [[20260301, None], [None, None]])
def test_partitions_are_text_whatever_their_column_holds(lake: Lake, values: list[Any]) -> None:
    lake.table("w").append([{"_partition": value, "v": 1} for value in values])
    assert {row["partition"] for row in lake.files()} == {"default", *(str(value) for value in values if value is not None)}


def test_a_scan_of_nothing_and_one_under_no_conditions_are_refused(lake: Lake) -> None:
    lake.append(1)
    with pytest.raises(InvalidOption, match="No column is asked for"):
        lake.table("w").scan(columns=[])
    with pytest.raises(InvalidOption, match="is not a condition"):
        lake.table("w").scan(where=[("v", ">", 1)])  # type: ignore[arg-type]


def test_a_compactor_that_has_the_table_open_compacts_it(lake: Lake) -> None:
    for value in (1, 2):
        lake.append(value)
    assert lake.catalog().data(TABLE, writer="compactor-7").compact().version == "compactor-7@0"


def test_who_takes_a_data_table_for_a_table_is_told_what_it_is(lake: Lake) -> None:
    lake.append(1)
    for name in (f"data.{TABLE}", "data.other"):
        with pytest.raises(UnknownTable, match="are data tables") as told:
            lake.catalog().restore(name, timestamp="@0", writer="maintainer-1", dry_run=False)
        assert "snapshot.scan('iox.parquet_files')" in told.value.next_step


def test_a_clone_tells_that_the_files_are_not_in_it_and_has_them_once_they_are_copied(lake: Lake) -> None:
    lake.append(1)
    target = MemoryStore()
    with pytest.warns(CatalogWarning, match=r"The data of iox\.parquet_files lies in"):
        lake.catalog().clone(target, writer="maintainer-1")
    for info in lake.store.list("w/default/data/"):
        target.put(info.name, lake.store.get(info.name))
    assert Catalog(target).data(TABLE).scan().to_arrow()["v"].to_pylist() == [1]
    other = MemoryStore()
    with Catalog(other).writer("w") as writer, writer.transaction() as tx:
        tx.put("objects", obj("a"))
    Catalog(other).clone(MemoryStore(), writer="maintainer-1")  # of which no warning is an error here
