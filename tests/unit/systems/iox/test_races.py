"""Compactions that end after others have changed what they were made of: whichever way it went, the rows are those of the model.

The model of each test is what stands in its assertion: a row counts once where it was added, unless its file was removed, or it met a
predicate when its file was there. What compaction has done, and in which order, is no part of it.
"""

from __future__ import annotations

from itertools import permutations

import pytest

from bucketcatalog import NotFound
from bucketcatalog.systems.iox.files import FILES

from ....kit.data_tables import Lake


@pytest.fixture
def lake() -> Lake:
    return Lake()


def is_at_rest(lake: Lake) -> bool:
    """Whether compaction has nothing more to do, after it was done once more."""
    lake.compact("rest")
    again = lake.compact("rest")
    return (again.ended, again.made, again.version) == (0, 0, None)


def restored(lake: Lake, chunk: str) -> None:
    """Put a file that was removed back, as a restore would, by itself."""
    table = (now := lake.look()).table(FILES)
    names = [column.name for column in table.columns]
    (was,) = now.scan(f"deleted_{FILES}", columns=[*names, "_version"], where={"chunk": chunk}).to_arrow().to_pylist()
    with lake.catalog().writer("restoring") as writer, writer.transaction() as tx:
        tx.put(FILES, [{name: was[name] for name in names}], data_of=[{name: was[name] for name in (*table.key, "_version")}])


def test_a_file_added_meanwhile_counts_beside_the_compacted_ones(lake: Lake) -> None:
    lake.append(1)
    lake.append(2)
    late = lake.plan()
    lake.append(3, by="x")
    late.finish()
    assert lake.values() == [1, 2, 3]
    assert len(lake.chunks()) == 2
    assert is_at_rest(lake)


def test_a_file_removed_meanwhile_does_not_come_back_in_what_was_made_of_it(lake: Lake) -> None:
    lake.append(1)
    gone = lake.append(2)
    late = lake.plan()
    lake.table("x").remove([gone])
    late.finish()
    assert lake.values() == [1]
    assert is_at_rest(lake)
    assert lake.values() == [1]


def test_every_file_removed_meanwhile_leaves_nothing(lake: Lake) -> None:
    lake.append(1)
    lake.append(2)
    late = lake.plan()
    lake.table("x").remove(partition="default")
    late.finish()
    assert lake.values() == []
    assert lake.scan().plan.total == 0
    assert is_at_rest(lake)
    assert lake.files() == []


def test_rows_deleted_meanwhile_do_not_come_back(lake: Lake) -> None:
    lake.append(1, 2)
    lake.append(2, 3)
    late = lake.plan()
    lake.table("x").delete_where([("v", "=", 2)])
    late.finish()
    assert lake.values() == [1, 3]
    assert is_at_rest(lake)
    assert lake.values() == [1, 3]


def test_rows_added_after_a_deletion_stay_whoever_puts_them_together(lake: Lake) -> None:
    lake.append(1, 2)
    lake.table("x").delete_where([("v", "=", 2)])
    lake.append(2, by="y")
    early = lake.plan()
    lake.table("x").delete_where([("v", "=", 1)])
    lake.append(1, by="y")
    early.finish()
    assert lake.values() == [1, 2]
    assert is_at_rest(lake)
    assert lake.values() == [1, 2]


def test_of_a_predicate_read_and_one_not_read_both_are_applied(lake: Lake) -> None:
    lake.append(1, 2, 3)
    lake.append(4)
    lake.table("x").delete_where([("v", "=", 1)])
    late = lake.plan()
    lake.table("x").delete_where([("v", "=", 3)])
    late.finish()
    assert lake.values() == [2, 4]
    (file,) = lake.files()
    assert len(file["applied"]) == 1
    assert is_at_rest(lake)


