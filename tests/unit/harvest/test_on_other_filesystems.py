"""The tests of harvests from directories once more, on a file system whose listings tell no types.

``BUCKETCATALOG_MORE=1`` runs them on every kind.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from bucketcatalog.harvest.sources import descent, local

from ...kit.filesystems import KINDS, NFS, FileSystem, Kind
from . import test_harvest, test_local

MORE = os.environ.get("BUCKETCATALOG_MORE") == "1"
SLOW = {"test_a_huge_directory_comes_in_batches", "test_any_sequence_of_changes_and_runs_ends_with_what_is_on_disk"}
TOLD_OTHERWISE = {"test_what_vanishes_during_the_walk_is_no_error"}
"""Where there are no types an entry is asked about when it is listed: it is shown as it was then, though it vanishes after."""


@pytest.fixture(params=KINDS if MORE else [NFS], ids=str, autouse=True)
def system(request: pytest.FixtureRequest) -> Iterator[FileSystem]:
    kind: Kind = request.param
    with FileSystem(kind).used_by(local, descent) as used:
        yield used


for module in (test_local, test_harvest):
    left_out = TOLD_OTHERWISE if MORE else TOLD_OTHERWISE | SLOW
    globals().update({name: one for name, one in vars(module).items() if name.startswith("test_") and name not in left_out})
