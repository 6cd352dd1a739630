"""Hand cases for each rule of docs/spec/fold.md: what the events of one key make, in whatever order and parts they are folded."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from bucketcatalog import clock
from bucketcatalog.format.definitions import core_tables
from bucketcatalog.model.events import Event, EventKind, VersionName, facts_of_events
from bucketcatalog.model.facts import NO_STAMP, End, Facts, Kind, concat, transaction_table
from bucketcatalog.model.uuids import uuid_bytes, uuid_text
from bucketcatalog.state.conflicts import conflicts
from bucketcatalog.state.fold import fold

from ...kit.world import BUCKET, OWNER, START

TABLE = core_tables()["objects"]
DROPPED = core_tables()["harvest_errors"]
UUIDS = [clock.uuid7(START + n).bytes for n in range(12)]
KEY = {"1": OWNER, "2": BUCKET, "3": "k"}


def ident(number: int) -> str:
    """An id for each number."""
    return uuid_text(bytes([number] * 16))


ID, LENGTH = "4", "8"


@dataclass(frozen=True)
class At:
    """An event at a time: the commit at ``time`` (0 to 11) by writer ``w``, its ``seq``-th event."""

    time: int
    event: Event
    seq: int = 0


def name(time: int, seq: int = 0) -> VersionName:
    return VersionName(UUIDS[time], seq)


def put(time: int, value: int | None = None, *, seq: int = 0, **more: Any) -> At:
    row = KEY | {ID: ident(time), LENGTH: time if value is None else value}
    return At(time, Event("objects", EventKind.PUT, row, **more), seq)


def update(time: int, of: VersionName, value: int, *, seq: int = 0) -> At:
    return At(time, Event("objects", EventKind.UPDATE, KEY | {ID: ident(255), LENGTH: value}, of), seq)


def delete(time: int, of: VersionName | None = None, *, seq: int = 0, **more: Any) -> At:
    return At(time, Event("objects", EventKind.DELETE, KEY, of, **more), seq)


def purge(time: int, of: VersionName, *, seq: int = 0) -> At:
    return At(time, Event("objects", EventKind.PURGE, KEY, of), seq)


def facts(events: Sequence[At]) -> Facts:
    stamps = transaction_table({(START + at.time, "w", at.time, UUIDS[at.time]) for at in events})
    position = {uuid: n for n, uuid in enumerate(stamps["uuid"].to_pylist())}
    return facts_of_events(TABLE, [(position[UUIDS[at.time]], at.seq, at.event) for at in events], stamps)


Row = tuple[Any, ...]


def shown(state: Facts) -> list[Row]:
    """Per fact: kind, time and number of its stamp, its value, when its row was written, when and how it ended, whether it is purged."""
    times = [time - START for time in state.transactions["commit_time"].to_pylist()] if len(state) else []

    def when(stamp: int) -> tuple[int, int] | None:
        return None if stamp == NO_STAMP else (times[stamp >> 32], stamp & 0xFFFFFFFF)

    values = state.rows[LENGTH].to_pylist() if LENGTH in state.rows.column_names else [None] * len(state)
    found = zip(
        state.numbers("_kind"),
        state.stamps(),
        values,
        state.stamps("row"),
        state.stamps("end"),
        state.numbers("_end_kind"),
        state.numbers("_purged"),
        strict=True,
    )
    return [(Kind(k).name, when(s), v, when(r), when(e), End(how).name, bool(p)) for k, s, v, r, e, how, p in found]


def version(
    time: int,
    value: int | None,
    *,
    seq: int = 0,
    row: tuple[int, int] | None = None,
    end: tuple[int, int] | None = None,
    by: str = "NONE",
    purged: bool = False,
) -> Row:
    return ("VERSION", (time, seq), value, row, end, by, purged)


CASES: dict[str, tuple[list[At], list[Row]]] = {
    "one put is live": ([put(1)], [version(1, 1)]),
    "the next put ends a version": ([put(1), put(2)], [version(1, 1, end=(2, 0), by="PUT"), version(2, 2)]),
    "the next blind delete ends a version": ([put(1), delete(2)], [version(1, 1, end=(2, 0), by="DELETE")]),
    "a naming delete ends the version it names": (
        [put(1), put(3), delete(4, name(3))],
        [version(1, 1, end=(3, 0), by="PUT"), version(3, 3, end=(4, 0), by="NAMED_DELETE")],
    ),
    "a naming delete does not end another version": (
        [put(1), put(2), delete(3, name(1))],
        [version(1, 1, end=(2, 0), by="PUT"), version(2, 2)],
    ),
    "the earliest end counts": (
        [put(1), delete(5), delete(3, name(1)), put(4)],
        [version(1, 1, end=(3, 0), by="NAMED_DELETE"), version(4, 4, end=(5, 0), by="DELETE")],
    ),
    "a blind delete before everything is a stub": (
        [delete(1), put(2)],
        [("DELETE", (1, 0), None, None, None, "NONE", False), version(2, 2)],
    ),
    "a second blind delete is a stub": (
        [put(1), delete(2), delete(3)],
        [version(1, 1, end=(2, 0), by="DELETE"), ("DELETE", (3, 0), None, None, None, "NONE", False)],
    ),
    "a blind delete that an earlier end displaces is a stub again": (
        [put(1), delete(3), delete(2, name(1))],
        [version(1, 1, end=(2, 0), by="NAMED_DELETE"), ("DELETE", (3, 0), None, None, None, "NONE", False)],
    ),
    "a put between two tombstones changes the first one's end": (
        [put(1), put(5), delete(6), put(3)],
        [version(1, 1, end=(3, 0), by="PUT"), version(3, 3, end=(5, 0), by="PUT"), version(5, 5, end=(6, 0), by="DELETE")],
    ),
    "a half of a move says so": ([put(1), delete(2, name(1), moved=True)], [version(1, 1, end=(2, 0), by="MOVED")]),
    "the latest update is the row": (
        [put(1), update(3, name(1), 30), update(2, name(1), 20)],
        [version(1, 30, row=(3, 0))],
    ),
    "an ended version is updated too": (
        [put(1), put(2), update(3, name(1), 30)],
        [version(1, 30, row=(3, 0), end=(2, 0), by="PUT"), version(2, 2)],
    ),
    "an update stamped before its version has no effect": ([put(3), update(2, name(3), 20)], [version(3, 3)]),
    "a delete stamped before its version has no effect": ([put(3), delete(2, name(3))], [version(3, 3)]),
    "an update of an unseen version waits": (
        [update(3, name(1), 30), update(2, name(1), 20)],
        [("NAMED", None, 30, (3, 0), None, "NONE", False)],
    ),
    "an update that has no effect leaves nothing of a name": ([update(2, name(3), 20)], []),
    "an update that has no effect leaves no row beside an end": (
        [update(2, name(3), 20), delete(5, name(3))],
        [("NAMED", None, None, None, (5, 0), "NAMED_DELETE", False)],
    ),
    "an update that has no effect leaves no row beside a purge": (
        [update(2, name(3), 20), purge(1, name(3))],
        [("NAMED", None, None, None, None, "NONE", True)],
    ),
    "a purge of a live version waits for its end": ([put(1), purge(2, name(1))], [version(1, 1, purged=True)]),
    "a purge forgets the row of an ended version whatever its stamp": (
        [put(3), delete(5), purge(1, name(3))],
        [version(3, None, end=(5, 0), by="DELETE", purged=True)],
    ),
    "events of one transaction count in their order": (
        [put(1, seq=0), delete(1, seq=1), put(1, 7, seq=2)],
        [version(1, 1, end=(1, 1), by="DELETE"), version(1, 7, seq=2)],
    ),
    "an update in its version's transaction counts if it comes later": (
        [put(1, seq=1), update(1, name(1, 1), 9, seq=2)],
        [version(1, 9, seq=1, row=(1, 2))],
    ),
    "an update in its version's transaction does not count if it comes earlier": (
        [put(1, seq=1), update(1, name(1, 1), 9, seq=0)],
        [version(1, 1, seq=1)],
    ),
    "a delete in its version's transaction counts if it comes later": (
        [put(1, seq=1), delete(1, name(1, 1), seq=2)],
        [version(1, 1, seq=1, end=(1, 2), by="NAMED_DELETE")],
    ),
    "a delete in its version's transaction does not count if it comes earlier": (
        [put(1, seq=1), delete(1, name(1, 1), seq=0)],
        [version(1, 1, seq=1)],
    ),
    "a put that was ended by name before the next put keeps that end": (
        [put(1), delete(2, name(1)), put(3)],
        [version(1, 1, end=(2, 0), by="NAMED_DELETE"), version(3, 3)],
    ),
}


def without_purged_live(rows: list[Row]) -> list[Row]:
    """A purged flag on a live version is shown or waits as a stub of its own: either way the version is live."""
    return rows


@pytest.mark.parametrize("case", CASES)
def test_events_make_the_state_that_the_rules_say_in_any_order(case: str) -> None:
    events, expected = CASES[case]

    for order in itertools.permutations(events):
        assert shown(fold(facts(order), TABLE)) == expected


@pytest.mark.parametrize("case", CASES)
def test_folding_parts_in_any_tree_equals_folding_all_at_once(case: str) -> None:
    events, expected = CASES[case]

    for order in itertools.permutations(events):
        for at in range(1, len(order)):
            left, right = fold(facts(order[:at]), TABLE), fold(facts(order[at:]), TABLE)
            assert shown(fold(concat([left, right]), TABLE)) == expected
            assert shown(fold(concat([right, left, left, facts(order)]), TABLE)) == expected


@pytest.mark.parametrize("case", CASES)
def test_folding_again_changes_nothing(case: str) -> None:
    state = fold(facts(CASES[case][0]), TABLE)

    assert shown(fold(state, TABLE)) == shown(state)


def test_no_events_make_no_state() -> None:
    assert len(fold(facts([]), TABLE)) == 0


def test_updates_change_neither_key_nor_id_nor_data_reference() -> None:
    state = fold(facts([put(1), update(2, name(1), 20)]), TABLE)

    assert state.rows[ID].to_pylist() == [ident(1)] and state.rows[LENGTH].to_pylist() == [20]


def test_a_name_has_the_whole_row_of_its_latest_update_and_expects_nothing_however_it_was_folded() -> None:
    def with_id(time: int, value: int) -> At:
        row = KEY | {ID: ident(time), LENGTH: value}
        return At(time, Event("objects", EventKind.UPDATE, row, name(1), has_expectation=True))

    events = [with_id(2, 20), with_id(3, 30), delete(4, name(1), has_expectation=True), purge(5, name(1))]
    for order in itertools.permutations(events):
        for at in range(len(order)):
            parts = [fold(facts(part), TABLE) for part in (order[:at], order[at:])]
            state = fold(concat(parts), TABLE)
            assert state.rows[ID].to_pylist() == [ident(3)] and state.rows[LENGTH].to_pylist() == [30]
            assert not state.numbers("_expects").any()


def test_keys_do_not_touch_each_other() -> None:
    other = At(2, Event("objects", EventKind.DELETE, KEY | {"3": "k\x00"}))
    for order in itertools.permutations([put(1), other, put(3)]):
        assert shown(fold(facts(order), TABLE)) == [
            version(1, 1, end=(3, 0), by="PUT"),
            version(3, 3),
            ("DELETE", (2, 0), None, None, None, "NONE", False),
        ]


def test_tables_that_drop_tombstones_count_ended_versions_as_purged() -> None:
    stamps = transaction_table([(START, "w", 0, UUIDS[0])])
    key = {"1": "s", "2": "p"}
    events = [(0, 0, Event(DROPPED.name, EventKind.PUT, key | {"4": "m"})), (0, 1, Event(DROPPED.name, EventKind.DELETE, key))]
    state = fold(facts_of_events(DROPPED, events, stamps), DROPPED)

    assert state.numbers("_purged").tolist() == [1] and state.rows["4"].to_pylist() == [None]


def test_equal_commit_times_are_ordered_by_writer_revision_and_uuid() -> None:
    stamps = [(START, "b", 0, UUIDS[0]), (START, "a", 9, UUIDS[1]), (START, "b", 0, UUIDS[2]), (START, "a", 2, UUIDS[3])]
    table = transaction_table(stamps)
    events = [(n, 0, Event("objects", EventKind.PUT, KEY | {LENGTH: n})) for n in range(4)]
    state = fold(facts_of_events(TABLE, events, table), TABLE)

    assert table["uuid"].to_pylist() == [UUIDS[3], UUIDS[1], UUIDS[0], UUIDS[2]]
    assert state.rows[LENGTH].to_pylist() == [0, 1, 2, 3] and state.numbers("_end_kind").tolist() == [1, 1, 1, 0]


CONFLICTS: dict[str, tuple[list[At], list[tuple[str, int, Any, Any]]]] = {
    "a late update": ([put(1), put(2), update(3, name(1), 9), update(4, name(1), 8)], [("late_update", 4, None, None)]),
    "an update before the end is none": ([put(1), update(2, name(1), 9), put(3)], []),
    "a naming delete that comes too late is none": ([put(1), put(2), delete(3, name(1))], []),
    "put expected nothing and replaced nothing": ([put(1, has_expectation=True)], []),
    "put expected nothing and replaced something": ([put(1), put(2, has_expectation=True)], [("expectation", 2, "absent", 1)]),
    "put expected what it replaced": ([put(1), put(2, has_expectation=True, expects=name(1))], []),
    "put expected another version": (
        [put(1), put(2), put(3, has_expectation=True, expects=name(1))],
        [("expectation", 3, 1, 2)],
    ),
    "put expected a version that had ended": (
        [put(1), delete(2), put(3, has_expectation=True, expects=name(1))],
        [("expectation", 3, 1, "absent")],
    ),
    "delete expected what it ended": ([put(1), delete(2, has_expectation=True, expects=name(1))], []),
    "delete expected another": ([put(1), put(2), delete(3, has_expectation=True, expects=name(1))], [("expectation", 3, 1, 2)]),
    "delete expected something and ended nothing": (
        [delete(2, has_expectation=True, expects=name(1))],
        [("expectation", 2, 1, "absent")],
    ),
    "delete expected nothing and ended nothing": ([delete(2, has_expectation=True)], []),
    "delete expected nothing and ended something": ([put(1), delete(2, has_expectation=True)], [("expectation", 2, "absent", 1)]),
    "a displaced delete keeps what it expected": (
        [put(1), delete(3, has_expectation=True, expects=name(1)), delete(2, name(1))],
        [("expectation", 3, 1, "absent")],
    ),
    "conflicts of purged versions stay": (
        [put(1), put(2, has_expectation=True), delete(4), purge(5, name(1)), purge(5, name(2), seq=1)],
        [("expectation", 2, "absent", 1)],
    ),
}


@pytest.mark.parametrize("case", CONFLICTS)
def test_conflicts_are_what_the_rules_say_also_after_folding_in_parts(case: str) -> None:
    events, expected = CONFLICTS[case]

    def label(text: str | None) -> Any:
        return text if text in (None, "absent") else UUIDS.index(uuid_bytes(text.partition(":")[0]))

    orders = list(itertools.permutations(events))
    for order in orders if len(events) < 5 else orders[1::5]:  # among which is every way to part five
        for at in range(len(order)):
            parts = [fold(facts(part), TABLE) for part in (order[:at], order[at:]) if part]
            found = conflicts(concat(parts), TABLE).to_pylist()
            assert [(c["kind"], label(c["event"]), label(c["expected"]), label(c["found"])) for c in found] == expected
