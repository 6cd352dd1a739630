"""Scanning as batches takes memory that does not grow with the table.

The promise is 5,000,000 objects below 600 MB, which the benchmarks measure. Here the growth from a quarter of fewer has to be small, far
smaller than their rows are, which holds for any number: ``BUCKETCATALOG_MEMORY_ROWS`` sets another one.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROWS = int(os.environ.get("BUCKETCATALOG_MEMORY_ROWS", "1000000"))
CHILD = Path(__file__).with_name("memory_child.py")
PROMISE = 600
GROWTH = 120


def peak(what: str, folder: Path, rows: int) -> int:
    """Megabytes at the peak of a process."""
    result = subprocess.run([sys.executable, CHILD, what, str(folder), str(rows)], check=True, capture_output=True, text=True)
    return int(result.stdout)


def test_scanning_in_batches_takes_bounded_memory(tmp_path: Path) -> None:
    small, large = tmp_path / "small", tmp_path / "large"
    peak("build", small, ROWS // 4)
    peak("build", large, ROWS)
    peak("scan_deleted", small, ROWS // 4)
    few, many = peak("scan", small, ROWS // 4), peak("scan", large, ROWS)

    assert many < PROMISE, f"{ROWS} rows took {many} MB"
    assert many - few < GROWTH, f"{ROWS // 4} rows took {few} MB and {ROWS} took {many} MB"
