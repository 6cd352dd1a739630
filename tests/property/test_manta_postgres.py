"""Manta's service on the engine and on a real PostgreSQL: whatever is asked, both answer the same, except for what is meant to differ.

Where one fails, the shortest trace that does is printed.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import given

from ..kit.chance import SEARCHES, searching
from ..kit.manta.both import Both, sides
from ..kit.manta.differences import DIFFERENCES, Difference
from ..kit.manta.steps import Trace
from ..kit.manta.traces import traces
from ..kit.postgres import Postgres
from ..kit.postgres import postgres as postgres

STEPS = 300 if "BUCKETCATALOG_SEED" in os.environ else 100


@pytest.mark.long
@pytest.mark.parametrize("share", range(SEARCHES["manta"].shares))
def test_traces_end_as_on_postgres(share: int, postgres: Postgres) -> None:
    @searching("manta", share)
    @given(traces(steps=STEPS))
    def search(trace: Trace) -> None:
        with tempfile.TemporaryDirectory() as folder, postgres.schema() as schema, ExitStack() as stack:
            Both(trace, Path(folder), schema, stack).run()

    search()


@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda difference: difference.what)
def test_what_is_meant_to_differ_does(difference: Difference, postgres: Postgres, tmp_path: Path) -> None:
    with postgres.schema() as schema, sides(tmp_path, schema) as (ours, theirs):
        assert difference.show(ours) == difference.ours
        assert difference.show(theirs) == difference.theirs


def test_what_is_meant_to_differ_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "guide" / "manta-rfd.md").read_text()
    assert [each.what for each in DIFFERENCES if f"| {each.what} | {each.reason} |" not in page] == []
