"""Restoring a data table: what counted at a version counts again, whatever was deleted, made large or removed since, or lands late."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bucketcatalog import Catalog, InvalidOption, UnknownTable
from bucketcatalog.systems.iox.compact import Compaction
from bucketcatalog.systems.iox.table import DataTable


@pytest.fixture
def cat(tmp_path: Path) -> Catalog:
    return Catalog(tmp_path)


@pytest.fixture
def cpu(cat: Catalog) -> DataTable:
    table = cat.data("cpu", writer="w")
    for number in range(4):
        table.append([{"host": "a", "v": number}, {"host": "b", "v": number}])
    assert isinstance(table, DataTable)
    return table


def rows(table: DataTable, **options: Any) -> list[tuple[str, int]]:
    return sorted((row["host"], row["v"]) for row in table.scan(**options).to_arrow().to_pylist())


def compacting(cat: Catalog, table: str, name: str) -> tuple[Compaction, list[Any]]:
    """A compaction that has read and written, and is yet to commit."""
    writer = cat.writer(name)
    planned = Compaction(writer.begin_work(), writer, table=table)
    return planned, [task.run(cat.store) for task in planned.tasks]


def test_what_was_deleted_removed_appended_and_compacted_since_is_undone(cat: Catalog, cpu: DataTable) -> None:
    then, version = rows(cpu), cat.snapshot().version
    cpu.delete_where({"host": "a"})
    cpu.compact()
    cpu.append({"host": "c", "v": 9})
    cpu.remove([cpu.files()["chunk"][0].as_py()])
    done = cpu.restore(version=version, dry_run=False)
    assert rows(cpu) == then and (done.files_put, done.deletions_ended) == (4, 1)
    assert cpu.scan(where={"v": 2}).explain().startswith("data table cpu: 1 of 4 files")  # statistics too
    again = cpu.restore(version=version, dry_run=False)
    assert again.version is None and (again.files_put, again.files_ended) == (0, 0)


def test_a_deletion_that_held_then_holds_again(cat: Catalog, cpu: DataTable) -> None:
    cpu.delete_where({"host": "a"})
    then, version = rows(cpu), cat.snapshot().version
    cpu.compact()
    cpu.restore(version=version, dry_run=False)
    assert rows(cpu) == then == [("b", number) for number in range(4)]
    cpu.compact()
    assert rows(cpu) == then


def test_a_compacted_file_that_was_there_is_there_again(cat: Catalog, cpu: DataTable) -> None:
    cpu.compact()
    then, version = rows(cpu), cat.snapshot().version
    cpu.delete_where({"host": "a"})
    cpu.compact()
    cpu.remove(partition="default")
    assert rows(cpu) == []
    cpu.restore(version=version, dry_run=False)
    assert rows(cpu) == then
    assert cpu.restore(version=version, dry_run=False).version is None
    cpu.compact(least=1)
    assert rows(cpu) == then


@pytest.mark.parametrize("is_compacted", [False, True])
def test_a_compaction_that_lands_late_brings_no_deletion_back(cat: Catalog, cpu: DataTable, is_compacted: bool) -> None:
    if is_compacted:
        cpu.compact()
        cpu.append({"host": "d", "v": 7})
    then, version = rows(cpu), cat.snapshot().version
    cpu.delete_where({"host": "a"})
    planned, outcomes = compacting(cat, "cpu", "compactor-late")
    cpu.restore(version=version, dry_run=False)
    assert rows(cpu) == then
    planned.finish(outcomes)
    assert rows(cpu) == then
    cpu.compact()
    assert rows(cpu) == then


def test_rows_that_newer_ones_had_replaced_are_there_again(cat: Catalog) -> None:
    table = cat.data("k", writer="w")
    table.append([{"host": "a", "v": 1}, {"host": "b", "v": 1}], key=["host"])
    then, version = rows(table), cat.snapshot().version
    table.append({"host": "a", "v": 2})
    planned, outcomes = compacting(cat, "k", "compactor-late")
    table.restore(version=version, dry_run=False)
    assert rows(table) == then
    planned.finish(outcomes)
    assert rows(table) == then


def test_the_past_of_a_restored_table_stays_readable(cat: Catalog, cpu: DataTable) -> None:
    before, version = rows(cpu), cat.snapshot().version
    cpu.remove(partition="default")
    empty = cat.snapshot().version
    cpu.restore(version=version, dry_run=False)
    assert (rows(cpu, version=version), rows(cpu, version=empty)) == (before, [])


def test_what_cannot_be_restored_is_refused_by_name(cat: Catalog, cpu: DataTable) -> None:
    with pytest.raises(InvalidOption, match="needs a time or a version"):
        cpu.restore(dry_run=False)
    with pytest.raises(UnknownTable, match="no data table 'cpu' at that version"):
        cpu.restore(timestamp="2020-01-01", dry_run=False)
    for table in ("iox.parquet_files", "iox.delete_predicates"):
        with pytest.raises(InvalidOption, match=r"means nothing without others.*cat\.data\(TABLE\)\.restore"):
            cat.restore(table, version=cat.snapshot().version)


def test_a_compaction_of_nothing_that_lands_late_takes_nothing_away(cat: Catalog, cpu: DataTable) -> None:
    cpu.compact()
    then, version = rows(cpu), cat.snapshot().version
    cpu.delete_where({"host": ["a", "b"]})
    planned, outcomes = compacting(cat, "cpu", "compactor-late")
    assert outcomes == [None]
    cpu.restore(version=version, dry_run=False)
    planned.finish(outcomes)
    assert rows(cpu) == then


def test_in_a_catalog_of_one_database_that_one_is_meant(tmp_path: Path) -> None:
    cat = Catalog(tmp_path)
    cat.data("cpu", database="metrics").append({"host": "a", "v": 1})
    table = cat.data("cpu")
    version = cat.snapshot().version
    assert table.delete_where({"v": 1}) is not None and rows(table) == []
    assert table.restore(version=version, dry_run=False).deletions_ended == 1 and rows(table) == [("a", 1)]
    assert table.remove(partition="default") is not None and rows(table) == []
