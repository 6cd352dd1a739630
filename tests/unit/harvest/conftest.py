"""A catalog in memory to harvest into, and file systems to harvest from."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from bucketcatalog import Catalog
from bucketcatalog.harvest.sources import descent, local
from bucketcatalog.store.memory import MemoryStore

from ...kit.filesystems import KINDS, NFS, FileSystem

MORE = os.environ.get("BUCKETCATALOG_MORE") == "1"
SLOW = {"test_a_huge_directory_comes_in_batches", "test_any_sequence_of_changes_and_runs_ends_with_what_is_on_disk"}
TOLD_OTHERWISE = {"test_what_vanishes_during_the_walk_is_no_error"}
"""Where there are no types an entry is asked about when it is listed: it is shown as it was then, though it vanishes after."""


@pytest.fixture
def catalog() -> Catalog:
    return Catalog(MemoryStore())


@pytest.fixture
def file_system(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that uses this runs on the file system here, and once more on one whose listings tell no types.

    ``BUCKETCATALOG_MORE=1`` runs it on every kind.
    """
    if request.param is None:
        yield
    else:
        with FileSystem(request.param).used_by(local, descent):
            yield


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Say on which file systems a test runs."""
    if "file_system" in metafunc.fixturenames:
        left_out = TOLD_OTHERWISE if MORE else TOLD_OTHERWISE | SLOW
        others = [] if metafunc.function.__name__ in left_out else KINDS if MORE else [NFS]
        metafunc.parametrize("file_system", [None, *others], indirect=True, ids=lambda kind: str(kind or "here"))
