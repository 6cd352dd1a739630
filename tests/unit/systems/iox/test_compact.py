"""Compaction: which files become one, what is gone with it, and that it is one commit after which there is nothing left to do."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest

from bucketcatalog import Catalog
from bucketcatalog.errors import InvalidOption, UnknownTable
from bucketcatalog.registry import in_turn
from bucketcatalog.systems.iox.compact import Compacted

from ....kit.data_tables import TABLE, Lake, of


@pytest.fixture
def lake() -> Lake:
    return Lake()


def groups(lake: Lake, **options: Any) -> list[list[Any]]:
    """Which rows a compaction would put together, by the values of their files."""
    planned = lake.plan(**options)
    by_chunk = {row["chunk"]: tuple(lake.stored(row)["v"].to_pylist()) for row in lake.files()}
    return sorted(sorted(by_chunk[part.chunk] for part in task.parts) for task in planned.job.tasks)


def test_small_files_of_a_partition_become_one_in_one_commit(lake: Lake) -> None:
    for value in range(5):
        lake.append(value, partition="p" if value % 2 else "q")
    before = lake.look().view.cut
    done = lake.compact()
    assert (done.table, done.ended, done.made, done.rows, done.predicates_ended) == (TABLE, 5, 2, 5, 0)
    assert done.bytes == sum(row["size"] for row in lake.files())
    assert lake.values() == [0, 1, 2, 3, 4]
    assert lake.values(version=done.version) == [0, 1, 2, 3, 4]
    assert done.version == "compactor-z@0"
    assert before != lake.look().view.cut


def test_a_second_compaction_commits_nothing(lake: Lake) -> None:
    lake.append(1)
    lake.append(2)
    lake.compact()
    version = lake.look().version
    assert lake.compact() == Compacted(TABLE, 0, 0, 0, 0, 0, None)
    assert lake.look().version == version


def test_a_file_by_itself_is_left_alone(lake: Lake) -> None:
    lake.append(1)
    lake.append(2, partition="p")
    assert groups(lake) == []
    assert lake.compact().version is None


def test_a_file_by_itself_is_made_anew_where_rows_of_it_are_deleted(lake: Lake) -> None:
    lake.append(1, 2)
    lake.append(3, partition="p")
    lake.table().delete_where({"v": 1})
    assert groups(lake) == [[(1, 2)]]
    done = lake.compact()
    assert (done.ended, done.made, done.rows) == (1, 1, 1)
    (made,) = [row for row in lake.files() if row["partition"] == "default"]
    assert lake.stored(made)["v"].to_pylist() == [2]


def test_files_are_put_together_in_the_order_of_their_clocks_up_to_the_target(lake: Lake) -> None:
    for clock in (4, 1, 3, 2, 5):
        lake.append(clock, clock=clock)
    (size, *_) = sorted(row["size"] for row in lake.files())
    assert groups(lake, target_bytes=int(2.5 * size)) == [[(1,), (2,)], [(3,), (4,)]]
    assert groups(lake, target_bytes=int(3.5 * size)) == [[(1,), (2,), (3,)], [(4,), (5,)]]
    assert groups(lake, least=5) == [[(1,), (2,), (3,), (4,), (5,)]]
    assert groups(lake, least=6) == []


def test_files_that_are_large_enough_are_left_alone_unless_rows_of_them_are_deleted(lake: Lake) -> None:
    lake.append_table(of(range(5_000), pa.int64()), clock=1)
    lake.append(-1, clock=2)
    lake.append(-2, clock=3)
    large = max(row["size"] for row in lake.files())
    assert groups(lake, target_bytes=int(1.9 * large)) == [[(-2,), (-1,)]]
    lake.table().delete_where({"v": 7})
    planned = lake.plan(target_bytes=int(1.9 * large))
    assert sorted(len(task.parts) for task in planned.job.tasks) == [3]
    planned.finish()
    assert lake.values() == sorted({-1, -2, *range(5_000)} - {7})


def test_files_of_different_columns_are_never_mixed(lake: Lake) -> None:
    for number in range(2):
        lake.append_table(of([number], pa.int8()))
        lake.append_table(of([10 + number], pa.int64()))
        lake.append_table(pa.table({"v": pa.array([20 + number], pa.int8()), "x": ["a"]}))
    before = lake.rows()
    assert groups(lake) == [[(0,), (1,)], [(10,), (11,)], [(20,), (21,)]]
    lake.compact()
    assert sorted(map(str, lake.rows())) == sorted(map(str, before))
    assert [lake.stored(row).schema.field("v").type for row in lake.files() if row["rows"] == 2].count(pa.int8()) == 2
    assert {row["schema"] for row in lake.files()} == {*lake.live().by_schema}


def test_files_whose_columns_do_not_go_together_are_compacted_as_they_are(lake: Lake) -> None:
    for number in range(2):
        lake.append_table(of([number], pa.int8()))
        lake.append_table(of([f"{number}"], pa.string()))
    assert lake.compact().made == 2
    kinds = {str(lake.stored(row).schema.field("v").type): lake.stored(row)["v"].to_pylist() for row in lake.files()}
    assert kinds == {"int8": [0, 1], "string": ["0", "1"]}
    assert lake.values(on_schema_conflict="skip") == [0, 1]


def test_one_partition_is_compacted_where_one_is_named(lake: Lake) -> None:
    for partition in ("p", "q", "p", "q"):
        lake.append(partition, partition=partition)
    assert groups(lake, partition="p") == [[("p",), ("p",)]]
    assert groups(lake, partition="r") == []
    assert lake.compact(partition="p").ended == 2
    assert len(lake.files()) == 3


def test_deleted_rows_are_gone_from_the_files(lake: Lake) -> None:
    lake.append(1, 2)
    lake.append(2, 3)
    lake.table().delete_where({"v": 2})
    lake.compact()
    (row,) = lake.files()
    assert lake.stored(row)["v"].to_pylist() == [1, 3]
    assert (row["rows"], row["applied"]) == (2, [each["id"] for each in lake.predicates()])


def test_files_of_which_every_row_is_deleted_leave_none(lake: Lake) -> None:
    lake.append(1)
    lake.append(1)
    lake.append(2, partition="p")
    lake.table().delete_where({"v": 1})
    done = lake.compact()
    assert (done.ended, done.made, done.rows, done.bytes) == (2, 0, 0, 0)
    assert lake.values() == [2]
    assert all(each["conditions"] for each in lake.predicates())  # what was deleted says enough


def test_a_table_of_which_everything_was_removed_is_empty_and_takes_rows_again(lake: Lake) -> None:
    lake.append(1)
    lake.table().remove(partition="default")
    assert lake.compact().version is None
    assert lake.rows() == []
    lake.append(2)
    assert lake.values() == [2]


def test_of_a_table_with_a_key_only_the_newest_rows_are_left(lake: Lake) -> None:
    for clock, value in ((3, "c"), (9, "z"), (5, "e")):
        lake.append({"k": 1, "v": value}, {"k": clock, "v": value}, key=["k"], clock=clock)
    done = lake.compact()
    (row,) = lake.files()
    stored = lake.stored(row)
    assert sorted(stored.select(["k", "v", "_clock"]).to_pylist(), key=lambda each: each["k"]) == [
        {"k": 1, "v": "z", "_clock": 9},
        {"k": 3, "v": "c", "_clock": 3},
        {"k": 5, "v": "e", "_clock": 5},
        {"k": 9, "v": "z", "_clock": 9},
    ]
    assert (done.rows, row["first_clock"], row["last_clock"]) == (4, 3, 9)


def test_an_older_row_that_is_added_later_never_replaces_a_compacted_one(lake: Lake) -> None:
    lake.append({"k": 1, "v": 1}, key=["k"], clock=5)
    lake.append({"k": 1, "v": 2}, clock=9)
    lake.compact()
    lake.append({"k": 1, "v": 3}, clock=7)
    assert lake.values() == [2]
    lake.compact()
    assert lake.values() == [2]
    lake.append({"k": 1, "v": 4}, clock=9)
    assert lake.values() == [4]


def test_tasks_can_be_done_elsewhere_in_any_order_and_twice(lake: Lake) -> None:
    for value in range(4):
        lake.append(value, partition="p" if value % 2 else "q")
    planned = lake.plan()
    tasks = pickle.loads(pickle.dumps(planned.job.tasks))
    for task in tasks:
        task.run(lake.store)
    outcomes = pickle.loads(pickle.dumps([task.run(lake.store) for task in tasks]))
    assert planned.job.finish(outcomes).made == 2
    assert lake.values() == [0, 1, 2, 3]


def test_it_is_a_job_of_the_catalog(lake: Lake) -> None:
    lake.append(1)
    lake.append(2)
    done = lake.catalog().run_job("iox.compact", writer="compactor-x", table=TABLE, run=in_turn)
    assert (done.ended, done.made, done.version) == (2, 1, "compactor-x@0")
    for options in ({}, {"table": TABLE, "more": 1}):
        with pytest.raises(InvalidOption):
            lake.catalog().run_job("iox.compact", writer="compactor-x", **options)
    with pytest.raises(UnknownTable, match="no data table 'other'"):
        lake.catalog().run_job("iox.compact", writer="compactor-x", table="other")


@pytest.mark.parametrize("options", [{"target_bytes": 0}, {"target_bytes": -1}, {"least": 0}, {"target_bytes": "1"}])
def test_options_that_make_no_sense_are_refused(lake: Lake, options: dict[str, Any]) -> None:
    lake.append(1)
    with pytest.raises(InvalidOption):
        lake.catalog().run_job("iox.compact", writer="compactor-x", table=TABLE, **options)


def test_who_reads_an_older_version_reads_what_it_was_made_of(lake: Lake) -> None:
    lake.append(1)
    lake.append(2)
    before: Catalog = lake.catalog()
    old = before.snapshot()
    lake.compact()
    assert sorted(old.scan("data.t").to_arrow()["v"].to_pylist()) == [1, 2]
    assert len(old.scan("iox.parquet_files").to_arrow()) == 2
