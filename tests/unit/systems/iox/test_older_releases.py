"""Catalogs of releases that knew less of files: their data tables are read, added to, compacted and verified by this one."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from types import ModuleType

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool

from bucketcatalog import Catalog
from bucketcatalog.format.definitions import tables_of
from bucketcatalog.store.memory import MemoryStore
from bucketcatalog.systems.iox import SYSTEM, files
from bucketcatalog.systems.iox.verify import verify
from bucketcatalog.v1 import iox_pb2

NEW = {"IoxParquetFile": {"bloom_filters"}, "IoxStatistics": {"bloom_filters"}}


def without(fields: dict[str, Collection[str]]) -> ModuleType:
    """The declarations of a release that had none of these fields, by message."""
    known = descriptor_pool.DescriptorPool()
    pending, files = [iox_pb2.DESCRIPTOR], []
    while pending:
        file = pending.pop()
        if file not in files:
            files.insert(0, file)
            pending += file.dependencies
    for file in sorted(files, key=lambda file: file is iox_pb2.DESCRIPTOR):
        message = descriptor_pb2.FileDescriptorProto()
        file.CopyToProto(message)
        for each in message.message_type:
            kept = [field for field in each.field if field.name not in fields.get(each.name, ())]
            del each.field[:]
            each.field.extend(kept)
        known.Add(message)
    module = ModuleType("iox_pb2")
    module.__dict__["DESCRIPTOR"] = known.FindFileByName(iox_pb2.DESCRIPTOR.name)
    return module


def _older(written: files.Written) -> files.Written:
    return replace(written, row={name: value for name, value in written.row.items() if name != "bloom_filters"})


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> MemoryStore:
    """A catalog whose files were added by such a release."""
    store = MemoryStore()
    older = {table.name: table for table in tables_of(without(NEW))}
    assert "bloom_filters" not in older["iox.parquet_files"].by_name and older.keys() == SYSTEM.tables.keys()
    described = files.described
    with monkeypatch.context() as patch:
        patch.setitem(SYSTEM.__dict__, "tables", older)
        patch.setattr(files, "described", lambda *given: _older(described(*given)))
        with Catalog(store).data("cpu", writer="old") as table:
            for number in range(3):
                table.append([{"host": f"h{number}", "v": number}])
        assert "bloom_filters" not in Catalog(store).snapshot().scan("iox.parquet_files").schema.names
    Catalog(store).data("cpu", writer="new").delete_where({"host": "h0"})
    return store


def test_its_rows_are_read_and_what_conditions_rule_out_is_not_opened(store: MemoryStore) -> None:
    scan = Catalog(store).data("cpu").scan(where={"host": "h2"})
    assert scan.to_arrow()["v"].to_pylist() == [2] and "1 of 3 files" in scan.explain()
    assert sorted(Catalog(store).data("cpu").scan().to_arrow()["v"].to_pylist()) == [1, 2]


def test_it_is_added_to_and_compacted_with_what_is_new(store: MemoryStore) -> None:
    Catalog(store).data("cpu", writer="new").append([{"host": "h9", "v": 9}], bloom_filters=["host"])
    assert sorted(Catalog(store).data("cpu").scan().to_arrow()["v"].to_pylist()) == [1, 2, 9]
    Catalog(store).data("cpu").compact(writer="compactor-1")
    assert sorted(Catalog(store).data("cpu").scan().to_arrow()["v"].to_pylist()) == [1, 2, 9]
    assert Catalog(store).data("cpu").files()["bloom_filters"].to_pylist() == [["host"]]


def test_it_is_verified_and_restored(store: MemoryStore) -> None:
    assert not [finding for finding in verify(Catalog(store), deep=True) if finding.severity.value == "error"]
    then = Catalog(store).snapshot().version
    Catalog(store).data("cpu", writer="new").remove(partition="default")
    Catalog(store).data("cpu", writer="new").restore(version=then, dry_run=False)
    assert sorted(Catalog(store).data("cpu").scan().to_arrow()["v"].to_pylist()) == [1, 2]
