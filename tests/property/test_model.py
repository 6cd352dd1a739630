"""The model against examples worked out by hand, one group for each rule that it states."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from ..kit.reference.differences import Change, changes, diff
from ..kit.reference.model import (
    ABSENT,
    Conflict,
    ConflictKind,
    EndKind,
    Event,
    Op,
    Stamp,
    State,
    Version,
    state,
    versions_of_key,
)
from ..kit.reference.pages import ListRequest, Page, page

KEY = ("b", "k")
TABLE = "objects"


def stamp(time: int, writer: str = "w") -> Stamp:
    """The stamp of a transaction's only event; the transaction is called after its time."""
    return Stamp(time, writer, 0, f"u{time:02}", 0)


def event(op: Op, time: int, **fields: Any) -> Event:
    """An event of the one key that most of these tests are about."""
    return Event(stamp=stamp(time), op=op, **{"table": TABLE, "key": KEY, **fields})


def put(time: int, **fields: Any) -> Event:
    """A PUT whose row says when it was written."""
    return event(Op.PUT, time, **{"row": {"value": time}, **fields})


def update(time: int, version: int, **fields: Any) -> Event:
    """An UPDATE of the version that was put at the time ``version``."""
    return event(Op.UPDATE, time, version=stamp(version).name, **{"row": {"value": time}, **fields})


def delete(time: int, version: int | None = None, **fields: Any) -> Event:
    """A DELETE, blind unless it names the version that was put at the time ``version``."""
    return event(Op.DELETE, time, version=None if version is None else stamp(version).name, **fields)


def purge(time: int, version: int) -> Event:
    """A PURGE of the version that was put at the time ``version``."""
    return event(Op.PURGE, time, version=stamp(version).name)


def versions(*events: Event) -> list[Version]:
    """All versions of the one key."""
    return versions_of_key(list(events), ())


def only(*events: Event) -> Version:
    """The one version that there is."""
    (version,) = versions(*events)
    return version


def conflicts(*events: Event) -> list[Conflict]:
    """The conflicts of the one key."""
    return state(events).conflicts


class TestStamps:
    def test_compare_by_time_then_writer_then_revision_then_uuid_then_seq(self) -> None:
        ordered = [
            Stamp(1, "z", 9, "z", 9),
            Stamp(2, "a", 9, "z", 9),
            Stamp(2, "b", 1, "z", 9),
            Stamp(2, "b", 2, "a", 9),
            Stamp(2, "b", 2, "b", 1),
            Stamp(2, "b", 2, "b", 2),
        ]
        shuffled = ordered[1::2] + ordered[::2]
        assert sorted(shuffled) == ordered

    def test_name_a_version_by_transaction_and_seq(self) -> None:
        assert Stamp(1, "w", 0, "u", 7).name == "u:7"


