"""A catalog in memory to harvest into."""

from __future__ import annotations

import pytest

from bucketcatalog import Catalog
from bucketcatalog.store.memory import MemoryStore


@pytest.fixture
def catalog() -> Catalog:
    return Catalog(MemoryStore())
