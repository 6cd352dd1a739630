"""The crash points of a commit and of a checkpoint on the real server: each kind of store call once, before and after it.

``tests/property/test_crash_points.py`` tries every call, on other stores.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from bucketcatalog.store import Store
from bucketcatalog.store.faults import LostResponses
from bucketcatalog.store.s3.store import S3Store
from minio.process import Server

from ..kit.crash_points import STEPS, Bench, calls, crash, go_on, run, two_writers
from ..kit.ledger import compare

pytestmark = pytest.mark.filterwarnings("ignore::bucketcatalog.errors.CatalogWarning")


@pytest.fixture(scope="module")
def bench(server: Server, s3: Any) -> Bench:
    bucket, numbers = f"test-{uuid.uuid4().hex}", itertools.count()
    s3.create_bucket(Bucket=bucket)

    def fresh() -> Store:
        return S3Store(f"s3://{bucket}/{next(numbers)}", server.storage_options)

    return Bench(fresh, two_writers)


def kind(call: tuple[str, str]) -> tuple[str, ...]:
    """What is done, and to what kind of object or prefix."""
    method, name = call
    parts = name.split("/")
    return method, parts[2] if len(parts) > 2 else "", name[-5:] if "." in name[-5:] else ""


def first_of_each_kind(found: list[tuple[str, str]]) -> Iterator[int]:
    kinds = [kind(call) for call in found]
    return (number for number, each in enumerate(kinds) if each not in kinds[:number])


@pytest.mark.parametrize("name", STEPS)
def test_a_crash_at_each_kind_of_store_call_loses_and_doubles_nothing(bench: Bench, name: str) -> None:
    step = STEPS[name]
    drafts = step.drafts(bench.world)
    found = calls(bench, step, drafts)
    points = [*itertools.product(first_of_each_kind(found), (False, True))]
    continued: set[int] = set()
    committed = sum(crash(bench, step, drafts, at, late=late, continued=continued) for at, late in points)
    assert {method for method, _ in found} >= {"list", "list_prefixes", "put"}
    assert len(points) >= 8 and len(continued) >= 2
    assert (committed > 0) == (step.transactions > 0)


@pytest.mark.parametrize("landed", [False, True], ids=["lost request", "lost answer"])
@pytest.mark.parametrize("name", STEPS)
def test_a_lost_response_to_each_put_is_met_with_the_same_bytes(bench: Bench, name: str, landed: bool) -> None:
    step = STEPS[name]
    drafts = step.drafts(bench.world)
    puts = [called for method, called in calls(bench, step, drafts) if method == "put"]
    store, ledger = bench.copy()
    run(LostResponses(store, landed=landed, puts=range(0, 2 * len(puts), 2)), step, drafts)
    assert ledger.admit(store, drafts) == step.transactions
    compare(store, ledger)
    go_on(store, ledger, step, drafts, done=step.transactions)
