"""A put that is killed at any call of the system leaves the whole object or none, and nothing that anybody sees."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bucketcatalog.errors import ObjectNotFound
from bucketcatalog.store import LocalStore

from ...kit.store_contract import names_of

CHILD = Path(__file__).with_name("crash_child.py")
NAME = "w/db/transactions/00000000000000000001/x.txn"
DATA = bytes(range(256)) * 40


def is_whole(store: LocalStore) -> bool:
    try:
        data = store.get(NAME)
    except ObjectNotFound:
        return False
    assert data == DATA
    return True


@pytest.mark.parametrize("scenario", ["new root", "new directory", "same directory", "retry"])
def test_put_killed_at_any_system_call_leaves_all_or_nothing(tmp_path: Path, scenario: str) -> None:
    child = subprocess.run(
        [sys.executable, str(CHILD), str(tmp_path), scenario],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    ends = {name: int(status) for name, status in map(str.split, child.stdout.splitlines())}
    killed = [name for name, status in ends.items() if status == signal.SIGKILL]
    assert set(ends.values()) == {0, int(signal.SIGKILL)}
    assert len(killed) > 15

    whole, strays = set(), 0
    for name in killed:
        store, strays = LocalStore(tmp_path / name), strays + len([*(tmp_path / name).rglob(".put-*")])
        before = {f"w/db/transactions/{'0' * 20}/{file}.txn" for file in "xy"} if scenario != "new root" else set()
        before |= {NAME.replace("x.txn", "y.txn")} if scenario == "same directory" else set()
        if is_whole(store):
            whole.add(name)
        assert set(names_of(store.list(""))) == before | ({NAME} if name in whole else set())
        assert store.list_prefixes("") == (["w"] if before or name in whole else [])
        store.put(NAME, DATA)
        assert is_whole(store)
        assert set(names_of(store.list(""))) == before | {NAME}

    assert strays > 0, "no crash came between the making of the temporary file and its renaming"
    assert len(whole) == len(killed) if scenario == "retry" else 0 < len(whole) < len(killed)
