"""What a put leaves in a directory when its process dies, and that it can be found and thrown away."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bucketcatalog.store import LocalStore
from bucketcatalog.store.base import UnfinishedPut

from ...kit.store_contract import names_of

_DIES_BEFORE_THE_RENAME = """
import os, signal, sys
from bucketcatalog.store import LocalStore
os.replace = os.rename = os.link = lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL)
LocalStore(sys.argv[1]).put("w/db/segments/x", b"x" * 1000)
"""


@pytest.fixture
def left(tmp_path: Path) -> LocalStore:
    """A store with one object, in which a process died in the middle of putting another."""
    store = LocalStore(tmp_path / "store")
    store.put("w/db/segments/a", b"a")
    done = subprocess.run([sys.executable, "-c", _DIES_BEFORE_THE_RENAME, str(tmp_path / "store")], check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    return store


def test_what_a_dead_put_left_is_found_and_no_listing_shows_it(left: LocalStore) -> None:
    (put,) = left.unfinished_puts()
    assert put.name.startswith("w/db/segments/.put-")
    assert abs(put.begun_us - time.time_ns() // 1000) < 60_000_000
    assert names_of(left.list("")) == ["w/db/segments/a"]


def test_it_is_thrown_away_once_and_nothing_else_is(left: LocalStore) -> None:
    (put,) = left.unfinished_puts()
    left.discard(put)
    left.discard(put)
    assert [*left.unfinished_puts()] == []
    assert names_of(left.list("")) == ["w/db/segments/a"]
    assert left.get("w/db/segments/a") == b"a"


@pytest.mark.parametrize("name", ["w/db/segments/a", "w", "../outside", "w/db/segments/put-x"])
def test_an_object_is_not_thrown_away_as_if_it_were_one(left: LocalStore, tmp_path: Path, name: str) -> None:
    (tmp_path / "outside").write_bytes(b"x")
    with pytest.raises(ValueError, match="not a temporary file"):
        left.discard(UnfinishedPut(name, 0))
    assert left.get("w/db/segments/a") == b"a" and (tmp_path / "outside").exists()


def test_a_store_that_is_not_there_has_none(tmp_path: Path) -> None:
    assert [*LocalStore(tmp_path / "none").unfinished_puts()] == []


def test_a_put_that_went_well_leaves_nothing(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    for number in range(3):
        store.put(f"w/{number}", os.urandom(10))
    assert [*store.unfinished_puts()] == []
