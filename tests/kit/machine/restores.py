"""Histories in which processes also restore tables: what a restore has to commit, by the model, and the machine for such steps."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from ..reference.model import ABSENT, Key, Op, State, Version, VersionName
from ..reference.timelines import Cut, Draft
from .comparing import check, shown
from .driver import Addressed
from .machine import Machine
from .onlooker import EngineReader
from .steps import TABLES, Fault
from .world import Remembered

COMMITS = frozenset({Fault.NONE, Fault.LOST_RESPONSE, Fault.LOST_REQUEST, Fault.LATE})
HAS_DATA = frozenset({"objects"})
"""The tables whose rows say where data lies."""
PARENTS = {"objects": ("buckets", 1)}
"""For tables whose rows belong to others: the table of these, and which column of the key is their id."""


@dataclass(frozen=True, slots=True)
class Restore:
    """The process restores a table to what the past cut of that number showed of it; the fault strikes after so many PUTs.

    ``by_tag`` calls the cut by the name of a tag, where it has one.
    """

    process: str
    past: int
    table: int
    fault: Fault = Fault.NONE
    after: int = 0
    by_tag: bool = False


def usable(now: State, table: str, boundary: int) -> frozenset[VersionName]:
    """The versions whose data is there for certain: those that are not purged, and ended after the data boundary or not at all."""
    versions = [it for (its_table, _), found in now.versions.items() if its_table == table for it in found]
    return frozenset(it.name for it in versions if not it.purged and (it.live or it.deleted_at > boundary))


def restoring(then: State, now: State, table: str, boundary: int = 0) -> list[Draft]:
    """The events that make the live rows of ``now`` those of ``then``, in the order of their keys; none where data may be gone."""
    old, new = then.live(table), now.live(table)
    drafts = [_of_key(table, key, old.get(key), new.get(key)) for key in sorted(old.keys() | new.keys())]
    there = usable(now, table, boundary)
    lost = {(table, key) for key, it in old.items() if table in HAS_DATA and it.name not in there}
    return [it for it in drafts if it is not None and not (it.op is Op.PUT and (it.table, it.key) in lost)]


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


def orphaned(then: State, now: State, drafts: Collection[Draft]) -> bool:
    """Whether rows that are put again belong to rows that were live then and are not now."""
    for draft in drafts:
        if draft.op is Op.PUT and draft.table in PARENTS:
            parents, at = PARENTS[draft.table]
            lived, live = ({it.row["id"] for it in state.live(parents).values()} for state in (then, now))
            if draft.key[at] in lived - live:
                return True
    return False


class Restoring(Machine):
    """Takes restores too, and checks that each makes of the table what it was and leaves the others as they are."""

    def _take(self, step: Any) -> None:
        if isinstance(step, Restore):
            self._restore(step)
        else:
            super()._take(step)

    def _restore(self, step: Restore) -> None:
        running = self._process(step.process)
        past, visible = self._world.past(step.past), self._timelines.visible()
        if running is None or not visible or not self._may_read(past):
            return
        table, now, then = TABLES[step.table], self._world.newest(), self._world.state(past.cut)
        drafts = restoring(then, now, table, self._data_boundary())
        refused = orphaned(then, now, drafts)
        self._timelines.read(running.model, visible)
        before = set(self._timelines.transactions)
        name = self._name_of(past) if step.by_tag else past.version
        outcome = running.engine.restore(table, name or ":", fault=step.fault, after=step.after)
        assert (drafts and not refused) or not outcome.published, f"a restore of {table} has nothing to commit"
        assert outcome.refused or not refused or step.fault is not Fault.NONE, "rows would belong to what has ended"
        commits = bool(drafts) and not refused and step.fault in COMMITS
        self._settle(running, outcome, [Addressed(draft) for draft in drafts], None, must_commit=commits)
        for uuid in set(self._timelines.transactions) - before:
            self._check(table, past.cut, visible, self._world.state(visible | {uuid}))
        expected = {draft.key: draft.expect for draft in drafts if draft.op is Op.PUT}
        reader = EngineReader(self._store, now=self._world.time.now)
        for found in outcome.published:
            if found.arrived:
                check("what a restore expects to replace", expected, reader.expectations(table, found))

    def _name_of(self, past: Remembered) -> str | None:
        """What a cut is called."""
        return past.version

    def _check(self, table: str, then: Cut, before: Cut, after: State) -> None:
        """Whoever sees what the restore had seen, and the restore, sees the table as it was and all others as they are."""
        old, now = self._world.state(then).live(table), self._world.state(before)
        there = usable(now, table, self._data_boundary())
        kept = {key: it for key, it in old.items() if it.name in there or table not in HAS_DATA}
        found = {key: shown(it) for key, it in after.live(table).items() if key in kept or key not in old}
        check(f"{table}, restored", {key: shown(it) for key, it in kept.items()}, found)
        for other in TABLES:
            if other != table:
                check(f"{other}, not restored", now.live(other), after.live(other))