class TestRuleOneAVersionEndsAtTheFirstOf:
    def test_nothing_when_nothing_follows(self) -> None:
        version = only(put(1))
        assert version.live and version.end is None and version.end_kind is None and not version.tombstone

    def test_the_next_put(self) -> None:
        first, second, third = versions(put(1), put(2), put(3))
        assert (first.end, first.end_kind) == (stamp(2), EndKind.PUT)
        assert (second.end, second.end_kind) == (stamp(3), EndKind.PUT)
        assert third.live

    def test_the_next_blind_delete(self) -> None:
        version = only(put(1), delete(3), delete(5))
        assert (version.end, version.end_kind, version.deleted_at) == (stamp(3), EndKind.BLIND_DELETE, 3)

    def test_a_later_delete_that_names_it(self) -> None:
        version = only(put(1), delete(2, 1))
        assert (version.end, version.end_kind) == (stamp(2), EndKind.NAMED_DELETE)

    def test_a_later_delete_that_names_it_as_half_of_a_move(self) -> None:
        assert only(put(1), delete(2, 1, moved=True)).end_kind is EndKind.MOVE

    @pytest.mark.parametrize(
        ("times", "expected"),
        [
            ((2, 3, 4), EndKind.PUT),
            ((3, 2, 4), EndKind.BLIND_DELETE),
            ((4, 3, 2), EndKind.NAMED_DELETE),
        ],
    )
    def test_all_three(self, times: tuple[int, int, int], expected: EndKind) -> None:
        next_put, blind, named = times
        assert versions(put(1), put(next_put), delete(blind), delete(named, 1))[0].end_kind is expected

    def test_a_delete_that_names_another_version_ends_only_that_one(self) -> None:
        first, second = versions(put(1), put(2), delete(3, 1))
        assert first.end == stamp(2) and second.live

    def test_a_naming_delete_before_the_next_put_moves_the_end_forward(self) -> None:
        first, second = versions(put(1), put(3), delete(2, 1))
        assert (first.end, first.end_kind) == (stamp(2), EndKind.NAMED_DELETE) and second.live

    def test_the_earliest_of_two_naming_deletes(self) -> None:
        assert only(put(1), delete(4, 1, moved=True), delete(2, 1)).end == stamp(2)

    def test_a_blind_delete_before_any_put_ends_nothing(self) -> None:
        assert only(delete(1), put(2)).live

    def test_events_of_one_transaction_in_their_order(self) -> None:
        def in_one(seq: int, **fields: Any) -> Event:
            return Event(stamp=Stamp(5, "w", 0, "u", seq), table=TABLE, key=KEY, **fields)

        first, second = versions(
            in_one(0, op=Op.PUT, row={}),
            in_one(1, op=Op.DELETE),
            in_one(2, op=Op.PUT, row={}),
            in_one(3, op=Op.DELETE, version="u:0"),
        )
        assert (first.name, first.end, first.end_kind) == ("u:0", Stamp(5, "w", 0, "u", 1), EndKind.BLIND_DELETE)
        assert second.name == "u:2" and second.live

    def test_other_keys_and_tables_are_not_touched(self) -> None:
        found = state([put(1), put(2, key=("b", "other")), delete(3, table="buckets")])
        assert set(found.live(TABLE)) == {KEY, ("b", "other")}

    def test_it_only_comes_to_end_earlier_as_more_events_arrive(self) -> None:
        late = [delete(9), put(8), delete(7, 1), delete(6), put(5), delete(4, 1), delete(3)]
        ends = []
        for count in range(len(late) + 1):
            end = versions(put(1), *late[:count])[0].end
            ends.append(end.commit_time if end else 10)
        assert ends == [10, 9, 8, 7, 6, 5, 4, 3]


class TestRuleTwoItsRowIs:
    def test_the_puts_when_nothing_updates_it(self) -> None:
        version = only(put(1))
        assert (version.row, version.row_stamp) == ({"value": 1}, stamp(1))

    def test_the_latest_updates_whole_row(self) -> None:
        version = only(put(1, row={"value": 1, "other": 1}), update(3, 1), update(2, 1))
        assert (version.row, version.row_stamp) == ({"value": 3}, stamp(3))

    def test_the_latest_updates_also_after_its_end(self) -> None:
        version = only(put(1), delete(2), update(3, 1))
        assert (version.row, version.end) == ({"value": 3}, stamp(2))

    def test_not_that_of_an_update_of_another_version(self) -> None:
        first, second = versions(put(1), put(2), update(3, 1))
        assert (first.row, second.row) == ({"value": 3}, {"value": 2})

    def test_not_that_of_an_update_of_another_key(self) -> None:
        found = state([put(1), update(2, 1, key=("b", "other"))])
        assert found.live(TABLE)[KEY].row == {"value": 1}

    def test_with_key_id_and_data_reference_of_the_put(self) -> None:
        original = {"name": "k", "id": "first", "value": 1}
        changed = {"name": "k", "id": "second", "value": 2}
        found = state([put(1, row=original), update(2, 1, row=changed)], {TABLE: ("name", "id")})
        assert found.live(TABLE)[KEY].row == {"name": "k", "id": "first", "value": 2}

    def test_the_puts_when_the_update_is_stamped_before_it(self) -> None:
        version = only(put(2), update(1, 2))
        assert version.row == {"value": 2} and version.row_stamp == stamp(2)

    def test_a_delete_stamped_before_the_version_it_names_has_no_effect(self) -> None:
        assert only(put(2), delete(1, 2)).live


