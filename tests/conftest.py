"""What all tests share: each folder of tests is a lane, and carries its name as a mark."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

LANES = Path(__file__).parent

# The machine is shared with other work, so time says nothing about a single example; in CI the examples are the same each time.
settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "default")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test with its lane; a test outside of the lanes would run in none."""
    for item in items:
        folder = item.path.relative_to(LANES).parts[0]
        lane = {"docs": "unit"}.get(folder, folder)
        if lane not in ("unit", "property", "s3", "spark"):
            raise pytest.UsageError(f"{item.path} is in none of tests/unit, tests/docs, tests/property, tests/s3, tests/spark")
        item.add_marker(lane)
