"""The store in memory: the contract, and who shares its objects."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

from bucketcatalog.store import MemoryStore, Store, open_store

from ...kit.store_contract import StoreContract, names_of


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def store(self) -> Store:
        return MemoryStore()


def test_stores_of_one_name_share_objects_and_others_do_not() -> None:
    MemoryStore("test-shared").put("a", b"x")
    assert MemoryStore("test-shared").get("a") == b"x"
    assert open_store("memory://test-shared").get("a") == b"x"
    assert names_of(MemoryStore("test-other").list("")) == []
    assert names_of(MemoryStore().list("")) == []


def test_url_of_a_store_without_a_name_reaches_it() -> None:
    store = MemoryStore()
    store.put("a", b"x")
    assert open_store(store.url).get("a") == b"x"


def test_each_store_has_its_own_clock_also_after_pickling() -> None:
    slow, fast = MemoryStore("test-clocks", clock=lambda: 5), MemoryStore("test-clocks", clock=lambda: 9)
    slow.put("a", b"x")
    assert (slow.now_us(), fast.now_us()) == (5, 9)
    assert fast.head("a").modified_us == 5
    assert pickle.loads(pickle.dumps(slow)).now_us() == 5


def test_store_pickled_into_another_process_is_an_error_and_not_empty() -> None:
    script = "import pickle, sys; pickle.loads(bytes.fromhex(sys.argv[1]))"
    pickled = pickle.dumps(MemoryStore("test-elsewhere")).hex()
    environment = {"PYTHONPATH": ":".join(sys.path)}
    result = subprocess.run([sys.executable, "-c", script, pickled], env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "[UNSUPPORTED_STORE] memory://test-elsewhere lives in another process." in result.stderr


def test_objects_are_not_changed_through_the_buffer_they_were_put_from() -> None:
    store, buffer = MemoryStore(), bytearray(b"before")
    store.put("a", buffer)  # type: ignore[arg-type]
    buffer[:] = b"after!"
    assert store.get("a") == b"before"