class TestRuleThreeLiveOrTombstone:
    def test_a_put_is_live(self) -> None:
        found = state([put(1)])
        assert found.get(TABLE, KEY) == only(put(1)) and not found.tombstones(TABLE)

    def test_an_overwritten_version_is_a_tombstone(self) -> None:
        found = state([put(1), put(2)])
        assert found.live(TABLE)[KEY].row == {"value": 2}
        assert [(it.row, it.deleted_at) for it in found.tombstones(TABLE).values()] == [({"value": 1}, 2)]

    def test_a_deleted_key_has_only_tombstones(self) -> None:
        found = state([put(1), put(2), delete(3)])
        assert found.get(TABLE, KEY) is None
        assert {name: it.deleted_at for name, it in found.tombstones(TABLE).items()} == {"u01:0": 2, "u02:0": 3}

    def test_putting_an_old_row_back_makes_a_new_version(self) -> None:
        found = state([put(1), delete(2), put(3, row={"value": 1})])
        assert found.live(TABLE)[KEY].name == "u03:0" and list(found.tombstones(TABLE)) == ["u01:0"]

    @pytest.mark.parametrize("time", [0, 2, 9])
    def test_a_purged_version_is_none_whatever_the_purges_stamp(self, time: int) -> None:
        found = state([put(1), delete(3), purge(time, 1)])
        assert not found.tombstones(TABLE) and not found.live(TABLE)

    def test_a_purge_of_a_live_version_waits_for_its_end(self) -> None:
        assert state([put(1), purge(2, 1)]).live(TABLE)
        assert not state([put(1), purge(2, 1), put(3)]).tombstones(TABLE)

    def test_a_purge_of_another_version_does_nothing(self) -> None:
        assert list(state([put(1), put(2), delete(3), purge(4, 2)]).tombstones(TABLE)) == ["u01:0"]


class TestRuleFourConflicts:
    def test_none_when_all_goes_well(self) -> None:
        events = [put(1, expect=ABSENT), update(2, 1), put(3, expect="u01:0"), delete(4, expect="u03:0"), purge(5, 3)]
        assert conflicts(*events) == []

    def test_an_update_after_the_end(self) -> None:
        (conflict,) = conflicts(put(1), delete(2), update(3, 1))
        assert conflict == Conflict(kind=ConflictKind.LATE_UPDATE, table=TABLE, key=KEY, version="u01:0", event=stamp(3))

    def test_only_the_latest_update_after_the_end(self) -> None:
        assert [it.event for it in conflicts(put(1), delete(2), update(3, 1), update(5, 1), update(4, 1))] == [stamp(5)]

    def test_an_update_before_the_end_is_none(self) -> None:
        assert conflicts(put(1), update(2, 1), delete(3)) == []

    def test_a_late_update_stays_one_after_the_purge(self) -> None:
        assert len(conflicts(put(1), delete(2), update(3, 1), purge(4, 1))) == 1

    def test_a_put_that_expected_nothing_and_found_a_version(self) -> None:
        (conflict,) = conflicts(put(1), put(2, expect=ABSENT))
        assert (conflict.kind, conflict.version, conflict.event) == (ConflictKind.EXPECTATION, "u02:0", stamp(2))
        assert (conflict.expected, conflict.found) == (ABSENT, "u01:0")

    def test_a_put_that_expected_a_version_and_found_nothing(self) -> None:
        (conflict,) = conflicts(put(1), delete(2), put(3, expect="u01:0"))
        assert (conflict.expected, conflict.found) == ("u01:0", ABSENT)

    def test_a_put_that_expected_a_version_and_found_another(self) -> None:
        (conflict,) = conflicts(put(1), put(2), put(3, expect="u01:0"))
        assert (conflict.expected, conflict.found) == ("u01:0", "u02:0")

    def test_of_two_that_expected_the_same_only_the_later_is_surprised(self) -> None:
        (conflict,) = conflicts(put(1), put(2, expect="u01:0"), put(3, expect="u01:0"))
        assert (conflict.event, conflict.found) == (stamp(3), "u02:0")

    def test_a_blind_delete_that_expected_another_version(self) -> None:
        (conflict,) = conflicts(put(1), put(2), delete(3, expect="u01:0"))
        assert (conflict.version, conflict.event, conflict.expected, conflict.found) == (None, stamp(3), "u01:0", "u02:0")

    def test_a_blind_delete_that_expected_a_version_and_ended_nothing(self) -> None:
        (conflict,) = conflicts(delete(3, expect="u01:0"))
        assert (conflict.expected, conflict.found) == ("u01:0", ABSENT)

    def test_a_blind_delete_that_expected_nothing(self) -> None:
        assert conflicts(delete(1, expect=ABSENT)) == []
        assert len(conflicts(put(1), delete(2, expect=ABSENT))) == 1

    def test_a_naming_delete_that_comes_too_late_is_none(self) -> None:
        assert conflicts(put(1), put(2), delete(3, 1)) == []

    def test_a_late_event_can_make_and_undo_a_conflict(self) -> None:
        assert conflicts(put(1), put(5, expect="u01:0")) == []
        assert len(conflicts(put(1), delete(3), put(5, expect="u01:0"))) == 1
        assert len(conflicts(put(5, expect="u01:0"))) == 1

    def test_nothing_is_dropped(self) -> None:
        first, second = versions(put(1), put(2), update(3, 1))
        assert (first.row, second.row) == ({"value": 3}, {"value": 2})