@pytest.mark.parametrize("first", ["a", "b"])
def test_two_compactions_of_the_same_files_count_once(lake: Lake, first: str) -> None:
    lake.append(1)
    lake.append(2)
    plans = {by: lake.plan(by) for by in ("a", "b")}
    plans.pop(first).finish()
    for plan in plans.values():
        plan.finish()
    assert len(lake.chunks()) == 2
    assert lake.values() == [1, 2]
    assert is_at_rest(lake)
    assert len(lake.chunks()) == 1


@pytest.mark.parametrize("order", [*permutations(range(3))])
def test_three_compactions_of_overlapping_files_count_once(lake: Lake, order: tuple[int, ...]) -> None:
    plans = []
    for value, by in enumerate("abc"):
        lake.append(value)
        lake.append(10 + value)
        plans.append(lake.plan(by))
    for at in order:
        plans[at].finish()
    assert lake.values() == [0, 1, 2, 10, 11, 12]
    assert is_at_rest(lake)
    assert lake.values() == [0, 1, 2, 10, 11, 12]


def test_a_removal_reaches_every_file_that_two_compactions_have_made(lake: Lake) -> None:
    gone = lake.append(1)
    lake.append(2)
    plans = [lake.plan("a"), lake.plan("b")]
    plans[0].finish()
    with pytest.raises(NotFound, match=gone):
        lake.table("x").remove([gone])
    assert lake.values() == [1, 2]
    lake.table("x").remove(lake.chunks())
    plans[1].finish()
    assert lake.values() == []
    assert is_at_rest(lake)


def test_a_compaction_of_what_another_has_made_races_a_third_of_the_first_files(lake: Lake) -> None:
    lake.append(1)
    lake.append(2)
    slow = lake.plan("slow")
    lake.compact("a")
    lake.append(3)
    lake.table("x").delete_where([("v", "=", 1)])
    lake.compact("b")
    lake.append(4)
    lake.compact("c")
    slow.finish()
    assert lake.values() == [2, 3, 4]
    assert is_at_rest(lake)
    (file,) = lake.files()
    assert len(file["origins"]) == 4
    assert lake.values() == [2, 3, 4]


def test_a_removal_of_what_compaction_made_reaches_what_was_made_of_its_origins_before(lake: Lake) -> None:
    lake.append(1)
    lake.append(2)
    slow = lake.plan("slow")
    lake.compact("a")
    kept = lake.append(3)
    lake.table("x").remove([chunk for chunk in lake.chunks() if chunk != kept])
    slow.finish()
    assert lake.values() == [3]
    assert is_at_rest(lake)


def test_no_compaction_relies_on_a_file_that_another_has_ended(lake: Lake) -> None:
    """A file may be ended for another one's sake while that one is compacted: the file that is made of it then counts."""
    lake.append(1)
    lake.append(2)
    first, second = lake.plan("a"), lake.plan("b")
    first.finish()
    lake.append(3)
    of_first = lake.plan("c")  # the first file, and the third
    second.finish()
    ends_one = lake.plan("d", target_bytes=1)  # of two files with the same rows
    of_first.finish()
    lake.plan("e", target_bytes=10).finish()  # keeps of what they share what the other file lacks
    assert lake.values() == [1, 2, 3]
    ends_one.finish()
    assert lake.values() == [1, 2, 3]
    assert is_at_rest(lake)
    assert lake.values() == [1, 2, 3]


@pytest.mark.parametrize("order", [*permutations(range(4))][::3])
def test_partly_shared_rows_survive_whatever_ends_first(lake: Lake, order: tuple[int, ...]) -> None:
    """Files with {1, 2}, {1, 2, 3} and {1, 2, 3, 4} at once, and four more compactions of them, of which each has read something else."""
    early = []
    for value in (1, 2, 3, 4):
        lake.append(value)
        if value > 1:
            early.append(lake.plan(f"early{value}"))
    plans = []
    for at, plan in enumerate(early):
        plan.finish()
        plans.append(lake.plan(f"late{at}", target_bytes=(1, 10_000, 4_000)[at]))
    plans.append(lake.plan("last"))
    for at in order:
        plans[at].finish()
    assert lake.values() == [1, 2, 3, 4]
    assert is_at_rest(lake)
    assert lake.values() == [1, 2, 3, 4]


