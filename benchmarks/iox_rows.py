"""Measurements: the rows of data tables in the benchmarks, of us and of the peers, and what statistics say of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

SCHEMA = pa.schema(
    [
        ("host", pa.string()),
        ("time", pa.timestamp("us", "UTC")),
        ("number", pa.int64()),
        ("usage", pa.float64()),
        ("load", pa.float64()),
    ]
)
PLANNED_ROWS, GROUPS = 1_000, 4
"""What a file of the tables to plan with has."""
GROUP_ROWS = PLANNED_ROWS // GROUPS
FOUND = 10
"""How many of the files of such a table have rows that are looked for."""
_BEGAN, _SECOND = 1_700_000_000_000_000, 1_000_000
_ROWS_OF_HOST = 50
_MOST = 100.0


def measurements(file: int, rows: int) -> pa.Table:
    """The rows of a file, the one of that number among files of so many rows."""
    chance = np.random.default_rng(file)
    numbers = np.arange(file * rows, (file + 1) * rows)
    drawn = [pa.array(chance.random(rows) * _MOST) for _ in range(2)]
    return pa.table([_value(name, numbers) for name in SCHEMA.names[:3]] + drawn, schema=SCHEMA)


def ends(column: str, first: np.ndarray[Any, Any], rows: int) -> tuple[pa.Array, pa.Array]:
    """The least and the greatest value in runs of so many rows, each from a number on; of what is drawn, what it could be."""
    if column in SCHEMA.names[:3]:
        return _value(column, first), _value(column, first + rows - 1)
    return pa.array(np.zeros(len(first))), pa.array(np.full(len(first), _MOST))


def looked_for(files: int) -> tuple[int, int]:
    """The first and the last number that is looked for in a table of so many files: of ``FOUND`` of them all but a few row groups."""
    first = (files - FOUND) // 2 * PLANNED_ROWS
    return first + 2 * GROUP_ROWS + 7, first + (FOUND - 1) * PLANNED_ROWS + GROUP_ROWS // 2


def files_with_rows(files: int) -> range:
    """The files of such a table whose rows somebody may read, to see which row groups they have."""
    first = (files - FOUND) // 2
    return range(max(0, first - 1), min(files, first + FOUND + 1))


def _value(column: str, numbers: np.ndarray[Any, Any]) -> pa.Array:
    if column == "host":
        return pa.array([f"host-{number:09}" for number in (numbers // _ROWS_OF_HOST).tolist()])
    return pa.array(_BEGAN + numbers * _SECOND if column == "time" else numbers).cast(SCHEMA.field(column).type)