def test_state_does_not_depend_on_the_order_of_events() -> None:
    events = [put(1), put(4, expect="u01:0"), delete(2), update(3, 1), delete(5, 4, moved=True), purge(6, 4)]
    expected = state(events)
    assert len(expected.conflicts) == 2
    for order in permutations(events):
        assert state(order) == expected


def test_past_state_is_the_same_function_of_the_events_up_to_there() -> None:
    events = [put(1), update(2, 1), put(3), delete(4), purge(5, 1)]

    def until(time: int) -> State:
        return state(it for it in events if it.stamp.commit_time <= time)

    live = [[it.row["value"] for it in until(time).live(TABLE).values()] for time in range(6)]
    assert live == [[], [1], [2], [3], [], []]
    assert [len(until(time).tombstones(TABLE)) for time in range(6)] == [0, 0, 0, 1, 2, 1]


class TestListing:
    NAMES = ("a", "a/", "a/b", "a/c/d", "a0", "b//c", "é", "\ufffd", "\U0001f600")

    def listing(self, **request: Any) -> Page:
        return page(reversed(self.NAMES), ListRequest(**request))

    def test_is_in_byte_order(self) -> None:
        assert self.listing() == Page(list(self.NAMES), [], None)

    def test_astral_characters_come_last_unlike_in_utf_16(self) -> None:
        assert page(["\U0001f600", "\ue000"], ListRequest()).names == ["\ue000", "\U0001f600"]

    def test_of_a_prefix(self) -> None:
        assert self.listing(prefix="a/").names == ["a/", "a/b", "a/c/d"]

    def test_with_a_delimiter_rolls_names_up(self) -> None:
        assert self.listing(delimiter="/") == Page(["a", "a0", "é", "\ufffd", "\U0001f600"], ["a/", "b/"], None)

    def test_with_prefix_and_delimiter_shows_the_name_that_is_the_prefix(self) -> None:
        assert self.listing(prefix="a/", delimiter="/") == Page(["a/", "a/b"], ["a/c/"], None)

    def test_of_a_prefix_without_its_delimiter_shows_the_prefix_as_a_group(self) -> None:
        assert self.listing(prefix="a", delimiter="/") == Page(["a", "a0"], ["a/"], None)

    def test_with_a_delimiter_of_several_characters(self) -> None:
        assert self.listing(delimiter="//").groups == ["b//"]

    def test_marker_is_exclusive(self) -> None:
        assert self.listing(marker="a0").names[0] == "b//c"
        assert self.listing(marker="a1").names[0] == "b//c"

    def test_marker_inside_or_at_a_group_leaves_the_group_behind(self) -> None:
        assert self.listing(delimiter="/", marker="a/").groups == ["b/"]
        assert self.listing(delimiter="/", marker="a/b").groups == ["b/"]

    def test_groups_count_against_the_limit(self) -> None:
        assert self.listing(delimiter="/", limit=2) == Page(["a"], ["a/"], "a/")

    def test_next_marker_is_none_on_the_last_page(self) -> None:
        assert self.listing(limit=len(self.NAMES)).next_marker is None
        assert self.listing(limit=len(self.NAMES) - 1).next_marker == "\ufffd"

    def test_of_nothing(self) -> None:
        assert page([], ListRequest()) == Page([], [], None)

    @pytest.mark.parametrize("delimiter", [None, "/", "//"])
    @pytest.mark.parametrize("prefix", ["", "a", "a/", "b/"])
    @pytest.mark.parametrize("limit", [1, 2, 3])
    def test_pages_add_up_to_the_whole(self, delimiter: str | None, prefix: str, limit: int) -> None:
        whole = self.listing(prefix=prefix, delimiter=delimiter)
        names: list[str] = []
        groups: list[str] = []
        marker = None
        for _ in self.NAMES:
            part = self.listing(prefix=prefix, delimiter=delimiter, marker=marker, limit=limit)
            names, groups, marker = names + part.names, groups + part.groups, part.next_marker
            if marker is None:
                break
        assert (names, groups) == (whole.names, whole.groups)

    def test_in_a_state_shows_live_keys_of_one_parent(self) -> None:
        found = state([put(1), put(2, key=("b", "gone")), delete(3, key=("b", "gone")), put(4, key=("c", "elsewhere"))])
        assert found.list(TABLE, ("b",), ListRequest()).names == ["k"]


