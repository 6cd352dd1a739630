"""What deltalake and pyiceberg do with measurements in the benchmarks. Imports nothing of the catalog's."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs
import pyarrow.parquet as pq
from deltalake.transaction import AddAction
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.conversions import to_bytes
from pyiceberg.expressions import And, GreaterThanOrEqual, LessThanOrEqual
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table import Table
from pyiceberg.typedef import Record

from .iox_rows import GROUP_ROWS, PLANNED_ROWS, SCHEMA, ends, files_with_rows, looked_for, measurements

_SIZE = 40 * PLANNED_ROWS
_DELTA_SCHEMA = deltalake.Schema.from_arrow(SCHEMA)
_FILES_A_MANIFEST = 10_000
_NAME = "bench.cpu"


class DeltaAppender:
    """Appends one file after another, to a table that is held open or, where ``by_path``, to one that is opened for each.

    A table that is open is brought up to its own last commit each time: without that the next one would find itself in conflict.
    """

    def __init__(self, path: Path, rows: int, *, by_path: bool = False) -> None:
        self._table = deltalake.DeltaTable.create(path, _DELTA_SCHEMA)
        self._path, self._rows, self._by_path = path, rows, by_path
        self.files = 0

    def append(self) -> None:
        """One commit."""
        rows = measurements(self.files, self._rows)
        self.files += 1
        deltalake.write_deltalake(self._path if self._by_path else self._table, rows, mode="append")
        if not self._by_path and self._table.version() < self.files:
            self._table.update_incremental()


class IcebergAppender:
    """Appends one file after another to a table that is held open."""

    def __init__(self, path: Path, rows: int) -> None:
        self._table = iceberg_table(path)
        self._rows = rows
        self.files = 0

    def append(self) -> None:
        """One commit."""
        rows = measurements(self.files, self._rows)
        self.files += 1
        self._table.append(rows)


def iceberg_table(path: Path) -> Table:
    """The table of a catalog in SQLite below the path, made if it is not there."""
    path.mkdir(exist_ok=True)
    catalog = SqlCatalog("bench", uri=f"sqlite:///{path}/catalog.db", warehouse=f"file://{path}")
    catalog.create_namespace_if_not_exists("bench")
    return catalog.create_table_if_not_exists(_NAME, SCHEMA)


def fill_delta(path: Path, files: int) -> None:
    """A table of so many files to plan with, which has statistics of every column and a checkpoint; those looked for are there."""
    deltalake.DeltaTable.create(path, _DELTA_SCHEMA)
    bounds = _bounds(files, as_json=True)
    actions = [AddAction(_name(number), _SIZE, {}, 1_700_000_000_000, True, _stats(bounds, number)) for number in range(files)]
    deltalake.DeltaTable(path).create_write_transaction(actions, "append", _DELTA_SCHEMA)
    deltalake.DeltaTable(path).create_checkpoint()
    _write_some(path, files)


def _bounds(files: int, *, as_json: bool) -> dict[str, tuple[list[Any], list[Any]]]:
    """By column the least and the greatest value in each file."""
    first = np.arange(files) * PLANNED_ROWS
    found = {name: ends(name, first, PLANNED_ROWS) for name in SCHEMA.names}
    if as_json:
        shown = tuple(pc.strftime(end.cast(pa.timestamp("ms", "UTC")), "%Y-%m-%dT%H:%M:%SZ") for end in found["time"])
        found["time"] = (shown[0], shown[1])
    else:
        found["time"] = (found["time"][0].cast(pa.int64()), found["time"][1].cast(pa.int64()))
    return {name: (low.to_pylist(), high.to_pylist()) for name, (low, high) in found.items()}


def _stats(bounds: dict[str, tuple[list[Any], list[Any]]], number: int) -> str:
    least, most = ({name: both[end][number] for name, both in bounds.items()} for end in (0, 1))
    nulls = dict.fromkeys(SCHEMA.names, 0)
    return json.dumps({"numRecords": PLANNED_ROWS, "minValues": least, "maxValues": most, "nullCount": nulls})


def fill_iceberg(path: Path, files: int) -> None:
    """The same, as files that a writer has written and described."""
    table = iceberg_table(path)
    kinds = {field.name: field.field_type for field in table.schema().fields}
    ids = {field.name: field.field_id for field in table.schema().fields}
    bounds = _bounds(files, as_json=False)
    folder = path / "files"
    for first in range(0, files, _FILES_A_MANIFEST):
        with table.transaction() as tx, tx.update_snapshot().fast_append() as append:
            for number in range(first, min(files, first + _FILES_A_MANIFEST)):
                low, high = (
                    {ids[name]: to_bytes(kinds[name], both[end][number]) for name, both in bounds.items()} for end in (0, 1)
                )
                append.append_data_file(_data_file(str(folder / _name(number)), [*ids.values()], low, high))
    folder.mkdir()
    _write_some(folder, files)


def _data_file(path: str, ids: list[int], low: dict[int, bytes], high: dict[int, bytes]) -> DataFile:
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=PLANNED_ROWS,
        file_size_in_bytes=_SIZE,
        column_sizes=dict.fromkeys(ids, _SIZE // len(ids)),
        value_counts=dict.fromkeys(ids, PLANNED_ROWS),
        null_value_counts=dict.fromkeys(ids, 0),
        nan_value_counts={},
        lower_bounds=low,
        upper_bounds=high,
        split_offsets=[4],
        spec_id=0,
    )


def _name(number: int) -> str:
    return f"part-{number:06}.parquet"


def _write_some(folder: Path, files: int) -> None:
    """Write the files that are looked for, and those next to them; nobody has to open any other."""
    for number in files_with_rows(files):
        pq.write_table(measurements(number, PLANNED_ROWS), folder / _name(number), row_group_size=GROUP_ROWS)


def _by_actions(path: str, low: int, high: int) -> Iterator[str]:
    actions = pa.table(deltalake.DeltaTable(path).get_add_actions(flatten=True))
    kept = pc.and_(pc.greater_equal(actions["max.number"], low), pc.less_equal(actions["min.number"], high))
    return (f"{path}/{name}" for name in actions.filter(kept)["path"].to_pylist())


def _by_fragments(path: str, low: int, high: int) -> Iterator[str]:
    dataset = deltalake.DeltaTable(path).to_pyarrow_dataset()
    return (f"{path}/{fragment.path}" for fragment in dataset.get_fragments(_condition(low, high)))


def _by_manifests(path: str, low: int, high: int) -> Iterator[str]:
    condition = And(GreaterThanOrEqual("number", low), LessThanOrEqual("number", high))
    tasks = iceberg_table(Path(path)).scan(row_filter=condition).plan_files()
    return (task.file.file_path.removeprefix("file://") for task in tasks)


PLANS: dict[str, Callable[[str, int, int], Iterator[str]]] = {
    "deltalake, get_add_actions and a comparison": _by_actions,
    "deltalake, to_pyarrow_dataset().get_fragments": _by_fragments,
    "pyiceberg, scan().plan_files": _by_manifests,
}
"""Ways to find the files that may have such numbers. Row groups are in the footers of these alone."""


def plan(path: str, files: int, small: str, small_files: int, way: str) -> dict[str, Any]:
    """Open the table and plan a read of what is looked for; ``seconds`` begin once that was done with a small one."""
    _planned(small, small_files, way)
    start = time.perf_counter()
    found = _planned(path, files, way)
    return {"seconds": time.perf_counter() - start, **found}


def _planned(path: str, files: int, way: str) -> dict[str, int]:
    low, high = looked_for(files)
    paths = list(PLANS[way](path, low, high))
    parquet, local = ds.ParquetFileFormat(), pa.fs.LocalFileSystem()
    fragments = (parquet.make_fragment(name, local) for name in paths)
    groups = sum(len(fragment.split_by_row_group(_condition(low, high))) for fragment in fragments)
    return {"files": len(paths), "row groups": groups}


def _condition(low: int, high: int) -> ds.Expression:
    return (ds.field("number") >= low) & (ds.field("number") <= high)


def build(path: Path, files: int, rows: int) -> None:
    """A table of so many files of so many rows."""
    appender = DeltaAppender(path, rows)
    for _ in range(files):
        appender.append()


def compact(path: Path) -> tuple[int, int]:
    """Make the small files of the table into large ones; returns the files that were made of how many rows."""
    done: dict[str, Any] = deltalake.DeltaTable(path).optimize.compact()
    sizes = pa.table(deltalake.DeltaTable(path).get_add_actions(flatten=True))["num_records"]
    return int(done["numFilesAdded"]), int(pc.sum(sizes).as_py())
