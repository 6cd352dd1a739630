"""Collection of data tables' files: what has ended goes, what a reader may still need does not, and who comes too late is told by name."""

from __future__ import annotations

from typing import Any

import pytest

from bucketcatalog import DataCollected, StaleRead
from bucketcatalog.maintain.gc.collect import Collected
from bucketcatalog.systems.iox.compact import Compaction
from bucketcatalog.systems.iox.errors import DataMissing
from bucketcatalog.systems.iox.table import DataTable

from ....kit.world import DAY, HOUR, World, stored


class Yard:
    """A world with a data table of three files."""

    def __init__(self) -> None:
        self.world = World()
        self.table = self.opened()
        for number in range(3):
            self.table.append([{"v": number}, {"v": 10 + number}])
            self.world.clock.tick()

    def opened(self, writer: str = "w") -> DataTable:
        table = self.world.catalog().data("cpu", database="default", writer=writer, clock=self.world.clock)
        assert isinstance(table, DataTable)
        return table

    def values(self, **options: Any) -> list[int]:
        return sorted(self.opened().scan(**options).to_arrow()["v"].to_pylist())

    def compact(self, **options: Any) -> Any:
        self.world.clock.tick()
        return self.opened().compact(writer="compactor-1", **options)

    def collected(self) -> Collected:
        self.world.clock.tick(DAY + HOUR)
        for _ in range(2):
            done = self.world.catalog().collect(dry_run=False, writer="maintainer-1", clock=self.world.clock)
            self.world.clock.tick(7 * HOUR)
        return done

    def data(self, part: str) -> list[str]:
        return [name for name in stored(self.world) if part in name]


@pytest.fixture
def yard() -> Yard:
    return Yard()


def test_files_that_compaction_has_replaced_are_deleted_and_the_rows_stay(yard: Yard) -> None:
    yard.compact()
    assert len(yard.data("/default/cpu/")) == 4
    assert yard.collected().deleted == 3
    assert len(yard.data("/default/cpu/")) == 1 and yard.values() == [0, 1, 2, 10, 11, 12]


def test_an_old_version_is_right_until_its_files_are_collected_and_then_one_clear_error(yard: Yard) -> None:
    version = yard.world.snapshot().version
    planned = yard.opened().scan(version=version)
    yard.compact()
    assert yard.values(version=version) == [0, 1, 2, 10, 11, 12]
    yard.collected()
    for read in (planned, yard.opened().scan(version=version)):
        with pytest.raises(DataMissing, match=r"w/default/data/default/cpu/[0-9a-f-]+\.parquet is not there: it was collected"):
            read.to_arrow()


def test_what_a_tag_names_stays(yard: Yard) -> None:
    with yard.world.writer("maintainer-1") as maintainer:
        maintainer.tag("before")
    yard.compact()
    assert yard.collected().deleted == 0
    assert yard.values(version="before") == yard.values() == [0, 1, 2, 10, 11, 12]


def test_a_deletion_and_its_marker_go_once_no_file_that_it_speaks_of_is_known(yard: Yard) -> None:
    yard.opened().delete_where({"v": 11})
    yard.compact()
    assert yard.values() == [0, 1, 2, 10, 12] and len(yard.data("/.deleted/")) == 1
    yard.collected()
    assert yard.compact().predicates_ended == 1
    assert yard.collected().deleted == 1 and yard.data("/.deleted/") == []
    assert yard.values() == [0, 1, 2, 10, 12]


def test_files_that_were_removed_are_deleted(yard: Yard) -> None:
    yard.opened().remove(partition="default")
    assert yard.collected().deleted == 3 and yard.data("/default/cpu/") == []
    assert yard.values() == []


def test_what_another_plain_writer_removes_stays_as_a_file(yard: Yard) -> None:
    yard.opened("other").remove(partition="default")
    assert yard.values() == [] and yard.collected().deleted == 0 and len(yard.data("/default/cpu/")) == 3


def test_a_file_that_no_commit_has_named_is_an_orphan_and_never_read(yard: Yard) -> None:
    name = yard.data("/default/cpu/")[0]
    stray = name.replace(name.rpartition("/")[2], "0190a0e0-0000-7000-8000-000000000000.parquet")
    yard.world.store.put(stray, yard.world.store.get(name))
    assert yard.values() == [0, 1, 2, 10, 11, 12]
    yard.world.clock.tick(2 * DAY)
    found = [each.name for each in yard.world.catalog().orphans(older_than="24h", writer="maintainer-1")]
    assert found == [stray]


def test_a_restored_file_that_was_collected_is_refused(yard: Yard) -> None:
    version = yard.world.snapshot().version
    yard.compact()
    yard.collected()
    with pytest.raises(DataCollected, match="may be deleted"):
        yard.opened().restore(version=version, dry_run=False)
    assert yard.values() == [0, 1, 2, 10, 11, 12]


def test_a_read_that_is_under_way_while_files_are_collected_ends_with_an_error_and_not_early(yard: Yard) -> None:
    batches = iter(yard.opened().scan().to_batches())
    first = next(batches)
    yard.compact()
    yard.collected()
    with pytest.raises(DataMissing, match="it was collected"):
        list(batches)
    assert first.num_rows == 2


@pytest.mark.parametrize("has_read", [False, True], ids=["before it has read", "after it has read"])
def test_a_compaction_whose_files_are_compacted_by_another_and_collected_changes_nothing(yard: Yard, has_read: bool) -> None:
    with yard.world.writer("compactor-slow") as writer:
        slow = Compaction(writer.begin_work(), writer, table="cpu")
        made = [task.run(yard.world.store) for task in slow.tasks] if has_read else []
        yard.compact()
        yard.opened().delete_where({"v": 11})
        yard.opened().append([{"v": 20}])
        assert yard.collected().deleted == 3
        if has_read:
            with pytest.raises(StaleRead):
                slow.finish(made)
        else:
            with pytest.raises(DataMissing):
                slow.tasks[0].run(yard.world.store)
    assert yard.values() == [0, 1, 2, 10, 12, 20]
    assert yard.compact().made == 1
    assert yard.values() == [0, 1, 2, 10, 12, 20]