class TestChangesBetweenTwoCuts:
    def test_are_the_events_of_one_and_not_the_other_in_the_order_of_stamps(self) -> None:
        one, two, three, four = put(1), put(2), update(3, 2), delete(4)
        assert changes([one, three], [four, three, two, one]) == [two, four]

    def test_are_none_backwards(self) -> None:
        assert changes([put(1), put(2)], [put(1)]) == []


class TestDifferenceBetweenTwoStates:
    def between(self, before: list[Event], after: list[Event]) -> Change | None:
        return diff(state(before), state(after), TABLE).get(KEY)

    def test_created(self) -> None:
        assert self.between([], [put(1)]) is Change.CREATED
        assert self.between([put(1), delete(2)], [put(1), delete(2), put(3)]) is Change.CREATED

    def test_deleted(self) -> None:
        assert self.between([put(1)], [put(1), delete(2)]) is Change.DELETED

    def test_overwritten(self) -> None:
        assert self.between([put(1)], [put(1), put(2)]) is Change.OVERWRITTEN
        assert self.between([put(1)], [put(1), delete(2), put(3)]) is Change.OVERWRITTEN
        assert self.between([put(1)], [put(1), put(2, row={"value": 1})]) is Change.OVERWRITTEN

    def test_modified(self) -> None:
        assert self.between([put(1)], [put(1), update(2, 1)]) is Change.MODIFIED

    def test_unchanged(self) -> None:
        assert self.between([put(1)], [put(1)]) is None
        assert self.between([], [put(1), delete(2)]) is None
        assert self.between([put(2)], [put(1), put(2)]) is None

    def test_backwards(self) -> None:
        assert self.between([put(1)], []) is Change.DELETED
        assert self.between([put(1), put(2)], [put(1)]) is Change.OVERWRITTEN

    def test_is_of_one_table(self) -> None:
        assert diff(state([]), state([put(1, table="buckets")]), TABLE) == {}
