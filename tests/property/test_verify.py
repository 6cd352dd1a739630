"""Random histories leave nothing that ``verify`` calls an error: what every writer writes is what the specification asks for.

``BUCKETCATALOG_VERIFIED_HISTORIES`` says how many are tried.
"""

from __future__ import annotations

import os

from hypothesis import given, settings

from bucketcatalog import Catalog
from bucketcatalog.checking.findings import Severity
from bucketcatalog.store.memory import MemoryStore

from .histories import histories
from .steps import History
from .test_histories import ANY_SPEED, run, still_clocks
from .world import Time

HISTORIES = int(os.environ.get("BUCKETCATALOG_VERIFIED_HISTORIES", "100"))


@settings(ANY_SPEED, max_examples=HISTORIES)
@given(history=histories())
def test_every_checkpoint_of_a_history_is_what_its_transactions_make(history: History) -> None:
    time = Time()
    store = MemoryStore(clock=time.now)
    run(history, store, time)
    with still_clocks(time):
        catalog = Catalog(store)
        findings = [finding for name in catalog.databases() for finding in catalog.verify(database=name, deep=True)]
    assert [str(finding) for finding in findings if finding.severity is Severity.ERROR] == []
