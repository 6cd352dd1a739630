"""What all tests share: each folder of tests is a lane, and carries its name as a mark."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import is_hypothesis_test, seed, settings

from .kit.chance import seed_of

LANES = Path(__file__).parent

# The machine is shared with other work, so time says nothing about a single example; and the examples are the same on every machine.
settings.register_profile("everywhere", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("everywhere")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test with its lane, where a test outside of the lanes would run in none, and give it its seed; the long ones first."""
    for item in items:
        folder = item.path.relative_to(LANES).parts[0]
        lane = {"docs": "unit"}.get(folder, folder)
        if lane not in ("unit", "property", "s3", "spark", "s3a"):
            raise pytest.UsageError(
                f"{item.path} is in no lane: tests/unit, tests/docs, tests/property, tests/s3, tests/spark, tests/s3a"
            )
        item.add_marker(lane)
        if is_hypothesis_test(test := getattr(item, "function", None)):
            seed(seed_of(item.nodeid))(test)
    items.sort(key=lambda item: item.get_closest_marker("long") is None)