def test_rows_that_were_all_deleted_stay_so_in_a_file_that_was_made_before(lake: Lake) -> None:
    lake.append(1)
    lake.append(2)
    slow = lake.plan("slow")
    lake.table("x").delete_where([("v", ">", 0)])
    emptied = lake.compact("a")
    assert (emptied.ended, emptied.made) == (2, 0)
    lake.append(1)
    slow.finish()
    assert lake.values() == [1]
    assert is_at_rest(lake)
    assert lake.values() == [1]


def test_a_removed_file_that_was_put_back_survives_its_compaction(lake: Lake) -> None:
    back = lake.append(1)
    lake.table().remove([back])
    lake.append(2)
    assert lake.values() == [2]
    restored(lake, back)
    assert lake.values() == [1, 2]
    assert lake.compact().made == 1
    assert lake.values() == [1, 2]
    assert is_at_rest(lake)
    assert lake.values() == [1, 2]


def test_a_removed_file_that_was_put_back_counts_beside_what_had_been_made_of_it(lake: Lake) -> None:
    back = lake.append(1)
    lake.append(2)
    late = lake.plan()
    lake.table().remove([back])
    late.finish()
    assert lake.values() == [2]
    restored(lake, back)
    assert lake.values() == [1, 2]
    assert is_at_rest(lake)
    assert lake.values() == [1, 2]


def test_a_compacted_file_that_was_put_back_counts_its_rows_once(lake: Lake) -> None:
    one = lake.append(1)
    lake.append(2)
    lake.compact()
    restored(lake, one)
    assert lake.values() == [1, 2]
    assert is_at_rest(lake)
    assert lake.values() == [1, 2]


def test_a_race_s_deletions_stay_when_nothing_is_known_of_the_first_files_any_more(lake: Lake) -> None:
    """Tombstones go after a day; what they would say of a compacted file's rows holds for ever."""
    gone = lake.append(1)
    lake.append(2, 3)
    late = lake.plan()
    lake.table("x").remove([gone])
    lake.table("x").delete_where([("v", "=", 3)])
    late.finish()
    forget(lake)
    assert lake.values() == [2]
    lake.append(4)
    lake.compact()
    assert lake.values() == [2, 4]
    assert is_at_rest(lake)


def test_two_compactions_agree_however_much_is_forgotten_between_their_plans(lake: Lake) -> None:
    lake.append(1)
    lake.append(2)
    lake.compact()
    lake.append(3)
    slow = lake.plan("slow")
    forget(lake)
    lake.compact("a")
    slow.finish()
    assert lake.values() == [1, 2, 3]
    assert is_at_rest(lake)


def test_predicates_end_when_nobody_needs_them(lake: Lake) -> None:
    lake.append(1, 2)
    lake.append(3)
    lake.table("x").delete_where([("v", "=", 1)])
    lake.compact()
    assert len(lake.predicates()) == 1, "somebody may have read the files before it"
    forget(lake)
    assert lake.compact("b").predicates_ended == 1
    assert lake.predicates() == []
    assert lake.values() == [2, 3]


def test_a_predicate_stays_while_a_file_has_rows_of_it(lake: Lake) -> None:
    lake.append(1, 2)
    lake.append(3)
    late = lake.plan()
    lake.table("x").delete_where([("v", "=", 1)])
    late.finish()
    forget(lake)
    assert lake.plan("b", partition="elsewhere").finish().predicates_ended == 0
    assert lake.values() == [2, 3]


def forget(lake: Lake) -> None:
    """Purge every tombstone of a file, as collection does after its time."""
    catalog = lake.catalog()
    ended = catalog.snapshot().scan(f"deleted_{FILES}", columns=["table", "partition", "chunk", "_version"]).to_arrow()
    assert len(ended)
    with catalog.writer("maintainer-1") as writer, writer.transaction() as tx:
        tx.purge(FILES, ended)
