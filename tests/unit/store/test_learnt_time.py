"""What a store has told of its time, and a machine whose clock is set after that."""

from __future__ import annotations

from pathlib import Path

import pytest

from bucketcatalog import Catalog, ClockSkew, clock
from bucketcatalog.limits import HOUR, SECOND
from bucketcatalog.store import LocalStore, Store
from bucketcatalog.store.remote import FsspecStore


@pytest.fixture(params=["local", "remote"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """A store whose time is the machine's as it is really."""
    return LocalStore(tmp_path) if request.param == "local" else FsspecStore(f"memory://{clock.random_token()}")


@pytest.mark.parametrize("hours", [-24, 24])
@pytest.mark.parametrize("put_first", [True, False])
def test_a_clock_that_is_set_takes_no_store_along(
    store: Store, monkeypatch: pytest.MonkeyPatch, hours: int, put_first: bool
) -> None:
    real = clock.now_us
    if put_first:
        store.put("a", b"")
    else:
        store.now_us("w/")
    monkeypatch.setattr(clock, "now_us", lambda: real() + hours * HOUR)
    assert abs(store.now_us("w/") - real()) < SECOND


@pytest.mark.parametrize("hours", [-24, 24])
def test_a_commit_right_after_the_clock_was_set_is_refused(store: Store, monkeypatch: pytest.MonkeyPatch, hours: int) -> None:
    real = clock.now_us
    with Catalog(store).writer("w", clock=lambda: clock.now_us()) as writer:
        with writer.transaction() as tx:
            tx.put("harvest_errors", {"source": "s", "path": "a"})
        monkeypatch.setattr(clock, "now_us", lambda: real() + hours * HOUR)
        with pytest.raises(ClockSkew), writer.transaction() as tx:
            tx.put("harvest_errors", {"source": "s", "path": "b"})
