"""Random histories, then damage: whatever reads on is right as far as it goes, and a repair leaves nothing that ``verify`` warns of."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bucketcatalog import Catalog, CorruptionError
from bucketcatalog.maintain.verify.findings import Severity
from bucketcatalog.query.snapshot import Snapshot
from bucketcatalog.store import Store
from bucketcatalog.store.memory import MemoryStore

from ..kit.chance import searching
from ..kit.machine.driver import quiet
from ..kit.machine.histories import histories
from ..kit.machine.repairing import damage
from ..kit.machine.running import run, still_clocks
from ..kit.machine.steps import History
from ..kit.machine.world import Time


@searching("damage")
@given(history=histories(), chance=st.randoms(use_true_random=False))
def test_whatever_is_damaged_but_transactions_loses_nothing(history: History, chance: random.Random) -> None:
    """By default an answer is right or an error; who reads on past checkpoints has everything, and so has everybody after a repair."""
    time = Time()
    store = MemoryStore(clock=time.now)
    run(history, store, time)
    with still_clocks(time), quiet():
        catalog = Catalog(store)
        (name,) = catalog.databases() or [None]
        damaged = [info.name for info in store.list("") if info.name.endswith((".ckpt", ".parquet"))]
        if name is None or not damaged:
            return
        expected = everything(catalog.snapshot(database=name))
        for file in chance.sample(damaged, min(len(damaged), 2)):
            damage(store, file, chance)
        assert answer(store, name, damaged) in (expected, "an error that names a file")
        lenient = Catalog(store).snapshot(database=name, ignore_corruption=True)
        found = everything(lenient)
        for table, rows in found.items():
            assert [row for row in rows if row not in expected[table]] == []
            assert rows == expected[table] or any(held.table in table for loss in lenient.missing for held in loss.held)
        time.pass_by(3_600_000_000)
        lenient = Catalog(store).snapshot(database=name, ignore_corruption=True)
        forked = {fork.writer for fork in lenient.view.forks if fork.open}
        Catalog(store).repair(database=name, join=forked, dry_run=False, clock=time.now)
        assert everything(Catalog(store).snapshot(database=name, strict=True)) == expected
        findings = Catalog(store).verify(database=name, deep=True)
        assert [str(finding) for finding in findings if finding.severity is not Severity.INFO] == []


def answer(store: Store, database: str, damaged: list[str]) -> object:
    """What a reader that stops at damage gets."""
    try:
        return everything(Catalog(store).snapshot(database=database))
    except CorruptionError as error:
        return "an error that names a file" if any(file in error.message for file in damaged) else error.message


def everything(snapshot: Snapshot) -> dict[str, list[dict[str, Any]]]:
    """The live rows and tombstones of each table, with their versions."""
    shown = {}
    for table in ("objects", "deleted_objects", "buckets", "deleted_buckets"):
        columns = [*snapshot.scan(table).schema.names, "_version"]
        shown[table] = snapshot.scan(table, columns=columns).to_arrow().to_pylist()
    return shown
