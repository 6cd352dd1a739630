"""Histories in which processes also restore tables: what a restore has to commit, by the model, and the machine for such steps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from .comparing import check, shown
from .driver import Addressed
from .histories import histories
from .machine import Machine
from .model import ABSENT, Key, Op, State, Version
from .steps import PROCESSES, TABLES, Fault, History
from .timelines import Draft

COMMITS = frozenset({Fault.NONE, Fault.LOST_RESPONSE, Fault.LOST_REQUEST, Fault.LATE})
HAS_DATA = frozenset({"objects"})
"""The tables whose rows say where data lies."""


@dataclass(frozen=True, slots=True)
class Restore:
    """The process restores a table to what the past cut of that number showed of it; the fault strikes after so many PUTs."""

    process: str
    past: int
    table: int
    fault: Fault = Fault.NONE
    after: int = 0


_RESTORE = st.builds(
    Restore,
    process=st.sampled_from(tuple(PROCESSES)),
    past=st.integers(0, 7),
    table=st.integers(0, len(TABLES) - 1),
    fault=st.sampled_from((Fault.NONE,) * 12 + tuple(Fault)),
    after=st.integers(0, 1),
)


@st.composite
def restoring_histories(draw: st.DrawFn) -> History:
    """Histories as others, with a few restores among the steps."""
    history = draw(histories())
    steps: list[Any] = list(history.steps)
    for restore in draw(st.lists(_RESTORE, min_size=2, max_size=5)):
        steps.insert(draw(st.integers(3, len(steps))), restore)
    return replace(history, steps=steps)


def restoring(then: State, now: State, table: str) -> list[Draft]:
    """The events that make the live rows of ``now`` those of ``then``, in the order of their keys; none where data may be gone."""
    old, new = then.live(table), now.live(table)
    drafts = [_of_key(table, key, old.get(key), new.get(key)) for key in sorted(old.keys() | new.keys())]
    gone = {it.name for versions in now.versions.values() for it in versions if it.purged and table in HAS_DATA}
    put_again = {(draft.table, draft.key): old[draft.key].name for draft in drafts if draft is not None and draft.op is Op.PUT}
    return [draft for draft in drafts if draft is not None and put_again.get((draft.table, draft.key)) not in gone]


def _of_key(table: str, key: Key, old: Version | None, new: Version | None) -> Draft | None:
    if old is None:
        assert new is not None
        return Draft(op=Op.DELETE, table=table, key=key, version=new.name)
    if new is None:
        return Draft(op=Op.PUT, table=table, key=key, row=shown(old), expect=ABSENT)
    if shown(old) == shown(new):
        return None
    if old.name == new.name:
        return Draft(op=Op.UPDATE, table=table, key=key, row=shown(old), version=new.name)
    return Draft(op=Op.PUT, table=table, key=key, row=shown(old), expect=new.name)


class RestoringMachine(Machine):
    """Takes restores too, and checks that each makes of the table what it was and leaves the others as they are."""

    def _take(self, step: Any) -> None:
        if isinstance(step, Restore):
            self._restore(step)
        else:
            super()._take(step)

    def _restore(self, step: Restore) -> None:
        running = self._process(step.process)
        past, visible = self._world.past(step.past), self._timelines.visible()
        if running is None or not visible:
            return
        table, now = TABLES[step.table], self._world.newest()
        drafts = restoring(self._world.state(past.cut), now, table)
        self._timelines.read(running.model, visible)
        before = set(self._timelines.transactions)
        outcome = running.engine.restore(table, past.version or ":", fault=step.fault, after=step.after)
        if not drafts:
            assert not outcome.published, f"{table} is as it was, and a restore commits nothing"
        self._settle(
            running, outcome, [Addressed(draft) for draft in drafts], None, must_commit=bool(drafts) and step.fault in COMMITS
        )
        for uuid in set(self._timelines.transactions) - before:
            after = self._world.state(visible | {uuid})
            self._check(table, past.cut, visible, after)

    def _check(self, table: str, then: Any, before: Any, after: State) -> None:
        """Whoever sees what the restore had seen, and the restore, sees the table as it was and all others as they are."""
        old, now = self._world.state(then), self._world.state(before)
        gone = {it.name for versions in now.versions.values() for it in versions if it.purged} if table in HAS_DATA else set()
        kept = {key: it for key, it in old.live(table).items() if it.name not in gone}
        found = {key: shown(it) for key, it in after.live(table).items() if key in kept or key not in old.live(table)}
        check(f"{table}, restored", {key: shown(it) for key, it in kept.items()}, found)
        for other in TABLES:
            if other != table:
                check(f"{other}, not restored", now.live(other), after.live(other))
