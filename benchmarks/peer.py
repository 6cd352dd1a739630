"""What deltalake does in the benchmarks, most of it in fresh processes. Imports nothing of the catalog's."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
from deltalake.transaction import AddAction

KEY = ("owner", "bucket_id", "name")
READS: dict[str, Callable[[deltalake.DeltaTable, list[str] | None], pa.Table]] = {
    "DeltaTable.to_pyarrow_table": lambda table, columns: table.to_pyarrow_table(columns=columns),
    "DeltaTable.scan": lambda table, columns: pa.table(table.scan(columns=columns)),
    "QueryBuilder": lambda table, columns: pa.table(
        deltalake.QueryBuilder().register("t", table).execute(f"select {', '.join(columns or '*')} from t").read_all()
    ),
}
FINDS: dict[str, Callable[[deltalake.DeltaTable, list[str]], pa.Table]] = {
    "DeltaTable.scan, a predicate": lambda table, names: pa.table(table.scan(predicate=f"name in ({_quoted(names)})")),
    "QueryBuilder, a condition": lambda table, names: pa.table(
        deltalake.QueryBuilder().register("t", table).execute(f"select * from t where name in ({_quoted(names)})").read_all()
    ),
}
_FILES_A_COMMIT = 100_000
FILES = pa.schema([("path", pa.string()), ("size", pa.int64())])


def build(path: str | Path, rows: pa.Table, *, target_file_size: int | None = None) -> deltalake.DeltaTable:
    """An inventory table of these rows, sorted by name, with all defaults but the file size where one is given."""
    deltalake.write_deltalake(path, rows.sort_by("name"), target_file_size=target_file_size)
    return deltalake.DeltaTable(path)


def read(path: str, way: str, columns: list[str] | None = None, repeats: int = 1) -> dict[str, Any]:
    """Open the table and read all rows, with these columns or all, as one Arrow table, again and again; the first time is the cold one."""
    times, rows = [], 0
    for _ in range(repeats):
        start = time.perf_counter()
        table = READS[way](deltalake.DeltaTable(path), columns)
        times.append(time.perf_counter() - start)
        rows = table.num_rows
        del table
    return {"rows": rows, "seconds": times}


def find(path: str, names: str, way: str) -> dict[str, Any]:
    """Open the table and read the rows whose names an Arrow file holds; ``seconds`` begin after the imports."""
    with pa.ipc.open_file(names) as file:
        wanted = file.read_all()["name"].to_pylist()
    start = time.perf_counter()
    rows = FINDS[way](deltalake.DeltaTable(path), wanted)
    return {"rows": rows.num_rows, "seconds": time.perf_counter() - start}


def merge(table: deltalake.DeltaTable, rows: pa.Table, said: deltalake.CommitProperties | None = None) -> None:
    """Upsert by the whole key; ``said`` is what the commit is to say."""
    on_key = " and ".join(f"t.{name} = s.{name}" for name in KEY)
    merger = table.merge(rows, on_key, source_alias="s", target_alias="t", commit_properties=said)
    merger.when_matched_update_all().when_not_matched_insert_all().execute()


def delete(table: deltalake.DeltaTable, name: str) -> None:
    """Delete one object. By its name alone, which is enough here and the least to compare."""
    table.delete(f"name = '{name}'")


def make_log(path: Path, depth: int) -> None:
    """A table of files with so many commits."""
    table = deltalake.DeltaTable.create(path, deltalake.Schema.from_arrow(FILES))
    for number in range(depth):
        _add_file(table, number)
        table.update_incremental()


def make_files(path: Path, count: int) -> None:
    """A table of so many files, as their metadata says."""
    deltalake.DeltaTable.create(path, deltalake.Schema.from_arrow(FILES))
    for start in range(0, count, _FILES_A_COMMIT):
        add_files(path, start, min(_FILES_A_COMMIT, count - start))


def add_files(path: Path, first: int, count: int) -> None:
    """A commit of so many more files."""
    stats = '{"numRecords":1}'
    names = (f"projects/part-{number:012}.parquet" for number in range(first, first + count))
    actions = [AddAction(name, 1_000, {}, 1_700_000_000_000, True, stats) for name in names]
    deltalake.DeltaTable(path).create_write_transaction(actions, "append", FILES)


def checkpoint(path: Path) -> None:
    """Write a checkpoint."""
    deltalake.DeltaTable(path).create_checkpoint()


APPENDS = ("create_write_transaction, table held open", "write_deltalake, table held open", "write_deltalake by path")


class Appender:
    """Appends one file's metadata to a table in one of the ways of ``APPENDS``, of which the first two keep the table open.

    A table that is open is brought up to its own last commit each time: without that the next one would find itself in conflict and
    take longer. With ``durable`` the new file of the log and its directory are synced, which the peer leaves to others.
    """

    def __init__(self, path: Path, way: str, *, durable: bool = False) -> None:
        self._path = path
        self._way = way
        self._durable = durable
        self._table = deltalake.DeltaTable(path)
        self._version = self._table.version()

    def append(self) -> None:
        """One commit."""
        self._version += 1
        if self._way == APPENDS[0]:
            _add_file(self._table, self._version)
        else:
            rows = pa.table({"path": [f"part-{self._version:05}.parquet"], "size": [1_000]}, schema=FILES)
            deltalake.write_deltalake(self._table if self._way == APPENDS[1] else self._path, rows, mode="append")
        if self._way != APPENDS[2] and self._table.version() < self._version:
            self._table.update_incremental()
        if self._durable:
            log = self._path / "_delta_log"
            for path in (log / f"{self._version:020}.json", log):
                _sync(path)


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _add_file(table: deltalake.DeltaTable, number: int) -> None:
    action = AddAction(f"part-{number:05}.parquet", 1_000, {}, 1_700_000_000_000, True, '{"numRecords":1}')
    table.create_write_transaction([action], "append", FILES)


def _quoted(names: list[str]) -> str:
    return ",".join(f"'{name}'" for name in names)
