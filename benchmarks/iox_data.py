"""Measurements for data tables, and what bucketcatalog does with them in the benchmarks. Imports nothing of the peers'.

Rows are numbered from the first file to the last, and come in that order: every file, and every row group, has a range of its own.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bucketcatalog import Catalog, between
from bucketcatalog.clock import now_us, uuid7
from bucketcatalog.systems.iox.files import FILES, SCHEMAS, schema_id, schema_row
from bucketcatalog.systems.iox.names import file_path
from bucketcatalog.systems.iox.statistics import SCHEMA as STATISTICS_SCHEMA
from bucketcatalog.systems.iox.statistics import TABLE as STATISTICS
from bucketcatalog.systems.iox.statistics import kind_of
from bucketcatalog.systems.iox.table import DataTable

from .iox_rows import GROUP_ROWS, GROUPS, PLANNED_ROWS, SCHEMA, ends, looked_for, measurements

TABLE, WRITER, COMPACTOR = "cpu", "bench", "compactor-bench"
_DATABASE, _PARTITION = "default", "default"
_FILES_A_COMMIT = 10_000
_TASK_ROWS = 1 << 20
_ROW_GROUPS = STATISTICS_SCHEMA.field("row_groups").type


@contextmanager
def appended(path: Path, files: int, rows: int) -> Iterator[DataTable]:
    """A table held open after so many appends of so many rows, which a compactor's checkpoint covers."""
    with Catalog(path).data(TABLE, writer=WRITER) as table:
        for number in range(files):
            table.append(measurements(number, rows))
        checkpoint(path)
        yield table


def build(path: str, files: int, rows: int) -> dict[str, Any]:
    """A table of so many files of so many rows."""
    with appended(Path(path), files, rows):
        return {}


def checkpoint(path: Path) -> None:
    """Cover everything by a checkpoint."""
    with Catalog(path).writer(COMPACTOR) as writer:
        writer.checkpoint(scope="all")


def folder(path: Path) -> Path:
    """Where the files of the table lie."""
    return (path / file_path(WRITER, _DATABASE, _PARTITION, TABLE, "chunk")).parent


def last_file(path: Path) -> Path:
    """The file that was added last."""
    return max(folder(path).iterdir())


def last_transaction(path: Path) -> Path:
    """The transaction that was committed last."""
    (file,) = max((path / WRITER / _DATABASE / "transactions").iterdir()).iterdir()
    return file


def compact(path: Path) -> tuple[int, int]:
    """Make the small files of the table into large ones; returns the files that were made of how many rows."""
    done = Catalog(path).run_job("iox.compact", table=TABLE, writer=COMPACTOR)
    return done.made, done.rows


def fill(path: Path, files: int) -> None:
    """A table of so many files to plan with, as the catalog knows them: no file is written."""
    began = now_us()
    with Catalog(path).writer(WRITER) as writer:
        for first in range(0, files, _FILES_A_COMMIT):
            numbers = np.arange(first, min(files, first + _FILES_A_COMMIT))
            chunks = [str(uuid7(began + number)) for number in numbers.tolist()]
            with writer.transaction(operation="append") as tx:
                tx.put(FILES, _files(chunks, began))
                tx.put(STATISTICS, pa.concat_tables([_statistics(chunks, numbers, each.name) for each in SCHEMA]))
                if not first:
                    tx.put(SCHEMAS, [schema_row(TABLE, SCHEMA)])
    checkpoint(path)


def plan(path: str, files: int, small: str, small_files: int) -> dict[str, Any]:
    """Open the table and plan a read of what is looked for; ``seconds`` begin once that was done with a small one."""
    _planned(small, small_files)
    start = time.perf_counter()
    found = _planned(path, files)
    return {"seconds": time.perf_counter() - start, **found}


def _planned(path: str, files: int) -> dict[str, int]:
    read = Catalog(path).data(TABLE).scan(where={"number": between(*looked_for(files))})
    parts = [part for task in read.plan.tasks(_TASK_ROWS) for part in task.parts]
    return {"files": len({part.path for part in parts}), "row groups": sum(len(part.groups) for part in parts)}


def _files(chunks: list[str], began: int) -> pa.Table:
    columns: dict[str, Any] = {
        "table": TABLE,
        "partition": _PARTITION,
        "size": 40 * PLANNED_ROWS,
        "rows": PLANNED_ROWS,
        "row_groups": pa.scalar(GROUPS, pa.int32()),
        "schema": schema_id(SCHEMA),
        "first_clock": began,
        "last_clock": began,
        "write": chunks[0],
    }
    paths = [file_path(WRITER, _DATABASE, _PARTITION, TABLE, chunk) for chunk in chunks]
    return pa.table({"chunk": chunks, "path": paths} | {name: pa.repeat(value, len(chunks)) for name, value in columns.items()})


def _statistics(chunks: list[str], numbers: np.ndarray[Any, Any], column: str) -> pa.Table:
    """The rows about a column of these files."""
    place = {"table": TABLE, "column": column, "partition": _PARTITION}
    groups = (numbers[:, None] * GROUPS + np.arange(GROUPS)).ravel()
    within = _said(column, groups * GROUP_ROWS, GROUP_ROWS)
    structs = pa.StructArray.from_arrays(list(within.values()), list(within))
    columns: dict[str, Any] = {name: pa.repeat(value, len(chunks)) for name, value in place.items()}
    columns |= {"chunk": chunks, **_said(column, numbers * PLANNED_ROWS, PLANNED_ROWS)}
    offsets = pa.array(np.arange(len(numbers) + 1, dtype=np.int32) * GROUPS)
    columns["row_groups"] = pa.ListArray.from_arrays(offsets, structs).cast(_ROW_GROUPS)
    columns["bloom_filters"] = pa.nulls(len(chunks), STATISTICS_SCHEMA.field("bloom_filters").type)
    return pa.table(columns).select(STATISTICS_SCHEMA.names)


def _said(column: str, first: np.ndarray[Any, Any], rows: int) -> dict[str, pa.Array]:
    """What statistics say of a column of runs of so many rows, each from a number on."""
    low, high = ends(column, first, rows)
    kind = kind_of(low.type)
    stored = {f"min_{kind}": low, f"max_{kind}": high}
    told: dict[str, pa.Array] = {
        name: pa.repeat(pa.scalar(count, pa.int64()), len(first)) for name, count in (("rows", rows), ("nulls", 0))
    }
    for field in STATISTICS_SCHEMA:
        if field.name.startswith(("min_", "max_")):
            end = stored.get(field.name)
            told[field.name] = pa.nulls(len(first), field.type) if end is None else end.cast(field.type)
    return told
