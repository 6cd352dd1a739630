"""Events and differences of tables at random: narrowed by key, by column, and in tasks they are what is left of all of them."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bucketcatalog.format import segments as format_segments
from bucketcatalog.log import segments
from bucketcatalog.query import events as query_events
from bucketcatalog.query.changes import Changes
from bucketcatalog.query.difference import Diff
from bucketcatalog.state import feed, shares
from bucketcatalog.state.contents import TableState

from ..kit.chance import searching
from ..kit.declared_history import history
from ..kit.machine.conditions import allows, condition
from ..kit.machine.declaring import NAME, Declared, bits, declared
from ..kit.world import World

Row = dict[str, Any]
Made = Callable[[dict[str, Any]], Changes | Diff]


@pytest.fixture(scope="module", autouse=True)
def few_rows() -> Iterator[None]:
    """Few events make a segment, of row groups of three rows; few rows a slice, and every part a task."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (format_segments, segments):
            patch.setattr(module, "ROW_GROUP_ROWS", 3)
        patch.setattr("bucketcatalog.checkpoint.plan.INLINE_BYTES", 0)
        patch.setattr("bucketcatalog.write.staging.MAX_ACTIONS", 2)
        patch.setattr("bucketcatalog.write.staging.INLINE_ROWS", 4)
        patch.setitem(TableState.plan.__kwdefaults__, "target", 4)
        patch.setattr(shares, "_FEWEST_ROWS", 1 << 30)
        patch.setattr(query_events, "_WORTH", 1 << 30)
        yield


@searching("changes")
@given(seed=st.integers(0, (1 << 32) - 1))
def test_what_has_changed_is_the_same_however_it_is_asked_for(seed: int) -> None:
    table, random = declared(seed), Random(seed)
    world = history(table, random)
    goes_on(world, table, random)
    start = random.choice([None, *(f"w@{n}" for n in range(3))])

    whole = rows_of(events(world, start)({}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(feed, "ORDERED_ROWS", random.randint(1, 9))
        found = rows_of(events(world, start)({}))
        assert by_key(found, table) == by_key(whole, table)
        assert transactions(found) == transactions(whole)
        is_same(world, table, random, events(world, start), found)

    differing = rows_of(difference(world, start)({}))
    is_same(world, table, random, difference(world, start), differing)


def goes_on(world: World, table: Declared, random: Random) -> None:
    """Purge some tombstones, and often merge all that there is."""
    if table.keeps_tombstones:
        columns = [*(column.name for column in table.key), "_version"]
        ended = world.snapshot().scan(f"deleted_{NAME}", columns=columns).to_arrow().to_pylist()
        purged = random.sample(ended, min(5, len(ended)))
        if purged:
            with world.writer() as writer:
                world.commit(writer, ("purge", NAME, purged))
    if random.random() < 0.6:
        with world.writer("compactor-1") as compactor:
            compactor.checkpoint(scope="all", full=True)


def events(world: World, start: str | None) -> Made:
    """The events since then that meet conditions."""
    return lambda where: world.catalog().changes(table=NAME, start=start, where=where)


def difference(world: World, start: str | None) -> Made:
    """The difference to then of what meets conditions."""
    return lambda where: world.catalog().diff(table=NAME, start=start, where=where)


def is_same(world: World, table: Declared, random: Random, made: Made, everything: Sequence[Row]) -> None:
    """Whether conditions on the key and columns leave of everything what they should, at once and in tasks."""
    columns = list(everything[0]) if everything else made({}).schema.names
    for _ in range(4):
        chosen = random.sample(table.key, random.randint(0, len(table.key)))
        where = {column.name: condition(column, random, [row[column.name] for row in everything]) for column in chosen}
        asked = random.sample(columns, random.randint(1, len(columns)))
        left = [row for row in everything if all(allows(each, row[name]) for name, each in where.items())]
        expected = [bits({name: row[name] for name in asked}) for row in left]

        assert [bits(row) for row in rows_of(made(where))] == [bits(row) for row in left], where
        read = made(where).only(asked)
        assert read.schema.names == asked
        assert [bits(row) for row in rows_of(read)] == expected, (where, asked)
        tasks = pickle.loads(pickle.dumps(read.tasks(random.choice((1, 7, 1 << 20)))))
        assert [bits(row) for row in in_tasks(world, tasks)] == expected, (where, asked)


def rows_of(read: Changes | Diff) -> list[Row]:
    found: list[Row] = read.to_arrow().to_pylist()
    return found


def in_tasks(world: World, tasks: Sequence[Any]) -> Iterator[Row]:
    """What other processes read."""
    for task in tasks:
        for rows in task.read(world.store):
            yield from rows.to_pylist()


def transactions(events: Sequence[Row]) -> list[str]:
    """Whose events they are, each once, in the order in which they come."""
    return list(dict.fromkeys(event["_stamp"].partition(":")[0] for event in events))


def by_key(events: Sequence[Row], table: Declared) -> dict[Any, list[Any]]:
    """The events of each key in their order."""
    found: dict[Any, list[Any]] = {}
    for event in events:
        found.setdefault(table.order(event), []).append(bits(event))
    return found


@searching("changes before")
@given(seed=st.integers(0, (1 << 32) - 1))
def test_what_was_before_an_event_is_the_same_from_wherever_events_are_read(seed: int) -> None:
    """From the beginning all is found among the events, from later on in the state, and in tasks by ranges of keys."""
    table, random = declared(seed), Random(seed)
    world = history(table, random)
    goes_on(world, table, random)
    columns = random.sample([column.name for column in table.columns], random.randint(1, 3))
    asked = random.choice([True, columns])

    whole = {row["_stamp"]: bits(row) for row in rows_of(world.catalog().changes(table=NAME, pre_images=asked))}
    plain = {row["_stamp"]: bits(row) for row in rows_of(world.catalog().changes(table=NAME))}
    told = ("_before", "_version_before")
    assert {stamp: {name: row[name] for name in row if name not in told} for stamp, row in whole.items()} == plain

    start = random.choice([f"w@{n}" for n in range(3)])
    later = rows_of(world.catalog().changes(table=NAME, start=start))
    since = world.catalog().changes(table=NAME, start=start, pre_images=asked)
    assert {row["_stamp"]: bits(row) for row in rows_of(since)} == {row["_stamp"]: whole[row["_stamp"]] for row in later}
    tasks = pickle.loads(pickle.dumps(since.tasks(random.choice((1, 7, 1 << 20)))))
    assert {row["_stamp"]: bits(row) for row in in_tasks(world, tasks)} == {row["_stamp"]: whole[row["_stamp"]] for row in later}
