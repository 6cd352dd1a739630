"""The histories would notice: with any one rule of the model turned wrong, model and engine soon disagree."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import Phase, given, settings

from bucketcatalog.errors import InvalidRows
from bucketcatalog.store.memory import MemoryStore

from ..kit.chance import ANY_SPEED
from ..kit.machine import comparing, drafting
from ..kit.machine.histories import histories
from ..kit.machine.running import run
from ..kit.machine.steps import History
from ..kit.machine.world import Time
from ..kit.reference import differences, model, timelines
from ..kit.reference.model import Event, Op, Stamp, State
from ..kit.reference.pages import ListRequest, Page
from ..kit.reference.timelines import Cut, Process, Timelines

ENOUGH = 400
"""Histories within which a mistake must show; most show in the first ten."""

Mistake = Callable[[Event], Event | None]
REAL_STATE = model.state
REAL_PAGE = model.page


def _is_blind(event: Event) -> bool:
    return event.op is Op.DELETE and event.version is None


def _is_naming(event: Event) -> bool:
    return event.op is Op.DELETE and event.version is not None


def _without(wrong: Callable[[Event], bool]) -> Mistake:
    return lambda event: None if wrong(event) else event


def _writers_backwards(event: Event) -> Event:
    writer = "".join(chr(0x10FFFF - ord(character)) for character in event.stamp.writer)
    return replace(event, stamp=event.stamp._replace(writer=writer))


MISTAKES: dict[str, Mistake] = {
    "blind deletes do nothing": _without(_is_blind),
    "naming deletes do nothing": _without(_is_naming),
    "naming deletes are blind": lambda event: replace(event, version=None, moved=False) if _is_naming(event) else event,
    "updates do nothing": _without(lambda event: event.op is Op.UPDATE),
    "purges do nothing": _without(lambda event: event.op is Op.PURGE),
    "purges end": lambda event: replace(event, op=Op.DELETE) if event.op is Op.PURGE else event,
    "nobody expects anything": lambda event: replace(event, expect=None),
    "equal times are ordered by writers backwards": _writers_backwards,
    "the order within a transaction is backwards": lambda event: replace(
        event, stamp=event.stamp._replace(revision=-event.stamp.seq)
    ),
}


def _disagree() -> None:
    """Run histories until the engine and the model, as they are now, disagree; or the engine finds no row that the model calls live."""

    @settings(ANY_SPEED, max_examples=ENOUGH, phases=[Phase.generate], derandomize=True, database=None)
    @given(histories())
    def search(history: History) -> None:
        time = Time()
        run(history, MemoryStore(clock=time.now), time)

    with pytest.raises((AssertionError, InvalidRows)):
        search()


@pytest.mark.parametrize("name", MISTAKES)
def test_wrong_rule_about_events_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(events: Iterable[Event], *rest: Any) -> State:
        changed = (MISTAKES[name](event) for event in events)
        return REAL_STATE([event for event in changed if event is not None], *rest)

    monkeypatch.setattr(timelines, "state", wrong)
    _disagree()


def test_rows_that_updates_change_too_much_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timelines, "state", lambda events, pinned=None, dropping=(): REAL_STATE(events, None, dropping))
    _disagree()


def test_conflicts_of_late_updates_left_out_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(events: Iterable[Event], *rest: Any) -> State:
        state = REAL_STATE(events, *rest)
        state.conflicts[:] = [it for it in state.conflicts if it.kind is not model.ConflictKind.LATE_UPDATE]
        return state

    monkeypatch.setattr(timelines, "state", wrong)
    _disagree()


def test_past_that_ends_too_early_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(self: Timelines, time: int) -> Cut:
        return frozenset(uuid for uuid in self.arrived if self.transactions[uuid].commit_time < time)

    monkeypatch.setattr(Timelines, "at", wrong)
    _disagree()


def test_late_transactions_seen_too_early_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Timelines, "visible", lambda self: frozenset(self.transactions))
    _disagree()


def test_tombstones_kept_where_they_should_be_dropped_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timelines, "state", lambda events, pinned=None, dropping=(): REAL_STATE(events, pinned))
    _disagree()


def test_ids_that_forget_the_previous_incarnation_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drafting, "incarnation", lambda versions, key: model.incarnation([it for it in versions if it.live], key))
    _disagree()


def test_new_ids_for_buckets_that_live_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = Stamp(1 << 62, "", 0, "", 0)
    monkeypatch.setattr(
        drafting, "incarnation", lambda versions, key: model.incarnation([replace(it, end=ended) for it in versions], key)
    )
    _disagree()


def test_applications_that_repeat_themselves_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Timelines, "answer", lambda self, process, application: None)
    _disagree()


def test_applications_forgotten_when_a_writer_is_opened_again_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Timelines.answer

    def wrong(self: Timelines, process: Process, application: tuple[str, int]) -> Cut | None:
        process.applications = process.applications or {}
        return real(self, process, application)

    monkeypatch.setattr(Timelines, "answer", wrong)
    _disagree()


def test_forgotten_parents_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Timelines, "ancestors", lambda self, uuids: frozenset(uuids))
    _disagree()


def test_listing_that_repeats_its_marker_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(names: Iterable[str], request: ListRequest) -> Page:
        known = [*names]
        marker = None if request.marker is None else max((it for it in known if it < request.marker), default=None)
        return REAL_PAGE(known, replace(request, marker=marker))

    monkeypatch.setattr(model, "page", wrong)
    _disagree()


def test_changes_in_another_order_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparing, "changes", lambda before, after: differences.changes(before, after)[::-1])
    _disagree()
