"""From the actions of a step, which name things by small numbers, to the events of a transaction."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

from ..reference.model import ABSENT, Event, Key, Op, Place, Row, Stamp, VersionName, incarnation, versions_of_key
from ..reference.timelines import Draft
from .columns import KEYS, PINNED
from .driver import Addressed
from .steps import Action, Delete, DeleteLive, DeleteVersion, Purge, Put, Update, UpdateLive
from .world import START, World

_LATER = 1 << 62
"""A commit time later than any other."""


class Drafter:
    """Makes drafts. No two of the rows that it invents are equal."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._rows = 0

    def drafts(self, actions: Iterable[Action]) -> list[Addressed]:
        """The actions of one transaction as drafts; those that refer to nothing are left out."""
        drafts: list[Addressed] = []
        touched: set[Place] = set()
        for action in actions:
            if isinstance(action, UpdateLive | DeleteLive):
                found = self._of_live(action, touched)
            elif isinstance(action, Put | Delete):
                found = self._of_key(action, drafts)
            else:
                found = self._of_version(action)
            if found is not None:
                touched.add((found.draft.table, found.draft.key))
                drafts.append(found)
        return drafts

    def _of_key(self, action: Put | Delete, before: list[Addressed]) -> Addressed:
        table, key = self._world.places[action.key]
        expect = self._expectation(table, key, action.expect)
        if isinstance(action, Delete):
            return Addressed(Draft(op=Op.DELETE, table=table, key=key, expect=expect))
        row, derived = self._row(table, key), action.derived and table == "buckets"
        if derived:
            row = {**row, "id": self._incarnation((table, key), before)}
        return Addressed(Draft(op=Op.PUT, table=table, key=key, row=row, expect=expect), derived=derived)

    def _incarnation(self, place: Place, before: list[Addressed]) -> str:
        """The id of a bucket that is put now: after all that is visible, and after what the same transaction has done."""
        world = self._world
        events = [event for event in world.timelines.events(world.timelines.visible()) if event.place == place]
        for seq, addressed in enumerate(before):
            if (addressed.draft.table, addressed.draft.key) == place:
                events.append(addressed.draft.stamped(Stamp(_LATER, "", 0, "", seq)))
        return incarnation(versions_of_key(events, PINNED[place[0]]), place[1])

    def _of_version(self, action: Update | DeleteVersion | Purge) -> Addressed | None:
        if not self._world.puts:
            return None
        put = self._world.puts[-1 - action.version % len(self._world.puts)]
        table, key, version = put.table, put.key, put.stamp.name
        match action:
            case Update():
                row = self._row(table, key, updates=put, other_id=action.other_id)
                return Addressed(Draft(op=Op.UPDATE, table=table, key=key, row=row, version=version))
            case DeleteVersion():
                return Addressed(Draft(op=Op.DELETE, table=table, key=key, version=version, moved=action.moved))
            case Purge():
                return Addressed(Draft(op=Op.PURGE, table=table, key=key, version=version))

    def _of_live(self, action: UpdateLive | DeleteLive, touched: set[Place]) -> Addressed | None:
        """The live version by its id. What the same transaction has done to the key already is nobody's to look up."""
        table, key = self._world.places[action.key]
        live = self._world.newest().get(table, key)
        if live is None or "id" not in live.row or (table, key) in touched:
            return None
        its_id = str(live.row["id"])
        if isinstance(action, DeleteLive):
            return Addressed(Draft(op=Op.DELETE, table=table, key=key, version=live.name), its_id)
        put = next(event for event in self._world.puts if event.stamp == live.stamp)
        row = self._row(table, key, updates=put)
        return Addressed(Draft(op=Op.UPDATE, table=table, key=key, row=row, version=live.name), its_id)

    def _expectation(self, table: str, key: Key, expect: int | str | None) -> VersionName | None:
        if expect is None or isinstance(expect, str):
            return expect
        names = [event.stamp.name for event in self._world.puts if event.place == (table, key)]
        return names[-1 - expect % len(names)] if names else ABSENT

    def _row(self, table: str, key: Key, *, updates: Event | None = None, other_id: bool = False) -> Row:
        """A new row, with the id of the version that it updates or another one. Every second one says when it was created."""
        self._rows += 1
        number = self._rows
        row: dict[str, Any] = dict(zip(KEYS[table], key, strict=True))
        if table == "harvest_errors":
            row |= {"code": f"code {number}", "message": None if number % 3 == 0 else f"message {number}"}
            return row if number % 2 else {**row, "seen": START - number}
        row["id"] = str(uuid.uuid5(uuid.NAMESPACE_OID, str(number)))
        if updates is not None and updates.row is not None and not other_id:
            row["id"] = updates.row["id"]
        if number % 2 == 0:
            row["created"] = START - number
        if table == "objects":
            row |= {"content_length": number, "content_type": None if number % 3 == 0 else f"type/{number}"}
        else:
            row |= {"region": f"region {number}"}
        return row
