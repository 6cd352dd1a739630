"""What events ended or replaced, compared with what the fold of the events before each of them says, for histories of all kinds."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from bucketcatalog import clock
from bucketcatalog.format.definitions import core_tables
from bucketcatalog.model.events import Event, EventKind, VersionName, facts_of_events
from bucketcatalog.model.facts import NO_STAMP, NO_TRANSACTIONS, Facts, Kind, transaction_table
from bucketcatalog.model.render import output_schema, render, version_names
from bucketcatalog.model.uuids import uuid_text
from bucketcatalog.state.fold import fold
from bucketcatalog.state.pre_images import before
from bucketcatalog.state.read import empty_rows

from ...kit.world import BUCKET, OWNER, START

OBJECTS, DROPPED = core_tables()["objects"], core_tables()["harvest_errors"]
TRANSACTIONS = 8
UUIDS = [clock.uuid7(START + n).bytes for n in range(TRANSACTIONS)]
STAMPS = [(START + n, "w", n, UUIDS[n]) for n in range(TRANSACTIONS)]
LENGTH = "8"


class Placed(NamedTuple):
    """An event in a transaction."""

    transaction: int
    sequence: int
    event: Event


def facts_of(events: Sequence[Placed]) -> Facts:
    placed = [(each.transaction, each.sequence, each.event) for each in events]
    return facts_of_events(OBJECTS, placed, transaction_table(STAMPS)) if placed else Facts(NO_TRANSACTIONS, empty_rows(OBJECTS))


def history(chance: random.Random, *, plain: bool = False) -> list[Placed]:
    """Events of two keys, which name each other's versions by mistake, come twice in a transaction, and before what they name.

    ``plain``: none of them names a version.
    """
    found: list[Placed] = []
    for transaction in range(TRANSACTIONS):
        for sequence in range(chance.randrange(4)):
            key = {"1": OWNER, "2": BUCKET, "3": chance.choice("ab")}
            row = key | {"4": uuid_text(bytes([len(found)] * 16)), LENGTH: len(found)}
            name = VersionName(UUIDS[chance.randrange(TRANSACTIONS)], chance.randrange(3))
            blind = [*(Event("objects", EventKind.PUT, row) for _ in range(2)), Event("objects", EventKind.DELETE, key)]
            naming = [
                Event("objects", EventKind.UPDATE, row, name),
                Event("objects", EventKind.UPDATE, row, name),
                Event("objects", EventKind.DELETE, key, name),
                Event("objects", EventKind.PURGE, key, name),
            ]
            event = chance.choice(blind if plain else [*blind, *naming])
            found.append(Placed(transaction, sequence, event))
    return found


def live(events: Sequence[Placed], name: str) -> tuple[str, Any] | None:
    """The version that is live under a name, and its row with the event that gave it."""
    state = fold(facts_of(events), OBJECTS)
    is_live = (state.numbers("_kind") == Kind.VERSION) & (state.stamps("end") == NO_STAMP)
    found = state.filter(pa.array(is_live))
    columns = ["name", "id", "content_length", "created", "modified", "_version"]
    rows = render(found, OBJECTS, output_schema(OBJECTS, columns=columns)).to_pylist()
    (row,) = [row for row in rows if row["name"] == name] or [None]
    return None if row is None else (row.pop("_version"), row)


def expected(events: Sequence[Placed]) -> Iterator[tuple[str, Any] | None]:
    """What was live just before each event, where that is another version, or has another row, just after it."""
    for number, each in enumerate(events):
        earlier, now = (live(events[:stop], each.event.row["3"]) for stop in (number, number + 1))
        yield earlier if earlier != now else None


def found(state: Sequence[Placed], events: Sequence[Placed]) -> list[tuple[str, Any] | None]:
    """The same as ``before`` has it, of events after the fold of others."""
    made = before(fold(facts_of(state), OBJECTS) if state else facts_of(state), facts_of(events), OBJECTS)
    names = version_names(*made.versions).to_pylist()
    columns = ["name", "id", "content_length", "created", "modified"]
    rows = render(made.rows, OBJECTS, output_schema(OBJECTS, columns=columns)).take(made.at).to_pylist()
    unknown = np.asarray(made.at.is_null())
    return [None if name is None else (name, None if un else row) for name, row, un in zip(names, rows, unknown, strict=True)]


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("seed", range(30))
def test_it_is_what_was_live_before_an_event_that_changed_that(seed: int, plain: bool) -> None:
    events = history(random.Random(seed), plain=plain)
    wanted = list(expected(events))
    for cut in range(0, len(events), 3):
        assert found(events[:cut], events[cut:]) == wanted[cut:], cut


@pytest.mark.parametrize("seed", range(60))
def test_of_late_events_that_name_nothing_the_version_is_known_whatever_the_state_has_seen(seed: int) -> None:
    chance = random.Random(seed)
    events = history(chance)
    wanted = dict(zip(map(id, events), expected(events), strict=True))
    blind = [
        each
        for each in events
        if each.event.kind is EventKind.PUT or (each.event.kind is EventKind.DELETE and each.event.version is None)
    ]
    late = [each for each in blind if chance.random() < 0.5] or blind
    rest = [each for each in events if not any(each is other for other in late)]
    names = [None if each is None else each[0] for each in found(rest, late)]
    assert names == [None if each is None else each[0] for each in (wanted[id(one)] for one in late)]


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("seed", range(60))
def test_of_late_events_the_version_is_known_and_its_row_where_the_state_still_has_it(seed: int, plain: bool) -> None:
    chance = random.Random(seed)
    events = history(chance, plain=plain)
    wanted = dict(zip(map(id, events), expected(events), strict=True))
    late = [each for each in events if chance.random() < 0.5] or events
    rest = [each for each in events if not any(each is other for other in late)]
    for mine, theirs in zip(found(rest, late), (wanted[id(each)] for each in late), strict=True):
        assert (mine is None) == (theirs is None)
        if mine is not None and theirs is not None:
            assert mine[0] == theirs[0]
            assert mine[1] in (None, theirs[1])


def test_most_rows_before_late_events_are_known() -> None:
    known = itertools.chain.from_iterable(
        found(events[::2], events[1::2]) for events in (history(random.Random(seed)) for seed in range(50)) if len(events) > 1
    )
    rows = [each[1] is not None for each in known if each is not None]
    assert sum(rows) > 0.8 * len(rows) > 20
