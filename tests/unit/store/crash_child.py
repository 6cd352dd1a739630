"""Puts one object in a child process per crash point; each child kills itself before or after its n-th call of the system.

Usage: crash_child.py ROOTS SCENARIO. Below ROOTS, ``<n>-<before|after>/`` is what crash n leaves. Prints the names of these
directories, each with how its child ended.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from bucketcatalog.store import LocalStore

NAME = "w/db/transactions/00000000000000000001/x.txn"
DATA = bytes(range(256)) * 40
CALLS = ["open", "mkdir", "stat", "fstat", "write", "fsync", "close", "rename", "unlink"]


def kill_at(number: int, when: str) -> None:
    """Let this process die at call ``number`` of those in ``CALLS``."""
    made = 0

    def dying(call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*args: Any, **options: Any) -> Any:
            nonlocal made
            mine, made = made, made + 1
            if mine == number and when == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            if mine == number and when == "within" and call.__name__ == "write":
                call(args[0], args[1][: len(args[1]) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            try:
                return call(*args, **options)
            finally:  # also after a call that failed
                if mine == number:
                    os.kill(os.getpid(), signal.SIGKILL)

        return wrapper

    for name in CALLS:
        setattr(os, name, dying(getattr(os, name)))


def prepare(store: LocalStore, scenario: str) -> None:
    """What was there before the put that dies."""
    if scenario != "new root":
        store.put("w/db/transactions/00000000000000000000/x.txn", DATA)
        store.put("w/db/transactions/00000000000000000000/y.txn", DATA)
    if scenario == "same directory":
        store.put(NAME.replace("x.txn", "y.txn"), DATA)
    if scenario == "retry":
        store.put(NAME, DATA)


def main() -> None:
    roots, scenario = sys.argv[1:]
    for when in ("before", "within", "after"):
        number, ended = 0, -1
        while ended != 0:
            store = LocalStore(f"{roots}/{number}-{when}")
            prepare(store, scenario)
            child = os.fork()
            if child == 0:
                kill_at(number, when)
                store.put(NAME, DATA)
                os._exit(0)
            ended = os.waitpid(child, 0)[1]
            print(f"{number}-{when}", ended)
            number += 1


main()
