"""Conditions on tables at random, whose blocks are of a few rows: each scan gives what is left of all rows, whatever it does not read.

Nothing is left unread where nothing is asked for, so the rows that conditions are checked on in here are those of a whole scan.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bucketcatalog import between
from bucketcatalog.model.render import REQUESTED
from bucketcatalog.query.scan import Scan

from ..kit.chance import searching
from ..kit.declared_history import history, in_small_blocks
from ..kit.machine.conditions import INCLUSIVE, allows, condition
from ..kit.machine.declaring import NAME, Declared, bits, declared
from ..kit.world import World

Row = dict[str, Any]


@pytest.fixture(scope="module", autouse=True)
def blocks_of_few_rows() -> Iterator[None]:
    with in_small_blocks():
        yield


@searching("conditions")
@given(seed=st.integers(0, (1 << 32) - 1))
def test_a_scan_with_conditions_is_what_they_allow_of_the_whole(seed: int) -> None:
    table, random = declared(seed), Random(seed)
    world = history(table, random)
    for name in [NAME, f"deleted_{NAME}"][: 1 + table.keeps_tombstones]:
        snapshot = world.snapshot()
        columns = [*(column.name for column in table.columns), *REQUESTED, *(["deleted_at"] if name != NAME else [])]
        everything = snapshot.scan(name, columns=columns).to_arrow().to_pylist()
        for at in range(5):
            where = conditions(table, random, everything)
            expected = [row for row in everything if all(allows(asked, row[column]) for column, asked in where.items())]
            scan = snapshot.scan(name, columns=columns, where=where)
            assert isinstance(scan, Scan)
            assert [bits(row) for row in scan.to_arrow().to_pylist()] == [bits(row) for row in expected], where
            assert at or [bits(row) for row in in_tasks(world, scan)] == [bits(row) for row in expected], where


def conditions(table: Declared, random: Random, rows: Iterable[Mapping[str, Any]]) -> Row:
    """Conditions on some columns, and on stamps now and then."""
    rows = list(rows)
    chosen = random.sample(table.columns, random.choice((1, 1, 2, 3)))
    where = {column.name: condition(column, random, [row[column.name] for row in rows]) for column in chosen}
    for name in (*REQUESTED, "deleted_at"):
        seen = [row[name] for row in rows if name in row]
        if seen and random.random() < 0.2:
            low, high = (random.choice([None, *seen]) for _ in range(2))
            where[name] = random.choice([low, [low, high], between(low, high, inclusive=random.choice(INCLUSIVE))])
    return where


def in_tasks(world: World, scan: Scan) -> list[Row]:
    """What is read of a scan in other processes."""
    sent = pickle.loads(pickle.dumps(scan.tasks(9)))
    return [row for task in sent for rows in task.read(world.store) for row in rows.select(scan.schema.names).to_pylist()]
