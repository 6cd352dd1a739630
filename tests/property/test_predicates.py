"""Conditions at random, as text and as expressions, on tables at random whose blocks are of a few rows: each is true of what a scan gives.

Which rows that is of text is said row by row in ``kit.predicates``, and of an expression by Arrow on all rows.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bucketcatalog import Catalog, InvalidOption
from bucketcatalog.query.reads import Read

from ..kit.chance import searching
from ..kit.declared_history import history, in_small_blocks
from ..kit.machine.declaring import NAME, Declared, bits, declared
from ..kit.predicates import expressed, said
from ..kit.world import World

Row = dict[str, Any]


@pytest.fixture(scope="module", autouse=True)
def blocks_of_few_rows() -> Iterator[None]:
    with in_small_blocks():
        yield


@searching("predicates")
@given(seed=st.integers(0, (1 << 32) - 1))
def test_a_predicate_is_true_of_the_rows_of_a_scan_and_of_no_others(seed: int) -> None:
    table, random = declared(seed), Random(seed)
    world = history(table, random)
    snapshot = world.snapshot()
    for name in [NAME, f"deleted_{NAME}"][: 1 + table.keeps_tombstones]:
        whole = snapshot.scan(name).to_arrow()
        rows = whole.to_pylist()
        for at in range(8):
            condition = said(table, random, rows)
            expected = [row for row in rows if condition.of(row)]
            is_that(world, snapshot.scan(name, where=condition.text), expected, condition.text, in_tasks=not at)
            expression = expressed(table, random, whole)
            try:
                kept = whole.filter(expression)
            except pa.ArrowException:
                continue
            is_that(world, snapshot.scan(name, where=expression), kept.to_pylist(), str(expression), in_tasks=not at)


@searching("predicates of changes")
@given(seed=st.integers(0, (1 << 32) - 1))
def test_a_predicate_on_keys_is_true_of_the_events_and_differences_that_are_shown(seed: int) -> None:
    table, random = declared(seed), Random(seed)
    world = history(table, random)
    of_keys = Declared(**{**vars(table), "columns": table.key})
    catalog, start = Catalog(world.store), random.choice([None, "w@0", "w@1"])
    for read in (catalog.changes, catalog.diff):
        whole = read(table=NAME, start=start)
        rows, shown = whole.to_arrow().to_pylist(), whole.to_arrow()
        for _ in range(4):
            condition = said(of_keys, random, rows)
            found = read(table=NAME, start=start, where=condition.text)
            expected = [bits(row) for row in rows if condition.of(row)]
            assert [bits(row) for row in found.to_arrow().to_pylist()] == expected, condition.text
            tasks = pickle.loads(pickle.dumps(found.tasks(9)))
            sent = [row for task in tasks for part in task.read(world.store) for row in part.to_pylist()]
            assert sorted(map(repr, map(bits, sent))) == sorted(map(repr, expected)), condition.text
            expression = expressed(of_keys, random, shown)
            try:
                kept = shown.filter(expression)
            except pa.ArrowException:
                continue
            found = read(table=NAME, start=start, where=expression)
            assert [bits(row) for row in found.to_arrow().to_pylist()] == [bits(row) for row in kept.to_pylist()], str(expression)


def is_that(world: World, scan: Any, expected: list[Row], condition: str, *, in_tasks: bool) -> None:
    """The rows of a scan, here and in other processes, are these in their order."""
    assert isinstance(scan, Read)
    wanted = [bits(row) for row in expected]
    assert [bits(row) for row in scan.to_arrow().to_pylist()] == wanted, condition
    assert scan.count() == len(wanted), condition
    if in_tasks:
        sent = pickle.loads(pickle.dumps(scan.tasks(9)))
        found = [row for task in sent for rows in task.read(world.store) for row in rows.select(scan.schema.names).to_pylist()]
        assert [bits(row) for row in found] == wanted, condition


def test_what_does_not_fit_is_refused_whatever_the_table() -> None:
    table = declared(1)
    world = history(table, Random(1))
    with pytest.raises(InvalidOption, match="has no column 'nothing'"):
        world.snapshot().scan(NAME, where="nothing = 1")
