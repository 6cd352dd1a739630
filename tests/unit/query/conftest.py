"""Catalogs that tests of several engines read and none changes."""

from __future__ import annotations

import pytest

from bucketcatalog import Catalog

from ...kit import in_engines


@pytest.fixture(scope="module")
def merged(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    return in_engines.merged(tmp_path_factory.mktemp("merged") / "lake")


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    return in_engines.changed(tmp_path_factory.mktemp("changed") / "lake")
